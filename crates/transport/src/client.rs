//! One exchange with a subgraph.
//!
//! Timeouts: `connect_timeout` for connecting, `first_byte_timeout` up to the head of the answer, `timeout` for
//! everything up to its last byte; the last is laid around the whole exchange by
//! [`RequestTransport`](crate::RequestTransport).

use std::{
    pin::pin,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Method, Request, Uri, Version, header, response::Parts, uri::Scheme,
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use ogive_execute::{SubgraphResponse, TransportError};

use crate::{
    ClientTls,
    budget::Budget,
    connect::connect,
    encoding::{self, DecodeError, Encoding},
    endpoint::{Address, ENCODED_BYTES_MIN, Endpoint},
    error::{ExchangeError, HTTP_ERROR, REDIRECT, TIMEOUT, chain, failed, over_budget, transient},
    flights::Flights,
    pool::{Origin, Pool, Sender},
    request::{Outcome, RequestKey},
    upload::{Attachment, FeedError, Pieces},
};

/// What the gateway calls itself.
pub(crate) const USER_AGENT: HeaderValue =
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

    /// Number of idle connections to the endpoint's origins.
    pub fn idle_connections(&self, endpoint: &Endpoint) -> usize {
        let Ok(replicas) = &endpoint.replicas else {
            return 0;
        };
        let count = |address| match tls_of(endpoint, address) {
            Ok(tls) => self.pool.idle(&origin(endpoint, address, tls)),
            Err(_) => 0,
        };
        replicas.addresses().map(count).sum()
    }

    /// Closes idle connections that are too old; says how many. They are closed when their origin is used next in any
    /// case, so that this is for times when nothing is.
    pub fn trim(&self) -> usize {
        self.pool.trim()
    }

    /// Sends `body` with `headers` to one of the endpoint's replicas and reads the whole answer. `idempotent` allows a
    /// second try when a kept-alive connection was stale.
    pub(crate) async fn exchange(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        headers: HeaderMap,
        (body, idempotent): (Bytes, bool),
        budget: &Budget,
    ) -> Result<Exchanged, ExchangeError> {
        let tls = tls_of(endpoint, address)?;
        let origin = origin(endpoint, address, tls);
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
        let mut request = build(headers, Full::new(body));
        if let Some(sender) = self.idle_sender(endpoint, &origin, idempotent).await {
            let spare = idempotent.then(|| request.clone());
            match self
                .attempt(endpoint, address, &origin, (sender, request), budget)
                .await
            {
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
        // In a box, because futures are moved, and connecting takes most of the room while it hardly ever happens.
        let made = (&origin, tls);
        Box::pin(self.exchange_anew(endpoint, address, made, request, budget)).await
    }

    /// The same on a new connection.
    async fn exchange_anew(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        (origin, tls): (&Origin<'_>, Option<&ClientTls>),
        request: Request<Full<Bytes>>,
        budget: &Budget,
    ) -> Result<Exchanged, ExchangeError> {
        let sender = self.new_sender(endpoint, address, origin, tls).await?;
        match self
            .attempt(endpoint, address, origin, (sender, request), budget)
            .await
        {
            Ok(response) => Ok(response),
            Err(Failed::Final(error)) => Err(error),
            Err(Failed::Stale { error, .. }) => Err(transient(error)),
        }
    }

    /// A kept-alive connection that is ready for a request.
    async fn idle_sender(
        &self,
        endpoint: &Endpoint,
        origin: &Origin<'_>,
        idempotent: bool,
    ) -> Option<Sender> {
        if !idempotent && self.pool.idle(origin) > 0 {
            // A mutation has one try: let the reactor report connections that were closed in the meantime first.
            tokio::task::yield_now().await;
        }
        let timeout = endpoint.traffic.idle_timeout;
        while let Some(mut sender) = self.pool.take(origin, timeout) {
            // Its task may still have to notice the end of the last answer, or that the subgraph has closed.
            let ready = match &mut sender {
                Sender::Http1(sender) => sender.ready().await,
                Sender::Http2(sender) => sender.ready().await,
            };
            if ready.is_ok() {
                return Some(sender);
            }
        }
        None
    }

    /// A new connection; requests that can share one wait for it instead of making one each.
    async fn new_sender(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        origin: &Origin<'_>,
        tls: Option<&ClientTls>,
    ) -> Result<Sender, ExchangeError> {
        let traffic = &endpoint.traffic;
        let gate = self.pool.gate(origin);
        let _first = match &gate {
            Some(gate) => {
                let first = gate.lock().await;
                if let Some(sender @ Sender::Http2(_)) =
                    self.pool.take(origin, traffic.idle_timeout)
                {
                    return Ok(sender);
                }
                Some(first)
            }
            None => None,
        };
        let sender: Sender = connect(endpoint, address, tls).await.map_err(transient)?;
        if let Sender::Http2(shared) = &sender {
            let (timeout, max) = (traffic.idle_timeout, traffic.idle_max);
            let shared = Sender::Http2(shared.clone());
            self.pool.keep(origin, shared, timeout, max);
        }
        Ok(sender)
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        origin: &Origin<'_>,
        (mut sender, mut request): (Sender, Request<Full<Bytes>>),
        budget: &Budget,
    ) -> Result<Exchanged, Failed> {
        fit(&mut request, address, &sender);
        let sending = async {
            match &mut sender {
                Sender::Http1(sender) => sender.try_send_request(request).await,
                Sender::Http2(sender) => sender.try_send_request(request).await,
            }
        };
        let sent = match endpoint.traffic.first_byte_timeout {
            None => sending.await,
            Some(timeout) => match tokio::time::timeout(timeout, sending).await {
                Ok(sent) => sent,
                Err(_) => {
                    return Err(Failed::Final(transient(failed(
                        TIMEOUT,
                        &endpoint.name,
                        "the subgraph took too long to begin its answer",
                        format!("no head of an answer within {timeout:?}"),
                    ))));
                }
            },
        };
        let response = match sent {
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
        let (head, body) = response.into_parts();
        no_redirect(endpoint, &head).map_err(|error| Failed::Final(error.into()))?;
        let body = read_body(endpoint, body, budget)
            .await
            .map_err(Failed::Final)?;
        let traffic = &endpoint.traffic;
        let (timeout, max) = (traffic.idle_timeout, traffic.idle_max);
        if let Sender::Http1(_) = sender {
            self.pool.keep(origin, sender, timeout, max);
        }
        whole(endpoint, head, body, budget)
            .await
            .map_err(|error| Failed::Final(error.into()))
    }

    /// Sends a body that is made while it is sent, on a connection of its own: it can be sent only once. Reads the
    /// whole answer.
    pub(crate) async fn upload(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        mut headers: HeaderMap,
        attachment: Attachment<'_>,
        budget: &Budget,
    ) -> Result<Exchanged, ExchangeError> {
        let tls = tls_of(endpoint, address)?;
        if endpoint.traffic.accept_compression {
            headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
        }
        let mut sender: Sender<Pieces> = connect(endpoint, address, tls).await?;
        let mut request = build(headers, attachment.pieces);
        let content_type = attachment.content_type;
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        fit(&mut request, address, &sender);
        let answering = async {
            let sent = match &mut sender {
                Sender::Http1(sender) => sender.send_request(request).await,
                Sender::Http2(sender) => sender.send_request(request).await,
            };
            let response = sent.map_err(|error| {
                failed(
                    HTTP_ERROR,
                    &endpoint.name,
                    "the connection failed before an answer came",
                    chain(&error),
                )
            })?;
            let (head, body) = response.into_parts();
            no_redirect(endpoint, &head)?;
            let body = read_body(endpoint, body, budget).await?;
            Ok(whole(endpoint, head, body, budget).await?)
        };
        let mut answering = pin!(answering);
        let mut feed = attachment.feed;
        tokio::select! {
            // A subgraph may answer before it has read everything.
            answer = answering.as_mut() => return answer,
            fed = feed.as_mut() => match fed {
                Ok(()) | Err(FeedError::NobodyReads) => {}
                Err(FeedError::Refused { code, message }) => {
                    let detail = format!("files for subgraph `{}`: {message}", endpoint.name);
                    return Err(TransportError { code, message, detail }.into());
                }
            },
        }
        drop(feed);
        answering.await
    }
}

fn no_redirect(endpoint: &Endpoint, head: &Parts) -> Result<(), TransportError> {
    match head.headers.get(header::LOCATION) {
        Some(to) if head.status.is_redirection() => Err(failed(
            REDIRECT,
            &endpoint.name,
            "the subgraph answered with a redirect, which is not followed",
            format!("{} to {to:?}: correct its URL", head.status),
        )),
        _ => Ok(()),
    }
}

/// An answer that has arrived, decoded.
async fn whole(
    endpoint: &Endpoint,
    head: Parts,
    body: Bytes,
    budget: &Budget,
) -> Result<Exchanged, TransportError> {
    let body = match Encoding::of(&head.headers) {
        Ok(None) => body,
        Ok(Some(encoding)) => Box::pin(decoded(endpoint, encoding, &body, budget)).await?,
        Err(name) => {
            let what = "the answer is in an encoding that is not supported";
            let detail = format!("content-encoding `{name}`");
            return Err(failed(HTTP_ERROR, &endpoint.name, what, detail));
        }
    };
    Ok(Exchanged {
        response: SubgraphResponse {
            status: head.status.as_u16(),
            body,
        },
        retry_after: retry_after(&head.headers),
        headers: head.headers,
    })
}

fn build<B>(mut headers: HeaderMap, body: B) -> Request<B> {
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, ACCEPT);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    request
}

/// Writes the request's target as the connection's version of HTTP wants it.
pub(crate) fn fit<B>(request: &mut Request<B>, address: &Address, sender: &Sender<B>) {
    match sender {
        Sender::Http1(_) => {
            let host = address.host.clone();
            request.headers_mut().insert(header::HOST, host);
            *request.uri_mut() = address.path.clone().into();
            *request.version_mut() = Version::HTTP_11;
        }
        Sender::Http2(_) => {
            request.headers_mut().remove(header::HOST);
            let scheme = match address.https {
                true => Scheme::HTTPS,
                false => Scheme::HTTP,
            };
            let uri = Uri::builder()
                .scheme(scheme)
                .authority(address.host.as_bytes())
                .path_and_query(address.path.clone());
            // The parts come from a URL that was taken apart.
            *request.uri_mut() = uri.build().unwrap_or_default();
            *request.version_mut() = Version::HTTP_2;
        }
    }
}

pub(crate) fn tls_of<'e>(
    endpoint: &'e Endpoint,
    address: &Address,
) -> Result<Option<&'e ClientTls>, TransportError> {
    if !address.https {
        return Ok(None);
    }
    let why = match &endpoint.tls {
        Ok(Some(tls)) => return Ok(Some(tls)),
        Ok(None) => "its URL is https, and TLS was not set up".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(failed(
        HTTP_ERROR,
        &endpoint.name,
        "the subgraph's URL cannot be used",
        format!("subgraph `{}`: {why}", endpoint.name),
    ))
}

fn origin<'e>(endpoint: &Endpoint, address: &'e Address, tls: Option<&ClientTls>) -> Origin<'e> {
    Origin {
        target: &address.target,
        tls: tls.map(|tls| tls.current().1),
        http2: endpoint.traffic.http2,
    }
}

pub(crate) async fn decoded(
    endpoint: &Endpoint,
    encoding: Encoding,
    body: &[u8],
    budget: &Budget,
) -> Result<Bytes, TransportError> {
    let most = endpoint.traffic.response_bytes_refused();
    let limit = most.min(budget.left());
    let (what, detail) = match encoding::decode(encoding, body, limit).await {
        Ok(body) => {
            measure(endpoint, body.len(), budget);
            return Ok(body);
        }
        Err(DecodeError::TooLarge) if limit < most => {
            return Err(over_budget(&endpoint.name, budget.max()));
        }
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

/// `retry-after`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(
        date.duration_since(SystemTime::now())
            .unwrap_or(Duration::ZERO),
    )
}

pub(crate) async fn read_body(
    endpoint: &Endpoint,
    mut body: Incoming,
    budget: &Budget,
) -> Result<Bytes, ExchangeError> {
    let limit = endpoint.traffic.response_bytes_refused();
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
    /// Bytes that are read in one go; then other requests have their turn.
    const TURN: usize = 64 << 10;
    let mut turn = TURN;
    let mut reading = budget.read();
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
        let read = so_far + data.len();
        if read > limit {
            return Err(too_large().into());
        }
        if !reading.take(data.len()) {
            return Err(over_budget(&endpoint.name, budget.max()).into());
        }
        match &mut rest {
            Some(buffer) => buffer.extend_from_slice(&data),
            // Small answers come as one frame and are never copied.
            None if first.is_empty() => first = data,
            None => {
                let room = read.max(expected.min(RESERVE_MAX) as usize);
                let mut buffer = BytesMut::with_capacity(room);
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&data);
                rest = Some(buffer);
            }
        }
        if read >= turn {
            turn = read + TURN;
            tokio::task::yield_now().await;
        }
    }
    let body = rest.map_or(first, BytesMut::freeze);
    measure(endpoint, body.len(), budget);
    Ok(body)
}

/// Notes an answer beyond a limit that is only measured.
fn measure(endpoint: &Endpoint, bytes: usize, budget: &Budget) {
    let limit = endpoint.traffic.response_bytes_max;
    if bytes > limit && budget.note_answer() {
        let subgraph = &*endpoint.name;
        tracing::warn!(
            subgraph,
            bytes,
            limit,
            "an answer exceeds `response_max_bytes`, which is only measured"
        );
    }
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
        // HTTP/2: the connection is being closed, or the stream was turned away unread.
        if let Some(http2) = error.downcast_ref::<h2::Error>() {
            return http2.is_go_away()
                || http2.is_io()
                || http2.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        cause = error.source();
    }
    false
}
