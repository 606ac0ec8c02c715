//! Answers that are fixed in the configuration.

use crate::{
    graph::Graph,
    http_client::{Connection, post_with, request, send},
};

const YAML: &str = r#"
static_responses:
  - { path: /robots.txt, body: "User-agent: *\nDisallow: /\n" }
  - path: /graphql
    methods: [post]
    when: { eq: [{ request_header: x-maintenance }, "yes"] }
    status: 503
    headers: { retry-after: "60", content-type: application/json }
    body: '{"errors":[{"message":"back soon"}]}'
  - { path: /graphql, methods: [POST], when: { exists: { request_header: x-probe } }, status: 204 }
  - { when: { contains: ["127.0.0.0/8", { client_address: true }] }, methods: [DELETE], status: 410 }
"#;

#[test]
fn what_is_fixed_is_answered_by_path_method_and_header() {
    let graph = Graph::with(YAML);
    let address = graph.address();
    let robots = send(address, "GET", "/robots.txt?a=1", &[], b"");
    assert_eq!(
        (robots.status, robots.text().as_str()),
        (200, "User-agent: *\nDisallow: /\n")
    );
    assert_eq!(
        robots.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(send(address, "POST", "/robots.txt", &[], b"").status, 404);
    let query = "{ me { name } }";
    let closed = post_with(address, query, &[("x-maintenance", "yes")]);
    assert_eq!(
        (closed.status, closed.header("retry-after")),
        (503, Some("60"))
    );
    assert_eq!(closed.json()["errors"][0]["message"], "back soon");
    assert_eq!(closed.header("content-type"), Some("application/json"));
    let open = post_with(address, query, &[("x-maintenance", "no")]);
    assert_eq!((open.status, open.codes()), (200, vec![]));
    let probe = post_with(address, query, &[("x-probe", "")]);
    assert_eq!((probe.status, probe.body.len()), (204, 0));
    let gone = send(address, "DELETE", "/whatever/path", &[], b"");
    assert_eq!((gone.status, gone.header("content-type")), (410, None));
}

#[test]
fn a_connection_goes_on_behind_the_body_of_a_request_with_a_fixed_answer() {
    let graph = Graph::with(YAML);
    let mut connection = Connection::open(graph.address());
    let json = ("content-type", "application/json");
    let body = br#"{"query":"{ me { name } }"}"#;
    for (header, status) in [(("x-maintenance", "yes"), 503), (("x-other", "1"), 200)] {
        connection.write(&request("POST", "/graphql", &[json, header], body));
        assert_eq!(connection.read().status, status);
    }
}

#[test]
fn a_fixed_answer_of_the_endpoint_holds_for_the_documents_below_it() {
    let graph = Graph::with(
        "persisted_queries: { enabled: true, mode: allow }\n\
         static_responses: [{ path: /graphql, methods: [GET, POST], status: 503 }]",
    );
    let json = ("content-type", "application/json");
    let body = br#"{"query":"{ me { name } }"}"#;
    for path in ["/graphql", "/graphql/x", "/graphql/.", "/graphql/..%2f"] {
        let posted = send(graph.address(), "POST", path, &[json], body);
        let read = send(graph.address(), "GET", path, &[], b"");
        assert_eq!((posted.status, read.status), (503, 503), "{path}");
    }
    let elsewhere = send(graph.address(), "GET", "/health", &[], b"");
    assert_ne!(elsewhere.status, 503);
}

#[test]
fn what_is_fixed_is_replaced_with_the_configuration() {
    let graph = Graph::with(YAML);
    assert_eq!(graph.reload(), Ok(()));
    assert_eq!(
        send(graph.address(), "GET", "/robots.txt", &[], b"").status,
        200
    );
}
