//! What clients are told of ends and refusals by rules.

use ogive_stream::Protocol;
use serde_json::{Value, json};

use super::{
    GRAPH, Streamed,
    credentials::{socket, until},
    over_http::{ADDED, Client, MULTIPART, SSE},
    over_websocket::{MODERN, run},
};
use crate::http_client::send;

/// Whatever happens, clients are told the same.
const RULES: &str = "  reload_window: 0s\n  client: { websocket: { max_operations_per_connection: 1 } }\n\
    error_rules: [{ set_code: TOLD, set_message: Ask somebody. }]\n\
    authorization: { require_authentication: true, claims: { header: x-claims, trusted: [127.0.0.1] } }\n";

const KNOWN: (&str, &str) = ("x-claims", "{}");

fn is_told(error: &Value) -> bool {
    error["message"] == "Ask somebody." && error["extensions"]["code"] == "TOLD"
}

#[test]
fn refusals_of_the_single_connection_mode_are_told_by_rules() {
    let graph = Streamed::with(RULES);
    let address = graph.served.address;
    let asked = |method, path, headers: &[(&str, &str)], body: &[u8]| {
        let answer = send(address, method, path, headers, body);
        assert!(is_told(&answer.json()["errors"][0]), "{}", answer.text());
        answer.status
    };
    assert_eq!(asked("PUT", "/graphql", &[], b""), 401);
    let unknown = ("x-graphql-event-stream-token", "none");
    assert_eq!(
        asked("DELETE", "/graphql?operationId=1", &[KNOWN, unknown], b""),
        404
    );
    let token = send(address, "PUT", "/graphql", &[KNOWN], b"").text();
    let token = ("x-graphql-event-stream-token", token.as_str());
    let json = ("content-type", "application/json");
    let body = br#"{"query":"{ping}"}"#;
    assert_eq!(asked("POST", "/graphql", &[KNOWN, token, json], body), 400);
}

#[test]
fn refusals_over_a_websocket_are_told_by_rules() {
    let graph = Streamed::with(RULES);
    run(async {
        let mut client = socket(&graph, Protocol::LegacyWs, "").await;
        let refused = client.hear().await;
        assert_eq!(refused["type"], "connection_error");
        assert_eq!(refused["payload"], json!({"message": "Ask somebody."}));

        let mut client = socket(&graph, MODERN, "x-claims: {}\r\n").await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client.subscribe("1", "subscription { withheld }").await;
        client.subscribe("2", "{ping}").await;
        let refused = client.hear().await;
        assert_eq!(refused["id"], "2");
        assert!(is_told(&refused["payload"][0]), "{refused}");
    });
}

#[test]
fn ends_are_told_by_the_rules_that_are_served() {
    let graph = Streamed::with(RULES);
    let address = graph.served.address;
    let ended = Client::with(address, SSE, ADDED, &until("1")).rest();
    assert!(
        ended.contains("\"TOLD\"") && ended.contains("Ask somebody."),
        "{ended}"
    );
    let client = Client::with(address, MULTIPART, ADDED, "x-claims: {}\r\n");
    let yaml = graph.yaml.replace("TOLD", "OTHERWISE");
    let elsewhere = "override_subgraph_url: { events: 'http://127.0.0.1:9/events' }\n";
    graph.reload_as(&GRAPH, &format!("{yaml}{elsewhere}"));
    let ended = client.rest();
    assert!(ended.contains("\"OTHERWISE\""), "{ended}");
}
