//! JSON of tokens and key sets, read strictly: no member twice, no text that is none, no deep nesting, no recursion.
//!
//! Readers differ about which of two members with one name counts, so whoever signs could mean one and whoever checks
//! could read the other. Halves of characters (lone surrogates) are refused, because all of them would become one
//! character, and so two callers one.

use ogive_json::{JsonStr, Kind, ScanError, Scanner};
use serde_json::{Map, Number, Value};

/// Most objects and lists open at a time.
const DEPTH_MAX: u32 = 32;

/// A collection that is still open.
enum Open {
    List(Vec<Value>),
    /// With the name of the member that is being read.
    Object(Map<String, Value>, String),
}

/// Reads an object; `None` if the text is no JSON, another value, nested too deep, has a member twice or
/// half a character.
pub fn object(text: &[u8]) -> Option<Map<String, Value>> {
    let mut scanner = Scanner::with_depth_max(text, DEPTH_MAX);
    let value = value(&mut scanner).ok()??;
    scanner.finish().ok()?;
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// What a text denotes; `None` if half a character is in it.
fn text(text: JsonStr<'_>) -> Option<String> {
    let denoted = text.unescape().into_owned();
    if !text.has_escapes() || !denoted.contains(char::REPLACEMENT_CHARACTER) {
        return Some(denoted);
    }
    // Maybe it is written so.
    let quoted = [&b"\""[..], text.raw(), b"\""].concat();
    serde_json::from_slice(&quoted).ok()
}

/// Reads the next value; `None` if a member is there twice, or half a character is in a text.
fn value(scanner: &mut Scanner<'_>) -> Result<Option<Value>, ScanError> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut value = match scanner.peek()? {
            Kind::Object if scanner.begin_object()? => {
                let Some(name) = text(scanner.key()?) else {
                    return Ok(None);
                };
                open.push(Open::Object(Map::new(), name));
                continue;
            }
            Kind::Array if scanner.begin_array()? => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Kind::Object => Value::Object(Map::new()),
            Kind::Array => Value::Array(Vec::new()),
            Kind::String => match text(scanner.string()?) {
                Some(text) => Value::String(text),
                None => return Ok(None),
            },
            Kind::Number => {
                let range = scanner.number()?.range;
                let text = std::str::from_utf8(&scanner.text()[range]);
                let number = text.ok().and_then(|text| text.parse::<Number>().ok());
                number.map_or(Value::Null, Value::Number)
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
                None => return Ok(Some(value)),
                Some(Open::List(mut items)) => {
                    items.push(value);
                    if scanner.next_item()? {
                        open.push(Open::List(items));
                        break;
                    }
                    value = Value::Array(items);
                }
                Some(Open::Object(mut members, name)) => {
                    if members.insert(name, value).is_some() {
                        return Ok(None);
                    }
                    if scanner.next_member()? {
                        let Some(name) = text(scanner.key()?) else {
                            return Ok(None);
                        };
                        open.push(Open::Object(members, name));
                        break;
                    }
                    value = Value::Object(members);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_has_one_meaning() {
        let read = object(br#"{"a":[1,{"b":null}],"c":1.50}"#).unwrap();
        assert_eq!(
            Value::Object(read).to_string(),
            r#"{"a":[1,{"b":null}],"c":1.50}"#
        );
        for text in [
            "",
            "[]",
            "\"a\"",
            "{\"a\":1,\"a\":1}",
            // The same name, written in another way.
            "{\"a\":1,\"\\u0061\":2}",
            "{\"x\":{\"a\":1,\"a\":2}}",
            "{} {}",
            "{\"a\":1,}",
            "{\"sub\":\"\\ud800\"}",
            "{\"sub\":\"a\\udfff\"}",
            "{\"\\udc00\":1}",
        ] {
            assert!(object(text.as_bytes()).is_none(), "{text}");
        }
        let whole = object(br#"{"a":"\ud83d\ude00 \ufffd"}"#).unwrap();
        assert_eq!(whole["a"], "\u{1f600} \u{fffd}");
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(40), "]".repeat(40));
        assert!(object(deep.as_bytes()).is_none());
    }
}
