//! Everything a client can get wrong: status, code, and always a well-formed GraphQL response.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use ogive_base::{Peer, SourceId};
use ogive_gateway::{Gateway, GatewayOptions};
use ogive_telemetry::{Metrics, Telemetry, metrics::MetricsOptions};

use crate::setup::{gateway_with, get, post, send, state};

const MODERN: &str = "application/graphql-response+json";
const LEGACY: &str = "application/json";

/// The request is not even a GraphQL request: 400 in every media type.
#[tokio::test(flavor = "current_thread")]
async fn requests_that_are_no_graphql_requests() {
    let gateway = gateway_with("");
    let deep = format!(
        r#"{{"query":"{{me{{id}}}}","variables":{{"a":{}}}}}"#,
        "[".repeat(100_000)
    );
    let cases: [&[u8]; 10] = [
        b"",
        b"hello",
        b"{\"query\":",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"{\"query\":null}",
        b"{\"query\":[\"{me{id}}\"]}",
        b"{\"query\":\"{me{id}}\",\"variables\":\"x\"}",
        deep.as_bytes(),
    ];
    for body in cases {
        for accept in ["", "*/*", MODERN, LEGACY] {
            let answer = post(&gateway, accept, body.to_vec()).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert_eq!(answer.status, 400, "{shown} {accept}");
            assert_eq!(answer.code(), "INVALID_GRAPHQL_REQUEST", "{shown}");
            assert!(answer.json().get("data").is_none());
        }
    }
}

/// A well-formed GraphQL request that cannot be executed: 400, but 200 for clients that asked for `application/json`.
#[tokio::test(flavor = "current_thread")]
async fn requests_that_cannot_be_executed() {
    let gateway = gateway_with("limits: { parser_max_tokens: 60 }");
    let many = "a ".repeat(100);
    let cases = [
        (r#"{"query":"{ me { id }"}"#, "GRAPHQL_PARSE_FAILED"),
        (r#"{"query":""}"#, "GRAPHQL_PARSE_FAILED"),
        (
            &format!(r#"{{"query":"{{ {many} }}"}}"#),
            "MAX_TOKENS_LIMIT",
        ),
        (r#"{"query":"{ me }"}"#, "GRAPHQL_VALIDATION_FAILED"),
        (
            r#"{"query":"{ me { id nope } }"}"#,
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            r#"{"query":"type A { b: Int }"}"#,
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            r#"{"query":"query A { me { id } }","operationName":"B"}"#,
            "GRAPHQL_UNKNOWN_OPERATION_NAME",
        ),
        (
            r#"{"query":"query A { me { id } } query B { me { id } }"}"#,
            "GRAPHQL_UNKNOWN_OPERATION_NAME",
        ),
        (
            r#"{"query":"query A($id: ID!) { user(id: $id) { id } }"}"#,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            r#"{"query":"query A($id: ID!) { user(id: $id) { id } }","variables":{"id":{}}}"#,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            r#"{"query":"query A($s: Size!) { size(of: $s) }","variables":{"s":"HUGE"}}"#,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            r#"{"query":"subscription { renamed { id } }"}"#,
            "SUBSCRIPTIONS_NOT_SUPPORTED",
        ),
    ];
    for (body, code) in cases {
        for (accept, status) in [("", 400), ("*/*", 400), (MODERN, 400), (LEGACY, 200)] {
            let answer = post(&gateway, accept, body.to_owned()).await;
            assert_eq!(answer.code(), code, "{body}: {}", answer.json());
            assert_eq!(answer.status, status, "{body} {accept}");
            assert!(answer.json().get("data").is_none());
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn errors_say_where_in_the_document() {
    let gateway = gateway_with("");
    let answer = post(&gateway, "", r#"{"query":"{\n  me {\n    nope\n  }\n}"}"#).await;
    let places = answer.json()["errors"][0]["locations"].to_string();
    assert_eq!(places, r#"[{"line":3,"column":5}]"#);
    let answer = post(&gateway, "", r#"{"query":"{\n  me {"}"#).await;
    let json = answer.json();
    assert_eq!(json["errors"][0]["locations"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn media_types_of_bodies() {
    let gateway = gateway_with("");
    let body = r#"{"query":"{__typename}"}"#;
    for content_type in [
        "",
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
    ] {
        let mut request = Request::post("/graphql");
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let answer = send(&gateway, request.body(Full::from(body)).unwrap()).await;
        assert_eq!(answer.status, 415, "{content_type}");
        assert_eq!(answer.code(), "UNSUPPORTED_MEDIA_TYPE");
    }
    let request = Request::post("/graphql")
        .header("content-type", "application/json;charset=UTF-8")
        .header("content-encoding", "compress");
    let answer = send(&gateway, request.body(Full::from(body)).unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (415, "UNSUPPORTED_MEDIA_TYPE")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn media_types_of_answers() {
    let gateway = gateway_with("");
    let body = r#"{"query":"{__typename}"}"#;
    for (accept, content_type) in [
        ("", "application/json; charset=utf-8"),
        ("*/*", "application/json; charset=utf-8"),
        (LEGACY, "application/json; charset=utf-8"),
        (MODERN, "application/graphql-response+json; charset=utf-8"),
    ] {
        let answer = post(&gateway, accept, body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), content_type, "{accept}");
        assert_eq!(answer.body, r#"{"data":{"__typename":"Query"}}"#);
    }
    for accept in ["text/plain", "image/png", "text/html"] {
        let answer = post(&gateway, accept, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (406, "NOT_ACCEPTABLE")
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn bodies_beyond_the_limit() {
    let gateway = gateway_with("limits: { http_max_request_bytes: 100 }");
    let body = format!(r#"{{"query":"{{__typename}}{}"}}"#, " ".repeat(100));
    let answer = post(&gateway, "", body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (413, "REQUEST_TOO_LARGE")
    );
    // The announcement is enough; the body is not waited for.
    let request = Request::post("/graphql")
        .header("content-type", "application/json")
        .header("content-length", "101");
    let answer = send(&gateway, request.body(Full::from("{}")).unwrap()).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test(flavor = "current_thread")]
async fn methods() {
    let gateway = gateway_with("");
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"] {
        let request = Request::builder().method(method).uri("/graphql");
        let answer = send(&gateway, request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), "GET, POST");
        assert_eq!(answer.code(), "METHOD_NOT_ALLOWED");
    }
    let request = Request::post("/health").body(Full::default()).unwrap();
    let answer = send(&gateway, request).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, "GET, HEAD")
    );
    let answer = get(&gateway, "/nowhere", "").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (404, "NOT_FOUND")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn get_is_for_queries_only() {
    let gateway = gateway_with("");
    let answer = get(&gateway, "/graphql?query={__typename}", MODERN).await;
    assert_eq!(answer.body, r#"{"data":{"__typename":"Query"}}"#);
    let mutation = "/graphql?query=mutation{rename(name:%22a%22){id}}";
    for accept in ["", MODERN, LEGACY] {
        let answer = get(&gateway, mutation, accept).await;
        assert_eq!(answer.status, 405);
        assert_eq!(answer.header("allow"), "POST");
        assert_eq!(answer.code(), "METHOD_NOT_ALLOWED");
    }
    for query in ["", "?query=", "?query=%ff", "?query={me{id}}&variables=[]"] {
        let answer = get(&gateway, &format!("/graphql{query}"), LEGACY).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.code(), "INVALID_GRAPHQL_REQUEST");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn introspection_can_be_switched_off() {
    let body = r#"{"query":"{__schema{queryType{name}}}"}"#;
    let answer = post(
        &gateway_with("supergraph: { introspection: true }"),
        "",
        body,
    )
    .await;
    assert_eq!(
        answer.body,
        r#"{"data":{"__schema":{"queryType":{"name":"Query"}}}}"#
    );
    let gateway = gateway_with("");
    let answer = post(&gateway, "", body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (400, "INTROSPECTION_DISABLED")
    );
    let answer = post(&gateway, "", r#"{"query":"{__typename}"}"#).await;
    assert_eq!(answer.status, 200);
}

/// A body that ends in an error, as when the client goes away in the middle.
struct Broken;

impl hyper::body::Body for Broken {
    type Data = Bytes;
    type Error = &'static str;
    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, &'static str>>> {
        std::task::Poll::Ready(Some(Err("gone")))
    }
}

/// A body that panics: the stand-in for a bug anywhere in the pipeline.
struct Bug;

impl hyper::body::Body for Bug {
    type Data = Bytes;
    type Error = &'static str;
    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, &'static str>>> {
        panic!("on purpose")
    }
}

/// A body that never comes.
struct Never;

impl hyper::body::Body for Never {
    type Data = Bytes;
    type Error = &'static str;
    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, &'static str>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn broken_bodies_and_bugs_cost_one_answer() {
    let gateway = gateway_with("");
    let worker = ogive_gateway::WorkerState::new();
    let request = || Request::post("/graphql").header("content-type", "application/json");
    let status = gateway
        .handle(request().body(Broken).unwrap(), Peer::Unix, &worker)
        .await;
    assert_eq!(status.status(), 400);
    let bug = gateway
        .handle(request().body(Bug).unwrap(), Peer::Unix, &worker)
        .await;
    assert_eq!(bug.status(), 500);
    let body = String::from_utf8_lossy(&bug.body().to_vec()).into_owned();
    assert!(body.contains("INTERNAL_SERVER_ERROR"), "{body}");
    // Time is paused: the timeout passes at once.
    let late = gateway
        .handle(request().body(Never).unwrap(), Peer::Unix, &worker)
        .await;
    assert_eq!(late.status(), 408);
    let answer = post(&gateway, "", r#"{"query":"{__typename}"}"#).await;
    assert_eq!(answer.status, 200);
}

/// Names are as long as clients write them; what is shown of them, counted and kept is not.
#[tokio::test(flavor = "current_thread")]
async fn long_names_are_shown_and_counted_in_short() {
    let config = ogive_config::load(SourceId(0), "", &|_| None).unwrap();
    let metrics = Metrics::new(MetricsOptions::default());
    let telemetry = Telemetry::new(Some(metrics), None, None);
    let options = GatewayOptions::new(&config);
    let gateway = Gateway::new(state(&config), options).observed_by(telemetry);
    let name = "a".repeat(1_900_000);
    let known = format!(r#"{{"query":"query {name} {{__typename}}"}}"#);
    assert_eq!(post(&gateway, "", known).await.status, 200);
    let families = gateway.telemetry().metrics.as_ref().unwrap();
    let text = ogive_telemetry::metrics::text::write(&families.snapshot(gateway.gauges()));
    assert!(
        text.contains("graphql_operation_name=\"aaa"),
        "it is counted"
    );
    assert!(text.len() < 50_000, "{} bytes of metrics", text.len());
    for body in [
        format!(r#"{{"query":"{{__typename}}","operationName":"{name}"}}"#),
        format!(r#"{{"query":"{{{name}}}"}}"#),
        format!(r#"{{"query":"{{__typename}} {name}"}}"#),
        format!(r#"{{"query":"query A(${name}:ID!){{__typename}}"}}"#),
        format!(r#"{{"query":"{{user(id:1){{id}}}}","{name}":1,"variables":"{name}"}}"#),
        format!(r#"{{"query":"query($s:Size!){{size(of:$s)}}","variables":{{"s":"{name}"}}}}"#),
    ] {
        let answer = post(&gateway, "", body).await;
        assert!(!answer.code().is_empty());
        assert!(answer.body.len() < 10_000, "{} bytes", answer.body.len());
    }
}

#[tokio::test(flavor = "current_thread")]
async fn introspection_does_not_count_as_depth_unless_asked_to() {
    let types = "{__schema{types{fields{type{ofType{ofType{name}}}}}}}";
    let body = format!(r#"{{"query":"{types}"}}"#);
    let gateway = gateway_with("limits: { max_depth: 3 }\nsupergraph: { introspection: true }");
    assert_eq!(post(&gateway, "", body.clone()).await.status, 200);
    let deep = r#"{"query":"{__typename a:__schema{__typename} me{id}}"}"#;
    assert!(post(&gateway, "", deep).await.json()["data"].is_object());
    let gateway = gateway_with(
        "limits: { max_depth: 3, count_introspection: true }\nsupergraph: { introspection: true }",
    );
    assert_eq!(post(&gateway, "", body).await.code(), "MAX_DEPTH_LIMIT");
    let gateway = gateway_with("limits: { max_depth: 1 }");
    let answer = post(&gateway, "", r#"{"query":"{me{id}}"}"#).await;
    assert_eq!(
        answer.code(),
        "MAX_DEPTH_LIMIT",
        "other fields count as ever"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn operations_of_thousands_of_aliases_are_refused_by_default() {
    let aliases = |n: usize| {
        let fields: String = (0..n).map(|i| format!(" a{i}:__typename")).collect();
        format!(r#"{{"query":"{{{fields}}}"}}"#)
    };
    let gateway = gateway_with("");
    assert_eq!(post(&gateway, "", aliases(200)).await.status, 200);
    let answer = post(&gateway, "", aliases(301)).await;
    assert_eq!(answer.code(), "MAX_ALIASES_LIMIT");
    let gateway = gateway_with("limits: { max_aliases: null, max_root_fields: null }");
    assert_eq!(post(&gateway, "", aliases(301)).await.status, 200);
}

/// What introspection does not tell, messages must not tell one by one.
#[tokio::test(flavor = "current_thread")]
async fn nothing_is_suggested_where_introspection_is_off() {
    let wrong = [
        r#"{"query":"{me{nam}}"}"#,
        r#"{"query":"{usr(id:1){id}}"}"#,
        r#"{"query":"{user(idd:1){id}}"}"#,
        r#"{"query":"{size(of:SMAL)}"}"#,
        r#"{"query":"query($s:Siz){__typename}"}"#,
        r#"{"query":"query($s:Size!){size(of:$s)}","variables":{"s":"SMAL"}}"#,
    ];
    let (told, silent) = (
        gateway_with("supergraph: { introspection: true }"),
        gateway_with(""),
    );
    for body in wrong {
        let said = |text: &str| text.contains("Did you mean");
        assert!(
            said(&post(&told, "", body).await.json().to_string()),
            "{body}"
        );
        let text = post(&silent, "", body).await.json().to_string();
        assert!(!said(&text), "{text}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn every_operation_of_a_batch_pays_the_rate() {
    let yaml = "batching: { enabled: true, maximum_size: 50 }\n\
                traffic_shaping: { router: { rate_limit: { capacity: 5, interval: 1h, key: global } } }";
    let gateway = gateway_with(yaml);
    let batch = format!("[{}]", vec![r#"{"query":"{__typename}"}"#; 40].join(","));
    let answer = post(&gateway, "", batch).await;
    let entries = answer.json();
    let entries = entries.as_array().unwrap();
    let code = |entry: &serde_json::Value| entry["errors"][0]["extensions"]["code"].clone();
    assert!(entries[..5].iter().all(|entry| entry["data"].is_object()));
    assert_eq!(entries.len(), 40);
    for entry in &entries[5..] {
        assert_eq!(code(entry), "REQUEST_RATE_LIMITED");
    }
    let next = post(&gateway, "", r#"{"query":"{__typename}"}"#).await;
    assert_eq!(next.status, 429);
}

#[tokio::test(flavor = "current_thread")]
async fn unknown_operations_wait_in_a_queue_that_is_bounded() {
    let gateway = gateway_with("query_planning: { max_waiting: 1 }");
    let known = r#"{"query":"{__typename}"}"#;
    // Caches admit on second sight, so it is known afterwards.
    for _ in 0..2 {
        assert_eq!(post(&gateway, "", known).await.status, 200);
    }
    // All permits are taken, and one waits.
    let mut permits = Vec::new();
    let waits = loop {
        let mut permit = Box::pin(gateway.offload().plan_permit());
        match futures_now(permit.as_mut()) {
            Some(granted) => permits.push(granted.unwrap()),
            None => break permit,
        }
    };
    let long = |name: &str| {
        let text = format!("query {name} {{ {} }}", "me { id name } ".repeat(200));
        format!(r#"{{"query":"{text}"}}"#)
    };
    let refused = post(&gateway, "", long("A")).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (503, "PLANNING_QUEUE_FULL")
    );
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(post(&gateway, "", known).await.status, 200);
    drop((waits, permits));
    assert_eq!(post(&gateway, "", long("A")).await.status, 200);
    assert_eq!(gateway.offload().waiting(), 0);
}

fn futures_now<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}
