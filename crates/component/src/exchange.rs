//! What a stage lends to a component, and takes back.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ogive_coprocessor::{ContextEntries, Stage};

/// One request or response at a stage.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Where it is.
    pub stage: Stage,
    /// Which HTTP request it is about.
    pub id: String,
    /// The headers that it is about.
    pub headers: HeaderMap,
    /// The method of the client's request.
    pub method: String,
    /// The URL that it is about.
    pub uri: String,
    /// The name of the subgraph.
    pub subgraph: String,
    /// The status of a response.
    pub status: u16,
    /// Whether it has a head: no part that comes after the first has one.
    pub is_first: bool,
    /// Whether further parts follow.
    pub has_next: bool,
    /// The body, if it is lent.
    pub body: Option<Bytes>,
    /// What stages of one request leave for later ones.
    pub context: ContextEntries,
    /// The same of one operation.
    pub own: Option<ContextEntries>,
    /// Whether it is only looked at: something is decided by it, and nothing of it is changed.
    pub is_read_only: bool,
    /// What was changed.
    pub changes: Changes,
}

/// What a component has changed of an exchange.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Whether headers are others.
    pub headers: bool,
    /// Whether the URL is another one.
    pub uri: bool,
    /// Whether the status is another one.
    pub status: bool,
    /// Another body.
    pub body: Option<Bytes>,
    /// What ends the request.
    pub ending: Option<Outcome>,
    /// Whether it called `end`, even with a status that is none, or before it failed: then the request does not go on.
    pub ends: bool,
}

/// How a component ends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The status of the response.
    pub status: StatusCode,
    /// Its body.
    pub body: String,
    /// Its headers.
    pub headers: HeaderMap,
}

impl Exchange {
    /// Something that a decision is made by.
    pub fn to_decide() -> Self {
        Exchange {
            is_read_only: true,
            ..Exchange::new(Stage::RouterRequest)
        }
    }
    /// Of nothing yet.
    pub fn new(stage: Stage) -> Self {
        Exchange {
            stage,
            id: String::new(),
            headers: HeaderMap::new(),
            method: String::new(),
            uri: String::new(),
            subgraph: String::new(),
            status: 200,
            is_first: true,
            has_next: false,
            body: None,
            context: ContextEntries::default(),
            own: None,
            is_read_only: false,
            changes: Changes::default(),
        }
    }
}
