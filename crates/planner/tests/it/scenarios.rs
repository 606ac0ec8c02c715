//! Proven optima on the published scenarios, where their files are at hand.

use ogive_plan::Plan;
use ogive_planner::{PlanOptions, Profile};

use super::{plan_with, read, shared};

fn plan_of(name: &str, options: &PlanOptions) -> Option<Plan> {
    let dir = shared()?.join("data/scenarios").join(name);
    let supergraph = read(&std::fs::read_to_string(dir.join("supergraph.graphql")).ok()?);
    let body = std::fs::read_to_string(dir.join("body.json")).ok()?;
    let body: serde_json::Value = serde_json::from_str(&body).expect("a request body");
    let query = body["query"].as_str().expect("a query");
    Some(plan_with(&supergraph, query, options).expect("a plan"))
}

fn fetches_and_waves(name: &str, options: &PlanOptions) -> Option<(usize, u32)> {
    let plan = plan_of(name, options)?;
    let waves = plan.fetches.iter().map(|(_, f)| f.wave).max().unwrap_or(0);
    Some((plan.fetches.len(), waves))
}

#[test]
fn test_query_takes_six_requests_in_four_waves() {
    if let Some(found) = fetches_and_waves("fed", &PlanOptions::default()) {
        assert_eq!(found, (6, 4));
    }
}

#[test]
fn many_plans_takes_seven_requests_in_three_waves() {
    let patient = PlanOptions {
        patience: 50,
        fuel: u64::MAX,
        ..PlanOptions::default()
    };
    if let Some(found) = fetches_and_waves("many-plans", &patient) {
        assert_eq!(found, (7, 3));
    }
    if let Some((fetches, waves)) = fetches_and_waves("many-plans", &PlanOptions::default()) {
        assert!(
            fetches <= 8 && waves == 3,
            "{fetches} requests in {waves} waves without patience"
        );
    }
}

#[test]
fn many_plans_takes_little_memory() {
    if let Some(mut plan) = plan_of("many-plans", &PlanOptions::default()) {
        plan.shrink_to_fit();
        let bytes = plan.heap_bytes();
        assert!(bytes <= 256 << 10, "{bytes}");
        assert!(plan == plan_of("many-plans", &PlanOptions::default()).expect("the same"));
    }
}

#[test]
fn a_single_subgraph_takes_one_request() {
    if let Some(found) = fetches_and_waves("big-response", &PlanOptions::default()) {
        assert_eq!(found, (1, 1));
    }
}

#[test]
fn many_plans_takes_five_requests_where_they_count_most() {
    let options = PlanOptions {
        exact_fuel: u64::MAX,
        profile: Profile::FewestRequests,
        ..PlanOptions::default()
    };
    if let Some(found) = fetches_and_waves("many-plans", &options) {
        assert_eq!(found, (5, 4));
    }
}
