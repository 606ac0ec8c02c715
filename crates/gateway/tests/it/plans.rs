//! One plan for equivalent documents, and how long plans live.

use std::sync::Arc;

use http::HeaderMap;
use ogive_gateway::{
    plan::{plan_for, plan_now},
    prepare::prepare_operation,
    schema::{
        canonical::canonical,
        operation::PlannedOperation,
        plan_cache::{PlanCounts, PlanSource},
        state::SchemaState,
    },
};
use ogive_server::offload::Offload;

use ogive_testbase::Rng;

use crate::graph::{Field, random_fields, state};

fn planned(state: &SchemaState, text: &str) -> (Arc<PlannedOperation>, PlanSource) {
    let operation = prepare_operation(state, text, None)
        .unwrap_or_else(|e| panic!("{text}: {}", e.errors[0].message));
    plan_now(state, &operation).unwrap_or_else(|e| panic!("{text}: {}", e.errors[0].message))
}

fn key(state: &SchemaState, text: &str) -> Box<[u8]> {
    let operation = prepare_operation(state, text, None)
        .unwrap_or_else(|e| panic!("{text}: {}", e.errors[0].message));
    canonical(&state.supergraph, &state.compared, &operation.operation).key
}

/// The values of a plan's variables for a document without variables of its own.
fn literals(planned: &PlannedOperation) -> Vec<String> {
    let names = &planned.plan.variables;
    let literals = planned.binding.literals();
    literals
        .map(|(at, json)| format!("{}={json}", names[at]))
        .collect()
}

#[test]
fn equivalent_documents_share_one_plan() {
    let state = state(&[], "");
    let documents = [
        "{ product(id: 1) { name stock } }",
        "query Named {product(id:2){name,stock}}",
        "# comment\nquery($unused: Boolean = true) { product(id: \"x\") { name ... @include(if: true) { stock @include(if: $unused) } } }",
        "{ product(id: 3) { ...F } } fragment F on Product { name ... on Product { stock } }",
        "query($id: ID!) { product(id: $id) { name stock } }",
        "{ product(id: 4) { ... @include(if: true) { name } stock name } }",
        "{ ...Q } fragment Q on Query { product(id: 5) { name } product(id: 5) { stock } }",
    ];
    for (n, document) in documents.into_iter().enumerate() {
        // The third has a condition over a variable.
        let expected = match n {
            0 | 2 => PlanSource::Planner,
            _ => PlanSource::Cache,
        };
        assert_eq!(planned(&state, document).1, expected, "{document}");
    }
    assert_eq!(
        state.plans.counts(),
        PlanCounts {
            bundle: 0,
            cache: 5,
            planner: 2
        }
    );
    assert_eq!(state.plans.len(), 2);
}

#[test]
fn what_clients_or_subgraphs_can_see_keeps_documents_apart() {
    let state = state(&[], "");
    let documents = [
        "{ product(id: 1) { name stock } }",
        "{ product(id: 1) { stock name } }",
        "{ p: product(id: 1) { name stock } }",
        "{ product(id: 1) { name(upper: true) stock } }",
        "query($key: ID!) { product(id: $key) { name stock } }",
        "query($id: ID! = 4) { product(id: $id) { name stock } }",
        "query($on: Boolean!) { product(id: 1) { name stock @include(if: $on) } }",
        "query($on: Boolean!) { product(id: 1) { name stock @skip(if: $on) } }",
        "{ product(id: 1) { name stock __typename } }",
        // Equal literals are one variable, others are two.
        "{ a: find(first: 1) { id } b: find(first: 1) { id } }",
        "{ a: find(first: 1) { id } b: find(first: 2) { id } }",
        // An enum in a custom scalar stays a literal.
        "{ product(id: 1) { price(at: NOW) } }",
        "{ product(id: 1) { price(at: THEN) } }",
    ];
    let keys: Vec<_> = documents.iter().map(|d| key(&state, d)).collect();
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(a == b, i == j, "{} and {}", documents[i], documents[j]);
        }
    }
}

#[test]
fn literals_become_variables_of_the_argument_s_type() {
    let state = state(&[], "");
    let text = "query($x: String) { find(filter: {text: $x, min: 2, not: {kind: NEW}}, tags: \"t\", first: 3) { \
                name(upper: true) price(in: USED, at: {y: 1}) stock(min: 3) } }";
    let (planned, _) = planned(&state, text);
    assert_eq!(
        literals(&planned),
        [
            "min=2",
            "not={\"kind\":\"NEW\",\"limit\":3}",
            "tags=[\"t\"]",
            "first=3",
            "upper=true",
            "in=\"USED\"",
        ],
        "`limit` has a default; `stock(min: 3)` shares the Int 3"
    );
    let plan = ogive_plan::text(&planned.plan);
    assert!(
        plan.contains("filter: {text: $x, min: $min, not: $not}"),
        "{plan}"
    );
    assert!(plan.contains("price(in: $in, at: {y: 1})"), "{plan}");
    assert!(plan.contains("stock(min: $first)"), "{plan}");
    assert!(plan.contains("$tags: [String!]"), "{plan}");
    let bound = planned.binding.apply(vec![Some("\"mine\"".into())]);
    let bound: Vec<&str> = bound.iter().map(|v| v.as_deref().unwrap()).collect();
    assert_eq!(bound[0], "\"mine\"");
    assert_eq!(bound.len(), planned.plan.variables.len());
}

#[test]
fn literals_that_the_planner_compares_stay() {
    let requires = ("requires: \"price\"", "requires: \"price(in: USED)\"");
    let state = state(&[requires], "");
    let text = "{ product(id: 1) { price(in: USED) shipping } }";
    let (planned, _) = planned(&state, text);
    assert_eq!(literals(&planned), ["id=\"1\""]);
    let plan = ogive_plan::text(&planned.plan);
    assert_eq!(
        plan.matches("price(in: USED)").count(),
        1,
        "asked for once: {plan}"
    );
}

/// Writes a selection as a document. `shift` changes every literal alike, so equal ones stay equal.
fn write(fields: &[Field], shift: usize, style: &mut Rng) -> String {
    let mut fragments = Vec::new();
    let body = selection(fields, "Query", shift, style, &mut fragments);
    let name = style.pick(&["", " A", " Other"]);
    format!(
        "query{name}($on: Boolean!, $off: Boolean!) {body} {}",
        fragments.join(" ")
    )
}

fn selection(
    fields: &[Field],
    ty: &str,
    shift: usize,
    style: &mut Rng,
    fragments: &mut Vec<String>,
) -> String {
    // One order and one nesting of conditions; anything else may differ.
    let mut out = String::new();
    for field in fields {
        let child = match field.name {
            "product" | "find" | "products" => "Product",
            "warehouse" => "Warehouse",
            _ => "",
        };
        let mut text = format!("{}: {}", field.alias.as_deref().unwrap(), field.name);
        if !field.args.is_empty() {
            let mut args: Vec<String> = field
                .args
                .iter()
                .map(|(name, values, at)| {
                    format!("{name}: {}", values[(at + shift) % values.len()])
                })
                .collect();
            if style.below(2) == 0 {
                args.reverse();
            }
            text.push_str(&format!(
                "({})",
                args.join(style.pick::<&str>(&[", ", " ", " ,\n"]))
            ));
        }
        if let Some(condition) = field.condition {
            text.push_str(&format!(" {condition}"));
        }
        if !child.is_empty() {
            text.push_str(&selection(&field.fields, child, shift, style, fragments));
        }
        text = match style.below(6) {
            0 => format!("... {{ {text} }}"),
            1 => format!("... on {ty} @include(if: true) {{ {text} }}"),
            2 => {
                let name = format!("F{}", fragments.len());
                fragments.push(String::new());
                let at = fragments.len() - 1;
                fragments[at] = format!("fragment {name} on {ty} {{ {text} }}");
                format!("...{name}")
            }
            3 => format!("{text} {text}"),
            _ => text,
        };
        out.push_str(&text);
        out.push_str(style.pick::<&str>(&[" ", ", ", "\n# note\n"]));
    }
    format!("{{{out}}}")
}

/// Both variables used somewhere, or the document would not be valid.
fn with_both_variables(mut fields: Vec<Field>) -> Vec<Field> {
    for condition in ["@include(if: $on)", "@skip(if: $off)"] {
        fields.push(Field {
            alias: Some(format!("c{}", fields.len())),
            name: "__typename",
            args: Vec::new(),
            condition: Some(condition),
            fields: Vec::new(),
        });
    }
    fields
}

#[test]
fn however_an_operation_is_written_it_is_planned_once() {
    let (state, other) = (state(&[], ""), state(&[], ""));
    let mut style = Rng::new(3);
    for seed in 0..150 {
        let fields = with_both_variables(random_fields(&mut Rng::new(seed), "Query"));
        let first = write(&fields, 0, &mut style);
        let (a, _) = planned(&state, &first);
        for _ in 0..4 {
            let again = write(&fields, 0, &mut style);
            let (b, source) = planned(&state, &again);
            assert_eq!(source, PlanSource::Cache, "{first}\n\n{again}");
            assert!(Arc::ptr_eq(&a.plan, &b.plan));
            assert_eq!(literals(&a), literals(&b), "{first}\n\n{again}");
            // The plan does not depend on which of the documents came first.
            let alone = planned(&other, &again).0;
            assert!(*alone.plan == *a.plan, "{first}\n\n{again}");
        }
        let mut swapped = fields.clone();
        swapped.reverse();
        if swapped
            .iter()
            .map(|f| &f.alias)
            .ne(fields.iter().map(|f| &f.alias))
        {
            let other = write(&swapped, 0, &mut style);
            assert_ne!(
                key(&state, &first),
                key(&state, &other),
                "{first}\n\n{other}"
            );
        }
    }
    let counts = state.plans.counts();
    assert_eq!(counts.planner + counts.cache, 750);
    assert!((50..=150).contains(&counts.planner), "{counts:?}");
}

#[test]
fn other_literals_have_other_values_in_the_same_plan() {
    let state = state(&[], "");
    let one = "{ product(id: 1) { name(upper: true) } find(tags: [\"a\"]) { id } }";
    let two = "{ product(id: \"b\") { name(upper: false) } find(tags: [\"c\", \"d\"]) { id } }";
    let (a, b) = (planned(&state, one).0, planned(&state, two).0);
    assert!(Arc::ptr_eq(&a.plan, &b.plan));
    assert_eq!(literals(&a), ["id=\"1\"", "tags=[\"a\"]", "upper=true"]);
    assert_eq!(
        literals(&b),
        ["id=\"b\"", "tags=[\"c\",\"d\"]", "upper=false"]
    );
}

#[test]
fn many_requests_at_a_time_run_the_planner_once() {
    let (state, offload) = (Arc::new(state(&[], "")), Offload::default());
    let documents: Vec<String> = (0..8)
        .map(|n| format!("{{ product(id: {n}) {{ name stock shipping }} }}"))
        .collect();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let barrier = std::sync::Barrier::new(documents.len());
    std::thread::scope(|scope| {
        for document in &documents {
            scope.spawn(|| {
                let operation = Arc::new(prepare_operation(&state, document, None).unwrap());
                let headers = HeaderMap::new();
                barrier.wait();
                runtime()
                    .block_on(plan_for(&state, &operation, &headers, &offload))
                    .map(|_| ())
                    .unwrap_or_else(|_| panic!());
            });
        }
    });
    assert_eq!(
        state.plans.counts(),
        PlanCounts {
            bundle: 0,
            cache: 7,
            planner: 1
        }
    );
}

#[test]
fn plans_are_evicted_by_the_memory_they_take() {
    let state = state(&[], "query_planning: { cache: { memory: 200KiB } }");
    for n in 0..200 {
        planned(
            &state,
            &format!("{{ a{n}: product(id: 1) {{ name stock shipping }} }}"),
        );
    }
    assert!(state.plans.bytes() <= 200 << 10, "{}", state.plans.bytes());
    assert!(
        (5..150).contains(&state.plans.len()),
        "{}",
        state.plans.len()
    );
    let none = crate::graph::state(&[], "query_planning: { cache: { enabled: false } }");
    for _ in 0..2 {
        assert_eq!(
            planned(&none, "{ warehouse { city } }").1,
            PlanSource::Planner
        );
    }
}

const OPERATIONS: [&str; 4] = [
    "{ product(id: 1) { name } }",
    "{ product(id: 1) { name stock } }",
    "{ warehouse { city } }",
    "{ product(id: 1) { shipping } }",
];

/// A state that knows the operations, and what a new schema takes over from it.
fn reloaded(changes: &[(&str, &str)]) -> (SchemaState, ogive_gateway::reload::WarmUp) {
    let before = state(&[], "");
    for text in OPERATIONS {
        let operation = prepare_operation(&before, text, None).unwrap();
        plan_now(&before, &operation).unwrap_or_else(|_| panic!());
        before.operations.insert(None, Arc::new(operation));
    }
    let mut after = state(changes, "");
    let done = after.warm_up(&before);
    (after, done)
}

#[test]
fn plans_survive_a_schema_that_changes_nothing_below_them() {
    for (changes, kept, planned_anew) in [
        (vec![], 4, 0),
        // A new root field, a new field of a type that is in use.
        (
            vec![(
                "  warehouse:",
                "  more: Int @join__field(graph: STOCK)\n  warehouse:",
            )],
            4,
            0,
        ),
        (
            vec![(
                "  stock(",
                "  extra: Int @join__field(graph: STOCK)\n  stock(",
            )],
            4,
            0,
        ),
        // A field that one of them asks for.
        (
            vec![("stock(min: Int): Int", "stock(min: Int): Int!")],
            3,
            1,
        ),
        // One that only a requirement needs.
        (
            vec![(
                "price(in: Kind, at: Date): Float",
                "price(in: Kind, at: Date, more: Int): Float",
            )],
            3,
            1,
        ),
        // Another key: all that touch the type.
        (
            vec![(
                "@join__type(graph: STOCK, key: \"id\")",
                "@join__type(graph: STOCK, key: \"id\") @join__type(graph: STOCK, key: \"id name\")",
            )],
            1,
            3,
        ),
        // A subgraph that comes first moves the others along.
        (
            vec![
                (
                    "enum join__Graph {",
                    "enum join__Graph { ADS @join__graph(name: \"ads\", url: \"\")",
                ),
                (
                    "  warehouse:",
                    "  ad: String @join__field(graph: ADS)\n  warehouse:",
                ),
                ("type Query ", "type Query @join__type(graph: ADS) "),
            ],
            0,
            4,
        ),
    ] {
        let (after, done) = reloaded(&changes);
        assert_eq!(
            (done.kept, done.planned, done.refused),
            (kept, planned_anew, 0),
            "{changes:?}"
        );
        for text in OPERATIONS {
            let (planned, source) = planned(&after, text);
            assert_eq!(source, PlanSource::Cache, "{text}");
            assert_eq!(ogive_plan::verify(&planned.plan), Ok(()));
            let fresh = state(&changes, "");
            let expected = self::planned(&fresh, text).0;
            assert!(
                *planned.plan == *expected.plan,
                "as if planned anew: {text}, {changes:?}"
            );
            assert_eq!(after.operations.len(), 4);
        }
    }
}

#[test]
fn plans_move_to_the_new_numbers_of_their_subgraphs() {
    // `ads` is of no concern to any type of the operations.
    let (after, done) = reloaded(&[(
        "enum join__Graph {",
        "type Ad @join__type(graph: ADS) { x: Int }\nenum join__Graph { ADS @join__graph(name: \"ads\", url: \"\")",
    )]);
    assert_eq!((done.kept, done.dropped), (4, 0));
    let (planned, source) = planned(&after, OPERATIONS[2]);
    assert_eq!(source, PlanSource::Cache);
    let fetch = &planned.plan.fetches.as_slice()[0];
    assert_eq!(&*planned.plan.subgraphs[fetch.subgraph as usize], "stock");
    assert_eq!(fetch.subgraph, 2);
}

#[test]
fn operations_that_are_gone_are_not_taken_over() {
    let (after, done) = reloaded(&[("  warehouse: Warehouse @join__field(graph: STOCK)\n", "")]);
    assert_eq!(done.refused, 1);
    assert_eq!(after.operations.len(), 3);
}

#[test]
fn a_gateway_reloads_with_what_it_knew() {
    let options = ogive_gateway::GatewayOptions::new(&ogive_config::Config::default());
    let gateway = ogive_gateway::Gateway::new(state(&[], ""), options);
    let operation = prepare_operation(&gateway.state(), OPERATIONS[0], None).unwrap();
    plan_now(&gateway.state(), &operation).unwrap();
    let new_field = (
        "  warehouse:",
        "  more: Int @join__field(graph: STOCK)\n  warehouse:",
    );
    let done = gateway.reload(state(&[new_field], ""));
    assert_eq!((done.kept, done.dropped, done.planned), (1, 0, 0));
    let (_, source) = planned(&gateway.state(), "{ product(id: 2) { name } more }");
    assert_eq!(source, PlanSource::Planner, "the new schema serves");
    let (_, source) = planned(&gateway.state(), OPERATIONS[0]);
    assert_eq!(source, PlanSource::Cache);
}
