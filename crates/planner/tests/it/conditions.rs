//! What is asked when a condition is off.

use ogive_plan::{Fetch, Plan};
use ogive_planner::PlanOptions;

use super::{plan_with, supergraph};

/// The text of a request when no variable is true; every look-up has something to ask.
fn text_when_off(plan: &Plan, fetch: &Fetch) -> String {
    let holds = |terms: &[Vec<(u32, bool)>]| terms.iter().any(|t| t.iter().all(|(_, on)| !on));
    let segments = fetch.segments.iter().filter(|segment| {
        let mut gates = segment.gates.iter();
        segment.gates.is_empty() || gates.any(|gate| holds(&plan.conditions[gate.cond]))
    });
    segments.map(|segment| &*segment.text).collect()
}

/// Planner rule 23, for required values that ride in a request that is sent anyway.
#[test]
fn required_values_follow_the_condition_of_the_field() {
    let shop = supergraph("shop");
    let query = "query ($fee: Boolean!) { product(sku: \"1\") { name fee @include(if: $fee) } }";
    let plan = plan_with(&shop, query, &PlanOptions::default()).expect("a plan");
    let text = text_when_off(&plan, &plan.fetches.as_slice()[0]);
    assert!(text.contains("name"), "{text}");
    for required in ["price", "size", "width", "sku "] {
        assert!(!text.contains(required), "{required} in {text}");
    }
    // What the client wants as well is asked all the same.
    let query = "query ($fee: Boolean!) { product(sku: \"1\") { price fee @include(if: $fee) } }";
    let plan = plan_with(&shop, query, &PlanOptions::default()).expect("a plan");
    let text = text_when_off(&plan, &plan.fetches.as_slice()[0]);
    assert!(text.contains("price") && !text.contains("size"), "{text}");
    // A chain of requirements is off as a whole.
    let clinic = supergraph("clinic");
    let query =
        "query ($paid: Boolean!) { patient(number: \"7\") { name price @include(if: $paid) } }";
    let plan = plan_with(&clinic, query, &PlanOptions::default()).expect("a plan");
    let text = text_when_off(&plan, &plan.fetches.as_slice()[0]);
    assert!(text.contains("name") && !text.contains("weight"), "{text}");
}
