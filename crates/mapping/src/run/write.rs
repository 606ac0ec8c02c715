//! Writing values: as JSON, or as pieces of text.

use super::{
    Failure, Member,
    eval::{Result, Run},
    heap::{Slice, Value},
};

impl Run<'_> {
    /// Appends a value as JSON. What stands in an input is copied as it is.
    pub(super) fn write(&mut self, value: Value, out: &mut Vec<u8>) -> Result<()> {
        self.write_within(value, out, 0)
    }

    fn write_within(&mut self, value: Value, out: &mut Vec<u8>, depth: u32) -> Result<()> {
        if depth > self.limits.depth_max {
            return Err(Failure::Nesting);
        }
        self.spend(1)?;
        if let Some(slice) = self.heap.slice_of(value) {
            self.spend_bytes(slice.len())?;
            self.check_output(out.len() + slice.len())?;
            out.extend_from_slice(self.heap.bytes(slice));
            return Ok(());
        }
        match value {
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::List(items) => {
                out.push(b'[');
                for (count, index) in items.range().enumerate() {
                    if count > 0 {
                        out.push(b',');
                    }
                    let item = self.heap.cells[index];
                    self.write_within(item, out, depth + 1)?;
                }
                out.push(b']');
            }
            Value::Object(members) => {
                out.push(b'{');
                for (count, index) in members.range().enumerate() {
                    if count > 0 {
                        out.push(b',');
                    }
                    let member = self.heap.members[index];
                    self.check_output(out.len() + member.key.len())?;
                    out.extend_from_slice(self.heap.bytes(member.key));
                    out.push(b':');
                    self.write_within(member.value, out, depth + 1)?;
                }
                out.push(b'}');
            }
            _ => out.extend_from_slice(b"null"),
        }
        self.check_output(out.len())
    }

    fn check_output(&self, bytes: usize) -> Result<()> {
        if bytes > self.limits.output_bytes_max {
            return Err(Failure::OutputBytes);
        }
        Ok(())
    }

    /// A value as pieces of text; see [`Program::run_texts`](crate::Program::run_texts). Adds their length to `bytes`.
    pub(super) fn pieces(
        &mut self,
        value: Value,
        bytes: &mut usize,
    ) -> Result<Option<Vec<String>>> {
        let mut pieces = Vec::new();
        let Some(items) = self.as_list(value)? else {
            let is_text = self.push_piece(value, &mut pieces, bytes)?;
            return Ok(is_text.then_some(pieces));
        };
        for index in items.range() {
            let item = self.heap.cells[index];
            if !self.push_piece(item, &mut pieces, bytes)? {
                return Ok(None);
            }
        }
        Ok(Some(pieces))
    }
    /// Adds the text of a scalar, and nothing for null; false for a list or an object.
    fn push_piece(
        &mut self,
        value: Value,
        pieces: &mut Vec<String>,
        bytes: &mut usize,
    ) -> Result<bool> {
        let len = self.heap.slice_of(value).map_or(0, Slice::len);
        *bytes += len;
        self.spend_bytes(len)?;
        self.check_output(*bytes)?;
        let text = self.scalar_text(value);
        let is_text = text.is_some();
        pieces.extend(text.filter(|_| !value.is_nullish()));
        Ok(is_text)
    }

    /// The members of a value as pieces of text; see [`Program::run_members`](crate::Program::run_members).
    pub(super) fn member_pieces(&mut self, value: Value) -> Result<Option<Vec<Member>>> {
        if value.is_nullish() {
            return Ok(Some(Vec::new()));
        }
        let Some(members) = self.as_members(value)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        let mut bytes = 0;
        for index in members.range() {
            let member = self.heap.members[index];
            bytes += member.key.len();
            let name = self.heap.string(member.key).into_owned();
            match self.pieces(member.value, &mut bytes)? {
                Some(pieces) => all.push(Member { name, pieces }),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}
