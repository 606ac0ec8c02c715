//! Where what a coprocessor does meets other stages: limits, rates, batches, streams, and what was found out before.

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use super::{Coprocessed, ME, STAGES, all_of, nothing, playing};
use crate::http_client::{Connection, request, send};

const JSON: (&str, &str) = ("content-type", "application/json");

/// How often it was asked.
fn asked(stages: &str, more: &str, headers: &[(&str, &str)], body: &Value) -> usize {
    let with = Coprocessed::with(playing(nothing), stages, more);
    let body = body.to_string();
    let answer = send(
        with.graph.address(),
        "POST",
        "/graphql",
        headers,
        body.as_bytes(),
    );
    assert!(answer.status == 200 || answer.status == 400, "{answer:?}");
    with.coprocessor.asked()
}

#[test]
fn a_header_that_comes_twice_or_in_other_bytes_is_looked_at_like_any_other() {
    let condition = |condition: &str| {
        format!("router: {{ request: {{ method: true, condition: {condition} }} }}")
    };
    let eq = condition("{ eq: [{ request_header: x-plan }, gold] }");
    let exists = condition("{ exists: { request_header: x-plan } }");
    let body = json!({ "query": ME });
    for (stages, values, expected) in [
        (&eq, &["gold"][..], 1),
        (&eq, &["free", "gold"], 1),
        (&eq, &["free"], 0),
        (&exists, &["größe"], 1),
        (&exists, &[], 0),
    ] {
        let headers = values.iter().map(|value| ("x-plan", *value));
        let headers: Vec<_> = headers.chain([JSON]).collect();
        assert_eq!(asked(stages, "", &headers, &body), expected, "{values:?}");
    }
}

#[test]
fn conditions_may_name_an_operation_by_the_entries_of_the_context() {
    for (name, value, context) in [
        ("apollo::supergraph::operation_name", "Me", "all"),
        ("apollo::supergraph::operation_kind", "query", "all"),
        ("operation_name", "Me", "deprecated"),
        ("operation_kind", "query", "true"),
    ] {
        let stages = format!(
            "supergraph: {{ request: {{ context: {context}, condition: {{ eq: [{{ request_context: '{name}' }}, {value}] }} }} }}"
        );
        let body = json!({ "query": ME });
        assert_eq!(asked(&stages, "", &[JSON], &body), 1, "{name}");
    }
}

#[test]
fn errors_are_seen_in_batches_and_streams_too() {
    let stages = "router: { response: { headers: true, condition: { eq: [{ on_graphql_error: true }, true] } } }";
    let stream = "subscription: { enabled: true }\nbatching: { enabled: true }\n";
    let (good, bad) = (json!({ "query": ME }), json!({ "query": "{ nobody }" }));
    let events = ("accept", "text/event-stream");
    let parts = ("accept", "multipart/mixed;deferSpec=20220824");
    for (accept, body, expected) in [
        (("accept", "application/json"), &good, 0),
        (("accept", "application/json"), &bad, 1),
        (("accept", "application/json"), &json!([good, good]), 0),
        (("accept", "application/json"), &json!([good, bad]), 1),
        (events, &good, 0),
        (events, &bad, 1),
        (parts, &good, 0),
        (parts, &bad, 1),
    ] {
        let found = asked(stages, stream, &[JSON, accept], body);
        assert_eq!(found, expected, "{accept:?} {body}");
    }
}

#[test]
fn entries_of_a_batch_are_counted_by_what_the_client_has_sent() {
    let coprocessor = playing(|told| {
        let mut headers = told["headers"].clone();
        headers["x-client"] = json!(["somebody else"]);
        json!({ "headers": headers })
    });
    let rate = "batching: { enabled: true }\ntraffic_shaping: { router: { rate_limit: { capacity: 2, interval: 1h, key: header, header: x-client } } }\n";
    let with = Coprocessed::with(coprocessor, "router: { request: { headers: true } }", rate);
    let one = json!({ "query": ME });
    let body = json!([one, one, one]).to_string();
    let headers = [JSON, ("x-client", "a")];
    let answer = send(
        with.graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    );
    let answer = answer.json();
    let codes: Vec<&Value> = (0..3)
        .map(|at| &answer[at]["errors"][0]["extensions"]["code"])
        .collect();
    assert_eq!(
        codes,
        [&Value::Null, &Value::Null, &"REQUEST_RATE_LIMITED".into()]
    );
}

#[test]
fn an_answer_that_is_replaced_counts_like_the_one_that_came() {
    let larger = |bytes: usize| {
        let coprocessor = playing(move |_| {
            let name = "x".repeat(bytes);
            json!({ "body": { "data": { "me": { "name": name } } } })
        });
        let limit = "limits: { max_request_memory: 100KB }\n";
        let with = Coprocessed::with(coprocessor, all_of("SubgraphResponse"), limit);
        with.ask(ME, &[]).codes()
    };
    assert_eq!(larger(50_000), [""; 0]);
    assert_eq!(larger(150_000), ["REQUEST_MEMORY_LIMIT"]);
}

#[test]
fn a_name_that_an_operation_had_before_it_was_changed_is_gone() {
    let coprocessor = playing(|told| match told["stage"].as_str() {
        Some("SupergraphRequest") => json!({ "body": { "query": "{ me { name } }" } }),
        _ => json!({}),
    });
    let stages = "
  supergraph:
    request: { body: true, condition: { eq: [{ operation_name: true }, Me] } }
  execution:
    request: { context: all }";
    let with = Coprocessed::with(coprocessor, stages, "");
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    let told = with.told();
    let entries = &told[1]["context"]["entries"];
    assert_eq!(entries["apollo::supergraph::operation_kind"], "query");
    assert_eq!(entries.get("apollo::supergraph::operation_name"), None);
}

#[test]
fn an_empty_body_that_ends_an_operation_is_json_in_parts_too() {
    let ends = |_| json!({ "control": { "break": 200 }, "body": {} });
    let with = Coprocessed::with(playing(ends), all_of("SupergraphRequest"), "");
    let answer = with.ask(ME, &[("accept", "multipart/mixed;deferSpec=20220824")]);
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let part = text.lines().find(|line| line.starts_with('{')).unwrap();
    let part: Value = serde_json::from_str(part).unwrap();
    assert_eq!(part, json!({ "hasNext": false }));
}

#[test]
fn a_connection_goes_on_behind_a_body_that_nobody_can_decode() {
    let with = Coprocessed::with(playing(nothing), all_of("RouterRequest"), "");
    let mut connection = Connection::open(with.graph.address());
    let body = json!({ "query": ME }).to_string();
    let unknown = [JSON, ("content-encoding", "rot13")];
    connection.write(&request("POST", "/graphql", &unknown, body.as_bytes()));
    assert_eq!(connection.read().codes(), ["UNSUPPORTED_MEDIA_TYPE"]);
    connection.write(&request("POST", "/graphql", &[JSON], body.as_bytes()));
    assert_eq!(connection.read().status, 200);
    assert_eq!(with.coprocessor.asked(), 1);
}

#[test]
fn what_was_not_told_is_not_replaced() {
    for stage in STAGES {
        let coprocessor = playing(|_| json!({ "body": { "query": "{ nobody }", "data": null } }));
        let section = all_of(stage).replace("body: true, ", "");
        let with = Coprocessed::with(coprocessor, &section, "");
        let answer = with.ask(ME, &[]);
        assert!(answer.json()["data"]["me"]["name"].is_string(), "{stage}");
        assert_eq!(with.coprocessor.asked(), 1);
    }
}

#[test]
fn whether_there_are_errors_is_judged_by_what_leaves() {
    let judged = |stage: &str, said: Value, query: &str| {
        let is_there = stage.to_owned();
        let coprocessor = playing(move |told| {
            if told["stage"] == is_there.as_str() {
                said.clone()
            } else {
                json!({})
            }
        });
        let stages = format!(
            "{}\n  router: {{ response: {{ status_code: true, condition: {{ eq: [{{ on_graphql_error: true }}, true] }} }} }}",
            all_of(stage)
        );
        let with = Coprocessed::with(coprocessor, &stages, "");
        with.ask(query, &[]);
        with.stages().contains(&"RouterResponse".to_owned())
    };
    let bad = json!({ "errors": [{ "message": "no" }] });
    let ends = |body: &Value| json!({ "control": { "break": 200 }, "body": body });
    assert!(judged("SupergraphRequest", ends(&bad), ME));
    assert!(!judged(
        "SupergraphRequest",
        ends(&json!({ "data": null })),
        ME
    ));
    let clean = json!({ "body": { "data": { "me": null } } });
    assert!(!judged("SupergraphResponse", clean.clone(), "{ nobody }"));
    assert!(!judged("SupergraphResponse", clean, ME));
    assert!(judged("SupergraphResponse", json!({ "body": bad }), ME));
}

/// Answers of every size between what is free and what is not: none is refused for memory once its operation has run.
#[test]
fn what_has_run_is_told_of_whatever_memory_there_is() {
    let codes = |bytes: usize| {
        let large = json!({ "data": { "me": { "name": "x".repeat(bytes) } } }).to_string();
        let large = answer(200, "content-type: application/json\r\n", large.as_bytes());
        let accounts = StubSubgraph::start(move |_, _| Reply::Whole(large.clone()));
        let more = format!(
            "limits: {{ max_memory: 2MB }}\noverride_subgraph_url: {{ accounts: '{}' }}\n",
            accounts.url()
        );
        let stages = "max_response_size: 10MB\n  supergraph: { response: { body: true } }";
        let with = Coprocessed::with(playing(nothing), stages, &more);
        with.ask(ME, &[]).codes().concat()
    };
    for kilobytes in [100, 300, 400, 450, 500, 540] {
        assert_eq!(codes(kilobytes << 10), "", "{kilobytes} KB");
    }
}

#[test]
fn what_an_operation_costs_is_told_as_soon_as_it_is_known() {
    let costs = |strategy: &str, query: &str| {
        let more = format!(
            "demand_control: {{ enabled: true, mode: enforce, strategy: {{ static_estimated: {{ {strategy} }} }} }}\n"
        );
        let both = "{ request: { context: all }, response: { context: all } }";
        let stages = format!("execution: {both}\n  router: {{ response: {{ context: all }} }}");
        let with = Coprocessed::with(playing(nothing), &stages, &more);
        with.ask(query, &[]);
        let entries = |told: Value| {
            let entries = &told["context"]["entries"];
            ["strategy", "estimated_cost", "actual_cost", "result"]
                .map(|name| entries[format!("apollo::demand_control::{name}")].clone())
        };
        with.told().into_iter().map(entries).collect::<Vec<_>>()
    };
    let (how, null) = (json!("static_estimated"), Value::Null);
    let of = |estimated: f64, actual: Option<f64>, result: &str| {
        let actual = actual.map_or(null.clone(), |actual| json!(actual));
        [how.clone(), json!(estimated), actual, json!(result)]
    };
    let known = "list_size: 7, max: 10, actual_cost_mode: by_response_shape";
    let done = of(1.0, Some(1.0), "COST_OK");
    assert_eq!(
        costs(known, ME),
        [of(1.0, None, "COST_OK"), done.clone(), done]
    );
    // What is refused has its numbers, too.
    let refused = costs("list_size: 70, max: 10", "{ topProducts { name } }");
    assert_eq!(refused, [of(70.0, None, "COST_ESTIMATED_TOO_EXPENSIVE")]);
    assert_eq!(
        costs(
            "list_size: 1, max: 2, actual_cost_mode: by_response_shape",
            "{ topProducts { name price { amount } } }"
        )
        .pop(),
        Some(of(2.0, Some(10.0), "COST_ACTUAL_TOO_EXPENSIVE"))
    );
}
