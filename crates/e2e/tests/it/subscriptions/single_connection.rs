//! The single connection mode of graphql-sse: one stream of server-sent events for many operations.

use std::time::Instant;

use serde_json::json;

use super::{
    Streamed,
    over_http::{ADDED, Client, SSE},
};
use crate::http_client::{Answer, Connection};

/// Asks for something that has to do with streams; `more` are further lines of the head.
fn ask(graph: &Streamed, method: &str, path: &str, more: &str, body: &str) -> Answer {
    let address = graph.served.address;
    let length = body.len();
    let mut connection = Connection::open(address);
    let head = format!(
        "{method} /graphql{path} HTTP/1.1\r\nhost: {address}\r\n{more}content-type: application/json\r\ncontent-length: \
         {length}\r\n\r\n{body}"
    );
    connection.write(head.as_bytes());
    connection.read()
}

fn reserve(graph: &Streamed, more: &str) -> String {
    let answer = ask(graph, "PUT", "", more, "");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    answer.text()
}

fn open(graph: &Streamed, token: &str, more: &str) -> Client {
    let address = graph.served.address;
    let client = Client::send(
        address,
        &format!(
            "GET /graphql HTTP/1.1\r\nhost: {address}\r\naccept: {SSE}\r\n{more}x-graphql-event-stream-token: {token}\r\n\r\n"
        ),
    );
    assert!(client.head.starts_with("HTTP/1.1 200 "), "{}", client.head);
    client
}

fn operate(graph: &Streamed, token: &str, id: &str, query: &str) -> Answer {
    operate_as(graph, token, id, query, "")
}

fn operate_as(graph: &Streamed, token: &str, id: &str, query: &str, more: &str) -> Answer {
    let body = json!({ "query": query, "extensions": { "operationId": id } }).to_string();
    let more = format!("{more}x-graphql-event-stream-token: {token}\r\n");
    ask(graph, "POST", "", &more, &body)
}

fn told(id: &str, data: &str) -> String {
    format!("event: next\ndata: {{\"id\":\"{id}\",\"payload\":{{\"data\":{data}}}}}\n\n")
}

fn over(id: &str) -> String {
    format!("event: complete\ndata: {{\"id\":\"{id}\"}}\n\n")
}

#[test]
fn operations_are_answered_in_one_stream() {
    let graph = Streamed::with("");
    let token = reserve(&graph, "");
    let mut stream = open(&graph, &token, "");
    for query in ["{ping}", "mutation{ping}"] {
        assert_eq!(operate(&graph, &token, "q", query).status, 202);
        let text = stream.until(&over("q"));
        assert!(
            text.ends_with(&format!("{}{}", told("q", r#"{"ping":1}"#), over("q"))),
            "{text}"
        );
    }
    // By GET, and with the token in the URL.
    let extensions = "%7B%22operationId%22%3A%22g%22%7D";
    let path = format!("?token={token}&query=%7Bping%7D&extensions={extensions}");
    let answer = ask(
        &graph,
        "GET",
        &path,
        "apollo-require-preflight: true\r\n",
        "",
    );
    assert_eq!(answer.status, 202, "{}", answer.text());
    stream.until(&over("g"));
    for id in ["a", "b"] {
        assert_eq!(operate(&graph, &token, id, ADDED).status, 202);
    }
    let mut source = graph.feed.opened();
    graph.wait_for_open(2);
    source.add("1");
    // Whichever comes first.
    let [a, b] = ["a", "b"].map(|id| told(id, r#"{"added":{"id":"1","text":"text of 1"}}"#));
    let before = stream.until(&a);
    if !before.contains(&b) {
        stream.until(&b);
    }
    let path = format!("?operationId=a&token={token}");
    assert_eq!(ask(&graph, "DELETE", &path, "", "").status, 200);
    graph.wait_for_open(1);
    source.add("2");
    let text = stream.until(&told("b", r#"{"added":{"id":"2","text":"text of 2"}}"#));
    assert!(!text.contains("\"a\""), "{text}");
    // Whoever leaves the stream leaves its operations.
    drop(stream);
    source.wait_until_left();
    assert_eq!(operate(&graph, &token, "c", "{ping}").status, 404);
}

#[test]
fn what_is_wrong_with_a_request_is_told_by_its_status() {
    let graph = Streamed::with("");
    let token = reserve(&graph, "");
    let _stream = open(&graph, &token, "");
    assert_eq!(operate(&graph, "unknown", "1", "{ping}").status, 404);
    let with_token = format!("x-graphql-event-stream-token: {token}\r\n");
    let status = |method, path, body| ask(&graph, method, path, &with_token, body).status;
    assert_eq!(status("POST", "", r#"{"query":"{ping}"}"#), 400);
    assert_eq!(status("POST", "", "no JSON"), 400);
    assert_eq!(status("DELETE", "", ""), 400);
    assert_eq!(status("DELETE", "?operationId=unknown", ""), 200);
    let accepts = format!("{with_token}accept: {SSE}\r\n");
    assert_eq!(ask(&graph, "GET", "", &accepts, "").status, 409);
    assert_eq!(operate(&graph, &token, "1", "{nothing}").status, 400);
    assert_eq!(
        operate(&graph, &token, "1", "subscription { counted }").status,
        202
    );
    assert_eq!(operate(&graph, &token, "1", "{ping}").status, 409);
    assert_eq!(ask(&graph, "DELETE", "", "", "").status, 405);
}

#[test]
fn there_are_only_so_many_streams_and_operations() {
    let graph = Streamed::with(
        "  client: { single_connection: { max_streams: 1, max_operations_per_stream: 1 } }\n",
    );
    let token = reserve(&graph, "");
    assert_eq!(ask(&graph, "PUT", "", "", "").status, 503);
    let stream = open(&graph, &token, "");
    assert_eq!(
        operate(&graph, &token, "1", "subscription { counted }").status,
        202
    );
    let refused = operate(&graph, &token, "2", "{ping}");
    assert_eq!(
        (refused.status, refused.codes()),
        (503, vec!["OPERATIONS_LIMITED".to_owned()])
    );
    drop(stream);
    graph.wait_for_open(0);
    let since = Instant::now();
    while ask(&graph, "PUT", "", "", "").status != 201 {
        assert!(since.elapsed().as_secs() < 20);
    }
}

#[test]
fn a_token_that_nobody_uses_is_forgotten() {
    let graph = Streamed::with("  client: { single_connection: { reservation_timeout: 10ms } }\n");
    let token = reserve(&graph, "");
    let since = Instant::now();
    while operate(&graph, &token, "1", "{ping}").status != 404 {
        assert!(since.elapsed().as_secs() < 20);
    }
}

#[test]
fn a_token_is_of_whoever_reserved_it() {
    let claims = "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n";
    let graph = Streamed::with(claims);
    let [one, other] = ["a", "b"].map(|sub| {
        let claims = json!({ "authenticated": true, "claims": { "sub": sub } });
        format!("x-claims: {claims}\r\n")
    });
    let token = reserve(&graph, &one);
    assert_eq!(
        operate_as(&graph, &token, "1", "{ping}", &other).status,
        404
    );
    assert_eq!(operate_as(&graph, &token, "1", "{ping}", "").status, 404);
    let with_token = format!("{other}accept: {SSE}\r\nx-graphql-event-stream-token: {token}\r\n");
    assert_eq!(ask(&graph, "GET", "", &with_token, "").status, 404);
    assert_eq!(
        ask(&graph, "DELETE", "?operationId=1", &with_token, "").status,
        404
    );
    let mut stream = open(&graph, &token, &one);
    assert_eq!(operate_as(&graph, &token, "1", "{ping}", &one).status, 202);
    stream.until(&over("1"));
}

#[test]
fn a_stream_ends_without_a_word_when_its_client_should_come_back() {
    let mut graph =
        Streamed::with("  reload_window: 0s\nhttp:\n  connection_shutdown_timeout: 2s\n");
    let token = reserve(&graph, "");
    let stream = open(&graph, &token, "");
    assert_eq!(
        operate(&graph, &token, "1", "subscription { counted }").status,
        202
    );
    let _source = graph.feed.opened();
    graph.reload_without_subscriptions();
    assert!(!stream.rest().contains("complete"));
    let token = reserve(&graph, "");
    let idle = open(&graph, &token, "");
    graph.served.begin_stop();
    assert!(!idle.rest().contains("complete"));
}

#[test]
fn where_it_is_off_there_is_no_such_stream() {
    let graph = Streamed::with("  client: { single_connection: { enabled: false } }\n");
    assert_eq!(ask(&graph, "PUT", "", "", "").status, 405);
}
