//! WebSocket connections to subgraphs, shared by all subscriptions that agree on everything but what they ask.
//!
//! A connection is known by subgraph, URL, TLS, sub-protocol and the headers that rules give it, which are those of one
//! client or of all. It is closed when its last subscription ends. While one subscription makes a connection, others that
//! would share it wait.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ogive_base::FastMap;
use ogive_failure::Failure;
use ogive_stream::{
    Close, Protocol, Received, WebSocket, WebSocketLimits,
    handshake::{ClientHandshake, UpgradeFailure},
    upstream::{Event, Upstream},
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::timeout,
};

use super::{
    driven::{Action, EventConnection},
    failures::{closed, lost, malformed, no_stream, refused, too_late},
    queue::{End, Queue, queue},
    subscribe_request::SubscribeRequest,
};
use crate::{
    Signer, Stream,
    address::Address,
    answer::no_redirect,
    connect::connect_http1,
    endpoint::Endpoint,
    error::{HTTP_ERROR, chain, failed},
    exchange::{USER_AGENT, tls_of},
    sign,
};

/// A place for one connection.
type Slot = Rc<Mutex<Option<Handle>>>;

/// The connections of one worker.
#[derive(Default)]
pub(crate) struct Sockets {
    slots: RefCell<FastMap<Box<[u8]>, Slot>>,
    /// How many slots there may be before those are cleared out that nobody uses.
    crowded: Cell<usize>,
}

/// A connection that subscriptions can be given.
struct Handle {
    commands: mpsc::WeakUnboundedSender<Action>,
    retired: Arc<AtomicBool>,
    subscriptions: Arc<AtomicUsize>,
    signer: Option<Arc<dyn Signer>>,
}

/// The events of one subscription.
pub(crate) struct SocketEvents {
    queue: Queue,
    number: u64,
    commands: mpsc::UnboundedSender<Action>,
    subscriptions: Arc<AtomicUsize>,
}

impl Sockets {
    /// Opens a subscription on a connection that is there, or on a new one.
    pub(crate) async fn subscribe(
        &self,
        opening: &SubscribeRequest<'_>,
        address: &Address,
        protocol: Protocol,
    ) -> Result<SocketEvents, Failure> {
        let slot = self.slot(opening, address, protocol)?;
        let mut slot = slot.lock().await;
        let subscriptions_max = opening.source.connection_subscriptions_max;
        if let Some(handle) = &*slot
            && let Some(commands) = handle.usable(opening.endpoint, subscriptions_max)
            && let Some(events) = handle.subscribe(commands, opening).await
        {
            return Ok(events);
        }
        let (handle, commands) = connect(opening, address, protocol).await?;
        let events = handle.subscribe(commands, opening).await;
        *slot = Some(handle);
        events.ok_or_else(|| lost(opening.endpoint, "the connection ended at once"))
    }

    fn slot(
        &self,
        opening: &SubscribeRequest<'_>,
        address: &Address,
        protocol: Protocol,
    ) -> Result<Slot, Failure> {
        let endpoint = opening.endpoint;
        let tls = tls_of(endpoint, address)?.map(|tls| tls.current().1);
        let mut key = Vec::new();
        let mut add = |bytes: &[u8]| {
            key.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
            key.extend_from_slice(bytes);
        };
        add(endpoint.name.as_bytes());
        add(protocol.name().as_bytes());
        add(address.target.to_string().as_bytes());
        add(address.host.as_bytes());
        add(address.path.as_str().as_bytes());
        add(&tls.unwrap_or_default().to_ne_bytes());
        add(&[u8::from(tls.is_some())]);
        for (name, value) in opening.headers {
            add(name.as_str().as_bytes());
            add(value.as_bytes());
        }
        let mut slots = self.slots.borrow_mut();
        if slots.len() > self.crowded.get() {
            slots.retain(|_, slot| {
                let idle = Rc::strong_count(slot) == 1;
                let gone = |handle: &Option<Handle>| {
                    let handle = handle.as_ref();
                    handle.is_none_or(|handle| handle.commands.strong_count() == 0)
                };
                !(idle && slot.try_lock().is_ok_and(|handle| gone(&handle)))
            });
            self.crowded.set(2 * slots.len() + 16);
        }
        Ok(Rc::clone(slots.entry(key.into()).or_default()))
    }
}

impl Handle {
    fn usable(
        &self,
        endpoint: &Endpoint,
        subscriptions_max: usize,
    ) -> Option<mpsc::UnboundedSender<Action>> {
        let same_signer = match (&self.signer, &endpoint.signer) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        };
        let free = self.subscriptions.load(Ordering::Relaxed) < subscriptions_max;
        let usable = same_signer && free && !self.retired.load(Ordering::Relaxed);
        self.commands.upgrade().filter(|_| usable)
    }

    /// `None` if the connection has ended meanwhile.
    async fn subscribe(
        &self,
        commands: mpsc::UnboundedSender<Action>,
        opening: &SubscribeRequest<'_>,
    ) -> Option<SocketEvents> {
        let source = opening.source;
        let (feed, queue) = queue(source.queue_events, source.queue_bytes);
        let (began, beginning) = oneshot::channel();
        let command = Action::Subscribe {
            payload: opening.body.clone(),
            feed,
            began,
        };
        commands.send(command).ok()?;
        let number = beginning.await.ok()?;
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
        Some(SocketEvents {
            queue,
            number,
            commands,
            subscriptions: Arc::clone(&self.subscriptions),
        })
    }
}

impl SocketEvents {
    /// The next event; `None` when the subscription is over.
    pub(crate) fn poll_next(
        &mut self,
        endpoint: &Endpoint,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        Poll::Ready(match ready!(self.queue.poll_next(cx)) {
            Ok(event) => Some(Ok(event)),
            Err(Some(End::Complete)) => None,
            Err(Some(End::Failed(error))) => Some(Err(error)),
            Err(None) => Some(Err(lost(endpoint, "the connection ended"))),
        })
    }
}

impl Drop for SocketEvents {
    fn drop(&mut self) {
        self.subscriptions.fetch_sub(1, Ordering::Relaxed);
        let _ = self.commands.send(Action::Unsubscribe(self.number));
    }
}

/// Makes a connection, up to its acknowledgement.
async fn connect(
    opening: &SubscribeRequest<'_>,
    address: &Address,
    protocol: Protocol,
) -> Result<(Handle, mpsc::UnboundedSender<Action>), Failure> {
    let (endpoint, source) = (opening.endpoint, opening.source);
    let (stream, read) = upgraded(opening, address, protocol).await?;
    let limits = WebSocketLimits {
        message_bytes_max: endpoint.traffic.response_bytes_refused(),
        ..WebSocketLimits::default()
    };
    let mut socket = WebSocket::client(stream, &read, limits);
    let mut upstream = Upstream::new(protocol);
    let acknowledged = acknowledged(opening, &mut socket, &mut upstream);
    let within = source.acknowledge_timeout;
    let outcome = match timeout(within, acknowledged).await {
        Ok(outcome) => outcome,
        Err(_) => Err((
            too_late(
                endpoint,
                "the subgraph took too long to acknowledge the connection",
                format!("no `connection_ack` within {within:?}"),
            ),
            Close::ack_timeout(),
        )),
    };
    if let Err((error, close)) = outcome {
        // Nobody waits for the answer of a subgraph that has just failed.
        tokio::spawn(async move { socket.close(close, within).await });
        return Err(error);
    }
    let (commands, received) = mpsc::unbounded_channel();
    let retired = Arc::new(AtomicBool::new(false));
    let handle = Handle {
        commands: commands.downgrade(),
        retired: Arc::clone(&retired),
        subscriptions: Arc::default(),
        signer: endpoint.signer.clone(),
    };
    let driver = EventConnection {
        socket,
        upstream,
        commands: received,
        retired,
        endpoint: endpoint.clone(),
        heartbeat_interval: source.heartbeat_interval,
        stall_timeout: source.stall_timeout,
    };
    tokio::spawn(driver.drive());
    Ok((handle, commands))
}

/// Asks for the upgrade; gives the stream, and what came behind the answer.
async fn upgraded(
    opening: &SubscribeRequest<'_>,
    address: &Address,
    protocol: Protocol,
) -> Result<(Stream, Vec<u8>), Failure> {
    let endpoint = opening.endpoint;
    let broken = |error: &hyper::Error| {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, chain(error)).retried()
    };
    let tls = tls_of(endpoint, address)?;
    let stream = connect_http1(endpoint, address, tls, opening.names).await;
    let stream = stream.map_err(Failure::retried)?;
    let handshake = ClientHandshake::new(protocol)
        .ok_or_else(|| malformed(endpoint, "the system gives no random bytes"))?;
    let mut headers = opening.all_headers();
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    handshake.write(&mut headers);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    if let Some(signer) = &endpoint.signer {
        sign::sign_upgrade(&**signer, (endpoint, address), &mut headers).await?;
    }
    headers.insert(header::HOST, address.host.clone());
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = address.path.clone().into();
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    // Ends with the connection, or when the stream is handed over.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(error = chain(&error), "subgraph connection ended");
        }
    });
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| broken(&error))?;
    no_redirect(endpoint, answer.status(), answer.headers())?;
    match handshake.check(answer.status(), answer.headers()) {
        Ok(()) => {}
        Err(failure) => return Err(not_upgraded(endpoint, failure, answer.headers())),
    }
    let upgraded = hyper::upgrade::on(answer).await;
    let upgraded = upgraded.map_err(|error| broken(&error))?;
    let parts = upgraded.downcast::<TokioIo<Stream>>();
    let parts = parts.map_err(|_| malformed(endpoint, "the connection is of another kind"))?;
    Ok((parts.io.into_inner(), parts.read_buf.to_vec()))
}

fn not_upgraded(endpoint: &Endpoint, failure: UpgradeFailure, headers: &HeaderMap) -> Failure {
    let detail = match failure {
        UpgradeFailure::Status(StatusCode::SWITCHING_PROTOCOLS) => "no upgrade",
        UpgradeFailure::Status(status) => {
            let content_type = headers.get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            return no_stream(endpoint, status, &content_type.unwrap_or("none"));
        }
        UpgradeFailure::NotUpgraded => "status 101 without an upgrade to WebSocket",
        UpgradeFailure::Key => "`sec-websocket-accept` does not belong to our key",
        UpgradeFailure::Protocol => "the subgraph does not speak the sub-protocol",
        UpgradeFailure::Extension => "the subgraph uses an extension that was not offered",
    };
    malformed(endpoint, detail)
}

/// Introduces us, and waits until the subgraph agrees.
async fn acknowledged(
    opening: &SubscribeRequest<'_>,
    socket: &mut WebSocket<Stream>,
    upstream: &mut Upstream,
) -> Result<(), (Failure, Close)> {
    let endpoint = opening.endpoint;
    let gone = |why: String| (lost(endpoint, why), Close::going_away());
    let payload = opening.connection_init();
    let init = upstream.init(payload.as_deref());
    socket.send(init).await.map_err(gone)?;
    loop {
        let text = match socket.receive().await {
            Received::Text(text) => text,
            Received::Control => continue,
            Received::Closed(close) => {
                return Err((closed(endpoint, close.as_ref()), Close::normal()));
            }
            Received::Broken(why) => return Err(gone(why)),
            Received::Binary => {
                let close = Close::new(1003, "Messages are text");
                return Err((malformed(endpoint, "a binary message"), close));
            }
            Received::Violation { close, what } => return Err((malformed(endpoint, what), close)),
        };
        match upstream.receive(&text) {
            Event::Ready => return Ok(()),
            Event::Send(answer) => socket.send(answer).await.map_err(gone)?,
            Event::Refused(why) => {
                let why = ogive_base::foreign::bounded_name(why.unwrap_or("no reason"));
                let detail = format!("`connection_error`: {why}");
                return Err((refused(endpoint, detail), Close::normal()));
            }
            Event::Violation(what) => {
                let close = Close::bad_request("Invalid message received");
                return Err((malformed(endpoint, what), close));
            }
            _ => {}
        }
    }
}
