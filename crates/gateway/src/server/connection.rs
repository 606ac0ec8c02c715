//! One connection of a client: TLS, the version of HTTP, requests, the end.
//!
//! The version is agreed on during the TLS handshake; without TLS the first bytes tell (RFC 9113, section 3.3). Nothing
//! waits for a client for ever: the handshake, the first bytes and the head of the first request have one
//! `header_read_timeout` together, the next request has another, writing has `write_timeout`.
//!
//! Connections that have no place of their own ([`super::places`]) are answered about health, and told so otherwise; all of
//! that, the handshake included, has [`GUEST_TIME`].
//!
//! Draining, and giving a place up, is in [`http1`] and [`http2`].

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, Version, header, request::Parts};
use hyper::{Request, body::Incoming, service::service_fn};
use ogive_base::{OutOfMemory, Reservation};
use ogive_config::{Measured, Peer};
use ogive_telemetry::codes;
use ogive_transport::{ServerTls, Socket, Stream};
use tokio::{
    io::AsyncReadExt,
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::{
    ServeOptions,
    activity::{Activity, Taken},
    http1, http2,
    io::HEAD_FREE,
    listener::Accepted,
    places::{GUEST_TIME, Held, Kind},
    starts::Starts,
    strangers::Stranger,
};
use crate::{
    Gateway, RequestError, WorkerState, respond::refuse, shared::body::ResponseBody,
    shared::drain_body::read_refused, shared::error::no_memory, shared::measured::is_measured,
    shared::media::Media,
};

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of HTTP/2 that are read and written before others have their turn. Few, because a frame may have 9 bytes, and
/// each takes its time.
const HTTP2_TURN: usize = 16 << 10;
/// When those come back for whom there is no place.
const GUEST_SECONDS: u64 = 1;

/// What becomes of a request.
/// Longest URL that the parser of HTTP/1.1 takes.
const URI_BYTES_MAX: usize = 65_534;

type Answer = Result<Response<Taken>, Infallible>;

/// What all connections of a worker have in common.
pub(super) struct Shared {
    pub(super) gateway: Arc<Gateway>,
    pub(super) worker: Rc<WorkerState>,
    pub(super) options: Rc<ServeOptions>,
    pub(super) tls: Option<Arc<ServerTls>>,
    /// Never waited with: whoever waits has a copy.
    pub(super) draining: watch::Receiver<bool>,
    pub(super) starts: Rc<Starts>,
}

impl Shared {
    /// Whether draining began. Takes no lock, because it is asked with every request.
    pub(super) fn is_draining(&self) -> bool {
        // There is one change only, and nobody looks at it here; the sender goes after it.
        self.draining.has_changed().unwrap_or(true)
    }
    /// Counts what a connection makes the process hold.
    pub(super) fn reserve(&self) -> Reservation {
        self.worker.reserve(self.gateway.memory())
    }
}

/// A connection on which requests come.
struct Connection {
    shared: Rc<Shared>,
    peer: Peer,
    version: Version,
    stranger: Stranger,
    activity: Rc<Activity>,
    bytes: super::io::Bytes,
    /// How long a head may take.
    patience: Measured<Duration>,
    headers: Measured<usize>,
    header_bytes: Measured<usize>,
}

/// What whoever drives the protocol of a connection needs.
pub(super) struct Driven {
    pub(super) bytes: super::io::Bytes,
    pub(super) held: Held,
    pub(super) activity: Rc<Activity>,
    pub(super) options: Rc<ServeOptions>,
    pub(super) draining: watch::Receiver<bool>,
    /// When the connection did.
    pub(super) began: Instant,
    /// How long a head may take, and how long a connection may be idle.
    pub(super) patience: Duration,
}

impl Driven {
    /// Whether nothing is asked, and the client has all that was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.activity.is_idle() && !self.bytes.has_unwritten()
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(accepted: Accepted, held: Held, shared: Rc<Shared>, stranger: Stranger) {
    let end = held.end;
    let mut serving = pin!(try_serve(accepted, held, shared, stranger));
    let served = match end {
        Some(end) => match timeout_at(end.into(), serving).await {
            Ok(served) => served,
            Err(_) => Err("its time as a guest is over".into()),
        },
        None => serving.as_mut().await,
    };
    if let Err(error) = served {
        // Clients leave in all kinds of ways; nobody is to be woken for it.
        tracing::debug!(%error, "a client connection ended early");
    }
}

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

async fn try_serve(
    accepted: Accepted,
    held: Held,
    shared: Rc<Shared>,
    stranger: Stranger,
) -> Result<(), Error> {
    let (socket, peer) = accepted.join()?;
    let options = Rc::clone(&shared.options);
    let mut draining = shared.draining.clone();
    let (began, mut patience) = (Instant::now(), options.header_timeout());
    if held.place.kind == Kind::Guest {
        patience.limit = patience.limit.min(GUEST_TIME);
        patience.ceiling = patience.ceiling.min(GUEST_TIME);
    }
    let opening = timeout(
        patience.ceiling,
        open(socket, shared.tls.as_deref(), options.http2),
    );
    // Whoever has not said anything yet is not waited for once draining began.
    let opened = tokio::select! {
        opened = opening => opened,
        () = drained(&mut draining, options.drain_idle_timeout) => return Ok(()),
        () = held.place.told_to_leave() => return Ok(()),
    };
    let (mut stream, version) = opened??;
    stream.set_write_timeout(options.write_timeout);
    let given_up_max = match version {
        Version::HTTP_2 => options.http2_resets_max,
        _ => u32::MAX,
    };
    let timed = version == Version::HTTP_2 || is_measured(&patience);
    let place = Arc::clone(&held.place);
    let activity = Rc::new(Activity::new(place, began, given_up_max, timed));
    if version == Version::HTTP_2 {
        stream.set_turn(HTTP2_TURN);
    }
    let heads = (version < Version::HTTP_2).then(|| Rc::clone(&shared));
    let bytes = super::io::Bytes::new(stream, heads);
    let connection = Rc::new(Connection {
        peer,
        version,
        stranger,
        activity: Rc::clone(&activity),
        bytes: bytes.clone(),
        patience,
        headers: options.headers(),
        header_bytes: options.header_bytes(),
        shared: Rc::clone(&shared),
    });
    let driven = Driven {
        bytes,
        held,
        activity,
        options,
        draining,
        began,
        patience: patience.ceiling,
    };
    let answering = Rc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| answer(&answering, request));
    match version {
        Version::HTTP_2 => http2::drive(driven, service).await,
        _ => {
            let driven = http1::drive(driven, &shared, service).await;
            driven.inspect_err(|error| connection.log_refused(error))
        }
    }
}

/// Answers one request. In a box of its own, because a connection keeps room for it while nothing is asked.
fn answer(
    connection: &Rc<Connection>,
    request: Request<Incoming>,
) -> Pin<Box<impl Future<Output = Answer> + use<>>> {
    let connection = Rc::clone(connection);
    let (mut parts, body) = request.into_parts();
    Box::pin(async move {
        let activity = &connection.activity;
        if activity.timed && !activity.is_running() {
            // Since the last answer was ready; the parser's own time begins when all of it is sent.
            let waited = activity.waited();
            connection
                .shared
                .gateway
                .note(&connection.patience, &waited);
        }
        let mut running = activity.begin();
        // Before it is answered: clients that are known may wait for what it does, because they share what a
        // subgraph is asked, or a thread for heavy work; and a subgraph that has answered is not slow.
        connection.stranger.is_known();
        let has_both = connection.bytes.next_has_both();
        // Held until the request is answered.
        let head = connection.count(&parts);
        let refusal = connection.refusal(&parts, has_both, head.is_err());
        let mut response = match refusal {
            Some(refusal) => {
                let read = read_refused(&parts.headers, body);
                // A few bytes of HTTP/2 may be many of these, and nobody looks at them any more.
                drop(parts);
                // What is left of a guest's time is for the answer.
                match activity.place.kind {
                    Kind::Guest => drop(timeout(GUEST_TIME / 2, read).await),
                    Kind::Client => read.await,
                }
                *refusal
            }
            None => {
                let (gateway, worker) = (&connection.shared.gateway, &connection.shared.worker);
                worker.requests.set(worker.requests.get().wrapping_add(1));
                let _begun = connection.shared.starts.begin().await;
                gateway
                    .answer(&mut parts, body, connection.peer, worker)
                    .await
            }
        };
        let is_guest = activity.place.kind == Kind::Guest;
        if connection.version < Version::HTTP_2 && (is_guest || connection.shared.is_draining()) {
            close_after(&mut response);
        }
        running.answered = true;
        drop(running);
        let (timed, activity) = (connection.version == Version::HTTP_2, Rc::clone(activity));
        Ok(response.map(|body| Taken::new(body, activity, timed)))
    })
}

/// Waits until draining began, and then as long as idle connections are kept.
pub(super) async fn drained(draining: &mut watch::Receiver<bool>, idle: Duration) {
    // The sender goes only after it has told.
    let _ = draining.wait_for(|draining| *draining).await;
    tokio::time::sleep(idle).await;
}

impl Connection {
    /// The answer to a request that nobody needs to look into. `has_both`: its head has two lengths, of which the parser
    /// shows one; `has_no_memory`: there is no room for it.
    fn refusal(
        &self,
        parts: &Parts,
        has_both: bool,
        has_no_memory: bool,
    ) -> Option<Box<Response<ResponseBody>>> {
        let (gateway, headers) = (&self.shared.gateway, &parts.headers);
        // HTTP/1.1's parser counts by itself.
        if self.version == Version::HTTP_2 && headers.len() > self.headers.ceiling {
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            gateway.log_refused(parts, self.peer, &mut response, codes::limits::HEADERS);
            return Some(Box::new(response));
        }
        gateway.note(&self.headers, &headers.len());
        if is_measured(&self.header_bytes) {
            gateway.note(&self.header_bytes, &head_bytes(parts));
        }
        // RFC 9112, section 3.2: whoever came before us may have believed another one.
        let hosts = headers.get_all(header::HOST).iter().count();
        let error = if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
            let message = "the request has no `host` header, or several";
            RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message)
        } else if has_both {
            let message = "the request has both `content-length` and `transfer-encoding`";
            RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message)
        } else if has_no_memory {
            no_memory()
        } else if self.activity.place.kind == Kind::Guest && !gateway.is_health(parts) {
            RequestError {
                retry_after: Some(GUEST_SECONDS),
                ..RequestError::http(
                    codes::CONNECTIONS_LIMITED,
                    "too many connections: come back in a moment",
                )
            }
        } else {
            return None;
        };
        let mut response = refuse(&error, Media::Json);
        let code = error.errors.first().map_or("", |error| error.code);
        gateway.log_refused(parts, self.peer, &mut response, code);
        if self.version < Version::HTTP_2 {
            close_after(&mut response);
        }
        Some(Box::new(response))
    }

    /// Counts a head if it is large: over HTTP/2 a connection may have a hundred of them, whose bodies never end.
    fn count(&self, parts: &Parts) -> Result<Option<Reservation>, OutOfMemory> {
        if !self.bytes.has_large_heads() {
            return Ok(None);
        }
        let bytes = head_bytes(parts);
        if bytes <= HEAD_FREE {
            return Ok(None);
        }
        let head = self.shared.reserve();
        head.grow(bytes)?;
        Ok(Some(head))
    }

    /// Notes a request that the parser has refused, of which no more is known.
    fn log_refused(&self, error: &Error) {
        let Some(error) = error.downcast_ref::<hyper::Error>() else {
            return;
        };
        let (status, code) = match error {
            error if !error.is_parse() => return,
            error if error.is_parse_too_large() => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                // The parser has one word for both, and refuses too many headers before it has looked at the size.
                match self.bytes.largest_head() < self.header_bytes.ceiling.min(URI_BYTES_MAX) {
                    true => codes::limits::HEADERS,
                    false => codes::limits::HEADER_SIZE,
                },
            ),
            _ => (StatusCode::BAD_REQUEST, codes::INVALID_GRAPHQL_REQUEST),
        };
        // No method that there is.
        let request = Request::builder().method("_").body(());
        if let Ok(request) = request {
            let (parts, ()) = request.into_parts();
            let gateway = &self.shared.gateway;
            // The parser has answered already.
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = status;
            gateway.log_refused(&parts, self.peer, &mut response, code);
        }
    }
}

/// Says that the connection ends with this answer.
fn close_after(response: &mut Response<ResponseBody>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
}

/// About as many bytes as the head of a request has in HTTP/1.1.
fn head_bytes(request: &Parts) -> usize {
    let uri = request.uri.path_and_query();
    let uri = uri.map_or(0, |uri| uri.as_str().len());
    let line = request.method.as_str().len() + uri + " HTTP/1.1\r\n\r\n ".len();
    let fields = request.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + fields.sum::<usize>()
}

/// Agrees on TLS and on the version of HTTP.
async fn open(
    socket: Socket,
    tls: Option<&ServerTls>,
    http2: bool,
) -> io::Result<(Stream, Version)> {
    if let Some(tls) = tls {
        let acceptor = tokio_rustls::TlsAcceptor::from(tls.config());
        let stream = Stream::tls(acceptor.accept(socket).await?);
        let version = match stream.agreed_on_http2() {
            true => Version::HTTP_2,
            false => Version::HTTP_11,
        };
        return Ok((stream, version));
    }
    let mut stream = Stream::plain(socket);
    if !http2 {
        return Ok((stream, Version::HTTP_11));
    }
    // No more than that: a connection on which nobody says anything shall cost next to nothing.
    let (mut first, mut length) = ([0; PREFACE.len()], 0);
    let version = loop {
        let read = stream.read(&mut first[length..]).await?;
        length += read;
        match &first[..length] {
            PREFACE => break Version::HTTP_2,
            begun if read == 0 || !PREFACE.starts_with(begun) => break Version::HTTP_11,
            _ => {}
        }
    };
    stream.unread(Bytes::copy_from_slice(&first[..length]));
    Ok((stream, version))
}
