//! What can go wrong, as clients and operators see it.

use ogive_base::{bounded_string, foreign::MESSAGE_BYTES_MAX};
use ogive_failure::{ErrorCode, Failure, codes};

/// A failure whose message names the subgraph, never the broker.
pub(crate) fn failed(
    subgraph: &str,
    code: ErrorCode,
    what: &str,
    detail: impl Into<String>,
) -> Failure {
    let detail = bounded_string(detail.into(), MESSAGE_BYTES_MAX);
    Failure::new(code, format!("Events of '{subgraph}': {what}"), detail)
}

/// A client's mistake, which it is told in words that name neither subgraph nor broker.
pub(crate) fn invalid_argument(why: String) -> Failure {
    let why = bounded_string(why, MESSAGE_BYTES_MAX);
    let mut message = String::with_capacity(why.len() + 1);
    let mut letters = why.chars();
    message.extend(letters.next().map(|first| first.to_ascii_uppercase()));
    message.extend(letters);
    message.push('.');
    Failure::new(codes::EVENT_ARGUMENT_INVALID, message, why)
}
