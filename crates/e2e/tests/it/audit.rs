//! The public audits of GraphQL over HTTP: every MUST, SHOULD and MAY.

use std::{path::Path, process::Command};

use crate::graph::Graph;

#[test]
fn every_audit_of_graphql_over_http_holds() {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle");
    if std::env::var_os("OGIVE_ORACLE").is_none()
        || !oracle.join("node_modules/graphql-http").exists()
    {
        eprintln!("skipped: needs OGIVE_ORACLE=1 and `npm ci` in oracle/");
        return;
    }
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
