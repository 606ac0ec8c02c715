//! Events from message brokers, from a real server to a client.

use std::time::{Duration, Instant};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_testbase::{left_out, runs};

use super::{
    broker_servers::{NatsClient, Server},
    feed::Feed,
    over_http::{Client, event},
};
use crate::{
    graph::{Served, config, state},
    http_client::post,
};

const SSE: &str = "text/event-stream";
const ADDED: &str = "subscription Added { added(of: \"7\") { id text } }";
const TEXTS: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Query { ping: Int }
type Review @key(fields: "id") { id: ID! text: String }
"#;
const NO_NATS: &str = "`nats-server` is not installed";

/// A gateway before an event subgraph and one that knows the rest.
struct Evented {
    served: Served,
    feed: Feed,
}

impl Evented {
    fn with(events: &str, yaml: &str) -> Evented {
        let feed = Feed::start();
        let yaml = format!("subscription:\n  enabled: true\n  reconnect_delay: 100ms\n  max_reconnect_attempts: 8\n{yaml}");
        let mut config = config(&yaml);
        let events = format!("{events}\ntype Review @key(fields: \"id\", resolvable: false) {{ id: ID! @external }}");
        let inputs = [("events", events.as_str()), ("texts", TEXTS)];
        let inputs = inputs.map(|(name, sdl)| SubgraphInput { name, url: "", sdl });
        let url = Url(format!("{}/texts", feed.url()));
        config.override_subgraph_url.insert("texts".to_owned(), url);
        let composed = compose(&inputs, &ComposeOptions::default());
        let supergraph = composed.supergraph_sdl;
        let supergraph = supergraph.unwrap_or_else(|| panic!("{:#?}", composed.errors));
        let served = Served::start(state(&supergraph, &config), &config);
        Evented { served, feed }
    }
    fn subscribe(&self, query: &str) -> Client {
        Client::subscribe(self.served.address, SSE, query)
    }
    fn counts(&self) -> ogive_gateway::subscribe::sources::SubscriptionCounts {
        self.served.gateway.subscriptions()
    }
}

/// Waits until something holds.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// Waits until somebody hears a subject of NATS: then the client gets one event, which is taken.
fn heard(nats: &mut NatsClient, subject: &str, client: &mut Client) {
    let probe = "{\"__typename\":\"Review\",\"id\":\"probe\"}";
    wait("nobody subscribed", || nats.is_heard(subject, probe));
    assert_eq!(next(client), event("probe"));
}

/// The next event.
fn next(client: &mut Client) -> String {
    let found = client.until("}\n\n");
    found.trim_start_matches(":\n\n").to_owned()
}

fn review(id: &str) -> String {
    format!("{{\"__typename\":\"Review\",\"id\":\"{id}\",\"more\":[1]}}")
}

const NATS: &str = "type Subscription { added(of: ID!): Review! @edfs__natsSubscribe(subjects: [\"reviews.{{ args.of }}\"]) }";

fn nats_yaml(server: &Server) -> String {
    format!("events: {{ providers: {{ nats: [{{ url: 'nats://{}' }}] }} }}\n", server.address)
}

#[test]
fn an_event_of_nats_reaches_a_client_with_what_other_subgraphs_know() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let graph = Evented::with(NATS, &nats_yaml(&server));
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    for id in ["1", "2", "3"] {
        nats.publish("reviews.8", &review("other"));
        nats.publish("reviews.7", &review(id));
        assert_eq!(next(&mut client), event(id));
    }
    assert_eq!(graph.feed.asked_of(), "/texts");
}
