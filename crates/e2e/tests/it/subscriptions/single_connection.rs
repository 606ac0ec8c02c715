//! The single connection mode of graphql-sse: one stream of server-sent events for many operations.

use std::{net::SocketAddr, time::Instant};

use serde_json::json;

use super::{
    Streamed,
    over_http::{ADDED, Client, SSE},
};
use crate::{
    http_client::{Answer, Connection},
    incremental::{QUERY, held_back, is_known},
};

/// Asks for something that has to do with streams; `more` are further lines of the head.
fn ask(address: SocketAddr, method: &str, path: &str, more: &str, body: &str) -> Answer {
    let length = body.len();
    let mut connection = Connection::open(address);
    let head = format!(
        "{method} /graphql{path} HTTP/1.1\r\nhost: {address}\r\n{more}content-type: application/json\r\ncontent-length: \
         {length}\r\n\r\n{body}"
    );
    connection.write(head.as_bytes());
    connection.read()
}

fn reserve(address: SocketAddr, more: &str) -> String {
    let answer = ask(address, "PUT", "", more, "");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    answer.text()
}

fn open(address: SocketAddr, token: &str, more: &str) -> Client {
    let client = Client::send(
        address,
        &format!(
            "GET /graphql HTTP/1.1\r\nhost: {address}\r\naccept: {SSE}\r\n{more}x-graphql-event-stream-token: {token}\r\n\r\n"
        ),
    );
    assert!(client.head.starts_with("HTTP/1.1 200 "), "{}", client.head);
    client
}

fn operate(address: SocketAddr, token: &str, id: &str, query: &str) -> Answer {
    operate_as(address, token, id, query, "")
}

fn operate_as(address: SocketAddr, token: &str, id: &str, query: &str, more: &str) -> Answer {
    let body = json!({ "query": query, "extensions": { "operationId": id } }).to_string();
    let more = format!("{more}x-graphql-event-stream-token: {token}\r\n");
    ask(address, "POST", "", &more, &body)
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
    let token = reserve(graph.served.address, "");
    let mut stream = open(graph.served.address, &token, "");
    for query in ["{ping}", "mutation{ping}"] {
        assert_eq!(
            operate(graph.served.address, &token, "q", query).status,
            202
        );
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
        graph.served.address,
        "GET",
        &path,
        "apollo-require-preflight: true\r\n",
        "",
    );
    assert_eq!(answer.status, 202, "{}", answer.text());
    stream.until(&over("g"));
    for id in ["a", "b"] {
        assert_eq!(operate(graph.served.address, &token, id, ADDED).status, 202);
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
    assert_eq!(
        ask(graph.served.address, "DELETE", &path, "", "").status,
        200
    );
    graph.wait_for_open(1);
    source.add("2");
    let text = stream.until(&told("b", r#"{"added":{"id":"2","text":"text of 2"}}"#));
    assert!(!text.contains("\"a\""), "{text}");
    // Whoever leaves the stream leaves its operations.
    drop(stream);
    source.wait_until_left();
    assert_eq!(
        operate(graph.served.address, &token, "c", "{ping}").status,
        404
    );
}

#[test]
fn what_is_wrong_with_a_request_is_told_by_its_status() {
    let graph = Streamed::with("");
    let token = reserve(graph.served.address, "");
    let _stream = open(graph.served.address, &token, "");
    assert_eq!(
        operate(graph.served.address, "unknown", "1", "{ping}").status,
        404
    );
    let with_token = format!("x-graphql-event-stream-token: {token}\r\n");
    let status =
        |method, path, body| ask(graph.served.address, method, path, &with_token, body).status;
    assert_eq!(status("POST", "", r#"{"query":"{ping}"}"#), 400);
    assert_eq!(status("POST", "", "no JSON"), 400);
    assert_eq!(status("DELETE", "", ""), 400);
    assert_eq!(status("DELETE", "?operationId=unknown", ""), 200);
    let accepts = format!("{with_token}accept: {SSE}\r\n");
    assert_eq!(
        ask(graph.served.address, "GET", "", &accepts, "").status,
        409
    );
    assert_eq!(
        operate(graph.served.address, &token, "1", "{nothing}").status,
        400
    );
    assert_eq!(
        operate(
            graph.served.address,
            &token,
            "1",
            "subscription { counted }"
        )
        .status,
        202
    );
    assert_eq!(
        operate(graph.served.address, &token, "1", "{ping}").status,
        409
    );
    assert_eq!(ask(graph.served.address, "DELETE", "", "", "").status, 405);
}

#[test]
fn there_are_only_so_many_streams_and_operations() {
    let graph = Streamed::with(
        "  client: { single_connection: { max_streams: 1, max_operations_per_stream: 1 } }\n",
    );
    let token = reserve(graph.served.address, "");
    let stream = open(graph.served.address, &token, "");
    assert_eq!(ask(graph.served.address, "PUT", "", "", "").status, 503);
    assert_eq!(
        operate(
            graph.served.address,
            &token,
            "1",
            "subscription { counted }"
        )
        .status,
        202
    );
    let refused = operate(graph.served.address, &token, "2", "{ping}");
    assert_eq!(
        (refused.status, refused.codes()),
        (503, vec!["OPERATIONS_LIMITED".to_owned()])
    );
    drop(stream);
    graph.wait_for_open(0);
    let since = Instant::now();
    while ask(graph.served.address, "PUT", "", "", "").status != 201 {
        assert!(since.elapsed().as_secs() < 60);
    }
}

#[test]
fn who_reserves_many_streams_keeps_nobody_else_out() {
    let graph = Streamed::with("  client: { single_connection: { max_streams: 2 } }\n");
    let address = graph.served.address;
    let opened = reserve(address, "");
    let mut stream = open(address, &opened, "");
    let replaced = reserve(address, "");
    let newest = reserve(address, "");
    assert_eq!(operate(address, &replaced, "1", "{ping}").status, 404);
    let mut other = open(address, &newest, "");
    for (token, stream) in [(&opened, &mut stream), (&newest, &mut other)] {
        assert_eq!(operate(address, token, "1", "{ping}").status, 202);
        stream.until(&over("1"));
    }
    let refused = ask(address, "PUT", "", "", "");
    assert_eq!(refused.codes(), ["SUBSCRIPTIONS_LIMITED"]);
}

/// How many operations are answered before one is refused because of the memory that those before it hold.
fn until_there_is_no_memory(mut operate: impl FnMut(&str) -> Answer) -> usize {
    let refused = (0..100).map(|number| operate(&number.to_string()));
    let (number, refused) = refused
        .enumerate()
        .find(|(_, answer)| answer.status != 202)
        .expect("all of them are answered");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.codes(), ["GATEWAY_MEMORY_LIMIT"]);
    number
}

#[test]
fn answers_that_wait_in_a_stream_count_as_memory_until_they_are_written() {
    let graph = Streamed::with("limits: { max_memory: 1MB }\n");
    let address = graph.served.address;
    let token = reserve(address, "");
    let answered = until_there_is_no_memory(|id| operate(address, &token, id, "{ping}"));
    let mut stream = open(address, &token, "");
    let mut written = String::new();
    while written.matches("event: complete").count() < answered {
        written += &stream.until("event: complete\n");
    }
    let since = Instant::now();
    while graph.served.gateway.memory().used() > 100_000 {
        assert!(since.elapsed().as_secs() < 60);
    }
    assert_eq!(operate(address, &token, "x", "{ping}").status, 202);
    stream.until(&over("x"));
}

#[test]
fn variables_of_subscriptions_count_as_memory_until_they_end() {
    let graph = Streamed::with("limits: { max_memory: 1MB }\n");
    let address = graph.served.address;
    let subscribe = |token: &str, id: &str| {
        let query = "subscription($of: ID) { added(of: $of) { id } }";
        let of = id.repeat(20_000 / id.len());
        let body = json!({
            "query": query, "variables": { "of": of }, "extensions": { "operationId": id }
        });
        let more = format!("x-graphql-event-stream-token: {token}\r\n");
        ask(address, "POST", "", &more, &body.to_string())
    };
    let token = reserve(address, "");
    let stream = open(address, &token, "");
    let subscribed = until_there_is_no_memory(|id| subscribe(&token, id));
    assert!(subscribed > 3, "{subscribed}");
    assert!(graph.served.gateway.memory().used() > subscribed * 40_000);
    drop(stream);
    let since = Instant::now();
    while graph.served.gateway.memory().used() > 100_000 {
        assert!(since.elapsed().as_secs() < 60);
    }
    let token = reserve(address, "");
    let _stream = open(address, &token, "");
    assert_eq!(subscribe(&token, "x").status, 202);
}

#[test]
fn ids_of_operations_are_only_so_long() {
    let graph = Streamed::with("");
    let address = graph.served.address;
    let token = reserve(address, "");
    let answer = |bytes| operate(address, &token, &"x".repeat(bytes), "{ping}");
    assert_eq!(answer(256).status, 202);
    let refused = answer(257);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.codes(), ["INVALID_GRAPHQL_REQUEST"]);
}

#[test]
fn a_token_that_nobody_uses_is_forgotten() {
    let graph = Streamed::with("  client: { single_connection: { reservation_timeout: 10ms } }\n");
    let token = reserve(graph.served.address, "");
    let since = Instant::now();
    while operate(graph.served.address, &token, "1", "{ping}").status != 404 {
        assert!(since.elapsed().as_secs() < 60);
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
    let token = reserve(graph.served.address, &one);
    assert_eq!(
        operate_as(graph.served.address, &token, "1", "{ping}", &other).status,
        404
    );
    assert_eq!(
        operate_as(graph.served.address, &token, "1", "{ping}", "").status,
        404
    );
    let with_token = format!("{other}accept: {SSE}\r\nx-graphql-event-stream-token: {token}\r\n");
    assert_eq!(
        ask(graph.served.address, "GET", "", &with_token, "").status,
        404
    );
    assert_eq!(
        ask(
            graph.served.address,
            "DELETE",
            "?operationId=1",
            &with_token,
            ""
        )
        .status,
        404
    );
    let mut stream = open(graph.served.address, &token, &one);
    assert_eq!(
        operate_as(graph.served.address, &token, "1", "{ping}", &one).status,
        202
    );
    stream.until(&over("1"));
}

#[test]
fn a_stream_ends_without_a_word_when_its_client_should_come_back() {
    let mut graph =
        Streamed::with("  reload_window: 0s\nhttp:\n  connection_shutdown_timeout: 30s\n");
    let token = reserve(graph.served.address, "");
    let stream = open(graph.served.address, &token, "");
    assert_eq!(
        operate(
            graph.served.address,
            &token,
            "1",
            "subscription { counted }"
        )
        .status,
        202
    );
    let _source = graph.feed.opened();
    graph.reload_without_subscriptions();
    assert!(!stream.rest().contains("complete"));
    let token = reserve(graph.served.address, "");
    let idle = open(graph.served.address, &token, "");
    graph.served.begin_stop();
    assert!(!idle.rest().contains("complete"));
}

#[test]
fn where_it_is_off_there_is_no_such_stream() {
    let graph = Streamed::with("  client: { single_connection: { enabled: false } }\n");
    assert_eq!(ask(graph.served.address, "PUT", "", "", "").status, 405);
}

#[test]
fn what_is_deferred_comes_in_parts() {
    for (more, is_current) in [
        ("", false),
        ("accept: application/json;incrementalSpec=v0.2\r\n", true),
    ] {
        let (graph, inventory) = held_back(
            "subscription: { enabled: true, client: { heartbeat_interval: 10m, single_connection: { reservation_timeout: 10m } } }\n",
        );
        let address = graph.address();
        let token = reserve(address, "");
        let mut stream = open(address, &token, "");
        assert_eq!(operate_as(address, &token, "q", QUERY, more).status, 202);
        let first = stream.until("\"hasNext\":true}}\n\n");
        assert!(first.contains("\"id\":\"q\""), "{first}");
        assert!(first.contains("{\"topProducts\":[{\"name\":"), "{first}");
        assert_eq!(first.contains("\"pending\":"), is_current, "{first}");
        is_known(&mut inventory.next());
        let last = stream.until(&over("q"));
        assert!(last.contains("\"inStock\":true"), "{last}");
        assert_eq!(last.matches("event: next").count(), 1, "{last}");
        assert!(last.contains("\"hasNext\":false}}"), "{last}");
        // An operation that is stopped asks for nothing more, and the stream goes on.
        assert_eq!(operate(address, &token, "s", QUERY).status, 202);
        stream.until("\"hasNext\":true}}\n\n");
        let _asked = inventory.next();
        let path = format!("?operationId=s&token={token}");
        assert_eq!(ask(address, "DELETE", &path, "", "").status, 200);
        assert_eq!(operate(address, &token, "t", "{ __typename }").status, 202);
        let rest = stream.until(&over("t"));
        assert!(!rest.contains("\"id\":\"s\""), "{rest}");
    }
}
