//! The artefact of each of the five stops, as `ogive explain` shows it. `BLESS=1` rewrites the snapshot.

use std::path::PathBuf;

use http::HeaderMap;
use ogive_gateway::{ExplainInput, GraphqlRequest, JsonObject, WorkerState};
use ogive_testbase::assert_recorded;

use crate::graph::Graph;

const QUERY: &str = "query Top($n: Int, $withStock: Boolean = true) {
  topProducts(first: $n) {
    name
    inStock @include(if: $withStock)
    ...Opinions
  }
}
fragment Opinions on Product {
  reviews(first: 1) { stars author { username } }
}
query Other { me { name } }";

async fn explained(graph: &Graph, request: GraphqlRequest, is_executed: bool) -> String {
    let input = ExplainInput {
        request,
        headers: HeaderMap::new(),
        caller: None,
        is_executed,
        has_timings: false,
    };
    let worker = WorkerState::new();
    graph.served.gateway.explain(input, &worker).await
}

#[tokio::test(flavor = "current_thread")]
async fn five_stops() {
    let graph = Graph::start();
    let request = GraphqlRequest {
        query: QUERY.into(),
        operation_name: Some("Top".into()),
        variables: JsonObject::read(r#"{"n":2}"#.into()).unwrap().unwrap(),
        ..GraphqlRequest::default()
    };
    let found = explained(&graph, request, true).await;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/five_stops.txt");
    assert_recorded(path, &found);
}

#[tokio::test(flavor = "current_thread")]
async fn a_refused_request_shows_how_far_it_came() {
    let graph = Graph::start();
    let request = GraphqlRequest {
        query: "{ nope }".into(),
        ..GraphqlRequest::default()
    };
    let text = explained(&graph, request, false).await;
    assert!(text.contains("== 3. plan ==\n(not reached)"), "{text}");
    assert!(text.contains("GRAPHQL_VALIDATION_FAILED"), "{text}");
}

/// It is the gateway's own run: a stage that the configuration asks for is in it, where it happens, and refuses as it does
/// for clients.
#[tokio::test(flavor = "current_thread")]
async fn stages_that_are_switched_on_are_shown_in_their_place() {
    let control = "demand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { list_size: 10, max: ";
    let request = || GraphqlRequest {
        query: "{ topProducts(first: 5) { name reviews { stars } } }".into(),
        ..GraphqlRequest::default()
    };
    let names = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("== "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let graph = Graph::with(&format!("{control}1000 }} }} }}\n"));
    let text = explained(&graph, request(), true).await;
    let charged = [
        "== 1. receive ==",
        "== 2. prepare ==",
        "== charge ==",
        "== 3. plan ==",
        "== 4. execute ==",
        "== 5. respond ==",
    ];
    assert_eq!(names(&text), charged, "{text}");
    let graph = Graph::with(&format!("{control}1 }} }} }}\n"));
    let text = explained(&graph, request(), true).await;
    assert_eq!(names(&text), charged, "{text}");
    assert!(text.contains("== 3. plan ==\n(not reached)"), "{text}");
    assert!(text.contains("COST_ESTIMATED_TOO_EXPENSIVE"), "{text}");
}
