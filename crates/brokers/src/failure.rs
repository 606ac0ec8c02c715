//! What can go wrong, as clients and operators see it.

use ogive_base::{bounded_string, foreign::MESSAGE_BYTES_MAX};
use ogive_failure::{ErrorCode, Failure};

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
