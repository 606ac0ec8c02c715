//! Of which requests a coprocessor is told.

use super::{Coprocessed, ME, nothing, playing};

/// The stages of which two requests were told, without and with a header.
fn told(stages: &str, header: (&str, &str)) -> [usize; 2] {
    let with = Coprocessed::with(playing(nothing), stages, "");
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0], "{stages}");
    let without = with.told().len();
    assert_eq!(with.ask(ME, &[header]).codes(), [""; 0], "{stages}");
    [without, with.told().len() - without]
}

#[test]
fn stages_are_told_of_the_requests_that_their_conditions_name() {
    let key = "{ exists: { request_header: x-key } }";
    for stage in [
        "router: { request",
        "router: { response",
        "supergraph: { request",
        "supergraph: { response",
        "execution: { request",
        "execution: { response",
        "subgraph: { all: { request",
        "subgraph: { all: { response",
    ] {
        let ends = "}".repeat(stage.matches('{').count());
        let at = |condition: &str| {
            format!("{stage}: {{ headers: true, condition: {condition} }} {ends}")
        };
        assert_eq!(told(&at(key), ("x-key", "1")), [0, 1], "{stage}");
        let not = format!("{{ not: {key} }}");
        assert_eq!(told(&at(&not), ("x-key", "1")), [1, 0], "{stage}");
    }
}

#[test]
fn conditions_look_at_operations_contexts_answers_and_subgraphs() {
    let none = ("x-none", "1");
    for (stages, expected) in [
        (
            "supergraph: { request: { headers: true, condition: { eq: [{ operation_name: string }, Me] } } }",
            1,
        ),
        (
            "supergraph: { request: { headers: true, condition: { eq: [{ operation_kind: true }, mutation] } } }",
            0,
        ),
        (
            "router: { request: { headers: true, condition: { eq: [{ request_method: true }, POST] } } }",
            1,
        ),
        (
            "router: { response: { headers: true, condition: { gt: [{ response_status: code }, 199] } } }",
            1,
        ),
        (
            "router: { response: { headers: true, condition: { lt: [{ response_status: code }, 200] } } }",
            0,
        ),
        (
            "supergraph: { response: { headers: true, condition: { eq: [{ on_graphql_error: true }, true] } } }",
            0,
        ),
        (
            "supergraph: { response: { headers: true, condition: { eq: [{ on_graphql_error: true }, false] } } }",
            1,
        ),
        (
            "subgraph: { all: { request: { uri: true, condition: { eq: [{ subgraph_name: true }, accounts] } } } }",
            1,
        ),
        (
            "subgraph: { all: { request: { uri: true, condition: { eq: [{ subgraph_name: true }, others] } } } }",
            0,
        ),
        (
            "execution: { response: { headers: true, condition: { eq: [{ response_context: 'apollo::supergraph::operation_name' }, Me] } } }",
            1,
        ),
        (
            "execution: { request: { headers: true, condition: { exists: { request_context: nothing } } } }",
            0,
        ),
        (
            "router: { request: { headers: true, condition: { contains: ['127.0.0.0/8', { client_address: true }] } } }",
            1,
        ),
        (
            "router: { request: { headers: true, condition: { exists: { jwt_claim: sub } } } }",
            0,
        ),
    ] {
        assert_eq!(told(stages, none), [expected; 2], "{stages}");
    }
}
