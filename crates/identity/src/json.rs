//! JSON of tokens and key sets, read strictly: no member twice, no text that is none, no deep nesting, no recursion.

use ogive_json::{Strictness, read_value};
use serde_json::{Map, Value};

/// Most objects and lists open at a time; messages name it.
const DEPTH_MAX: u32 = 32;

/// Reads an object; `None` if the text is no JSON, another value, nested too deep, has a member twice or
/// half a character.
pub fn object(text: &[u8]) -> Option<Map<String, Value>> {
    match read_value(text, DEPTH_MAX, Strictness::Strict) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
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
