//! Bad input over real sockets: status, code, and a process that goes on. The full table of cases is in the gateway's
//! own tests.

use crate::{
    graph::Graph,
    http_client::{Connection, post, send},
};

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn each_case_has_its_status_and_code() {
    let graph = Graph::start();
    let deep = format!(
        r#"{{"query":"{{me{{name}}}}","variables":{{"a":{}}}}}"#,
        "[".repeat(200_000)
    );
    let cases: [(&str, &str, u16, &str); 13] = [
        (
            "application/json",
            "{\"query\":",
            400,
            "INVALID_GRAPHQL_REQUEST",
        ),
        ("application/json", "hello", 400, "INVALID_GRAPHQL_REQUEST"),
        ("application/json", "", 400, "INVALID_GRAPHQL_REQUEST"),
        ("application/json", "{}", 400, "INVALID_GRAPHQL_REQUEST"),
        ("application/json", &deep, 400, "INVALID_GRAPHQL_REQUEST"),
        (
            "text/plain",
            "{\"query\":\"{me{name}}\"}",
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (
            "application/json",
            r#"{"query":"{ me {"}"#,
            400,
            "GRAPHQL_PARSE_FAILED",
        ),
        (
            "application/json",
            r#"{"query":"{ nope }"}"#,
            400,
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            "application/json",
            r#"{"query":"query A { me { name } }","operationName":"B"}"#,
            400,
            "GRAPHQL_UNKNOWN_OPERATION_NAME",
        ),
        (
            "application/json",
            r#"{"query":"query A { me { name } } query B { me { name } }"}"#,
            400,
            "GRAPHQL_UNKNOWN_OPERATION_NAME",
        ),
        (
            "application/json",
            r#"{"query":"query A($id: ID!) { account(id: $id) { name } }"}"#,
            400,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            "application/json",
            r#"{"query":"query A($n: Int) { topProducts(first: $n) { name } }","variables":{"n":"many"}}"#,
            400,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            "application/json",
            r#"{"query":"query A($n: Int) { topProducts(first: $n) { name } }","variables":{"n":2147483648}}"#,
            400,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
    ];
    for (content_type, body, status, code) in cases {
        let answer = send(
            graph.address(),
            "POST",
            "/graphql",
            &[("content-type", content_type)],
            body.as_bytes(),
        );
        let shown = &body[..body.len().min(80)];
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        assert_eq!(answer.codes()[0], code, "{shown}");
        assert!(answer.json().get("data").is_none(), "{shown}");
    }
    assert_eq!(
        graph.service.total().requests,
        0,
        "nothing reached a subgraph"
    );
    assert_eq!(post(graph.address(), "{ me { name } }").status, 200);
}

/// JSON in a string in JSON in a string ...: with serde_json's private keys each level used to start a fresh depth.
#[test]
fn json_that_hides_its_depth_costs_nothing() {
    let graph = Graph::start();
    for key in [
        "$serde_json::private::RawValue",
        "$serde_json::private::Number",
    ] {
        let mut inner = "1".to_owned();
        for _ in 0..14 {
            let hidden = serde_json::json!({ key: inner }).to_string();
            inner = "[".repeat(120) + hidden.as_str() + "]".repeat(120).as_str();
        }
        let body = format!(
            r#"{{"query":"query($n: Int) {{ topProducts(first: $n) {{ name }} }}","variables":{{"n":{inner}}}}}"#
        );
        let answer = send(
            graph.address(),
            "POST",
            "/graphql",
            &[JSON],
            body.as_bytes(),
        );
        assert_eq!(answer.status, 400);
        assert_eq!(answer.codes()[0], "VALIDATION_INVALID_TYPE_VARIABLE");
    }
    assert_eq!(post(graph.address(), "{ me { name } }").status, 200);
}

#[test]
fn too_much_is_refused_while_it_arrives() {
    let graph = Graph::with("limits: { http_max_request_bytes: 1000 }");
    // Announced: refused without the body.
    let mut connection = Connection::open(graph.address());
    connection.write(
        b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 5000000\r\n\r\n",
    );
    let answer = connection.read();
    assert_eq!(
        (answer.status, answer.codes()[0].as_str()),
        (413, "REQUEST_TOO_LARGE")
    );
    // Not announced: refused once it is too much.
    let mut connection = Connection::open(graph.address());
    connection.write(
        b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    connection.write(format!("7d0\r\n{}\r\n", "x".repeat(2000)).as_bytes());
    assert_eq!(connection.read().status, 413);
}

#[test]
fn whom_a_request_is_for_and_how_its_body_comes_are_checked() {
    let graph = Graph::start();
    let status = |head: &str, body: &str| {
        let mut connection = Connection::open(graph.address());
        connection.write(
            format!(
                "POST /graphql HTTP/1.1\r\ncontent-type: application/json\r\n{head}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        connection.read().status
    };
    let query = r#"{"query":"{__typename}"}"#;
    let length = format!("content-length: {}", query.len());
    for (host, wanted) in [
        ("a.example:80", 200),
        ("[::1]:80", 200),
        ("a b", 400),
        ("a@b", 400),
        ("a/b", 400),
        ("a:99999", 400),
    ] {
        let head = format!("host: {host}\r\n{length}");
        assert_eq!(status(&head, query), wanted, "{host}");
    }
    let chunked = format!("{:x}\r\n{query}\r\n0\r\n\r\n", query.len());
    for (coding, wanted) in [("chunked", 200), ("Chunked", 200), ("gzip, chunked", 400)] {
        let head = format!("host: a\r\ntransfer-encoding: {coding}");
        assert_eq!(status(&head, &chunked), wanted, "{coding}");
    }
}

#[test]
fn heads_beyond_the_limits_are_431() {
    let graph =
        Graph::with("limits: { http1_max_request_headers: 10, http1_max_request_buf_size: 8KiB }");
    let names: Vec<String> = (0..20).map(|i| format!("x-{i}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "1")).collect();
    assert_eq!(
        send(graph.address(), "GET", "/health", &many, b"").status,
        431
    );
    let long = "x".repeat(20_000);
    let answer = send(graph.address(), "GET", "/health", &[("x-long", &long)], b"");
    assert_eq!(answer.status, 431);
    assert_eq!(
        send(graph.address(), "GET", "/health", &[], b"").status,
        200
    );
}

#[test]
fn what_is_not_http_is_refused_and_forgotten() {
    let graph = Graph::start();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
    ] {
        let mut connection = Connection::open(graph.address());
        connection.write(bytes);
        assert_eq!(connection.read().status, 400);
        assert!(connection.is_closed());
    }
    let body = br#"{"query":"{ me { name } }"}"#;
    assert_eq!(
        send(graph.address(), "POST", "/graphql", &[JSON], body).status,
        200
    );
}
