//! Plans made ahead of time, and plans shown to clients.

use ogive_gateway::{
    Gateway, GatewayOptions,
    schema::bundle::{Added, BundleBuilder, load},
    schema::plan_cache::PlanCounts,
};
use ogive_plan::Bundle;

use crate::{
    graph::state,
    setup::{Answer, gateway_with, post, send},
};

const DOCUMENTS: [(&str, &str, Option<&str>); 4] = [
    ("One", "query One { product(id: 1) { name stock } }", None),
    (
        "Two",
        "query A { warehouse { city } } query Two { __typename }",
        Some("A"),
    ),
    (
        "Three",
        "{ product(id: 3) { ...F } } fragment F on Product { name stock }",
        None,
    ),
    (
        "Four",
        "query($n: Int) { find(first: $n) { shipping } }",
        None,
    ),
];

fn bundle() -> Bundle {
    let state = state(&[], "");
    let mut builder = BundleBuilder::new(&state);
    let added: Vec<Added> = DOCUMENTS
        .iter()
        .map(|(label, text, name)| builder.add(label, text, *name).unwrap_or_else(|_| panic!()))
        .collect();
    assert_eq!(
        added.iter().map(|a| (a.plan, a.shared)).collect::<Vec<_>>(),
        [(0, false), (1, false), (0, true), (2, false)]
    );
    assert!(builder.add("bad", "{ nope }", None).is_err());
    let bundle = builder.finish();
    Bundle::decode(&bundle.encode()).unwrap()
}

fn gateway(changes: &[(&str, &str)]) -> Result<Gateway, String> {
    let mut state = state(changes, "");
    load(&mut state, bundle()).map_err(|refused| refused.0)?;
    let options = GatewayOptions::new(&ogive_config::Config::default());
    Ok(Gateway::new(state, options))
}

#[tokio::test(flavor = "current_thread")]
async fn bundled_operations_need_no_planner() {
    let gateway = gateway(&[]).unwrap();
    for query in [
        "query One { product(id: 1) { name stock } }",
        "{ product(id: 77) { name, stock } }",
        "query One { product(id: 1) { name stock } }",
        "{ warehouse { city } }",
    ] {
        post(&gateway, "", format!("{{\"query\":\"{query}\"}}")).await;
    }
    let counts = gateway.state().plans.counts();
    assert_eq!(
        counts,
        PlanCounts {
            bundle: 4,
            cache: 0,
            planner: 0
        }
    );
    post(
        &gateway,
        "",
        r#"{"query":"{ warehouse { city __typename } }"}"#,
    )
    .await;
    assert_eq!(gateway.state().plans.counts().planner, 1);
}

#[test]
fn plans_whose_types_changed_are_left_out() {
    let mut other = state(&[("stock(min: Int): Int", "stock(min: Int): Float")], "");
    let loaded = load(&mut other, bundle()).unwrap();
    assert_eq!(loaded.used, 2);
    assert_eq!(loaded.outdated, [Box::from("One")]);
    assert_eq!(loaded.changed, [Box::from("Product.stock")]);
}

#[test]
fn bundles_of_another_schema_or_planner_are_refused() {
    let error = gateway(&[(
        "type Query ",
        "type Query @join__type(graph: CATALOG, key: \"__typename\") ",
    )])
    .err()
    .unwrap_or_default();
    assert_eq!(
        error,
        "all of its 3 plans were made for another schema: `Query` differ here"
    );
    let mut old = bundle();
    old.planner = "0.0.1".into();
    let error = load(&mut state(&[], ""), old).unwrap_err().0;
    assert!(
        error.starts_with("its plans were made by planner 0.0.1, this is "),
        "{error}"
    );
}

async fn asking(yaml: &str, header: (&str, &str)) -> Answer {
    let gateway = gateway_with(yaml);
    let body = r#"{"query":"{ __typename user(id: 1) { name } }"}"#;
    let request = http::Request::post("/graphql")
        .header("content-type", "application/json")
        .header(header.0, header.1)
        .body(http_body_util::Full::new(body.into()));
    send(&gateway, request.unwrap()).await
}

#[tokio::test(flavor = "current_thread")]
async fn plans_are_shown_only_where_that_is_allowed() {
    const ON: &str = "query_planning: { expose: { enabled: true } }";
    let header = ("Apollo-Expose-Query-Plan", "true");
    for (yaml, header) in [
        ("", header),
        (ON, ("x-other", "true")),
        (ON, (header.0, "false")),
    ] {
        let json = asking(yaml, header).await.json();
        assert!(json.get("extensions").is_none(), "{json}");
    }
    let json = asking(ON, header).await.json();
    assert_eq!(json["data"]["__typename"], "Query", "{json}");
    assert!(
        json["errors"].is_array(),
        "the subgraph is not there: {json}"
    );
    let shown = &json["extensions"]["apolloQueryPlan"];
    assert_eq!(shown["object"]["kind"], "QueryPlan");
    assert_eq!(shown["object"]["node"]["kind"], "Fetch");
    assert_eq!(shown["object"]["node"]["serviceName"], "a");
    assert_eq!(shown["object"]["node"]["variableUsages"][0], "id");
    assert!(shown["text"].as_str().unwrap().starts_with("QueryPlan {"));

    let json = asking(ON, (header.0, "dry-run")).await.json();
    assert!(
        json["data"].is_null() && json.get("errors").is_none(),
        "{json}"
    );
    assert_eq!(
        json["extensions"]["apolloQueryPlan"]["object"]["kind"],
        "QueryPlan"
    );

    let own = "query_planning: { expose: { enabled: true, header: X-Plan } }";
    let json = asking(own, ("x-plan", "true")).await.json();
    assert!(json["extensions"]["apolloQueryPlan"].is_object(), "{json}");
}
