//! Concrete types that every subgraph treats alike are planned once.

use std::fmt::Write as _;

use ogive_planner::{PlanOptions, tree};

use super::{PREAMBLE, check, operation, read, schema_definition};

/// `n` kinds of animal behind one interface; each lives at a keeper, who keeps animals, and is fed elsewhere.
fn zoo(n: usize) -> String {
    let mut sdl = String::from(
        "enum join__Graph { ZOO @join__graph(name: \"zoo\", url: \"\") FOOD @join__graph(name: \"food\", url: \"\") }
type Query @join__type(graph: ZOO) @join__type(graph: FOOD) { animals: [Animal!] @join__field(graph: ZOO) }
interface Animal @join__type(graph: ZOO) { id: ID! name: String keeper: Keeper }
type Keeper @join__type(graph: ZOO) { name: String animals: [Animal!] }
",
    );
    for i in 0..n {
        let _ = writeln!(
            sdl,
            "type Kind{i} implements Animal @join__implements(graph: ZOO, interface: \"Animal\") @join__type(graph: ZOO, key: \"id\") @join__type(graph: FOOD, key: \"id\") {{
  id: ID!
  name: String @join__field(graph: ZOO)
  keeper: Keeper @join__field(graph: ZOO)
  meals: Int @join__field(graph: FOOD)
}}"
        );
    }
    format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl))
}

#[test]
fn seventy_implementers_cost_one_node() {
    let supergraph = read(&zoo(70));
    let deep = "{ animals { name keeper { animals { id keeper { animals { name keeper { name } } } } } } }";
    let op = operation(&supergraph, deep);
    let tree = tree::grow(&supergraph, &op, &PlanOptions::default()).expect("a tree");
    // Root, three levels of animals and three keepers.
    assert_eq!(tree.nodes.len(), 7);
    let plan = ogive_planner::plan(&supergraph, &op, &PlanOptions::default()).expect("a plan");
    check(&supergraph, &plan);
    assert_eq!(plan.fetches.len(), 1);
}

#[test]
fn a_type_that_is_selected_differently_stands_apart() {
    let supergraph = read(&zoo(70));
    let op = operation(
        &supergraph,
        "{ animals { name ... on Kind3 { meals } ... on Kind9 { meals } } }",
    );
    let tree = tree::grow(&supergraph, &op, &PlanOptions::default()).expect("a tree");
    // Root, and animals in two classes: those with meals, and the rest.
    assert_eq!(tree.nodes.len(), 1 + 2);
    let plan = ogive_planner::plan(&supergraph, &op, &PlanOptions::default()).expect("a plan");
    check(&supergraph, &plan);
    assert_eq!(plan.fetches.len(), 2);
}
