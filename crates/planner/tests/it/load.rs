//! The estimate behind the profile `least-load`.

use ogive_planner::{
    PlanOptions, Profile,
    assign::{Schedule, assign},
    load,
    search::search_all,
    tree::grow,
};

use super::{operation, supergraph};

/// The estimated load under a profile.
fn of(query: &str, profile: Profile) -> u64 {
    let supergraph = supergraph("shop");
    let op = operation(&supergraph, query);
    let options = PlanOptions {
        profile,
        ..PlanOptions::default()
    };
    let tree = grow(&supergraph, &op, &options).expect("a tree");
    let options = load::settle(&tree, &options).expect("a profile");
    let mut schedule = Schedule::default();
    for (scope, found) in search_all(&tree, &options).expect("requests") {
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
        assert_eq!(
            Some(of(query, Profile::LeastLoad)),
            others.into_iter().min()
        );
    }
}
