//! What a stage is about, as hooks see and change it.
//!
//! A clone of an exchange shares everything with it, and what is changed is copied then. So a call that failed costs no copy to
//! undo, and what no hook changes is never copied.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use ogive_failure::ErrorCode;
use ogive_json::write_string;

use crate::{ContextEntries, Stage};

/// One request or response at a stage.
///
/// [`HookEngine`](crate::HookEngine)s get it, and a coprocessor is told what of it the configuration selects
/// ([`Message`](crate::coprocessor::message::Message)).
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The stage.
    pub stage: Stage,
    /// The id of the client's request.
    pub id: Arc<str>,
    /// The id of the request to a subgraph, at the stages around one.
    pub subgraph_request_id: Option<Arc<str>>,
    /// The head of the client's request.
    pub client: Arc<RequestHead>,
    /// The name of the subgraph, at the stages around a request to one.
    pub subgraph: Option<Arc<str>>,
    /// The URL of the subgraph; `None` where the URL is that of the client's request.
    pub uri: Option<Arc<str>>,
    /// The headers of the request or response.
    pub headers: Arc<HeaderMap>,
    /// The status of a response.
    pub status: Option<u16>,
    /// Whether the exchange has a head: a part that comes after the first has none, and `headers` and `status` are those that
    /// its response began with.
    pub is_first: bool,
    /// Whether further parts follow, where that is known.
    pub has_next: Option<bool>,
    /// The body, if a hook of the stage looks at it.
    pub body: Option<Body>,
    /// The plan, a JSON text, if a hook of the stage is told it.
    pub query_plan: Option<Arc<str>>,
    /// The context that the stages of one client request share; empty while no hook is called.
    pub context: ContextEntries,
    /// The context of one operation, at the stages of an operation.
    pub own: Option<ContextEntries>,
    /// What hooks have changed.
    pub changes: Changes,
}

/// The head of a client's request.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The headers.
    pub headers: Arc<HeaderMap>,
    /// The path with the query string.
    pub path: Box<str>,
}

/// A body, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Any bytes.
    Text(Bytes),
    /// A JSON text.
    Json(Bytes),
}

/// What hooks have changed of an exchange.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Whether the headers are changed.
    pub headers: bool,
    /// Whether the URL is changed.
    pub uri: bool,
    /// Whether the status is changed.
    pub status: bool,
    /// Whether the body is changed.
    pub body: bool,
    /// What ends the request. The response has nothing of what was changed before.
    pub ending: Option<Box<Break>>,
}

/// How a hook ends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Break {
    /// The status of the response.
    pub status: StatusCode,
    /// The headers of the response; `None` if the hook says none.
    pub headers: Option<HeaderMap>,
    /// The body of the response.
    pub body: Option<Body>,
    /// The code of the response's error, if its body names none.
    pub code: ErrorCode,
}

impl Exchange {
    /// An exchange of a client's request of which nothing is known yet.
    pub fn new(stage: Stage) -> Self {
        Exchange::of(stage, Arc::default(), Arc::default())
    }
    /// An exchange of the client's request with this id and head.
    pub fn of(stage: Stage, id: Arc<str>, client: Arc<RequestHead>) -> Self {
        Exchange {
            stage,
            id,
            subgraph_request_id: None,
            subgraph: None,
            uri: None,
            headers: Arc::clone(&client.headers),
            client,
            status: None,
            is_first: true,
            has_next: None,
            body: None,
            query_plan: None,
            context: ContextEntries::default(),
            own: None,
            changes: Changes::default(),
        }
    }
    /// The URL of the subgraph, or else the path of the client's request.
    pub fn uri(&self) -> &str {
        self.uri.as_deref().unwrap_or(&self.client.path)
    }
}

impl Body {
    /// The bytes of the body.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Body::Text(bytes) | Body::Json(bytes) => bytes,
        }
    }
    /// The bytes of the body.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Body::Text(bytes) | Body::Json(bytes) => bytes,
        }
    }
    /// Whether a text is JSON.
    pub fn is_json(text: &str) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    }
    /// A response of GraphQL with one error, which says what a status says.
    pub fn of_status(status: StatusCode, code: ErrorCode) -> Self {
        let reason = status.canonical_reason();
        Body::error(reason.unwrap_or("the request was ended"), code)
    }
    /// A response of GraphQL with one error.
    pub fn error(message: &str, code: ErrorCode) -> Self {
        let mut out = b"{\"errors\":[{\"message\":".to_vec();
        write_string(&mut out, message);
        out.extend_from_slice(b",\"extensions\":{\"code\":");
        write_string(&mut out, code.as_str());
        out.extend_from_slice(b"}}]}");
        Body::Json(out.into())
    }
}

impl Changes {
    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.headers || self.uri || self.status || self.body || self.ending.is_some()
    }
    /// Adds changes that were made later.
    pub fn add(&mut self, later: Changes) {
        self.headers |= later.headers;
        self.uri |= later.uri;
        self.status |= later.status;
        self.body |= later.body;
        self.ending = later.ending.or(self.ending.take());
    }
}
