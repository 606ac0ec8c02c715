//! What is noted of one GraphQL operation: the stops it passed and the requests to subgraphs.

use std::time::Duration;

use crate::attributes::Attributes;

/// What a client says it is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientIdentity {
    /// Empty if it does not say.
    pub name: Box<str>,
    /// Likewise.
    pub version: Box<str>,
}

/// The five stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Bytes and headers become one GraphQL request.
    Receive,
    /// Parse, validate, normalise; coerce variables.
    Prepare,
    /// Look the plan up, or search for it.
    Plan,
    /// Run the plan.
    Execute,
    /// The answer's bytes.
    Respond,
}

impl Stop {
    /// In order.
    pub const ALL: [Stop; 5] = [
        Stop::Receive,
        Stop::Prepare,
        Stop::Plan,
        Stop::Execute,
        Stop::Respond,
    ];
    /// The word in metrics and timelines.
    pub fn word(self) -> &'static str {
        match self {
            Stop::Receive => "receive",
            Stop::Prepare => "prepare",
            Stop::Plan => "plan",
            Stop::Execute => "execute",
            Stop::Respond => "respond",
        }
    }
}

/// Start and length of something, from the start of the record.
pub type Timed = (Duration, Duration);

/// One GraphQL operation.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// When it began, from the start of the record.
    pub started: Duration,
    /// Its name.
    pub name: Option<Box<str>>,
    /// `query`, `mutation` or `subscription`; empty if it was refused before that was known.
    pub kind: &'static str,
    /// Where its plan came from.
    pub plan_source: &'static str,
    /// By [`Stop`]; `None` if it was not reached.
    pub stops: [Option<Timed>; 5],
    /// Requests to subgraphs, in the order of sending.
    pub calls: Vec<Call>,
    /// Errors of its response.
    pub errors: usize,
    /// Code, if it was refused.
    pub code: Option<&'static str>,
    /// What it was estimated to cost, if that was asked for.
    pub cost_estimated: Option<u64>,
    /// What its answer did cost, likewise.
    pub cost_actual: Option<u64>,
    /// What operators add, if they do.
    pub attributes: Option<Box<Attributes>>,
}

/// One request to a subgraph.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Index of the subgraph.
    pub subgraph: u32,
    /// Its name; filled in when somebody will read it.
    pub name: Box<str>,
    /// Its span.
    pub span_id: u64,
    /// When it was asked for, from the start of the record.
    pub started: Duration,
    /// How long it took.
    pub took: Duration,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Why there is no answer.
    pub code: Option<&'static str>,
    /// How often it was sent; 0 if it joined an equal one under way.
    pub tries: u32,
    /// Bytes of the answer.
    pub bytes: usize,
    /// What is wrong with the answer that came.
    pub wrong: Option<Box<str>>,
    /// What operators add, if they do.
    pub attributes: Option<Box<Attributes>>,
}

impl Call {
    /// Why there is no good answer.
    pub fn failure(&self) -> Option<&str> {
        self.code.or(self.wrong.as_deref())
    }
}
