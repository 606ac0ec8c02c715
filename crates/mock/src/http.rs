//! The HTTP/1.1 server: one current-thread runtime per worker, all accepting from the same socket.
//!
//! Routes: `POST` and `GET` on `/graphql/<name>` and `/<name>` (with one subgraph also `/graphql` and `/`), `/stats`,
//! `/requests`, `/health`.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread::JoinHandle,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Map, Value, json};
use tokio::{sync::watch, time::Instant};

use crate::service::{Reply, Service, Transfer};

/// Longest request body.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Pieces of a slow body.
const SLOW_PIECES: u32 = 10;

/// A running server. Dropping it stops the workers.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds and starts `workers` threads.
    pub fn start(
        service: Arc<Service>,
        addr: impl ToSocketAddrs,
        workers: usize,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let mut threads = Vec::new();
        for i in 0..workers.max(1) {
            let listener = listener.try_clone()?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()?;
            let (service, stopped) = (service.clone(), stopped.clone());
            let thread = std::thread::Builder::new()
                .name(format!("mock-{i}"))
                .spawn(move || runtime.block_on(accept(listener, service, stopped)))?;
            threads.push(thread);
        }
        Ok(Server {
            addr,
            stop,
            workers: threads,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a subgraph.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/graphql/{name}", self.addr)
    }

    /// Waits until the workers end, which they do only after a stop.
    pub fn join(mut self) {
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

async fn accept(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => stream,
                        // Out of file descriptors or a connection that is gone already; the next may do better.
                        Err(_) => {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            continue;
                        }
                    },
                    _ = stopped.changed() => return,
                };
                let _ = stream.set_nodelay(true);
                let service = service.clone();
                tokio::task::spawn_local(async move {
                    let serve = service_fn(move |request| answer(service.clone(), request));
                    // An error here is the client's or an injected one; there is nobody to tell.
                    let _ = http1::Builder::new()
                        .timer(TokioTimer::new())
                        // A gateway that plans for half a minute must find its idle connections open.
                        .header_read_timeout(None)
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        })
        .await;
}

/// An injected fault that ends the connection.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was closed on purpose")
    }
}

impl std::error::Error for Closed {}

async fn answer(
    service: Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Payload>, Closed> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let name = path.strip_prefix("/graphql/").or(path.strip_prefix('/'));
    let name = match name {
        Some("" | "graphql") => single(&service).unwrap_or_default(),
        Some(name) => name.to_string(),
        None => String::new(),
    };
    if service.subgraph(&name).is_none() {
        let reply = side(&service, &parts.method, path);
        return send(reply, Instant::now()).await;
    }
    let body = match parts.method {
        Method::POST => match collect(body).await {
            Some(body) => body,
            None => {
                let reply = Reply::text(413, "The request body is too long or incomplete.");
                return send(reply, Instant::now()).await;
            }
        },
        Method::GET => get_body(parts.uri.query().unwrap_or("")),
        Method::OPTIONS => return send(Reply::text(204, ""), Instant::now()).await,
        _ => {
            return send(Reply::text(405, "Use POST or GET."), Instant::now()).await;
        }
    };
    let arrived = Instant::now();
    let headers = header_list(&parts.headers, service.is_recording(&name));
    let reply = service.respond(&name, &headers, &body);
    let mut reply = reply.unwrap_or_else(|| Reply::text(404, "No such subgraph."));
    if reply.content_type == "application/json" && wants_graphql_json(&parts.headers) {
        reply.content_type = "application/graphql-response+json";
    }
    send(reply, arrived).await
}

fn single(service: &Service) -> Option<String> {
    let mut names = service.names();
    match (names.next(), names.next()) {
        (Some(name), None) => Some(name.to_string()),
        _ => None,
    }
}

/// Everything that is no subgraph.
fn side(service: &Service, method: &Method, path: &str) -> Reply {
    let json = |value: Value| Reply::new(200, "application/json", value.to_string());
    match (method, path) {
        (&Method::GET, "/health") => Reply::text(200, "OK"),
        (&Method::GET, "/stats") => json(service.stats()),
        (&Method::DELETE, "/stats" | "/requests") | (&Method::POST, "/stats/reset") => {
            service.reset();
            json(service.stats())
        }
        (&Method::GET, "/requests") => json(
            service
                .recorded()
                .iter()
                .map(|request| {
                    let headers = request.headers.iter();
                    json!({
                        "subgraph": &*request.subgraph,
                        "headers": headers.map(|(n, v)| json!([n, v])).collect::<Vec<_>>(),
                        "body": String::from_utf8_lossy(&request.body),
                    })
                })
                .collect(),
        ),
        _ => {
            let names: Vec<&str> = service.names().collect();
            let known = names.join(", /graphql/");
            Reply::text(
                404,
                format!("Nothing here. There is: /graphql/{known}, /stats, /requests, /health\n"),
            )
        }
    }
}

async fn collect(mut body: Incoming) -> Option<Bytes> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        match &first {
            None => first = Some(data),
            Some(start) => {
                if rest.is_empty() {
                    rest.extend_from_slice(start);
                }
                rest.extend_from_slice(&data);
            }
        }
        if rest.len() > BODY_BYTES_MAX {
            return None;
        }
    }
    if rest.is_empty() {
        return Some(first.unwrap_or_default());
    }
    Some(rest.freeze())
}

/// All headers, or only those that control the mock.
fn header_list(headers: &HeaderMap, all: bool) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| all || name.as_str().starts_with("x-mock-"))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_string(), value)
        })
        .collect()
}

fn wants_graphql_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|accept| {
            let graphql = accept.find("application/graphql-response+json");
            let json = accept.find("application/json");
            // Named first, or alone: clients list what they like best first.
            graphql.is_some_and(|g| json.is_none_or(|j| g < j))
        })
}

/// The body a POST would have for the query string of a GET.
fn get_body(query: &str) -> Bytes {
    let mut request = Map::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode(value);
        match name {
            "query" | "operationName" => {
                request.insert(name.to_string(), value.into());
            }
            "variables" | "extensions" => {
                // Something that is no JSON stays a string, which is refused later.
                let parsed = serde_json::from_str(&value).unwrap_or_else(|_| value.into());
                request.insert(name.to_string(), parsed);
            }
            _ => {}
        }
    }
    Value::Object(request).to_string().into()
}

fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let hex = |b: u8| char::from(b).to_digit(16);
        let escaped = match bytes.get(i..i + 3) {
            Some([b'%', high, low]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (bytes[i], escaped) {
            (_, Some((high, low))) => {
                out.push((high * 16 + low) as u8);
                i += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

async fn send(reply: Reply, arrived: Instant) -> Result<Response<Payload>, Closed> {
    if !reply.delay.is_zero() {
        tokio::time::sleep_until(arrived + reply.delay).await;
    }
    if reply.transfer == Transfer::Drop {
        return Err(Closed);
    }
    let length = reply.body.len();
    let mut response = Response::new(Payload::new(reply.body, reply.transfer));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let set = http::HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, set(reply.content_type));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, set("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, set("*"));
    if reply.transfer == Transfer::Truncate {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Ok(response)
}

/// A response body: whole, slow, or ending early.
struct Payload {
    left: Bytes,
    piece: usize,
    pause: Duration,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    truncate: bool,
    flushed: bool,
}

impl Payload {
    fn new(body: Bytes, transfer: Transfer) -> Payload {
        let mut payload = Payload {
            piece: body.len().max(1),
            left: body,
            pause: Duration::ZERO,
            sleep: None,
            truncate: false,
            flushed: false,
        };
        match transfer {
            Transfer::Slow(time) => {
                payload.piece = payload.left.len().div_ceil(SLOW_PIECES as usize).max(1);
                payload.pause = time / SLOW_PIECES;
            }
            Transfer::Truncate => {
                payload.truncate = true;
                payload.left.truncate(payload.left.len() / 2);
            }
            Transfer::Whole | Transfer::Drop => {}
        }
        payload
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        if self.left.is_empty() {
            if !self.truncate {
                return Poll::Ready(None);
            }
            if !self.flushed {
                // A pending body lets hyper send what it holds; an error at once would drop it unsent.
                self.flushed = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Some(Err(Closed)));
        }
        if !self.pause.is_zero() {
            let pause = self.pause;
            let sleep = self
                .sleep
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            if Future::poll(sleep.as_mut(), context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        let length = self.piece.min(self.left.len());
        let piece = self.left.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && !self.truncate
    }

    fn size_hint(&self) -> SizeHint {
        if self.truncate {
            SizeHint::default()
        } else {
            SizeHint::with_exact(self.left.len() as u64)
        }
    }
}
