//! What is planned: scenarios from files, the demo, adversarial families and generated operations.
//!
//! A row of the table is a [`Case`]: supergraphs and operations over them, always in the same order. Generated
//! operations come from the workspace's own generators under fixed seeds, so that every run plans the same.

use std::path::{Path, PathBuf};

use ogive_testkit::{graph, ops};

use crate::families;

/// How many graphs are generated, and how many operations over each.
const GRAPHS: u64 = 20;
const OPERATIONS_PER_GRAPH: usize = 5;

/// One row.
pub struct Case {
    /// Its name in the table.
    pub name: String,
    /// Supergraph SDL.
    pub graphs: Vec<String>,
    /// Index of the graph, and the document.
    pub operations: Vec<(usize, String)>,
}

impl Case {
    /// A row of one operation.
    pub fn one(name: impl Into<String>, graph: String, operation: String) -> Case {
        Case {
            name: name.into(),
            graphs: vec![graph],
            operations: vec![(0, operation)],
        }
    }
}

/// All rows, in the order of the table.
pub fn all() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cases = Vec::new();
    for (folder, name) in [
        ("fed", "scenario: TestQuery"),
        ("big-response", "scenario: big-response"),
        ("many-plans", "scenario: many-plans"),
    ] {
        match scenario(&shared(&root).join("data/scenarios").join(folder), name) {
            Some(case) => cases.push(case),
            None => eprintln!("{name}: no files at hand, skipped"),
        }
    }
    let demo = root.join("examples/demo");
    let read = |name: &str| std::fs::read_to_string(demo.join(name)).expect("the demo's files");
    cases.push(Case::one(
        "examples/demo",
        read("supergraph.graphql"),
        read("query.graphql"),
    ));
    cases.extend(families::all());
    cases.push(generated());
    cases
}

/// Where the published scenarios are, if anywhere.
fn shared(root: &Path) -> PathBuf {
    std::env::var_os("OGIVE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

fn scenario(folder: &Path, name: &str) -> Option<Case> {
    let graph = std::fs::read_to_string(folder.join("supergraph.graphql")).ok()?;
    let body = std::fs::read_to_string(folder.join("body.json")).ok()?;
    let body: serde_json::Value = serde_json::from_str(&body).ok()?;
    let query = body.get("query")?.as_str()?.to_owned();
    Some(Case::one(name, graph, query))
}

/// Operations over generated graphs. Introspection is left out: it is planned by neither.
fn generated() -> Case {
    let mut graphs = Vec::new();
    let mut operations = Vec::new();
    for seed in 1..=GRAPHS {
        let model = graph::generate::generate(seed, &graph::generate::GraphOptions::default());
        let documents = (0..)
            .map(|n| {
                ops::generate::generate(
                    &model,
                    seed * 1_000 + n,
                    &ops::generate::OpOptions::default(),
                )
            })
            .map(|op| op.document())
            .filter(|text| !text.contains("__schema") && !text.contains("__type("))
            .take(OPERATIONS_PER_GRAPH);
        operations.extend(documents.map(|text| (graphs.len(), text)));
        graphs.push(graph::print::supergraph_sdl(&model));
    }
    Case {
        name: format!("{} generated operations", operations.len()),
        graphs,
        operations,
    }
}
