//! Components that say who asks: before tokens and keys, and never by saying nothing.

use serde_json::{Value, json};

use super::{
    CLAIM_FAULTS, DECISION_FAULTS,
    guest::{Guest, component},
};
use crate::{
    authorization::RESTRICTED,
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with},
    identity::{
        ISSUER, claims,
        made::{Folder, Made, jwks},
    },
    telemetry::scrape,
};

const ME: &str = "{ me { name city } }";
/// Whoever the header `x-user` says.
const BY_HEADER: &str = "(call $by_header @\"x-user\" )";
const READS: &str = "permissions: { read_headers: [x-user] }";
const REQUIRED: &str = "authorization: { directives: enforce, require_authentication: true }\n";

/// A graph whose callers a component knows, and a key of tokens beside it.
struct Callers {
    graph: Graph,
    _guest: Guest,
    key: Made,
    _folder: Folder,
}

impl Callers {
    fn with(text: &str, options: &str, yaml: &str) -> Callers {
        let (guest, folder, key) = (
            Guest::new(&[("authenticate", text)]),
            Folder::new(),
            Made::new("1"),
        );
        let path = folder.write("jwks.json", &jwks(&[&key]));
        let yaml = format!(
            "{}authentication: {{ router: {{ components: [guest], jwt: {{ jwks: [{{ url: 'file://{}', \
             request_timeout: 60s, issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n{yaml}",
            guest.yaml(options),
            path.display()
        );
        Callers {
            graph: Graph::changed(&yaml, RESTRICTED),
            _guest: guest,
            key,
            _folder: folder,
        }
    }
    fn ask(&self, headers: &[(&str, &str)]) -> Answer {
        post_with(self.graph.address(), ME, headers)
    }
    fn token(&self, more: Value) -> String {
        format!("Bearer {}", self.key.token(&claims(more)))
    }
}

/// What an answer says of the field that needs a scope.
fn sees_city(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["data"]["me"]["city"].is_string()
}

#[test]
fn a_component_says_who_asks_and_what_it_does_not_know_others_judge() {
    let callers = Callers::with(BY_HEADER, READS, REQUIRED);
    let nobody = callers.ask(&[]);
    assert_eq!(
        (nobody.status, nobody.codes()),
        (401, vec!["UNAUTHENTICATED".into()])
    );
    assert!(sees_city(
        &callers.ask(&[("x-user", r#"{"sub":"ida","scope":"people"}"#)])
    ));
    assert!(!sees_city(&callers.ask(&[("x-user", r#"{"sub":"ida"}"#)])));
    let token = callers.token(json!({ "scope": "people" }));
    let token = ("authorization", token.as_str());
    assert!(
        sees_city(&callers.ask(&[token])),
        "a token counts where it knows nothing"
    );
    // What it says comes first, and a bad token beside it is not looked at.
    assert!(!sees_city(
        &callers.ask(&[token, ("x-user", r#"{"sub":"ida"}"#)])
    ));
    let bad = ("authorization", "Bearer x");
    assert_eq!(callers.ask(&[bad]).codes(), ["INVALID_TOKEN"]);
    assert!(!sees_city(
        &callers.ask(&[bad, ("x-user", r#"{"sub":"ida"}"#)])
    ));
}

#[test]
fn who_is_refused_is_told_a_code_and_only_the_operator_why() {
    let metrics = "telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }\n";
    let callers = Callers::with(BY_HEADER, READS, &format!("{metrics}{REQUIRED}"));
    let token = callers.token(json!({}));
    let refused = callers.ask(&[("x-user", "no"), ("authorization", &token)]);
    assert_eq!(
        (refused.status, refused.codes()),
        (401, vec!["CREDENTIALS_REFUSED".into()])
    );
    assert!(!refused.text().contains("secret reason"));
    assert_eq!(
        refused.header("www-authenticate"),
        Some("Bearer realm=\"graphql\"")
    );
    let page = scrape(&callers.graph);
    assert!(page.contains("CREDENTIALS_REFUSED"), "{page}");
    assert!(
        page.contains("component guest") && page.contains("authenticate"),
        "{page}"
    );
}

#[test]
fn claims_go_where_those_of_tokens_go() {
    let rules = "headers: { all: { request: [{ insert: { name: x-sub, from_context: 'apollo::authentication::jwt_claims', path: '.sub' } }] } }\n";
    let callers = Callers::with(BY_HEADER, READS, &format!("{rules}{REQUIRED}"));
    callers
        .graph
        .service
        .configure("accounts", |settings| settings.record = true);
    for sub in ["ida", "ben"] {
        let header = json!({ "sub": sub }).to_string();
        assert!(!sees_city(&callers.ask(&[("x-user", &header)])));
    }
    let recorded = callers.graph.service.recorded();
    let subs = recorded.iter().flat_map(|request| {
        let named = request.headers.iter().filter(|(name, _)| name == "x-sub");
        named.map(|(_, value)| value.clone())
    });
    assert_eq!(
        subs.collect::<Vec<_>>(),
        ["ida", "ben"],
        "they share no answer"
    );
}

/// Several callers, and that one of whom nothing is known is never one of them.
#[test]
fn whatever_a_component_does_that_says_who_asks_nobody_is_known_by_it() {
    let mut found = Vec::new();
    let faults = DECISION_FAULTS.map(|(fault, [text, expected, ..])| (fault, text, expected));
    for (fault, text, expected) in faults.into_iter().chain(CLAIM_FAULTS) {
        let callers = Callers::with(text, "", REQUIRED);
        found.push((fault, seen(&callers.ask(&[])), expected));
        let of_token = callers.token(json!({}));
        let with_token = callers.ask(&[("authorization", &of_token)]);
        found.push((fault, seen(&with_token), expected));
    }
    compare(&found);
}

#[test]
fn one_that_failed_and_may_counts_as_if_it_knew_nothing() {
    for (fault, [text, ..]) in DECISION_FAULTS {
        let callers = Callers::with(text, "on_error: continue", REQUIRED);
        assert_eq!(callers.ask(&[]).codes(), ["UNAUTHENTICATED"], "{fault}");
        let token = callers.token(json!({ "scope": "people" }));
        assert!(
            sees_city(&callers.ask(&[("authorization", &token)])),
            "{fault}"
        );
    }
}

#[test]
fn one_that_is_left_alone_lets_nobody_in() {
    let guest = Guest::new(&[("authenticate", "(unreachable)")]);
    let with = |on_error: &str| {
        format!(
            "plugins: [{{ name: guest, path: '{}', {on_error}ejection: {{ faults: 2, time: 1h }}, limits: {{ timeout: 60s }} }}]\n\
             authentication: {{ router: {{ components: [guest] }} }}\n{REQUIRED}",
            guest.path().display()
        )
    };
    let graph = Graph::with(&with(""));
    for _ in 0..4 {
        let answer = post_with(graph.address(), ME, &[]);
        assert_eq!(seen(&answer), "503 AUTHENTICATION_UNAVAILABLE");
        assert!(answer.header("retry-after").is_some());
    }
    let graph = Graph::with(&with("on_error: continue, "));
    for _ in 0..4 {
        let answer = post_with(graph.address(), ME, &[]);
        assert_eq!(seen(&answer), "401 UNAUTHENTICATED");
    }
}

#[test]
fn components_are_asked_in_their_order_and_another_file_counts_at_once() {
    let first = Guest::new(&[("authenticate", BY_HEADER)]);
    let claims = |sub: &str| format!("(call $claims @\"{{'sub':'{sub}','scope':'people'}}\" )");
    let second = Guest::new(&[("authenticate", &claims("anybody"))]);
    let yaml = format!(
        "plugins:\n  - {{ name: second, path: '{}', limits: {{ timeout: 60s }} }}\n  - {{ name: first, path: '{}', limits: {{ timeout: 60s }}, {READS} }}\n\
         authentication: {{ router: {{ components: [first, second] }} }}\n{REQUIRED}",
        second.path().display(),
        first.path().display()
    );
    let graph = Graph::changed(&yaml, RESTRICTED);
    let ask = |headers: &[(&str, &str)]| post_with(graph.address(), ME, headers);
    assert!(sees_city(&ask(&[])));
    assert!(!sees_city(&ask(&[("x-user", r#"{"sub":"ida"}"#)])));
    assert_eq!(ask(&[("x-user", "no")]).codes(), ["CREDENTIALS_REFUSED"]);
    second.write(&component(&[("authenticate", "(call $unknown)")]));
    assert_eq!(graph.reload(), Ok(()));
    assert_eq!(ask(&[]).codes(), ["UNAUTHENTICATED"]);
    second.write(&component(&[("rate-key", "(call $unknown)")]));
    assert!(
        graph
            .reload()
            .is_err_and(|why| why.contains("authenticate"))
    );
    assert_eq!(
        ask(&[]).codes(),
        ["UNAUTHENTICATED"],
        "what was served goes on"
    );
}
