//! What the gateway says in the `extensions` of requests to a subgraph, of who asks and what: made once per client request and
//! subgraph, and a part of what requests have to be equal in to be shared.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use ogive_json::write_string;

use crate::{
    caller::{CallerContext, ClientValue},
    headers::first_text,
};

/// What a member says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExtensionValue {
    /// A claim of the caller, as JSON.
    Claim(Box<str>),
    /// The first header of that name of the client, whole.
    Header(HeaderName),
    /// What the client says it is called in the first of some headers that is there.
    ClientText(Box<[HeaderName]>),
    /// Something else of the client or its operation.
    Known(ClientValue),
    /// Always the same.
    Static(Box<str>),
}

/// One member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestExtension {
    /// Its name.
    pub name: Box<str>,
    /// What it says.
    pub value: ExtensionValue,
    /// Said if nothing is known; without it the member is left out then.
    pub default: Option<Box<str>>,
}

/// All members for one subgraph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestExtensions(pub Vec<RequestExtension>);

impl RequestExtensions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether what a subgraph is sent depends on who asks.
    pub fn claims(&self) -> bool {
        let is_of_caller = |member: &RequestExtension| {
            matches!(
                member.value,
                ExtensionValue::Claim(_) | ExtensionValue::Known(ClientValue::Address)
            )
        };
        self.0.iter().any(is_of_caller)
    }
    /// The client's headers that what a subgraph is sent depends on.
    pub fn sources(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().flat_map(|member| match &member.value {
            ExtensionValue::Header(name) => std::slice::from_ref(name),
            ExtensionValue::ClientText(names) => names,
            _ => &[],
        })
    }

    /// The members of a request, as in `"user":"ida","plan":"gold"`; `None` if there are none.
    pub(crate) fn apply(
        &self,
        client: &HeaderMap,
        caller: Option<&dyn CallerContext>,
    ) -> Option<Box<[u8]>> {
        let mut out = Vec::new();
        for member in &self.0 {
            let text = |text: &str| {
                let mut json = Vec::new();
                write_string(&mut json, text);
                Cow::Owned(json)
            };
            let value = match &member.value {
                ExtensionValue::Claim(path) => caller
                    .and_then(|caller| caller.claim_json(path))
                    .map(|json| Cow::Owned(json.into_bytes())),
                // Of another text than ours, callers that differ could be told to be one.
                ExtensionValue::Header(name) => client
                    .get(name)
                    .map(|value| text(&String::from_utf8_lossy(value.as_bytes()))),
                ExtensionValue::ClientText(names) => {
                    first_text(client, &**names).map(|value| text(&value))
                }
                ExtensionValue::Known(value) => caller
                    .and_then(|caller| caller.value(*value))
                    .map(|value| text(&value)),
                ExtensionValue::Static(value) => Some(text(value)),
            };
            let value: Option<Cow<'_, [u8]>> =
                value.or_else(|| member.default.as_deref().map(text));
            let Some(value) = value else {
                continue;
            };
            if !out.is_empty() {
                out.push(b',');
            }
            write_string(&mut out, &member.name);
            out.push(b':');
            out.extend_from_slice(&value);
        }
        (!out.is_empty()).then(|| out.into())
    }
}

/// A request of the executor, which has no extensions, with some.
pub(crate) fn extended(body: &Bytes, members: &[u8]) -> Bytes {
    let Some(before) = body.strip_suffix(b"}") else {
        return body.clone();
    };
    let comma: &[u8] = if before.ends_with(b"{") { b"" } else { b"," };
    [before, comma, b"\"extensions\":{", members, b"}}"]
        .concat()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ida;
    impl CallerContext for Ida {
        fn claim(&self, _: &str) -> Option<http::HeaderValue> {
            None
        }
        fn claim_json(&self, path: &str) -> Option<String> {
            (path == "org").then(|| "{\"id\":7}".to_owned())
        }
        fn value(&self, value: ClientValue) -> Option<Cow<'_, str>> {
            (value == ClientValue::OperationName).then(|| "Shop".into())
        }
    }

    #[test]
    fn members_say_what_is_known_and_nothing_else() {
        let member = |name: &str, value, default: Option<&str>| RequestExtension {
            name: name.into(),
            value,
            default: default.map(Into::into),
        };
        let all = RequestExtensions(vec![
            member("org", ExtensionValue::Claim("org".into()), None),
            member("sub", ExtensionValue::Claim("sub".into()), None),
            member("role", ExtensionValue::Claim("role".into()), Some("a\"b")),
            member(
                "name",
                ExtensionValue::Known(ClientValue::OperationName),
                None,
            ),
            member("from", ExtensionValue::Static("ogive".into()), None),
        ]);
        assert!(all.claims());
        let caller: Option<&dyn CallerContext> = Some(&Ida);
        let members = all.apply(&HeaderMap::new(), caller).unwrap();
        let body = extended(&Bytes::from_static(b"{\"query\":\"{a}\"}"), &members);
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"query":"{a}","extensions":{"org":{"id":7},"role":"a\"b","name":"Shop","from":"ogive"}}"#
        );
        assert_eq!(
            extended(&Bytes::from_static(b"{}"), b"\"a\":1"),
            "{\"extensions\":{\"a\":1}}"
        );
        let none = RequestExtensions::default();
        assert_eq!(none.apply(&HeaderMap::new(), caller), None);
    }

    /// Those who are told apart by what a proxy says of them stay told apart.
    #[test]
    fn a_header_is_said_whole_and_whatever_bytes_it_has() {
        let all = RequestExtensions(vec![RequestExtension {
            name: "dn".into(),
            value: ExtensionValue::Header(HeaderName::from_static("x-dn")),
            default: None,
        }]);
        let said = |dn: &[u8]| {
            let mut client = HeaderMap::new();
            client.insert("x-dn", http::HeaderValue::from_bytes(dn).unwrap());
            String::from_utf8(all.apply(&client, None).unwrap().into_vec()).unwrap()
        };
        let end = "x".repeat(200);
        for middle in ["ann", "ben", "größe"] {
            let dn = format!("CN={end}{middle}{end}");
            assert_eq!(said(dn.as_bytes()), format!("\"dn\":\"{dn}\""));
        }
    }
}
