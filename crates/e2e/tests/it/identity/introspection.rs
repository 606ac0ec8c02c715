//! What introspection shows to whom, and who may ask for it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    authorization::RESTRICTED,
    graph::Graph,
    http_client::{Answer, post_with, send},
};

const CLAIMS: &str = "claims: { header: x-claims, trusted: [127.0.0.1] }";

fn graph(more: &str) -> Graph {
    let yaml = format!(
        "supergraph: {{ introspection: true }}\nauthorization: {{ directives: enforce, {CLAIMS}, {more} }}\n\
         traffic_shaping: {{ router: {{ deduplicate_query: true }} }}\n\
         query_planning: {{ expose: {{ enabled: true }} }}\n"
    );
    Graph::changed(&yaml, RESTRICTED)
}

fn ask(graph: &Graph, query: &str, claims: Option<&str>) -> Answer {
    let claims = claims.map(|claims| ("x-claims", claims));
    post_with(graph.address(), query, claims.as_slice())
}

/// Names of types and `Type.field`s, all of which lead to types that are there, too.
fn shown(answer: &Answer) -> BTreeSet<String> {
    assert_eq!(answer.codes(), [""; 0]);
    let json = answer.json();
    let types = json["data"]["__schema"]["types"]
        .as_array()
        .unwrap()
        .clone();
    let mut out = BTreeSet::new();
    for ty in &types {
        let name = ty["name"].as_str().unwrap();
        out.insert(name.to_owned());
        for field in ty["fields"].as_array().into_iter().flatten() {
            out.insert(format!("{name}.{}", field["name"].as_str().unwrap()));
        }
    }
    let mut named = Vec::new();
    for ty in &types {
        let list = |key: &str| ty[key].as_array().cloned().unwrap_or_default();
        named.extend(list("possibleTypes"));
        named.extend(list("interfaces"));
        for field in list("fields") {
            named.push(field["type"].clone());
            let args = field["args"].as_array().cloned().unwrap_or_default();
            named.extend(args.iter().map(|arg| arg["type"].clone()));
        }
    }
    for ty in &named {
        let mut ty = ty;
        while !ty["ofType"].is_null() {
            ty = &ty["ofType"];
        }
        assert!(out.contains(ty["name"].as_str().unwrap()), "{ty}");
    }
    out
}

const EVERYTHING: &str = "{ __schema { queryType { name } types { name possibleTypes { name } interfaces { name } \
    fields { name args { type { name ofType { name ofType { name ofType { name } } } } } \
    type { name ofType { name ofType { name ofType { name } } } } } } } }";

#[test]
fn introspection_shows_callers_what_they_may_see() {
    let graph = graph("introspection: authorized");
    let everything = r#"{"scopes":["admin","people","scales","write"],"policies":["stock"]}"#;
    let of = |claims: Option<&str>| {
        let answer = ask(&graph, EVERYTHING, claims);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        shown(&answer)
    };
    let (all, nobody) = (of(Some(everything)), of(None));
    let kept: Vec<&String> = all.difference(&nobody).collect();
    assert!(nobody.is_subset(&all));
    for name in [
        "Maker",
        "Person.city",
        "Product.warehouse",
        "Product.maker",
        "Mutation.addReview",
    ] {
        assert!(kept.iter().any(|kept| *kept == name), "{name}: {kept:?}");
    }
    assert!(nobody.contains("Person.name") && nobody.contains("Query.topProducts"));
    // Whoever is known sees what is for known callers, and the rest as they may.
    let known = of(Some(r#"{"scopes":["people"]}"#));
    assert!(known.contains("Maker") && known.contains("Person.city"));
    assert!(!known.contains("Product.warehouse"));
    assert_eq!(of(None), nobody, "as before");
    let of_type = |claims| {
        let answer = ask(&graph, "{ __type(name: \"Maker\") { name } }", claims);
        answer.json()["data"]["__type"]["name"].clone()
    };
    assert_eq!(of_type(None), Value::Null);
    assert_eq!(of_type(Some("{}")), "Maker");
    // Nor do messages tell names.
    let message = ask(&graph, "{ me { cit } }", None).text();
    assert!(!message.contains("city"), "{message}");
    let state = graph.served.gateway.state();
    assert!(state.plans.len() <= 2, "one plan for all");
}

#[test]
fn what_only_hidden_fields_lead_to_is_hidden_with_them() {
    let root = "  warehouses: [Warehouse!]! @join__field(graph: INVENTORY)";
    let hidden = format!("{root} @policy(policies: [[\"stock\"]])");
    let yaml = format!(
        "supergraph: {{ introspection: true }}\nauthorization: {{ directives: enforce, {CLAIMS}, introspection: authorized }}\n"
    );
    let changes = [RESTRICTED, &[(root, hidden.as_str())]].concat();
    let graph = Graph::changed(&yaml, &changes);
    let of = |claims| shown(&ask(&graph, EVERYTHING, claims));
    assert!(!of(None).contains("Warehouse"));
    assert!(of(Some(r#"{"policies":["stock"]}"#)).contains("Warehouse.city"));
    // What several ways lead to stays while there is one of them.
    assert!(of(None).contains("Money") && of(None).contains("Date"));
}

#[test]
fn where_only_proxies_say_who_asks_no_client_is_asked_for_a_token() {
    let graph = graph("require_authentication: true");
    let refused = ask(&graph, "{ me { name } }", None);
    assert_eq!(
        (refused.status, refused.codes()),
        (401, vec!["UNAUTHENTICATED".to_owned()])
    );
    let challenge = refused.header("www-authenticate");
    assert_eq!(challenge, Some("TrustedProxy realm=\"graphql\""));
    let message = refused.json()["errors"][0]["message"].to_string();
    assert!(!message.contains("token"), "{message}");
}

#[test]
fn introspection_shows_everything_unless_asked_otherwise() {
    for more in [
        "introspection: all",
        "introspection: authorized, dry_run: true",
    ] {
        let graph = graph(more);
        let all = shown(&ask(&graph, EVERYTHING, None));
        assert!(
            all.contains("Maker") && all.contains("Person.city"),
            "{more}"
        );
    }
}

#[test]
fn callers_of_one_time_never_see_the_view_of_another() {
    let graph = graph("introspection: authorized");
    let claims = [None, Some("{}"), Some(r#"{"scopes":["people"]}"#)];
    let expected = claims.map(|claims| ask(&graph, EVERYTHING, claims).text());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (graph, expected) = (&graph, &expected);
            scope.spawn(move || {
                for at in 0..20 {
                    let which = (thread + at) % 3;
                    let answer = ask(graph, EVERYTHING, claims[which]);
                    assert_eq!(answer.text(), expected[which]);
                }
            });
        }
    });
}

#[test]
fn introspection_and_graphiql_may_need_a_caller_on_their_own() {
    let graph = graph("require_authentication_for: [introspection, graphiql]");
    let introspection = "{ __schema { queryType { name } } }";
    for query in [
        introspection,
        "{ me { name } __type(name: \"Person\") { name } }",
    ] {
        let refused = ask(&graph, query, None);
        assert_eq!(
            (refused.status, refused.codes()),
            (401, vec!["UNAUTHENTICATED".to_owned()])
        );
    }
    // Nor is it planned for anybody.
    let body = serde_json::json!({ "query": introspection }).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("apollo-expose-query-plan", "dry-run"),
    ];
    let planned = send(
        graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    );
    assert_eq!(planned.status, 401, "{}", planned.text());
    let known = [headers[0], headers[1], ("x-claims", "{}")];
    let planned = send(graph.address(), "POST", "/graphql", &known, body.as_bytes());
    assert!(
        planned.text().contains("apolloQueryPlan"),
        "{}",
        planned.text()
    );
    assert_eq!(ask(&graph, "{ me { __typename } }", None).codes(), [""; 0]);
    let answer = ask(&graph, introspection, Some("{}"));
    assert_eq!(answer.codes(), [""; 0]);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let page = |path: &str, claims: &[(&str, &str)]| {
        let headers: Vec<_> = [("accept", "text/html")]
            .iter()
            .chain(claims)
            .copied()
            .collect();
        send(graph.address(), "GET", path, &headers, b"").status
    };
    for path in ["/", "/graphql", "/__ogive/graphiql"] {
        assert_eq!(page(path, &[]), 401, "{path}");
        assert_eq!(
            page(path, &[("x-claims", "{\"authenticated\":false}")]),
            401,
            "{path}"
        );
        assert_eq!(page(path, &[("x-claims", "{}")]), 200, "{path}");
    }
    assert_eq!(page("/health", &[]), 200);
}
