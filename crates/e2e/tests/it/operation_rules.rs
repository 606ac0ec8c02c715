//! Operations that are refused by what they are (`limits.operation_rules`).

use serde_json::json;

use crate::{
    graph::Graph,
    http_client::{JSON, post, post_with, send},
    telemetry::{scrape, value},
};

const ADD: &str =
    "mutation Add { addReview(review: { product: \"HP-101\", stars: 1, title: \"t\" }) { title } }";
const CLAIMS: &str = "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n";

fn graph(rules: &str) -> Graph {
    Graph::with(&format!(
        "supergraph: {{ introspection: true }}\nlimits: {{ operation_rules: [{rules}] }}\n{CLAIMS}"
    ))
}

fn is_refused(graph: &Graph, query: &str, headers: &[(&str, &str)]) -> bool {
    let answer = post_with(graph.address(), query, headers);
    match answer.codes().as_slice() {
        [] => false,
        [code] if code == "OPERATION_REFUSED" => {
            assert_eq!(answer.json().get("data"), None);
            true
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn operations_are_refused_by_what_they_are() {
    let all = [
        ("mutations", ADD, "query Q { me { name } }"),
        ("anonymous", "{ me { name } }", "query Q { me { name } }"),
        (
            "literals",
            "{ topProducts(first: 2) { name } }",
            "{ topProducts { name } }",
        ),
        (
            "literals",
            "query Q($i: ID!) { a: account(id: $i) { id } b: account(id: \"1\") { id } }",
            "{ me { name } }",
        ),
        (
            "literals",
            "query Q($n: Int = 2) { topProducts(first: $n) { name } }",
            "query Q($n: Int) { topProducts(first: $n) { name } }",
        ),
        (
            "introspection",
            "{ me { name } __type(name: \"Person\") { name } }",
            "{ me { __typename } }",
        ),
    ];
    for (refuse, refused, fine) in all {
        let graph = graph(&format!("{{ refuse: {refuse} }}"));
        if !refused.contains("$i") {
            assert!(is_refused(&graph, refused, &[]), "{refuse}");
        }
        assert!(!is_refused(&graph, fine, &[]), "{refuse}");
    }
    let literals = graph("{ refuse: literals }");
    let body = json!({ "query": "query Q($n: Int) { topProducts(first: $n) { name } }", "variables": { "n": 1 } });
    let answer = send(
        literals.address(),
        "POST",
        "/graphql",
        &[JSON],
        body.to_string().as_bytes(),
    );
    assert_eq!(answer.codes(), [""; 0]);
    let yes =
        "query Q($i: Int) { topProducts(first: $i) { name } products(category: TOOLS) { name } }";
    assert_eq!(
        post(literals.address(), yes)
            .codes()
            .iter()
            .filter(|c| *c == "OPERATION_REFUSED")
            .count(),
        0
    );
}

#[test]
fn a_listed_document_is_refused_however_it_is_written() {
    let listed = "query Heavy { topProducts(first: 100) { name reviews { title } } }";
    let rule = format!("{{ refuse: documents, documents: ['{listed}'], message: 'ask for less' }}");
    let graph = graph(&rule);
    for same in [
        listed,
        "{topProducts(first:100){name,reviews{title}}}",
        "query Other { topProducts(first: 5) { ...f } } fragment f on Product { name reviews { title } }",
    ] {
        assert!(is_refused(&graph, same, &[]), "{same}");
    }
    let answer = post(graph.address(), listed);
    assert_eq!(answer.json()["errors"][0]["message"], "ask for less");
    assert!(!is_refused(
        &graph,
        "{ topProducts(first: 5) { name } }",
        &[]
    ));
}

#[test]
fn conditions_say_for_whom() {
    let editor = [(
        "x-claims",
        r#"{"claims":{"role":"editor","groups":["a","b"]}}"#,
    )];
    let shop = [("graphql-client-name", "shop")];
    let debug = [("x-debug", "1")];
    for (condition, who, is_met) in [
        ("{ eq: [{ jwt_claim: role }, editor] }", &editor[..], true),
        ("{ contains: [{ jwt_claim: groups }, b] }", &editor, true),
        ("{ eq: [{ jwt_claim: role }, editor] }", &[], false),
        ("{ eq: [{ client_name: true }, shop] }", &shop, true),
        ("{ eq: [{ client_name: true }, shop] }", &debug, false),
        ("{ exists: { request_header: X-Debug } }", &debug, true),
        ("{ exists: { request_header: x-debug } }", &shop, false),
        (
            "{ contains: ['10.0.0.0/8 127.0.0.0/8', { client_address: true }] }",
            &[],
            true,
        ),
        (
            "{ contains: ['10.0.0.0/8', { client_address: true }] }",
            &[],
            false,
        ),
        ("{ eq: [{ operation_name: true }, Add] }", &[], true),
        (
            "{ all: [{ eq: [{ operation_kind: true }, mutation] }, { not: { exists: { client_version: true } } }] }",
            &[],
            true,
        ),
    ] {
        let unless = graph(&format!("{{ refuse: mutations, unless: {condition} }}"));
        assert_eq!(is_refused(&unless, ADD, who), !is_met, "unless {condition}");
        let when = graph(&format!("{{ refuse: mutations, when: {condition} }}"));
        assert_eq!(is_refused(&when, ADD, who), is_met, "when {condition}");
    }
}

#[test]
fn a_rule_may_only_warn() {
    let graph = Graph::with(
        "limits: { operation_rules: [{ refuse: anonymous, warn_only: true }] }\n\
         telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }\n",
    );
    assert_eq!(post(graph.address(), "{ me { name } }").codes(), [""; 0]);
    assert_eq!(
        post(graph.address(), "query Me { me { name } }").codes(),
        [""; 0]
    );
    let text = scrape(&graph);
    let exceeded = "ogive_limits_exceeded_total{graphql_error_code=\"OPERATION_REFUSED\"}";
    assert_eq!(value(&text, exceeded), 1.0, "{text}");
}
