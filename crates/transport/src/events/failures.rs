//! What can go wrong with a stream of events, as clients and operators see it.

use std::fmt;

use ogive_failure::Failure;
use ogive_stream::Close;

use crate::{
    endpoint::Endpoint,
    error::{TIMEOUT, failed},
};

pub(crate) use ogive_failure::codes::{
    SUBREQUEST_STREAM_LOST as STREAM_LOST, SUBREQUEST_STREAM_MALFORMED as STREAM_MALFORMED,
    SUBREQUEST_STREAM_OVERFLOW as STREAM_OVERFLOW, SUBREQUEST_STREAM_REFUSED as STREAM_REFUSED,
};

pub(crate) fn lost(endpoint: &Endpoint, detail: impl Into<String>) -> Failure {
    let what = "the stream of events was lost";
    failed(STREAM_LOST, &endpoint.name, what, detail).retried()
}

pub(crate) fn malformed(endpoint: &Endpoint, detail: impl Into<String>) -> Failure {
    let what = "the subgraph does not keep to the protocol of its events";
    failed(STREAM_MALFORMED, &endpoint.name, what, detail)
}

pub(crate) fn refused(endpoint: &Endpoint, detail: impl Into<String>) -> Failure {
    let what = "the subgraph refused the subscription";
    failed(STREAM_REFUSED, &endpoint.name, what, detail)
}

pub(crate) fn overflow(endpoint: &Endpoint) -> Failure {
    let what = "events were not taken in time";
    let detail = "a full queue held up other subscriptions on the same connection";
    failed(STREAM_OVERFLOW, &endpoint.name, what, detail)
}

pub(crate) fn too_late(endpoint: &Endpoint, what: &str, detail: impl Into<String>) -> Failure {
    failed(TIMEOUT, &endpoint.name, what, detail).retried()
}

/// What the end of a WebSocket connection means for a subscription on it.
pub(crate) fn closed(endpoint: &Endpoint, close: Option<&Close>) -> Failure {
    let Some(close) = close else {
        return lost(
            endpoint,
            "the subgraph closed the connection without a word",
        );
    };
    let reason = ogive_base::foreign::bounded_name(&close.reason);
    let detail = format!(
        "the subgraph closed the connection: {} {reason}",
        close.code
    );
    match close.code {
        4401 | 4403 => refused(endpoint, detail),
        // It says that we did something wrong, so it would be wrong again.
        1002 | 1003 | 1007 | 1008 | 1009 | 1010 | 4400 | 4406 | 4409 | 4429 => {
            malformed(endpoint, detail)
        }
        _ => lost(endpoint, detail),
    }
}

/// The same for what an answer has instead of a stream.
pub(crate) fn no_stream(
    endpoint: &Endpoint,
    status: http::StatusCode,
    content_type: &dyn fmt::Display,
) -> Failure {
    let detail = format!("status {status}, content type `{content_type}` instead of a stream");
    match status.as_u16() {
        401 | 403 => refused(endpoint, detail),
        429 | 502..=504 => lost(endpoint, detail),
        _ => malformed(endpoint, detail),
    }
}
