//! HMAC-SHA256 of query and variables in an extension of the request, as Hive Gateway and GraphQL Mesh sign.
//!
//! Signed is `{"query":…,"variables":…}` in a form that both sides make for themselves (`canonical`); without variables that
//! member is left out. So nothing else of the request is protected: headers, target and time are not.

use std::fmt;

use bytes::Bytes;
use ogive_json::{Kind, Node, Tree};
use ogive_transport::SignError;
use ring::hmac;

use crate::{Secret, canonical, encode::base64};

/// Most objects and lists open at a time: those of variables and of what is around them.
const DEPTH_MAX: u32 = 160;

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

    /// A request's JSON with its signature. Everything else of it stays as it is, byte for byte.
    pub fn sign(&self, body: &[u8]) -> Result<Bytes, SignError> {
        let unfit = |why: &str| SignError(format!("the request cannot be signed: {why}"));
        // In a table: a tree of maps takes many times the memory of its text, and `serde_json` recurses without a limit
        // into objects with one of its private names.
        let tree = Tree::read(body, DEPTH_MAX).ok();
        let tree = tree.filter(|tree| tree.root().kind() == Kind::Object);
        let tree = tree.ok_or_else(|| unfit("it is no JSON object, or nested too deeply"))?;
        let request = tree.root();
        let signature = self.signature(request);
        let mut member = Vec::with_capacity(128);
        ogive_json::write_string(&mut member, &self.extension);
        member.push(b':');
        ogive_json::write_string(&mut member, &signature);
        let extensions = request.get("extensions");
        let (extensions, around) = match extensions.filter(|extensions| !extensions.is_null()) {
            None => (extensions, [&b"{"[..], b"}"]),
            Some(found) if found.kind() != Kind::Object => {
                return Err(unfit("its `extensions` are no object"));
            }
            Some(found) => (Some(found), [last_member(found), b"}"]),
        };
        // What is replaced: the end of the extensions, a null in their place, or the end of the request.
        let mut head: Vec<u8> = Vec::new();
        let range = match extensions {
            Some(found) if found.is_null() => found.range(),
            Some(found) => found.range().end - 1..found.range().end,
            None => {
                head.extend_from_slice(last_member(request));
                head.extend_from_slice(b"\"extensions\":");
                request.range().end - 1..request.range().end - 1
            }
        };
        let [open, close] = around;
        Ok([
            &body[..range.start],
            &head,
            open,
            &member,
            close,
            &body[range.end..],
        ]
        .concat()
        .into())
    }

    /// The signature of query and variables, in base64.
    fn signature(&self, request: Node<'_>) -> String {
        let mut text = String::from("{\"query\":");
        match request.get("query") {
            Some(query) => canonical::write(&mut text, query),
            None => text.push_str("null"),
        }
        let variables = request.get("variables");
        if let Some(variables) = variables.filter(|v| v.members().next().is_some()) {
            text.push_str(",\"variables\":");
            canonical::write(&mut text, variables);
        }
        text.push('}');
        base64(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }
}

/// What stands between the last member of an object and one more.
fn last_member(object: Node<'_>) -> &'static [u8] {
    if object.members().next().is_some() {
        b","
    } else {
        b""
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
            (
                r#"{"query":"{a}","extensions":null}"#,
                r#"{"query":"{a}","extensions":{"hmac-signature":"HMAC"}}"#,
            ),
            (
                r#"{ "query":"{a}", "extensions": { } }"#,
                r#"{ "query":"{a}", "extensions": { "hmac-signature":"HMAC"} }"#,
            ),
            (
                r#"{"query":"{a}","variables":{"$serde_json::private::Number":"5"}}"#,
                r#"{"query":"{a}","variables":{"$serde_json::private::Number":"5"},"extensions":{"hmac-signature":"HMAC"}}"#,
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

    /// Each text is read as JSON again by `serde_json`, with lists of its own.
    #[test]
    fn texts_within_texts_nest_nothing() {
        let mut value = "1".to_owned();
        for _ in 0..10 {
            let lists = format!("{}{value}{}", "[".repeat(100), "]".repeat(100));
            let mut text = Vec::new();
            ogive_json::write_string(&mut text, &lists);
            let text = String::from_utf8(text).unwrap();
            value = format!("{{\"$serde_json::private::RawValue\":{text}}}");
        }
        let body = format!("{{\"query\":\"\",\"variables\":{{\"a\":{value}}}}}");
        assert!(signed(&body).starts_with(&body[..body.len() - 1]));
    }

    #[test]
    fn what_is_no_request_is_not_signed() {
        let hmac = Hmac::new(&Secret::new("s"), "x");
        for body in ["", "[]", "{\"query\":1,\"extensions\":[]}"] {
            assert!(hmac.sign(body.as_bytes()).is_err(), "{body}");
        }
    }
}
