//! What calls of hooks cost is seen: in metrics, in the execution trace, in `ogive explain`.

use http::HeaderMap;
use ogive_base::Peer;
use ogive_gateway::{ExplainInput, GraphqlRequest};
use serde_json::json;

use super::{Coprocessed, EVERYTHING, ME, STAGES, all_of, nothing, playing};
use crate::telemetry::{lines, scrape, scratch, value};

const METRICS: &str = "telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } }, \
     execution_trace: { enabled: true } }\n";

fn count(with: &Coprocessed, stage: &str, outcome: &str) -> f64 {
    let series = format!(
        "ogive_hook_duration_seconds_count{{ogive_hook=\"coprocessor\",ogive_hook_stage=\"{stage}\",ogive_hook_outcome=\"{outcome}\"}}"
    );
    value(&scrape(&with.graph), &series)
}

#[test]
fn every_call_is_counted_and_timed_by_its_stage_and_what_came_of_it() {
    let with = Coprocessed::with(playing(nothing), EVERYTHING, METRICS);
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    for stage in STAGES {
        assert_eq!(count(&with, stage, "continue"), 1.0, "{stage}");
    }
    let ends = |_| json!({ "control": { "break": 403 } });
    let with = Coprocessed::with(playing(ends), all_of("ExecutionRequest"), METRICS);
    assert_eq!(with.ask(ME, &[]).status, 403);
    assert_eq!(count(&with, "ExecutionRequest", "break"), 1.0);
    let lies = |_| json!({ "version": 2 });
    let stages = format!("on_error: continue\n  {}", all_of("SubgraphResponse"));
    let with = Coprocessed::with(playing(lies), &stages, METRICS);
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    assert_eq!(count(&with, "SubgraphResponse", "failed"), 1.0);
    let errors = "ogive_errors_total{graphql_error_code=\"COPROCESSOR_FAILED\"}";
    assert_eq!(value(&scrape(&with.graph), errors), 1.0);
}

#[test]
fn the_access_log_says_that_a_coprocessor_has_ended_a_request_and_whose_it_was() {
    let caller = [("x-claims", "{\"claims\":{\"sub\":\"ida\"}}")];
    for (stage, status, body, line) in [
        (
            "RouterRequest",
            403,
            json!(null),
            "403 code=COPROCESSOR_BREAK",
        ),
        (
            "SupergraphRequest",
            403,
            json!("no"),
            "403 code=COPROCESSOR_BREAK",
        ),
        (
            "ExecutionRequest",
            200,
            json!({ "errors": [{ "message": "no", "extensions": { "code": "UNAUTHENTICATED" } }] }),
            "200 code=UNAUTHENTICATED",
        ),
        (
            "SupergraphResponse",
            403,
            json!(null),
            "403 code=COPROCESSOR_BREAK",
        ),
        ("SupergraphRequest", 200, json!({ "data": {} }), "200"),
    ] {
        let path = scratch(&format!("break-{stage}-{status}.txt"));
        let log = format!(
            "authorization: {{ claims: {{ header: x-claims, trusted: [127.0.0.1] }} }}\n\
             telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
             fields: [status, code], attributes: {{ user: {{ jwt_claim: sub }} }} }} }}\n",
            path.display()
        );
        let ends = move |_| json!({ "control": { "break": status }, "body": body });
        let with = Coprocessed::with(playing(ends), all_of(stage), &log);
        assert_eq!(with.ask(ME, &caller).status, status);
        assert_eq!(lines(&path, 1), [format!("status={line} user=ida")]);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn the_execution_trace_has_the_calls_so_far() {
    let with = Coprocessed::with(playing(nothing), EVERYTHING, METRICS);
    let answer = with.ask(ME, &[("x-ogive-trace", "true")]).json();
    let hooks = answer["extensions"]["ogiveTrace"]["hooks"].as_array();
    let hooks = hooks.unwrap_or_else(|| panic!("{answer}"));
    let stages: Vec<&str> = hooks
        .iter()
        .map(|call| call["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, STAGES[..5]);
    for call in hooks {
        assert_eq!(
            (&call["hook"], &call["outcome"]),
            (&json!("coprocessor"), &json!("continue"))
        );
        assert!(call["durationMicros"].is_u64() && call["startMicros"].is_u64());
    }
}

#[test]
fn what_is_explained_says_who_is_called_and_asks_only_what_is_executed() {
    let explained = |is_executed: bool| {
        let stages = "
  router: { request: { method: true } }
  subgraph: { all: { request: { uri: true, condition: { eq: [{ subgraph_name: true }, accounts] } } } }";
        let with = Coprocessed::with(playing(nothing), stages, "");
        let input = ExplainInput {
            request: GraphqlRequest {
                query: ME.into(),
                ..GraphqlRequest::default()
            },
            headers: HeaderMap::new(),
            token: None,
            peer: Peer::Unix,
            is_executed,
            has_timings: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let gateway = &with.graph.served.gateway;
        let explained = runtime.unwrap().block_on(gateway.explain(input));
        (explained.text, with.coprocessor.asked())
    };
    let (text, asked) = explained(false);
    let expected = "== hooks ==\nRouterRequest: coprocessor\nSubgraphRequest: coprocessor, if its condition is met\n(called with `--execute` only)\n";
    assert!(text.contains(expected), "{text}");
    assert_eq!(asked, 0);
    let (text, asked) = explained(true);
    let expected = "== hooks ==\nRouterRequest: coprocessor, continue\nSubgraphRequest: coprocessor, continue\n";
    assert!(text.contains(expected), "{text}");
    let unseen =
        "(requests as they were before hooks, answers as hooks left them or gave them)\n\n== 5.";
    assert!(text.contains(unseen), "{text}");
    assert_eq!(asked, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_explained_says_a_status_that_a_hook_has_set() {
    let stages = "router: { response: { status_code: true } }";
    let with = Coprocessed::with(playing(|_| json!({ "statusCode": 207 })), stages, "");
    let input = ExplainInput {
        request: GraphqlRequest {
            query: ME.into(),
            ..GraphqlRequest::default()
        },
        headers: HeaderMap::new(),
        token: None,
        peer: Peer::Unix,
        is_executed: true,
        has_timings: false,
    };
    let text = with.graph.served.gateway.explain(input).await.text;
    let (_, response) = text.split_once("== 5. respond ==\n").expect(&text);
    assert!(response.starts_with("HTTP 207 Multi-Status\n{"), "{text}");
}
