//! What a component says where something is decided, and whether that can be used.

use ogive_json::Strictness;
use serde_json::Value;
use wasmtime::component::{ComponentType, Lift};

use super::{decide::Verdict, error::bounded};
use crate::CallError;

/// Longest claims.
const CLAIMS_BYTES_MAX: usize = 64 << 10;
/// How deep values of claims may be nested.
const CLAIMS_DEPTH_MAX: u32 = 128;
/// Longest key of a rate.
const KEY_BYTES_MAX: usize = 4 << 10;

/// What it says of who asks.
#[derive(Clone, PartialEq, Eq, Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum TextVerdict {
    /// It knows nothing of what the client brings.
    #[component(name = "unknown")]
    Unknown,
    /// A JSON text.
    #[component(name = "claims")]
    Claims(String),
    /// Why the client is refused.
    #[component(name = "refused")]
    Refused(String),
}

impl TextVerdict {
    /// What it says, if it can be used.
    pub(crate) fn read(self) -> Result<Verdict, CallError> {
        let text = match self {
            TextVerdict::Unknown => return Ok(Verdict::Unknown),
            TextVerdict::Refused(reason) => return Ok(Verdict::Refused(bounded(&reason))),
            TextVerdict::Claims(text) => text,
        };
        if text.len() > CLAIMS_BYTES_MAX {
            let why = format!("more than {CLAIMS_BYTES_MAX} bytes of claims");
            return Err(CallError::Limit(why));
        }
        // A member that is there twice would say two things of the caller.
        match ogive_json::read_value(text.as_bytes(), CLAIMS_DEPTH_MAX, Strictness::Strict) {
            Ok(Value::Object(claims)) => Ok(Verdict::Claims(claims)),
            _ => {
                let why = "claims, which are to be a JSON object that has no member twice";
                Err(CallError::Malformed(why.to_owned()))
            }
        }
    }
}

/// The key of a rate, if it can be used: one that is empty is none.
pub(crate) fn key(said: Option<String>) -> Result<Option<String>, CallError> {
    let said = said.filter(|key| !key.is_empty());
    if said.as_ref().is_some_and(|key| key.len() > KEY_BYTES_MAX) {
        let why = format!("a key of more than {KEY_BYTES_MAX} bytes");
        return Err(CallError::Limit(why));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_one_object_that_says_nothing_twice() {
        let read = |text: &str| TextVerdict::Claims(text.to_owned()).read();
        let good = read("{\"sub\":\"a\",\"n\":1.5}");
        assert!(matches!(good, Ok(Verdict::Claims(claims)) if claims["sub"] == "a"));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(CLAIMS_BYTES_MAX));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for bad in [
            "",
            "null",
            "[]",
            "\"a\"",
            "{",
            "{} {}",
            "{\"sub\":\"a\",\"sub\":\"b\"}",
            &long,
            &deep,
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.is_fault(), "{error}");
        }
        let line = TextVerdict::Refused("a\nb".to_owned()).read();
        assert_eq!(line, Ok(Verdict::Refused("a b".to_owned())));
    }

    #[test]
    fn a_key_that_is_empty_is_none() {
        assert_eq!(key(None), Ok(None));
        assert_eq!(key(Some(String::new())), Ok(None));
        assert_eq!(key(Some("a".into())), Ok(Some("a".into())));
        assert!(key(Some("x".repeat(KEY_BYTES_MAX + 1))).is_err());
    }
}
