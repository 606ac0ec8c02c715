//! Reading foreign JSON into values of `serde_json`, without recursion.
//!
//! For texts of few bytes that are looked at as a whole: a value takes up to seventy times the bytes of its text. The
//! reader of `serde_json` is not used on foreign bytes: it recurses, and with exact numbers and raw values an object with
//! one of its private keys makes it read a text as JSON again, each time with a fresh limit of depth.

use serde_json::{Map, Number, Value};

use crate::{JsonStr, Kind, ScanError, Scanner};

/// How texts are read that have two meanings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strictness {
    /// As most readers do: of members with one name the last counts, and half a character (a lone surrogate) becomes
    /// U+FFFD.
    Lenient,
    /// Not at all. Readers differ about which of two members counts, so whoever wrote them could mean one and whoever reads
    /// them the other; and all halves of characters would become one, and with them texts that differ.
    Strict,
}

/// Why a text is no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueError {
    /// It is no JSON, or nested too deep.
    Scan(ScanError),
    /// An object has two members of one name.
    MemberTwice,
    /// A text has half a character.
    HalfCharacter,
}

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueError::Scan(error) => error.fmt(f),
            ValueError::MemberTwice => f.write_str("a member is there more than once"),
            ValueError::HalfCharacter => f.write_str("a text has half a character"),
        }
    }
}

impl std::error::Error for ValueError {}

impl From<ScanError> for ValueError {
    fn from(error: ScanError) -> Self {
        ValueError::Scan(error)
    }
}

/// A collection that is still open.
enum Open {
    List(Vec<Value>),
    /// With the name of the member that is being read.
    Object(Map<String, Value>, String),
}

/// Reads one text. Numbers keep every digit; one beyond what can be represented gives null.
pub fn read_value(
    bytes: &[u8],
    depth_max: u32,
    strictness: Strictness,
) -> Result<Value, ValueError> {
    let mut scanner = Scanner::with_depth_max(bytes, depth_max);
    let value = value(&mut scanner, strictness)?;
    scanner.finish()?;
    Ok(value)
}

/// What a text denotes.
fn text(text: JsonStr<'_>, strictness: Strictness) -> Result<String, ValueError> {
    let denoted = text.unescape().into_owned();
    if strictness == Strictness::Lenient
        || !text.has_escapes()
        || !denoted.contains(char::REPLACEMENT_CHARACTER)
    {
        return Ok(denoted);
    }
    // Maybe it is written so.
    let quoted = [&b"\""[..], text.raw(), b"\""].concat();
    serde_json::from_slice(&quoted).map_err(|_| ValueError::HalfCharacter)
}

/// Reads the next value.
fn value(scanner: &mut Scanner<'_>, strictness: Strictness) -> Result<Value, ValueError> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut value = match scanner.peek()? {
            Kind::Object if scanner.begin_object()? => {
                let name = text(scanner.key()?, strictness)?;
                open.push(Open::Object(Map::new(), name));
                continue;
            }
            Kind::Array if scanner.begin_array()? => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Kind::Object => Value::Object(Map::new()),
            Kind::Array => Value::Array(Vec::new()),
            Kind::String => Value::String(text(scanner.string()?, strictness)?),
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
                None => return Ok(value),
                Some(Open::List(mut items)) => {
                    items.push(value);
                    if scanner.next_item()? {
                        open.push(Open::List(items));
                        break;
                    }
                    value = Value::Array(items);
                }
                Some(Open::Object(mut members, name)) => {
                    let before = members.insert(name, value);
                    if before.is_some() && strictness == Strictness::Strict {
                        return Err(ValueError::MemberTwice);
                    }
                    if scanner.next_member()? {
                        let name = text(scanner.key()?, strictness)?;
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

    fn lenient(text: &[u8]) -> Result<Value, ValueError> {
        read_value(text, 128, Strictness::Lenient)
    }

    #[test]
    fn values_are_those_of_serde_json() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            r#"{"a":[1,-2.50,1e400,{"b":null,"c":[true,false]}],"d":"x\u00e9\n\ud834\udd1e","e":{}}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            "123456789012345678901234567890.10",
        ] {
            let wanted: Value = serde_json::from_str(text).unwrap();
            let found = lenient(text.as_bytes()).unwrap();
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
            assert!(lenient(text.as_bytes()).is_err(), "{text}");
        }
        assert!(lenient(b"\"\xff\"").is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(lenient(nested(128).as_bytes()).is_ok());
        assert!(lenient(nested(129).as_bytes()).is_err());
        assert!(lenient("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn private_keys_of_serde_json_are_keys_like_any_other() {
        for key in [
            "$serde_json::private::RawValue",
            "$serde_json::private::Number",
        ] {
            let text = format!(r#"{{"{key}":"[1]"}}"#);
            let value = lenient(text.as_bytes()).unwrap();
            assert_eq!(value[key], "[1]");
        }
    }

    #[test]
    fn what_has_two_meanings_is_refused_where_it_must_have_one() {
        let strict = |text: &str| read_value(text.as_bytes(), 32, Strictness::Strict);
        for text in [
            "{\"a\":1,\"a\":1}",
            // The same name, written in another way.
            "{\"a\":1,\"\\u0061\":2}",
            "{\"x\":{\"a\":1,\"a\":2}}",
        ] {
            assert_eq!(strict(text), Err(ValueError::MemberTwice), "{text}");
            assert!(lenient(text.as_bytes()).is_ok(), "{text}");
        }
        for text in [
            "{\"sub\":\"\\ud800\"}",
            "{\"sub\":\"a\\udfff\"}",
            "{\"\\udc00\":1}",
        ] {
            assert_eq!(strict(text), Err(ValueError::HalfCharacter), "{text}");
            assert!(lenient(text.as_bytes()).is_ok(), "{text}");
        }
        let whole = strict("{\"a\":\"\\ud83d\\ude00 \\ufffd\"}").unwrap();
        assert_eq!(whole["a"], "\u{1f600} \u{fffd}");
    }
}
