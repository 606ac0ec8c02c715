//! Every fault of a subgraph is told: to operators by one line in the log that leads to the request, and by a count; to
//! the client at places that are null, without a name unless errors are shown.

use std::{
    io::{self, Write},
    net::TcpListener,
    sync::{Mutex, Once, PoisonError},
};

use serde_json::{Value, json};

use super::subgraphs::{CASES, Case, QUERY, shaping, unhurried};
use crate::{
    graph::Graph,
    http_client::{Answer, post_with, send},
    telemetry::scrape,
    toxic::Toxic,
};

/// Lines of the log that name a request of these tests. Others of the same process are left out.
static LINES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if text.contains("\"told-") {
            let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(serde_json::from_str(&text).unwrap());
        }
        Ok(line.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::INFO)
            .with_writer(|| Kept)
            .init();
        // What another test has told of for the first time just before this held for all is asked for again.
        tracing::callsite::rebuild_interest_cache();
    });
}

/// The lines about a request, and their fields.
pub(crate) fn told(id: &str) -> Vec<Value> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let mine = |line: &&Value| line["fields"]["request_id"] == id;
    lines.iter().filter(mine).cloned().collect()
}

const TELEMETRY: &str = "telemetry: { request_id: { enabled: true }, exporters: { metrics: { prometheus: { enabled: true, \
     listen: '127.0.0.1:0' } }, tracing: { common: { sampler: 0 }, otlp: { enabled: true, endpoint: \
     'http://127.0.0.1:1' } } } }";

fn served(subgraph: &Toxic, more: &str) -> Graph {
    shaped(subgraph, &unhurried(), more)
}

fn faulty(case: &Case, subgraph: &Toxic, more: &str) -> Graph {
    shaped(subgraph, &shaping(case), more)
}

fn shaped(subgraph: &Toxic, shaping: &str, more: &str) -> Graph {
    listen();
    Graph::with(&format!(
        "override_subgraph_url: {{ inventory: '{}' }}\n{shaping}\n{TELEMETRY}\n{more}",
        subgraph.url()
    ))
}

fn ask(graph: &Graph, id: &str) -> Answer {
    let query = format!("query Costs {QUERY}");
    let answer = post_with(graph.address(), &query, &[("x-request-id", id)]);
    assert_eq!(answer.header("x-request-id"), Some(id));
    answer
}

/// Whether the data is null at a path, or above.
fn is_null_at(json: &Value, path: &Value) -> bool {
    let mut at = &json["data"];
    for step in path.as_array().unwrap() {
        if at.is_null() {
            return true;
        }
        at = match step {
            Value::String(key) => at.get(key).unwrap_or_else(|| panic!("no {path} in {json}")),
            index => &at[index.as_u64().unwrap() as usize],
        };
    }
    at.is_null()
}

fn errors(json: &Value) -> &[Value] {
    json["errors"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn operators_read_what_happened_whatever_rules_tell_clients() {
    let case = CASES
        .iter()
        .find(|case| case.seen.contains("SUBREQUEST_GRAPHQL_ERROR"));
    let subgraph = (case.unwrap().subgraph)();
    let rules = "error_rules: [{ set_code: SOMETHING, set_message: Later. }]\n";
    let answer = ask(&served(&subgraph, rules), "told-by-rules");
    assert_eq!(answer.codes()[0], "SOMETHING");
    let lines = told("told-by-rules");
    assert_eq!(lines[0]["fields"]["code"], "DOWNSTREAM_SERVICE_ERROR");
}

#[test]
fn every_fault_of_a_subgraph_is_one_line_and_one_count() {
    for (number, case) in CASES.iter().enumerate() {
        let (subgraph, id) = ((case.subgraph)(), format!("told-{number}"));
        let graph = faulty(case, &subgraph, "");
        let answer = ask(&graph, &id);
        let (json, fault) = (answer.json(), case.fault);
        let lines = told(&id);
        let is_missing = fault == "answers null for an entity";
        if case.seen == "200" && !is_missing {
            assert_eq!(lines, [] as [Value; 0], "{fault}");
            continue;
        }
        assert_eq!(lines.len(), 1, "{fault}: {lines:#?}");
        let fields = &lines[0]["fields"];
        let code = match case.seen.split(' ').nth(1) {
            // What the subgraph says of itself; it is masked for the client only.
            Some("SUBREQUEST_GRAPHQL_ERROR") => "DOWNSTREAM_SERVICE_ERROR",
            Some(code) => code,
            None => "SUBREQUEST_MISSING_ENTITY",
        };
        assert_eq!(fields["code"], code, "{fault}");
        assert_eq!(fields["subgraph"], "inventory", "{fault}");
        assert_eq!(fields["operation"], "Costs", "{fault}");
        assert_eq!(fields["trace_id"].as_str().unwrap().len(), 32, "{fault}");
        assert!(!fields["cause"].as_str().unwrap().is_empty(), "{fault}");
        let place = fields["path"].as_str().unwrap();
        assert!(place.starts_with("topProducts."), "{fault}: {place}");
        if code == "SUBREQUEST_INVALID_VALUE" {
            // Of a leaf only its kind: it may be a secret, and no name stands beside it.
            if fault == "answers a text for a number" {
                assert_eq!(fields["answer"], "a string of 4 bytes", "{fault}");
            }
            assert_eq!(fields["status"], 200, "{fault}");
            assert!(!fields["answer"].as_str().unwrap().is_empty(), "{fault}");
        }
        let level = if is_missing || code == "DOWNSTREAM_SERVICE_ERROR" {
            "INFO"
        } else {
            "WARN"
        };
        assert_eq!(lines[0]["level"], level, "{fault}");
        let count = format!(
            "ogive_errors_total{{subgraph_name=\"inventory\",graphql_error_code=\"{code}\"}} 1\n"
        );
        let metrics = scrape(&graph);
        assert!(metrics.contains(&count), "{fault}: {metrics}");
        for error in errors(&json) {
            if error["extensions"]["code"] != "ERRORS_TRUNCATED" {
                let path = &error["path"];
                assert!(is_null_at(&json, path), "{fault}: {path} in {json}");
                assert!(path.as_array().unwrap().len() >= 3, "{fault}: {path}");
            }
        }
        let text = answer.text();
        assert!(!text.contains("inventory"), "{fault}: {text}");
    }
}

#[test]
fn what_came_is_shown_and_no_credentials() {
    for (id, status, body, expected) in [
        (
            "told-a",
            502,
            "<h1>\u{1b}[31mBad\r\ngateway</h1>",
            "<h1> [31mBad gateway</h1>",
        ),
        ("told-b", 200, "token=abcdefgh x", "token=[redacted] x"),
        ("told-c", 200, "[1]", "[1]"),
    ] {
        let subgraph = Toxic::answering(status, "", body);
        let graph = served(&subgraph, "");
        ask(&graph, id);
        let lines = told(id);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert_eq!(lines[0]["fields"]["answer"], expected);
        assert_eq!(lines[0]["fields"]["status"], status);
    }
}

#[test]
fn where_errors_are_shown_the_subgraph_is_named() {
    let shown = "include_subgraph_errors: { all: true }";
    for (number, case) in CASES.iter().enumerate() {
        let subgraph = (case.subgraph)();
        let graph = faulty(case, &subgraph, shown);
        let json = ask(&graph, &format!("told-shown-{number}")).json();
        for error in errors(&json) {
            let extensions = &error["extensions"];
            if extensions["code"] != "ERRORS_TRUNCATED" {
                assert_eq!(
                    extensions["service"], "inventory",
                    "{}: {error}",
                    case.fault
                );
            }
        }
    }
}

#[test]
fn an_open_breaker_and_failed_tls_are_told() {
    let subgraph = Toxic::answering(500, "", "");
    let breaker = "circuit_breaker: { error_threshold_percent: 1, volume_threshold: 1 }";
    listen();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in plain.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 400 no TLS here\r\n\r\n");
        }
    });
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ inventory: '{}', accounts: 'https://{address}/' }}\n{TELEMETRY}\n\
         traffic_shaping: {{ subgraphs: {{ inventory: {{ {breaker} }} }} }}",
        subgraph.url(),
    ));
    ask(&graph, "told-once");
    ask(&graph, "told-twice");
    let codes = |id: &str| {
        let lines = told(id).into_iter();
        let mut codes: Vec<(String, String)> = lines
            .map(|line| {
                let text = |name: &str| line["fields"][name].as_str().unwrap().to_owned();
                (text("subgraph"), text("code"))
            })
            .collect();
        codes.sort();
        codes
    };
    let pair = |subgraph: &str, code: &str| (subgraph.to_owned(), code.to_owned());
    let tls = pair("accounts", "SUBREQUEST_HTTP_ERROR");
    assert_eq!(
        codes("told-once"),
        [tls.clone(), pair("inventory", "SUBREQUEST_HTTP_ERROR")]
    );
    assert_eq!(
        codes("told-twice"),
        [tls, pair("inventory", "CIRCUIT_BREAKER_OPEN")]
    );
}

/// Errors that say no place get those that are null, and those of a look-up the entities'.
#[test]
fn errors_without_a_path_get_one() {
    let paths = |body: &str, id: &str| -> Vec<Value> {
        let subgraph = Toxic::answering(200, "", body);
        let json = ask(&served(&subgraph, ""), id).json();
        errors(&json).iter().map(|e| e["path"].clone()).collect()
    };
    let place = |at: u32| json!(["topProducts", at, "shippingCost"]);
    assert_eq!(
        paths(r#"{"data":null,"errors":[{"message":"no"}]}"#, "told-p1"),
        [place(0), place(1)]
    );
    assert_eq!(
        paths(
            r#"{"data":{"_entities":[{"shippingCost":{"amount":1}},{"shippingCost":null}]},"errors":[{"message":"no"}]}"#,
            "told-p2"
        ),
        [place(1)]
    );
    assert_eq!(
        paths(
            r#"{"data":{"_entities":[{"shippingCost":{"amount":1}},null]},"errors":[{"message":"no","path":["_entities",1]}]}"#,
            "told-p3"
        ),
        [place(1)]
    );
}

#[test]
fn requests_that_are_refused_have_an_id_and_a_count() {
    listen();
    let graph = Graph::with(TELEMETRY);
    let json = ("content-type", "application/json");
    let id = ("x-request-id", "told-refused");
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let answer = send(graph.address(), method, path, headers, body);
        let id = answer.header("x-request-id").map(str::to_owned);
        (answer.status, id)
    };
    let told = Some("told-refused".to_owned());
    let broken = b"{\"query\":";
    for (expected, answered) in [
        (400, ask("POST", "/graphql", &[json, id], broken)),
        (
            400,
            ask("POST", "/graphql", &[json, id], b"{\"query\":\"{ no }\"}"),
        ),
        (
            415,
            ask(
                "POST",
                "/graphql",
                &[
                    ("content-type", "a/b"),
                    ("apollo-require-preflight", "1"),
                    id,
                ],
                b"x",
            ),
        ),
        (
            406,
            ask(
                "POST",
                "/graphql",
                &[json, ("accept", "image/png"), id],
                b"{}",
            ),
        ),
        (405, ask("PUT", "/graphql", &[json, id], b"")),
        (404, ask("POST", "/nowhere", &[json, id], b"{}")),
    ] {
        assert_eq!(answered, (expected, told.clone()));
    }
    let made = ask("GET", "/nowhere", &[("accept", "application/json")], b"");
    assert_eq!((made.0, made.1.unwrap().len()), (404, 32));
    let metrics = scrape(&graph);
    for (code, count) in [
        ("INVALID_GRAPHQL_REQUEST", 1),
        ("GRAPHQL_VALIDATION_FAILED", 1),
        ("UNSUPPORTED_MEDIA_TYPE", 1),
        ("NOT_ACCEPTABLE", 1),
        ("METHOD_NOT_ALLOWED", 1),
        ("NOT_FOUND", 2),
    ] {
        let series = format!("ogive_errors_total{{graphql_error_code=\"{code}\"}} {count}\n");
        assert!(metrics.contains(&series), "{series} in {metrics}");
    }
}

#[test]
fn a_coprocessor_or_a_script_that_fails_is_told_once() {
    listen();
    let coprocessor = |stage: &str, on_error: &str| {
        format!(
            "coprocessor: {{ url: 'http://127.0.0.1:1/', on_error: {on_error}, {stage} }}\n{TELEMETRY}\n"
        )
    };
    let router = "router: { request: { method: true } }";
    let subgraph = "subgraph: { all: { request: { uri: true } } }";
    for (id, stage, on_error, level) in [
        ("told-hook-router", router, "fail", "WARN"),
        ("told-hook-subgraph", subgraph, "fail", "WARN"),
        ("told-hook-goes-on", router, "continue", "WARN"),
    ] {
        let graph = Graph::with(&coprocessor(stage, on_error));
        post_with(
            graph.address(),
            "query Me { me { name } }",
            &[("x-request-id", id)],
        );
        let lines = told(id);
        let [line] = lines.as_slice() else {
            panic!("{id}: {lines:?}");
        };
        let fields = &line["fields"];
        assert_eq!(fields["code"], "COPROCESSOR_FAILED", "{line}");
        assert_eq!(line["level"], level, "{line}");
        let cause = fields["cause"].as_str().unwrap();
        let stage = if stage == router {
            "RouterRequest"
        } else {
            "SubgraphRequest"
        };
        assert!(cause.starts_with(&format!("at {stage} of ")), "{line}");
    }
}
