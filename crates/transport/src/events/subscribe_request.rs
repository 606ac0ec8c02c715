//! A subscription to open, and what it says of whoever wants it.

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::Failure;
use tokio::time::Instant;

use super::source::EventSource;
use crate::{endpoint::Endpoint, resolve::Names};

/// A subscription to open.
pub(crate) struct SubscribeRequest<'a> {
    pub(crate) names: &'a Names,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) source: &'a EventSource,
    /// Those of the header rules.
    pub(crate) headers: &'a HeaderMap,
    /// Those of this one subscription, such as ids of traces; connections are shared in spite of them.
    pub(crate) own: HeaderMap,
    pub(crate) body: Bytes,
    /// Until when it has to be open the first time.
    pub(crate) deadline: Option<Instant>,
    /// Whom to tell that a stream was lost that is opened again.
    pub(crate) on_loss: Box<dyn Fn(&Failure) + 'a>,
}

impl SubscribeRequest<'_> {
    /// All headers of a request.
    pub(crate) fn all_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.extend(self.own.clone());
        headers
    }

    /// The payload of `connection_init`: the headers that go into it, if there are any.
    pub(crate) fn connection_init(&self) -> Option<String> {
        let mut out = String::new();
        for name in &self.source.connection_init {
            let value = self.headers.get(name).and_then(|value| value.to_str().ok());
            if let Some(value) = value {
                out.push(if out.is_empty() { '{' } else { ',' });
                out.push('"');
                out.push_str(name.as_str());
                out.push_str("\":\"");
                for c in value.chars() {
                    if matches!(c, '"' | '\\') {
                        out.push('\\');
                    }
                    // Values of headers that are text have no other control character.
                    out.push_str(if c == '\t' { "\\t" } else { "" });
                    if c != '\t' {
                        out.push(c);
                    }
                }
                out.push('"');
            }
        }
        if out.is_empty() {
            return None;
        }
        out.push('}');
        Some(out)
    }
}
