//! What a subgraph may say when: the client's side of one WebSocket connection, without clock and socket.
//!
//! One connection carries many subscriptions; their ids are numbers that are never used twice. What comes late for a
//! subscription that we ended is no mistake of the subgraph; what comes for one that the subgraph itself has ended, or
//! for one that never was, is.

use std::collections::VecDeque;

use ogive_base::FastSet;

use crate::{Protocol, client_message::ClientMessage, server_message::ServerMessage};

/// How many of the last subscriptions that the subgraph ended are known by name.
const ENDED_MAX: usize = 64;

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// We have introduced ourselves, or are about to.
    Waiting,
    /// Operations run.
    Ready,
    /// Nothing more is said.
    Over,
}

/// What a message of the subgraph means.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'m> {
    /// Nothing.
    Nothing,
    /// Send this.
    Send(String),
    /// Operations may be sent.
    Ready,
    /// We may not connect; JSON: why.
    Refused(Option<&'m str>),
    /// An answer of a subscription: JSON object.
    Next(u64, &'m str),
    /// A subscription failed before it ran, and is over. JSON: a list of errors, or one.
    Failed(u64, &'m str),
    /// A subscription is over.
    Complete(u64),
    /// The subgraph speaks of a subscription that it has ended itself, or that never was. Nobody is harmed, and the
    /// connection should not get further ones.
    Stray(String),
    /// The subgraph does not speak the sub-protocol: close the connection with 4400.
    Violation(String),
}

/// The client's side of one connection.
#[derive(Debug)]
pub struct Upstream {
    protocol: Protocol,
    state: State,
    /// The id of the next subscription.
    next: u64,
    open: FastSet<u64>,
    /// Those that the subgraph ended, the last ones.
    ended: VecDeque<u64>,
    /// Whether a ping was sent, and nothing came since.
    is_silent: bool,
}

impl Upstream {
    /// A connection on which nothing was said.
    pub fn new(protocol: Protocol) -> Self {
        Upstream {
            protocol,
            state: State::Waiting,
            next: 1,
            open: FastSet::default(),
            ended: VecDeque::new(),
            is_silent: false,
        }
    }

    /// What to send first. Payload: JSON object.
    pub fn init(&self, payload: Option<&str>) -> String {
        self.text(&ClientMessage::Init { payload })
    }

    /// Whether subscriptions may be sent.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// How many subscriptions are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// A subscription's number, and what to send. Payload: JSON object. Only once the connection is ready.
    pub fn subscribe(&mut self, payload: &str) -> (u64, String) {
        let number = self.next;
        self.next += 1;
        self.open.insert(number);
        let id = number.to_string().into();
        (number, self.text(&ClientMessage::Subscribe { id, payload }))
    }

    /// Ends a subscription: what to send, if the subgraph has not ended it.
    pub fn unsubscribe(&mut self, number: u64) -> Option<String> {
        let id = number.to_string().into();
        let open = self.open.remove(&number) && self.state == State::Ready;
        open.then(|| self.text(&ClientMessage::Complete { id }))
    }

    /// Asks whether somebody is there; an error if the last question was not answered. The legacy sub-protocol has no
    /// question: there the subgraph has to speak up by itself, and with `None` nothing is sent.
    pub fn ping(&mut self) -> Result<Option<String>, Unanswered> {
        if self.is_silent {
            return Err(Unanswered);
        }
        self.is_silent = true;
        let ping = ClientMessage::Ping { payload: None };
        Ok((self.protocol == Protocol::TransportWs).then(|| self.text(&ping)))
    }

    /// Somebody is there: a control frame came.
    pub fn alive(&mut self) {
        self.is_silent = false;
    }

    /// What to send before the socket is closed.
    pub fn goodbye(&self) -> Option<String> {
        let legacy = self.protocol == Protocol::LegacyWs;
        legacy.then(|| self.text(&ClientMessage::Terminate))
    }

    /// What a message of the subgraph means.
    pub fn receive<'m>(&mut self, text: &'m str) -> Event<'m> {
        self.is_silent = false;
        let message = match ServerMessage::read(self.protocol, text) {
            Ok(message) => message,
            Err(what) => return self.violated(what),
        };
        match (message, self.state) {
            (_, State::Over) => Event::Nothing,
            (ServerMessage::Ack { .. }, State::Waiting) => {
                self.state = State::Ready;
                Event::Ready
            }
            (ServerMessage::Ack { .. }, State::Ready) => {
                self.violated("a connection is acknowledged once".into())
            }
            (ServerMessage::ConnectionError { payload }, _) => {
                self.state = State::Over;
                Event::Refused(payload)
            }
            (ServerMessage::Ping { .. }, _) => Event::Send(self.text(&ClientMessage::Pong)),
            (ServerMessage::Pong { .. } | ServerMessage::KeepAlive, _) => Event::Nothing,
            (_, State::Waiting) => {
                self.violated("a message of an operation before the acknowledgement".into())
            }
            (ServerMessage::Next { id, payload }, _) => match self.number(&id) {
                Known::Open(number) => Event::Next(number, payload),
                Known::Late => Event::Nothing,
                Known::Wrong(what) => Event::Stray(what),
            },
            (ServerMessage::Error { id, payload }, _) => match self.number(&id) {
                Known::Open(number) => {
                    self.end(number);
                    Event::Failed(number, payload)
                }
                Known::Late => Event::Nothing,
                Known::Wrong(what) => Event::Stray(what),
            },
            (ServerMessage::Complete { id }, _) => match self.number(&id) {
                Known::Open(number) => {
                    self.end(number);
                    Event::Complete(number)
                }
                Known::Late => Event::Nothing,
                Known::Wrong(what) => Event::Stray(what),
            },
        }
    }

    fn violated(&mut self, what: String) -> Event<'static> {
        self.state = State::Over;
        Event::Violation(what)
    }

    fn end(&mut self, number: u64) {
        self.open.remove(&number);
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(number);
    }

    fn number(&self, id: &str) -> Known {
        match id.parse::<u64>() {
            Ok(number) if self.open.contains(&number) => Known::Open(number),
            Ok(number) if self.ended.contains(&number) => Known::Wrong(format!(
                "subscription {number} was ended by the subgraph before"
            )),
            Ok(number) if (1..self.next).contains(&number) => Known::Late,
            _ => {
                let id = ogive_base::foreign::bounded_name(id);
                Known::Wrong(format!("there is no subscription `{id}`"))
            }
        }
    }

    fn text(&self, message: &ClientMessage<'_>) -> String {
        let mut out = String::new();
        message.write(self.protocol, &mut out);
        out
    }
}

/// A ping was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered;

/// What is known of an id.
enum Known {
    Open(u64),
    Late,
    Wrong(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(protocol: Protocol) -> Upstream {
        let mut upstream = Upstream::new(protocol);
        assert_eq!(upstream.init(None), r#"{"type":"connection_init"}"#);
        let ready = upstream.receive(r#"{"type":"connection_ack","payload":{"x":1}}"#);
        assert_eq!(ready, Event::Ready);
        upstream
    }

    #[test]
    fn subscriptions_share_a_connection() {
        let mut upstream = ready(Protocol::TransportWs);
        let (one, text) = upstream.subscribe(r#"{"query":"subscription{a}"}"#);
        assert_eq!(
            text,
            r#"{"id":"1","type":"subscribe","payload":{"query":"subscription{a}"}}"#
        );
        let (two, _) = upstream.subscribe("{}");
        assert_ne!(one, two);
        let next = upstream.receive(r#"{"id":"2","type":"next","payload":{"data":1}}"#);
        assert_eq!(next, Event::Next(two, r#"{"data":1}"#));
        let over = upstream.receive(r#"{"id":"1","type":"complete"}"#);
        assert_eq!(over, Event::Complete(one));
        let text = r#"{"id":"2","type":"complete"}"#;
        assert_eq!(upstream.unsubscribe(two).as_deref(), Some(text));
        assert_eq!(upstream.unsubscribe(one), None);
        assert_eq!(upstream.open(), 0);
    }

    #[test]
    fn what_comes_late_is_no_mistake_and_what_comes_twice_is() {
        let mut upstream = ready(Protocol::TransportWs);
        let (one, _) = upstream.subscribe("{}");
        let (two, _) = upstream.subscribe("{}");
        upstream.unsubscribe(one);
        let next = r#"{"id":"1","type":"next","payload":{}}"#;
        assert_eq!(upstream.receive(next), Event::Nothing);
        let complete = r#"{"id":"2","type":"complete"}"#;
        assert_eq!(upstream.receive(complete), Event::Complete(two));
        assert!(matches!(upstream.receive(complete), Event::Stray(_)));
        let unknown = r#"{"id":"x","type":"complete"}"#;
        assert!(matches!(upstream.receive(unknown), Event::Stray(_)));
        let future = r#"{"id":"3","type":"next","payload":{}}"#;
        assert!(matches!(upstream.receive(future), Event::Stray(_)));
    }

    #[test]
    fn what_no_subgraph_may_say_is_a_violation() {
        let next = r#"{"id":"1","type":"next","payload":{}}"#;
        let mut early = Upstream::new(Protocol::TransportWs);
        assert!(matches!(early.receive(next), Event::Violation(_)));
        assert_eq!(early.receive(next), Event::Nothing);
        for text in [r#"{"type":"connection_ack"}"#, "<html>", r#"{"type":"x"}"#] {
            let mut upstream = ready(Protocol::TransportWs);
            assert!(
                matches!(upstream.receive(text), Event::Violation(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn the_legacy_sub_protocol_refuses_and_keeps_alive_in_its_own_words() {
        let mut upstream = ready(Protocol::LegacyWs);
        assert!(upstream.subscribe("{}").1.contains("\"start\""));
        assert_eq!(upstream.receive(r#"{"type":"ka"}"#), Event::Nothing);
        assert_eq!(upstream.ping(), Ok(None));
        assert_eq!(upstream.ping(), Err(Unanswered));
        assert!(upstream.goodbye().is_some());
        let mut refused = Upstream::new(Protocol::LegacyWs);
        let text = r#"{"type":"connection_error","payload":{"message":"no"}}"#;
        assert_eq!(
            refused.receive(text),
            Event::Refused(Some(r#"{"message":"no"}"#))
        );
    }

    #[test]
    fn a_subgraph_that_does_not_answer_pings_is_found_out() {
        let mut upstream = ready(Protocol::TransportWs);
        assert!(upstream.ping().is_ok_and(|text| text.is_some()));
        upstream.receive(r#"{"type":"pong"}"#);
        assert!(upstream.ping().is_ok());
        assert_eq!(upstream.ping(), Err(Unanswered));
    }
}
