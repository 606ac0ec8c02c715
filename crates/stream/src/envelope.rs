//! What all messages have in common: a JSON object with `type`, mostly `id`, often `payload`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A message whose payload nobody has looked at.
#[derive(Deserialize)]
pub(crate) struct Envelope<'m> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'m, str>,
    #[serde(default, borrow)]
    pub(crate) id: Option<Cow<'m, str>>,
    #[serde(default, borrow)]
    pub(crate) payload: Option<&'m RawValue>,
}

impl<'m> Envelope<'m> {
    /// Reads the envelope; a member that stands twice is refused, as nobody could say which of them counts.
    pub(crate) fn read(text: &'m str) -> Option<Envelope<'m>> {
        // A struct would be read from an array, too.
        if !text.trim_start().starts_with('{') {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// The payload, if it is there and not null.
    pub(crate) fn payload(&self) -> Option<&'m str> {
        self.payload
            .map(RawValue::get)
            .filter(|payload| *payload != "null")
    }

    /// The id, if it is there and not empty.
    pub(crate) fn id(&mut self) -> Option<Cow<'m, str>> {
        self.id.take().filter(|id| !id.is_empty())
    }
}

/// Whether JSON is an object.
pub(crate) fn is_object(json: &str) -> bool {
    json.starts_with('{')
}

/// Writes text as a JSON string.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        let byte = rest.as_bytes()[at];
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(char::from(HEX[usize::from(control >> 4)]));
                out.push(char::from(HEX[usize::from(control & 15)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_went() {
        for text in [
            "",
            "plain",
            "a\"b\\c\nd\u{1}\u{1f}e",
            "ü€😀\u{7f}",
            "\"",
            "\\",
        ] {
            let mut out = String::new();
            write_string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn only_objects_with_each_member_once_are_messages() {
        assert!(Envelope::read(r#" {"type":"ping","other":[1]}"#).is_some());
        for text in [
            r#"["ping",null,null]"#,
            r#""ping""#,
            "",
            "{",
            r#"{"id":"1"}"#,
            r#"{"type":1}"#,
            r#"{"type":"ping","id":1}"#,
            r#"{"type":"ping","type":"pong"}"#,
            r#"{"type":"ping","id":"1","id":"2"}"#,
            r#"{"type":"ping"} x"#,
        ] {
            assert!(Envelope::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_payloads_are_not_walked() {
        let deep = format!(
            r#"{{"type":"ping","payload":{}{}}}"#,
            "[".repeat(1_000_000),
            "]".repeat(1_000_000)
        );
        assert!(Envelope::read(&deep).is_some());
    }
}
