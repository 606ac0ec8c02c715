//! One connection of a client: TLS, the version of HTTP, requests, the end.
//!
//! The version is agreed on during the TLS handshake; without TLS the first bytes tell (RFC 9113, section 3.3). Nothing
//! waits for a client for ever: the handshake, the first bytes, the head of a request and the next request each have
//! `header_read_timeout`, writing has `write_timeout`.
//!
//! An HTTP/2 client may open and give up requests faster than they can be answered ("rapid reset"). Those not yet
//! started are bounded by the protocol's implementation, those started by [`Activity`]: a connection that gives up most
//! of what it asks is closed.
//!
//! Draining: HTTP/2 is told not to send more. HTTP/1.1 has no such word before the next answer, so connections that
//! are idle may bring one more request for `drain_idle_timeout`, whose answer says `connection: close`.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::IpAddr,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, Version, header, request::Parts};
use hyper::{
    Request,
    body::{Body, Frame, Incoming, SizeHint},
    rt::Executor,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use ogive_config::Measured;
use ogive_telemetry::codes;
use ogive_transport::{ServerTls, Socket, Stream};
use tokio::{
    io::AsyncReadExt,
    sync::{Notify, watch},
    task::coop::unconstrained,
    time::{Instant, timeout},
};

use super::{ServeOptions, clock::Clock, listener::Accepted, starts::Starts, strangers::Stranger};
use crate::{
    Gateway, RequestError, WorkerState, body::ResponseBody, linger::read_refused,
    measured::is_measured, media::Media, respond::refuse,
};

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Streams that a client has given up before anybody looked at them; more close the connection.
const PENDING_RESETS_MAX: usize = 20;
/// Bytes of HTTP/2 that are read and written before others have their turn. Few, because a frame may have 9 bytes, and
/// each takes its time.
const HTTP2_TURN: usize = 16 << 10;
/// Headers of a request that HTTP/1.1's parser admits unless it is told otherwise.
const PARSER_HEADERS_MAX: usize = 100;

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
    fn is_draining(&self) -> bool {
        // There is one change only, and nobody looks at it here; the sender goes after it.
        self.draining.has_changed().unwrap_or(true)
    }
}

/// A connection on which requests come.
struct Connection {
    shared: Rc<Shared>,
    address: Option<IpAddr>,
    version: Version,
    stranger: Stranger,
    activity: Rc<Activity>,
    /// How long a head may take.
    patience: Measured<Duration>,
    headers: Measured<usize>,
    header_bytes: Measured<usize>,
}

/// What happens on one connection.
struct Activity {
    running: Cell<u32>,
    begun: Cell<u32>,
    given_up: Cell<u32>,
    given_up_max: u32,
    /// Whether anybody wants to know when something happened last.
    timed: bool,
    last: Cell<Instant>,
    /// Answers on their way: number, and when something was taken of them last.
    answers: RefCell<Vec<(u64, Instant)>>,
    next: Cell<u64>,
    too_many: Notify,
}

/// A request that is being answered. Dropped without an answer, the client has given it up.
struct Running<'a> {
    activity: &'a Activity,
    answered: bool,
}

impl Activity {
    fn new(given_up_max: u32, timed: bool) -> Self {
        Activity {
            timed,
            running: Cell::new(0),
            begun: Cell::new(0),
            given_up: Cell::new(0),
            given_up_max,
            last: Cell::new(Instant::now()),
            answers: RefCell::default(),
            next: Cell::new(0),
            too_many: Notify::new(),
        }
    }
    fn begin(&self) -> Running<'_> {
        self.running.set(self.running.get() + 1);
        self.begun.set(self.begun.get().saturating_add(1));
        Running {
            activity: self,
            answered: false,
        }
    }
    /// Whether nothing of an answer was taken for so long.
    fn is_stalled_for(&self, time: Duration) -> bool {
        let answers = self.answers.borrow();
        answers.iter().any(|(_, last)| last.elapsed() >= time)
    }
    fn is_idle_for(&self, time: Duration) -> bool {
        self.running.get() == 0 && self.last.get().elapsed() >= time
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let activity = self.activity;
        activity.running.set(activity.running.get() - 1);
        if activity.timed {
            activity.last.set(Instant::now());
        }
        if !self.answered {
            let given_up = activity.given_up.get() + 1;
            activity.given_up.set(given_up);
            if given_up > activity.given_up_max && given_up > activity.begun.get() / 2 {
                activity.too_many.notify_one();
            }
        }
    }
}

/// An answer on its way. Taking it counts as activity, so that a slow HTTP/2 client is not idle; HTTP/1.1 has time-outs
/// of its own for that.
struct Taken {
    body: ResponseBody,
    /// With the number of the answer.
    activity: Option<(Rc<Activity>, u64)>,
}

impl Taken {
    fn new(body: ResponseBody, activity: Option<Rc<Activity>>) -> Self {
        let activity = activity.map(|activity| {
            let number = activity.next.get();
            activity.next.set(number + 1);
            let now = Instant::now();
            activity.answers.borrow_mut().push((number, now));
            (activity, number)
        });
        Taken { body, activity }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some((activity, number)) = &self.activity {
            let mut answers = activity.answers.borrow_mut();
            answers.retain(|(other, _)| other != number);
        }
    }
}

/// Bytes of an answer that an HTTP/2 client takes at a time; if it does not in time, the connection is closed.
const TAKEN_BYTES: usize = 64 << 10;

impl Body for Taken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some((activity, number)) = &self.activity else {
            return Pin::new(&mut self.body).poll_frame(cx);
        };
        let now = Instant::now();
        activity.last.set(now);
        let mut answers = activity.answers.borrow_mut();
        if let Some((_, last)) = answers.iter_mut().find(|(other, _)| other == number) {
            *last = now;
        }
        drop(answers);
        self.body.poll_piece(cx, TAKEN_BYTES)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(accepted: Accepted, shared: Rc<Shared>, stranger: Stranger) {
    if let Err(error) = try_serve(accepted, shared, stranger).await {
        // Clients leave in all kinds of ways; nobody is to be woken for it.
        tracing::debug!(%error, "a client connection ended early");
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn try_serve(
    accepted: Accepted,
    shared: Rc<Shared>,
    stranger: Stranger,
) -> Result<(), Error> {
    let (socket, address) = accepted.join()?;
    let options = Rc::clone(&shared.options);
    let mut draining = shared.draining.clone();
    let (began, patience) = (Instant::now(), options.header_timeout());
    let opening = timeout(
        patience.ceiling,
        open(socket, shared.tls.as_deref(), options.http2),
    );
    // Whoever has not said anything yet is not waited for once draining began.
    let opened = tokio::select! {
        opened = opening => opened,
        () = drained(&mut draining, options.drain_idle_timeout) => return Ok(()),
    };
    let (mut stream, version) = opened??;
    shared.gateway.note(&patience, &began.elapsed());
    stream.set_write_timeout(options.write_timeout);
    let given_up_max = match version {
        Version::HTTP_2 => options.http2_resets_max,
        _ => u32::MAX,
    };
    let timed = version == Version::HTTP_2 || is_measured(&patience);
    let activity = Rc::new(Activity::new(given_up_max, timed));
    let connection = Rc::new(Connection {
        address: address.map(|address| address.ip()),
        version,
        stranger,
        activity: Rc::clone(&activity),
        patience,
        headers: options.headers(),
        header_bytes: options.header_bytes(),
        shared: Rc::clone(&shared),
    });
    let service = service_fn(move |request: Request<Incoming>| {
        let connection = Rc::clone(&connection);
        let (mut parts, body) = request.into_parts();
        // In a box of its own, because a connection keeps room for it while nothing is asked.
        Box::pin(async move {
            let activity = &connection.activity;
            if activity.timed && activity.running.get() == 0 {
                // Since the last answer was ready; the parser's own time begins when all of it is sent.
                let waited = activity.last.get().elapsed();
                connection
                    .shared
                    .gateway
                    .note(&connection.patience, &waited);
            }
            let mut running = activity.begin();
            // Before it is answered: clients that are known may wait for what it does, because they share what a
            // subgraph is asked, or a thread for heavy work; and a subgraph that has answered is not slow.
            connection.stranger.is_known();
            let mut response = match connection.refusal(&parts) {
                Some(refusal) => {
                    read_refused(&parts.headers, body).await;
                    *refusal
                }
                None => {
                    let (gateway, worker) = (&connection.shared.gateway, &connection.shared.worker);
                    worker.requests.set(worker.requests.get().wrapping_add(1));
                    let _begun = connection.shared.starts.begin().await;
                    gateway
                        .answer(&mut parts, body, connection.address, worker)
                        .await
                }
            };
            if connection.version < Version::HTTP_2 && connection.shared.is_draining() {
                close_after(&mut response);
            }
            running.answered = true;
            drop(running);
            let activity = (connection.version == Version::HTTP_2).then(|| Rc::clone(activity));
            Ok::<_, Infallible>(response.map(|body| Taken::new(body, activity)))
        })
    });
    match version {
        Version::HTTP_2 => {
            stream.set_turn(HTTP2_TURN);
            let serving = http2::Builder::new(LocalExecutor)
                .timer(TokioTimer::new())
                .max_concurrent_streams(options.http2_streams_max)
                .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
                .max_header_list_size(options.header_bytes().ceiling.min(u32::MAX as usize) as u32)
                .keep_alive_interval(patience.ceiling)
                .keep_alive_timeout(patience.ceiling)
                .serve_connection(TokioIo::new(stream), service);
            let mut serving = pin!(serving);
            let mut leaving = false;
            let tick = patience.ceiling.min(options.write_timeout);
            loop {
                tokio::select! {
                    result = serving.as_mut() => return Ok(result?),
                    () = activity.too_many.notified() => {
                        return Err("most requests are given up".into());
                    }
                    _ = draining.wait_for(|draining| *draining), if !leaving => {
                        leaving = true;
                        serving.as_mut().graceful_shutdown();
                    }
                    () = tokio::time::sleep(tick) => {
                        if activity.is_stalled_for(options.write_timeout) {
                            return Err("nothing of an answer is taken".into());
                        }
                        if activity.is_idle_for(patience.ceiling) {
                            if leaving {
                                return Ok(());
                            }
                            leaving = true;
                            serving.as_mut().graceful_shutdown();
                        }
                    }
                }
            }
        }
        _ => {
            let mut builder = http1::Builder::new();
            builder
                .timer(Clock::default())
                .header_read_timeout(patience.ceiling)
                .max_header_size(options.header_bytes().ceiling);
            // Where it is told, the parser clears so much room for every request.
            let headers_max = options.headers().ceiling;
            if headers_max != PARSER_HEADERS_MAX {
                builder.max_headers(headers_max);
            }
            let serving = builder.serve_connection(TokioIo::new(stream), service);
            let mut serving = pin!(serving);
            // Not part of the task's share of time: it is to wait as soon as it was asked.
            let drained = unconstrained(drained(&mut draining, options.drain_idle_timeout));
            let mut drained = pin!(drained);
            let mut waits = false;
            let served = poll_fn(|cx| {
                if let Poll::Ready(result) = serving.as_mut().poll(cx) {
                    return Poll::Ready(Some(result));
                }
                // Asked once, so that it wakes this task, and then only when there is something to hear: asking takes
                // locks.
                if (!waits || shared.is_draining()) && drained.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                waits = true;
                Poll::Pending
            });
            if let Some(result) = served.await {
                return Ok(result?);
            }
            serving.as_mut().graceful_shutdown();
            Ok(serving.await?)
        }
    }
}

/// Waits until draining began, and then as long as idle connections are kept.
async fn drained(draining: &mut watch::Receiver<bool>, idle: Duration) {
    // The sender goes only after it has told.
    let _ = draining.wait_for(|draining| *draining).await;
    tokio::time::sleep(idle).await;
}

impl Connection {
    /// The answer to a request that nobody needs to look into.
    fn refusal(&self, parts: &Parts) -> Option<Box<Response<ResponseBody>>> {
        let (gateway, headers) = (&self.shared.gateway, &parts.headers);
        // HTTP/1.1's parser counts by itself.
        if self.version == Version::HTTP_2 && headers.len() > self.headers.ceiling {
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Some(Box::new(response));
        }
        gateway.note(&self.headers, &headers.len());
        if is_measured(&self.header_bytes) {
            gateway.note(&self.header_bytes, &head_bytes(parts));
        }
        // RFC 9112, section 3.2: whoever came before us may have believed another one.
        let hosts = headers.get_all(header::HOST).iter().count();
        if hosts == 1 || (hosts == 0 && parts.version != Version::HTTP_11) {
            return None;
        }
        let message = "the request has no `host` header, or several";
        let error = RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message);
        let mut response = refuse(&error, Media::Json);
        close_after(&mut response);
        Some(Box::new(response))
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

/// Runs the requests of an HTTP/2 connection on the worker's thread.
#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
