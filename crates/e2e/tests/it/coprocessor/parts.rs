//! Answers in parts while somebody looks at answers: what is told of each part, and what becomes of the answer when one is ended.

use ogive_testbase::subgraph::{ManualSubgraph, Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use super::{playing, told};
use crate::{
    graph::Graph,
    incremental::{CURRENT, Coming, OF_2022, QUERY, held_back, is_known},
};

const ANSWERS: &str =
    "supergraph: { response: { headers: true, body: true, status_code: true, context: all } }";

/// A gateway whose deferred subgraph the test answers for.
fn with(coprocessor: &StubSubgraph, stages: &str) -> (Graph, ManualSubgraph) {
    let url = coprocessor.url();
    let yaml = format!(
        "subscription: {{ enabled: true }}\ncoprocessor:\n  url: '{url}'\n  timeout: 60s\n  {}\n",
        stages.trim()
    );
    held_back(&yaml)
}

fn messages(coprocessor: &StubSubgraph) -> Vec<Value> {
    let requests = coprocessor.requests();
    requests.iter().map(|request| told(request)).collect()
}

/// All parts, and the text with its head.
fn parts(graph: &Graph, inventory: &ManualSubgraph, accept: &str) -> (Vec<Value>, String) {
    let mut coming = Coming::ask(graph.address(), QUERY, accept);
    let head = coming.until("\"hasNext\":true").to_owned();
    is_known(&mut inventory.next());
    (coming.parts(), head)
}

#[test]
fn a_coprocessor_is_told_of_each_part_and_of_the_head_with_the_first() {
    for accept in [OF_2022, CURRENT] {
        let coprocessor = playing(|told| {
            let mut body = told["body"].clone();
            let count = told["context"]["entries"]["count"].as_u64().unwrap_or(0) + 1;
            body["extensions"] = json!({ "count": count });
            // Whether others follow is not its to say.
            body.as_object_mut().unwrap().remove("hasNext");
            json!({
                "body": body,
                "headers": { "x-count": [count.to_string()], "content-type": ["text/plain"] },
                "context": { "entries": { "count": count } },
            })
        });
        let (graph, inventory) = with(&coprocessor, ANSWERS);
        let (parts, head) = parts(&graph, &inventory, accept);
        let (head, _) = head.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains("x-count: 1") && head.contains("multipart/mixed"),
            "{head}"
        );
        let counts: Vec<&Value> = parts
            .iter()
            .map(|part| &part["extensions"]["count"])
            .collect();
        assert_eq!(counts, [1, 2], "{parts:?}");
        assert_eq!(
            (&parts[0]["hasNext"], &parts[1]["hasNext"]),
            (&true.into(), &false.into())
        );
        let messages = messages(&coprocessor);
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0]["id"], messages[1]["id"]);
        assert_eq!(
            (&messages[0]["statusCode"], &messages[0]["hasNext"]),
            (&200.into(), &true.into())
        );
        assert_eq!(messages[0]["body"]["hasNext"], true);
        assert_eq!(messages[1]["hasNext"], false);
        assert!(messages[1]["body"]["incremental"].is_array());
        assert!(messages[1].get("headers").is_none() && messages[1].get("statusCode").is_none());
    }
}

#[test]
fn every_stage_sees_every_part_and_requests_to_subgraphs_are_looked_at_too() {
    let coprocessor = playing(|_| json!({}));
    let stages = "
  execution: { response: { body: true } }
  supergraph: { response: { body: true } }
  router: { response: { body: true } }
  subgraph: { all: { request: { service_name: true }, response: { service_name: true } } }";
    let (graph, inventory) = with(&coprocessor, stages);
    parts(&graph, &inventory, OF_2022);
    let messages = messages(&coprocessor);
    let stages: Vec<&str> = messages
        .iter()
        .map(|told| told["stage"].as_str().unwrap())
        .collect();
    let answers = ["ExecutionResponse", "SupergraphResponse", "RouterResponse"];
    let is_answer = |stage: &&&str| answers.contains(*stage);
    let of_answers: Vec<&&str> = stages.iter().filter(is_answer).collect();
    assert_eq!(
        of_answers,
        [&answers[..], &answers[..]]
            .concat()
            .iter()
            .collect::<Vec<_>>()
    );
    let asked = stages.iter().filter(|stage| **stage == "SubgraphRequest");
    assert_eq!(asked.count(), 2, "{stages:?}");
    let text = messages
        .iter()
        .rfind(|told| told["stage"] == "RouterResponse")
        .unwrap();
    let part: Value = serde_json::from_str(text["body"].as_str().unwrap()).unwrap();
    assert_eq!(part["hasNext"], false);
}

#[test]
fn parts_over_server_sent_events_are_looked_at() {
    let coprocessor = playing(|told| {
        let mut body = told["body"].clone();
        body["extensions"] = json!({ "next": told["hasNext"] });
        json!({ "body": body })
    });
    let (graph, inventory) = with(&coprocessor, ANSWERS);
    let mut coming = Coming::ask(graph.address(), QUERY, "text/event-stream");
    coming.until("\"extensions\":{\"next\":true}}\n\n");
    is_known(&mut inventory.next());
    coming.until("\"extensions\":{\"next\":false}}\n\n");
    coming.until("event: complete");
}

#[test]
fn what_ends_a_later_part_ends_the_answer_with_its_errors() {
    for (how, code) in [
        (json!({ "control": { "break": 403 } }), "COPROCESSOR_BREAK"),
        (json!({ "body": [1] }), "COPROCESSOR_FAILED"),
        (json!({ "body": { "data": {} } }), "COPROCESSOR_FAILED"),
        (json!({ "id": "another" }), "COPROCESSOR_FAILED"),
    ] {
        for accept in [OF_2022, CURRENT] {
            let how = how.clone();
            let coprocessor = playing(move |told| match told["hasNext"].as_bool() {
                Some(false) => how.clone(),
                _ => json!({}),
            });
            let (graph, inventory) = with(&coprocessor, ANSWERS);
            let (parts, _) = parts(&graph, &inventory, accept);
            let last = parts.last().unwrap();
            assert_eq!(
                (parts.len(), &last["hasNext"]),
                (2, &false.into()),
                "{last}"
            );
            let text = last.to_string();
            assert!(text.contains(code) && !text.contains("inStock"), "{text}");
        }
    }
}

#[test]
fn what_ends_the_first_part_is_the_answer() {
    let coprocessor = playing(|_| json!({ "control": { "break": 403 } }));
    let (graph, _inventory) = with(&coprocessor, ANSWERS);
    let mut coming = Coming::ask(graph.address(), QUERY, OF_2022);
    let text = coming.until("}]}");
    assert!(
        text.starts_with("HTTP/1.1 403 ") && text.contains("COPROCESSOR_BREAK"),
        "{text}"
    );
    assert_eq!(coprocessor.asked(), 1);
}

#[test]
fn a_part_that_a_coprocessor_fails_at_passes_where_that_is_permitted() {
    let coprocessor = StubSubgraph::start(|nth, _| {
        let status = if nth == 0 { 200 } else { 500 };
        Reply::Whole(answer(status, "content-type: application/json\r\n", b"{}"))
    });
    let (graph, inventory) = with(&coprocessor, &format!("on_error: continue\n  {ANSWERS}"));
    let (parts, _) = parts(&graph, &inventory, CURRENT);
    assert!(parts[1].to_string().contains("inStock"), "{parts:?}");
    assert_eq!(coprocessor.asked(), 2);
}

/// The head has left, and what was said of it still holds.
#[test]
fn a_condition_on_the_head_is_judged_by_it_at_later_parts() {
    for (status, expected) in [(200, 2), (201, 0)] {
        let coprocessor = playing(|_| json!({}));
        let stages = format!(
            "supergraph: {{ response: {{ body: true, condition: {{ eq: [{{ response_status: code }}, {status}] }} }} }}"
        );
        let (graph, inventory) = with(&coprocessor, &stages);
        parts(&graph, &inventory, CURRENT);
        assert_eq!(coprocessor.asked(), expected, "{status}");
    }
}

/// Nobody looks at bodies, and yet the first part has errors that somebody is to be told of.
#[test]
fn a_condition_can_name_the_first_part_or_the_later_ones() {
    for (wanted, has_next) in [(true, true), (false, false)] {
        for stage in ["supergraph", "execution", "router"] {
            let coprocessor = playing(|_| json!({}));
            let condition = format!("{{ eq: [{wanted}, {{ is_primary_response: true }}] }}");
            let stages =
                format!("{stage}: {{ response: {{ body: true, condition: {condition} }} }}");
            let (graph, inventory) = with(&coprocessor, &stages);
            parts(&graph, &inventory, OF_2022);
            let messages = messages(&coprocessor);
            assert_eq!(messages.len(), 1, "{stage} {wanted}");
            assert_eq!(messages[0]["hasNext"], has_next, "{stage} {wanted}");
        }
    }
}

#[test]
fn errors_of_the_first_part_count_where_only_they_are_asked_for() {
    let query = format!("{{ me {{ city }} {}", QUERY.trim_start_matches('{'));
    for (fields, expected) in [("Person.city", 1), ("Review.title", 0)] {
        let coprocessor = playing(|_| json!({}));
        let stages = "router: { response: { headers: true, condition: { eq: [{ on_graphql_error: true }, true] } } }";
        let rules =
            format!("authorization: {{ directives: enforce, redact: [{{ fields: [{fields}] }}] }}");
        let (graph, inventory) = with(&coprocessor, &format!("{stages}\n{rules}"));
        let mut coming = Coming::ask(graph.address(), &query, CURRENT);
        coming.until("\"hasNext\":true");
        is_known(&mut inventory.next());
        assert_eq!(coming.parts().len(), 2);
        assert_eq!(coprocessor.asked(), expected, "{fields}");
    }
}
