//! Subgraph SDL of federation v1 and v2: missing definitions are added, names follow the `@link` import.

use ogive_mock::{Federation, Model};
use serde_json::json;

use crate::support::{run, subgraph};

fn entity_names(sdl: &str) -> Vec<String> {
    let model = Model::from_sdl("s", sdl, Federation::Auto).unwrap_or_else(|e| panic!("{e}"));
    model
        .entity_types()
        .map(|t| model.schema.type_name(t).to_string())
        .collect()
}

#[test]
fn version_1_needs_no_link() {
    let sdl = r#"
        extend type Query { me: User }
        extend type User @key(fields: "id") @key(fields: "org { id }") { id: ID! @external org: Org @external n: Int @requires(fields: "org { id }") }
        type Org @key(fields: "id") { id: ID! }
        extend interface I { x: Int }
        type Impl implements I @key(fields: "x") { x: Int }
    "#;
    assert_eq!(entity_names(sdl), ["User", "Org", "Impl"]);
    let answer = run(&subgraph(sdl, "{}"), "{ _service { sdl } }", json!({}));
    assert_eq!(answer["data"]["_service"]["sdl"], json!(sdl));
}

#[test]
fn version_2_names_follow_the_import() {
    let sdl = r#"
        extend schema @link(url: "https://specs.apollo.dev/federation/v2.7", as: "fed", import: [{name: "@key", as: "@id"}, "@shareable", "FieldSet"])
        type Query { a: A @fed__inaccessible }
        type A @id(fields: "x") @fed__interfaceObject { x: ID! @shareable y: Int @fed__tag(name: "t") z: Int @fed__external }
    "#;
    assert_eq!(entity_names(sdl), ["A"]);
    let model = Model::from_sdl("s", sdl, Federation::Auto).unwrap();
    let a = model.schema.type_by_name("A").unwrap();
    assert!(model.interface_objects.contains(&a));
    let z = model.schema.field_by_name(a, "z").unwrap();
    assert!(model.fields[&z].external);
}

#[test]
fn own_definitions_are_kept() {
    let sdl = r#"
        schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key"]) { query: Root }
        directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
        scalar link__Import
        enum link__Purpose { SECURITY EXECUTION }
        directive @key(fields: federation__FieldSet!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE
        scalar federation__FieldSet
        scalar _Any
        type Root { a: A }
        type A @key(fields: "x", resolvable: false) { x: ID! }
    "#;
    assert_eq!(entity_names(sdl), Vec::<String>::new());
}

#[test]
fn a_plain_schema_serves_its_sdl_but_no_entities() {
    let served = subgraph("type Query { a: Int }", "{ types: { Query: { a: 1 } } }");
    let answer = run(
        &served,
        "{ a __schema { queryType { fields { name } } } }",
        json!({}),
    );
    assert_eq!(
        answer["data"],
        json!({"a": 1, "__schema": {"queryType": {"fields": [{"name": "a"}, {"name": "_service"}]}}})
    );
    let strict = run(
        &served,
        "{ _entities(representations: []) { __typename } }",
        json!({}),
    );
    assert_eq!(strict.get("data"), None);
    assert!(
        strict["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("_entities")
    );
}

#[test]
fn a_subgraph_without_query_gets_one() {
    let served = subgraph(
        r#"type A @key(fields: "id") { id: ID! n: Int }"#,
        "types: { A: [{ id: 1, n: 5 }] }",
    );
    let answer = run(
        &served,
        "{ _entities(representations: [{__typename: \"A\", id: 1}]) { ... on A { n } } }",
        json!({}),
    );
    assert_eq!(answer["data"]["_entities"][0]["n"], json!(5));
}

#[test]
fn diagnostics_point_into_the_sdl() {
    let error = Model::from_sdl(
        "a.graphql",
        "type Query { a: Nope }\nextend type X { b: Int }",
        Federation::Auto,
    )
    .unwrap_err()
    .to_string();
    assert!(error.contains("a.graphql:1:17"), "{error}");
}

#[test]
fn entities_without_machinery_when_off() {
    let model = Model::from_sdl("s", "type Query { a: Int }", Federation::Off).unwrap();
    let query = model.schema.type_by_name("Query").unwrap();
    assert_eq!(model.schema.types[query].fields.len(), 1);
}
