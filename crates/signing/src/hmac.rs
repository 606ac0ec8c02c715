//! HMAC-SHA256 of query and variables in an extension of the request, as Hive Gateway and GraphQL Mesh sign.
//!
//! Signed is `{"query":…,"variables":…}` in a form that both sides make for themselves (`canonical`); without variables that
//! member is left out. So nothing else of the request is protected: headers, target and time are not.

use std::fmt;

use bytes::Bytes;
use ogive_transport::SignError;
use ring::hmac;
use serde_json::{Map, Value};

use crate::{Secret, canonical, encode::base64};

/// Signs bodies.
pub struct Hmac {
    key: hmac::Key,
    extension: String,
}

impl fmt::Debug for Hmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hmac({})", self.extension)
    }
}

impl Hmac {
    /// Signs with `secret`, into the member of this name of `extensions`.
    pub fn new(secret: &Secret, extension: impl Into<String>) -> Self {
        Hmac {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()),
            extension: extension.into(),
        }
    }

    /// A request's JSON with its signature. Numbers and the order of members stay as they are.
    pub fn sign(&self, body: &[u8]) -> Result<Bytes, SignError> {
        let unfit = |why: &str| SignError(format!("the request cannot be signed: {why}"));
        let body = serde_json::from_slice(body);
        let Ok(Value::Object(mut members)) = body else {
            return Err(unfit("it is no JSON object, or nested too deeply"));
        };
        let mut text = String::from("{\"query\":");
        canonical::write(&mut text, members.get("query").unwrap_or(&Value::Null));
        let variables = members.get("variables");
        if let Some(variables) = variables.filter(|v| v.as_object().is_some_and(|v| !v.is_empty()))
        {
            text.push_str(",\"variables\":");
            canonical::write(&mut text, variables);
        }
        text.push('}');
        let signature = base64(hmac::sign(&self.key, text.as_bytes()).as_ref());
        let extensions = members.entry("extensions").or_insert(Value::Null);
        if extensions.is_null() {
            *extensions = Value::Object(Map::new());
        }
        let extensions = extensions.as_object_mut();
        let extensions = extensions.ok_or_else(|| unfit("its `extensions` are no object"))?;
        extensions.insert(self.extension.clone(), Value::String(signature));
        let signed = serde_json::to_vec(&Value::Object(members));
        signed
            .map(Bytes::from)
            .map_err(|_| unfit("it cannot be written"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(body: &str) -> String {
        let hmac = Hmac::new(&Secret::new("topSecret"), "hmac-signature");
        let signed = hmac.sign(body.as_bytes()).unwrap();
        String::from_utf8(signed.to_vec()).unwrap()
    }

    #[test]
    fn the_signature_goes_into_the_extensions_and_nothing_else_changes() {
        let signature = "HMAC";
        let shape = |text: &str| {
            let start = text.find("hmac-signature\":\"").unwrap() + 17;
            let end = start + text[start..].find('"').unwrap();
            assert_eq!(end - start, 44, "a SHA-256 in base64");
            format!("{}{signature}{}", &text[..start], &text[end..])
        };
        for (body, expected) in [
            (
                r#"{"query":"{a}"}"#,
                r#"{"query":"{a}","extensions":{"hmac-signature":"HMAC"}}"#,
            ),
            (
                r#"{"query":"{a}","variables":{"z":1.0,"a":12345678901234567890}}"#,
                r#"{"query":"{a}","variables":{"z":1.0,"a":12345678901234567890},"extensions":{"hmac-signature":"HMAC"}}"#,
            ),
            (
                r#"{"query":"{a}","extensions":{"x":1},"operationName":"A"}"#,
                r#"{"query":"{a}","extensions":{"x":1,"hmac-signature":"HMAC"},"operationName":"A"}"#,
            ),
        ] {
            assert_eq!(shape(&signed(body)), expected);
        }
    }

    #[test]
    fn what_is_not_signed_changes_nothing() {
        let signature =
            |body: &str| signed(body).split("hmac-signature").nth(1).unwrap()[..50].to_owned();
        let plain = signature(r#"{"query":"{a}"}"#);
        assert_eq!(
            plain,
            signature(r#"{"operationName":"A","query":"{a}","variables":{}}"#)
        );
        assert_ne!(plain, signature(r#"{"query":"{b}"}"#));
        let one = signature(r#"{"query":"{a}","variables":{"a":1,"b":{"c":2,"d":3}}}"#);
        assert_ne!(plain, one);
        assert_eq!(
            one,
            signature(r#"{"query":"{a}","variables":{"b":{"d":3.0,"c":2},"a":1}}"#)
        );
    }

    #[test]
    fn what_is_no_request_is_not_signed() {
        let hmac = Hmac::new(&Secret::new("s"), "x");
        for body in ["", "[]", "{\"query\":1,\"extensions\":[]}"] {
            assert!(hmac.sign(body.as_bytes()).is_err(), "{body}");
        }
    }
}
