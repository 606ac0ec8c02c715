//! What a client may say when: the server's side of one WebSocket connection, without clock and socket.
//!
//! Whoever drives it hands in what clients say ([`Session::receive`]) and tells which time is over ([`Session::init_due`],
//! [`Session::heartbeat`]); it does as the [`Action`] says, and asks for the text of every answer, which is `None` once
//! the client wants no more of an operation. So nothing leaves for an operation that is over.
//!
//! A driver decides about [`Action::Init`] before it hands in the next message. Clients of the legacy sub-protocol send
//! operations without waiting for the acknowledgement, and those of the current one may not.

use std::borrow::Cow;

use ogive_base::FastSet;

use crate::{Close, Protocol, client_message::ClientMessage, server_message::ServerMessage};

/// Longest id of an operation in bytes, unless a limit says something else.
pub const ID_BYTES_MAX: usize = 256;

/// What one connection may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Most operations that run at a time; default 100.
    pub operations_max: usize,
    /// Longest id of an operation in bytes; default [`ID_BYTES_MAX`].
    pub id_bytes_max: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits {
            operations_max: 100,
            id_bytes_max: ID_BYTES_MAX,
        }
    }
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was said.
    New,
    /// The client has introduced itself; the answer is awaited.
    Deciding,
    /// Operations run.
    Accepted,
    /// Nothing more is said.
    Closed,
}

/// What the driver has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action<'m> {
    /// Nothing.
    Nothing,
    /// Send this.
    Send(String),
    /// Send this; then, if the payload has a fresh credential, decide whether operations go on by it.
    Renew {
        /// The answer to the ping it came in.
        pong: String,
        /// JSON object.
        payload: &'m str,
    },
    /// Decide whether the client may connect, then call [`Session::accept`] or [`Session::refuse`].
    Init {
        /// JSON object: what the client says of itself.
        payload: Option<&'m str>,
    },
    /// Run an operation.
    Start {
        /// Its name from now on.
        id: Cow<'m, str>,
        /// JSON object: the request.
        payload: &'m str,
        /// Whether to stop one of the same name first. Only the legacy sub-protocol allows that.
        replaces: bool,
    },
    /// Refuse an operation with [`Session::reject`]: the connection has as many as it may have.
    TooMany {
        /// Its name.
        id: Cow<'m, str>,
    },
    /// Stop an operation, without a word.
    Stop {
        /// Its name.
        id: Cow<'m, str>,
    },
    /// Stop everything, send this, close.
    Close {
        /// Sent before the connection is closed.
        last: Option<String>,
        /// How to close it.
        close: Close,
    },
}

/// What is due when a heartbeat is.
#[derive(Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// Nothing, as the client has not introduced itself.
    Nothing,
    /// Send this.
    Send(String),
    /// The client has not answered the one before: close.
    Missed(Close),
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct Session {
    protocol: Protocol,
    limits: SessionLimits,
    state: State,
    running: FastSet<Box<str>>,
    /// Whether a ping was sent, and nothing came since.
    is_silent: bool,
}

impl Session {
    /// A connection on which nothing was said.
    pub fn new(protocol: Protocol, limits: SessionLimits) -> Self {
        Session {
            protocol,
            limits,
            state: State::New,
            running: FastSet::default(),
            is_silent: false,
        }
    }

    /// The sub-protocol that is spoken.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// How many operations run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// What to do about a message of the client.
    pub fn receive<'m>(&mut self, text: &'m str) -> Action<'m> {
        self.is_silent = false;
        if self.state == State::Closed {
            return Action::Nothing;
        }
        match ClientMessage::read(self.protocol, text) {
            Err(reason) => self.close(Close::bad_request(reason)),
            Ok(ClientMessage::Init { payload }) => self.init(payload),
            Ok(ClientMessage::Ping { payload }) => {
                let pong = self.text(&ServerMessage::Pong { payload });
                match payload {
                    Some(payload) if self.state == State::Accepted => {
                        Action::Renew { pong, payload }
                    }
                    _ => Action::Send(pong),
                }
            }
            Ok(ClientMessage::Pong) => Action::Nothing,
            Ok(ClientMessage::Subscribe { id, payload }) => self.subscribe(id, payload),
            Ok(ClientMessage::Complete { id }) => {
                if self.running.remove(&*id) {
                    Action::Stop { id }
                } else {
                    // Both sides may end an operation at the same time.
                    Action::Nothing
                }
            }
            Ok(ClientMessage::Terminate) => self.close(Close::normal()),
        }
    }

    /// What to do about a binary message: there are none.
    pub fn receive_binary(&mut self) -> Action<'static> {
        self.close(Close::new(1003, "Messages are text"))
    }

    fn init<'m>(&mut self, payload: Option<&'m str>) -> Action<'m> {
        if self.state != State::New {
            return self.close(Close::too_many_inits());
        }
        self.state = State::Deciding;
        Action::Init { payload }
    }

    fn subscribe<'m>(&mut self, id: Cow<'m, str>, payload: &'m str) -> Action<'m> {
        if self.state != State::Accepted {
            return self.close(Close::unauthorized());
        }
        if id.len() > self.limits.id_bytes_max {
            let most = self.limits.id_bytes_max;
            return self.close(Close::bad_request(format!(
                "Ids of operations have at most {most} bytes"
            )));
        }
        let replaces = self.running.contains(&*id);
        if replaces && self.protocol == Protocol::TransportWs {
            return self.close(Close::duplicate(&id));
        }
        if !replaces && self.running.len() >= self.limits.operations_max {
            return Action::TooMany { id };
        }
        self.running.insert(Box::from(&*id));
        Action::Start {
            id,
            payload,
            replaces,
        }
    }

    fn close(&mut self, close: Close) -> Action<'static> {
        self.state = State::Closed;
        self.running.clear();
        Action::Close { last: None, close }
    }

    /// The client may connect: what to tell it. Payload: JSON object.
    pub fn accept(&mut self, payload: Option<&str>) -> String {
        self.state = State::Accepted;
        self.text(&ServerMessage::Ack { payload })
    }

    /// The client may not connect: what to tell it. `reason`: JSON object, for clients of the legacy sub-protocol.
    pub fn refuse(&mut self, reason: &str) -> Action<'static> {
        if self.protocol == Protocol::TransportWs {
            return self.close(Close::forbidden());
        }
        let payload = Some(reason);
        let last = Some(self.text(&ServerMessage::ConnectionError { payload }));
        self.state = State::Closed;
        let close = Close::new(1011, "Forbidden");
        Action::Close { last, close }
    }

    /// The time for an introduction is over.
    pub fn init_due(&mut self) -> Action<'static> {
        if self.state == State::New {
            return self.close(Close::init_timeout());
        }
        Action::Nothing
    }

    /// A heartbeat is due. Of the legacy sub-protocol nobody can say whether clients are there.
    pub fn heartbeat(&mut self) -> Heartbeat {
        if self.state != State::Accepted {
            return Heartbeat::Nothing;
        }
        if self.protocol == Protocol::LegacyWs {
            return Heartbeat::Send(self.text(&ServerMessage::KeepAlive));
        }
        if self.is_silent {
            self.close(Close::going_away());
            return Heartbeat::Missed(Close::new(1001, "No answer to a ping"));
        }
        self.is_silent = true;
        Heartbeat::Send(self.text(&ServerMessage::Ping { payload: None }))
    }

    /// Somebody is there: a control frame came.
    pub fn alive(&mut self) {
        self.is_silent = false;
    }

    /// Whether an answer of an operation is wanted.
    pub fn wants(&self, id: &str) -> bool {
        self.running.contains(id)
    }

    /// An answer of an operation, a JSON object; `None` if nobody wants it.
    pub fn next(&self, id: &str, payload: &str) -> Option<String> {
        let id = self.running.contains(id).then_some(Cow::from(id))?;
        Some(self.text(&ServerMessage::Next { id, payload }))
    }

    /// An operation failed before it ran, and is over. `errors`: JSON list. `None` if nobody wants to know.
    pub fn error(&mut self, id: &str, errors: &str) -> Option<String> {
        self.running.remove(id).then(|| self.reject(id, errors))
    }

    /// Refuses an operation that was not begun. `errors`: JSON list.
    pub fn reject(&self, id: &str, errors: &str) -> String {
        let (id, payload) = (Cow::from(id), errors);
        self.text(&ServerMessage::Error { id, payload })
    }

    /// An operation is over; `None` if it has been before.
    pub fn complete(&mut self, id: &str) -> Option<String> {
        let over = self.running.remove(id);
        over.then(|| self.text(&ServerMessage::Complete { id: id.into() }))
    }

    fn text(&self, message: &ServerMessage<'_>) -> String {
        let mut out = String::new();
        message.write(self.protocol, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(protocol: Protocol) -> Session {
        let limits = SessionLimits {
            operations_max: 2,
            id_bytes_max: 8,
        };
        Session::new(protocol, limits)
    }

    fn accepted(protocol: Protocol) -> Session {
        let mut session = session(protocol);
        let init = session.receive(r#"{"type":"connection_init"}"#);
        assert_eq!(init, Action::Init { payload: None });
        assert_eq!(session.accept(None), r#"{"type":"connection_ack"}"#);
        session
    }

    fn code(action: &Action<'_>) -> u16 {
        match action {
            Action::Close { close, .. } => close.code,
            other => panic!("not closed: {other:?}"),
        }
    }

    const SUBSCRIBE: &str = r#"{"id":"1","type":"subscribe","payload":{"query":"{a}"}}"#;
    const START: &str = r#"{"id":"1","type":"start","payload":{"query":"{a}"}}"#;

    #[test]
    fn an_operation_lives_from_subscribe_to_complete() {
        let mut session = accepted(Protocol::TransportWs);
        let started = session.receive(SUBSCRIBE);
        let payload = r#"{"query":"{a}"}"#;
        assert_eq!(
            started,
            Action::Start {
                id: "1".into(),
                payload,
                replaces: false
            }
        );
        assert_eq!(
            session.next("1", r#"{"data":{}}"#).as_deref(),
            Some(r#"{"id":"1","type":"next","payload":{"data":{}}}"#)
        );
        assert_eq!(
            session.complete("1").as_deref(),
            Some(r#"{"id":"1","type":"complete"}"#)
        );
        assert_eq!(session.next("1", "{}"), None);
        assert_eq!(session.complete("1"), None);
        // Its name may be used again.
        assert!(matches!(session.receive(SUBSCRIBE), Action::Start { .. }));
    }

    #[test]
    fn nothing_leaves_after_the_client_ended_an_operation() {
        let mut session = accepted(Protocol::TransportWs);
        session.receive(SUBSCRIBE);
        let complete = r#"{"id":"1","type":"complete"}"#;
        assert_eq!(session.receive(complete), Action::Stop { id: "1".into() });
        assert_eq!(session.next("1", "{}"), None);
        assert_eq!(session.error("1", "[]"), None);
        assert_eq!(session.complete("1"), None);
        assert_eq!(session.receive(complete), Action::Nothing);
    }

    #[test]
    fn every_violation_has_the_code_of_the_specification() {
        let modern = Protocol::TransportWs;
        assert_eq!(code(&session(modern).receive("{")), 4400);
        assert_eq!(code(&session(modern).receive(r#"{"type":"ka"}"#)), 4400);
        assert_eq!(code(&session(modern).receive(SUBSCRIBE)), 4401);
        assert_eq!(code(&session(modern).init_due()), 4408);
        assert_eq!(code(&session(modern).receive_binary()), 1003);
        let init = r#"{"type":"connection_init"}"#;
        assert_eq!(code(&accepted(modern).receive(init)), 4429);
        let mut deciding = session(modern);
        deciding.receive(init);
        assert_eq!(code(&deciding.receive(SUBSCRIBE)), 4401);
        let mut deciding = session(modern);
        deciding.receive(init);
        assert_eq!(code(&deciding.receive(init)), 4429);
        let mut refused = session(modern);
        refused.receive(init);
        assert_eq!(code(&refused.refuse("{}")), 4403);
        let mut twice = accepted(modern);
        twice.receive(SUBSCRIBE);
        assert_eq!(code(&twice.receive(SUBSCRIBE)), 4409);
        assert_eq!(
            twice.next("1", "{}"),
            None,
            "closed connections say nothing"
        );
        let long = r#"{"id":"123456789","type":"subscribe","payload":{}}"#;
        assert_eq!(code(&accepted(modern).receive(long)), 4400);
        assert_eq!(accepted(modern).init_due(), Action::Nothing);
    }

    #[test]
    fn operations_beyond_the_limit_are_refused_one_by_one() {
        let mut session = accepted(Protocol::TransportWs);
        for id in ["a", "b", "c"] {
            let text = format!(r#"{{"id":"{id}","type":"subscribe","payload":{{}}}}"#);
            match session.receive(&text) {
                Action::Start { .. } => assert_ne!(id, "c"),
                Action::TooMany { id } => assert_eq!(id, "c"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(session.running(), 2);
        assert_eq!(
            session.reject("c", r#"[{"message":"no"}]"#),
            r#"{"id":"c","type":"error","payload":[{"message":"no"}]}"#
        );
    }

    #[test]
    fn the_legacy_sub_protocol_replaces_refuses_and_ends_in_its_own_words() {
        let mut session = accepted(Protocol::LegacyWs);
        session.receive(START);
        let again = session.receive(START);
        assert!(matches!(again, Action::Start { replaces: true, .. }));
        assert_eq!(
            session.next("1", "{}").as_deref(),
            Some(r#"{"id":"1","type":"data","payload":{}}"#)
        );
        let stopped = session.receive(r#"{"id":"1","type":"stop"}"#);
        assert_eq!(stopped, Action::Stop { id: "1".into() });
        assert_eq!(
            session.heartbeat(),
            Heartbeat::Send(r#"{"type":"ka"}"#.into())
        );
        let over = session.receive(r#"{"type":"connection_terminate"}"#);
        assert_eq!(code(&over), 1000);

        let mut refused = self::session(Protocol::LegacyWs);
        refused.receive(r#"{"type":"connection_init","payload":{"a":1}}"#);
        match refused.refuse(r#"{"message":"no"}"#) {
            Action::Close { last, close } => {
                let told = r#"{"type":"connection_error","payload":{"message":"no"}}"#;
                assert_eq!(last.as_deref(), Some(told));
                assert_eq!(close.code, 1011);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_client_that_does_not_answer_pings_is_left() {
        let mut session = accepted(Protocol::TransportWs);
        let ping = Heartbeat::Send(r#"{"type":"ping"}"#.into());
        assert_eq!(session.heartbeat(), ping);
        assert_eq!(session.receive(r#"{"type":"pong"}"#), Action::Nothing);
        assert_eq!(session.heartbeat(), ping);
        session.alive();
        assert_eq!(session.heartbeat(), ping);
        assert!(matches!(session.heartbeat(), Heartbeat::Missed(_)));
        assert_eq!(session.heartbeat(), Heartbeat::Nothing);
    }

    #[test]
    fn pings_are_answered_with_what_they_carry() {
        let mut session = session(Protocol::TransportWs);
        assert_eq!(
            session.receive(r#"{"type":"ping","payload":{"a":[1]}}"#),
            Action::Send(r#"{"type":"pong","payload":{"a":[1]}}"#.into())
        );
        // Whoever is known may bring a fresh credential like this.
        let pong = r#"{"type":"pong","payload":{"a":[1]}}"#.to_owned();
        assert_eq!(
            accepted(Protocol::TransportWs).receive(r#"{"type":"ping","payload":{"a":[1]}}"#),
            Action::Renew {
                pong,
                payload: r#"{"a":[1]}"#
            }
        );
    }

    #[test]
    fn whoever_says_anything_is_there_even_if_pings_are_never_answered() {
        let mut session = accepted(Protocol::TransportWs);
        for _ in 0..3 {
            assert!(matches!(session.heartbeat(), Heartbeat::Send(_)));
            session.receive(r#"{"id":"9","type":"complete"}"#);
        }
        assert!(matches!(session.heartbeat(), Heartbeat::Send(_)));
        session.alive();
        assert!(matches!(session.heartbeat(), Heartbeat::Send(_)));
        assert!(matches!(session.heartbeat(), Heartbeat::Missed(_)));
    }
}
