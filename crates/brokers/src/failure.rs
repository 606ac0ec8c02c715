//! What can go wrong, as clients and operators see it.

use ogive_execute::TransportError;

/// An error whose message names the subgraph, never the broker.
pub(crate) fn failed(
    subgraph: &str,
    code: &'static str,
    what: &str,
    detail: impl Into<String>,
) -> TransportError {
    TransportError {
        code,
        message: format!("Events of '{subgraph}': {what}"),
        detail: ogive_base::bounded_string(detail.into(), ogive_base::foreign::MESSAGE_BYTES_MAX),
    }
}
