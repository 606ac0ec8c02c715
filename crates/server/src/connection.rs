//! One connection of a client: TLS, the version of HTTP, requests, the end.
//!
//! The version is agreed on during the TLS handshake; without TLS the first bytes tell (RFC 9113, section 3.3). Nothing
//! waits for a client for ever: the handshake, the first bytes and the head of the first request have one
//! `header_read_timeout` together, the next request has another, writing has `write_timeout`.
//!
//! Connections that have no place of their own ([`crate::places`]) are answered about health, and told so otherwise; all of
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

use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header, request::Parts,
    uri::Authority,
};
use hyper::{Request, body::Incoming, service::service_fn};
use ogive_base::{OutOfMemory, Peer, Reservation};
use ogive_limits::Measured;
use ogive_net::{ServerTls, Socket, Stream};
use tokio::{
    io::AsyncReadExt,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    activity::{Activity, Taken},
    body::ResponseBody,
    connection_queue::NewConnection,
    drain_body::read_refused,
    draining::drained,
    driven::{Driven, Error},
    events::PartFraming,
    host_header::{by_target, is_host, is_same_host},
    http1, http2, http2_upgrade,
    io::{Bytes, HEAD_FREE},
    listener::Accepted,
    places::{GUEST_TIME, Kind, PlaceGuard},
    service::{ClientCertificate, Refusal, Service},
    shared::{CountedConnection, CountsMemory, Shared},
};

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of HTTP/2 that are read and written before others have their turn. Few, because a frame may have 9 bytes, and
/// each takes its time.
const HTTP2_TURN: usize = 16 << 10;

/// Longest URL that the parser of HTTP/1.1 takes.
const URI_BYTES_MAX: usize = 65_534;

/// What becomes of a request.
type Answer = Result<Response<Taken>, Infallible>;

/// A connection on which requests come.
struct Connection<S: Service> {
    shared: Rc<Shared<S>>,
    peer: Peer,
    /// What the client has shown of itself.
    certificate: Option<ClientCertificate>,
    version: Version,
    queued: NewConnection,
    activity: Rc<Activity>,
    bytes: Bytes,
    /// How long a head may take.
    patience: Measured<Duration>,
    headers: Measured<usize>,
    header_bytes: Measured<usize>,
}

/// Serves a connection until it ends.
pub(crate) async fn serve<S: Service>(
    accepted: Accepted,
    place: PlaceGuard,
    shared: Rc<Shared<S>>,
    queued: NewConnection,
) {
    let end = place.end;
    let mut serving = pin!(try_serve(accepted, place, shared, queued));
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

async fn try_serve<S: Service>(
    accepted: Accepted,
    guard: PlaceGuard,
    shared: Rc<Shared<S>>,
    queued: NewConnection,
) -> Result<(), Error> {
    let (socket, peer) = accepted.join()?;
    let options = Rc::clone(&shared.options);
    let mut draining = shared.draining.receiver();
    let (began, mut patience) = (Instant::now(), options.header_timeout());
    if guard.place.kind == Kind::Guest {
        patience.limit = patience.limit.min(GUEST_TIME);
        patience.ceiling = patience.ceiling.min(GUEST_TIME);
    }
    // In a box, so that a connection keeps no room for its handshake.
    let opening = Box::pin(open(socket, shared.tls.as_deref(), options.http2));
    let opening = timeout(patience.ceiling, opening);
    // Whoever has not said anything yet is not waited for once draining began.
    let opened = tokio::select! {
        opened = opening => opened,
        () = drained(&mut draining, options.drain_idle_timeout) => return Ok(()),
        () = guard.place.told_to_leave() => return Ok(()),
    };
    let (mut stream, version) = opened??;
    let _counted = CountedConnection::new(&shared);
    let certificate = stream.peer_certificate().map(ClientCertificate);
    stream.set_write_timeout(options.write_timeout);
    let given_up_max = match version {
        Version::HTTP_2 => options.http2_resets_max,
        _ => u32::MAX,
    };
    let timed = version == Version::HTTP_2 || patience.is_only_measured();
    let place = Arc::clone(&guard.place);
    let activity = Rc::new(Activity::new(place, began, given_up_max, timed));
    if version == Version::HTTP_2 {
        stream.set_turn(HTTP2_TURN);
    }
    let heads = (version < Version::HTTP_2).then(|| Rc::clone(&shared) as Rc<dyn CountsMemory>);
    let bytes = Bytes::new(stream, heads);
    let connection = Rc::new(Connection {
        peer,
        certificate,
        version,
        queued,
        activity: Rc::clone(&activity),
        bytes: bytes.clone(),
        patience,
        headers: options.headers(),
        header_bytes: options.header_bytes(),
        shared: Rc::clone(&shared),
    });
    let driven = Driven {
        bytes,
        place: guard,
        activity,
        options,
        draining: shared.draining.clone(),
        began,
        patience: patience.ceiling,
    };
    let answering = Rc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| answer(&answering, request));
    // In boxes, so that a connection keeps no room for what it does not speak, or not any more.
    if version == Version::HTTP_2 {
        let opens_websockets = shared.service.opens_websockets();
        return Box::pin(http2::drive(driven, service, opens_websockets)).await;
    }
    let after = Box::pin(http1::drive(&driven, service)).await;
    let after = after.inspect_err(|error| connection.log_refused(error))?;
    drop(connection);
    match after {
        Some(after) => after.go_on(&driven).await,
        None => Ok(()),
    }
}

/// Answers one request. In a box of its own, because a connection keeps room for it while nothing is asked.
fn answer<S: Service>(
    connection: &Rc<Connection<S>>,
    request: Request<Incoming>,
) -> Pin<Box<impl Future<Output = Answer> + use<S>>> {
    let connection = Rc::clone(connection);
    let (mut parts, body) = request.into_parts();
    let framing = match parts.version {
        Version::HTTP_11 => PartFraming::Chunked,
        _ => PartFraming::Plain,
    };
    let hears_body = connection.version < Version::HTTP_2 && parts.method != Method::HEAD;
    Box::pin(async move {
        let mut upgraded = None;
        if connection.version == Version::HTTP_2 && parts.method == Method::CONNECT {
            upgraded = http2_upgrade::translate(&mut parts);
        }
        let activity = &connection.activity;
        if activity.timed && !activity.is_running() {
            // Since the last answer was ready; the parser's own time begins when all of it is sent.
            let waited = activity.waited();
            let service = &connection.shared.service;
            service.note(&connection.patience, &waited);
        }
        let mut running = activity.begin();
        // Before it is answered: clients that are known may wait for what it does, because they share what a
        // subgraph is asked, or a thread for heavy work; and a subgraph that has answered is not slow.
        connection.queued.request_began();
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
                let shared = &*connection.shared;
                shared.requests.set(shared.requests.get().wrapping_add(1));
                let _begun = shared.queue.begin().await;
                let service = &shared.service;
                if connection.version < Version::HTTP_2 {
                    by_target(&mut parts);
                }
                if let Some(certificate) = &connection.certificate {
                    parts.extensions.insert(certificate.clone());
                }
                service
                    .answer(&mut parts, body, connection.peer, &shared.worker)
                    .await
            }
        };
        if let Some(upgraded) = upgraded {
            let write_timeout = connection.shared.options.write_timeout;
            http2_upgrade::go_on(upgraded, &mut response, activity, write_timeout);
        } else if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            activity.upgrade.set(response.body_mut().take_upgrade());
        }
        let events = hears_body.then(|| response.body_mut().take_events());
        let is_last = activity.place.kind == Kind::Guest || matches!(events, Some(Some(_)));
        // The head of this answer is to come first.
        connection.bytes.will_write();
        *activity.events.borrow_mut() = events.flatten().map(|events| (events, framing));
        if connection.version < Version::HTTP_2
            && (is_last || connection.shared.draining.has_begun())
        {
            close_after(&mut response);
        }
        running.answered = true;
        drop(running);
        let (timed, activity) = (connection.version == Version::HTTP_2, Rc::clone(activity));
        Ok(response.map(|body| Taken::new(body, activity, timed)))
    })
}

impl<S: Service> Connection<S> {
    /// The answer to a request that nobody needs to look into. `has_both`: its head has two lengths, of which the parser
    /// shows one; `has_no_memory`: there is no room for it.
    fn refusal(
        &self,
        parts: &Parts,
        has_both: bool,
        has_no_memory: bool,
    ) -> Option<Box<Response<ResponseBody>>> {
        let (service, headers) = (&self.shared.service, &parts.headers);
        // HTTP/1.1's parser counts by itself.
        if self.version == Version::HTTP_2 && headers.len() > self.headers.ceiling {
            let response = service.refuse(Refusal::HeaderCount, parts, self.peer);
            return Some(Box::new(response));
        }
        service.note(&self.headers, &headers.len());
        if self.header_bytes.is_only_measured() {
            service.note(&self.header_bytes, &head_bytes(parts));
        }
        // Whoever came before us may have believed another one.
        let mut hosts = headers.get_all(header::HOST).iter();
        let has_host = match (hosts.next(), hosts.next()) {
            (None, _) => parts.version != Version::HTTP_11,
            (Some(host), None) => {
                let is_same = |to: &Authority| is_same_host(to.as_str(), host.as_bytes());
                let authority = parts.uri.authority();
                let authority = authority.filter(|_| self.version == Version::HTTP_2);
                is_host(host.as_bytes()) && authority.is_none_or(is_same)
            }
            (Some(_), Some(_)) => false,
        };
        // That of a whole URL counts instead, and has no room for a user.
        let authority = parts.uri.authority();
        let has_host = has_host && authority.is_none_or(|to| is_host(to.as_str().as_bytes()));
        let refusal = if !has_host {
            Refusal::Host
        } else if has_both || is_coded(headers) {
            Refusal::Framing
        } else if has_no_memory {
            Refusal::Memory
        } else if self.activity.place.kind == Kind::Guest && !service.is_health(parts) {
            Refusal::Connections
        } else {
            return None;
        };
        let mut response = service.refuse(refusal, parts, self.peer);
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

    /// Whether no head so far was too large for the parser.
    fn has_small_heads(&self) -> bool {
        self.bytes.largest_head() < self.header_bytes.ceiling.min(URI_BYTES_MAX)
    }

    /// Notes a request that the parser has refused, of which no more is known.
    fn log_refused(&self, error: &Error) {
        let Some(error) = error.downcast_ref::<hyper::Error>() else {
            return;
        };
        let refusal = match error {
            error if !error.is_parse() => return,
            // The parser has one word for both, and refuses too many headers before it has looked at the size.
            error if error.is_parse_too_large() => {
                if self.has_small_heads() {
                    Refusal::HeaderCount
                } else {
                    Refusal::HeaderSize
                }
            }
            _ => Refusal::Malformed,
        };
        // No method that there is.
        let request = Request::builder().method("_").body(());
        if let Ok(request) = request {
            let (head, ()) = request.into_parts();
            // The parser has answered already.
            drop(self.shared.service.refuse(refusal, &head, self.peer));
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
        let version = if stream.agreed_on_http2() {
            Version::HTTP_2
        } else {
            Version::HTTP_11
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
    stream.unread(bytes::Bytes::copy_from_slice(&first[..length]));
    Ok((stream, version))
}

/// Whether a body comes in another coding than in chunks, or in chunks twice (RFC 9112, section 6.1): nobody undoes it.
fn is_coded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(first) = codings.next() else {
        return false;
    };
    !first.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some()
}
