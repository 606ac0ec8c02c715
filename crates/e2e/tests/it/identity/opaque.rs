//! Tokens that only their issuer can read.

use ogive_testbase::subgraph::{ManualSubgraph, Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use super::{
    ISSUER, claims,
    made::{Folder, Made, jwks},
    services::{FAULTS, Fault},
};
use crate::{
    authorization::RESTRICTED,
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with},
};

const QUERY: &str = "{ me { city } }";
const ENFORCE: &str = "authorization: { directives: enforce, require_authentication: true }\n";

fn gateway(url: &str, more: &str, besides: &str) -> Graph {
    // An issuer of a test may have to wait for its turn.
    let patient = if more.contains("request_timeout") {
        ""
    } else {
        ", request_timeout: 60s"
    };
    let introspection = format!(
        "introspection: {{ endpoint: '{url}', client_id: gw, client_secret: s3c{more}{patient} }}"
    );
    let yaml = format!("authentication: {{ router: {{ {introspection}{besides} }} }}\n{ENFORCE}");
    Graph::changed(&yaml, RESTRICTED)
}

fn bear(graph: &Graph, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    post_with(graph.address(), QUERY, &[("authorization", &bearer)])
}

/// An issuer that knows tokens by name.
fn issuer() -> StubSubgraph {
    StubSubgraph::start(|_, request| {
        let now = ogive_identity::key_source::now();
        let token = request.split("token=").nth(1).unwrap();
        let said = match token.split('&').next().unwrap() {
            "good" => {
                json!({ "active": true, "sub": "ida", "scope": "people", "aud": "us", "exp": now + 600 })
            }
            "other" => json!({ "active": true, "scope": "x", "aud": ["us", "them"] }),
            "theirs" => json!({ "active": true, "scope": "people", "aud": "them" }),
            "old" => json!({ "active": true, "scope": "people", "aud": "us", "exp": now - 60 }),
            "refresh" => json!({ "active": true, "aud": "us", "token_use": "refresh_token" }),
            _ => json!({ "active": false }),
        };
        Reply::Whole(answer(200, "", said.to_string().as_bytes()))
    })
}

#[test]
fn the_issuer_is_asked_and_what_it_says_is_remembered() {
    let issuer = issuer();
    let more = ", audiences: [us], cache_ttl: 1h, inactive_cache_ttl: 1h, headers: [{ name: x-key, value: k }]";
    let graph = gateway(&issuer.url(), more, "");
    for _ in 0..2 {
        assert_eq!(bear(&graph, "good").codes(), [""; 0]);
        assert_eq!(
            bear(&graph, "other").codes(),
            ["UNAUTHORIZED_FIELD_OR_TYPE"]
        );
        for (token, code) in [
            ("bad", "INVALID_TOKEN"),
            ("refresh", "INVALID_TOKEN"),
            ("theirs", "WRONG_AUDIENCE"),
            ("old", "TOKEN_EXPIRED"),
        ] {
            let refused = bear(&graph, token);
            assert_eq!(
                (refused.status, refused.codes()),
                (401, vec![code.to_owned()])
            );
            let challenge = refused.header("www-authenticate").unwrap();
            assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        }
    }
    assert_eq!(issuer.asked(), 6, "each token once");
    let asked = &issuer.requests()[0];
    // RFC 6749, section 2.3.1: `gw:s3c`.
    assert!(asked.contains("authorization: Basic Z3c6czNj") && asked.contains("x-key: k"));
    assert!(
        asked.ends_with("token=good&token_type_hint=access_token"),
        "{asked}"
    );
    // What no token can be is nobody's question.
    for token in ["a b", "\"good\"", "good,good", &"x".repeat(20_000)] {
        assert_eq!(bear(&graph, token).codes(), ["INVALID_TOKEN"]);
    }
    assert_eq!(issuer.asked(), 6);
    assert_eq!(post_with(graph.address(), QUERY, &[]).status, 401);
}

#[test]
fn how_long_answers_are_believed_is_configured_and_the_client_may_be_in_the_body() {
    let issuer = issuer();
    let more =
        ", cache_ttl: 0s, inactive_cache_ttl: 0s, cache_memory: 1MiB, client_authentication: post";
    let graph = gateway(&issuer.url(), more, "");
    for _ in 0..2 {
        assert_eq!(bear(&graph, "good").codes(), [""; 0]);
        assert_eq!(bear(&graph, "bad").codes(), ["INVALID_TOKEN"]);
    }
    assert_eq!(issuer.asked(), 4);
    let asked = &issuer.requests()[0];
    assert!(
        asked.ends_with("&client_id=gw&client_secret=s3c"),
        "{asked}"
    );
    assert!(!asked.contains("authorization:"));
}

#[test]
fn json_web_tokens_are_for_key_sets_if_there_are_any() {
    let (folder, key, issuer) = (Folder::new(), Made::new("1"), issuer());
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let jwt = format!(
        ", jwt: {{ jwks: [{{ url: 'file://{}', issuers: ['{ISSUER}'], audiences: [us] }}] }}",
        path.display()
    );
    let graph = gateway(&issuer.url(), "", &jwt);
    let token = key.token(&claims(json!({ "scope": "people" })));
    assert_eq!(bear(&graph, &token).codes(), [""; 0]);
    assert_eq!(
        bear(&graph, &Made::new("2").token(&claims(json!({})))).codes(),
        ["INVALID_TOKEN"]
    );
    assert_eq!(issuer.asked(), 0);
    assert_eq!(bear(&graph, "good").codes(), [""; 0]);
    assert_eq!(issuer.asked(), 1);
    // Without key sets its issuer may know it.
    let graph = gateway(&issuer.url(), "", "");
    assert_eq!(bear(&graph, &token).codes(), ["INVALID_TOKEN"]);
    assert_eq!(issuer.asked(), 2);
}

#[test]
fn who_comes_with_one_token_at_one_time_waits_for_one_request() {
    let issuer = ManualSubgraph::start();
    let graph = gateway(
        &issuer.url(),
        ", max_in_flight: 1, request_timeout: 20s",
        "",
    );
    std::thread::scope(|scope| {
        let graph = &graph;
        let ask = |token: &'static str| scope.spawn(move || bear(graph, token).codes());
        let asking = [ask("a"), ask("a"), ask("b"), ask("a")];
        for _ in 0..2 {
            let mut asked = issuer.next();
            let good = asked.request.contains("token=a&");
            let said: Value = json!({ "active": good, "scope": "people" });
            asked.answer(200, "connection: close\r\n", said.to_string());
        }
        let codes = asking.map(|one| one.join().unwrap());
        assert_eq!(codes[2], ["INVALID_TOKEN"]);
        assert!(
            [0, 1, 3].iter().all(|at| codes[*at].is_empty()),
            "{codes:?}"
        );
    });
}

/// What a client is answered with a token that was not asked about before.
pub(crate) const UNKNOWN: &str = "503 AUTHENTICATION_UNAVAILABLE";

#[test]
fn faults_of_issuers_that_are_asked() {
    // All at a time: some take the whole time-out, and that leaves a good answer the time that a busy machine needs.
    let all: Vec<_> = std::thread::scope(|scope| {
        let faults: Vec<_> = FAULTS
            .iter()
            .map(|fault| scope.spawn(move || seen_with(fault)))
            .collect();
        let faults = faults.into_iter();
        faults.flat_map(|fault| fault.join().unwrap()).collect()
    });
    compare(&all);
}

/// What clients are answered while the issuer has a fault, and what is expected.
fn seen_with(fault: &'static Fault) -> Vec<(&'static str, String, &'static str)> {
    let good = answer(
        200,
        "connection: close\r\n",
        br#"{"active":true,"scope":"people"}"#,
    );
    let has_before = !fault.is_of_url();
    let (_issuer, url) = fault.start_after(has_before.then_some(good));
    let graph = gateway(&url, ", cache_ttl: 1h, request_timeout: 10s", "");
    if has_before {
        assert_eq!(bear(&graph, "known").codes(), [""; 0], "{}", fault.fault);
    }
    let unknown = bear(&graph, "unknown");
    assert_eq!(unknown.header("retry-after"), Some("1"), "{}", fault.fault);
    let mut all = vec![(fault.fault, seen(&unknown), UNKNOWN)];
    if has_before {
        all.push((fault.fault, seen(&bear(&graph, "known")), "200"));
    }
    all
}

#[test]
fn an_issuer_that_was_away_is_believed_as_soon_as_it_answers() {
    let issuer = StubSubgraph::in_turn(vec![
        Reply::Last(Vec::new()),
        Reply::Whole(answer(200, "", br#"{"active":true,"scope":"people"}"#)),
    ]);
    let graph = gateway(&issuer.url(), "", "");
    assert_eq!(seen(&bear(&graph, "t")), UNKNOWN);
    assert_eq!(seen(&bear(&graph, "t")), "200");
}

#[test]
fn it_is_explained_what_the_issuer_says() {
    let issuer = issuer();
    let yaml = format!(
        "authentication: {{ router: {{ introspection: {{ endpoint: '{}?key=s3c', client_id: a, client_secret: b, request_timeout: 60s }} }} }}\n",
        issuer.url()
    );
    let config = crate::graph::config(&yaml);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let explained = |token| {
        let explained = ogive_gateway::identify::explain_token::explain_token(&config, token);
        runtime.block_on(explained)
    };
    let (told, caller) = explained("good");
    assert!(
        told.contains(&format!("good, says {}; ends in ", issuer.url())),
        "{told}"
    );
    assert!(
        told.contains("scopes: people\n") && caller.is_some(),
        "{told}"
    );
    let (told, caller) = explained("bad");
    assert!(
        told.contains("(INVALID_TOKEN)") && caller.is_none(),
        "{told}"
    );
}
