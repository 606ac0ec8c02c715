//! Requests to a subgraph validate against its rebuilt schema exactly if the subgraph can be asked for them.

use ogive_base::SourceId;
use ogive_federation::{ReadOptions, Supergraph, read_supergraph, subgraph_schema};
use ogive_operation::{ValidationLimits, validate};
use ogive_syntax::{Limits, parse};

use crate::cases::{case_text, tests_dir};

fn load(case: &str) -> Supergraph {
    let text = case_text(&tests_dir().join(format!("cases/{case}.graphql")));
    read_supergraph(&text, SourceId(0), &ReadOptions::default()).unwrap()
}

fn problems(supergraph: &Supergraph, subgraph: &str, request: &str) -> Vec<String> {
    let (id, _) = supergraph
        .subgraphs
        .iter()
        .find(|(_, s)| &*s.name == subgraph)
        .unwrap();
    let (schema, _) = subgraph_schema(supergraph, id);
    let parsed = parse(request, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{request}");
    let errors = validate(&schema, &parsed.document, &ValidationLimits::default());
    errors.into_iter().map(|e| e.message).collect()
}

const ENTITIES: &str = "query ($r: [_Any!]!) { _entities(representations: $r) { __typename ";

#[test]
fn entity_look_ups_validate_where_the_entity_lives() {
    let supergraph = load("keys_of_every_shape");
    let request = format!("{ENTITIES} ... on Parcel {{ sender {{ id name }} }} }} }}");
    assert_eq!(problems(&supergraph, "post", &request), [] as [&str; 0]);
    assert_eq!(
        problems(&supergraph, "tracker", &request),
        ["Cannot query field \"name\" on type \"Sender\"."]
    );
    let sender = format!("{ENTITIES} ... on Sender {{ id }} }} }}");
    let refused = problems(&supergraph, "tracker", &sender);
    assert_eq!(
        refused.len(),
        1,
        "its key is not resolvable there: {refused:?}"
    );
}

#[test]
fn external_fields_may_be_asked_for_inside_provides() {
    let supergraph = load("provides_on_unions");
    let request = "{ feed { ... on Post { author { name } } ... on Picture { thumbnail } } }";
    assert_eq!(problems(&supergraph, "feed", request), [] as [&str; 0]);
}

#[test]
fn interface_objects_are_asked_by_the_name_of_the_interface() {
    let supergraph = load("interface_object_library");
    let by_interface = format!("{ENTITIES} ... on Media {{ reviews(first: 3) {{ stars }} }} }} }}");
    assert_eq!(
        problems(&supergraph, "reviews", &by_interface),
        [] as [&str; 0]
    );
    let by_type = format!("{ENTITIES} ... on Book {{ reviews {{ stars }} }} }} }}");
    assert_eq!(
        problems(&supergraph, "reviews", &by_type),
        ["Unknown type \"Book\"."]
    );
}

#[test]
fn values_and_members_a_subgraph_lacks_are_refused() {
    let supergraph = load("uneven_unions_enums_interfaces");
    let request = "{ near { ... on Car { state } } }";
    assert_eq!(problems(&supergraph, "cars", request), [] as [&str; 0]);
    assert_eq!(
        problems(&supergraph, "bikes", request),
        ["Unknown type \"Car\"."]
    );
    let supergraph = load("local_types");
    let request = "{ stay(search: { pets: true, nights: 2 }) { beds } }";
    assert_eq!(problems(&supergraph, "guide", request), [] as [&str; 0]);
    assert_eq!(problems(&supergraph, "hotel", request).len(), 1);
}
