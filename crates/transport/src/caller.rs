//! What is known of whoever asks, for rules of requests to subgraphs.

use std::borrow::Cow;

use http::HeaderValue;

/// What is known of a client and its operation besides headers and claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientValue {
    /// Its address.
    Address,
    /// The name of its operation.
    OperationName,
    /// `query`, `mutation` or `subscription`.
    OperationKind,
}

/// What is claimed of the caller of a request.
pub trait CallerContext {
    /// What a claim says, as a header says it; `None` if there is none, or if no header can say it.
    fn claim(&self, path: &str) -> Option<HeaderValue>;
    /// Whether a claim says something that no header can say, such as a line break. Default: no.
    fn is_unsayable(&self, _path: &str) -> bool {
        false
    }
    /// What a claim says, as JSON. Default: nothing.
    fn claim_json(&self, _path: &str) -> Option<String> {
        None
    }
    /// What a claim says if it is one value. Default: nothing.
    fn claim_text(&self, _path: &str) -> Option<Cow<'_, str>> {
        None
    }
    /// The items of a claim: those of a list, or the words of a text. Default: none.
    fn claim_items(&self, _path: &str) -> Vec<Cow<'_, str>> {
        Vec::new()
    }
    /// What else is known. Default: nothing.
    fn value(&self, _value: ClientValue) -> Option<Cow<'_, str>> {
        None
    }
}
