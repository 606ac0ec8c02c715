//! For which requests components are called.

use ogive_gateway::GatewayOptions;

use super::guest::Guest;
use crate::{
    coprocessor::ME,
    graph::{Graph, config},
    http_client::{Answer, post_with},
};

const HOOKS: [&str; 8] = [
    "receive",
    "operation",
    "plan",
    "subgraph-request",
    "subgraph-response",
    "executed",
    "answer",
    "respond",
];

fn ask(graph: &Graph, query: &str, headers: &[(&str, &str)]) -> Answer {
    post_with(graph.address(), query, headers)
}

/// A component that fails wherever it is called: whoever is answered well was not shown to it.
fn trapping(hook: &str, options: &str) -> (Graph, Guest) {
    let guest = Guest::new(&[(hook, "(unreachable)")]);
    (Graph::with(&guest.yaml(options)), guest)
}

#[test]
fn a_component_is_called_for_those_requests_for_which_its_condition_holds() {
    for hook in HOOKS {
        let condition = "condition: { exists: { request_header: x-trap } }";
        let (graph, _guest) = trapping(hook, condition);
        let answer = ask(&graph, ME, &[]);
        assert_eq!((answer.status, answer.codes()), (200, vec![]), "{hook}");
        let answer = ask(&graph, ME, &[("x-trap", "1")]);
        assert!(!answer.codes().is_empty(), "{hook}");
    }
}

#[test]
fn a_stage_may_have_a_condition_of_its_own() {
    let named = |text: &str| format!("query {text} {{ me {{ name }} }}");
    for (hook, condition) in [
        ("operation", "{ eq: [{ operation_name: true }, Trap] }"),
        ("plan", "{ eq: [{ operation_name: true }, Trap] }"),
        (
            "subgraph-request",
            "{ eq: [{ operation_name: true }, Trap] }",
        ),
        ("executed", "{ eq: [{ operation_name: true }, Trap] }"),
        ("respond", "{ eq: [{ operation_name: true }, Trap] }"),
    ] {
        let word = hook.replace('-', "_");
        // The general one, which always holds, does not count there.
        let options = format!(
            "condition: {{ exists: {{ client_address: true }} }}, conditions: {{ {word}: {condition} }}"
        );
        let (graph, _guest) = trapping(hook, &options);
        let answer = ask(&graph, &named("Fine"), &[]);
        assert_eq!((answer.status, answer.codes()), (200, vec![]), "{hook}");
        let answer = ask(&graph, &named("Trap"), &[]);
        assert!(!answer.codes().is_empty(), "{hook}");
    }
}

#[test]
fn conditions_look_at_what_is_known_at_their_stage() {
    for (hook, condition, harmless, trapped) in [
        (
            "subgraph-request",
            "{ eq: [{ subgraph_name: true }, reviews] }",
            "{ me { name } }",
            "{ me { reviews { id } } }",
        ),
        (
            "subgraph-response",
            "{ eq: [{ subgraph_name: true }, reviews] }",
            "{ me { name } }",
            "{ me { reviews { id } } }",
        ),
        (
            "answer",
            "{ eq: [{ on_graphql_error: true }, true] }",
            "{ me { name } }",
            "{ nothing }",
        ),
        (
            "respond",
            "{ eq: [{ on_graphql_error: true }, true] }",
            "{ me { name } }",
            "{ nothing }",
        ),
        (
            "respond",
            "{ eq: [{ response_status: code }, 400] }",
            "{ me { name } }",
            "{ nothing }",
        ),
    ] {
        let word = hook.replace('-', "_");
        let (graph, _guest) = trapping(hook, &format!("conditions: {{ {word}: {condition} }}"));
        let answer = ask(&graph, harmless, &[]);
        assert_eq!(
            (answer.status, answer.codes()),
            (200, vec![]),
            "{hook} {condition}"
        );
        let codes = ask(&graph, trapped, &[]).codes();
        assert!(
            codes.iter().any(|code| code == "PLUGIN_FAILED"),
            "{hook} {condition}: {codes:?}"
        );
    }
}

#[test]
fn a_condition_that_nobody_would_judge_is_refused() {
    let holds = "{ exists: { jwt_claim: a } }";
    for (hook, text, options, why) in [
        (
            "receive",
            "(i32.const 0)",
            format!("conditions: {{ plan: {holds} }}"),
            "`plan` is in `conditions`, and it exports no hook for that",
        ),
        (
            "authenticate",
            "(call $unknown)",
            format!("condition: {holds}"),
            "it has a `condition` and is called at no stage",
        ),
    ] {
        let guest = Guest::new(&[(hook, text)]);
        let decides = match hook {
            "authenticate" => "authentication: { router: { components: [guest] } }\n",
            _ => "",
        };
        let config = config(&format!("{}{decides}", guest.yaml(&options)));
        let refused = GatewayOptions::load(&config).err().unwrap_or_default();
        assert!(refused.contains(why), "{hook}: {refused}");
    }
}

#[test]
fn what_a_component_leaves_in_the_context_decides_whether_the_next_one_is_called() {
    let marks = "(call $header @\"x-trap\" (i32.const 32)) \
                 (if (i32.load8_u (i32.const 32)) (then (call $set @\"mark\" @\"true\" ))) (i32.const 0)";
    let (first, second) = (
        Guest::new(&[("receive", marks)]),
        Guest::new(&[("receive", "(unreachable)"), ("respond", "(unreachable)")]),
    );
    let graph = Graph::with(&format!(
        "plugins:\n  - {{ name: first, path: '{}', limits: {{ timeout: 60s }}, permissions: {{ read_headers: [x-trap], write_context: [mark] }} }}\n\
         \x20 - {{ name: second, path: '{}', limits: {{ timeout: 60s }}, condition: {{ eq: [{{ request_context: mark }}, 'true'] }} }}\n",
        first.path().display(),
        second.path().display()
    ));
    let answer = ask(&graph, ME, &[]);
    assert_eq!((answer.status, answer.codes()), (200, vec![]));
    assert_eq!(
        ask(&graph, ME, &[("x-trap", "1")]).codes(),
        ["PLUGIN_FAILED"]
    );
}
