//! Callers of subscriptions whom a component knows: by what they bring over a WebSocket, for as long as its claims hold, and for
//! as long as it says the same of them.

use std::time::{SystemTime, UNIX_EPOCH};

use ogive_testbase::subgraph::ManualSubgraph;
use serde_json::{Value, json};

use super::{
    EVENTS, GRAPH, Streamed,
    feed::Feed,
    over_http::{ADDED, Client, SSE},
    over_websocket::{self, MODERN, run},
    paid_texts, set_up,
};
use crate::{
    components::guest::{Guest, component},
    graph::Served,
    http_client::post_with,
};

/// Whoever a header that a payload may have says.
const BY_HEADER: &str = "(call $by_header @\"authorization\" )";

fn yaml(guest: &Guest) -> String {
    format!(
        "{}authentication: {{ router: {{ components: [guest] }} }}\n\
         authorization: {{ require_authentication: true, revocation: {{ check_interval: 20ms }} }}\n",
        guest.yaml("permissions: { read_headers: [authorization] }")
    )
}

fn ends_in(seconds: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() + seconds
}

#[test]
fn a_component_judges_what_comes_with_the_introduction() {
    let guest = Guest::new(&[("authenticate", BY_HEADER)]);
    let graph = Streamed::with(&yaml(&guest));
    run(async {
        let mut client = over_websocket::Client::connect(&graph, MODERN).await;
        let claims = json!({ "sub": "ida", "exp": ends_in(20) }).to_string();
        let payload = json!({ "authorization": claims });
        client
            .say(json!({"type": "connection_init", "payload": payload}))
            .await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client.subscribe("1", "subscription { counted }").await;
        let mut source = graph.feed.opened();
        source.send(r#"{"counted":1}"#);
        assert_eq!(client.hear().await["payload"]["data"]["counted"], 1);
        // It ends when the claims do.
        assert_eq!(client.closed().await, 4403);
        for (payload, why) in [
            (json!({ "authorization": "no" }), "refused"),
            (json!({ "authorization": "{" }), "no claims"),
            (json!({ "authorization": "{\"exp\":1}" }), "ended"),
            (Value::Null, "nothing brought"),
        ] {
            let mut client = over_websocket::Client::connect(&graph, MODERN).await;
            client
                .say(json!({"type": "connection_init", "payload": payload}))
                .await;
            assert_eq!(client.closed().await, 4403, "{why}");
        }
    });
}

#[test]
fn what_a_component_does_not_let_in_any_more_ends() {
    let guest = Guest::new(&[("authenticate", BY_HEADER)]);
    let yaml = yaml(&guest);
    let graph = Streamed::with(&yaml);
    let reloaded = format!("subscription: {{ enabled: true }}\n{yaml}");
    for (text, expected) in [
        ("(call $refused @\"withdrawn\" )", "CREDENTIALS_REFUSED"),
        ("(call $unknown)", "UNAUTHENTICATED"),
        (
            "(call $claims @\"{'sub':'ben'}\" )",
            "AUTHORIZATION_CHANGED",
        ),
    ] {
        guest.write(&component(&[("authenticate", BY_HEADER)]));
        graph.reload_as(&GRAPH, &reloaded);
        let headers = "authorization: {\"sub\":\"ida\"}\r\n";
        let mut client = Client::with(graph.served.address, SSE, ADDED, headers);
        let mut source = graph.feed.opened();
        source.add("1");
        client.until("text of 1");
        guest.write(&component(&[("authenticate", text)]));
        graph.reload_as(&GRAPH, &reloaded);
        let rest = client.rest();
        assert!(rest.contains(expected), "{expected}: {rest}");
        assert!(!rest.contains("withdrawn"), "{rest}");
        source.wait_until_left();
    }
}

#[test]
fn one_that_fails_at_what_one_caller_claims_decides_of_all_others() {
    let guest = Guest::new(&[(
        "decide-policies",
        "(call $list (local.get $policies) (local.get $count))",
    )]);
    let (feed, texts) = (Feed::start(), paid_texts());
    let subgraphs = [("events", EVENTS), ("texts", texts.as_str())];
    let yaml = format!(
        "subscription: {{ enabled: true }}\n{}authorization: {{ directives: enforce, revocation: {{ check_interval: 20ms }}, \
         claims: {{ header: x-claims, trusted: [127.0.0.1] }}, policies: {{ component: guest }} }}\n",
        guest.yaml("")
    );
    let (state, config) = set_up(&subgraphs, &yaml, &feed);
    let graph = Streamed {
        served: Served::start(state, &config),
        feed,
        yaml,
    };
    // A subgraph is told nothing of them, so they share a source.
    let subs = ["a", "b", "c", "d", "e", "f"];
    let mut clients = subs.map(|sub| {
        let claims = json!({ "claims": { "sub": sub } });
        let headers = format!("x-claims: {claims}\r\n");
        Client::with(graph.served.address, SSE, ADDED, &headers)
    });
    let mut source = graph.feed.opened();
    graph.wait_for_open(subs.len());
    source.add("1");
    for client in &mut clients {
        client.until("text of 1");
    }
    // It fails at the first three, whoever is judged first, and says of all others that nothing holds.
    let fails = "(if (i32.lt_u (i32.load8_u (i32.add (local.get $claimed) (i32.const 8))) (i32.const 100)) (then (unreachable))) \
                 (call $list (i32.const 0) (i32.const 0))";
    guest.write(&component(&[("decide-policies", fails)]));
    graph.reload_as(&subgraphs, &graph.yaml);
    let [a, b, c, d, e, f] = clients;
    for (sub, client) in [("d", d), ("e", e), ("f", f)] {
        let rest = client.rest();
        assert!(rest.contains("AUTHORIZATION_CHANGED"), "{sub}: {rest}");
    }
    // Nobody can say anything of the others now.
    source.add("2");
    for mut client in [a, b, c] {
        client.until("text of 2");
    }
}

/// Many that are judged again by a host that is slow take no request its place.
#[test]
fn requests_are_asked_about_while_what_goes_on_is() {
    let host = ManualSubgraph::start();
    let place = format!("http://{}", host.address);
    let guest = Guest::new(&[("authenticate", "(call $claims @\"{'sub':'ida'}\" )")]);
    let yaml = format!(
        "{}authentication: {{ router: {{ components: [guest] }} }}\n\
         authorization: {{ require_authentication: true, revocation: {{ check_interval: 20ms }} }}\n",
        guest.yaml(&format!(
            "permissions: {{ read_headers: [x-number], hosts: ['{place}'] }}, limits: {{ timeout: 100s, instances: 2 }}"
        ))
    );
    let graph = Streamed::with(&yaml);
    let _clients = [0, 1, 2, 3].map(|number| {
        let headers = format!("x-number: {number}\r\n");
        Client::with(graph.served.address, SSE, ADDED, &headers)
    });
    graph.wait_for_open(4);
    let asks = format!("(call $asked @\"{place}\" ) (call $claims @\"{{'sub':'ida'}}\" )");
    guest.write(&component(&[("authenticate", &asks)]));
    graph.reload_as(
        &GRAPH,
        &format!("subscription: {{ enabled: true }}\n{yaml}"),
    );
    let _judged = host.next();
    std::thread::scope(|scope| {
        let address = graph.served.address;
        let asking = scope.spawn(move || post_with(address, "{ __typename }", &[]));
        host.next().answer(200, "", "");
        assert_eq!(asking.join().unwrap().status, 200);
    });
}
