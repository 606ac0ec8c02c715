//! What becomes of subscriptions when another schema or configuration is served, and when the process stops.

use super::{
    EVENTS, GRAPH, Streamed, TEXTS,
    credentials::TRUSTED,
    over_http::{ADDED, Client, MULTIPART, SSE, event},
    over_websocket::{self, MODERN, run},
};

/// The texts with another field, so that every plan for them is another one.
const MORE_TEXTS: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Review @key(fields: "id") { id: ID! text: String length: Int }
"#;

/// How many subscriptions there are.
fn subscriptions() -> usize {
    let asked = std::env::var("OGIVE_SUBSCRIPTIONS").ok();
    asked.map_or(200, |asked| asked.parse().unwrap())
}

#[test]
fn ten_reloads_lose_no_event_and_end_no_subscription_whose_source_is_asked_the_same() {
    let graph = Streamed::with("  reload_window: 0s\n");
    let address = graph.served.address;
    let number = subscriptions();
    let mut clients: Vec<Client> = (0..number)
        .map(|at| Client::subscribe(address, if at % 2 == 0 { SSE } else { MULTIPART }, ADDED))
        .collect();
    let mut source = graph.feed.opened();
    graph.wait_for_open(number);
    // Others have sources of their own.
    let own = r#"subscription { added(of: "1") { id } }"#;
    let mut alone = Client::subscribe(address, SSE, own);
    let mut own_source = graph.feed.opened();
    for at in 0..10 {
        source.add(&format!("{at}-before"));
        let texts = if at % 2 == 0 { MORE_TEXTS } else { TEXTS };
        graph.reload_as(&[("events", EVENTS), ("texts", texts)], &graph.yaml);
        source.add(&format!("{at}-after"));
        own_source.add(&at.to_string());
        alone.until(&format!("\"id\":\"{at}\""));
    }
    source.complete();
    let wanted: Vec<String> = (0..10)
        .flat_map(|at| [format!("{at}-before"), format!("{at}-after")])
        .collect();
    for client in clients.drain(..) {
        let text = client.rest();
        let ids = text.split("\"id\":\"").skip(1);
        let found: Vec<&str> = ids.map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(found, wanted);
        assert!(!text.contains("errors"), "{text}");
    }
    assert_eq!(graph.feed.lookups(), 20);
    assert!(graph.feed.is_quiet(), "a source was opened again");
    assert_eq!(graph.served.gateway.subscriptions().overflows, 0);
}

#[test]
fn a_subscription_that_goes_on_is_answered_by_the_plan_of_the_schema_that_is_served() {
    let graph = Streamed::with("  reload_window: 0s\n");
    let address = graph.served.address;
    let mut client = Client::subscribe(address, SSE, ADDED);
    let mut source = graph.feed.opened();
    source.add("1");
    client.until(&event("1"));
    assert_eq!(graph.feed.asked_of(), "/texts");
    let moved = [("events", EVENTS), ("archive", MORE_TEXTS)];
    graph.reload_as(&moved, &graph.yaml);
    source.add("2");
    client.until(&event("2"));
    assert_eq!(graph.feed.asked_of(), "/archive");
    // Whoever comes now shares the source.
    let mut second = Client::subscribe(address, MULTIPART, ADDED);
    graph.wait_for_open(2);
    source.add("3");
    client.until(&event("3"));
    second.until("text of 3");
    assert!(graph.feed.is_quiet());
}

#[test]
fn a_subscription_over_a_websocket_goes_on_as_well() {
    let graph = Streamed::with("  reload_window: 0s\n");
    run(async {
        let mut client = over_websocket::Client::open(&graph, MODERN).await;
        client.subscribe("1", ADDED).await;
        let mut source = graph.feed.opened();
        graph.reload_as(&[("events", EVENTS), ("texts", MORE_TEXTS)], &graph.yaml);
        source.add("1");
        let heard = client.hear().await;
        assert_eq!(heard["payload"]["data"]["added"]["text"], "text of 1");
    });
}

/// Serves something else, on which a subscription has to end so that clients come back; whoever comes back has a source
/// of its own.
fn ends(why: &str, subgraphs: &[(&str, &str)], more: &str) {
    let graph = Streamed::with("  reload_window: 0s\n");
    let address = graph.served.address;
    let events = Client::subscribe(address, SSE, ADDED);
    let parts = Client::subscribe(address, MULTIPART, ADDED);
    let source = graph.feed.opened();
    graph.wait_for_open(2);
    graph.reload_as(subgraphs, &format!("{}{more}", graph.yaml));
    let text = events.rest();
    let is_open_ended = !text.contains("complete");
    assert!(
        is_open_ended,
        "{why}: no last word, on which clients come back: {text}"
    );
    let text = parts.rest();
    assert!(text.contains("SUBSCRIPTION_SCHEMA_RELOAD"), "{why}: {text}");
    source.wait_until_left();
}

#[test]
fn what_cannot_go_on_ends_so_that_clients_come_back() {
    let gone = EVENTS.replace("added(of: ID): Review, ", "");
    ends(
        "the field is gone",
        &[("events", &gone), ("texts", TEXTS)],
        "",
    );
    let split = EVENTS.replace("{ id: ID! }", "{ id: ID! text: String @shareable }");
    let split = split.replace("\"@key\"]", "\"@key\", \"@shareable\"]");
    let texts = TEXTS.replace("text: String", "text: String @shareable");
    let texts = texts.replace("\"@key\"]", "\"@key\", \"@shareable\"]");
    ends(
        "the source would be asked more",
        &[("events", &split), ("texts", &texts)],
        "",
    );
    let guarded = TEXTS.replace("text: String", "text: String @authenticated");
    let guarded = guarded
        .replace("v2.3", "v2.5")
        .replace("\"@key\"]", "\"@key\", \"@authenticated\"]");
    ends(
        "not everybody may see it any more",
        &[("events", EVENTS), ("texts", &guarded)],
        "",
    );
    let rule = "headers: { all: { request: [ { insert: { name: x-a, value: b } } ] } }\n";
    ends("the source would be told more", &GRAPH, rule);
    let elsewhere = "override_subgraph_url: { events: 'http://127.0.0.1:9/events' }\n";
    ends("the source is elsewhere", &GRAPH, elsewhere);
    let known = "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }
";
    ends("callers are known in another way", &GRAPH, known);
    let plan = "demand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { max: 1000, \
                max_subgraph_requests: 1 } } }\n";
    ends("its plan takes more than it may now", &GRAPH, plan);
}

#[test]
fn another_rule_for_headers_of_a_subgraph_ends_only_what_is_shared() {
    let rule =
        "headers: { subgraphs: { texts: { request: [ { propagate: { named: x-a } } ] } } }\n";
    let graph = Streamed::with("  reload_window: 0s\n");
    let address = graph.served.address;
    let own = r#"subscription { added(of: "1") { id text } }"#;
    let mut alone = Client::subscribe(address, SSE, own);
    let mut own_source = graph.feed.opened();
    let [one, other] = ["a", "b"].map(|value| {
        let header = format!("x-a: {value}\r\n");
        Client::with(address, SSE, ADDED, &header)
    });
    let _source = graph.feed.opened();
    graph.wait_for_open(3);
    graph.reload_as(&GRAPH, &format!("{}{rule}", graph.yaml));
    for shared in [one, other] {
        assert!(!shared.rest().contains("complete"));
    }
    own_source.add("1");
    alone.until(&event("1"));
}

/// Claims and headers of two clients, and who of them is asked for texts elsewhere.
#[test]
fn a_place_by_condition_that_a_reload_brings_is_that_of_no_other_client() {
    for condition in ["jwt_claim: tenant", "request_header: x-tenant"] {
        let graph = Streamed::with(&format!("  reload_window: 0s\n{TRUSTED}"));
        let address = graph.served.address;
        let client = |tenant: &str| {
            let headers = format!(
                "x-tenant: {tenant}\r\nx-claims: {{\"claims\":{{\"tenant\":\"{tenant}\"}}}}\r\n"
            );
            Client::with(address, SSE, ADDED, &headers)
        };
        let shared = ["acme", "other"].map(client);
        let _source = graph.feed.opened();
        graph.wait_for_open(2);
        let archive = format!("{}/archive", graph.feed.url());
        let rule = format!(
            "override_subgraph_urls: {{ texts: [{{ when: {{ eq: [{{ {condition} }}, acme] }}, url: '{archive}' }}] }}\n"
        );
        graph.reload_as(&GRAPH, &format!("{}{rule}", graph.yaml));
        for client in shared {
            assert!(!client.rest().contains("complete"), "{condition}");
        }
        // Whoever comes back has what is its own.
        for (tenant, place) in [("acme", "/archive"), ("other", "/texts")] {
            let mut client = client(tenant);
            let mut source = graph.feed.opened();
            source.add("1");
            client.until(&event("1"));
            assert_eq!(graph.feed.asked_of(), place, "{condition}");
        }
    }
}

#[test]
fn a_configuration_that_changes_nothing_for_a_source_leaves_it_open() {
    let graph = Streamed::with("  reload_window: 0s\n");
    let mut client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    let more = "  queue_capacity: 7\ntraffic_shaping: { all: { timeout: 9s } }\nlimits: { max_depth: 9 }\n";
    graph.reload_as(&GRAPH, &format!("{}{more}", graph.yaml));
    source.add("1");
    client.until(&event("1"));
    assert!(graph.feed.is_quiet());
}

#[test]
fn what_waits_for_its_source_while_another_schema_comes_goes_on() {
    let graph = Streamed::with("  reload_window: 0s\n");
    let _client = Client::subscribe(graph.served.address, SSE, "subscription { withheld }");
    let source = graph.feed.opened();
    graph.reload_as(&[("events", EVENTS), ("texts", MORE_TEXTS)], &graph.yaml);
    let gone = EVENTS.replace(", withheld: Int", "");
    graph.reload_as(&[("events", &gone), ("texts", TEXTS)], &graph.yaml);
    source.wait_until_left();
}

#[test]
fn clients_of_a_process_that_stops_come_back_and_are_served_by_another() {
    let mut graph = Streamed::with("http:\n  connection_shutdown_timeout: 30s\n");
    let number = 40;
    let address = graph.served.address;
    let parts: Vec<Client> = (0..number)
        .map(|at| Client::subscribe(address, if at % 2 == 0 { SSE } else { MULTIPART }, ADDED))
        .collect();
    let first = graph.feed.opened();
    graph.wait_for_open(number);
    let second = graph.another();
    run(async {
        let mut socket = over_websocket::Client::open(&graph, MODERN).await;
        socket.subscribe("1", ADDED).await;
        graph.wait_for_open(number + 1);
        graph.served.begin_stop();
        assert_eq!(socket.closed().await, 1001);
    });
    let mut back: Vec<Client> = Vec::new();
    for (at, client) in parts.into_iter().enumerate() {
        let text = client.rest();
        let is_told = if at % 2 == 0 {
            !text.contains("complete")
        } else {
            text.contains("SUBSCRIPTION_SHUTDOWN")
        };
        assert!(is_told, "{text}");
        back.push(Client::subscribe(second.address, SSE, ADDED));
    }
    first.wait_until_left();
    let mut source = graph.feed.opened();
    while second.gateway.subscriptions().open != number {
        std::thread::yield_now();
    }
    source.add("1");
    for mut client in back {
        client.until(&event("1"));
    }
    assert_eq!(graph.served.stopped().cut_off, 0);
}
