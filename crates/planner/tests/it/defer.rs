//! `@defer`: what the plan of an operation promises about what comes first (planner rule 55).

use std::collections::BTreeSet;

use ogive_plan::{Deferral, Plan, apollo};
use ogive_planner::PlanOptions;

use super::{plan_with, supergraph};

fn plan(name: &str, text: &str) -> Plan {
    plan_with(&supergraph(name), text, &PlanOptions::default()).expect("a plan")
}

const DEFERRED: &str = "{ product(sku: 1) { name ... @defer(label: \"r\") { reviews { text \
    ... @defer(label: \"a\") { author { email } } } price } } me { name ... @defer { email } } }";

/// Requests as subgraph and text, sorted.
fn requests(plan: &Plan, wanted: impl Fn(usize) -> bool) -> BTreeSet<(u32, String)> {
    let fetches = plan.fetches.iter();
    let wanted = fetches.filter(|(id, _)| wanted(id.0 as usize));
    wanted
        .map(|(_, fetch)| {
            let text = fetch.segments.iter().map(|s| &*s.text).collect();
            (fetch.subgraph, text)
        })
        .collect()
}

#[test]
fn the_primary_part_is_planned_without_the_others() {
    let whole = plan("shop", DEFERRED);
    let deferral = whole.deferral.as_deref().expect("deferred groups");
    // The keys of what comes later are no reason to wait.
    let first = plan(
        "shop",
        "{ product(sku: 1) { name id: sku } me { name id } }",
    );
    let count = |plan: &Plan, wanted: &dyn Fn(usize) -> bool| requests(plan, wanted).len();
    let primary = |fetch: usize| deferral.of_fetch(fetch) == Deferral::PRIMARY;
    assert_eq!(count(&whole, &primary), count(&first, &|_| true));
    for (_, text) in requests(&whole, primary) {
        for later in ["email", "price", "reviews", "author"] {
            assert!(!text.contains(later), "{text}");
        }
    }
    let waves = whole
        .fetches
        .iter()
        .filter(|(id, _)| primary(id.0 as usize));
    assert_eq!(waves.map(|(_, fetch)| fetch.wave).max(), Some(1));
}

#[test]
fn without_defer_nothing_is_said_about_it() {
    let never = plan(
        "shop",
        "{ product(sku: 1) { name ... @defer(if: false) { price inStock } } }",
    );
    let plain = plan("shop", "{ product(sku: 1) { name ... { price inStock } } }");
    assert_eq!(never, plain);
    assert_eq!(never.deferral, None);
}

#[test]
fn a_plan_that_lets_a_part_wait_for_a_later_one_is_refused() {
    let right = plan("shop", DEFERRED);
    let deferral = right.deferral.as_deref().expect("deferred groups").clone();
    let of = |groups: &[u32]| {
        let found = deferral.parts.iter().position(|part| part == groups);
        found.expect("such a part") as u32
    };
    let refused = |change: &dyn Fn(&mut Deferral)| -> Vec<String> {
        let mut plan = right.clone();
        change(plan.deferral.as_mut().expect("deferred groups"));
        ogive_plan::verify(&plan).expect_err("an unsound plan")
    };
    let number = |label: &str| {
        let mut groups = deferral.groups.iter();
        let found = groups.position(|group| group.label.as_deref() == Some(label));
        found.expect("such a group") as u32
    };
    let (reviews, authors) = (number("r"), number("a"));
    // The request of the product itself would come with the reviews.
    let late = refused(&|d| d.fetches[0] = of(&[reviews]));
    assert!(late.iter().any(|p| p.contains("product.name")), "{late:#?}");
    // Reviews would come with their authors, and some before them.
    let waited_for = |at: &usize| !right.fetches.as_slice()[*at].successors.is_empty();
    let mut of_reviews =
        (0..deferral.fetches.len()).filter(|at| deferral.fetches[*at] == of(&[reviews]));
    let at = of_reviews.find(waited_for).expect("the request of reviews");
    let late = refused(&|d| d.fetches[at] = of(&[authors]));
    assert!(late.iter().any(|p| p.contains("reviews")), "{late:#?}");
    let part = |d: &mut Deferral| {
        let next = right.fetches.as_slice()[at].successors[0];
        d.fetches[next.0 as usize] = Deferral::PRIMARY;
    };
    let late = refused(&part);
    assert!(
        late.iter().any(|p| p.contains("may come later")),
        "{late:#?}"
    );
    // A value that nobody brings in time.
    let early = refused(&|d| d.outputs.clear());
    assert!(
        early.iter().any(|p| p.contains("no fetch writes")),
        "{early:#?}"
    );
    // Tables that mean nothing.
    for change in [
        &(|d: &mut Deferral| d.groups[1].parent = Some(1)) as &dyn Fn(&mut Deferral),
        &|d| d.groups[0].variable = Some(7),
        &|d| d.parts[0] = vec![0],
        &|d| d.parts[1] = vec![9],
        &|d| d.fetches.truncate(1),
        &|d| d.fetches[0] = 99,
        &|d| d.outputs.reverse(),
        &|d| d.outputs[0].part = 0,
        &|d| d.outputs[0].entry = 99,
    ] {
        assert!(!refused(change).is_empty());
    }
}

#[test]
fn apollos_tree_has_defer_nodes() {
    let plan = plan("shop", DEFERRED);
    let json: serde_json::Value = serde_json::from_str(&apollo::json(&plan)).expect("JSON");
    let node = &json["node"];
    assert_eq!(node["kind"], "Defer");
    assert_eq!(node["primary"]["node"]["kind"], "Parallel");
    let reviews = &node["deferred"][0];
    assert_eq!(reviews["label"], "r");
    assert_eq!(reviews["queryPath"], serde_json::json!(["product"]));
    assert_eq!(reviews["depends"], serde_json::json!([{ "id": "0" }]));
    assert_eq!(reviews["node"]["kind"], "Defer");
    let authors = &reviews["node"]["deferred"][0];
    assert_eq!(authors["label"], "a");
    assert_eq!(
        authors["queryPath"],
        serde_json::json!(["product", "reviews", "@"])
    );
    assert_eq!(node["deferred"][1].get("label"), None);
    let text = apollo::text(&plan);
    assert!(
        text.contains("Deferred(depends: [0], path: \"product\", label: \"r\") {"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&ogive_plan::json(&plan)).expect("JSON");
    let parents: Vec<_> = (0..3)
        .map(|i| json["deferred"][i]["parent"].as_i64())
        .collect();
    assert_eq!(parents, [None, None, Some(0)]);
    let values = json["deferred"][0]["values"].clone();
    assert_eq!(
        values,
        serde_json::json!(["product.reviews[]", "product.price"])
    );
}

#[test]
fn many_groups_take_time_and_memory_in_proportion() {
    let groups = |n: usize| {
        let text: String = (0..n)
            .map(|i| format!("a{i}: product(sku: {i}) {{ name ... @defer(label: \"l{i}\") {{ price reviews {{ text }} }} }} "))
            .collect();
        plan("shop", &format!("{{ {text} }}"))
    };
    let (few, many) = (groups(20), groups(80));
    assert_eq!(few.fetches.len() - 1, 2 * 20);
    assert_eq!(many.fetches.len() - 1, 2 * 80);
    assert!(many.heap_bytes() < 6 * few.heap_bytes());
}
