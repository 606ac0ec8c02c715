//! `@authenticated`, `@requiresScopes` and `@policy` on real sockets: one plan, many callers.

use std::{io::Write, net::TcpStream};

use serde_json::{Value, json};

use crate::{
    endings::leave,
    graph::Graph,
    http_client::{Answer, connect, post_with, request, send},
};

/// Restrictions of the demo graph.
pub(crate) const RESTRICTED: &[(&str, &str)] = &[
    (
        "  @link(url: \"https://specs.apollo.dev/join/v0.3\", for: EXECUTION)",
        "  @link(url: \"https://specs.apollo.dev/join/v0.3\", for: EXECUTION)\n\
         @link(url: \"https://specs.apollo.dev/authenticated/v0.1\", for: SECURITY)\n\
         @link(url: \"https://specs.apollo.dev/requiresScopes/v0.1\", for: SECURITY)\n\
         @link(url: \"https://specs.apollo.dev/policy/v0.1\", for: SECURITY)",
    ),
    (
        "directive @link(",
        "directive @authenticated on FIELD_DEFINITION | OBJECT\n\
         directive @requiresScopes(scopes: [[String!]!]!) on FIELD_DEFINITION | OBJECT\n\
         directive @policy(policies: [[String!]!]!) on FIELD_DEFINITION | OBJECT\n\
         directive @link(",
    ),
    (
        "  city: String @join__field(graph: ACCOUNTS)",
        "  city: String @join__field(graph: ACCOUNTS) @requiresScopes(scopes: [[\"people\"], [\"admin\"]])",
    ),
    (
        "  warehouse: Warehouse @join__field(graph: INVENTORY)",
        "  warehouse: Warehouse @join__field(graph: INVENTORY) @policy(policies: [[\"stock\"]])",
    ),
    (
        "  weightGrams: Int! @",
        "  weightGrams: Int! @requiresScopes(scopes: [[\"scales\"]]) @",
    ),
    (
        "  reviews: [Review!]! @join__field(graph: REVIEWS)",
        "  reviews: [Review!]! @join__field(graph: REVIEWS) @authenticated",
    ),
    ("type Maker\n", "type Maker @authenticated\n"),
    (
        "  addReview(review: NewReview!): Review!",
        "  addReview(review: NewReview!): Review @requiresScopes(scopes: [[\"write\"]])",
    ),
];
/// The peer on the loopback interface is trusted.
pub(crate) const ENFORCE: &str =
    "authorization: { directives: enforce, claims: { header: x-claims, trusted: [127.0.0.1] } }\n";

fn ask(graph: &Graph, query: &str, claims: Option<&str>) -> Answer {
    let claims = claims.map(|claims| ("x-claims", claims));
    post_with(graph.address(), query, claims.as_slice())
}

/// Paths of the errors, all of which must say that something may not be seen.
fn refused(answer: &Answer) -> Vec<Value> {
    let body = answer.json();
    let errors = body["errors"].as_array().cloned().unwrap_or_default();
    let path = |error: &Value| {
        assert_eq!(error["extensions"]["code"], "UNAUTHORIZED_FIELD_OR_TYPE");
        error["path"].clone()
    };
    errors.iter().map(path).collect()
}

fn asked(graph: &Graph, subgraph: &str) -> u64 {
    graph.service.counts(subgraph).unwrap().requests
}

#[test]
fn callers_see_what_they_may() {
    let graph = Graph::changed(ENFORCE, RESTRICTED);
    let query = "{ me { name city } topProducts(first: 1) { name warehouse { city } } }";
    let everything = r#"{"scopes":["admin"],"policies":["stock"]}"#;
    let nobody = ask(&graph, query, None);
    assert_eq!(nobody.status, 200);
    // No cache gives it to somebody else, though no subgraph says anything of caches.
    assert_eq!(nobody.header("cache-control"), Some("no-store"));
    let data = &nobody.json()["data"];
    assert_eq!(data["me"]["city"], Value::Null);
    assert!(data["me"]["name"].is_string() && data["topProducts"][0]["name"].is_string());
    assert_eq!(data["topProducts"][0]["warehouse"], Value::Null);
    assert_eq!(
        refused(&nobody),
        [
            json!(["me", "city"]),
            json!(["topProducts", 0, "warehouse"])
        ]
    );
    assert_eq!(asked(&graph, "inventory"), 0, "nobody may see what it says");

    let all = ask(&graph, query, Some(everything));
    assert_eq!(refused(&all), [] as [Value; 0]);
    assert_eq!(all.header("cache-control"), Some("no-store"));
    let data = &all.json()["data"];
    assert!(data["me"]["city"].is_string());
    assert!(data["topProducts"][0]["warehouse"]["city"].is_string());
    assert_eq!(asked(&graph, "inventory"), 1);

    let some = ask(&graph, query, Some(r#"{"scopes":["people","write"]}"#));
    assert_eq!(some.json()["data"]["me"], data["me"]);
    assert_eq!(
        refused(&some),
        [json!(["topProducts", 0, "warehouse"])],
        "policies are no scopes"
    );
    let nobody_again = ask(&graph, query, None);
    assert_eq!(nobody_again.text(), nobody.text());
    assert_eq!(asked(&graph, "inventory"), 1);
    assert_eq!(
        graph.served.gateway.state().plans.len(),
        1,
        "one plan for all"
    );
    let unrestricted = ask(&graph, "{ me { name } }", None);
    assert_eq!(unrestricted.header("cache-control"), None);
}

#[test]
fn what_others_require_is_fetched_and_not_shown() {
    let graph = Graph::changed(ENFORCE, RESTRICTED);
    let query = "{ topProducts(first: 2) { weightGrams shippingCost { amount } } }";
    let scales = ask(&graph, query, Some(r#"{"scopes":["scales"]}"#));
    assert_eq!(refused(&scales), [] as [Value; 0]);
    let nobody = ask(&graph, query, None);
    // No product can be shown without its weight, nor the list without its products.
    assert_eq!(nobody.json()["data"], Value::Null);
    assert_eq!(refused(&nobody), [json!(["topProducts", 0, "weightGrams"])]);
    // The costs are computed from the weights for everybody.
    let query = "{ topProducts(first: 2) { shippingCost { amount } } }";
    let nobody = ask(&graph, query, None);
    assert_eq!(refused(&nobody), [] as [Value; 0]);
    let costs = |answer: &Answer, at: usize| {
        answer.json()["data"]["topProducts"][at]["shippingCost"].clone()
    };
    assert_eq!(costs(&nobody, 0), costs(&scales, 0));
    assert_eq!(costs(&nobody, 1), costs(&scales, 1));
}

#[test]
fn objects_of_restricted_types_are_null() {
    let yaml = format!("supergraph: {{ introspection: true }}\n{ENFORCE}");
    let graph = Graph::changed(&yaml, RESTRICTED);
    // Makers stand beside products in a non-null position; what is left of the list is nothing.
    let query = "{ promotions { headline subject { __typename } } }";
    let known = ask(&graph, query, Some("{}"));
    assert_eq!(refused(&known), [] as [Value; 0]);
    let subjects = known.json()["data"]["promotions"].clone();
    let is_maker = |promotion: &Value| promotion["subject"]["__typename"] == "Maker";
    let at = subjects.as_array().unwrap().iter().position(is_maker);
    let nobody = ask(&graph, query, None);
    assert_eq!(nobody.json()["data"], Value::Null);
    assert_eq!(
        refused(&nobody),
        [json!(["promotions", at.expect("a maker"), "subject"])]
    );
    // As the declared type of a field: the field is not asked for.
    let nobody = ask(&graph, "{ topProducts(first: 1) { maker { name } } }", None);
    assert_eq!(
        nobody.json()["data"],
        json!({ "topProducts": [{ "maker": null }] })
    );
    assert_eq!(refused(&nobody), [json!(["topProducts", 0, "maker"])]);
    // Introspection is for everybody.
    let nobody = ask(
        &graph,
        "{ __type(name: \"Maker\") { fields { name } } }",
        None,
    );
    assert!(nobody.json()["data"]["__type"]["fields"][0]["name"].is_string());
}

#[test]
fn mutations_that_are_not_allowed_do_not_happen() {
    let graph = Graph::changed(ENFORCE, RESTRICTED);
    let mutation =
        "mutation { addReview(review: { product: \"1\", stars: 1, title: \"t\" }) { title } }";
    let nobody = ask(&graph, mutation, None);
    assert_eq!(nobody.json()["data"], json!({ "addReview": null }));
    assert_eq!(refused(&nobody), [json!(["addReview"])]);
    assert_eq!(asked(&graph, "reviews"), 0);
    ask(&graph, mutation, Some(r#"{"scopes":["write"]}"#));
    assert_eq!(asked(&graph, "reviews"), 1);
}

#[test]
fn claims_go_no_further_than_the_gateway() {
    let everything = "headers: { all: { request: [{ propagate: { matching: '.*' } }] } }\n";
    let query = "{ me { city } }";
    let everywhere = r#"{"scopes":["people"]}"#;
    for (trusted, n_refused) in [("127.0.0.0/8", 0), ("10.0.0.0/8", 1)] {
        let yaml = format!("{everything}{}", ENFORCE.replace("127.0.0.1", trusted));
        let graph = Graph::changed(&yaml, RESTRICTED);
        graph.service.configure("accounts", |s| s.record = true);
        ask(&graph, "{ me { name } }", Some(everywhere));
        let recorded = graph.service.recorded();
        assert!(
            recorded[0]
                .headers
                .iter()
                .all(|(name, _)| name != "x-claims")
        );
        let answer = ask(&graph, query, Some(everywhere));
        assert_eq!(refused(&answer).len(), n_refused);
    }
    // What a trusted peer says must make sense, and be said once.
    let graph = Graph::changed(ENFORCE, RESTRICTED);
    let answer = ask(&graph, query, Some("nonsense"));
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["INVALID_CLAIMS".to_owned()])
    );
    let headers = [
        ("content-type", "application/json"),
        ("x-claims", everywhere),
        ("x-claims", "{}"),
    ];
    let body = br#"{"query":"{ me { city } }"}"#;
    let answer = send(graph.address(), "POST", "/graphql", &headers, body);
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["INVALID_CLAIMS".to_owned()])
    );
    assert_eq!(graph.service.total().requests, 0);
}

/// A client that resets its connection before anybody looks at it has an address as before: it is no peer at a unix socket.
#[test]
fn whoever_leaves_at_once_is_nobody_else() {
    let trusting = ENFORCE.replace("127.0.0.1", "unix");
    let graph = Graph::changed(&format!("http: {{ workers: 1 }}\n{trusting}"), RESTRICTED);
    let query = r#"mutation { addReview(review: {product: \"HP-204\", stars: 5, title: \"New\"}) { stars } }"#;
    let headers = [
        ("content-type", "application/json"),
        ("x-claims", r#"{"scopes":["write"]}"#),
    ];
    let body = format!(r#"{{"query":"{query}"}}"#);
    let forged = request("POST", "/graphql", &headers, body.as_bytes());
    // One byte more, so that nobody reads, and notices the reset.
    let forged = [&forged[..], b"x"].concat();
    for _ in 0..20 {
        let burst: Vec<TcpStream> = (0..20).map(|_| connect(graph.address())).collect();
        for mut stream in burst {
            stream.write_all(&forged).unwrap();
            leave(stream, true);
        }
        assert_eq!(
            send(graph.address(), "GET", "/health", &[], b"").status,
            200
        );
    }
    assert_eq!(graph.service.total().requests, 0, "forged mutations of 400");
    // The same client, believed where it is trusted.
    let graph = Graph::changed(ENFORCE, RESTRICTED);
    let answer = send(
        graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    );
    assert_eq!(answer.codes(), [""; 0]);
    assert_eq!(asked(&graph, "reviews"), 1);
}

#[test]
fn operations_may_be_refused_as_a_whole_or_only_noted() {
    let with = |option: &str| ENFORCE.replace("enforce,", &format!("enforce, {option}: true,"));
    let query = "query($all: Boolean!) { me { name city reviews @include(if: $all) { stars } } }";
    let body = |all: bool| json!({ "query": query, "variables": { "all": all } }).to_string();
    let ask = |graph: &Graph, claims, all| {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/graphql-response+json"),
            ("x-claims", claims),
        ];
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body(all).as_bytes(),
        )
    };
    let strict = Graph::changed(&with("reject_unauthorized"), RESTRICTED);
    let anonymous = r#"{"authenticated":false}"#;
    let answer = ask(&strict, anonymous, true);
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.json()["errors"][0]["message"],
        "Unauthorized field or type: me.city, me.reviews"
    );
    let answer = ask(&strict, anonymous, false);
    assert_eq!(
        answer.json()["errors"][0]["message"],
        "Unauthorized field or type: me.city"
    );
    assert_eq!(strict.service.total().requests, 0);
    let answer = ask(&strict, r#"{"scopes":["people"]}"#, true);
    assert_eq!((answer.status, answer.codes()), (200, Vec::new()));

    let dry = Graph::changed(&with("dry_run"), RESTRICTED);
    let answer = ask(&dry, anonymous, true);
    assert_eq!((answer.status, answer.codes()), (200, Vec::new()));
    assert!(answer.json()["data"]["me"]["city"].is_string());
}

/// Callers of whom nothing is known are told apart by their address, not counted together with those who are known.
#[test]
fn rates_are_kept_per_claim() {
    let graph = Graph::with(
        "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n\
         http: { trusted_proxies: [127.0.0.1] }\n\
         traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, key: claim, claim: tenant } } }",
    );
    let ask = |claims: &str, client: &str| {
        let mut headers = vec![("x-forwarded-for", client)];
        headers.extend((!claims.is_empty()).then_some(("x-claims", claims)));
        post_with(graph.address(), "{ __typename }", &headers).status
    };
    let acme = r#"{"claims":{"tenant":"acme","sub":"ida"}}"#;
    assert_eq!(ask(acme, "10.0.0.1"), 200);
    let again = r#"{"claims":{"tenant":"acme","sub":"zoe"},"scopes":["a"]}"#;
    assert_eq!(ask(again, "10.0.0.2"), 429, "wherever it comes from");
    assert_eq!(ask(r#"{"claims":{"tenant":7}}"#, "10.0.0.1"), 200);
    assert_eq!(ask(r#"{"claims":{"tenant":7}}"#, "10.0.0.1"), 429);
    for nobody in [
        "",
        r#"{"claims":{"sub":"ida"}}"#,
        r#"{"claims":{"tenant":null}}"#,
        r#"{"authenticated":false,"claims":{"tenant":"acme"}}"#,
    ] {
        let client = format!("10.1.0.{}", nobody.len());
        assert_eq!((ask(nobody, &client), ask(nobody, &client)), (200, 429));
    }
    assert_eq!(ask(r#"{"claims":["acme"]}"#, "10.2.0.1"), 400);
}
