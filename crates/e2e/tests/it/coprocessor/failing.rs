//! Coprocessors that end requests, are slow, dead, or lie, at every stage. `docs/faults.md` has the table.

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::json;

use super::{Coprocessed, ME, STAGES, all_of, nothing, playing};
use crate::faults::{compare, seen};

/// What a coprocessor does, and what the client gets if it is at the stage of an HTTP request, a response or an operation,
/// and if it is at a stage of a subgraph.
pub(crate) const COPROCESSOR_FAULTS: [(&str, &str, &str); 13] = [
    ("closes the connection", FAILED, FAILED_FETCH),
    ("is not there", FAILED, FAILED_FETCH),
    ("takes longer than `timeout`", FAILED, FAILED_FETCH),
    ("answers 500", FAILED, FAILED_FETCH),
    ("answers with HTML", FAILED, FAILED_FETCH),
    ("answers with half a JSON text", FAILED, FAILED_FETCH),
    (
        "answers with more than `max_response_size`",
        FAILED,
        FAILED_FETCH,
    ),
    ("changes `id`", FAILED, FAILED_FETCH),
    ("changes `stage`", FAILED, FAILED_FETCH),
    ("changes `version`", FAILED, FAILED_FETCH),
    ("answers with members of wrong types", FAILED, FAILED_FETCH),
    ("says a header that cannot be sent", FAILED, FAILED_FETCH),
    ("ends with a status that is none", FAILED, FAILED_FETCH),
];

const FAILED: &str = "500 COPROCESSOR_FAILED";
const FAILED_FETCH: &str = "200 COPROCESSOR_FAILED";

/// The reply of a fault; `None`: nobody is there.
fn reply(fault: &str) -> Option<Reply> {
    let whole = |status, text: &str| {
        let headers = "content-type: application/json\r\n";
        Reply::Whole(answer(status, headers, text.as_bytes()))
    };
    Some(match fault {
        "closes the connection" => Reply::Reset(Vec::new()),
        "is not there" => return None,
        "takes longer than `timeout`" => Reply::Hang(Vec::new()),
        "answers 500" => whole(500, "{}"),
        "answers with HTML" => whole(200, "<html></html>"),
        "answers with half a JSON text" => whole(200, "{\"control\": \"conti"),
        "answers with more than `max_response_size`" => {
            whole(200, &json!({ "body": "x".repeat(200_000) }).to_string())
        }
        "changes `id`" => whole(200, r#"{"id":"another"}"#),
        "changes `stage`" => whole(200, r#"{"stage":"SandwichRequest"}"#),
        "changes `version`" => whole(200, r#"{"version":2}"#),
        "answers with members of wrong types" => whole(200, r#"{"headers":{"a":"b"}}"#),
        "says a header that cannot be sent" => whole(200, r#"{"headers":{"a b":["1"]}}"#),
        "ends with a status that is none" => whole(200, r#"{"control":{"break":99}}"#),
        other => panic!("{other}"),
    })
}

fn is_of_subgraph(stage: &str) -> bool {
    stage.starts_with("Subgraph")
}

/// A gateway whose coprocessor has a fault at one stage.
fn faulty(fault: &str, stage: &str, on_error: &str) -> Coprocessed {
    let coprocessor = match reply(fault) {
        Some(reply) => StubSubgraph::start(move |_, _| reply.clone()),
        None => playing(nothing),
    };
    let timeout = if fault.contains("timeout") {
        "50ms"
    } else {
        "20s"
    };
    let url = if reply(fault).is_some() {
        String::new()
    } else {
        // Nobody listens there; a port that was given back may be another test's by now.
        "url: 'http://127.0.0.1:1/', ".to_owned()
    };
    let section = all_of(stage).replace("headers: true", &format!("{url}headers: true"));
    let yaml = format!(
        "coprocessor:\n  url: '{}'\n  timeout: {timeout}\n  max_response_size: 100KB\n  on_error: {on_error}\n  {section}\n",
        coprocessor.url()
    );
    Coprocessed {
        graph: crate::graph::Graph::with(&yaml),
        coprocessor,
    }
}

#[test]
fn whatever_a_coprocessor_fails_at_ends_the_request_or_its_fetch() {
    let mut found = Vec::new();
    for (fault, of_request, of_fetch) in COPROCESSOR_FAULTS {
        for stage in STAGES {
            let with = faulty(fault, stage, "fail");
            let expected = if is_of_subgraph(stage) {
                of_fetch
            } else {
                of_request
            };
            let seen = seen(&with.ask(ME, &[]));
            found.push((format!("{fault} at {stage}"), seen, expected));
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, seen, expected)| (name.as_str(), seen.clone(), *expected))
        .collect();
    compare(&found);
}

#[test]
fn whatever_a_coprocessor_fails_at_is_as_if_it_were_not_there_where_that_is_asked_for() {
    for (fault, _, _) in COPROCESSOR_FAULTS {
        for stage in STAGES {
            let with = faulty(fault, stage, "continue");
            let answer = with.ask(ME, &[]);
            assert_eq!(seen(&answer), "200", "{fault} at {stage}");
            assert!(answer.json()["data"]["me"]["name"].is_string());
        }
    }
}

#[test]
fn requests_end_at_every_stage_with_every_status() {
    for on_error in ["fail", "continue"] {
        for stage in STAGES {
            for status in [200, 401, 500] {
                let coprocessor = playing(move |_| {
                    json!({
                        "control": { "break": status },
                        "headers": { "x-ended": ["1"] },
                        "body": { "errors": [{ "message": "no", "extensions": { "code": "ENDED" } }] },
                    })
                });
                let more = format!("on_error: {on_error}\n  {}", all_of(stage));
                let shown = "include_subgraph_errors: { all: true }\n";
                let with = Coprocessed::with(coprocessor, &more, shown);
                with.graph
                    .service
                    .configure("accounts", |settings| settings.record = true);
                let answer = with.ask(ME, &[]);
                assert_eq!(answer.codes(), ["ENDED"], "{stage} {status}");
                let expected = if is_of_subgraph(stage) { 200 } else { status };
                assert_eq!(answer.status, expected, "{stage} {status}");
                if !is_of_subgraph(stage) {
                    assert_eq!(answer.header("x-ended"), Some("1"), "{stage}");
                }
                let asked = with.graph.service.recorded().len();
                let is_before = stage.ends_with("Request");
                assert_eq!(asked, usize::from(!is_before), "{stage} {status}");
                assert_eq!(with.stages(), [stage]);
            }
        }
    }
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
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
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
