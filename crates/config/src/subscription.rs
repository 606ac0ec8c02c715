//! The options of `subscription`.

use std::num::NonZeroUsize;

use crate::{
    ByteSize, Duration, Path, SingleConnectionOptions, SubscriptionModeOptions, decode::section,
    scalars::nonzero, words::words,
};

section! {
    /// `subscription`
    pub struct SubscriptionOptions {
        /// Whether subscriptions are served, and operations over streams and WebSockets. Off, nothing of it is there.
        pub enabled: bool = false,
        /// The side of subgraphs.
        pub mode: SubscriptionModeOptions = SubscriptionModeOptions::default(),
        /// How many times in a row, without an event between them, a lost stream of a subgraph is opened again before its
        /// subscription fails with `SUBREQUEST_STREAM_LOST`. What happened meanwhile nobody knows: log and metrics tell.
        pub max_reconnect_attempts: u32 = 5,
        /// How long to wait before the first of these tries; each further time twice as long, up to `30s`.
        pub reconnect_delay: Duration = Duration::seconds(1),
        /// The client's side.
        pub client: SubscriptionClientOptions = SubscriptionClientOptions::default(),
        /// Equal subscriptions.
        pub deduplication: DeduplicationOptions = DeduplicationOptions::default(),
        /// Most subscriptions at a time; more are refused with `SUBSCRIPTIONS_LIMITED`. One client has `limits.client_share` of
        /// them at most.
        pub max_opened_subscriptions: NonZeroUsize = nonzero(10_000),
        /// Most events that wait for one client that does not take them.
        pub queue_capacity: NonZeroUsize = nonzero(1_024),
        /// Most bytes of them; an event that is larger waits alone.
        pub queue_bytes: ByteSize = ByteSize(1 << 20),
        /// What becomes of a subscription whose client takes its events too slowly: `close` ends it with
        /// `SUBSCRIPTION_OVERFLOW` behind those that wait, `drop_oldest` drops those that have waited longest, and says how
        /// many in `extensions.droppedEvents` of the next one.
        pub on_overflow: OverflowWord = OverflowWord::Close,
        /// Over how long a time subscriptions are ended after a new schema or configuration, evenly, so that not all clients
        /// come back at once.
        pub reload_window: Duration = Duration::seconds(10),
    }

    /// `subscription.client`
    pub struct SubscriptionClientOptions {
        /// How often something is sent on a stream or a WebSocket on which nothing else is, so that nobody in between takes it
        /// for dead; `0s` never.
        pub heartbeat_interval: Duration = Duration::seconds(10),
        /// Streams of server-sent events for many operations.
        pub single_connection: SingleConnectionOptions = SingleConnectionOptions::default(),
        /// WebSockets.
        pub websocket: WebSocketOptions = WebSocketOptions::default(),
    }

    /// `subscription.client.websocket`
    pub struct WebSocketOptions {
        /// Whether there are any.
        pub enabled: bool = true,
        /// Their path; default that of the GraphQL endpoint.
        pub path: Option<Path> = None,
        /// How long a client may take to introduce itself (`connection_init`); then the connection is closed with 4408.
        pub connection_init_timeout: Duration = Duration::seconds(10),
        /// Most of them at a time, over either version of HTTP; more are refused with 503. One client has
        /// `limits.client_share` of them at most.
        pub max_connections: NonZeroUsize = nonzero(10_000),
        /// Most operations at a time on one connection; more are refused one by one.
        pub max_operations_per_connection: NonZeroUsize = nonzero(100),
        /// Largest message of a client.
        pub max_message_size: ByteSize = ByteSize(2 << 20),
        /// Headers that clients may send in the payload of `connection_init` instead, as its members or those of its member
        /// `headers`, because pages cannot choose those of the upgrade. What the upgrade has counts first.
        pub headers_from_init: Vec<String> = vec!["authorization".into()],
    }

    /// `subscription.deduplication`
    pub struct DeduplicationOptions {
        /// Whether equal subscriptions of clients have one source, one look-up and one encoding for each event: same operation,
        /// same variables, same rights, and the same headers for every subgraph that is asked.
        pub enabled: bool = true,
    }
}

words! {
    /// What becomes of a subscription whose client takes its events too slowly.
    pub enum OverflowWord {
        /// It ends.
        Close = "close",
        /// Events are dropped.
        DropOldest = "drop_oldest",
    }
}
