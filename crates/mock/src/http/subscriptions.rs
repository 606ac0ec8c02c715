//! Subscriptions: WebSocket in both sub-protocols, server-sent events and multipart 1.0, on the URL of the subgraph.
//!
//! Each subscription gets the events of its subgraph's schedule; event `n` has the `n`th row, or object, of its type.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, header};
use hyper::{
    body::{Body, Frame},
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use ogive_stream::{
    Action, Close, Protocol, Received, Session, SessionLimits, WebSocket, WebSocketLimits,
    multipart, sse,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::Closed;
use crate::{
    events::{EventFaultKind, EventSchedule},
    service::Service,
};

/// How long a client may take to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How events are framed in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Sse,
    Multipart,
}

impl Framing {
    /// What a client accepts, if it is a stream: whatever it names first.
    pub(super) fn of(headers: &HeaderMap) -> Option<Framing> {
        let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
        let places = [
            (accept.find(sse::MEDIA_TYPE), Framing::Sse),
            (accept.find("subscriptionSpec"), Framing::Multipart),
        ];
        let named = places
            .into_iter()
            .filter_map(|(at, framing)| Some((at?, framing)));
        named.min_by_key(|(at, _)| *at).map(|(_, framing)| framing)
    }
    /// Its content type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Framing::Sse => sse::MEDIA_TYPE,
            Framing::Multipart => multipart::SUBSCRIPTION_TYPE,
        }
    }
}

/// An answer that is a stream of events.
pub(super) struct EventBody {
    service: Arc<Service>,
    subgraph: String,
    request: Bytes,
    schedule: EventSchedule,
    framing: Framing,
    /// Events that were sent, and whether the beginning was.
    sent: (u64, bool),
    is_over: bool,
    wait: Option<Pin<Box<Sleep>>>,
}

impl EventBody {
    pub(super) fn new(
        service: Arc<Service>,
        subgraph: String,
        request: Bytes,
        framing: Framing,
    ) -> Self {
        EventBody {
            schedule: service.event_schedule(&subgraph),
            service,
            subgraph,
            request,
            framing,
            sent: (0, false),
            is_over: false,
            wait: None,
        }
    }

    fn end(&mut self) -> Option<Bytes> {
        self.is_over = true;
        if self.schedule.has(EventFaultKind::NoEnd) {
            return None;
        }
        let mut out = Vec::new();
        match self.framing {
            Framing::Sse => out.extend_from_slice(sse::COMPLETE),
            Framing::Multipart => multipart::write_end(&mut out),
        }
        Some(out.into())
    }

    fn event(&mut self) -> Result<Bytes, Closed> {
        self.sent.0 += 1;
        match self.schedule.strikes(self.sent.0) {
            Some(EventFaultKind::Drop) => return Err(Closed),
            Some(_) => {
                let garbage: &[u8] = match self.framing {
                    Framing::Sse => b"event: next\ndata: \xff\n\n",
                    Framing::Multipart => b"\r\n\r\ngarbage\r\n--graphql",
                };
                return Ok(Bytes::from_static(garbage));
            }
            None => {}
        }
        let (answer, is_last) = self
            .service
            .event(&self.subgraph, &self.request, self.sent.0 - 1);
        // What cannot be executed has one answer, which says so.
        if is_last {
            self.schedule.count = Some(self.sent.0);
        }
        let mut out = Vec::new();
        match self.framing {
            Framing::Sse => sse::write_next(&mut out, &answer),
            Framing::Multipart => multipart::write_payload(&mut out, &answer),
        }
        Ok(out.into())
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.sent.1, true) {
            let mut out = Vec::new();
            match self.framing {
                Framing::Sse => out.extend_from_slice(sse::HEARTBEAT),
                Framing::Multipart => multipart::write_start(&mut out, multipart::BOUNDARY),
            }
            return Poll::Ready(Some(Ok(Frame::data(out.into()))));
        }
        if self
            .schedule
            .count
            .is_some_and(|count| self.sent.0 >= count)
        {
            return Poll::Ready(self.end().map(|end| Ok(Frame::data(end))));
        }
        let interval = self.schedule.interval;
        let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(interval)));
        ready!(wait.as_mut().poll(cx));
        self.wait = None;
        Poll::Ready(Some(self.event().map(Frame::data)))
    }
}

/// An operation on a WebSocket connection.
struct Running {
    id: String,
    request: Bytes,
    sent: u64,
    due: Instant,
    count: Option<u64>,
}

/// The server's end of a WebSocket connection.
struct Connection {
    socket: WebSocket<TokioIo<hyper::upgrade::Upgraded>>,
    session: Session,
    service: Arc<Service>,
    subgraph: String,
    schedule: EventSchedule,
    running: Vec<Running>,
}

/// Nobody is there any more, or should be.
struct Over;

/// Serves a connection that becomes a WebSocket.
pub(super) async fn websocket(
    upgraded: OnUpgrade,
    protocol: Protocol,
    service: Arc<Service>,
    subgraph: String,
) {
    let Ok(upgraded) = upgraded.await else {
        return;
    };
    let stream = TokioIo::new(upgraded);
    let mut connection = Connection {
        socket: WebSocket::server(stream, WebSocketLimits::default()),
        session: Session::new(protocol, SessionLimits::default()),
        schedule: service.event_schedule(&subgraph),
        service,
        subgraph,
        running: Vec::new(),
    };
    while connection.step().await.is_ok() {}
}

impl Connection {
    /// Waits for what comes first: a message, or the time of an event.
    async fn step(&mut self) -> Result<(), Over> {
        let due = self.running.iter().map(|operation| operation.due).min();
        tokio::select! {
            received = self.socket.receive() => match received {
                Received::Text(text) => self.received(&text).await,
                Received::Control => Ok(()),
                Received::Closed(_) => {
                    // It is answered with what it has said.
                    self.socket.close(Close::normal(), CLOSE_TIMEOUT).await;
                    Err(Over)
                }
                Received::Violation { close, .. } => {
                    self.socket.close(close, CLOSE_TIMEOUT).await;
                    Err(Over)
                }
                Received::Binary | Received::Broken(_) => Err(Over),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                self.events().await
            }
        }
    }

    /// Sends all events that are due.
    async fn events(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let mut at = 0;
        while let Some(operation) = self.running.get_mut(at) {
            if operation.due > now {
                at += 1;
                continue;
            }
            let source = (&*self.service, &*self.subgraph);
            let texts = event(operation, source, &self.schedule, &mut self.session).ok_or(Over)?;
            if operation.count.is_some_and(|count| operation.sent >= count) {
                self.running.swap_remove(at);
            } else {
                at += 1;
            }
            for text in texts {
                self.socket.feed(text).await.map_err(|_| Over)?;
            }
        }
        self.socket.flush().await.map_err(|_| Over)
    }

    async fn received(&mut self, text: &str) -> Result<(), Over> {
        let answer = match self.session.receive(text) {
            Action::Init { .. } if self.schedule.has(EventFaultKind::NoAck) => None,
            Action::Init { .. } => {
                if self.schedule.has(EventFaultKind::Early) {
                    let text = early(self.session.protocol());
                    self.socket.send(text).await.map_err(|_| Over)?;
                }
                Some(self.session.accept(None))
            }
            Action::Send(_) | Action::Renew { .. } if self.schedule.has(EventFaultKind::Silent) => {
                None
            }
            Action::Send(text) | Action::Renew { pong: text, .. } => Some(text),
            Action::Start {
                id,
                payload,
                replaces: _,
            } => {
                self.running.retain(|operation| operation.id != id);
                self.running.push(Running {
                    id: id.into_owned(),
                    request: Bytes::copy_from_slice(payload.as_bytes()),
                    sent: 0,
                    due: Instant::now() + self.schedule.interval,
                    count: self.schedule.count,
                });
                None
            }
            Action::Stop { id } => {
                self.running.retain(|operation| operation.id != id);
                None
            }
            Action::TooMany { id } => {
                let errors = r#"[{"message":"Too many operations."}]"#;
                Some(self.session.reject(&id, errors))
            }
            Action::Nothing => None,
            Action::Close { last, close } => {
                if let Some(last) = last {
                    let _ = self.socket.send(last).await;
                }
                self.socket.close(close, CLOSE_TIMEOUT).await;
                return Err(Over);
            }
        };
        if let Some(answer) = answer {
            self.socket.send(answer).await.map_err(|_| Over)?;
        }
        Ok(())
    }
}

/// An event of the first subscription, before there is one.
fn early(protocol: Protocol) -> String {
    let mut text = String::new();
    let (id, payload) = ("1".into(), "{\"data\":null}");
    ogive_stream::server_message::ServerMessage::Next { id, payload }.write(protocol, &mut text);
    text
}

/// The messages that are due for an operation; `None` if the connection is to be dropped.
fn event(
    operation: &mut Running,
    (service, subgraph): (&Service, &str),
    schedule: &EventSchedule,
    session: &mut Session,
) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    if operation.count != Some(operation.sent) {
        operation.sent += 1;
        operation.due += schedule.interval;
        match schedule.strikes(operation.sent) {
            Some(EventFaultKind::Drop) => return None,
            Some(_) => return Some(vec!["garbage".into()]),
            None => {}
        }
        let (answer, is_last) = service.event(subgraph, &operation.request, operation.sent - 1);
        if is_last {
            operation.count = Some(operation.sent);
        }
        texts.extend(session.next(&operation.id, &String::from_utf8_lossy(&answer)));
    }
    if operation.count == Some(operation.sent) && !schedule.has(EventFaultKind::NoEnd) {
        let end = session.complete(&operation.id);
        if schedule.has(EventFaultKind::Twice) {
            texts.extend(end.clone());
        }
        texts.extend(end);
    }
    Some(texts)
}
