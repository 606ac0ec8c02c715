//! What can go wrong with a stream of events, as clients and operators see it.

use std::fmt;

use ogive_stream::Close;

use crate::{
    endpoint::Endpoint,
    error::{ExchangeError, TIMEOUT, failed, transient},
};

/// An argument of the client cannot be part of the name of what a broker is asked for.
pub const EVENT_ARGUMENT_INVALID: &str = "EVENT_ARGUMENT_INVALID";
/// The stream was lost before its end.
pub const STREAM_LOST: &str = "SUBREQUEST_STREAM_LOST";
/// The subgraph does not keep to the protocol of its events.
pub const STREAM_MALFORMED: &str = "SUBREQUEST_STREAM_MALFORMED";
/// The subgraph does not let us subscribe.
pub const STREAM_REFUSED: &str = "SUBREQUEST_STREAM_REFUSED";
/// Events were not taken in time, and held up those of others.
pub const STREAM_OVERFLOW: &str = "SUBREQUEST_STREAM_OVERFLOW";

pub(crate) fn lost(endpoint: &Endpoint, detail: impl Into<String>) -> ExchangeError {
    let what = "the stream of events was lost";
    transient(failed(STREAM_LOST, &endpoint.name, what, detail))
}

pub(crate) fn malformed(endpoint: &Endpoint, detail: impl Into<String>) -> ExchangeError {
    let what = "the subgraph does not keep to the protocol of its events";
    failed(STREAM_MALFORMED, &endpoint.name, what, detail).into()
}

pub(crate) fn refused(endpoint: &Endpoint, detail: impl Into<String>) -> ExchangeError {
    let what = "the subgraph refused the subscription";
    failed(STREAM_REFUSED, &endpoint.name, what, detail).into()
}

pub(crate) fn overflow(endpoint: &Endpoint) -> ExchangeError {
    let what = "events were not taken in time";
    let detail = "a full queue held up other subscriptions on the same connection";
    failed(STREAM_OVERFLOW, &endpoint.name, what, detail).into()
}

pub(crate) fn too_late(
    endpoint: &Endpoint,
    what: &str,
    detail: impl Into<String>,
) -> ExchangeError {
    transient(failed(TIMEOUT, &endpoint.name, what, detail))
}

/// What the end of a WebSocket connection means for a subscription on it.
pub(crate) fn closed(endpoint: &Endpoint, close: Option<&Close>) -> ExchangeError {
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
) -> ExchangeError {
    let detail = format!("status {status}, content type `{content_type}` instead of a stream");
    match status.as_u16() {
        401 | 403 => refused(endpoint, detail),
        429 | 502..=504 => lost(endpoint, detail),
        _ => malformed(endpoint, detail),
    }
}
