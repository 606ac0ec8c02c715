//! Progressive overrides: which labels are on for a request, and that plans of different labels are told apart.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderValue};
use ogive_edge::receive::Delivery;
use ogive_gateway::{
    plan::{plan_for, plan_now},
    prepare::prepare_operation,
    schema::{plan_cache::PlanSource, state::SchemaState},
};
use ogive_server::offload::Offload;

use crate::graph;

/// The stock's number of a product and its price may come from the catalogue, too.
fn state(yaml: &str) -> Arc<SchemaState> {
    Arc::new(graph::state(
        &[
            (
                "override: String, usedOverridden",
                "override: String, overrideLabel: String, usedOverridden",
            ),
            (
                "stock(min: Int): Int @join__field(graph: STOCK)",
                "stock(min: Int): Int @join__field(graph: CATALOG, override: \"stock\", overrideLabel: \"percent(20)\") @join__field(graph: STOCK)",
            ),
            (
                "city: String",
                "city: String @join__field(graph: STOCK) @join__field(graph: CATALOG, override: \"stock\", overrideLabel: \"city\")",
            ),
        ],
        yaml,
    ))
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).unwrap();
    list.iter()
        .map(|(n, v)| (http::HeaderName::from_static(n), value(v)))
        .collect()
}

const STOCK: &str = "{ product(id: 1) { name stock } }";

static OFFLOAD: LazyLock<Offload> = LazyLock::new(Offload::default);

/// Number of requests of the plan for a request, and where it came from.
async fn requests(
    state: &Arc<SchemaState>,
    text: &str,
    headers: &HeaderMap,
) -> (usize, PlanSource) {
    let operation = match state.operations.get(text, None, Delivery::Whole) {
        Some(known) => known,
        None => {
            let made = Arc::new(prepare_operation(state, text, None).unwrap());
            state.operations.insert(None, Arc::clone(&made));
            made
        }
    };
    let planned = plan_for(state, &operation, headers, &OFFLOAD).await;
    let (planned, source) = planned.unwrap();
    (planned.plan.fetches.len(), source)
}

#[tokio::test]
async fn configured_labels_move_fields() {
    let none = HeaderMap::new();
    let off = state("override_labels: { labels: { percent(20): false } }");
    assert_eq!(requests(&off, STOCK, &none).await.0, 2);
    let on = state("override_labels: { labels: { percent(20): true } }");
    assert_eq!(
        requests(&on, STOCK, &none).await.0,
        1,
        "the catalogue has it all"
    );
}

#[tokio::test]
async fn clients_name_labels_only_where_a_header_is_set() {
    let yaml = "override_labels: { labels: { percent(20): 0% }, header: X-Labels }";
    let (open, closed) = (
        state(yaml),
        state("override_labels: { labels: { percent(20): 0% } }"),
    );
    let asked = headers(&[("x-labels", "city, percent(20)")]);
    assert_eq!(
        requests(&open, STOCK, &asked).await,
        (1, PlanSource::Planner)
    );
    assert_eq!(
        requests(&open, STOCK, &HeaderMap::new()).await,
        (2, PlanSource::Planner)
    );
    assert_eq!(requests(&open, STOCK, &asked).await, (1, PlanSource::Cache));
    assert_eq!(requests(&closed, STOCK, &asked).await.0, 2);
}

#[tokio::test]
async fn labels_that_cannot_matter_do_not_enter_the_key() {
    let state = state("override_labels: { header: x-labels, labels: { percent(20): false } }");
    let (on, off) = (headers(&[("x-labels", "city")]), HeaderMap::new());
    assert_eq!(requests(&state, STOCK, &off).await.1, PlanSource::Planner);
    assert_eq!(requests(&state, STOCK, &on).await.1, PlanSource::Cache);
    // An equivalent document finds the variant by its canonical form.
    let same = "query Same { product(id: 2) { name stock } }";
    let on = headers(&[("x-labels", "percent(20)")]);
    assert_eq!(requests(&state, STOCK, &on).await, (1, PlanSource::Planner));
    assert_eq!(requests(&state, same, &on).await, (1, PlanSource::Cache));
    assert_eq!(requests(&state, same, &off).await, (2, PlanSource::Cache));
    assert_eq!(state.plans.len(), 2);
}

#[tokio::test]
async fn one_value_of_the_sticky_header_always_gets_the_same() {
    let state = state("override_labels: { sticky_by: x-user }");
    let mut on = 0;
    for user in 0..1_000 {
        let user = headers(&[("x-user", &user.to_string())]);
        let first = requests(&state, STOCK, &user).await.0;
        assert_eq!(requests(&state, STOCK, &user).await.0, first);
        on += usize::from(first == 1);
    }
    // A hash decides, so the number is always the same; about a fifth.
    assert!((150..250).contains(&on), "{on}");
}

#[tokio::test]
async fn a_share_of_the_requests_by_chance() {
    let state = state("");
    let mut on = 0;
    for _ in 0..2_000 {
        on += usize::from(requests(&state, STOCK, &HeaderMap::new()).await.0 == 1);
    }
    // 400 are expected with a standard deviation of 18.
    assert!((220..580).contains(&on), "{on}");
}

#[test]
fn without_a_request_no_label_is_on() {
    let state = state("override_labels: { labels: { percent(20): true } }");
    let operation = prepare_operation(&state, STOCK, None).unwrap();
    let (planned, _) = plan_now(&state, &operation).unwrap();
    assert_eq!(planned.plan.fetches.len(), 2);
}
