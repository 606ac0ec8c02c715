//! Components that decide policies, and that say what operations are counted by.

use serde_json::Value;

use super::{DECISION_FAULTS, guest::Guest};
use crate::{
    authorization::RESTRICTED,
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with},
};

const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";
const OPEN: &str = "{ topProducts(first: 1) { name } }";
const ALL_HOLD: &str = "(call $list (local.get $policies) (local.get $count))";

/// A graph whose policies a component decides, and whose callers a proxy names.
fn deciding(text: &str, options: &str, policies: &str) -> (Graph, Guest) {
    let guest = Guest::new(&[("decide-policies", text)]);
    let yaml = format!(
        "{}authorization: {{ directives: enforce, claims: {{ header: x-claims, trusted: [127.0.0.1] }}, \
         policies: {{ component: guest{policies} }} }}\n",
        guest.yaml(options)
    );
    (Graph::changed(&yaml, RESTRICTED), guest)
}

fn ask(graph: &Graph, query: &str, claims: Option<&str>) -> Answer {
    let claims = claims.map(|claims| ("x-claims", claims));
    post_with(graph.address(), query, claims.as_slice())
}

fn shows(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let shown = answer.json()["data"]["topProducts"][0]["warehouse"] != Value::Null;
    assert_eq!(answer.codes().is_empty(), shown);
    shown
}

#[test]
fn a_component_decides_policies_of_callers_that_are_known() {
    let (graph, _guest) = deciding(ALL_HOLD, "", "");
    assert!(shows(&ask(&graph, STOCK, Some("{}"))));
    assert!(!shows(&ask(&graph, STOCK, None)), "nobody is nobody");
    let (graph, _guest) = deciding("(call $list (i32.const 0) (i32.const 0))", "", "");
    assert!(!shows(&ask(&graph, STOCK, Some("{}"))));
    assert!(
        shows(&ask(&graph, STOCK, Some(r#"{"policies":["stock"]}"#))),
        "a proxy names it"
    );
    // By a claim: the first letter behind `{"plan":"`.
    let by_claim = "(call $list (local.get $policies) \
                    (i32.eq (i32.load8_u (i32.add (local.get $claimed) (i32.const 9))) (i32.const 103)))";
    let (graph, _guest) = deciding(by_claim, "", "");
    assert!(shows(&ask(
        &graph,
        STOCK,
        Some(r#"{"claims":{"plan":"gold"}}"#)
    )));
    assert!(!shows(&ask(
        &graph,
        STOCK,
        Some(r#"{"claims":{"plan":"free"}}"#)
    )));
}

#[test]
fn rules_of_the_configuration_decide_before_it_and_what_nobody_asked_for_holds_for_nobody() {
    let rule = ", rules: { stock: { exists: { jwt_claim: staff } } }";
    let (graph, _guest) = deciding(ALL_HOLD, "", rule);
    assert!(!shows(&ask(&graph, STOCK, Some("{}"))));
    assert!(shows(&ask(
        &graph,
        STOCK,
        Some(r#"{"claims":{"staff":1}}"#)
    )));
    // Its scopes are no policies that were asked for.
    let lies = "(call $list (local.get $scopes) (local.get $scope_count))";
    let (graph, _guest) = deciding(lies, "", "");
    assert!(!shows(&ask(
        &graph,
        STOCK,
        Some(r#"{"scopes":["stocks","admin"]}"#)
    )));
}

#[test]
fn whatever_a_component_does_that_decides_policies_none_holds_by_it() {
    let mut found = Vec::new();
    for (fault, [text, _, expected, _]) in DECISION_FAULTS {
        let (graph, _guest) = deciding(text, "", "");
        found.push((fault, seen(&ask(&graph, STOCK, Some("{}"))), expected));
        // Whoever asks for nothing of the kind is answered as ever.
        found.push((fault, seen(&ask(&graph, OPEN, Some("{}"))), "200"));
        found.push((fault, seen(&ask(&graph, OPEN, None)), "200"));
        let (graph, _guest) = deciding(text, "on_error: continue", "");
        assert!(!shows(&ask(&graph, STOCK, Some("{}"))), "{fault}");
    }
    compare(&found);
}

/// Two operations an hour for each key that a component gives.
fn counted(text: &str, options: &str, rate: &str) -> (Graph, Guest) {
    let guest = Guest::new(&[("rate-key", text)]);
    let yaml = format!(
        "{}traffic_shaping: {{ router: {{ rate_limits: [{{ name: tenant, capacity: 2, interval: 1h, \
         key: [{{ component: guest }}]{rate} }}] }} }}\n",
        guest.yaml(options)
    );
    (Graph::with(&yaml), guest)
}

fn counts(graph: &Graph, tenant: &str) -> u16 {
    post_with(graph.address(), OPEN, &[("x-tenant", tenant)]).status
}

const TENANT: &str =
    "(call $header @\"x-tenant\" (i32.const 32)) (call $key (call $some (i32.const 32)))";
const READS: &str = "permissions: { read_headers: [x-tenant] }";

#[test]
fn a_component_says_what_operations_are_counted_by() {
    let (graph, _guest) = counted(TENANT, READS, "");
    for tenant in ["a", "b"] {
        assert_eq!(
            [(); 3].map(|()| counts(&graph, tenant)),
            [200, 200, 429],
            "{tenant}"
        );
    }
    // Where it says nothing, the address counts.
    let (graph, _guest) = counted("(call $unknown)", "", "");
    let answers = ["a", "b", "c"].map(|tenant| counts(&graph, tenant));
    assert_eq!(answers, [200, 200, 429]);
}

#[test]
fn a_component_is_not_asked_for_what_no_rate_counts() {
    let never = ", when: { eq: [{ operation_kind: true }, mutation] }";
    let (graph, _guest) = counted("(unreachable)", "", never);
    assert_eq!([(); 3].map(|()| counts(&graph, "a")), [200, 200, 200]);
}

#[test]
fn a_component_that_fails_refuses_nobody_where_a_rate_is_only_measured() {
    let (graph, _guest) = counted("(unreachable)", "", ", measure_only: true");
    assert_eq!([(); 3].map(|()| counts(&graph, "a")), [200, 200, 200]);
}

#[test]
fn whatever_a_component_does_that_names_keys_its_operation_is_refused_or_counted() {
    let mut found = Vec::new();
    for (fault, [text, _, _, expected]) in DECISION_FAULTS {
        let (graph, _guest) = counted(text, "", "");
        let answer = post_with(graph.address(), OPEN, &[]);
        found.push((fault, seen(&answer), expected));
        let (graph, _guest) = counted(text, "on_error: continue", "");
        let answers = ["a", "b", "c"].map(|tenant| counts(&graph, tenant));
        assert_eq!(answers, [200, 200, 429], "{fault}: by the address");
    }
    compare(&found);
}
