//! The artefact of each of the five stops, as `ogive explain` shows it. `BLESS=1` rewrites the snapshot.

use std::path::PathBuf;

use http::HeaderMap;
use ogive_gateway::{GraphqlRequest, JsonObject, explain};
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

#[tokio::test(flavor = "current_thread")]
async fn five_stops() {
    let graph = Graph::start();
    let request = GraphqlRequest {
        query: QUERY.into(),
        operation_name: Some("Top".into()),
        variables: JsonObject::read(r#"{"n":2}"#.into()).unwrap().unwrap(),
        ..GraphqlRequest::default()
    };
    let state = graph.served.gateway.state();
    let (headers, worker) = (HeaderMap::new(), ogive_gateway::WorkerState::new());
    let explanation = explain(&state, request, &headers, Some(&worker)).await;
    let found = explanation.text(false);
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
    let state = graph.served.gateway.state();
    let text = explain(&state, request, &HeaderMap::new(), None)
        .await
        .text(false);
    assert!(text.contains("== 3. plan ==\n(not reached)"), "{text}");
    assert!(text.contains("GRAPHQL_VALIDATION_FAILED"), "{text}");
}
