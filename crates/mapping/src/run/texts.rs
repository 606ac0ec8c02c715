//! Methods of strings. Positions count Unicode scalar values.

use std::borrow::Cow;

use ogive_json::write_string;

use super::{
    calls::Call,
    eval::{Result, Run},
    heap::Value,
};
use crate::method::Method;

impl Run<'_> {
    /// `->split(separator)`, `->split(separator, most)`
    pub(super) fn call_split(&mut self, call: Call) -> Result<Value> {
        let Some(separator) = self.text_argument(call, 0)? else {
            return Ok(Value::Missing);
        };
        let Some(most) = self.index_or(call, 1, usize::MAX)? else {
            return Ok(Value::Missing);
        };
        let text = self.text_of(call.value)?;
        let separator = self.heap.string(separator).into_owned();
        let base = self.stack.len();
        let mut push = |piece: &str| -> Result<()> {
            self.spend(1)?;
            let value = self.make_string(piece)?;
            self.push_item(value);
            Ok(())
        };
        if separator.is_empty() {
            let mut buffer = [0; 4];
            for character in text.chars().take(most) {
                push(character.encode_utf8(&mut buffer))?;
            }
        } else {
            for piece in text.split(separator.as_str()).take(most) {
                push(piece)?;
            }
        }
        self.list(base)
    }

    /// `->trim`, `->trimStart`, `->trimEnd`
    pub(super) fn call_trim(&mut self, call: Call) -> Result<Value> {
        let text = self.text_of(call.value)?;
        let trimmed = match call.method {
            Method::TrimStart => text.trim_start(),
            Method::TrimEnd => text.trim_end(),
            _ => text.trim(),
        };
        if trimmed.len() == text.len() {
            // As it was, byte for byte.
            return Ok(call.value);
        }
        self.make_string(trimmed)
    }

    /// `->toString`
    pub(super) fn call_to_string(&mut self, call: Call) -> Result<Value> {
        if let Value::String(_) = call.value {
            return Ok(call.value);
        }
        match self.scalar_text(call.value) {
            Some(text) => self.make_string(&text),
            None => Ok(Value::Missing),
        }
    }

    /// The text of a scalar: of null it is empty. `None` of a list or an object.
    pub(super) fn scalar_text(&self, value: Value) -> Option<String> {
        match value {
            Value::Missing | Value::Null => Some(String::new()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Number(slice) => {
                let text = String::from_utf8_lossy(self.heap.bytes(slice));
                Some(text.into_owned())
            }
            Value::String(slice) => Some(self.heap.string(slice).into_owned()),
            Value::List(_) | Value::Object(_) | Value::Record(_) | Value::Raw(_) => None,
        }
    }

    /// One character of a string.
    pub(super) fn character(&mut self, value: Value, index: usize) -> Result<Option<Value>> {
        let text = self.text_of(value)?;
        match text.chars().nth(index) {
            Some(character) => self
                .make_string(character.encode_utf8(&mut [0; 4]))
                .map(Some),
            None => Ok(None),
        }
    }
    /// How many characters a string has.
    pub(super) fn characters(&mut self, value: Value) -> Result<usize> {
        Ok(self.text_of(value)?.chars().count())
    }
    /// Characters of a string from `start` to before `end`.
    pub(super) fn slice_text(&mut self, value: Value, start: usize, end: usize) -> Result<Value> {
        let text = self.text_of(value)?;
        let part: String = text
            .chars()
            .skip(start)
            .take(end.saturating_sub(start))
            .collect();
        self.make_string(&part)
    }

    /// The text of a string, whose bytes cost fuel.
    pub(super) fn text_of(&mut self, value: Value) -> Result<String> {
        let Value::String(slice) = value else {
            return Ok(String::new());
        };
        self.spend_bytes(slice.len())?;
        self.check_computed(slice.len())?;
        Ok(Cow::into_owned(self.heap.string(slice)))
    }
    /// A string of this text.
    pub(super) fn make_string(&mut self, text: &str) -> Result<Value> {
        self.spend_bytes(text.len())?;
        self.check_computed(text.len() + 2)?;
        let start = self.heap.scratch.len();
        write_string(&mut self.heap.scratch, text);
        self.heap.check(self.limits)?;
        Ok(Value::String(self.heap.added_since(start)))
    }
}
