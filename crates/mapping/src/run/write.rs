//! Writing values: as JSON, or as pieces of text.

use super::{
    Failure, Member,
    eval::{Result, Run},
    heap::Value,
};
use crate::kinds::Kinds;

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

    /// A value as pieces of text; see [`Program::run_texts`](crate::Program::run_texts).
    pub(super) fn pieces(&mut self, value: Value) -> Result<Option<Vec<String>>> {
        let Some(items) = self.as_list(value)? else {
            let piece = self.scalar_text(value);
            return Ok(piece.map(|piece| {
                let is_there = !value.is_nullish();
                is_there.then_some(piece).into_iter().collect()
            }));
        };
        let mut pieces = Vec::new();
        let mut bytes = 0;
        for index in items.range() {
            let item = self.heap.cells[index];
            let Some(piece) = self.scalar_text(item) else {
                return Ok(None);
            };
            bytes += piece.len();
            self.spend_bytes(piece.len())?;
            self.check_output(bytes)?;
            if !item.is_nullish() {
                pieces.push(piece);
            }
        }
        Ok(Some(pieces))
    }

    /// The members of a value as pieces of text; see [`Program::run_members`](crate::Program::run_members).
    pub(super) fn member_pieces(&mut self, value: Value) -> Result<Option<Vec<Member>>> {
        if value.is_nullish() {
            return Ok(Some(Vec::new()));
        }
        if self.heap.kind(value) != Kinds::OBJECT {
            return Ok(None);
        }
        let Some(members) = self.as_members(value)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for index in members.range() {
            let member = self.heap.members[index];
            let name = self.heap.string(member.key).into_owned();
            match self.pieces(member.value)? {
                Some(pieces) => all.push(Member { name, pieces }),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}
