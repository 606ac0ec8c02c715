//! One subgraph of three has a fault; the others' data survives.

use std::net::SocketAddr;

use ogive_net::encoding::{Encoding, encode};
use serde_json::{Value, json};

use super::{compare, seen};
use crate::{
    graph::Graph,
    http_client::post,
    toxic::{Reply, Toxic, answer},
};

/// A fault, and what a client sees of it.
pub(super) struct Case {
    pub(super) fault: &'static str,
    /// Status and code.
    pub(super) seen: &'static str,
    pub(super) survives: &'static str,
    pub(super) subgraph: fn() -> Toxic,
}

/// Asks the faulty subgraph and two others.
pub(super) const QUERY: &str =
    "{ me { name } topProducts(first: 2) { name shippingCost { amount } } }";
const WELL: &str =
    r#"{"data":{"_entities":[{"shippingCost":{"amount":1.5}},{"shippingCost":{"amount":2.5}}]}}"#;
const OTHERS: &str = "data of the other subgraphs";
const REST: &str = "all but the wrong values";
const ALL: &str = "everything";
const EXACT: &str = "everything; numbers are passed on byte by byte";

/// The same bytes to every request.
fn raw(bytes: impl Into<Vec<u8>>) -> Toxic {
    let bytes = bytes.into();
    Toxic::start(move |_, _| Reply::Last(bytes.clone()))
}
/// The same body to every request, as 200.
fn body(body: impl AsRef<[u8]>) -> Toxic {
    Toxic::answering(200, "", body)
}
fn entities(entities: &str) -> Toxic {
    body(format!(r#"{{"data":{{"_entities":{entities}}}}}"#))
}
/// One good entity, and one with this shipping cost.
fn cost(cost: &str) -> Toxic {
    entities(&format!(
        r#"[{{"shippingCost":{{"amount":1.5}}}},{{"shippingCost":{cost}}}]"#
    ))
}
/// Refused connections.
fn nobody() -> Toxic {
    let mut toxic = raw("");
    // A port at which nobody listens, nor begins to.
    toxic.address = SocketAddr::from(([127, 0, 0, 1], 1));
    toxic
}

const HTTP_ERROR: &str = "200 SUBREQUEST_HTTP_ERROR";
const MALFORMED: &str = "200 SUBREQUEST_MALFORMED_RESPONSE";
const TIMEOUT: &str = "200 GATEWAY_TIMEOUT";
const INVALID: &str = "200 SUBREQUEST_INVALID_VALUE";

macro_rules! cases {
    ($( $fault:literal => $seen:expr, $survives:expr, $subgraph:expr; )*) => {
        &[$( Case { fault: $fault, seen: $seen, survives: $survives, subgraph: || $subgraph }, )*]
    };
}

pub(super) const CASES: &[Case] = cases! {
    "refuses connections" => HTTP_ERROR, OTHERS, nobody();
    "accepts, and never answers" => TIMEOUT, OTHERS, Toxic::start(|_, _| Reply::Hang(Vec::new()));
    "closes instead of answering" => HTTP_ERROR, OTHERS, raw("");
    "resets the connection instead of answering" => HTTP_ERROR, OTHERS, Toxic::start(|_, _| Reply::Reset(Vec::new()));
    "stops in the middle of the head" => TIMEOUT, OTHERS, Toxic::start(|_, _| Reply::Hang(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()));
    "stops in the middle of the body" => TIMEOUT, OTHERS, Toxic::start(|_, _| Reply::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"data\"".to_vec()));
    "never ends a chunked body" => TIMEOUT, OTHERS, Toxic::start(|_, _| Reply::Hang(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{\"\r\n".to_vec()));
    "drips, a byte at a time" => TIMEOUT, OTHERS, Toxic::start(|_, _| Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n{".to_vec()));
    "resets in the middle of the body" => HTTP_ERROR, OTHERS, Toxic::start(|_, _| Reply::Reset(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"data\"".to_vec()));
    "closes in the middle of the body" => HTTP_ERROR, OTHERS, raw("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"data\"");
    "closes in the middle of a chunk" => HTTP_ERROR, OTHERS, raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n50\r\n{\"data\"");
    "writes a chunk size that is no number" => HTTP_ERROR, OTHERS, raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n");
    "announces two different lengths" => HTTP_ERROR, OTHERS, raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}");
    "speaks no HTTP" => HTTP_ERROR, OTHERS, raw("SSH-2.0-OpenSSH_9.6\r\n\r\n");
    "sends 10,000 headers" => HTTP_ERROR, OTHERS, raw(format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(10_000)));
    "answers as HTTP/1.0" => "200", ALL, raw(format!("HTTP/1.0 200 OK\r\n\r\n{WELL}"));
    "answers 100 and 103 before it answers" => "200", ALL, raw([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".to_vec(), answer(200, "", WELL.as_bytes())].concat());
    "closes its connection after every answer, unannounced" => "200", ALL, Toxic::start(|_, _| Reply::Last(answer(200, "", WELL.as_bytes())));
    "answers 200 with HTML" => MALFORMED, OTHERS, Toxic::answering(200, "content-type: text/html\r\n", "<html><body>Welcome</body></html>");
    "answers 502 with HTML" => HTTP_ERROR, OTHERS, Toxic::answering(502, "", "<html>Bad gateway</html>");
    "answers 401 without a body" => HTTP_ERROR, OTHERS, Toxic::answering(401, "", "");
    "answers 204" => MALFORMED, OTHERS, raw("HTTP/1.1 204 No Content\r\n\r\n");
    "redirects to another host" => "200 SUBREQUEST_REDIRECT", OTHERS, Toxic::answering(307, "location: http://127.0.0.1:1/graphql\r\n", "");
    "answers with nothing" => MALFORMED, OTHERS, body("");
    "answers with JSON that is no object" => MALFORMED, OTHERS, body("[1]");
    "answers with JSON that ends early" => MALFORMED, OTHERS, body(&WELL[..WELL.len() - 3]);
    "answers with JSON and more" => MALFORMED, OTHERS, body(format!("{WELL}}}"));
    "answers `null`" => MALFORMED, OTHERS, body("null");
    "answers `{}`" => MALFORMED, OTHERS, body("{}");
    "answers `data: null` without an error" => MALFORMED, OTHERS, body(r#"{"data":null}"#);
    "answers UTF-8 that is none" => MALFORMED, OTHERS, body(b"{\"data\":{\"_entities\":[{\"shippingCost\":{\"amount\":1}},{\"shippingCost\":{\"amount\":\"\xff\xfe\"}}]}}");
    "answers JSON nested 20,000 deep" => MALFORMED, OTHERS, cost(&format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)));
    "answers 200 MB" => HTTP_ERROR, OTHERS, raw([b"HTTP/1.1 200 OK\r\ncontent-length: 209715200\r\n\r\n".to_vec(), vec![b' '; 4 << 20]].concat());
    "answers more than allowed, unannounced" => HTTP_ERROR, OTHERS, raw([b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 4 << 20]].concat());
    "answers with a gzip bomb" => HTTP_ERROR, OTHERS, Toxic::answering(200, "content-encoding: gzip\r\n", encode(Encoding::Gzip, &vec![b' '; 64 << 20]).unwrap());
    "answers gzip that is none" => HTTP_ERROR, OTHERS, Toxic::answering(200, "content-encoding: gzip\r\n", WELL);
    "answers in an encoding nobody asked for" => HTTP_ERROR, OTHERS, Toxic::answering(200, "content-encoding: compress\r\n", WELL);
    "answers 10,000 errors" => "200 SUBREQUEST_GRAPHQL_ERROR ERRORS_TRUNCATED", OTHERS, body(format!(r#"{{"data":null,"errors":[{{"message":"no"}}{}]}}"#, r#",{"message":"no"}"#.repeat(9_999)));
    "answers `errors` that are no list" => MALFORMED, OTHERS, body(r#"{"data":null,"errors":{"message":"no"}}"#);
    "answers `_entities: null`" => MALFORMED, OTHERS, entities("null");
    "answers `_entities` that is no list" => MALFORMED, OTHERS, entities("{}");
    "answers too few entities" => MALFORMED, OTHERS, entities(r#"[{"shippingCost":{"amount":1.5}}]"#);
    "answers too many entities" => MALFORMED, OTHERS, entities(r#"[{"shippingCost":{"amount":1.5}},{"shippingCost":{"amount":2.5}},{"shippingCost":{"amount":3.5}}]"#);
    "answers null for an entity" => "200", "all but that entity's fields, which are null", entities(r#"[{"shippingCost":{"amount":1.5}},null]"#);
    "answers a number for an entity" => INVALID, REST, entities(r#"[{"shippingCost":{"amount":1.5}},7]"#);
    "answers a text for a number" => INVALID, REST, cost(r#"{"amount":"free"}"#);
    "answers an object for a number" => INVALID, REST, cost(r#"{"amount":{"value":1}}"#);
    "answers a list for an object" => INVALID, REST, cost("[]");
    "answers null for a value that is never null" => "200 NON_NULL_VIOLATION", REST, cost(r#"{"amount":null}"#);
    "leaves a field out" => "200 NON_NULL_VIOLATION", REST, cost("{}");
    "answers a number beyond 64-bit floats" => "200", EXACT, cost(r#"{"amount":1e999}"#);
    "answers fields twice, and more than was asked" => "200", ALL, cost(r#"{"amount":2.5,"amount":9,"secret":{"a":[1]}}"#);
};

/// Configuration of a gateway on which the faults show soon.
pub(super) const SHAPING: &str = "http: { workers: 1 }\n\
    traffic_shaping: { subgraphs: { inventory: { timeout: 150ms, response_max_bytes: 1MiB } } }";

/// What an operation may take over from itself; the default last.
const REUSE: [&str; 3] = ["off", "entities", "all"];

/// The same for a subgraph that answers at once, which must not be late because the machine is busy.
pub(super) fn unhurried() -> String {
    SHAPING.replace("timeout: 150ms", "timeout: 60s")
}

/// What a fault needs.
pub(super) fn shaping(case: &Case) -> String {
    match case.seen {
        TIMEOUT => SHAPING.to_owned(),
        _ => unhurried(),
    }
}

/// The demo graph with the fault in one subgraph.
fn served(case: &Case, reuse: &str) -> (Graph, Toxic) {
    let subgraph = (case.subgraph)();
    let shaping = shaping(case);
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ inventory: '{}' }}\nexecution: {{ reuse: {reuse} }}\n{shaping}",
        subgraph.url()
    ));
    (graph, subgraph)
}

#[test]
fn one_faulty_subgraph_costs_its_own_fields_only() {
    let mut found = Vec::new();
    let in_all_modes = CASES
        .iter()
        .flat_map(|case| REUSE.map(|reuse| (case, reuse)));
    for (case, reuse) in in_all_modes {
        let (graph, subgraph) = served(case, reuse);
        // Twice where it matters most: what a fault leaves behind must not spoil the next request.
        let times = if reuse == "all" { 2 } else { 1 };
        for _ in 0..times {
            let answer = post(graph.address(), QUERY);
            found.push((case.fault, seen(&answer), case.seen));
            others_are_there(case.fault, &answer.json());
            let text = answer.text();
            assert!(
                !text.contains("127.0.0.1"),
                "{}: a host is shown: {text}",
                case.fault
            );
            assert!(text.len() < 200_000, "{}: {} bytes", case.fault, text.len());
            let costs = costs(&answer.json());
            let expected: &[Value] = match case.survives {
                ALL => &[json!(1.5), json!(2.5)],
                OTHERS => &[Value::Null, Value::Null],
                EXACT => &costs,
                _ => &[json!(1.5), Value::Null],
            };
            assert_eq!(costs, expected, "{}, {reuse}: {text}", case.fault);
        }
        let healthy = post(graph.address(), "{ me { name } }");
        assert_eq!(
            healthy.text(),
            r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#
        );
        assert!(
            subgraph.asked() <= times,
            "{}, {reuse}: no retries were asked for",
            case.fault
        );
    }
    compare(&found);
}

fn others_are_there(fault: &str, json: &Value) {
    let data = &json["data"];
    assert_eq!(data["me"]["name"], "Ida Lindqvist", "{fault}: {json}");
    for (at, name) in ["Ridge 30 backpack", "Enamel kettle"].iter().enumerate() {
        assert_eq!(data["topProducts"][at]["name"], *name, "{fault}: {json}");
    }
}

fn costs(json: &Value) -> Vec<Value> {
    let products = json["data"]["topProducts"].as_array().unwrap();
    let cost = |product: &Value| product["shippingCost"]["amount"].clone();
    products.iter().map(cost).collect()
}

#[test]
fn a_redirect_is_not_followed() {
    let target = Toxic::answering(200, "", WELL);
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: {}\r\n", target.url());
        let subgraph = Toxic::answering(status, &location, "");
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ inventory: '{}' }}",
            subgraph.url()
        ));
        assert_eq!(
            post(graph.address(), QUERY).codes()[0],
            "SUBREQUEST_REDIRECT"
        );
        assert_eq!((subgraph.asked(), target.asked()), (1, 0), "{status}");
    }
}

#[test]
fn a_subgraph_behind_one_hung_request_answers_others() {
    // One query hangs until the gateway leaves; none of the others waits for it.
    let subgraph = Toxic::start(|_, request| {
        if request.contains("hang") {
            Reply::Hang(Vec::new())
        } else {
            Reply::Whole(answer(200, "", br#"{"data":{"me":{"name":"Zoe"}}}"#))
        }
    });
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\ntraffic_shaping: {{ all: {{ timeout: 20s }} }}",
        subgraph.url()
    ));
    let address = graph.address();
    let mut hung = crate::http_client::Connection::open(address);
    let body = br#"{"query":"{ hang: me { name } }"}"#;
    let headers = [("content-type", "application/json")];
    hung.write(&crate::http_client::request(
        "POST", "/graphql", &headers, body,
    ));
    while subgraph.asked() == 0 {
        std::thread::yield_now();
    }
    for _ in 0..10 {
        assert_eq!(
            post(address, "{ me { name } }").text(),
            r#"{"data":{"me":{"name":"Zoe"}}}"#
        );
    }
}
