//! What may share one request (`PlanOptions::batching`).

use ogive_plan::{Fetch, Gate, Plan};
use ogive_planner::{Batching, PlanOptions};

use super::{plan_with, supergraph};

/// Three look-ups of the shipping subgraph in one wave: the same at two places, another at a third; a fourth of reviews.
const QUERY: &str = "{
    a: product(sku: \"1\") { inStock }
    b: product(sku: \"2\") { inStock reviews { id } }
    c: product(sku: \"3\") { delivery }
}";

fn planned(batching: Batching) -> Plan {
    let supergraph = supergraph("shop");
    let options = PlanOptions {
        batching: vec![batching; supergraph.subgraphs.len()],
        ..PlanOptions::default()
    };
    plan_with(&supergraph, QUERY, &options).expect("a plan")
}

/// (look-ups, places) of every request that looks something up, in plan order.
fn look_ups(plan: &Plan) -> Vec<(usize, usize)> {
    let with = plan.fetches.iter().filter(|(_, f)| !f.lookups.is_empty());
    with.map(|(_, f)| {
        let places = f.lookups.iter().map(|l| l.targets.len()).sum();
        (f.lookups.len(), places)
    })
    .collect()
}

#[test]
fn requests_are_as_small_as_a_subgraph_wants_them() {
    for (batching, expected) in [
        (Batching::All(u32::MAX), vec![(1, 1), (2, 3)]),
        (Batching::All(2), vec![(1, 1), (2, 3)]),
        (Batching::All(1), vec![(1, 1), (1, 2), (1, 1)]),
        (Batching::Paths, vec![(1, 1), (1, 2), (1, 1)]),
        (Batching::Off, vec![(1, 1), (1, 1), (1, 1), (1, 1)]),
    ] {
        let plan = planned(batching);
        assert_eq!(look_ups(&plan), expected, "{batching:?}");
        let waves = plan.fetches.iter().map(|(_, fetch)| fetch.wave).max();
        assert_eq!(waves, Some(2), "{batching:?}");
    }
}

#[test]
fn whoever_waits_for_a_request_waits_for_all_of_its_parts() {
    let supergraph = supergraph("clinic");
    let query = "{ patient(number: \"7\") { name price } }";
    for batching in [Batching::default(), Batching::Off] {
        let options = PlanOptions {
            batching: vec![batching; supergraph.subgraphs.len()],
            ..PlanOptions::default()
        };
        let plan = plan_with(&supergraph, query, &options).expect("a sound plan");
        assert_eq!(plan.fetches.len(), 4);
    }
}

#[test]
fn the_text_of_root_fields_is_written_only_where_they_are_asked() {
    let supergraph = supergraph("museum");
    let root_gates = |query: &str| {
        let plan = plan_with(&supergraph, query, &PlanOptions::default()).expect("a plan");
        let fetches = plan.fetches.iter().map(|(_, fetch)| fetch);
        let with_root = fetches.filter(|fetch| fetch.root.is_some());
        let gated = |fetch: &Fetch| {
            let mut gates = fetch.segments.iter().flat_map(|segment| &segment.gates);
            let is_gated = gates.any(|gate| gate.lookup == Some(Gate::ROOT));
            (fetch.lookups.len(), is_gated)
        };
        with_root.map(gated).collect::<Vec<_>>()
    };
    let beside_a_look_up = "{ tours { stops { artist } } loans { until } }";
    assert_eq!(root_gates(beside_a_look_up), [(0, false), (1, true)]);
}
