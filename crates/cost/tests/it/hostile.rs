//! Operations and schemas that are made to cost the one who counts.

use ogive_cost::{Scratch, Settings, compile};

use super::{estimate, prepare, program, read, shop};

#[test]
fn nested_fragments_of_several_types_stay_linear() {
    let graph = shop();
    let mut text = "id".to_owned();
    for _ in 0..25 {
        text = format!(
            "... on Book {{ owner {{ things(count: $n) {{ {text} }} }} author {{ id }} }} ... on Toy {{ id owner {{ id }} }}"
        );
        // Both types see what is below, so it is in the sum of both.
        text = format!("owner {{ things(count: $n) {{ {text} }} }} ... on Toy {{ label }}");
    }
    let text = format!("query ($n: Int) {{ things {{ {text} }} }}");
    let (operation, _) = prepare(&graph, &text, r#"{"n": 9}"#);
    let program = program(&graph, &operation);
    assert!(operation.fields.len() > 150);
    assert!(program.len() <= operation.fields.len() * 4);
    let (estimate, _) = estimate(&graph, &text, r#"{"n": 9}"#);
    assert_eq!(estimate.cost, u64::MAX);
}

#[test]
fn evaluating_again_needs_no_more_room_and_gives_the_same() {
    let graph = shop();
    let text = "query ($n: Int, $i: SearchInput) { things(count: $n) { parts { id } } search(input: $i) { hits { id } } }";
    let (operation, variables) = prepare(&graph, text, r#"{"n": 3, "i": {"page": {"first": 2}}}"#);
    let program = program(&graph, &operation);
    let mut scratch = Scratch::default();
    let costs = &graph.graph.costs;
    let first = program.evaluate(&graph.schema, costs, &variables, &mut scratch);
    let again = program.evaluate(&graph.schema, costs, &variables, &mut scratch);
    assert_eq!(first, again);
    // things 3 × (3 + 5), inputs 2, Results 1, hits 2 × 3
    assert_eq!(first.cost, 33);
}

#[test]
fn many_types_with_fields_of_their_own_are_bounded_and_never_too_cheap() {
    let types = 400;
    let mut sdl = include_str!("../shop.graphql").replace("one: Book", "one: Book\n  any: [Any]");
    for i in 0..types {
        sdl.push_str(&format!(
            "type T{i} implements Any @join__type(graph: SHOP) @join__implements(graph: SHOP, interface: \"Any\") {{ id: ID @cost(weight: {}) own: Owner }}\n",
            i + 1
        ));
    }
    sdl.push_str("interface Any @join__type(graph: SHOP) { id: ID own: Owner }\n");
    let graph = read(&sdl);
    let mut text = String::new();
    for i in 0..types {
        for alias in 0..4 {
            text.push_str(&format!(
                "... on T{i} {{ a{alias}: id b{alias}: own {{ id }} }} "
            ));
        }
    }
    let text = format!("{{ any {{ {text} c: id d: id ... on Any {{ e: own {{ id }} }} }} }}");
    let (estimate, _) = estimate(&graph, &text, "{}");
    // The most expensive type is the last: 1 + 6 × 400 + 5.
    let exact = 10 * (1 + 6 * types + 5);
    assert!(estimate.cost >= exact, "{} < {exact}", estimate.cost);
}

#[test]
fn only_counted_fields_cost() {
    let graph = shop();
    let (operation, variables) = prepare(&graph, "{ things(count: 4) { owner { id } } }", "{}");
    let owner = operation.fields.ids().filter(|id| {
        let key = operation.fields[*id].key;
        operation.keys.text(key) == "owner"
    });
    let counted = owner.map(|id| id.0).collect();
    let settings = Settings {
        counted: Some(&counted),
        ..Settings::default()
    };
    let costs = &graph.graph.costs;
    let program = compile(&graph.schema, costs, &operation, &settings);
    assert!(program.is_empty());
    let mut scratch = Scratch::default();
    let estimate = program.evaluate(&graph.schema, costs, &variables, &mut scratch);
    assert_eq!(estimate.cost, 4);
}
