//! Requests to subgraphs that begin together, told in one message.

use serde_json::{Value, json};

use super::{Coprocessed, playing};

const TOGETHER: &str = "{ me { name } topProducts(first: 1) { name } }";
const STAGES: &str =
    "subgraph: { all: { request: { batch: true, headers: true, service_name: true } } }";

/// What is said of one of a list: a header with the name of its subgraph.
fn named(told: &Value) -> Value {
    let mut headers = told["headers"].clone();
    headers["x-of"] = json!([told["serviceName"]]);
    json!({ "subgraphRequestId": told["subgraphRequestId"], "headers": headers })
}

#[test]
fn requests_that_begin_together_are_told_in_one_list() {
    let list = |told: Value| told.as_array().unwrap().iter().map(named).collect();
    let with = Coprocessed::with(playing(list), STAGES, "");
    let service = &with.graph.service;
    for subgraph in ["accounts", "products"] {
        service.configure(subgraph, |settings| settings.record = true);
    }
    assert_eq!(with.ask(TOGETHER, &[]).codes(), [""; 0]);
    assert_eq!(with.coprocessor.asked(), 1);
    let told = with.told();
    let told = told[0].as_array().unwrap();
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["stage"], &told[0]["id"]),
        (&"SubgraphRequest".into(), &told[1]["id"])
    );
    assert_ne!(told[0]["subgraphRequestId"], told[1]["subgraphRequestId"]);
    let recorded = service.recorded();
    let mut names: Vec<&str> = recorded
        .iter()
        .flat_map(|request| &request.headers)
        .filter(|(name, _)| name == "x-of")
        .map(|(_, value)| value.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["accounts", "products"]);
}

#[test]
fn a_request_that_begins_alone_is_a_list_of_one() {
    let list = |told: Value| told.as_array().unwrap().iter().map(named).collect();
    let with = Coprocessed::with(playing(list), STAGES, "");
    assert_eq!(with.ask(super::ME, &[]).codes(), [""; 0]);
    assert_eq!(with.told()[0].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_said_of_one_request_is_never_taken_for_another() {
    type Make = fn(&[Value]) -> Value;
    let bad: [Make; 4] = [
        |told| told.iter().rev().map(named).collect(),
        |told| told.iter().take(1).map(named).collect(),
        |told| told.iter().map(|_| json!({})).collect(),
        |_| json!({}),
    ];
    for make in bad {
        for (on_error, codes) in [("fail", 2), ("continue", 0)] {
            let coprocessor = playing(move |told| make(told.as_array().unwrap()));
            let stages = format!("on_error: {on_error}\n  {STAGES}");
            let with = Coprocessed::with(
                coprocessor,
                &stages,
                "include_subgraph_errors: { all: true }\n",
            );
            let found = with.ask(TOGETHER, &[]).codes();
            assert_eq!(found, vec!["COPROCESSOR_FAILED"; codes]);
        }
    }
}

#[test]
fn one_of_a_list_may_be_ended_alone() {
    let list = |told: Value| {
        let each = |told: &Value| {
            if told["serviceName"] == "accounts" {
                return json!({ "subgraphRequestId": told["subgraphRequestId"], "control": { "break": 403 } });
            }
            named(told)
        };
        told.as_array().unwrap().iter().map(each).collect()
    };
    let with = Coprocessed::with(
        playing(list),
        STAGES,
        "include_subgraph_errors: { all: true }\n",
    );
    let answer = with.ask(TOGETHER, &[]);
    assert_eq!(answer.codes(), ["COPROCESSOR_BREAK"]);
    assert!(answer.json()["data"]["topProducts"][0]["name"].is_string());
}
