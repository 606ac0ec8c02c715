//! Events that a coprocessor or a script looks at before their clients: what it is told, what it may change, and what becomes of
//! a subscription when it ends an event, fails, or takes its time.

use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use super::{
    EVENTS, Streamed, TEXTS,
    over_http::{ADDED, Client, MULTIPART, SSE},
    over_websocket::{self, MODERN, run},
};
use crate::coprocessor::{playing, told};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const ANSWERS: &str = "
  supergraph:
    response: { headers: true, body: true, context: all, status_code: true }
";

/// A gateway of streams with a coprocessor; `more` is further configuration.
fn with(coprocessor: &StubSubgraph, stages: &str, more: &str) -> Streamed {
    Streamed::with(&yaml(coprocessor, stages, more))
}

fn yaml(coprocessor: &StubSubgraph, stages: &str, more: &str) -> String {
    let url = coprocessor.url();
    let stages = stages.trim_end();
    format!("  reload_window: 0s\n{more}coprocessor:\n  url: '{url}'\n  timeout: 60s\n  {stages}\n")
}

fn messages(coprocessor: &StubSubgraph) -> Vec<Value> {
    let requests = coprocessor.requests();
    requests.iter().map(|request| told(request)).collect()
}

/// Writes into the text of a review at which stage, and as which event of its subscription, it was looked at.
fn marking(told: Value) -> Value {
    let mut body = told["body"].clone();
    if body["data"]["added"].is_null() {
        return json!({});
    }
    let count = told["context"]["entries"]["count"].as_u64().unwrap_or(0) + 1;
    let text = &mut body["data"]["added"]["text"];
    *text = format!("{} {count}", text.as_str().unwrap()).into();
    json!({ "body": body, "context": { "entries": { "count": count } } })
}

#[test]
fn a_coprocessor_is_told_of_the_head_and_then_of_each_event() {
    for (accept, payload) in [(SSE, "data: {"), (MULTIPART, "{\"payload\":{")] {
        let coprocessor = playing(marking);
        let graph = with(&coprocessor, ANSWERS, "");
        let mut client = Client::subscribe(graph.served.address, accept, ADDED);
        let mut source = graph.feed.opened();
        for number in 1..4 {
            source.add(&number.to_string());
            let event = format!("\"text\":\"text of {number} {number}\"");
            let text = client.until(&event);
            assert!(text.contains(payload), "{text}");
        }
        let messages = messages(&coprocessor);
        assert_eq!(messages.len(), 4);
        let head = &messages[0];
        assert_eq!(
            (&head["statusCode"], &head["hasNext"]),
            (&200.into(), &true.into())
        );
        assert!(
            head["headers"].is_object() && head.get("body").is_none(),
            "{head}"
        );
        for (number, event) in messages.iter().enumerate().skip(1) {
            assert_eq!(event["stage"], "SupergraphResponse");
            assert_eq!(
                (&event["id"], &event["hasNext"]),
                (&head["id"], &true.into())
            );
            assert_eq!(event["body"]["data"]["added"]["id"], number.to_string());
            assert!(event.get("headers").is_none() && event.get("statusCode").is_none());
        }
        source.complete();
        client.rest();
        assert_eq!(coprocessor.asked(), 4, "an end without errors is no answer");
    }
}

#[test]
fn all_stages_at_answers_see_an_event_in_their_order_over_every_protocol() {
    let stages = "
  execution: { response: { body: true } }
  supergraph: { response: { body: true } }
  router: { response: { body: true } }";
    let coprocessor = playing(|told| {
        let stage = told["stage"].as_str().unwrap().to_owned();
        let mut body: Value = match &told["body"] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            body => body.clone(),
        };
        if body["data"]["counted"].is_null() {
            return json!({});
        }
        let seen = &mut body["extensions"]["seen"];
        *seen = format!("{} {stage}", seen.as_str().unwrap_or_default()).into();
        json!({ "body": if stage == "RouterResponse" { body.to_string().into() } else { body } })
    });
    let graph = with(&coprocessor, stages, "");
    let counted = "subscription { counted }";
    let seen = " ExecutionResponse SupergraphResponse RouterResponse";
    let wanted = json!({ "data": { "counted": 7 }, "extensions": { "seen": seen } });
    let mut client = Client::subscribe(graph.served.address, SSE, counted);
    let mut source = graph.feed.opened();
    source.send("{\"counted\":7}");
    client.until("data: ");
    let event: Value = serde_json::from_str(client.until("\n").trim()).unwrap();
    assert_eq!(event, wanted);
    run(async {
        let mut client = over_websocket::Client::open(&graph, MODERN).await;
        client.subscribe("s", counted).await;
        graph.wait_for_open(2);
        source.send("{\"counted\":7}");
        assert_eq!(client.hear().await["payload"], wanted);
    });
}

/// Says this of the events of the subscription that came first, and nothing of others.
fn of_the_first(how: Value) -> StubSubgraph {
    let first = Mutex::new(None);
    playing(move |told| {
        let mut first = first.lock().unwrap();
        let is_first = *first.get_or_insert_with(|| told["id"].clone()) == told["id"];
        if is_first && told.get("body").is_some() {
            return how.clone();
        }
        json!({})
    })
}

/// Two that share a source: what the first hears in the end of whose events this is said, while the second goes on.
fn heard(how: Value, accept: &str) -> String {
    let graph = with(&of_the_first(how), ANSWERS, "");
    let address = graph.served.address;
    let first = Client::subscribe(address, accept, ADDED);
    let mut second = Client::subscribe(address, SSE, ADDED);
    let mut source = graph.feed.opened();
    graph.wait_for_open(2);
    source.add("1");
    let text = first.rest();
    second.until("text of 1");
    graph.wait_for_open(1);
    source.add("2");
    second.until("text of 2");
    assert!(graph.feed.is_quiet());
    text
}

#[test]
fn what_ends_an_event_ends_its_subscription_and_no_other() {
    let own = json!({ "errors": [{ "message": "no", "extensions": { "code": "MINE" } }] });
    for (how, code) in [
        (json!({ "control": { "break": 403 } }), "COPROCESSOR_BREAK"),
        (
            json!({ "control": { "break": 403 }, "body": "no" }),
            "COPROCESSOR_BREAK",
        ),
        (json!({ "control": { "break": 403 }, "body": own }), "MINE"),
        // What it ends with says that it has ended, whatever it says besides.
        (
            json!({ "control": { "break": 200 }, "body": { "data": "x" } }),
            "COPROCESSOR_BREAK",
        ),
        (json!({ "body": [1] }), "COPROCESSOR_FAILED"),
        (json!({ "stage": "another" }), "COPROCESSOR_FAILED"),
    ] {
        let code = format!("\"code\":\"{code}\"");
        let text = heard(how.clone(), SSE);
        assert!(
            text.contains(&code) && !text.contains("text of"),
            "{how}: {text}"
        );
        assert!(text.ends_with("event: complete\ndata:\n\n"), "{text}");
        let text = heard(how.clone(), MULTIPART);
        assert!(
            text.contains(&code) && text.contains("\"payload\":null"),
            "{how}: {text}"
        );
    }
}

#[test]
fn an_event_that_a_coprocessor_fails_at_passes_only_where_that_is_permitted() {
    let failing = |on_error: &str| {
        let coprocessor = StubSubgraph::start(move |nth, _| {
            let status = if nth == 0 { 200 } else { 500 };
            Reply::Whole(answer(status, "content-type: application/json\r\n", b"{}"))
        });
        let stages = format!("on_error: {on_error}\n{ANSWERS}");
        with(&coprocessor, &stages, "")
    };
    let graph = failing("fail");
    let client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    source.add("1");
    let text = client.rest();
    assert!(
        text.contains("COPROCESSOR_FAILED") && !text.contains("text of"),
        "{text}"
    );
    let graph = failing("continue");
    let mut client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    for number in ["1", "2"] {
        source.add(number);
        client.until(&format!("text of {number}"));
    }
}

#[test]
fn errors_that_end_a_subscription_are_looked_at_and_say_that_nothing_follows() {
    let coprocessor = playing(|told| {
        let mut body = told["body"].clone();
        if body.is_null() {
            return json!({});
        }
        body["errors"][0]["message"] = "redacted".into();
        json!({ "body": body })
    });
    let graph = with(&coprocessor, ANSWERS, "");
    let client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    source.refuse("secret");
    let text = client.rest();
    assert!(
        text.contains("redacted") && !text.contains("secret"),
        "{text}"
    );
    assert_eq!(messages(&coprocessor)[1]["hasNext"], false);
}

/// A coprocessor that answers for the events of the subscription that came first when the test says so.
fn held_back() -> (StubSubgraph, impl Fn(), Receiver<()>) {
    let (release, released) = channel::<()>();
    let (begin, begun) = channel();
    let (first, gate) = (Mutex::new(None), Mutex::new((released, begin)));
    let coprocessor = playing(move |told| {
        let is_first = {
            let mut first = first.lock().unwrap();
            *first.get_or_insert_with(|| told["id"].clone()) == told["id"]
        };
        if is_first && told.get("body").is_some() {
            let gate = gate.lock().unwrap();
            let _ = gate.1.send(());
            let _ = gate.0.recv();
        }
        json!({})
    });
    let release = move || {
        let _ = release.send(());
    };
    (coprocessor, release, begun)
}

#[test]
fn whoever_looks_slowly_holds_back_one_subscription_and_its_queue_has_an_end() {
    let (coprocessor, release, begun) = held_back();
    let graph = with(&coprocessor, ANSWERS, "  queue_capacity: 2\n");
    let address = graph.served.address;
    let mut slow = Client::subscribe(address, SSE, ADDED);
    let mut other = Client::subscribe(address, SSE, ADDED);
    let mut source = graph.feed.opened();
    graph.wait_for_open(2);
    source.add("1");
    begun.recv_timeout(PATIENCE).unwrap();
    // One is looked at, two wait, and the next one has no room.
    for number in 1..=4 {
        if number > 1 {
            source.add(&number.to_string());
        }
        other.until(&format!("text of {number}"));
    }
    for _ in 0..3 {
        release();
    }
    let text: Vec<String> = ["text of 1", "text of 2", "text of 3"]
        .map(|event| slow.until(event))
        .into();
    assert!(!text.concat().contains("errors"), "{text:?}");
    assert!(slow.rest().contains("SUBSCRIPTION_OVERFLOW"));
    source.add("5");
    other.until("text of 5");
}

#[test]
fn a_client_that_leaves_is_not_waited_for_by_whoever_looks_at_its_events() {
    let (coprocessor, _release, begun) = held_back();
    let graph = with(&coprocessor, ANSWERS, "");
    let client = Client::subscribe(graph.served.address, SSE, ADDED);
    let mut source = graph.feed.opened();
    source.add("1");
    begun.recv_timeout(PATIENCE).unwrap();
    drop(client);
    graph.wait_for_open(0);
    source.wait_until_left();
}

#[test]
fn a_head_that_is_ended_begins_no_subscription() {
    for stages in [ANSWERS, "router: { response: { headers: true } }"] {
        let coprocessor = playing(|_| json!({ "control": { "break": 403 } }));
        let graph = with(&coprocessor, stages, "");
        let client = Client::subscribe(graph.served.address, SSE, ADDED);
        assert!(client.head.starts_with("HTTP/1.1 403 "), "{}", client.head);
        graph.wait_for_open(0);
        run(async {
            let mut client = over_websocket::Client::open(&graph, MODERN).await;
            client.subscribe("s", ADDED).await;
            let error = client.hear().await;
            assert_eq!(error["type"], "error", "{error}");
            assert_eq!(
                error["payload"][0]["extensions"]["code"],
                "COPROCESSOR_BREAK"
            );
        });
        graph.wait_for_open(0);
    }
}

#[test]
fn subscriptions_go_on_while_the_same_looks_at_them_and_end_when_another_one_does() {
    let (coprocessor, another) = (playing(marking), playing(marking));
    let graph = with(&coprocessor, ANSWERS, "");
    let mut client = Client::subscribe(graph.served.address, MULTIPART, ADDED);
    let mut source = graph.feed.opened();
    source.add("1");
    client.until("text of 1 1");
    graph.reload();
    source.add("2");
    client.until("text of 2 2");
    let changed = format!(
        "subscription:\n  enabled: true\n{}",
        yaml(&another, ANSWERS, "")
    );
    graph.reload_as(&[("events", EVENTS), ("texts", TEXTS)], &changed);
    assert!(client.rest().contains("SUBSCRIPTION_SCHEMA_RELOAD"));
    // Nobody looked before, and somebody does now.
    let graph = Streamed::with("  reload_window: 0s\n");
    let client = Client::subscribe(graph.served.address, MULTIPART, ADDED);
    let _source = graph.feed.opened();
    graph.reload_as(&[("events", EVENTS), ("texts", TEXTS)], &changed);
    assert!(client.rest().contains("SUBSCRIPTION_SCHEMA_RELOAD"));
}
