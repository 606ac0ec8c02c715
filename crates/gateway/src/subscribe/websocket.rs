//! WebSockets of clients: the upgrade, and the session behind it.
//!
//! Every operation of a session is a request of its own, with the head of the upgrade: it passes all stages, so the same
//! limits and rights hold as for any other. The session reads nothing while its client does not take what is written, and
//! what waits then is bounded by the queues of its subscriptions.
//!
//! A page of another origin can open a WebSocket with its visitor's cookies, and nobody asks for permission first. So the
//! origin is checked against `cors`, where there is one. A policy without credentials lets a page in as a stranger: nothing
//! in its upgrade says who asks, because browsers and proxies write that from cookies; `connection_init` may say it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    request::Parts,
};
use hyper::body::{Body, Frame, SizeHint};
use ogive_server::{ResponseBody, Upgrade, Upgraded};
use ogive_stream::{
    Action, Close, Protocol, Received, Session, SessionLimits, WebSocket, WebSocketLimits,
    handshake::{self, UpgradeRefusal},
    session::Heartbeat,
};
use ogive_telemetry::codes;
use serde_json::{Map, Value};
use tokio::time::{Instant, Sleep, sleep};

use crate::{
    gateway::Gateway,
    options::GatewayOptions,
    router::no_websockets,
    shared::context::{Identity, RequestContext},
    shared::error::RequestError,
    shared::worker::WorkerState,
    subscribe::SubscriberSlot,
    subscribe::format::{errors_of, told},
    subscribe::options::SubscriptionOptions,
    subscribe::queue::{StreamEnd, StreamStep},
    subscribe::sources::{Subscriber, share},
};

/// How long a client may take to hear why its connection ends.
const LAST_WORD: Duration = Duration::from_secs(1);

impl Gateway {
    /// Answers a request for a WebSocket.
    pub(crate) fn open_websocket(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let parts = context.parts;
        let subscription = options.subscription.as_ref().ok_or_else(no_websockets)?;
        let websocket = subscription.websocket.as_ref().ok_or_else(no_websockets)?;
        if parts.uri.path() != websocket.path {
            return Err(no_websockets());
        }
        let origin = check_origin(options, &parts.headers)?;
        let protocol = Protocol::choose(&parts.headers);
        let asked = (&parts.method, parts.version);
        let answer = handshake::accept(asked, &parts.headers, protocol).map_err(refusal)?;
        let (gateway, worker) = self
            .handle_of()
            .zip(context.worker.handle())
            .ok_or_else(no_websockets)?;
        let start = SessionStart {
            number: gateway.sources.number(),
            gateway,
            worker,
            identity: match origin {
                PageOrigin::Trusted => context.identity.clone(),
                PageOrigin::Stranger => Identity::like(context.identity),
            },
            template: template(parts, origin),
            options: subscription.clone(),
        };
        let upgrade = Upgrade::new(move |upgraded| serve(upgraded, protocol, start));
        let mut response = Response::new(ResponseBody::of_upgrade(upgrade));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = answer;
        Ok(response)
    }
}

fn refusal(refusal: UpgradeRefusal) -> RequestError {
    let message = match refusal {
        UpgradeRefusal::NotAsked => "this is no request for a WebSocket",
        UpgradeRefusal::Malformed(what) => what,
        UpgradeRefusal::Version => "only version 13 of WebSockets is spoken",
    };
    let error = RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message);
    let status = match refusal {
        UpgradeRefusal::Version => 426,
        _ => 400,
    };
    RequestError { status, ..error }
}

/// Where an upgrade comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageOrigin {
    /// A page of this origin or of one that may use credentials, or no page.
    Trusted,
    /// A page that may come without credentials only.
    Stranger,
}

/// Refuses a page of an origin that is neither this one nor one of `cors`. Clients that are no pages name none.
fn check_origin(options: &GatewayOptions, headers: &HeaderMap) -> Result<PageOrigin, RequestError> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return Ok(PageOrigin::Trusted),
        (Some(origin), None) => origin,
        (Some(_), Some(_)) => return Err(foreign_origin()),
    };
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let text = origin.as_bytes();
    // Without TLS of our own, a proxy may have it.
    let plain = text
        .strip_prefix(b"http://")
        .filter(|_| !options.is_encrypted);
    let own = plain.or_else(|| text.strip_prefix(b"https://"));
    if own.is_some() && own == host {
        return Ok(PageOrigin::Trusted);
    }
    match options.cors.lets_credentials(origin) {
        Some(true) => Ok(PageOrigin::Trusted),
        Some(false) => Ok(PageOrigin::Stranger),
        None => Err(foreign_origin()),
    }
}

fn foreign_origin() -> RequestError {
    RequestError {
        status: 403,
        ..RequestError::http(
            codes::CSRF_ERROR,
            "pages of this origin may not open WebSockets here: see `cors`",
        )
    }
}

/// The head of each operation's request: that of the upgrade, without what is of the connection. Of a stranger's only what
/// cannot say who asks.
fn template(parts: &Parts, origin: PageOrigin) -> HeaderMap {
    let is_let_in = |name: &HeaderName| {
        origin == PageOrigin::Trusted
            || matches!(
                *name,
                header::HOST | header::ORIGIN | header::USER_AGENT | header::ACCEPT_LANGUAGE
            )
    };
    let of_connection = |name: &HeaderName| {
        matches!(
            *name,
            header::CONNECTION
                | header::UPGRADE
                | header::CONTENT_LENGTH
                | header::CONTENT_ENCODING
                | header::TRANSFER_ENCODING
                | header::ACCEPT_ENCODING
        ) || name.as_str().starts_with("sec-websocket-")
    };
    let kept = parts
        .headers
        .iter()
        .filter(|(name, _)| !of_connection(name) && is_let_in(name));
    let mut headers: HeaderMap = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json.clone());
    headers.insert(header::ACCEPT, json);
    headers
}

/// What a session works with.
struct SessionStart {
    gateway: Arc<Gateway>,
    worker: Rc<WorkerState>,
    identity: Identity,
    template: HeaderMap,
    options: SubscriptionOptions,
    /// Decides when it ends, of all that end.
    number: u64,
}

/// Serves a session until it ends.
async fn serve(upgraded: Upgraded, protocol: Option<Protocol>, start: SessionStart) {
    let Some(websocket) = &start.options.websocket else {
        return;
    };
    let limits = WebSocketLimits {
        message_bytes_max: websocket.message_bytes_max,
        ..WebSocketLimits::default()
    };
    let mut socket = WebSocket::server(upgraded, limits).await;
    let Some(protocol) = protocol else {
        return socket.close(Close::subprotocol(), LAST_WORD).await;
    };
    let limits = SessionLimits {
        operations_max: websocket.operations_max,
        ..SessionLimits::default()
    };
    let mut ending = start.gateway.sources.ending();
    let init_timeout = websocket.init_timeout;
    let mut driver = Driver {
        socket,
        session: Session::new(protocol, limits),
        operations: Vec::new(),
        init: Some(Box::pin(sleep(init_timeout))),
        heartbeat: start.options.heartbeat.map(|every| Box::pin(sleep(every))),
        drained: Some(Box::pin(async move {
            let _ = ending.wait_for(|ending| ending.drains).await;
        })),
        leave: None,
        first: 0,
        is_flushed: true,
        start,
    };
    if let Err(close) = driver.run().await {
        driver.operations.clear();
        if let Some(close) = close {
            driver.socket.close(close, LAST_WORD).await;
        }
    }
}

/// What happens in a session.
enum Turn {
    Received(Received),
    Answered(usize, Answer),
    Step(usize, StreamStep),
    InitDue,
    HeartbeatDue,
    Drained,
    Leave,
}

/// What becomes of an operation's request.
enum Answer {
    Whole(Bytes),
    Stream(Box<Subscriber>),
}

type Answering = Pin<Box<dyn Future<Output = Answer>>>;

enum OperationState {
    Answering(Answering),
    Streaming(Box<Subscriber>),
}

struct SessionOperation {
    id: Box<str>,
    state: OperationState,
}

/// Why a session ends: with these words, or without any.
type Ended = Option<Close>;

struct Driver {
    socket: WebSocket<Upgraded>,
    session: Session,
    operations: Vec<SessionOperation>,
    init: Option<Pin<Box<Sleep>>>,
    heartbeat: Option<Pin<Box<Sleep>>>,
    /// The process stops.
    drained: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// When this session leaves then.
    leave: Option<Pin<Box<Sleep>>>,
    /// The operation that is looked at first, so that each has its turn.
    first: usize,
    is_flushed: bool,
    start: SessionStart,
}

/// Whether a timer that is set is due.
fn is_due(timer: Option<&mut Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
}

impl Driver {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            let turn = poll_fn(|cx| match self.poll_turn(cx) {
                Poll::Ready(turn) => Poll::Ready(Some(turn)),
                Poll::Pending if !self.is_flushed => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            match turn.await {
                Some(turn) => self.turn(turn).await?,
                // Nothing more to say now.
                None => {
                    self.socket.flush().await.map_err(|_| None)?;
                    self.is_flushed = true;
                }
            }
        }
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Poll::Ready(received) = self.socket.poll_receive(cx) {
            return Poll::Ready(Turn::Received(received));
        }
        let n = self.operations.len();
        for nth in 0..n {
            let at = (self.first + nth) % n;
            let turn = match &mut self.operations[at].state {
                OperationState::Answering(answering) => {
                    let answer = answering.as_mut().poll(cx);
                    answer.map(|answer| Turn::Answered(at, answer))
                }
                OperationState::Streaming(subscriber) => {
                    subscriber.poll_step(cx).map(|step| Turn::Step(at, step))
                }
            };
            if turn.is_ready() {
                self.first = at + 1;
                return turn;
            }
        }
        if is_due(self.init.as_mut(), cx) {
            self.init = None;
            return Poll::Ready(Turn::InitDue);
        }
        if is_due(self.heartbeat.as_mut(), cx) {
            return Poll::Ready(Turn::HeartbeatDue);
        }
        if let Some(drained) = &mut self.drained
            && drained.as_mut().poll(cx).is_ready()
        {
            self.drained = None;
            return Poll::Ready(Turn::Drained);
        }
        if is_due(self.leave.as_mut(), cx) {
            return Poll::Ready(Turn::Leave);
        }
        Poll::Pending
    }

    async fn turn(&mut self, turn: Turn) -> Result<(), Ended> {
        match turn {
            Turn::Received(Received::Text(text)) => self.received(&text).await,
            Turn::Received(Received::Binary) => {
                let action = self.session.receive_binary();
                self.act(action).await
            }
            Turn::Received(Received::Control) => {
                self.session.alive();
                // Pings are answered by what reads them.
                self.is_flushed = false;
                Ok(())
            }
            Turn::Received(Received::Violation { close, .. }) => Err(Some(close)),
            Turn::Received(Received::Closed(_)) => Err(Some(Close::normal())),
            Turn::Received(Received::Broken(_)) => Err(None),
            Turn::Answered(at, Answer::Stream(subscriber)) => {
                self.operations[at].state = OperationState::Streaming(subscriber);
                Ok(())
            }
            Turn::Answered(at, Answer::Whole(response)) => self.answered(at, &response).await,
            Turn::Step(at, StreamStep::Event(event)) => {
                let json = String::from_utf8_lossy(event.json());
                let text = self.session.next(&self.operations[at].id, &json);
                self.say(text).await
            }
            Turn::Step(at, StreamStep::End(end)) => self.ended(at, &end).await,
            Turn::InitDue => {
                let action = self.session.init_due();
                self.act(action).await
            }
            Turn::HeartbeatDue => {
                let every = self.start.options.heartbeat.unwrap_or(LAST_WORD);
                if let Some(due) = &mut self.heartbeat {
                    due.as_mut().reset(Instant::now() + every);
                }
                match self.session.heartbeat() {
                    Heartbeat::Nothing => Ok(()),
                    Heartbeat::Send(text) => self.say(Some(text)).await,
                    Heartbeat::Missed(close) => Err(Some(close)),
                }
            }
            Turn::Drained => {
                let window = self.start.options.drain_window;
                let own = window.mul_f64(share(self.start.number));
                self.leave = Some(Box::pin(sleep(own)));
                Ok(())
            }
            Turn::Leave => Err(Some(Close::going_away())),
        }
    }

    async fn say(&mut self, text: Option<String>) -> Result<(), Ended> {
        let Some(text) = text else { return Ok(()) };
        self.is_flushed = false;
        self.socket.feed(text).await.map_err(|_| None)
    }

    async fn received(&mut self, text: &str) -> Result<(), Ended> {
        let action = self.session.receive(text);
        match action {
            Action::Init { payload } => self.init(payload).await,
            Action::Start {
                id,
                payload,
                replaces,
            } => {
                if replaces {
                    self.stop(&id);
                }
                let answering = self.request(payload);
                self.operations.push(SessionOperation {
                    id: (*id).into(),
                    state: OperationState::Answering(answering),
                });
                Ok(())
            }
            Action::TooMany { id } => {
                let most = self.start.options.websocket.as_ref();
                let most = most.map_or(0, |websocket| websocket.operations_max);
                let error = RequestError::http(
                    codes::OPERATIONS_LIMITED,
                    format!("a connection has at most {most} operations at a time"),
                );
                let response = error.to_json();
                let text = self.session.reject(&id, text_of(errors_of(&response)));
                self.say(Some(text)).await
            }
            Action::Stop { id } => {
                self.stop(&id);
                Ok(())
            }
            action => self.act(action).await,
        }
    }

    /// Does what needs nothing but words.
    async fn act(&mut self, action: Action<'_>) -> Result<(), Ended> {
        match action {
            Action::Send(text) => self.say(Some(text)).await,
            Action::Close { last, close } => {
                self.say(last).await?;
                Err(Some(close))
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, id: &str) {
        self.operations.retain(|operation| &*operation.id != id);
    }

    /// The client introduces itself.
    async fn init(&mut self, payload: Option<&str>) -> Result<(), Ended> {
        self.init = None;
        let websocket = self.start.options.websocket.as_ref();
        if let (Some(payload), Some(websocket)) = (payload, websocket) {
            let names = websocket.init_headers.iter();
            add_headers(&mut self.start.template, payload, names);
        }
        let start = &self.start;
        let (gateway, worker) = (Arc::clone(&start.gateway), Rc::clone(&start.worker));
        let parts = head(&start.template, start.path(), None);
        let introduced = gateway.introduced(&parts, &start.identity, &worker).await;
        match introduced {
            Ok(()) => {
                let text = self.session.accept(None);
                self.say(Some(text)).await
            }
            Err(error) => {
                let mut message = b"{\"message\":".to_vec();
                let first = error.errors.first();
                ogive_json::write_string(&mut message, first.map_or("", |e| &e.message));
                message.push(b'}');
                let action = self.session.refuse(text_of(&message));
                self.act(action).await
            }
        }
    }

    /// Sends an operation through all stages.
    fn request(&self, payload: &str) -> Answering {
        let start = &self.start;
        let (gateway, worker) = (Arc::clone(&start.gateway), Rc::clone(&start.worker));
        let (identity, slot) = (start.identity.clone(), SubscriberSlot::default());
        let parts = head(&start.template, start.path(), Some(slot.clone()));
        let body = WholeBody(Some(Bytes::copy_from_slice(payload.as_bytes())));
        Box::pin(async move {
            let answering = pin!(gateway.answer_operation(&parts, body, &identity, &worker));
            let response = answering.await;
            match slot.take() {
                Some(subscriber) => Answer::Stream(Box::new(subscriber)),
                None => Answer::Whole(response.into_body().to_vec().into()),
            }
        })
    }

    async fn answered(&mut self, at: usize, response: &[u8]) -> Result<(), Ended> {
        let id = self.operations.swap_remove(at).id;
        let text = text_of(response);
        // What was never executed has no data.
        if response.starts_with(b"{\"errors\":") {
            let text = self.session.error(&id, text_of(errors_of(response)));
            return self.say(text).await;
        }
        let next = self.session.next(&id, text);
        self.say(next).await?;
        let complete = self.session.complete(&id);
        self.say(complete).await
    }

    async fn ended(&mut self, at: usize, end: &StreamEnd) -> Result<(), Ended> {
        match end {
            StreamEnd::Reload => return Err(Some(Close::service_restart())),
            StreamEnd::Drain => return Err(Some(Close::going_away())),
            StreamEnd::Expired => return Err(Some(Close::forbidden())),
            StreamEnd::Complete | StreamEnd::Failed(_) | StreamEnd::Overflow => {}
        }
        let id = self.operations.swap_remove(at).id;
        let text = match told(end) {
            Some(response) => self.session.error(&id, text_of(errors_of(&response))),
            None => self.session.complete(&id),
        };
        self.say(text).await
    }
}

impl SessionStart {
    fn path(&self) -> String {
        self.gateway.options().graphql_path.clone()
    }
}

/// Our own answers are UTF-8.
fn text_of(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or("[]")
}

/// The head of an operation's request.
fn head(template: &HeaderMap, path: String, slot: Option<SubscriberSlot>) -> Parts {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().unwrap_or_default();
    *request.headers_mut() = template.clone();
    if let Some(slot) = slot {
        request.extensions_mut().insert(slot);
    }
    request.into_parts().0
}

/// Takes headers from what a client says of itself, where the upgrade has none of that name.
fn add_headers<'n>(
    headers: &mut HeaderMap,
    payload: &str,
    names: impl Iterator<Item = &'n HeaderName>,
) {
    let Ok(payload) = serde_json::from_str::<Map<String, Value>>(payload) else {
        return;
    };
    let inner = payload.get("headers").and_then(Value::as_object);
    for name in names {
        let in_map = |map: &Map<String, Value>| {
            let mut found = map
                .iter()
                .filter(|(key, _)| key.eq_ignore_ascii_case(name.as_str()));
            found.find_map(|(_, value)| HeaderValue::from_str(value.as_str()?).ok())
        };
        let value = inner.and_then(in_map).or_else(|| in_map(&payload));
        if let Some(mut value) = value
            && !headers.contains_key(name)
        {
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
    }
}

/// A body that is there.
struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}
