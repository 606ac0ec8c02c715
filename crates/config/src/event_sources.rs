//! The options of `subscription.mode`: how subgraphs send events.

use std::collections::BTreeMap;

use crate::{Config, Duration, Path, Url, decode::section, words::words};

section! {
    /// `subscription.mode`
    pub struct SubscriptionModeOptions {
        /// Streams that the gateway opens, one for each subscription or many on one WebSocket connection.
        pub passthrough: PassthroughOptions = PassthroughOptions::default(),
        /// Subgraphs that send their events by requests to the gateway (`callback/1.0`).
        pub callback: CallbackOptions = CallbackOptions::default(),
    }

    /// `subscription.mode.callback`
    pub struct CallbackOptions {
        /// Where subgraphs reach this process: a URL with the path, of which the id of a subscription becomes the last segment.
        /// With several processes each needs one of its own. Needed where there are `subgraphs`.
        pub public_url: Option<Url> = None,
        /// Path of these requests on the gateway's own address.
        pub path: Path = Path("/callback".into()),
        /// How often a subgraph has to say that it is there; a subscription of which nothing was heard three times as long is
        /// lost. `0s`: never.
        pub heartbeat_interval: Duration = Duration::seconds(5),
        /// Names of the subgraphs.
        pub subgraphs: Vec<String> = Vec::new(),
    }

    /// `subscription.mode.passthrough`
    pub struct PassthroughOptions {
        /// All subgraphs.
        pub all: EventSourceOptions = EventSourceOptions::default(),
        /// Single ones, whose keys win over those of `all`.
        pub subgraphs: BTreeMap<String, EventSourceOptions> = BTreeMap::new(),
    }

    /// `subscription.mode.passthrough.all` and `subscription.mode.passthrough.subgraphs.<name>`
    pub struct EventSourceOptions {
        /// Path that is asked for events instead of that of the subgraph's URL.
        pub path: Option<Path> = None,
        /// Protocol of the events; default `auto`. Beware: as in Apollo Router, these are names of libraries.
        /// `graphql_ws` is WebSocket with the sub-protocol `graphql-transport-ws` (graphql-ws), `graphql_transport_ws` is
        /// WebSocket with the legacy sub-protocol `graphql-ws` (subscriptions-transport-ws). `sse` are server-sent events,
        /// `multipart` is `subscriptionSpec=1.0`. `auto` asks for a stream over HTTP, SSE rather than multipart, and speaks
        /// `graphql_ws` with subgraphs that answer with none; what worked is tried first from then on.
        pub protocol: Option<EventProtocolWord> = None,
        /// How often a WebSocket connection is asked whether the subgraph is there, which has as long to answer; default
        /// `30s`, `0s` never. Below streams over HTTP TCP asks as often.
        pub heartbeat_interval: Option<Duration> = None,
        /// How long a subgraph may take to acknowledge a WebSocket connection; default `10s`.
        pub acknowledge_timeout: Option<Duration> = None,
        /// Headers of the request to the subgraph, as header rules leave them, that also go into the payload of
        /// `connection_init`, as many servers look for them there only; default `[authorization]`.
        pub connection_init_headers: Option<Vec<String>> = None,
    }
}

words! {
    /// The protocol of a subgraph's events.
    pub enum EventProtocolWord {
        /// Found out.
        Auto = "auto",
        /// WebSocket, `graphql-transport-ws`.
        GraphqlWs = "graphql_ws",
        /// WebSocket, `graphql-ws`, the legacy one.
        GraphqlTransportWs = "graphql_transport_ws",
        /// Server-sent events.
        Sse = "sse",
        /// Multipart 1.0.
        Multipart = "multipart",
    }
}

/// How one subgraph sends events.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedEventSource {
    /// Path instead of that of the URL.
    pub path: Option<Path>,
    /// Its protocol.
    pub protocol: EventProtocolWord,
    /// How often it is asked whether it is there.
    pub heartbeat_interval: Option<std::time::Duration>,
    /// How long it may take to acknowledge a connection.
    pub acknowledge_timeout: std::time::Duration,
    /// What goes into `connection_init`.
    pub connection_init_headers: Vec<String>,
    /// Where it sends events to, and how often it says that it is there, if it does.
    pub callback: Option<(String, Option<std::time::Duration>)>,
}

impl Config {
    /// How a subgraph sends events; `None` if subscriptions are off.
    pub fn event_source(&self, subgraph: &str) -> Option<ResolvedEventSource> {
        if !self.subscription.enabled {
            return None;
        }
        let (passthrough, callback) = (
            &self.subscription.mode.passthrough,
            &self.subscription.mode.callback,
        );
        let is_called = callback.subgraphs.iter().any(|name| name == subgraph);
        let url = callback.public_url.as_ref().filter(|_| is_called);
        let checked = callback.heartbeat_interval.0;
        let all = &passthrough.all;
        let own = passthrough.subgraphs.get(subgraph).unwrap_or(all);
        let heartbeat = own.heartbeat_interval.or(all.heartbeat_interval);
        let heartbeat = heartbeat.unwrap_or(Duration::seconds(30)).0;
        let acknowledge = own.acknowledge_timeout.or(all.acknowledge_timeout);
        let headers = own.connection_init_headers.as_ref();
        let headers = headers.or(all.connection_init_headers.as_ref());
        Some(ResolvedEventSource {
            path: own.path.as_ref().or(all.path.as_ref()).cloned(),
            protocol: own
                .protocol
                .or(all.protocol)
                .unwrap_or(EventProtocolWord::Auto),
            heartbeat_interval: (!heartbeat.is_zero()).then_some(heartbeat),
            acknowledge_timeout: acknowledge.unwrap_or(Duration::seconds(10)).0,
            connection_init_headers: headers
                .cloned()
                .unwrap_or_else(|| vec!["authorization".into()]),
            callback: url.map(|url| {
                let every = (!checked.is_zero()).then_some(checked);
                (url.0.trim_end_matches('/').to_owned(), every)
            }),
        })
    }
}
