//! Data files: references, conventions of root fields, back references, rules, entities.

use ogive_mock::Data;
use serde_json::{Value, json};

use crate::support::{run, subgraph};

const SDL: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@requires", "@external", "@provides"])
type Query {
  user(id: ID!): User
  userByEmail(email: String!): User
  users(ids: [ID!], city: String, first: Int, offset: Int, last: Int): [User!]!
  find(filter: UserFilter): [User]
  posts(first: Int = 2, author: ID): [Post]
  me: User
  random(n: Int): [Int]
  media: [Media]
  stock(sku: ID!, site: String!): Stock
  hello(name: String = "you"): String
}
type Mutation { updateUser(id: ID!, input: UserInput!): User rename(id: ID!, name: String): User }
input UserInput { name: String city: String }
input UserFilter { city: String name: String }
type User @key(fields: "id") @key(fields: "email") { id: ID! email: String! name: String city: String posts(first: Int): [Post!]! best: Post favourite: Media score(scale: Int = 1): Int }
type Post @key(fields: "id") { id: ID! title: String author: User tags: [String!] related: [Post] }
type Photo @key(fields: "id") { id: ID! url: String }
union Media = Post | Photo
type Stock @key(fields: "sku site { code }") { sku: ID! site: Site! pieces: Int price: Int @external cost: Int @requires(fields: "price") }
type Site { code: String! }
type Virtual @key(fields: "id") { id: ID! label: String next: Virtual }
"#;

const DATA: &str = r#"
types:
  User:
    - { id: 1, email: a@x, name: Ann, city: Oslo, favourite: Photo/1 }
    - { id: 2, email: b@x, name: Bob, city: Rome, favourite: { $ref: Post/11 } }
    - { id: 3, email: c@x, name: Cy, city: Oslo }
  Post:
    - { id: 10, title: First, author: 1, tags: [a, b], related: [11, Post/12] }
    - { id: 11, title: Second, author: 2 }
    - { id: 12, title: Third, author: User/1 }
    - { id: 13, title: Fourth, author: 9 }
  Photo:
    - { id: 1, url: p1 }
  Stock:
    - { sku: s, site: { code: n }, pieces: 4 }
    - { sku: s, site: { code: m }, pieces: 5 }
fields:
  Query.me: User/2
  Query.random: { $repeat: "{$n}", item: { $expr: $index * 2 } }
  Query.hello: "Hello, {$name}!"
  User.best: { $list: Post, by: author }
  User.score: { $expr: "len(name) * $scale" }
  Stock.cost: { $expr: "price > 100 ? 0 : price / 2" }
  Virtual.label: "v-{id}"
  Virtual.next: "Virtual/{id}1"
"#;

fn ask(query: &str) -> Value {
    let answer = run(&subgraph(SDL, DATA), query, json!({}));
    assert_eq!(answer.get("errors"), None, "{query}: {answer}");
    answer["data"].clone()
}

#[test]
fn root_fields_find_filter_and_shorten() {
    for (query, expected) in [
        ("{ user(id: 2) { name } }", json!({"user": {"name": "Bob"}})),
        ("{ user(id: 9) { name } }", json!({ "user": null })),
        (
            "{ userByEmail(email: \"c@x\") { id } }",
            json!({"userByEmail": {"id": "3"}}),
        ),
        (
            "{ users { id } }",
            json!({"users": [{"id": "1"}, {"id": "2"}, {"id": "3"}]}),
        ),
        (
            "{ users(ids: [3, 1]) { id } }",
            json!({"users": [{"id": "1"}, {"id": "3"}]}),
        ),
        (
            "{ users(city: \"Oslo\", first: 1) { id } }",
            json!({"users": [{"id": "1"}]}),
        ),
        (
            "{ users(city: \"Oslo\", offset: 1) { id } }",
            json!({"users": [{"id": "3"}]}),
        ),
        (
            "{ users(last: 1, city: null) { id } }",
            json!({"users": [{"id": "3"}]}),
        ),
        ("{ users(first: -1) { id } }", json!({"users": []})),
        (
            "{ find(filter: {city: \"Oslo\", name: \"Cy\"}) { id } }",
            json!({"find": [{"id": "3"}]}),
        ),
        (
            "{ posts { id } }",
            json!({"posts": [{"id": "10"}, {"id": "11"}]}),
        ),
        (
            "{ posts(author: 1, first: 9) { id } }",
            json!({"posts": [{"id": "10"}, {"id": "12"}]}),
        ),
        ("{ me { name } }", json!({"me": {"name": "Bob"}})),
        ("{ random(n: 3) }", json!({"random": [0, 2, 4]})),
        (
            "{ hello a: hello(name: \"Ann\") }",
            json!({"hello": "Hello, you!", "a": "Hello, Ann!"}),
        ),
        (
            "{ media { __typename ... on Photo { url } } }",
            json!({"media": [{"__typename": "Post"}, {"__typename": "Post"}, {"__typename": "Post"},
                             {"__typename": "Post"}, {"__typename": "Photo", "url": "p1"}]}),
        ),
    ] {
        assert_eq!(ask(query), expected, "{query}");
    }
}

#[test]
fn references_lead_both_ways() {
    for (query, expected) in [
        (
            "{ posts(first: 1) { author { name } tags related { title } } }",
            json!({"posts": [{"author": {"name": "Ann"}, "tags": ["a", "b"],
                              "related": [{"title": "Second"}, {"title": "Third"}]}]}),
        ),
        (
            "{ users { posts { id } best { id } } }",
            json!({"users": [{"posts": [{"id": "10"}, {"id": "12"}], "best": {"id": "10"}},
                             {"posts": [{"id": "11"}], "best": {"id": "11"}},
                             {"posts": [], "best": null}]}),
        ),
        (
            "{ user(id: 1) { posts(first: 1) { id } } }",
            json!({"user": {"posts": [{"id": "10"}]}}),
        ),
        (
            "{ users(first: 2) { favourite { __typename ... on Photo { url } ... on Post { title } } } }",
            json!({"users": [{"favourite": {"__typename": "Photo", "url": "p1"}},
                             {"favourite": {"__typename": "Post", "title": "Second"}}]}),
        ),
        (
            "{ me { score a: score(scale: 3) } }",
            json!({"me": {"score": 3, "a": 9}}),
        ),
    ] {
        assert_eq!(ask(query), expected, "{query}");
    }
    let dangling = run(
        &subgraph(SDL, DATA),
        "{ posts(first: 9) { author { id } } }",
        json!({}),
    );
    assert_eq!(dangling["data"]["posts"][3]["author"], Value::Null);
    assert_eq!(
        dangling["errors"][0]["message"],
        json!("The data has no User with key \"9\"")
    );
}

#[test]
fn entities_are_found_by_any_key_and_see_their_representation() {
    let served = subgraph(SDL, DATA);
    let entities = |representations: Value| {
        let query = "query($r: [_Any!]!) { _entities(representations: $r) { __typename ... on User { id name }
                       ... on Stock { pieces cost site { code } } ... on Virtual { label next { label } } } }";
        run(&served, query, json!({ "r": representations }))
    };
    let answer = entities(json!([
        {"__typename": "User", "id": "3"},
        {"__typename": "User", "email": "b@x"},
        {"__typename": "User", "id": 1},
        {"__typename": "User", "id": "77"},
        {"__typename": "Stock", "sku": "s", "site": {"code": "m"}, "price": 50},
        {"__typename": "Stock", "sku": "s", "site": {"code": "n"}, "price": 101},
        {"__typename": "Virtual", "id": "5"},
    ]));
    assert_eq!(answer.get("errors"), None, "{answer}");
    assert_eq!(
        answer["data"]["_entities"],
        json!([
            {"__typename": "User", "id": "3", "name": "Cy"},
            {"__typename": "User", "id": "2", "name": "Bob"},
            {"__typename": "User", "id": "1", "name": "Ann"},
            null,
            {"__typename": "Stock", "pieces": 5, "cost": 25, "site": {"code": "m"}},
            {"__typename": "Stock", "pieces": 4, "cost": 0, "site": {"code": "n"}},
            {"__typename": "Virtual", "label": "v-5", "next": {"label": "v-51"}},
        ])
    );
    for (wrong, message) in [
        (
            json!({"id": 1}),
            "A representation must have a \"__typename\"",
        ),
        (
            json!({"__typename": "Nope"}),
            "Unknown type \"Nope\" in a representation",
        ),
        (
            json!({"__typename": "Site"}),
            "Type \"Site\" is not an entity here",
        ),
        (
            json!({"__typename": "User"}),
            "The representation has none of the keys of \"User\".",
        ),
        (json!(5), "A representation must be an object"),
    ] {
        let answer = entities(json!([wrong]));
        assert_eq!(answer["data"], json!({"_entities": [null]}));
        assert_eq!(answer["errors"][0]["message"], json!(message));
        assert_eq!(answer["errors"][0]["path"], json!(["_entities", 0]));
    }
}

#[test]
fn external_fields_are_refused_unless_provided() {
    let sdl = r#"
        type Query { post: Post direct: User }
        type Post @key(fields: "id") { id: ID! author: User @provides(fields: "name home { city }") other: User }
        extend type User @key(fields: "id") { id: ID! @external name: String @external home: Home city: String @external }
        type Home { city: String @external zip: String }
    "#;
    let data = "types: { Post: [{ id: 1, author: 1, other: 1 }], User: [{ id: 1, name: Ann, city: Oslo, home: { city: Oslo, zip: z } }] }";
    let served = subgraph(sdl, data);
    let answer = run(
        &served,
        "{ post { author { id name home { city zip } city } other { id name home { zip city } } } direct { name } }",
        json!({}),
    );
    assert_eq!(
        answer["data"],
        json!({"post": {"author": {"id": "1", "name": "Ann", "home": {"city": "Oslo", "zip": "z"}, "city": null},
                        "other": {"id": "1", "name": null, "home": {"zip": "z", "city": null}}},
               "direct": {"name": null}})
    );
    let paths: Vec<&Value> = answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["path"])
        .collect();
    assert_eq!(
        paths,
        [
            &json!(["post", "author", "city"]),
            &json!(["post", "other", "name"]),
            &json!(["post", "other", "home", "city"]),
            &json!(["direct", "name"])
        ]
    );
}

#[test]
fn mutations_answer_with_their_arguments_over_the_row() {
    let answer =
        ask_mutation("mutation { updateUser(id: 2, input: {city: \"Pisa\"}) { id name city } }");
    assert_eq!(
        answer,
        json!({"updateUser": {"id": "2", "name": "Bob", "city": "Pisa"}})
    );
    assert_eq!(
        ask_mutation("mutation { rename(id: 2, name: \"Bea\") { name email } }"),
        json!({"rename": {"name": "Bea", "email": "b@x"}})
    );
}

fn ask_mutation(query: &str) -> Value {
    ask(query)
}

#[test]
fn mistakes_in_a_data_file_are_named() {
    for (text, place, message) in [
        ("types: [", "", "line"),
        ("typs: {}", "typs", "unknown section"),
        (
            "types: { User: 5 }",
            "types.User",
            "expected a list of rows",
        ),
        ("types: { User: [5] }", "types.User[0]", "expected a row"),
        ("fields: { User: 1 }", "fields.User", "coordinate"),
        (
            "fields: { User.a: { $expr: '1 +' } }",
            "fields.User.a",
            "ends too early",
        ),
        (
            "fields: { User.a: { $lost: 1 } }",
            "fields.User.a",
            "unknown instruction",
        ),
        ("- 1", "", "expected a mapping"),
    ] {
        let error = Data::parse(text).unwrap_err();
        assert_eq!(error.place, place, "{text}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    let data = Data::parse("types: { Usr: [], User: [] }\nfields: { Pst.a: 1 }").unwrap();
    assert_eq!(data.unknown_types(|name| name == "User"), ["Pst", "Usr"]);
}

#[test]
fn rules_that_depend_on_themselves_are_an_error() {
    let served = subgraph(
        "type Query { a: Int b: Int }",
        "fields: { Query.a: { $expr: b + 1 }, Query.b: { $expr: a + 1 } }",
    );
    let answer = run(&served, "{ a }", json!({}));
    assert_eq!(answer["data"], json!({ "a": null }));
    assert!(
        answer["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("depends on itself")
    );
}

#[test]
fn deep_queries_fit_on_a_small_stack() {
    let served = subgraph(
        "type Query { a: A! } type A { a: A! l: [[A!]!]! n: Int! }",
        "fields: { Query.a: { n: 1 }, A.a: { n: '{n}' }, A.l: [[{ n: 2 }]], A.n: 1 }",
    );
    // As deep as the parser allows, by fields and by lists.
    for (open, depth) in [("{ a ", 190), ("{ ... on A ", 150), ("{ l ", 190)] {
        let query = format!(
            "{{ a {} {{ n }} {}",
            open.repeat(depth),
            "}".repeat(depth + 1)
        );
        // A response this deep is beyond the JSON parser, so look at its text.
        let body = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(2 << 20);
            let run = || served.execute(&query, None, &Default::default(), &Default::default());
            thread
                .spawn_scoped(scope, run)
                .unwrap()
                .join()
                .unwrap()
                .body
        });
        let text = String::from_utf8(body).unwrap();
        assert!(text.starts_with("{\"data\":"), "{text}");
    }
    // Fragments nest deeper than the parser allows in one place; execution has its own limit.
    let mut query = String::from("{ a { ...F0 } } ");
    for i in 0..40 {
        let (open, close) = ("{ a ".repeat(10), "}".repeat(10));
        query.push_str(&format!(
            "fragment F{i} on A {open} {{ ...F{} }} {close} ",
            i + 1
        ));
    }
    query.push_str("fragment F40 on A { n }");
    let answer = run(&served, &query, json!({}));
    assert_eq!(answer["data"], Value::Null);
    assert!(
        answer["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("nested deeper")
    );
}
