//! What clients are told of errors in place of what happened: rules of whoever lends the executor to clients.
//!
//! Rules see an error once, when it is reported, with the code and the message that clients would see: of what is masked, the
//! mask. Operators are told what happened before ([`crate::failure_report`]).

use std::{borrow::Cow, fmt::Debug};

use bytes::Bytes;

/// Rules for what clients are told.
pub trait ErrorRules: Debug + Send + Sync {
    /// Changes what clients see of an error.
    fn rewrite(&self, error: &mut ShownError<'_>);
}

/// What a client is about to see of an error.
#[derive(Debug)]
pub struct ShownError<'a> {
    /// The subgraph to blame; `None` if it is none, or nobody knows.
    pub subgraph: Option<&'a str>,
    /// The response keys on the way to its place; empty if it has none.
    pub path: &'a [&'a str],
    /// Its `extensions.code`.
    pub code: &'a mut Cow<'static, str>,
    /// For people.
    pub message: &'a mut Cow<'static, str>,
    /// Further members of `extensions`, as JSON without braces, each followed by a comma.
    pub extensions: &'a mut Bytes,
    /// Whether `extensions.service` names the subgraph, if it may be named.
    pub names_service: bool,
}
