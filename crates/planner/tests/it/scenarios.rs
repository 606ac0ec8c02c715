//! Proven optima on the graphs that the benchmarks run on.

use std::path::Path;

use ogive_plan::Plan;
use ogive_planner::{PlanOptions, Profile};

use super::{plan_with, read};

fn plan_of(graph: &str, operation: &str, options: &PlanOptions) -> Plan {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/graphs")
        .join(graph);
    let text = |path: &str| {
        std::fs::read_to_string(folder.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let supergraph = read(&text("supergraph.graphql"));
    let query = text(&format!("operations/{operation}.graphql"));
    plan_with(&supergraph, &query, options).expect("a plan")
}

fn fetches_and_waves(graph: &str, operation: &str, options: &PlanOptions) -> (usize, u32) {
    let plan = plan_of(graph, operation, options);
    let waves = plan.fetches.iter().map(|(_, f)| f.wave).max().unwrap_or(0);
    (plan.fetches.len(), waves)
}

#[test]
fn test_query_takes_six_requests_in_four_waves() {
    let found = fetches_and_waves("shop", "test-query", &PlanOptions::default());
    assert_eq!(found, (6, 4));
}

#[test]
fn many_plans_takes_eight_requests_in_three_waves() {
    // Nothing is better: the search has come to its end.
    let proof = PlanOptions {
        exact_fuel: u64::MAX,
        ..PlanOptions::default()
    };
    for options in [proof, PlanOptions::default()] {
        assert_eq!(fetches_and_waves("many-plans", "deep", &options), (8, 3));
    }
}

#[test]
fn many_plans_takes_little_memory() {
    let mut plan = plan_of("many-plans", "deep", &PlanOptions::default());
    plan.shrink_to_fit();
    let bytes = plan.heap_bytes();
    assert!(bytes <= 264 << 10, "{bytes}");
    assert!(plan == plan_of("many-plans", "deep", &PlanOptions::default()));
}

#[test]
fn a_single_subgraph_takes_one_request() {
    let found = fetches_and_waves("big-response", "all", &PlanOptions::default());
    assert_eq!(found, (1, 1));
}

#[test]
fn many_plans_takes_five_requests_where_they_count_most() {
    let options = PlanOptions {
        exact_fuel: u64::MAX,
        profile: Profile::FewestRequests,
        ..PlanOptions::default()
    };
    assert_eq!(fetches_and_waves("many-plans", "deep", &options), (5, 5));
}
