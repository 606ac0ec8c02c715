//! Sessions of clients over WebSockets, behind the upgrade ([`super::upgrade`]).
//!
//! Every operation of a session is a request of its own, with the head of the upgrade: it passes all stages, so the same
//! limits and rights hold as for any other. The session reads nothing while its client does not take what is written, and
//! what waits then is bounded by the queues of its subscriptions.

use std::{
    cell::RefCell,
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use ogive_base::{HeldBytes, OutOfMemory, Reservation};
use ogive_edge::{
    client_shares::ClientShare,
    error::{RequestError, internal},
};
use ogive_identity::Caller;
use ogive_net::Rest;
use ogive_server::{ResponseBody, Upgraded, parts::PartStream};
use ogive_stream::{
    Action, Close, Protocol, Received, Session, SessionLimits, WebSocket, WebSocketLimits,
    session::Heartbeat,
};
use ogive_telemetry::codes;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep},
};

use crate::subscribe::{
    direct::{DirectGuard, SessionSocket},
    format::errors_of,
    options::SubscriptionOptions,
    owner::Owner,
    queue::{StreamEnd, StreamStep},
    sender::{Answer, OperationSender, PendingAnswer, headers_in},
    sources::{EndState, Subscriber, share},
};

/// How long a client may take to hear why its connection ends.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Bytes of messages that are not whole that are not counted: they are what a connection has room for.
const HELD_FREE: usize = 8 << 10;

/// What a session works with.
pub(crate) struct SessionStart {
    pub(crate) sender: OperationSender,
    pub(crate) options: Arc<SubscriptionOptions>,
    /// Decides when it ends, of all that end.
    pub(crate) number: u64,
    /// Among the sessions of its client.
    pub(crate) _place: ClientShare,
    /// Counts what it holds while nothing is said.
    pub(crate) _memory: Option<HeldBytes>,
}

/// Serves a session until it ends.
pub(crate) async fn serve(upgraded: Upgraded, protocol: Option<Protocol>, start: SessionStart) {
    let Some(websocket) = &start.options.websocket else {
        return;
    };
    let limits = WebSocketLimits {
        message_bytes_max: websocket.message_bytes_max,
        ..WebSocketLimits::default()
    };
    let mut socket = WebSocket::server(upgraded, limits);
    let Some(protocol) = protocol else {
        return Box::pin(socket.close(Close::subprotocol(), LAST_WORD)).await;
    };
    let limits = SessionLimits {
        operations_max: websocket.operations_max,
        ..SessionLimits::default()
    };
    let init_timeout = websocket.init_timeout;
    let mut driver = Driver {
        socket: Rc::new(RefCell::new(SessionSocket {
            socket,
            is_flushed: true,
            task: None,
        })),
        session: Session::new(protocol, limits),
        operations: Vec::new(),
        init: Some(Box::pin(sleep(init_timeout))),
        heartbeat: start.options.heartbeat.map(|every| Box::pin(sleep(every))),
        // Looked at once now: it may have changed since the upgrade.
        ending: Some(changed(start.sender.gateway.sources.ending(), false)),
        leave: None,
        expiry: None,
        first: 0,
        rest: Rest::default(),
        memory: None,
        of_payload: Vec::new(),
        owner: Owner::default(),
        renewed: None,
        leaving: None,
        start,
    };
    if let Err(close) = driver.run().await {
        driver.operations.clear();
        // What had begun to come is dropped with the end.
        driver.memory = None;
        // Nobody else has it, as there are no operations any more.
        let socket = Rc::into_inner(driver.socket);
        if let (Some(close), Some(socket)) = (close, socket) {
            let mut socket = socket.into_inner().socket;
            // In a box, so that nobody keeps room for the end.
            Box::pin(socket.close(close, LAST_WORD)).await;
        }
    }
}

/// What happens in a session.
enum Turn {
    Received(Received),
    Answered(usize, Answer),
    Ended(usize, StreamEnd),
    Part(usize, Option<std::io::Result<Bytes>>),
    InitDue,
    HeartbeatDue,
    Ending(EndState, Watched),
    Leave,
    Expired,
    /// Nothing can be written any more.
    Broken,
    /// There is no room for what the client has begun to say.
    NoMemory,
}

enum OperationState {
    PendingAnswer(PendingAnswer),
    Streaming {
        subscriber: Box<Subscriber>,
        _direct: DirectGuard,
    },
    Parts {
        parts: PartStream,
        /// What they were taken out of holds the memory of their request.
        _memory: ResponseBody,
    },
}

struct SessionOperation {
    id: Box<str>,
    state: OperationState,
}

/// Why a session ends: with these words, or without any.
type Ended = Option<Close>;

struct Driver {
    socket: Rc<RefCell<SessionSocket>>,
    session: Session,
    operations: Vec<SessionOperation>,
    init: Option<Pin<Box<Sleep>>>,
    heartbeat: Option<Pin<Box<Sleep>>>,
    /// Another configuration is served, or the process stops.
    ending: Option<Change>,
    /// When this session leaves then, and with which words.
    leave: Option<(Pin<Box<Sleep>>, Close)>,
    /// When what is said of its caller ends.
    expiry: Option<Pin<Box<Sleep>>>,
    /// The operation that is looked at first, so that each has its turn.
    first: usize,
    /// All that this waits for but events: they are what wakes it, mostly.
    rest: Rest,
    /// Counts what is held, if it is much.
    memory: Option<Reservation>,
    /// The headers that come in payloads.
    of_payload: Vec<HeaderName>,
    /// Who has introduced itself.
    owner: Owner,
    /// By whose credential operations go on that began with another one.
    renewed: Option<Option<Arc<Caller>>>,
    /// It closes with these words once what is being answered has its answer, so that its client comes back and asks again for
    /// the rest.
    leaving: Option<Close>,
    start: SessionStart,
}

/// Who tells of the next change of what all sessions end by.
type Watched = watch::Receiver<EndState>;

/// That change.
type Change = Pin<Box<dyn Future<Output = Option<(EndState, Watched)>>>>;

/// What there is now, or what it is when it has changed.
fn changed(mut watched: Watched, wait: bool) -> Change {
    Box::pin(async move {
        if wait {
            watched.changed().await.ok()?;
        }
        let state = *watched.borrow_and_update();
        Some((state, watched))
    })
}

/// Counts what is held of messages that are not whole, if it is much.
fn count_held(
    sender: &OperationSender,
    memory: &mut Option<Reservation>,
    held: usize,
) -> Result<(), OutOfMemory> {
    if held <= HELD_FREE {
        *memory = None;
        return Ok(());
    }
    let reserve = || sender.worker.reserve(&sender.gateway.memory);
    memory.get_or_insert_with(reserve).set(held)
}

/// Whether a timer that is set is due.
fn is_due(timer: Option<&mut Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
}

impl Driver {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            let turn = poll_fn(|cx| self.poll_turn(cx)).await;
            // In a box, because most of the time there are only events.
            Box::pin(self.turn(turn)).await?;
            if !self.is_answering()
                && let Some(close) = self.leaving.take()
            {
                return Err(Some(close));
            }
        }
    }

    /// Whether there are operations that it would do harm to ask for twice: all but subscriptions.
    fn is_answering(&self) -> bool {
        let is_stream =
            |one: &SessionOperation| matches!(one.state, OperationState::Streaming { .. });
        !self.operations.iter().all(is_stream)
    }

    /// Forgets an operation without a word and closes soon, so that the client connects again and asks for it again: after an
    /// `error` it would not. What is being answered is waited for, which its own timeouts bound.
    fn restart(&mut self, at: usize, close: Close) {
        self.operations.swap_remove(at);
        self.leaving.get_or_insert(close);
    }

    /// Sends events until something else happens. Nothing is looked at while the client does not take what is written.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(broken) = ready!(self.poll_flush(cx)) {
            return Poll::Ready(broken);
        }
        if self.rest.is_due(cx) {
            let waker = self.rest.waker().clone();
            if let Poll::Ready(turn) = self.poll_rest(&mut Context::from_waker(&waker)) {
                self.rest.again();
                return Poll::Ready(turn);
            }
        }
        let n = self.operations.len();
        let mut n_quiet = 0;
        while n_quiet < n {
            let at = self.first % n;
            self.first = at + 1;
            let operation = &mut self.operations[at];
            let step = match &mut operation.state {
                OperationState::Streaming { subscriber, .. } => subscriber.poll_step(cx),
                OperationState::PendingAnswer(_) | OperationState::Parts { .. } => Poll::Pending,
            };
            match step {
                Poll::Pending => n_quiet += 1,
                Poll::Ready(StreamStep::End(end)) => return Poll::Ready(Turn::Ended(at, end)),
                Poll::Ready(StreamStep::Event(event)) => {
                    n_quiet = 0;
                    // What was stopped is no operation any more.
                    debug_assert!(self.session.wants(&operation.id));
                    let protocol = self.session.protocol();
                    let is_full = {
                        let mut socket = self.socket.borrow_mut();
                        let message = event.message(protocol, &operation.id);
                        socket.socket.share(&message);
                        socket.is_flushed = false;
                        socket.socket.is_full()
                    };
                    if is_full && let Some(broken) = ready!(self.poll_flush(cx)) {
                        return Poll::Ready(broken);
                    }
                }
            }
        }
        match ready!(self.poll_flush(cx)) {
            Some(broken) => Poll::Ready(broken),
            None => Poll::Pending,
        }
    }

    /// Writes what is to be written; what has happened if that cannot be done.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Option<Turn>> {
        let mut socket = self.socket.borrow_mut();
        if !socket
            .task
            .as_ref()
            .is_some_and(|task| task.will_wake(cx.waker()))
        {
            socket.task = Some(cx.waker().clone());
        }
        if !socket.is_flushed {
            if ready!(socket.socket.poll_flush(cx)).is_err() {
                return Poll::Ready(Some(Turn::Broken));
            }
            socket.is_flushed = true;
        }
        Poll::Ready(None)
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let (sender, memory) = (&self.start.sender, &mut self.memory);
        let count = |held| count_held(sender, memory, held);
        let mut socket = self.socket.borrow_mut();
        if let Poll::Ready(received) = socket.socket.poll_receive_within(cx, count) {
            return Poll::Ready(received.map_or(Turn::NoMemory, Turn::Received));
        }
        drop(socket);
        for (at, operation) in self.operations.iter_mut().enumerate() {
            let turn = match &mut operation.state {
                OperationState::Streaming { .. } => Poll::Pending,
                OperationState::PendingAnswer(answering) => {
                    let answer = answering.as_mut().poll(cx);
                    answer.map(|answer| Turn::Answered(at, answer))
                }
                OperationState::Parts { parts, .. } => {
                    let part = parts.as_mut().poll_next(cx);
                    part.map(|part| Turn::Part(at, part))
                }
            };
            if turn.is_ready() {
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
        if let Some(ending) = &mut self.ending
            && let Poll::Ready(changed) = ending.as_mut().poll(cx)
        {
            self.ending = None;
            if let Some((state, watched)) = changed {
                return Poll::Ready(Turn::Ending(state, watched));
            }
        }
        if is_due(self.leave.as_mut().map(|(leave, _)| leave), cx) {
            return Poll::Ready(Turn::Leave);
        }
        if is_due(self.expiry.as_mut(), cx) {
            return Poll::Ready(Turn::Expired);
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
                self.socket.borrow_mut().is_flushed = false;
                Ok(())
            }
            Turn::Received(Received::Violation { close, .. }) => Err(Some(close)),
            Turn::Received(Received::Closed(_)) => Err(Some(Close::normal())),
            Turn::Received(Received::Broken(_)) => Err(None),
            Turn::Answered(at, Answer::Stream(mut subscriber)) => {
                if let Some(caller) = &self.renewed {
                    let sender = &self.start.sender;
                    subscriber.renew(&sender.template, caller.as_ref(), &sender.credential());
                }
                let operation = &mut self.operations[at];
                let called = (self.session.protocol(), &*operation.id);
                operation.state = OperationState::Streaming {
                    _direct: DirectGuard::new(subscriber.queue(), &self.socket, called),
                    subscriber,
                };
                Ok(())
            }
            // Its client is asked anew who it is.
            Turn::Answered(at, Answer::Outdated) => {
                self.restart(at, Close::service_restart());
                Ok(())
            }
            Turn::Answered(at, Answer::Whole(response)) => self.answered(at, &response).await,
            Turn::Answered(at, Answer::Parts(parts, memory)) => {
                self.operations[at].state = OperationState::Parts {
                    parts,
                    _memory: memory,
                };
                Ok(())
            }
            Turn::Part(at, part) => self.part(at, part).await,
            Turn::Ended(at, end) => self.ended(at, &end).await,
            Turn::Broken => Err(None),
            Turn::NoMemory => Err(Some(Close::try_again_later())),
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
            Turn::Ending(state, watched) => {
                self.look_at(state);
                if !state.drains {
                    self.ending = Some(changed(watched, true));
                }
                Ok(())
            }
            Turn::Leave => {
                if let Some((_, close)) = self.leave.take() {
                    self.leaving = Some(close);
                }
                Ok(())
            }
            Turn::Expired => Err(Some(Close::forbidden())),
        }
    }

    /// Leaves in its turn if it has to. When the process stops, what is being answered then has the rest of the time that
    /// requests have, after which the server ends the connection.
    fn look_at(&mut self, state: EndState) {
        let options = &self.start.options;
        let (window, close) = if state.drains {
            (options.drain_window, Close::going_away())
        } else if self.leave.is_none() && self.start.sender.is_outdated() {
            (options.reload_window, Close::service_restart())
        } else {
            return;
        };
        let own = window.mul_f64(share(self.start.number));
        self.leave = Some((Box::pin(sleep(own)), close));
    }

    /// Ends with what whoever upgraded the connection says of its caller.
    fn expire(&mut self, caller: Option<&Arc<Caller>>) {
        let end = self.start.sender.said_until(caller);
        self.expiry = end.map(|end| Box::pin(sleep(end)));
    }

    async fn say(&mut self, text: Option<impl AsRef<str>>) -> Result<(), Ended> {
        let Some(text) = text else { return Ok(()) };
        poll_fn(|cx| {
            let mut socket = self.socket.borrow_mut();
            socket.is_flushed = false;
            let SessionSocket { socket, .. } = &mut *socket;
            if socket.is_full() {
                ready!(socket.poll_flush(cx))?;
            }
            Poll::Ready(socket.put_text(text.as_ref()))
        })
        .await
        .map_err(|_| None)
    }

    async fn received(&mut self, text: &str) -> Result<(), Ended> {
        let action = self.session.receive(text);
        match action {
            Action::Init { payload } => self.init(payload).await,
            Action::Renew { pong, payload } => {
                self.say(Some(pong)).await?;
                self.renew(payload).await
            }
            Action::Start {
                id,
                payload,
                replaces,
            } => {
                if replaces {
                    self.stop(&id);
                }
                if self.leaving.is_some() {
                    // The client asks again when it has come back.
                    return Ok(());
                }
                let answering = self.start.sender.send(payload);
                self.operations.push(SessionOperation {
                    id: (*id).into(),
                    state: OperationState::PendingAnswer(answering),
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
                let response = self.start.sender.gateway.sources.told_error(&error);
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
        // What the upgrade has counts first.
        let named = websocket.map_or(&[][..], |websocket| &websocket.init_headers);
        let upgraded = &self.start.sender.template;
        let named = named.iter().filter(|name| !upgraded.contains_key(*name));
        self.of_payload = named.cloned().collect();
        let headers = payload.map_or_else(HeaderMap::new, |payload| {
            headers_in(payload, &self.of_payload)
        });
        match self.start.sender.introduce(headers).await {
            Ok(caller) => {
                self.owner = Owner::of(caller.as_deref());
                self.expire(caller.as_ref());
                let text = self.session.accept(None);
                self.say(Some(text)).await
            }
            Err(error) => {
                let response = self.start.sender.gateway.sources.told_error(&error);
                let action = self.session.refuse(text_of(&first_message(&response)));
                self.act(action).await
            }
        }
    }

    /// The client may have brought a fresh credential: operations go on by it if it is of the same caller.
    async fn renew(&mut self, payload: &str) -> Result<(), Ended> {
        let headers = headers_in(payload, &self.of_payload);
        if headers.is_empty() {
            return Ok(());
        }
        // A coprocessor is told of operations, not of what changes beneath them.
        let serving = self.start.sender.gateway.serving.load();
        if serving.hooks.is_some() {
            return Err(Some(Close::forbidden()));
        }
        drop(serving);
        let introduced = self.start.sender.introduce(headers).await;
        let caller = introduced.map_err(|_| Some(Close::forbidden()))?;
        if Owner::of(caller.as_deref()) != self.owner {
            return Err(Some(Close::forbidden()));
        }
        let sender = &self.start.sender;
        let credential = sender.credential();
        for operation in &mut self.operations {
            if let OperationState::Streaming { subscriber, .. } = &mut operation.state {
                subscriber.renew(&sender.template, caller.as_ref(), &credential);
            }
        }
        self.expire(caller.as_ref());
        self.renewed = Some(caller);
        Ok(())
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

    /// The next part of an answer, or its end.
    async fn part(&mut self, at: usize, part: Option<std::io::Result<Bytes>>) -> Result<(), Ended> {
        let text = match part {
            Some(Ok(part)) => {
                let id = &self.operations[at].id;
                self.session.next(id, text_of(&part))
            }
            None => {
                let id = self.operations.swap_remove(at).id;
                self.session.complete(&id)
            }
            // Whoever takes what came for the whole answer would be wrong.
            Some(Err(_)) => {
                let id = self.operations.swap_remove(at).id;
                let response = self.start.sender.gateway.sources.told_error(&internal());
                self.session.error(&id, text_of(errors_of(&response)))
            }
        };
        self.say(text).await
    }

    async fn ended(&mut self, at: usize, end: &StreamEnd) -> Result<(), Ended> {
        match end {
            StreamEnd::Reload => {
                self.restart(at, Close::service_restart());
                return Ok(());
            }
            StreamEnd::Drain => {
                self.restart(at, Close::going_away());
                return Ok(());
            }
            StreamEnd::Expired | StreamEnd::Revoked(_) => return Err(Some(Close::forbidden())),
            StreamEnd::Complete
            | StreamEnd::Failed(_)
            | StreamEnd::Refused(_)
            | StreamEnd::Overflow => {}
        }
        let id = self.operations.swap_remove(at).id;
        let text = match self.start.sender.gateway.sources.told(end) {
            Some(response) => self.session.error(&id, text_of(errors_of(&response))),
            None => self.session.complete(&id),
        };
        self.say(text).await
    }
}

/// What the first of some errors says, as a payload.
fn first_message(response: &[u8]) -> Vec<u8> {
    let errors: Option<Value> = serde_json::from_slice(response).ok();
    let first = errors
        .as_ref()
        .map(|errors| &errors["errors"][0]["message"]);
    let mut payload = b"{\"message\":".to_vec();
    ogive_json::write_string(
        &mut payload,
        first.and_then(Value::as_str).unwrap_or_default(),
    );
    payload.push(b'}');
    payload
}

/// Our own answers are UTF-8.
fn text_of(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or("[]")
}
