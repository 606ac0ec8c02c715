//! The public audits of GraphQL over HTTP: every MUST, SHOULD and MAY.

use std::process::Command;

use ogive_testbase::{left_out, needs::ORACLE_IS_OFF, oracle};

use crate::graph::Graph;

#[test]
fn every_audit_of_graphql_over_http_holds() {
    let Some(oracle) = oracle("node_modules/graphql-http") else {
        return left_out(ORACLE_IS_OFF);
    };
    // The audits ask for types by variable, which needs introspection.
    let graph = Graph::with("supergraph: { introspection: true }");
    let output = Command::new("node")
        .arg(oracle.join("http/audit.mjs"))
        .arg(format!("http://{}/graphql", graph.address()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let recorded = include_str!("audit.txt");
    assert_eq!(
        text, recorded,
        "the list of audits has changed: record it anew"
    );
}
