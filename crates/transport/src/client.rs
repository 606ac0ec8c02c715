//! One exchange with a subgraph.
//!
//! Timeouts: `connect_timeout` for connecting, `timeout` for everything up to the last byte of the answer; the latter
//! is laid around the whole exchange by [`RequestTransport`](crate::RequestTransport).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use ogive_execute::{SubgraphResponse, TransportError};
use tokio::net::TcpStream;

use crate::{
    encoding::{self, DecodeError, Encoding},
    endpoint::{Address, ENCODED_BYTES_MIN, Endpoint},
    error::{ExchangeError, HTTP_ERROR, TIMEOUT, chain, failed, transient},
    flights::Flights,
    pool::{Pool, Sender},
    request::{Outcome, RequestKey},
};

/// What the gateway calls itself.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("ogive/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("zstd, br, gzip");
const ACCEPT: HeaderValue =
    HeaderValue::from_static("application/graphql-response+json, application/json;q=0.9");

/// The subgraph client of one worker thread.
#[derive(Default)]
pub struct Client {
    pool: Pool,
    /// The queries under way that others may join.
    pub(crate) flights: Flights<RequestKey, Outcome>,
}

/// How a try ended without an answer.
enum Failed {
    /// The connection was closed before the subgraph answered anything. `returned` holds the request if not one byte
    /// of it was written.
    Stale {
        returned: Option<Box<Request<Full<Bytes>>>>,
        error: TransportError,
    },
    Final(ExchangeError),
}

/// A whole answer.
#[derive(Clone)]
pub(crate) struct Exchanged {
    pub(crate) response: SubgraphResponse,
    /// How long the subgraph asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// The head of the answer.
    pub(crate) headers: HeaderMap,
}

impl Client {
    /// A client without connections.
    pub fn new() -> Self {
        Client::default()
    }

    /// Number of idle connections to the endpoint's origin.
    pub fn idle_connections(&self, endpoint: &Endpoint) -> usize {
        let address = endpoint.address.as_ref();
        address.map_or(0, |address| self.pool.idle(&address.origin))
    }

    /// Sends `body` with `headers` and reads the whole answer. `idempotent` allows a second try when a kept-alive
    /// connection was stale.
    pub(crate) async fn exchange(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Bytes,
        idempotent: bool,
    ) -> Result<Exchanged, ExchangeError> {
        let address = endpoint.address.as_ref().map_err(|error| {
            failed(
                HTTP_ERROR,
                &endpoint.name,
                "the subgraph's URL cannot be used",
                format!("subgraph `{}`: {error}", endpoint.name),
            )
        })?;
        let (mut headers, mut body) = (headers, body);
        if endpoint.traffic.accept_compression {
            headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
        }
        if let Some(encoding) = endpoint.traffic.compression
            && body.len() >= ENCODED_BYTES_MIN
            && let Ok(encoded) = encoding::encode(encoding, &body)
        {
            body = encoded.into();
            let name = HeaderValue::from_static(encoding.name());
            headers.insert(header::CONTENT_ENCODING, name);
        }
        let mut request = build(address, headers, body);
        if let Some(sender) = self.idle_sender(endpoint, address, idempotent).await {
            let spare = idempotent.then(|| request.clone());
            match self.attempt(endpoint, address, sender, request).await {
                Ok(response) => return Ok(response),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Stale { returned, error }) => {
                    // Never written at all: safe to send even if it is a mutation.
                    request = match returned.map(|r| *r).or(spare) {
                        Some(request) => request,
                        None => return Err(transient(error)),
                    };
                    tracing::debug!(
                        subgraph = &*endpoint.name,
                        "kept-alive connection was stale"
                    );
                }
            }
        }
        let sender = connect(endpoint, address).await.map_err(transient)?;
        match self.attempt(endpoint, address, sender, request).await {
            Ok(response) => Ok(response),
            Err(Failed::Final(error)) => Err(error),
            Err(Failed::Stale { error, .. }) => Err(transient(error)),
        }
    }

    /// A kept-alive connection that is ready for a request.
    async fn idle_sender(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        idempotent: bool,
    ) -> Option<Sender> {
        if !idempotent && self.pool.idle(&address.origin) > 0 {
            // A mutation has one try: let the reactor report connections that were closed in the meantime first.
            tokio::task::yield_now().await;
        }
        let timeout = endpoint.traffic.idle_timeout;
        while let Some(mut sender) = self.pool.take(&address.origin, timeout) {
            // Its task may still have to notice the end of the last answer, or that the subgraph has closed.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
        None
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
    ) -> Result<Exchanged, Failed> {
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut refused) => {
                let returned = refused.take_message().map(Box::new);
                let error = refused.into_error();
                // A connection that ends before the head of an answer was closed by a subgraph that had tired of it;
                // anything else (a malformed answer, say) would only happen again.
                let stale = returned.is_some()
                    || error.is_canceled()
                    || error.is_closed()
                    || error.is_incomplete_message()
                    || is_reset(&error);
                let error = failed(
                    HTTP_ERROR,
                    &endpoint.name,
                    "the connection failed before an answer came",
                    chain(&error),
                );
                return Err(if stale {
                    Failed::Stale { returned, error }
                } else {
                    Failed::Final(error.into())
                });
            }
        };
        let status = response.status().as_u16();
        let encoded = Encoding::of(response.headers());
        let retry_after = retry_after(response.headers());
        let (head, body) = response.into_parts();
        let body = read_body(endpoint, body).await.map_err(Failed::Final)?;
        let traffic = &endpoint.traffic;
        let (timeout, max) = (traffic.idle_timeout, traffic.idle_max);
        self.pool.keep(&address.origin, sender, timeout, max);
        let body = match encoded {
            Ok(None) => body,
            Ok(Some(encoding)) => decoded(endpoint, encoding, &body)
                .await
                .map_err(|error| Failed::Final(error.into()))?,
            Err(name) => {
                let what = "the answer is in an encoding that is not supported";
                let detail = format!("content-encoding `{name}`");
                let error = failed(HTTP_ERROR, &endpoint.name, what, detail);
                return Err(Failed::Final(error.into()));
            }
        };
        Ok(Exchanged {
            response: SubgraphResponse { status, body },
            retry_after,
            headers: head.headers,
        })
    }
}

fn build(address: &Address, mut headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    headers.insert(header::HOST, address.host.clone());
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, ACCEPT);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.path.clone().into();
    *request.headers_mut() = headers;
    request
}

async fn connect(endpoint: &Endpoint, address: &Address) -> Result<Sender, TransportError> {
    let (host, port) = (&*address.origin.host, address.origin.port);
    let connecting = TcpStream::connect((host, port));
    let stream = match tokio::time::timeout(endpoint.traffic.connect_timeout, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            return Err(failed(
                HTTP_ERROR,
                &endpoint.name,
                "the subgraph cannot be reached",
                format!("connecting to {host}:{port}: {error}"),
            ));
        }
        Err(_) => {
            return Err(failed(
                TIMEOUT,
                &endpoint.name,
                "connecting took too long",
                format!(
                    "connecting to {host}:{port} took longer than {:?}",
                    endpoint.traffic.connect_timeout
                ),
            ));
        }
    };
    // Requests are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|error| {
        failed(
            HTTP_ERROR,
            &endpoint.name,
            "the connection failed before an answer came",
            chain(&error),
        )
    })?;
    // Ends with the connection; a dropped sender closes it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = chain(&error), "subgraph connection ended");
        }
    });
    Ok(sender)
}

async fn decoded(
    endpoint: &Endpoint,
    encoding: Encoding,
    body: &[u8],
) -> Result<Bytes, TransportError> {
    let limit = endpoint.traffic.response_bytes_max;
    let (what, detail) = match encoding::decode(encoding, body, limit).await {
        Ok(body) => return Ok(body),
        Err(DecodeError::TooLarge) => (
            "the answer is too large",
            format!("the decoded answer is larger than {limit} bytes"),
        ),
        Err(DecodeError::Malformed(why)) => (
            "the answer cannot be decoded",
            format!("it is no {}: {why}", encoding.name()),
        ),
    };
    Err(failed(HTTP_ERROR, &endpoint.name, what, detail))
}

/// Seconds of `retry-after`; dates are not worth a calendar here.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

async fn read_body(endpoint: &Endpoint, mut body: Incoming) -> Result<Bytes, ExchangeError> {
    let limit = endpoint.traffic.response_bytes_max;
    let too_large = || {
        failed(
            HTTP_ERROR,
            &endpoint.name,
            "the answer is too large",
            format!("the answer is larger than {limit} bytes"),
        )
    };
    let expected = body.size_hint().lower();
    if expected > limit as u64 {
        return Err(too_large().into());
    }
    // The announced length is only a hint from outside: never reserve more than this ahead of the bytes themselves.
    const RESERVE_MAX: u64 = 16 << 20;
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            transient(failed(
                HTTP_ERROR,
                &endpoint.name,
                "the connection failed in the middle of an answer",
                chain(&error),
            ))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(too_large().into());
        }
        match &mut rest {
            Some(buffer) => buffer.extend_from_slice(&data),
            // Small answers come as one frame and are never copied.
            None if first.is_empty() => first = data,
            None => {
                let room = (so_far + data.len()).max(expected.min(RESERVE_MAX) as usize);
                let mut buffer = BytesMut::with_capacity(room);
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&data);
                rest = Some(buffer);
            }
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}

fn is_reset(error: &hyper::Error) -> bool {
    use std::{error::Error, io::ErrorKind};
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(
                io.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
            );
        }
        cause = error.source();
    }
    false
}
