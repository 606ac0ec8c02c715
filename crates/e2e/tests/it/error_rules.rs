//! What clients are told of errors by rules.

use ogive_testbase::subgraph::StubSubgraph;
use serde_json::{Value, json};

use crate::{
    graph::Graph,
    http_client::{post, send},
    incremental,
};

const GONE: &str = r#"{"data":{"me":null},"errors":[{"message":"no","path":["me"],"extensions":{"reason":{"a":[1]},"stack":"secret","code":"GONE"}}]}"#;

fn error(yaml: &str) -> Value {
    let accounts = StubSubgraph::answering(200, "", GONE);
    let url = accounts.url();
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{url}' }}\n{yaml}"
    ));
    let answer = post(graph.address(), "{ me { name } }").json();
    assert_eq!(answer["data"], json!({"me": null}));
    answer["errors"][0].clone()
}

const SHOWN: &str = "include_subgraph_errors: { all: true, extensions: ['*'] }\n";

#[test]
fn the_first_rule_that_fits_says_what_a_client_sees() {
    let shown = error(&format!(
        "{SHOWN}error_rules:\n  \
         - {{ codes: [OTHER], set_code: WRONG }}\n  \
         - {{ codes: ['GON*'], subgraphs: [reviews], set_code: WRONG }}\n  \
         - {{ path: me.name, set_code: WRONG }}\n  \
         - codes: [GONE]\n    subgraphs: [accounts]\n    path: me\n    set_code: ACCOUNT_GONE\n    \
           set_message: That account is no more.\n    set_extensions: {{ retryable: false, after: 30, hint: ask again }}\n    \
           remove_extensions: [stack, service]\n  \
         - {{ set_code: WRONG }}\n"
    ));
    let extensions = json!({
        "reason": {"a": [1]}, "after": 30, "hint": "ask again", "retryable": false, "code": "ACCOUNT_GONE",
    });
    let expected =
        json!({"message": "That account is no more.", "path": ["me"], "extensions": extensions});
    assert_eq!(shown, expected);
}

#[test]
fn what_is_masked_stays_masked() {
    let rule = "error_rules: [{ codes: [GONE], set_message: wrong }, \
                { codes: ['SUBREQUEST_*'], set_message: Later., set_extensions: { stack: none } }]\n";
    let shown = error(&format!(
        "include_subgraph_errors: {{ all: false, extensions: ['*'] }}\n{rule}"
    ));
    let extensions = json!({"stack": "none", "code": "SUBREQUEST_GRAPHQL_ERROR"});
    let expected = json!({"message": "Later.", "path": ["me"], "extensions": extensions});
    assert_eq!(shown, expected);
}

#[test]
fn requests_that_are_refused_and_entries_of_batches_are_told_alike() {
    let graph = Graph::with(
        "batching: { enabled: true }\nerror_rules:\n  \
         - { codes: [GRAPHQL_VALIDATION_FAILED], set_code: BAD_QUERY, set_extensions: { help: docs } }\n",
    );
    let json = [("content-type", "application/json")];
    let body = br#"[{"query":"{ nothing }"},{"query":"{ me { name } }"}]"#;
    let batch = send(graph.address(), "POST", "/graphql", &json, body).json();
    let extensions = json!({"help": "docs", "code": "BAD_QUERY"});
    assert_eq!(batch[0]["errors"][0]["extensions"], extensions);
    assert_eq!(batch[0]["errors"][0]["locations"][0]["column"], 3);
    assert_eq!(batch[1]["errors"], Value::Null);
    let one = post(graph.address(), "{ nothing }");
    assert_eq!((one.status, one.codes()), (400, vec!["BAD_QUERY".into()]));
}

#[test]
fn errors_of_parts_are_told_alike_and_once() {
    let body = r#"{"data":{"_entities":[null,null]},"errors":[{"message":"boom","path":["_entities",0]}]}"#;
    let inventory = StubSubgraph::answering(200, "", body);
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ inventory: '{}' }}\nerror_rules:\n  \
         - {{ subgraphs: [inventory], path: topProducts, set_code: STOCK_UNKNOWN }}\n  \
         - {{ codes: [STOCK_UNKNOWN], set_code: TWICE }}\n",
        inventory.url()
    ));
    let headers = [
        ("content-type", "application/json"),
        (
            "accept",
            "multipart/mixed;incrementalSpec=v0.2, application/json",
        ),
    ];
    let body = json!({"query": incremental::QUERY}).to_string();
    let answer = send(
        graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    )
    .text();
    assert!(answer.contains(r#""code":"STOCK_UNKNOWN""#), "{answer}");
    let is_told = ["SUBREQUEST_", "DOWNSTREAM_", "TWICE"].map(|code| answer.contains(code));
    assert_eq!(is_told, [false; 3], "{answer}");
}
