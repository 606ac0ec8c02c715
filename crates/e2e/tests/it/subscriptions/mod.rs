//! Subscriptions, and streams in general, from a subgraph that the test drives to clients of every protocol.

mod feed;
mod over_http;
mod over_websocket;
mod protocols;

use std::time::{Duration, Instant};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;

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
        let (state, config) = set_up(&yaml, &feed);
        Streamed {
            served: Served::start(state, &config),
            feed,
            yaml,
        }
    }
    /// Serves the same anew.
    fn reload(&self) {
        let (state, _) = set_up(&self.yaml, &self.feed);
        self.served.gateway.replace(state);
    }
    /// Waits until so many subscriptions are open.
    fn wait_for_open(&self, open: usize) {
        let since = Instant::now();
        while self.served.gateway.subscriptions().open != open {
            let found = self.served.gateway.subscriptions();
            assert!(since.elapsed() < Duration::from_secs(20), "{found:?}");
            std::thread::yield_now();
        }
    }
}

fn set_up(yaml: &str, feed: &Feed) -> (ogive_gateway::SchemaState, ogive_config::Config) {
    let mut config = config(yaml);
    let mut inputs = Vec::new();
    for (name, sdl) in [("events", EVENTS), ("texts", TEXTS)] {
        inputs.push(SubgraphInput { name, url: "", sdl });
        let url = Url(format!("{}/{name}", feed.url()));
        config.override_subgraph_url.insert(name.to_owned(), url);
    }
    let composed = compose(&inputs, &ComposeOptions::default());
    let supergraph = composed
        .supergraph_sdl
        .unwrap_or_else(|| panic!("{:#?}", composed.errors));
    (state(&supergraph, &config), config)
}
