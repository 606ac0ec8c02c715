//! Following keys, and looking into lists and objects of inputs.

use ogive_base::{Span, bounded};
use ogive_json::Scanner;

use super::{
    Failure,
    eval::{Result, Run},
    heap::{Entry, Slice, Source, Value, key_bytes},
    problem::Found,
};
use crate::{
    kinds::Kinds,
    program::{KeyNode, Rows},
};

impl Run<'_> {
    /// The value of a key: of each item, if the value is a list. A value that is not there is a problem, unless `quiet`.
    pub(super) fn key(
        &mut self,
        of: Value,
        key: KeyNode,
        span: Span,
        quiet: bool,
    ) -> Result<Value> {
        if let Value::Record(record) = of {
            let value = self.slot(record, key)?;
            if value.is_missing() && !quiet {
                self.missing_key(of, key, span);
            }
            return Ok(value);
        }
        if let Some(items) = self.as_list(of)? {
            return self
                .deeper(|run| run.map_cells(items, |run, item| run.key(item, key, span, quiet)));
        }
        let value = match of {
            Value::Object(members) => self.member(members, self.heap.constant(key.text))?,
            Value::Raw(slice) => self.scan_key(slice, key)?,
            _ => {
                if !quiet {
                    self.no_object(of, key, span);
                }
                return Ok(Value::Missing);
            }
        };
        if value.is_missing() && !quiet {
            self.missing_key(of, key, span);
        }
        Ok(value)
    }

    /// The value of a key of an object that was read.
    fn slot(&mut self, record: u32, key: KeyNode) -> Result<Value> {
        let record = self.heap.records[record as usize];
        let children = &self.program.needs.get(record.need).children;
        let json = self.program.text(key.text);
        let is_key = |slot: usize| children.get(slot).is_some_and(|child| *child.json == *json);
        let guess = key.slot as usize;
        let slot = if is_key(guess) {
            Some(guess)
        } else {
            (0..children.len()).find(|slot| is_key(*slot))
        };
        match slot {
            Some(slot) => Ok(self.heap.cells[record.slots as usize + slot]),
            // Nothing said that it would be read, so it was skipped.
            None => self.scan_key(record.slice, key),
        }
    }

    /// The value of the last member with a key, which is a string; missing if there is none.
    pub(super) fn member(&mut self, members: Rows, key: Slice) -> Result<Value> {
        self.spend_bytes(key_bytes(&self.heap.members[members.range()]))?;
        let members = &self.heap.members[members.range()];
        let found = members
            .iter()
            .rev()
            .find(|member| self.same_text(member.key, key));
        Ok(found.map_or(Value::Missing, |member| member.value))
    }

    /// Whether two strings denote one text.
    pub(super) fn same_text(&self, one: Slice, other: Slice) -> bool {
        let (one_json, other_json) = (self.heap.bytes(one), self.heap.bytes(other));
        if one_json == other_json {
            return true;
        }
        let escaped = one_json.contains(&b'\\') || other_json.contains(&b'\\');
        escaped && self.heap.string(one) == self.heap.string(other)
    }

    /// Looks for a key in the text of an object. The last member with that key counts.
    fn scan_key(&mut self, slice: Slice, key: KeyNode) -> Result<Value> {
        self.spend_bytes(slice.len())?;
        let wanted = self.heap.constant(key.text);
        let wanted = self.heap.string(wanted);
        let mut scanner = self.heap.scanner(slice, self.limits.depth_max);
        let mut found = Value::Missing;
        let scan = |scanner: &mut Scanner<'_>, found: &mut Value| {
            let mut more = scanner.begin_object()?;
            while more {
                let is_key = scanner.key()?.is(&wanted);
                let kind = scanner.peek()?;
                let range = scanner.skip_value()?;
                if is_key {
                    *found = Value::at(Slice::new(slice.source, range), kind);
                }
                more = scanner.next_member()?;
            }
            Ok::<(), ogive_json::ScanError>(())
        };
        // The text was read before, so it is JSON.
        scan(&mut scanner, &mut found).map_err(|_| Failure::Nesting)?;
        Ok(found)
    }

    /// The items of a list; `None` of anything else.
    pub(super) fn as_list(&mut self, value: Value) -> Result<Option<Rows>> {
        match value {
            Value::List(items) => Ok(Some(items)),
            Value::Raw(slice) if self.heap.kind(value) == Kinds::LIST => {
                self.spend_bytes(slice.len())?;
                let items = self.heap.items(slice, self.limits);
                let items = items.map_err(|stop| stop.into_failure(|_| Failure::Nesting))?;
                self.spend(u64::from(items.len))?;
                Ok(Some(items))
            }
            _ => Ok(None),
        }
    }

    /// The members of an object, of those with equal keys the last one; `None` of anything else.
    pub(super) fn as_members(&mut self, value: Value) -> Result<Option<Rows>> {
        let slice = match value {
            Value::Object(members) => return Ok(Some(members)),
            Value::Record(record) => self.heap.records[record as usize].slice,
            Value::Raw(slice) if self.heap.kind(value) == Kinds::OBJECT => slice,
            _ => return Ok(None),
        };
        self.spend_bytes(slice.len())?;
        let base = self.members.len();
        let mut scanner = self.heap.scanner(slice, self.limits.depth_max);
        let mut found = Vec::new();
        read_members(&mut scanner, slice.source, &mut found).map_err(|_| Failure::Nesting)?;
        self.members.append(&mut found);
        self.keep_last(base)?;
        self.made_members(base).map(Some)
    }

    // Problems.

    fn missing_key(&mut self, of: Value, key: KeyNode, span: Span) {
        self.key_problem(of, key, span, None, |key| {
            format!("the object has no key `{key}`")
        });
    }
    fn no_object(&mut self, of: Value, key: KeyNode, span: Span) {
        if of.is_missing() {
            self.key_problem(of, key, span, None, |key| {
                format!("there is nothing to read the key `{key}` of")
            });
            return;
        }
        let found = self.heap.kind(of);
        self.key_problem(of, key, span, Some(Kinds::OBJECT), |key| {
            format!("the key `{key}` is read of {found}")
        });
    }
    fn key_problem(
        &mut self,
        of: Value,
        key: KeyNode,
        span: Span,
        expected: Option<Kinds>,
        message: impl FnOnce(&str) -> String,
    ) {
        let place = self.heap.slice_of(of);
        let heap = &self.heap;
        self.problems.push(self.limits.problems_max, || {
            let key = heap.string(heap.constant(key.text)).into_owned();
            Found {
                message: message(&bounded(&key, 100)),
                expected,
                place,
                // The path of a value that is no object is its own.
                key: expected.is_none().then_some(key),
                span,
            }
        });
    }
}

fn read_members(
    scanner: &mut Scanner<'_>,
    source: Source,
    out: &mut Vec<Entry>,
) -> std::result::Result<(), ogive_json::ScanError> {
    let mut more = scanner.begin_object()?;
    while more {
        scanner.peek()?;
        let start = scanner.position();
        let end = start + scanner.key()?.raw().len() + 2;
        let key = Slice::new(source, start..end);
        let kind = scanner.peek()?;
        let range = scanner.skip_value()?;
        let value = Value::at(Slice::new(source, range), kind);
        out.push(Entry { key, value });
        more = scanner.next_member()?;
    }
    Ok(())
}
