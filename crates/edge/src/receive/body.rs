//! The bytes of a request: read within their limits, and decoded.

use std::{
    fmt::Display,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Instant,
};

use bytes::{Buf, Bytes};
use http::{HeaderMap, header};
use hyper::body::Body;
use ogive_base::{OutOfMemory, Reservation};
use ogive_net::encoding::{self, DecodeError, Encoding};
use ogive_server::drain_body::{linger, read_refused};
use ogive_telemetry::codes;

use crate::{
    error::{RequestError, no_memory},
    measured::{Exceeded, note},
    receive::{
        ReceiveLimits, clip,
        growing::{Arriving, GrowingBody, Waiting},
        invalid,
    },
};

/// Bytes of a body that are read in one go; then other requests have their turn.
const TURN: usize = 64 << 10;

/// The body of a request, wherever it comes from.
pub trait RequestBody: Body<Data: Send, Error: Display> + Send + 'static {}

impl<B: Body<Data: Send, Error: Display> + Send + 'static> RequestBody for B {}

/// How many times as much as goes in is expected to come out, beside what is counted when it does: what grows is copied, and
/// what it was copied from is not free at once. Whoever would not have room for that is refused before it is begun, because
/// a thousand that are half decoded leave room for none.
const DECODED_RATIO: usize = 256;

/// The limit holds for what arrives and for what it becomes.
pub(super) async fn decoded(
    encoding: Encoding,
    body: &[u8],
    limits: &ReceiveLimits,
    memory: &Reservation,
) -> Result<Bytes, RequestError> {
    let max = limits.body.ceiling;
    let meanwhile = memory.beside();
    meanwhile.grow(body.len().saturating_mul(DECODED_RATIO).min(max))?;
    let decoded = encoding::decode(encoding, body, max, Some(memory)).await;
    drop(meanwhile);
    decoded.map_err(|error| match error {
        DecodeError::OutOfMemory => no_memory(),
        DecodeError::TooLarge => RequestError::http(
            codes::REQUEST_TOO_LARGE,
            format!("the request's decoded body is larger than {max} bytes"),
        ),
        DecodeError::Malformed(_) => invalid(format!(
            "the request's body is not what `content-encoding: {}` says",
            encoding.name()
        )),
    })
}

/// Reads and decodes a body before anything else is known of it.
pub async fn whole_body<B: RequestBody>(
    headers: &HeaderMap,
    body: B,
    limits: &ReceiveLimits,
    arriving: Arriving<'_>,
    exceeded: &mut Exceeded,
) -> Result<Bytes, RequestError> {
    let encoding = match Encoding::of(headers) {
        Ok(encoding) => encoding,
        Err(name) => {
            let message = format!("the encoding `{}` is not supported", clip(&name));
            read_refused(headers, body).await;
            return Err(RequestError::http(codes::UNSUPPORTED_MEDIA_TYPE, message));
        }
    };
    let body = read_body(headers, body, limits, arriving, exceeded).await?;
    match encoding {
        Some(encoding) => decoded(encoding, &body, limits, arriving.memory).await,
        None => Ok(body),
    }
}

/// Why a body is not read to its end.
struct Unread {
    error: RequestError,
    /// Whether its client may be sending still.
    is_sending: bool,
}

impl Unread {
    fn sending(error: RequestError) -> Self {
        Unread {
            error,
            is_sending: true,
        }
    }
    fn ended(error: RequestError) -> Self {
        Unread {
            error,
            is_sending: false,
        }
    }
}

impl From<OutOfMemory> for Unread {
    fn from(_: OutOfMemory) -> Self {
        Unread::sending(no_memory())
    }
}

/// Reads a body of at most `max` bytes to its end.
async fn read_frames<B: RequestBody>(
    mut body: Pin<&mut B>,
    max: usize,
    arriving: Arriving<'_>,
) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut rest: Option<GrowingBody<'_>> = None;
    let mut turn = TURN;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "the client's body ended early");
            Unread::ended(RequestError::http(
                codes::INVALID_GRAPHQL_REQUEST,
                "the request's body could not be read",
            ))
        })?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        let data = data.copy_to_bytes(data.remaining());
        let so_far = rest
            .as_ref()
            .map_or(first.len(), GrowingBody::bytes_received);
        let read = so_far + data.len();
        if read > max {
            return Err(Unread::sending(too_large(max)));
        }
        match &mut rest {
            Some(body) => body.push(&data)?,
            None if first.is_empty() => {
                arriving.memory.grow(data.len())?;
                first = data;
            }
            None => {
                let body = rest.insert(GrowingBody::new(arriving));
                body.push(&first)?;
                // It is part of a buffer of the connection, which it would keep.
                arriving.memory.shrink(first.len());
                first = Bytes::new();
                body.push(&data)?;
            }
        }
        if read >= turn {
            turn = read + TURN;
            tokio::task::yield_now().await;
        }
    }
    Ok(rest.map_or(first, GrowingBody::whole))
}

fn too_large(max: usize) -> RequestError {
    RequestError::http(
        codes::REQUEST_TOO_LARGE,
        format!("the request's body is larger than {max} bytes"),
    )
}

/// Reads a body within its limits.
pub(super) async fn read_body<B: RequestBody>(
    headers: &HeaderMap,
    body: B,
    limits: &ReceiveLimits,
    arriving: Arriving<'_>,
    exceeded: &mut Exceeded,
) -> Result<Bytes, RequestError> {
    let memory = arriving.memory;
    let max = limits.body.ceiling;
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    let mut body = pin!(body);
    if announced.unwrap_or(body.size_hint().lower()) > max as u64 {
        // Whoever asks before sending (`expect: 100-continue`) is told not to.
        if !headers.contains_key(header::EXPECT) {
            Box::pin(linger(body)).await;
        }
        return Err(too_large(max));
    }
    let began = limits.body_timeout.is_only_measured().then(Instant::now);
    let read = {
        // Pinned first: a future that goes into another one is copied.
        let mut reading = pin!(read_frames(body.as_mut(), max, arriving));
        // Most bodies have come with their heads; no timer is made for them.
        match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
            Poll::Ready(body) => body,
            Poll::Pending => match Waiting::begin(arriving) {
                Ok(_waiting) => {
                    let read = tokio::time::timeout(limits.body_timeout.ceiling, reading).await;
                    read.unwrap_or_else(|_| {
                        Err(Unread::ended(RequestError::http(
                            codes::REQUEST_TIMEOUT,
                            "the request's body did not arrive in time",
                        )))
                    })
                }
                Err(none) => Err(none.into()),
            },
        }
    };
    let body = match read {
        Ok(read) => read,
        Err(unread) => {
            // What came is dropped, and nothing is kept of what is still to come: its connection is counted by itself.
            memory.shrink(memory.used());
            if unread.is_sending {
                Box::pin(linger(body)).await;
            }
            return Err(unread.error);
        }
    };
    if let Some(began) = began {
        note(&limits.body_timeout, &began.elapsed(), exceeded);
    }
    // What it becomes when it is decoded is looked at, too.
    note(&limits.body, &body.len(), exceeded);
    Ok(body)
}
