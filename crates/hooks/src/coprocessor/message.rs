//! What a coprocessor is told. Members that are not selected are not there.

use http::HeaderMap;
use ogive_json::write_string;
use serde_json::value::RawValue;

use crate::{
    Body,
    entries::{ContextEntries, ContextSelection, OF_OPERATION},
    headers,
    stage::Stage,
};

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// The context as it is told.
#[derive(Clone, Copy, Debug)]
pub struct MessageContext<'a> {
    /// What all operations of a request share.
    pub entries: &'a ContextEntries,
    /// At an operation, the entries that belong to it alone.
    pub own: Option<&'a ContextEntries>,
    /// Which of them are told.
    pub selection: &'a ContextSelection,
}

impl<'a> MessageContext<'a> {
    /// The entries that are told, by the names that the gateway has for them.
    fn told(&self) -> impl Iterator<Item = (&'a str, &'a RawValue)> {
        let (own, selection) = (self.own, self.selection);
        let is_shared = move |name: &str| own.is_none() || !OF_OPERATION.contains(&name);
        let shared = self.entries.iter().filter(move |(name, _)| is_shared(name));
        let own = own.into_iter().flat_map(ContextEntries::iter);
        let all = shared.chain(own);
        all.filter(move |(name, _)| selection.shown(name).is_some())
    }
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.told().map(|(name, _)| name)
    }
    /// Writes `{"entries":{...}}`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"entries\":{");
        for (at, (name, value)) in self.told().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(out, self.selection.shown(name).unwrap_or(name));
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.extend_from_slice(b"}}");
    }
}

/// What is told at a stage.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Where.
    pub stage: Stage,
    /// Which request it is about.
    pub id: &'a str,
    /// Which request to a subgraph it is about.
    pub subgraph_request_id: Option<&'a str>,
    /// The headers.
    pub headers: Option<&'a HeaderMap>,
    /// The body.
    pub body: Option<&'a Body>,
    /// The context.
    pub context: Option<MessageContext<'a>>,
    /// The supergraph schema.
    pub sdl: Option<&'a str>,
    /// The path of the request, with its query string.
    pub path: Option<&'a str>,
    /// The method of the request.
    pub method: Option<&'a str>,
    /// The URL of the subgraph.
    pub uri: Option<&'a str>,
    /// The name of the subgraph.
    pub service_name: Option<&'a str>,
    /// The status of the response.
    pub status_code: Option<u16>,
    /// Whether further parts follow.
    pub has_next: Option<bool>,
    /// The plan, a JSON text.
    pub query_plan: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// With nothing but what every message has.
    pub fn new(stage: Stage, id: &'a str) -> Self {
        Message {
            stage,
            id,
            subgraph_request_id: None,
            headers: None,
            body: None,
            context: None,
            sdl: None,
            path: None,
            method: None,
            uri: None,
            service_name: None,
            status_code: None,
            has_next: None,
            query_plan: None,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = format!(
            "{{\"version\":{VERSION},\"stage\":\"{}\"",
            self.stage.name()
        )
        .into_bytes();
        out.extend_from_slice(b",\"control\":\"continue\"");
        let text = |out: &mut Vec<u8>, name: &str, value: Option<&str>| {
            if let Some(value) = value {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":");
                write_string(out, value);
            }
        };
        text(&mut out, "id", Some(self.id));
        text(&mut out, "subgraphRequestId", self.subgraph_request_id);
        if let Some(headers) = self.headers {
            out.extend_from_slice(b",\"headers\":");
            headers::write(headers, &mut out);
        }
        match self.body {
            None => {}
            Some(Body::Json(json)) if !self.stage.body_is_text() => {
                out.extend_from_slice(b",\"body\":");
                out.extend_from_slice(json);
            }
            Some(body) => text(
                &mut out,
                "body",
                Some(&String::from_utf8_lossy(body.bytes())),
            ),
        }
        if let Some(context) = self.context {
            out.extend_from_slice(b",\"context\":");
            context.write(&mut out);
        }
        text(&mut out, "sdl", self.sdl);
        text(&mut out, "path", self.path);
        text(&mut out, "method", self.method);
        text(&mut out, "uri", self.uri);
        text(&mut out, "serviceName", self.service_name);
        if let Some(status) = self.status_code {
            out.extend_from_slice(format!(",\"statusCode\":{status}").as_bytes());
        }
        if let Some(has_next) = self.has_next {
            out.extend_from_slice(format!(",\"hasNext\":{has_next}").as_bytes());
        }
        if let Some(plan) = self.query_plan {
            out.extend_from_slice(b",\"queryPlan\":");
            out.extend_from_slice(plan.as_bytes());
        }
        out.push(b'}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderValue;

    #[test]
    fn a_message_has_what_is_selected_and_nothing_else() {
        let bare = Message::new(Stage::SupergraphRequest, "i\"d").to_json();
        assert_eq!(
            String::from_utf8(bare).unwrap(),
            r#"{"version":1,"stage":"SupergraphRequest","control":"continue","id":"i\"d"}"#
        );
        let mut headers = HeaderMap::new();
        headers.append("a", HeaderValue::from_static("1"));
        headers.append("b", HeaderValue::from_static("2"));
        headers.append("a", HeaderValue::from_static("3"));
        let full = Message {
            subgraph_request_id: Some("s"),
            headers: Some(&headers),
            body: Some(&Body::Json(Bytes::from_static(
                br#"{"n":1.0e400,"b":1,"a":2}"#,
            ))),
            context: Some(MessageContext {
                entries: &ContextEntries::default(),
                own: None,
                selection: &ContextSelection::All,
            }),
            uri: Some("http://a/"),
            service_name: Some("a"),
            status_code: Some(200),
            has_next: Some(false),
            query_plan: Some("{}"),
            ..Message::new(Stage::SubgraphResponse, "i")
        };
        assert_eq!(
            String::from_utf8(full.to_json()).unwrap(),
            r#"{"version":1,"stage":"SubgraphResponse","control":"continue","id":"i","subgraphRequestId":"s","headers":{"a":["1","3"],"b":["2"]},"body":{"n":1.0e400,"b":1,"a":2},"context":{"entries":{}},"uri":"http://a/","serviceName":"a","statusCode":200,"hasNext":false,"queryPlan":{}}"#
        );
        let text = Message {
            body: Some(&Body::Text(Bytes::from_static(b"{\"a\":\xff}"))),
            ..Message::new(Stage::RouterRequest, "i")
        };
        let text = String::from_utf8(text.to_json()).unwrap();
        assert!(
            text.ends_with("\"body\":\"{\\\"a\\\":\u{fffd}}\"}"),
            "{text}"
        );
    }
}
