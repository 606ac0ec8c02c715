//! The estimate behind the profile `least-load`.

use std::sync::Arc;

use ogive_planner::{
    Measured, PlanOptions, Profile,
    assign::{Schedule, assign},
    load,
    tree::grow,
};

use super::{check, operation, supergraph};

/// The estimated load under a profile.
fn of(query: &str, profile: Profile) -> u64 {
    estimated("shop", query, profile, None)
}

fn estimated(name: &str, query: &str, profile: Profile, measured: Option<Arc<Measured>>) -> u64 {
    let supergraph = supergraph(name);
    let op = operation(&supergraph, query);
    let options = PlanOptions {
        profile,
        measured,
        ..PlanOptions::default()
    };
    let tree = grow(&supergraph, &op, &options).expect("a tree");
    let mut schedule = Schedule::default();
    for (scope, found) in load::choose(&tree, &options).expect("requests") {
        assign(&tree, &scope, &found, &mut schedule).expect("providers");
    }
    load::estimate(&tree, &schedule)
}

#[test]
fn requests_entities_and_fields_count() {
    // Two requests, ten products looked up; the list itself, and three values of each product.
    let listed = of("{ products { name inStock } }", Profile::CriticalPath);
    assert_eq!(listed, 2 * 2_000 + 10 * 20 + 1 + 3 * 10);
    // One product.
    let one = of(
        "{ product(sku: \"1\") { name inStock } }",
        Profile::CriticalPath,
    );
    assert_eq!(one, 2 * 2_000 + 20 + 1 + 3);
}

#[test]
fn the_least_load_is_the_smaller_one() {
    for query in [
        "{ products { reviews { author { email } product { inStock } } } me { reviews { id } } }",
        "{ me { name reviews { product { name fee } } } products { delivery } }",
    ] {
        let others = [Profile::CriticalPath, Profile::FewestRequests].map(|p| of(query, p));
        let least = of(query, Profile::LeastLoad);
        assert!(Some(least) <= others.into_iter().min(), "{query}: {least}");
    }
}

#[test]
fn lengths_and_weights_count() {
    let of = |query, measured| estimated("harbour", query, Profile::CriticalPath, measured);
    // The list, and a value of each ship.
    assert_eq!(of("{ fleet { id } }", None), 2_000 + 1 + 500);
    assert_eq!(of("{ docked { id } }", None), 2_000 + 1 + 10);
    assert_eq!(of("{ arrivals(first: 4) { id } }", None), 2_000 + 1 + 4);
    assert_eq!(
        of("{ logbook { ships { id } } }", None),
        2_000 + 1 + 1 + 400
    );
    // One ship, its key and the look-up; the weight of what it owes.
    let duty = of("{ flagship { duty } }", None);
    assert_eq!(duty, 2 * 2_000 + 20 + 1 + 1 + 50);
    // What was measured is better than what was said.
    let supergraph = supergraph("harbour");
    let measured = Arc::new(lengths(&supergraph, &[("fleet", 3)]));
    assert_eq!(of("{ fleet { id } }", Some(measured)), 2_000 + 1 + 3);
}

fn lengths(supergraph: &ogive_federation::Supergraph, known: &[(&str, u32)]) -> Measured {
    let schema = &supergraph.schema;
    let query = schema
        .root(ogive_plan::OperationKind::Query)
        .expect("a root");
    let field = |name: &str| {
        let name = schema.names.get(name).expect("a name");
        schema.fields_by_name[&(query, name)]
    };
    Measured {
        items: known.iter().map(|(name, n)| (field(name), *n)).collect(),
        ..Measured::default()
    }
}

fn requests(query: &str, options: &PlanOptions) -> Vec<String> {
    let supergraph = supergraph("harbour");
    let op = operation(&supergraph, query);
    let plan = ogive_planner::plan(&supergraph, &op, options).expect("a plan");
    check(&supergraph, &plan);
    let again = ogive_planner::plan(&supergraph, &op, options).expect("a plan");
    assert!(plan == again, "the same input, the same plan");
    let name = |subgraph: u32| plan.subgraphs[subgraph as usize].to_string();
    plan.fetches.iter().map(|(_, f)| name(f.subgraph)).collect()
}

#[test]
fn measured_lengths_change_the_least_load() {
    let query = "{ harbourMaster flagship { duty } docked { name } }";
    let with = |known: &[(&str, u32)]| PlanOptions {
        profile: Profile::LeastLoad,
        measured: Some(Arc::new(lengths(&supergraph("harbour"), known))),
        ..PlanOptions::default()
    };
    assert_eq!(requests(query, &with(&[])), ["port", "customs"]);
    let short = requests(query, &with(&[("docked", 60)]));
    assert_eq!(short, ["port", "customs"]);
    let long = requests(query, &with(&[("docked", 200)]));
    assert_eq!(long, ["port", "registry", "customs"]);
}

#[test]
fn of_equal_subgraphs_the_faster_is_asked() {
    let with = |slowness: &[u8]| PlanOptions {
        measured: Some(Arc::new(Measured {
            slowness: slowness.to_vec(),
            ..Measured::default()
        })),
        ..PlanOptions::default()
    };
    let query = "{ docked { id } }";
    assert_eq!(requests(query, &with(&[0, 9])), ["port"]);
    assert_eq!(requests(query, &with(&[9, 0])), ["registry"]);
    assert_eq!(
        requests(query, &with(&[])),
        requests(query, &PlanOptions::default())
    );
    // Slow or not, what only one of them has is asked there.
    let query = "{ harbourMaster flagship { name } }";
    assert_eq!(requests(query, &with(&[9, 9, 0])), ["port", "customs"]);
    assert_eq!(requests(query, &with(&[9, 0, 9])), ["port", "registry"]);
}
