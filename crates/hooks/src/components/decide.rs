//! What a component is asked where something is decided, and what came of it.

use serde_json::{Map, Value};

/// What a component says of who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It knows nothing of what the client brings.
    Unknown,
    /// The caller has these claims.
    Claims(Map<String, Value>),
    /// The client is refused, for a reason that the operator is told.
    Refused(String),
}

/// Which policies are to be decided, and for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyQuestion {
    /// Each once.
    pub policies: Vec<String>,
    /// The kind of the operation.
    pub kind: String,
    /// The scopes of the caller.
    pub scopes: Vec<String>,
    /// Its claims, a JSON object.
    pub claims: String,
}
