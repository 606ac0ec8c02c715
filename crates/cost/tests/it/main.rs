//! Costs of operations, seen from outside: a table of cases, and generated operations beside a full expansion.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set up its case should stop there"
)]

mod cases;
mod expansion;
mod hostile;

use ogive_base::SourceId;
use ogive_cost::{Estimate, Program, Scratch, Settings, compile};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_json::Tree;
use ogive_operation::{NormaliseLimits, Operation, Variables, coerce_variables, normalise};
use ogive_syntax::{Limits, parse};

/// The supergraph of all tests.
fn shop() -> Supergraph {
    read(include_str!("../shop.graphql"))
}

fn read(sdl: &str) -> Supergraph {
    read_supergraph(sdl, SourceId(0), &ReadOptions::default()).unwrap()
}

/// An operation in normal form, and its variables.
fn prepare(graph: &Supergraph, text: &str, variables: &str) -> (Operation, Variables) {
    let parsed = parse(text, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{text}: {:?}", parsed.errors);
    let document = parsed.document;
    let operation = document.operations().next().unwrap();
    let limits = NormaliseLimits::default();
    let normal = normalise(&graph.api, &document, operation, &limits).unwrap();
    let tree = Tree::read(variables.as_bytes(), 128).unwrap();
    let root = Some(tree.root());
    let values = coerce_variables(&graph.api, &document, operation, root, false);
    (normal, values.unwrap())
}

fn program(graph: &Supergraph, operation: &Operation) -> Program {
    let settings = Settings::default();
    compile(&graph.schema, &graph.graph.costs, operation, &settings)
}

fn estimate(graph: &Supergraph, text: &str, variables: &str) -> (Estimate, Operation) {
    let (operation, variables) = prepare(graph, text, variables);
    let mut scratch = Scratch::default();
    let program = program(graph, &operation);
    let costs = &graph.graph.costs;
    let estimate = program.evaluate(&graph.schema, costs, &variables, &mut scratch);
    (estimate, operation)
}
