//! Hooks at requests to subgraphs see what a subscription asks: the request that opens its source, each event, what follows an
//! event, and the end.

use std::time::{Duration, Instant};

use ogive_testbase::subgraph::StubSubgraph;
use serde_json::{Value, json};

use super::{
    Streamed,
    over_http::{ADDED, Client, MULTIPART, SSE, event},
    over_websocket::{self, MODERN, run},
};
#[cfg(feature = "components")]
use crate::components::guest::Guest;
use crate::{
    coprocessor::{playing, told},
    scripts::Script,
};

const COUNTED: &str = "subscription { counted }";

/// Hooks, and the configuration that names them.
enum Hooks {
    Coprocessor(StubSubgraph, &'static str),
    Script(Script),
    #[cfg(feature = "components")]
    Component(Guest),
}

impl Hooks {
    fn yaml(&self) -> String {
        match self {
            Hooks::Coprocessor(server, stages) => {
                format!(
                    "coprocessor: {{ url: '{}', timeout: 60s, {stages} }}\n",
                    server.url()
                )
            }
            Hooks::Script(script) => script.yaml(),
            #[cfg(feature = "components")]
            Hooks::Component(guest) => guest.yaml("permissions: { write_headers: [x-hook] }"),
        }
    }
}

const REQUESTS: &str = "subgraph: { all: { request: { headers: true, uri: true } } }";
const RESPONSES: &str = "subgraph: { all: { response: { body: true } } }";

/// A hook of every engine that adds a header to requests to subgraphs.
fn adding() -> Vec<Hooks> {
    let coprocessor = playing(|told| {
        let mut headers = told["headers"].clone();
        headers["x-hook"] = json!(["seen"]);
        json!({ "headers": headers })
    });
    let mut hooks = vec![
        Hooks::Coprocessor(coprocessor, REQUESTS),
        Hooks::Script(Script::new(
            "fn subgraph_service(service, name) { service.map_request(|request| { request.subgraph.headers[\"x-hook\"] = \"seen\"; }); }",
        )),
    ];
    hooks.extend(adding_component());
    hooks
}

#[cfg(feature = "components")]
fn adding_component() -> Option<Hooks> {
    Some(Hooks::Component(Guest::new(&[(
        "subgraph-request",
        "(call $set_header @\"x-hook\" @\"seen\" ) (i32.const 0)",
    )])))
}

#[cfg(not(feature = "components"))]
fn adding_component() -> Option<Hooks> {
    None
}

#[test]
fn hooks_of_every_engine_change_the_request_that_opens_a_source() {
    for hooks in adding() {
        let graph = Streamed::with(&hooks.yaml());
        for accept in [SSE, MULTIPART] {
            let mut client = Client::subscribe(graph.served.address, accept, COUNTED);
            let mut source = graph.feed.opened();
            assert!(
                source.request.contains("x-hook: seen\r\n"),
                "{}",
                source.request
            );
            source.send("{\"counted\":7}");
            client.until("{\"counted\":7}");
            source.complete();
            assert!(!client.rest().contains("errors"));
        }
        run(async {
            let mut client = over_websocket::Client::open(&graph, MODERN).await;
            client.subscribe("s", COUNTED).await;
            let mut source = graph.feed.opened();
            assert!(
                source.request.contains("x-hook: seen\r\n"),
                "{}",
                source.request
            );
            source.send("{\"counted\":7}");
            assert_eq!(client.hear().await["payload"]["data"]["counted"], 7);
        });
    }
}

/// What follows an event passes the hooks, too.
#[test]
fn hooks_see_what_follows_an_event() {
    let script = Script::new(
        "fn subgraph_service(service, name) { service.map_request(|request| { request.subgraph.headers[\"authorization\"] = \"for \" + name; }); }",
    );
    let graph = Streamed::with(&script.yaml());
    let mut client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    assert!(source.request.contains("authorization: for events\r\n"));
    source.add("1");
    client.until(&event("1"));
    assert_eq!(graph.feed.told(), "for texts");
}

/// A script for subgraphs may see events and the end, too, so its subscriptions have a source each.
#[test]
fn subscriptions_beside_a_script_for_subgraphs_have_a_source_each() {
    let script = Script::new(
        "fn subgraph_service(service, name) { service.map_request(|request| { request.subgraph.headers[\"x-hook\"] = request.headers[\"x-tenant\"]; }); }",
    );
    let graph = Streamed::with(&script.yaml());
    let subscribe = |tenant: &str| {
        let tenant = format!("x-tenant: {tenant}\r\n");
        Client::with(graph.served.address, SSE, COUNTED, &tenant)
    };
    let _clients = ["a", "b"].map(subscribe);
    graph.wait_for_open(2);
    assert_eq!(graph.served.gateway.subscriptions().sources, 2);
}

#[test]
fn a_hook_that_ends_the_request_answers_instead_of_the_subgraph() {
    let coprocessor = playing(
        |_| json!({ "control": { "break": 403 }, "body": { "errors": [{ "message": "not you" }] } }),
    );
    let script = Script::new(
        "fn subgraph_service(service, name) { service.map_request(|request| { throw #{ status: 403, message: \"not you\" }; }); }",
    );
    for hooks in [
        Hooks::Coprocessor(coprocessor, REQUESTS),
        Hooks::Script(script),
    ] {
        let more = "include_subgraph_errors: { all: true }\n";
        let graph = Streamed::with(&format!("{}{more}", hooks.yaml()));
        let text = Client::subscribe(graph.served.address, SSE, COUNTED).rest();
        assert!(text.contains("not you"), "{text}");
        assert!(text.contains("event: complete"), "{text}");
        assert!(graph.feed.is_quiet());
    }
}

/// Changes the event 1, drops the event 2, and leaves the others.
fn of_events() -> Hooks {
    let coprocessor = playing(|told| match told["body"]["data"]["counted"].as_u64() {
        Some(1) => json!({ "body": { "data": { "counted": 10 } } }),
        Some(2) => json!({ "body": {} }),
        _ => json!({}),
    });
    Hooks::Coprocessor(coprocessor, RESPONSES)
}

#[test]
fn hooks_at_responses_of_subgraphs_change_events_and_drop_them() {
    let hooks = of_events();
    let graph = Streamed::with(&hooks.yaml());
    let mut client = Client::subscribe(graph.served.address, SSE, COUNTED);
    let mut source = graph.feed.opened();
    for number in 1..4 {
        source.send(&format!("{{\"counted\":{number}}}"));
    }
    let text = client.until("{\"counted\":3}");
    assert_eq!(text.matches("\"counted\"").count(), 2, "{text}");
    assert!(text.contains("{\"counted\":10}"), "{text}");
    source.complete();
    assert!(!client.rest().contains("errors"));
}

#[test]
fn a_hook_at_the_responses_of_a_subgraph_sees_events_and_their_end() {
    for is_left in [false, true] {
        let coprocessor = playing(|_| json!({}));
        let hooks = Hooks::Coprocessor(coprocessor, RESPONSES);
        let graph = Streamed::with(&hooks.yaml());
        let mut client = Client::subscribe(graph.served.address, SSE, COUNTED);
        let mut source = graph.feed.opened();
        source.send("{\"counted\":1}");
        client.until("{\"counted\":1}");
        if is_left {
            drop(client);
            source.wait_until_left();
        } else {
            source.complete();
            client.rest();
        }
        let Hooks::Coprocessor(coprocessor, _) = &hooks else {
            unreachable!()
        };
        let since = Instant::now();
        while coprocessor.requests().len() < 2 {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the end is not told"
            );
            std::thread::yield_now();
        }
        let requests = coprocessor.requests();
        let messages: Vec<Value> = requests.iter().map(|request| told(request)).collect();
        let seen: Vec<_> = messages
            .iter()
            .map(|told| (&told["stage"], &told["hasNext"], &told["body"]))
            .collect();
        let (stage, end) = (json!("SubgraphResponse"), json!({}));
        let event = json!({ "data": { "counted": 1 } });
        let wanted = [
            (&stage, &json!(true), &event),
            (&stage, &json!(false), &end),
        ];
        assert_eq!(seen, wanted);
    }
}

/// A hook at responses to clients drops an event of one subscriber; the other one gets it.
#[test]
fn an_event_is_dropped_for_one_subscriber() {
    let first = std::sync::Mutex::new(None);
    let coprocessor = playing(move |told| {
        let mut first = first.lock().unwrap();
        let is_first = *first.get_or_insert_with(|| told["id"].clone()) == told["id"];
        match told["body"]["data"]["counted"].as_u64() {
            Some(1) if is_first => json!({ "body": {} }),
            _ => json!({}),
        }
    });
    let stages = "supergraph: { response: { body: true } }";
    let hooks = Hooks::Coprocessor(coprocessor, stages);
    let graph = Streamed::with(&hooks.yaml());
    let mut client = Client::subscribe(graph.served.address, SSE, COUNTED);
    let mut source = graph.feed.opened();
    let mut other = Client::subscribe(graph.served.address, SSE, COUNTED);
    graph.wait_for_open(2);
    for number in 1..3 {
        source.send(&format!("{{\"counted\":{number}}}"));
    }
    let text = client.until("{\"counted\":2}");
    assert!(!text.contains("{\"counted\":1}"), "{text}");
    let text = other.until("{\"counted\":2}");
    assert!(text.contains("{\"counted\":1}"), "{text}");
}

/// What a hook that fails would have decided is not known: nothing is asked.
#[test]
fn a_hook_that_fails_ends_the_subscription() {
    let script = Script::new(
        "fn subgraph_service(service, name) { service.map_request(|request| { let zero = 0; 1 / zero; }); }",
    );
    let failing = playing(|_| json!({ "version": 2 }));
    for (hooks, code) in [
        (Hooks::Script(script), "SCRIPT_FAILED"),
        (Hooks::Coprocessor(failing, REQUESTS), "COPROCESSOR_FAILED"),
    ] {
        let graph = Streamed::with(&hooks.yaml());
        let text = Client::subscribe(graph.served.address, SSE, COUNTED).rest();
        assert!(text.contains(code), "{text}");
        assert!(graph.feed.is_quiet());
    }
}
