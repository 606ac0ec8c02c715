//! Coprocessors that are slow, dead, or lie, and those whose answers are too large, at every stage. `docs/faults.md` has the
//! table.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::json;

use super::{Coprocessed, ME, STAGES, all_of, is_of_subgraph, playing};
use crate::{
    faults::{compare, seen, telling},
    graph::Graph,
    http_client::{Answer, post_with},
};

/// What a coprocessor does, and whether a request goes on all the same with `on_error: continue`: not if it wanted anything else
/// than that the request goes on.
pub(crate) const COPROCESSOR_FAULTS: [(&str, bool); 32] = [
    ("is not there", true),
    ("closes the connection", true),
    ("takes longer than `timeout`", true),
    ("answers a byte at a time", true),
    ("stops in the middle of its answer", true),
    ("speaks no HTTP", true),
    ("answers 500", true),
    ("redirects to another host", true),
    ("answers with nothing", true),
    ("answers with HTML", true),
    ("answers with half a JSON text", true),
    ("answers with JSON and more", true),
    ("answers with JSON that has a member twice", true),
    ("answers with a list", true),
    ("answers with UTF-8 that is none", true),
    ("answers with more than `max_response_size`", true),
    ("does so unannounced", true),
    ("answers with a body nested 200 deep", true),
    ("changes `id`", true),
    ("changes `stage`", true),
    ("changes `version`", true),
    ("answers with members of wrong types", true),
    ("answers with a context that is none", true),
    ("leaves more than 1 MiB in the context", true),
    ("says a header that cannot be sent", true),
    ("says a status that is none", true),
    ("says a `control` that is unknown", false),
    ("ends with the status 99", false),
    ("ends with the status 1000", false),
    ("ends with a status that is a text", false),
    ("ends without a status", false),
    ("ends, and changes `id`", false),
];

pub(crate) const FAILED: &str = "500 COPROCESSOR_FAILED";
pub(crate) const FAILED_FETCH: &str = "200 COPROCESSOR_FAILED";

/// The reply of a fault; `None`: nobody is there.
fn reply(fault: &str) -> Option<Reply> {
    let whole = |text: &str| Reply::Whole(answer(200, "", text.as_bytes()));
    let large = || json!({ "body": "x".repeat(3 << 20) }).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    Some(match fault {
        "is not there" => return None,
        "closes the connection" => Reply::Reset(Vec::new()),
        "takes longer than `timeout`" => Reply::Hang(Vec::new()),
        "answers a byte at a time" => {
            Reply::Drip(format!("{head}content-length: 100000\r\n\r\n").into())
        }
        "stops in the middle of its answer" => {
            Reply::Last(format!("{head}content-length: 100\r\n\r\n{{").into())
        }
        "speaks no HTTP" => Reply::Last(b"SSH-2.0-played\r\n".to_vec()),
        "answers 500" => Reply::Whole(answer(500, "", b"{}")),
        "redirects to another host" => {
            Reply::Whole(answer(307, "location: http://127.0.0.1:1/\r\n", b"{}"))
        }
        "answers with nothing" => whole(""),
        "answers with HTML" => whole("<html></html>"),
        "answers with half a JSON text" => whole("{\"control\": \"conti"),
        "answers with JSON and more" => whole("{} {}"),
        "answers with JSON that has a member twice" => whole(r#"{"uri":"a","uri":"b"}"#),
        "answers with a list" => whole("[]"),
        "answers with UTF-8 that is none" => Reply::Whole(answer(200, "", b"{\"uri\":\"\xff\"}")),
        "answers with more than `max_response_size`" => whole(&large()),
        "does so unannounced" => Reply::Last(format!("{head}\r\n{}", large()).into()),
        "answers with a body nested 200 deep" => whole(&format!(
            "{{\"body\":{}1{}}}",
            "[".repeat(200),
            "]".repeat(200)
        )),
        "changes `id`" => whole(r#"{"id":"another"}"#),
        "changes `stage`" => whole(r#"{"stage":"SandwichRequest"}"#),
        "changes `version`" => whole(r#"{"version":2}"#),
        "answers with members of wrong types" => whole(r#"{"headers":{"a":"b"}}"#),
        "answers with a context that is none" => whole(r#"{"context":[]}"#),
        "leaves more than 1 MiB in the context" => {
            whole(&json!({ "context": { "entries": { "a": "x".repeat(1 << 20) } } }).to_string())
        }
        "says a header that cannot be sent" => whole(r#"{"headers":{"a b":["1"]}}"#),
        "says a status that is none" => whole(r#"{"statusCode":99}"#),
        "says a `control` that is unknown" => whole(r#"{"control":"stop"}"#),
        "ends with the status 99" => whole(r#"{"control":{"break":99}}"#),
        "ends with the status 1000" => whole(r#"{"control":{"break":1000}}"#),
        "ends with a status that is a text" => whole(r#"{"control":{"break":"401"}}"#),
        "ends without a status" => whole(r#"{"control":{}}"#),
        "ends, and changes `id`" => whole(r#"{"control":{"break":401},"id":"another"}"#),
        other => panic!("{other}"),
    })
}

/// Whether a fault is one of time.
fn is_slow(fault: &str) -> bool {
    fault.contains("timeout") || fault.contains("byte at a time")
}

/// A gateway whose coprocessor has one fault after the other at one stage.
struct Faulty {
    graph: Graph,
    fault: Arc<AtomicUsize>,
    _coprocessor: StubSubgraph,
}

impl Faulty {
    /// `url`: where it is, if that is not where it plays.
    fn at(stage: &str, (url, timeout): (Option<&str>, &str), on_error: &str) -> Faulty {
        let fault = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&fault);
        let coprocessor = StubSubgraph::start(move |_, _| {
            let (name, _) = COPROCESSOR_FAULTS[shared.load(SeqCst)];
            reply(name).unwrap()
        });
        let own = coprocessor.url();
        let yaml = format!(
            "coprocessor:\n  url: '{}'\n  timeout: {timeout}\n  max_response_size: 2MB\n  on_error: {on_error}\n  {}\n",
            url.unwrap_or(&own),
            all_of(stage)
        );
        let more = "telemetry: { request_id: { enabled: true } }\n";
        Faulty {
            graph: Graph::with(&format!("{yaml}{more}")),
            fault,
            _coprocessor: coprocessor,
        }
    }
    fn ask(&self, fault: usize) -> Answer {
        self.fault.store(fault, SeqCst);
        post_with(self.graph.address(), ME, &[])
    }
}

/// What the client gets of every fault at every stage.
fn played(on_error: &str) -> Vec<(&'static str, bool, &'static str, Answer)> {
    let mut out = Vec::new();
    for stage in STAGES {
        let usual = Faulty::at(stage, (None, "60s"), on_error);
        let hasty = Faulty::at(stage, (None, "50ms"), on_error);
        // Nobody listens there; a port that was given back may be another test's by now.
        let nowhere = Faulty::at(stage, (Some("http://127.0.0.1:1/"), "60s"), on_error);
        for (number, (fault, goes_on)) in COPROCESSOR_FAULTS.into_iter().enumerate() {
            let faulty = match fault {
                "is not there" => &nowhere,
                fault if is_slow(fault) => &hasty,
                _ => &usual,
            };
            out.push((fault, goes_on, stage, faulty.ask(number)));
        }
    }
    out
}

#[test]
fn whatever_a_coprocessor_fails_at_ends_the_request_or_its_fetch() {
    let played = played("fail");
    let mut found = Vec::new();
    for (fault, _, stage, answer) in &played {
        let expected = if is_of_subgraph(stage) {
            FAILED_FETCH
        } else {
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            FAILED
        };
        let text = answer.text();
        assert!(
            !text.contains("column") && !text.contains("another"),
            "{text}"
        );
        assert!(
            !answer.json()["data"]["me"]["name"].is_string(),
            "{fault} at {stage}"
        );
        found.push((format!("{fault} at {stage}"), seen(answer), expected));
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, seen, expected)| (name.as_str(), seen.clone(), *expected))
        .collect();
    compare(&found);
}

#[test]
fn whatever_a_coprocessor_fails_at_is_as_if_it_were_not_there_where_that_is_asked_for() {
    for (fault, goes_on, stage, answer) in played("continue") {
        let expected = match (goes_on, is_of_subgraph(stage)) {
            (true, _) => "200",
            (false, true) => FAILED_FETCH,
            (false, false) => FAILED,
        };
        assert_eq!(seen(&answer), expected, "{fault} at {stage}");
        let is_answered = answer.json()["data"]["me"]["name"].is_string();
        assert_eq!(is_answered, goes_on, "{fault} at {stage}");
    }
}

/// Operators read once what failed, at which stage, and whether the request went on.
#[test]
fn what_a_coprocessor_fails_at_is_one_line_of_the_log() {
    telling::listen();
    let changes_id = COPROCESSOR_FAULTS
        .iter()
        .position(|(fault, _)| *fault == "changes `id`");
    for on_error in ["fail", "continue"] {
        for stage in STAGES {
            let faulty = Faulty::at(stage, (None, "60s"), on_error);
            faulty.fault.store(changes_id.unwrap(), SeqCst);
            let id = format!("told-coprocessor-{on_error}-{stage}");
            post_with(faulty.graph.address(), ME, &[("x-request-id", &id)]);
            let lines = telling::told(&id);
            assert_eq!(lines.len(), 1, "{id}: {lines:#?}");
            let fields = &lines[0]["fields"];
            assert_eq!(fields["code"], "COPROCESSOR_FAILED", "{id}");
            let cause = fields["cause"].as_str().unwrap();
            assert!(
                cause.contains(stage) && cause.contains("`id`"),
                "{id}: {cause}"
            );
            let goes_on = fields["message"].as_str().unwrap().contains("goes on");
            assert_eq!(goes_on, on_error == "continue", "{id}: {fields}");
        }
    }
}

/// A body of another kind is one where it is read as GraphQL; at `router` bodies are texts.
#[test]
fn a_body_of_another_kind_fails_where_it_is_read_as_graphql() {
    for body in [json!(1), json!([]), json!("text"), json!(true)] {
        for (stage, of_request) in [
            ("SupergraphRequest", FAILED),
            ("SubgraphRequest", FAILED_FETCH),
            ("SubgraphResponse", FAILED_FETCH),
            ("ExecutionResponse", FAILED),
            ("SupergraphResponse", FAILED),
        ] {
            for (on_error, expected) in [("fail", of_request), ("continue", "200")] {
                let said = body.clone();
                let coprocessor = playing(move |_| json!({ "body": said }));
                let more = format!("on_error: {on_error}\n  {}", all_of(stage));
                let answer = Coprocessed::with(coprocessor, &more, "").ask(ME, &[]);
                assert_eq!(seen(&answer), expected, "{body} at {stage}");
            }
        }
    }
    let said = |stage| {
        let coprocessor = playing(|_| json!({ "body": "text" }));
        Coprocessed::with(coprocessor, all_of(stage), "").ask(ME, &[])
    };
    assert_eq!(seen(&said("RouterRequest")), "400 INVALID_GRAPHQL_REQUEST");
    assert_eq!(said("RouterResponse").text(), "text");
    assert_eq!(seen(&said("ExecutionRequest")), "200");
}

#[test]
fn what_cannot_be_told_as_it_is_said_does_not_go_on_if_it_was_to_end() {
    for stage in STAGES {
        let coprocessor =
            playing(|_| json!({ "control": { "break": 403 }, "headers": { "a b": ["1"] } }));
        let more = format!("on_error: continue\n  {}", all_of(stage));
        let with = Coprocessed::with(coprocessor, &more, "");
        let answer = with.ask(ME, &[]);
        assert_ne!(seen(&answer), "200", "{stage}");
        assert!(!answer.json()["data"]["me"]["name"].is_string(), "{stage}");
    }
}

#[test]
fn texts_end_requests_too_and_who_says_nothing_says_the_status() {
    let text = |stage: &'static str, body: serde_json::Value| {
        let coprocessor = playing(move |_| json!({ "control": { "break": 401 }, "body": body }));
        Coprocessed::with(coprocessor, all_of(stage), "").ask(ME, &[])
    };
    let answer = text("RouterRequest", "go away".into());
    assert_eq!((answer.status, answer.text().as_str()), (401, "go away"));
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    for stage in [
        "SupergraphRequest",
        "ExecutionRequest",
        "SupergraphResponse",
    ] {
        let answer = text(stage, "go away".into());
        assert_eq!(answer.json()["errors"][0]["message"], "go away");
        assert_eq!(
            (answer.status, answer.codes()),
            (401, vec!["COPROCESSOR_BREAK".into()])
        );
    }
    let answer = text("RouterRequest", serde_json::Value::Null);
    assert_eq!(answer.json()["errors"][0]["message"], "Unauthorized");
}

#[test]
fn no_more_messages_are_under_way_than_allowed() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let coprocessor = playing(|_| {
        MOST.fetch_max(NOW.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::yield_now();
        NOW.fetch_sub(1, SeqCst);
        json!({})
    });
    let more = format!("max_in_flight: 1\n  {}", all_of("RouterRequest"));
    let with = Coprocessed::with(coprocessor, &more, "");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(seen(&with.ask(ME, &[])), "200"));
        }
    });
    assert_eq!((with.coprocessor.asked(), MOST.load(SeqCst)), (16, 1));
}
