//! What can go wrong in one exchange, as a client and as an operator see it.

use std::{error::Error, fmt::Write};

use ogive_base::{bounded_string, foreign::MESSAGE_BYTES_MAX};
use ogive_execute::TransportError;

use crate::budget::Budget;

/// How an exchange failed.
pub(crate) struct ExchangeError {
    pub(crate) error: TransportError,
    /// Whether the same request may well succeed a moment later.
    pub(crate) transient: bool,
}

impl From<TransportError> for ExchangeError {
    fn from(error: TransportError) -> Self {
        ExchangeError {
            error,
            transient: false,
        }
    }
}

/// An error that may be gone a moment later.
pub(crate) fn transient(error: TransportError) -> ExchangeError {
    ExchangeError {
        error,
        transient: true,
    }
}

/// The subgraph is left alone for a while.
pub(crate) const BREAKER_OPEN: &str = "CIRCUIT_BREAKER_OPEN";
/// The subgraph could not be reached or did not speak HTTP.
pub(crate) const HTTP_ERROR: &str = "SUBREQUEST_HTTP_ERROR";
/// The answers for one request of a client are too much altogether.
pub const REQUEST_MEMORY: &str = "REQUEST_MEMORY_LIMIT";
/// It wants to be asked somewhere else.
pub(crate) const REDIRECT: &str = "SUBREQUEST_REDIRECT";
/// It took too long.
pub(crate) const TIMEOUT: &str = "GATEWAY_TIMEOUT";

/// An error whose client message names only the subgraph.
pub(crate) fn failed(
    code: &'static str,
    subgraph: &str,
    what: &str,
    detail: impl Into<String>,
) -> TransportError {
    TransportError {
        code,
        message: format!("HTTP fetch failed from '{subgraph}': {what}"),
        // May have headers of the subgraph in it.
        detail: bounded_string(detail.into(), MESSAGE_BYTES_MAX),
    }
}

/// The answers for one request do not fit into its budget.
pub(crate) fn over_budget(subgraph: &str, budget: &Budget<'_>) -> TransportError {
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
