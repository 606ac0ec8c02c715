//! Subscriptions by the HTTP callback protocol, 1.0: events are requests to whoever subscribed.
//!
//! It is asked (`check`) before its request is answered, then it gets the events of the subgraph's schedule, one after the
//! other, and a `check` at the interval it has named, until it says that nobody wants them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use ogive_stream::callback::{HEADER, VERSION};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep_until},
};

use crate::{
    events::{EventFaultKind, EventSchedule},
    service::Service,
};

/// Whoever subscribed.
pub(super) struct Subscriber {
    uri: Uri,
    id: String,
    verifier: String,
    heartbeat: Option<Duration>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Subscriber {
    /// Reads who it is, if the request is one of the protocol.
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Option<Subscriber> {
        let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
        if !accept.contains("callbackSpec") {
            return None;
        }
        let request: Value = serde_json::from_slice(body).ok()?;
        let own = request.get("extensions")?.get("subscription")?;
        let text = |name: &str| own.get(name)?.as_str().map(str::to_owned);
        let every = own.get("heartbeatIntervalMs").and_then(Value::as_u64);
        Some(Subscriber {
            uri: text("callbackUrl")?.parse().ok()?,
            id: text("subscriptionId")?,
            verifier: text("verifier")?,
            heartbeat: every.filter(|ms| *ms > 0).map(Duration::from_millis),
            connection: None,
        })
    }

    /// Asks whether the events are wanted; whether they are.
    pub(super) async fn check(&mut self) -> bool {
        self.send(json!({"action": "check"})).await == Some(StatusCode::NO_CONTENT)
    }

    async fn connect(&mut self) -> Option<&mut SendRequest<Full<Bytes>>> {
        let is_usable = match &mut self.connection {
            Some(connection) => connection.ready().await.is_ok(),
            None => false,
        };
        if !is_usable {
            let host = self.uri.host()?;
            let port = self.uri.port_u16().unwrap_or(80);
            let stream = TcpStream::connect((host, port)).await.ok()?;
            let (connection, driven) = handshake(TokioIo::new(stream)).await.ok()?;
            tokio::task::spawn_local(driven);
            self.connection = Some(connection);
        }
        self.connection.as_mut()
    }

    /// Sends a message; the status of the answer, if there is one.
    async fn send(&mut self, mut message: Value) -> Option<StatusCode> {
        let members = message.as_object_mut()?;
        members.insert("kind".into(), "subscription".into());
        members.insert("id".into(), self.id.as_str().into());
        members.insert("verifier".into(), self.verifier.as_str().into());
        let mut request = Request::new(Full::new(Bytes::from(message.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.path().parse().ok()?;
        let host = self.uri.authority()?.as_str();
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_str(host).ok()?);
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        headers.insert(HEADER, HeaderValue::from_static(VERSION));
        let answer = self.connect().await?.send_request(request).await.ok()?;
        Some(answer.status())
    }

    /// Sends the events.
    pub(super) async fn feed(mut self, service: Arc<Service>, subgraph: String, request: Bytes) {
        let mut schedule = service.event_schedule(&subgraph);
        let (mut sent, mut due) = (0, Instant::now() + schedule.interval);
        let is_silent = schedule.has(EventFaultKind::Silent);
        let heartbeat = self.heartbeat.filter(|_| !is_silent);
        let mut beat = heartbeat.map(|every| Instant::now() + every);
        loop {
            if schedule.count.is_some_and(|count| sent >= count) {
                return self.end(&schedule).await;
            }
            tokio::select! {
                () = sleep_until(due) => {
                    sent += 1;
                    due += schedule.interval;
                    let message = match schedule.strikes(sent) {
                        Some(EventFaultKind::Drop) => return,
                        Some(_) => json!({"action": "garbage"}),
                        None => {
                            let (answer, is_last) = service.event(&subgraph, &request, sent - 1);
                            if is_last {
                                schedule.count = Some(sent);
                            }
                            let payload: Value = serde_json::from_slice(&answer).unwrap_or_default();
                            json!({"action": "next", "payload": payload})
                        }
                    };
                    if self.send(message).await != Some(StatusCode::ACCEPTED) {
                        return;
                    }
                }
                () = sleep_until(beat.unwrap_or(due)), if beat.is_some() => {
                    beat = heartbeat.map(|every| Instant::now() + every);
                    if !self.check().await {
                        return;
                    }
                }
            }
        }
    }

    async fn end(mut self, schedule: &EventSchedule) {
        if schedule.has(EventFaultKind::NoEnd) {
            return;
        }
        let times = if schedule.has(EventFaultKind::Twice) {
            2
        } else {
            1
        };
        for _ in 0..times {
            self.send(json!({"action": "complete"})).await;
        }
    }

    /// An event before it was asked whether any are wanted.
    pub(super) async fn send_early(&mut self) {
        let payload = json!({"data": null});
        self.send(json!({"action": "next", "payload": payload}))
            .await;
    }
}
