//! Subscriptions, and streams in general, from a subgraph that the test drives to clients of every protocol.

mod broker_servers;
pub(crate) mod brokers;
mod burst;
pub(crate) mod callback;
#[cfg(feature = "components")]
mod components;
mod credentials;
mod feed;
mod first_steps;
mod hooked;
mod http2;
mod in_parts;
mod over_http;
mod over_websocket;
mod protocols;
mod rates;
mod reload;
mod revoked;
mod shares;
mod single_connection;
mod source_hooks;
mod told;
pub(crate) mod violations;

use std::time::{Duration, Instant};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_gateway::GatewayOptions;

use crate::graph::{Served, config, state};
use feed::Feed;

const EVENTS: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Query { ping: Int }
type Mutation { ping: Int }
type Subscription { added(of: ID): Review, counted: Int, withheld: Int }
type Review @key(fields: "id") { id: ID! }
"#;
const TEXTS: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Review @key(fields: "id") { id: ID! text: String }
"#;

const GRAPH: [(&str, &str); 2] = [("events", EVENTS), ("texts", TEXTS)];

/// Texts that need the policy `paid`.
fn paid_texts() -> String {
    TEXTS
        .replace(
            "text: String",
            "text: String @policy(policies: [[\"paid\"]])",
        )
        .replace("v2.3", "v2.6")
        .replace("\"@key\"]", "\"@key\", \"@policy\"]")
}

/// A gateway before two subgraphs that the test drives.
struct Streamed {
    served: Served,
    feed: Feed,
    yaml: String,
}

impl Streamed {
    fn with(yaml: &str) -> Streamed {
        let feed = Feed::start();
        let yaml = format!("subscription:\n  enabled: true\n{yaml}");
        let (state, config) = set_up(&GRAPH, &yaml, &feed);
        Streamed {
            served: Served::start(state, &config),
            feed,
            yaml,
        }
    }
    /// Serves the same anew.
    fn reload(&self) {
        self.reload_as(&GRAPH, &self.yaml);
    }
    /// Serves a schema in which nothing can be subscribed to.
    fn reload_without_subscriptions(&self) {
        let events: String = EVENTS
            .lines()
            .filter(|l| !l.contains("type Subscription"))
            .collect();
        self.reload_as(&[("events", &events), ("texts", TEXTS)], &self.yaml);
    }
    /// Serves other subgraphs, under another configuration.
    fn reload_as(&self, subgraphs: &[(&str, &str)], yaml: &str) {
        let (state, config) = set_up(subgraphs, yaml, &self.feed);
        let options = GatewayOptions::load(&config).unwrap_or_else(|e| panic!("{e}"));
        self.served.gateway.reload_all(state, options);
    }
    /// Another process that serves the same.
    fn another(&self) -> Served {
        let (state, config) = set_up(&GRAPH, &self.yaml, &self.feed);
        Served::start(state, &config)
    }
    /// Waits until so many subscriptions are open.
    fn wait_for_open(&self, open: usize) {
        let since = Instant::now();
        while self.served.gateway.subscriptions().open != open {
            let found = self.served.gateway.subscriptions();
            assert!(since.elapsed() < Duration::from_secs(60), "{found:?}");
            std::thread::yield_now();
        }
    }
}

/// A slow machine takes longer than clients may, unless a test says how long that is: nobody is sent away, and no heartbeat
/// comes between what a test waits for.
fn unhurried(config: &mut ogive_config::Config) {
    let client = &mut config.subscription.client;
    for time in [
        &mut client.heartbeat_interval,
        &mut client.websocket.connection_init_timeout,
        &mut client.single_connection.reservation_timeout,
    ] {
        if time.0 == Duration::from_secs(10) {
            time.0 = Duration::from_secs(600);
        }
    }
}

fn set_up(
    subgraphs: &[(&str, &str)],
    yaml: &str,
    feed: &Feed,
) -> (ogive_gateway::SchemaState, ogive_config::Config) {
    let mut config = config(yaml);
    unhurried(&mut config);
    let mut inputs = Vec::new();
    for (name, sdl) in subgraphs.iter().copied() {
        inputs.push(SubgraphInput { name, url: "", sdl });
        let url = Url(format!("{}/{name}", feed.url()));
        config
            .override_subgraph_url
            .entry(name.to_owned())
            .or_insert(url);
    }
    let composed = compose(&inputs, &ComposeOptions::default());
    let supergraph = composed
        .supergraph_sdl
        .unwrap_or_else(|| panic!("{:#?}", composed.errors));
    (state(&supergraph, &config), config)
}
