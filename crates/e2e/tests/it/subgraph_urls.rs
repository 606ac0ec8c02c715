//! Subgraphs that are asked at another URL where something holds of a request.

use std::thread;

use ogive_testbase::subgraph::{ManualSubgraph, StubSubgraph};

use crate::{
    graph::Graph,
    http_client::{Answer, post_with},
};

const QUERY: &str = "{ me { name } }";
const ME: &str = r#"{"data":{"me":{"name":"canary"}}}"#;

fn rules(url: &str, more: &str) -> String {
    format!(
        "http: {{ workers: 1 }}\n{more}override_subgraph_urls:\n  accounts:\n    \
         - {{ when: {{ eq: [{{ request_header: x-stage }}, canary] }}, url: '{url}' }}\n    \
         - {{ when: {{ exists: {{ request_header: x-stage }} }}, url: 'http://127.0.0.1:1/' }}\n"
    )
}

fn name(answer: &Answer) -> String {
    answer.json()["data"]["me"]["name"].to_string()
}

#[test]
fn a_request_goes_where_the_first_condition_that_holds_says() {
    let canary = StubSubgraph::answering(200, "cache-control: public, max-age=60\r\n", ME);
    let propagated = "headers: { all: { response: [{ propagate: { named: cache-control } }] } }\n";
    let graph = Graph::with(&rules(&canary.url(), propagated));
    let ask = |headers: &[(&str, &str)]| post_with(graph.address(), QUERY, headers);
    let usual = name(&ask(&[]));
    assert_ne!(usual, "\"canary\"");
    let there = ask(&[("x-stage", "canary")]);
    assert_eq!(name(&there), "\"canary\"");
    // What depends on a header of the client is not for everybody.
    let cached = there.header("cache-control").unwrap_or_default();
    assert!(cached.contains("private"), "{cached}");
    let vary = there.header("vary").unwrap_or_default();
    assert!(vary.contains("x-stage"), "{vary}");
    // The second rule, which nobody listens at; what a client says is never a place.
    let nowhere = ask(&[("x-stage", &canary.url())]);
    assert_eq!(nowhere.codes(), ["SUBREQUEST_HTTP_ERROR"]);
    assert_eq!((name(&ask(&[])), canary.asked()), (usual, 1));
}

#[test]
fn requests_for_two_places_are_never_shared() {
    let canary = ManualSubgraph::start();
    let graph = Graph::with(&rules(&canary.url(), ""));
    let address = graph.address();
    let first = thread::spawn(move || post_with(address, QUERY, &[("x-stage", "canary")]));
    let mut asked = canary.next();
    // While that one waits, another one is answered elsewhere.
    let other = post_with(address, QUERY, &[]);
    assert_ne!(name(&other), "\"canary\"");
    asked.answer(200, "", ME);
    assert_eq!(name(&first.join().unwrap()), "\"canary\"");
}

#[test]
fn what_fails_at_one_place_says_nothing_of_another() {
    let canary = StubSubgraph::answering(500, "", "{}");
    let breaker = "traffic_shaping: { all: { circuit_breaker: \
                   { error_threshold_percent: 50, volume_threshold: 2, window: 60s, reset_timeout: 60s } } }\n";
    let graph = Graph::with(&rules(&canary.url(), breaker));
    let ask = |headers: &[(&str, &str)]| post_with(graph.address(), QUERY, headers);
    let codes: Vec<String> = (0..4)
        .flat_map(|_| ask(&[("x-stage", "canary")]).codes())
        .collect();
    assert!(canary.asked() < 4, "{codes:?}");
    assert_eq!(ask(&[]).codes(), Vec::<String>::new());
}

#[test]
fn claims_decide_where_a_request_goes() {
    let europe = StubSubgraph::answering(200, "", ME);
    let graph = Graph::with(&format!(
        "authorization: {{ claims: {{ header: x-claims, trusted: [127.0.0.0/8] }} }}\n\
         override_subgraph_urls: {{ accounts: [{{ when: {{ contains: [{{ jwt_claim: regions }}, eu] }}, url: '{}' }}] }}\n",
        europe.url()
    ));
    let ask = |claims: &str| post_with(graph.address(), QUERY, &[("x-claims", claims)]);
    assert_eq!(
        name(&ask(r#"{"claims":{"regions":["us","eu"]}}"#)),
        "\"canary\""
    );
    assert_ne!(name(&ask(r#"{"claims":{"regions":["us"]}}"#)), "\"canary\"");
    assert_eq!(europe.asked(), 1);
}
