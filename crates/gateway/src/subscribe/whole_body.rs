//! Bodies that are read whole before anything else is done: bounded, timed, and counted as memory of their request.

use std::{future::poll_fn, pin::pin};

use bytes::{Buf, Bytes};
use http::{header, request::Parts};
use ogive_edge::{
    error::RequestError,
    receive::{
        RequestBody,
        growing::{Arriving, GrowingBody},
    },
};
use ogive_server::drain_body::read_refused;
use ogive_telemetry::codes;

use crate::gateway::Serving;

/// Reads a body of at most so many bytes.
pub(crate) async fn read_whole<B: RequestBody>(
    serving: &Serving,
    parts: &Parts,
    body: B,
    (arriving, bytes_max): (Arriving<'_>, usize),
) -> Result<Bytes, RequestError> {
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        read_refused(&parts.headers, body).await;
        return Err(refusal(415, "bodies of such requests are not encoded"));
    }
    let time = serving.options.receive.body_timeout.ceiling;
    let mut body = pin!(body);
    let reading = async {
        let mut read = GrowingBody::new(arriving);
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else {
                return Err(refusal(400, "the request's body could not be read"));
            };
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            if read.bytes_received() + data.remaining() > bytes_max {
                return Err(refusal(413, "the request's body is too large"));
            }
            while data.has_remaining() {
                let piece = data.chunk();
                let length = piece.len();
                read.push(piece)?;
                data.advance(length);
            }
        }
        Ok(read.whole())
    };
    match tokio::time::timeout(time, pin!(reading)).await {
        Ok(done) => done,
        Err(_) => Err(refusal(408, "the request's body took too long")),
    }
}

pub(crate) fn refusal(status: u16, message: &'static str) -> RequestError {
    RequestError {
        status,
        ..RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message)
    }
}
