//! Foreign JSON without recursion: as it is written ([`JsonObject`]) as long as nobody needs more, and as a tree.
//!
//! A tree takes up to seventy times as many bytes as its text, so what clients send in bodies is never made one: the
//! members that somebody reads stay slices of the body, and variables are read by `ogive_json::Tree` when they are
//! coerced. Trees are for manifests, and for what has few bytes; `ogive_json::read_value` says how they are made.

use bytes::Bytes;
use ogive_json::{Kind, ScanError, Scanner, Strictness, Tree, ValueError, read_value};
use serde_json::Value;

/// Most objects and lists open at a time. Variables are input objects and lists, which nobody nests this deep.
pub(crate) const DEPTH_MAX: u32 = 128;

/// An object of a client's request, as it is written; shares memory with the body it came in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JsonObject(Bytes);

impl JsonObject {
    /// Reads a text that must be an object; `None` if it is another value.
    pub fn read(text: Bytes) -> Result<Option<Self>, ScanError> {
        let mut scanner = Scanner::with_depth_max(&text, DEPTH_MAX);
        let is_object = scanner.peek()? == Kind::Object;
        let range = scanner.skip_value()?;
        scanner.finish()?;
        Ok(is_object.then(|| JsonObject(text.slice(range))))
    }
    /// A text that a scanner has found to be an object.
    pub fn scanned(text: Bytes) -> Self {
        JsonObject(text)
    }
    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        let inner = self.0.get(1..self.0.len().saturating_sub(1));
        inner.is_none_or(|inner| inner.iter().all(u8::is_ascii_whitespace))
    }
    /// The same, shared.
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }
    /// Its text; empty if there was none.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
    /// The same without white space.
    pub fn compact(&self) -> Vec<u8> {
        ogive_json::compact(&self.0).unwrap_or_else(|| self.0.to_vec())
    }
    /// Its table; `None` if there are no members.
    pub fn tree(&self) -> Option<Tree<'_>> {
        // It was scanned with the same limit.
        (!self.is_empty())
            .then(|| Tree::read(&self.0, DEPTH_MAX).ok())
            .flatten()
    }
}

impl std::fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Reads one JSON text. Of members with the same key the last one counts; numbers keep every digit.
pub fn read(bytes: &[u8]) -> Result<Value, ValueError> {
    read_value(bytes, DEPTH_MAX, Strictness::Lenient)
}

/// The same for a text that must have one meaning.
pub fn read_once(bytes: &[u8]) -> Result<Value, ValueError> {
    read_value(bytes, DEPTH_MAX, Strictness::Strict)
}
