//! How subscriptions are served, as a configuration asks for it.

use std::time::Duration;

use http::HeaderName;
use ogive_config::{Config, OverflowWord};

/// How subscriptions are served.
#[derive(Clone, Debug)]
pub struct SubscriptionOptions {
    /// Most of them at a time.
    pub opened_max: usize,
    /// What waits for one client.
    pub queue: QueueLimits,
    /// How often something is sent; `None` never.
    pub heartbeat: Option<Duration>,
    /// Whether equal ones share their source.
    pub shared: bool,
    /// Over how long a time they end after a reload...
    pub reload_window: Duration,
    /// ... and when the process stops.
    pub drain_window: Duration,
    /// Streams for many operations, if there are any.
    pub single_connection: Option<SingleConnectionOptions>,
    /// WebSockets, if there are any.
    pub websocket: Option<WebSocketOptions>,
    /// Path of the requests by which subgraphs send events, with a slash at its end, if any do.
    pub callback_path: Option<String>,
}

/// What waits for one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Most events.
    pub events_max: usize,
    /// Most bytes of them.
    pub bytes_max: usize,
    /// Whether the oldest are dropped beyond it; else the subscription ends.
    pub drops: bool,
}

/// How streams for many operations are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SingleConnectionOptions {
    /// Most of them at a time.
    pub streams_max: usize,
    /// Most operations at a time in one.
    pub operations_max: usize,
    /// How long a client may take from the token to the stream.
    pub reservation_timeout: Duration,
}

/// How WebSockets are served.
#[derive(Clone, Debug)]
pub struct WebSocketOptions {
    /// Their path.
    pub path: String,
    /// How long clients may take to introduce themselves.
    pub init_timeout: Duration,
    /// Most of them at a time.
    pub connections_max: usize,
    /// Most operations at a time on one connection.
    pub operations_max: usize,
    /// Largest message of a client.
    pub message_bytes_max: usize,
    /// Headers that may come with the introduction.
    pub init_headers: Vec<HeaderName>,
}

impl SubscriptionOptions {
    /// The options that a configuration asks for; `None` if there are no subscriptions.
    pub fn new(config: &Config) -> Option<Self> {
        let options = &config.subscription;
        let (client, websocket) = (&options.client, &options.client.websocket);
        let callback = &options.mode.callback;
        let path = websocket.path.as_ref();
        let path = path.unwrap_or(&config.http.graphql_endpoint);
        let names = websocket.headers_from_init.iter();
        let websocket = websocket.enabled.then(|| WebSocketOptions {
            path: path.0.clone(),
            init_timeout: websocket.connection_init_timeout.0,
            connections_max: websocket.max_connections.get(),
            operations_max: websocket.max_operations_per_connection.get(),
            message_bytes_max: websocket.max_message_size.0,
            init_headers: names
                .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
                .collect(),
        });
        let single = &client.single_connection;
        let single_connection = single.enabled.then(|| SingleConnectionOptions {
            streams_max: single.max_streams.get(),
            operations_max: single.max_operations_per_stream.get(),
            reservation_timeout: single.reservation_timeout.0,
        });
        options.enabled.then(|| SubscriptionOptions {
            opened_max: options.max_opened_subscriptions.get(),
            queue: QueueLimits {
                events_max: options.queue_capacity.get(),
                bytes_max: options.queue_bytes.0,
                drops: options.on_overflow == OverflowWord::DropOldest,
            },
            heartbeat: Some(client.heartbeat_interval.0).filter(|every| !every.is_zero()),
            shared: options.deduplication.enabled,
            reload_window: options.reload_window.0,
            // What is left is for clients that are slow to hear it.
            drain_window: config.http.connection_shutdown_timeout.0 / 2,
            single_connection,
            websocket,
            callback_path: (!callback.subgraphs.is_empty())
                .then(|| format!("{}/", callback.path.0.trim_end_matches('/'))),
        })
    }
}
