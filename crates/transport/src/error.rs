//! What can go wrong in one exchange, as a client and as an operator see it.

use std::{error::Error, fmt::Write};

use ogive_base::{bounded_string, foreign::MESSAGE_BYTES_MAX};
use ogive_failure::{ErrorCode, Failure, codes};

use crate::budget::Budget;

pub(crate) use ogive_failure::codes::{
    CIRCUIT_BREAKER_OPEN as BREAKER_OPEN, GATEWAY_TIMEOUT as TIMEOUT,
    REQUEST_MEMORY_LIMIT as REQUEST_MEMORY, SUBREQUEST_HTTP_ERROR as HTTP_ERROR,
    SUBREQUEST_REDIRECT as REDIRECT,
};

/// A failure whose client message names only the subgraph.
pub(crate) fn failed(
    code: ErrorCode,
    subgraph: &str,
    what: &str,
    detail: impl Into<String>,
) -> Failure {
    let message = format!("HTTP fetch failed from '{subgraph}': {what}");
    // May have headers of the subgraph in it.
    let detail = bounded_string(detail.into(), MESSAGE_BYTES_MAX);
    Failure::new(code, message, detail)
}

/// The answers for one request do not fit into its budget.
pub(crate) fn over_budget(subgraph: &str, budget: &Budget<'_>) -> Failure {
    if budget.process_is_full() {
        let what = "the gateway has no memory for the answer now";
        let detail = "the requests under way hold as much as `limits.max_memory` allows";
        return failed(REQUEST_MEMORY, subgraph, what, detail);
    }
    let what = "the answers to this request are too large altogether";
    let bytes_max = budget.max();
    let detail = format!("they are larger than {bytes_max} bytes: see `limits.max_request_memory`");
    failed(REQUEST_MEMORY, subgraph, what, detail)
}

/// Whether a subgraph did answer, or was not asked: it is not left alone for that.
pub(crate) fn is_no_fault_of_subgraph(error: &Failure) -> bool {
    error.is_answered
        || matches!(
            error.code,
            REQUEST_MEMORY
                | codes::SUBREQUEST_CREDENTIALS_UNAVAILABLE
                | codes::EVENT_ARGUMENT_INVALID
                | codes::SUBREQUEST_STREAM_REFUSED
        )
}

/// An error with its causes, for operators.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let _ = write!(text, ": {cause}");
        next = cause.source();
    }
    text
}
