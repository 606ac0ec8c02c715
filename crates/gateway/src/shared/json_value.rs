//! Foreign JSON without recursion: as it is written ([`JsonObject`]) as long as nobody needs more, and as a tree.
//!
//! A tree takes up to seventy times as many bytes as its text, so what clients send in bodies is never made one: the
//! members that somebody reads stay slices of the body, and variables are read by `ogive_json::Tree` when they are
//! coerced. Trees are for manifests, and for what has few bytes.
//!
//! `serde_json`'s own reader is not used on foreign bytes: it recurses, and with the features this workspace needs
//! (exact numbers, raw values) an object with one of its private keys makes it read a string as JSON again, each time
//! with a fresh depth limit. A body of a megabyte nested that way overflows the stack.

use bytes::Bytes;
use ogive_json::{Kind, ScanError, Scanner, Tree};
use serde_json::{Map, Number, Value};

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
    pub(crate) fn scanned(text: Bytes) -> Self {
        JsonObject(text)
    }
    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        let inner = self.0.get(1..self.0.len().saturating_sub(1));
        inner.is_none_or(|inner| inner.iter().all(u8::is_ascii_whitespace))
    }
    /// The same, shared.
    pub(crate) fn bytes(&self) -> Bytes {
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
    pub(crate) fn tree(&self) -> Option<Tree<'_>> {
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

/// A collection that is still open.
enum Open {
    List(Vec<Value>),
    /// With the key of the member that is being read.
    Object(Map<String, Value>, String),
}

/// Reads one JSON text. Of members with the same key the last one counts; numbers keep every digit.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, ScanError> {
    let mut twice = false;
    read_noting(bytes, &mut twice)
}

/// The same for a text in which every key must be there once: `None` if one is there twice. Readers differ about which of
/// the two counts, so the one who wrote it may have meant the other.
pub(crate) fn read_once(bytes: &[u8]) -> Result<Option<Value>, ScanError> {
    let mut twice = false;
    let value = read_noting(bytes, &mut twice)?;
    Ok((!twice).then_some(value))
}

fn read_noting(bytes: &[u8], twice: &mut bool) -> Result<Value, ScanError> {
    let mut scanner = Scanner::with_depth_max(bytes, DEPTH_MAX);
    let value = value(&mut scanner, twice)?;
    scanner.finish()?;
    Ok(value)
}

/// Reads the next value, and notes whether a key is there twice.
fn value(scanner: &mut Scanner<'_>, twice: &mut bool) -> Result<Value, ScanError> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut value = match scanner.peek()? {
            Kind::Object if scanner.begin_object()? => {
                let key = scanner.key()?.unescape().into_owned();
                open.push(Open::Object(Map::new(), key));
                continue;
            }
            Kind::Array if scanner.begin_array()? => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Kind::Object => Value::Object(Map::new()),
            Kind::Array => Value::Array(Vec::new()),
            Kind::String => Value::String(scanner.string()?.unescape().into_owned()),
            Kind::Number => {
                let range = scanner.number()?.range;
                number(&scanner.text()[range])
            }
            Kind::True | Kind::False => Value::Bool(scanner.boolean()?),
            Kind::Null => {
                scanner.null()?;
                Value::Null
            }
        };
        // Put it where it belongs, and close what ends with it.
        loop {
            match open.pop() {
                None => return Ok(value),
                Some(Open::List(mut items)) => {
                    items.push(value);
                    if scanner.next_item()? {
                        open.push(Open::List(items));
                        break;
                    }
                    value = Value::Array(items);
                }
                Some(Open::Object(mut members, key)) => {
                    *twice |= members.insert(key, value).is_some();
                    if scanner.next_member()? {
                        let key = scanner.key()?.unescape().into_owned();
                        open.push(Open::Object(members, key));
                        break;
                    }
                    value = Value::Object(members);
                }
            }
        }
    }
}

/// The scanner has checked the grammar, so only a number beyond what can be represented gives null.
fn number(text: &[u8]) -> Value {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<Number>().ok());
    number.map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_those_of_serde_json() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            r#"{"a":[1,-2.50,1e400,{"b":null,"c":[true,false]}],"d":"x\u00e9\n\ud834\udd1e","e":{}}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            "123456789012345678901234567890.10",
        ] {
            let wanted: Value = serde_json::from_str(text).unwrap();
            let found = read(text.as_bytes()).unwrap();
            assert_eq!(found, wanted, "{text}");
            assert_eq!(found.to_string(), wanted.to_string(), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "1 2",
            "{\"a\":1}}",
            "nul",
            "\"\x01\"",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(b"\"\xff\"").is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(read(nested(128).as_bytes()).is_ok());
        assert!(read(nested(129).as_bytes()).is_err());
        assert!(read("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn private_keys_of_serde_json_are_keys_like_any_other() {
        for key in [
            "$serde_json::private::RawValue",
            "$serde_json::private::Number",
        ] {
            let text = format!(r#"{{"{key}":"[1]"}}"#);
            let value = read(text.as_bytes()).unwrap();
            assert_eq!(value[key], "[1]");
        }
    }
}
