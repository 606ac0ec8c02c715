//! Answers in parts over WebSockets, in both forms.

use ogive_stream::{WebSocket, WebSocketLimits};
use serde_json::{Value, json};

use super::{
    over_http::{Client as HttpClient, lines},
    over_websocket::{Client, MODERN, run, upgrade_at},
};
use crate::{
    coprocessor::playing,
    graph::Graph,
    incremental::{QUERY, held_back, is_known},
};

/// No heartbeat comes between, and nobody is sent away, however slow the machine is.
const YAML: &str = "subscription: { enabled: true, client: { heartbeat_interval: 10m, websocket: { \
     connection_init_timeout: 10m } } }\n";

async fn client(graph: &Graph, headers: &str) -> Client {
    let (status, found, stream, handshake) = upgrade_at(graph.address(), MODERN, headers).await;
    handshake.check(status, &found).unwrap();
    let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
    let mut client = Client { socket };
    client.say(json!({"type": "connection_init"})).await;
    assert_eq!(client.hear().await["type"], "connection_ack");
    client
}

#[test]
fn parts_are_messages_in_the_form_that_the_upgrade_names() {
    for (headers, is_current) in [
        ("", false),
        ("accept: application/json;incrementalSpec=v0.2\r\n", true),
        ("accept: multipart/mixed;deferSpec=20220824\r\n", false),
    ] {
        let (graph, inventory) = held_back(YAML);
        run(async {
            let mut client = client(&graph, headers).await;
            client.subscribe("q", QUERY).await;
            let first = client.hear().await;
            assert_eq!(
                (&first["type"], &first["id"]),
                (&json!("next"), &json!("q"))
            );
            let payload = &first["payload"];
            assert_eq!(payload["hasNext"], true, "{payload}");
            assert_eq!(payload["data"]["topProducts"][0]["inStock"], Value::Null);
            assert_eq!(payload.get("pending").is_some(), is_current, "{payload}");
            // Others are answered meanwhile.
            client.subscribe("b", "{ me { name } }").await;
            let beside = client.hear().await;
            assert_eq!(beside["id"], "b", "{beside}");
            assert_eq!(client.hear().await["type"], "complete");
            is_known(&mut inventory.next());
            let second = client.hear().await;
            let payload = &second["payload"];
            assert_eq!(payload["hasNext"], false, "{payload}");
            assert!(payload["incremental"].to_string().contains("inStock"));
            let end = json!({"id": "q", "type": "complete"});
            assert_eq!(client.hear().await, end);
        });
    }
}

#[test]
fn what_is_being_answered_has_its_time_when_the_process_stops() {
    let yaml = format!("{YAML}http: {{ connection_shutdown_timeout: 30s }}\n");
    for query in [QUERY, "{ topProducts(first: 2) { inStock } }"] {
        let (mut graph, inventory) = held_back(&yaml);
        run(async {
            let mut answered = client(&graph, "").await;
            // Its turn to end comes later.
            let mut idle = client(&graph, "").await;
            answered.subscribe("q", query).await;
            let mut asked = inventory.next();
            graph.served.begin_stop();
            assert_eq!(idle.closed().await, 1001);
            is_known(&mut asked);
            let mut last = answered.hear().await;
            while last["type"] == "next" {
                last = answered.hear().await;
            }
            assert_eq!(last, json!({"id": "q", "type": "complete"}));
            assert_eq!(answered.closed().await, 1001);
        });
        assert_eq!(graph.served.stopped().cut_off, 0);
    }
}

#[test]
fn parts_over_a_websocket_are_looked_at_before_they_are_sent() {
    let coprocessor = playing(|told| {
        let mut body = told["body"].clone();
        body["extensions"] = json!({ "next": told["hasNext"] });
        json!({ "body": body })
    });
    let url = coprocessor.url();
    let (graph, inventory) = held_back(&format!(
        "{YAML}coprocessor: {{ url: '{url}', timeout: 60s, supergraph: {{ response: {{ body: true }} }} }}\n"
    ));
    run(async {
        let mut client = client(&graph, "").await;
        client.subscribe("q", QUERY).await;
        assert_eq!(client.hear().await["payload"]["extensions"]["next"], true);
        is_known(&mut inventory.next());
        assert_eq!(client.hear().await["payload"]["extensions"]["next"], false);
        assert_eq!(client.hear().await["type"], "complete");
    });
}

#[test]
fn an_answer_in_parts_that_is_given_up_ends_upstream() {
    let (graph, inventory) = held_back(YAML);
    run(async {
        let mut client = client(&graph, "").await;
        client.subscribe("q", QUERY).await;
        assert_eq!(client.hear().await["payload"]["hasNext"], true);
        let mut asked = inventory.next();
        client.say(json!({"type": "complete", "id": "q"})).await;
        client.say(json!({"type": "ping"})).await;
        assert_eq!(client.hear().await["type"], "pong");
        assert!(asked.is_left());
    });
}

#[test]
fn the_access_log_has_a_line_at_the_end_of_an_answer_in_parts() {
    let path = format!("{}-parts.txt", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path);
    let _ = std::fs::remove_file(&path);
    let (graph, inventory) = held_back(&format!(
        "{YAML}telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
         fields: [status, duration_ms, events, end] }} }}\n",
        path.display()
    ));
    let begin = || {
        let accept = "multipart/mixed;deferSpec=20220824";
        let mut client = HttpClient::subscribe(graph.address(), accept, QUERY);
        client.until("\"hasNext\":true}");
        client
    };
    let whole = begin();
    let begun = lines(&path, 1);
    assert!(!begun[0].contains("events="), "{begun:?}");
    is_known(&mut inventory.next());
    whole.rest();
    let ended = lines(&path, 2);
    assert!(ended[1].ends_with(" events=2 end=complete"), "{ended:?}");
    let leaving = begin();
    let _asked = inventory.next();
    drop(leaving);
    let left = lines(&path, 4);
    assert!(left[3].ends_with(" events=1 end=left"), "{left:?}");
    std::fs::remove_file(path).unwrap();
}
