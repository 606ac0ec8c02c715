//! How a subgraph sends events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use http::{HeaderName, header, uri::PathAndQuery};

/// The protocol of a subgraph's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EventProtocol {
    /// Streaming HTTP, SSE before multipart; WebSocket, `graphql-transport-ws`, if the subgraph answers with no stream.
    /// What worked is tried first from then on.
    #[default]
    Auto,
    /// Server-sent events, one connection per subscription.
    Sse,
    /// Multipart answers, `subscriptionSpec=1.0`.
    Multipart,
    /// WebSocket, sub-protocol `graphql-transport-ws`.
    TransportWs,
    /// WebSocket, sub-protocol `graphql-ws`, which is not maintained any more.
    LegacyWs,
    /// Requests of the subgraph, `callback/1.0`.
    Callback,
}

impl EventProtocol {
    /// How it is called in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            EventProtocol::Auto => "auto",
            EventProtocol::Sse => "sse",
            EventProtocol::Multipart => "multipart",
            EventProtocol::TransportWs => "graphql_ws",
            EventProtocol::LegacyWs => "graphql_transport_ws",
            EventProtocol::Callback => "callback",
        }
    }
}

/// Where a subgraph sends its events to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackSource {
    /// URL, without the id of the subscription and without a slash at its end.
    pub url: Box<str>,
    /// How often it has to say that it is there.
    pub heartbeat_interval: Option<Duration>,
}

/// When a lost stream is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// Tries in a row, without an event between them; default 5. None: a lost stream ends its subscription.
    pub attempts: u32,
    /// How long to wait before the first; each further time twice as long; default 1 s.
    pub delay: Duration,
    /// The longest wait; default 30 s.
    pub delay_max: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Reconnect {
            attempts: 5,
            delay: Duration::from_secs(1),
            delay_max: Duration::from_secs(30),
        }
    }
}

impl Reconnect {
    /// How long to wait before that try.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        let times = 1u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.delay.saturating_mul(times).min(self.delay_max)
    }
}

/// What worked where the protocol is to be found out; one for all workers.
#[derive(Clone, Debug, Default)]
pub struct LearnedProtocol(Arc<AtomicU8>);

/// How a subgraph sends events, and how patient we are.
#[derive(Clone, Debug)]
pub struct EventSource {
    /// By which protocol.
    pub protocol: EventProtocol,
    /// Where, if not at the path of the subgraph's URL.
    pub path: Option<PathAndQuery>,
    /// How often a WebSocket connection is asked whether the subgraph is there, which has as long to answer; default 30 s.
    /// TCP asks as often below streams over HTTP.
    pub heartbeat_interval: Option<Duration>,
    /// How long a subgraph may take to acknowledge a WebSocket connection; default 10 s.
    pub acknowledge_timeout: Duration,
    /// Headers of the request that also go into the payload of `connection_init`; default `authorization`.
    pub connection_init: Vec<HeaderName>,
    /// Most events of one subscription over WebSocket that wait for their reader; default 128.
    pub queue_events: usize,
    /// Most bytes of them; default 1 MiB. An event that is larger waits alone.
    pub queue_bytes: usize,
    /// How long a subscription may hold up others on its connection; default 5 s.
    pub stall_timeout: Duration,
    /// Most subscriptions that share a connection; default 1,000.
    pub connection_subscriptions_max: usize,
    /// How long a subgraph whose protocol nobody knows may take to answer over HTTP before it is asked over WebSocket, too,
    /// and whoever answers first is taken; default 2 s.
    pub patience: Duration,
    /// Where it sends events to, if it does.
    pub callback: Option<CallbackSource>,
    /// When a lost stream is opened again.
    pub reconnect: Reconnect,
    /// Which protocol worked; default nobody knows yet.
    pub learned: LearnedProtocol,
}

impl Default for EventSource {
    fn default() -> Self {
        EventSource {
            protocol: EventProtocol::default(),
            path: None,
            heartbeat_interval: Some(Duration::from_secs(30)),
            acknowledge_timeout: Duration::from_secs(10),
            connection_init: vec![header::AUTHORIZATION],
            queue_events: 128,
            queue_bytes: 1 << 20,
            stall_timeout: Duration::from_secs(5),
            connection_subscriptions_max: 1_000,
            patience: Duration::from_secs(2),
            callback: None,
            reconnect: Reconnect::default(),
            learned: LearnedProtocol::default(),
        }
    }
}

/// A protocol that worked where it was to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    Nothing = 0,
    Http = 1,
    WebSocket = 2,
}

impl EventSource {
    pub(crate) fn learned(&self) -> Learned {
        match self.learned.0.load(Ordering::Relaxed) {
            1 => Learned::Http,
            2 => Learned::WebSocket,
            _ => Learned::Nothing,
        }
    }
    pub(crate) fn learn(&self, learned: Learned) {
        self.learned.0.store(learned as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let reconnect = Reconnect::default();
        let seconds = |attempt| reconnect.wait(attempt).as_secs();
        let waits: Vec<u64> = [0, 1, 2, 4, 5, 31, 32, 1_000].map(seconds).to_vec();
        assert_eq!(waits, [1, 2, 4, 16, 30, 30, 30, 30]);
    }
}
