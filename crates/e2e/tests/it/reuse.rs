//! What may be taken over inside one query, and everything that must be asked again: composed subgraphs, real sockets,
//! all modes of `execution.reuse`. Subgraphs that keep to the assumption (one entity, one field, equal arguments: one
//! value) give the same answer in every mode; those that do not show what each mode makes of them.

use std::sync::Arc;

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_mock::{Data, Options, Server, Service, Settings, Source, Subgraph};
use serde_json::{Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::post_with,
};

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3",
    import: ["@key", "@external", "@provides", "@requires", "@shareable", "@interfaceObject"])
"#;

/// Users are owned here; `me` leads to one past `_entities`.
const USERS: &str = r#"
type Query { me: User }
type Mutation { rename(id: ID!, name: String!): User }
type User @key(fields: "id") { id: ID! name: String @shareable rank(of: String = "all"): String next: User }
"#;

/// Posts lead to users by their keys, and some know a pen name. Users lead to posts, so that whoever asks a user's
/// posts for their authors is back at the users three requests later.
const POSTS: &str = r#"
type Query { posts: [Post!]! signed: [Post!]! @provides(fields: "author { name }") }
type Post { id: ID! author: User }
type User @key(fields: "id") { id: ID! name: String @external posts: [Post!]! }
"#;

/// Rules and rows; `change` has the last word.
fn data(change: Value) -> Value {
    let mut data = json!({
        "types": {
            "User": [
                { "id": "1", "name": "Ann", "next": "2", "code": "one" },
                { "id": "2", "name": "Bob", "next": "1", "code": "two" },
            ],
            "Post": [{ "id": "10", "author": "1" }, { "id": "11", "author": "1" }],
        },
        "fields": {
            "Query.me": "User/1",
            "Query.posts": ["Post/10", "Post/11"],
            "Query.signed": ["Post/10"],
            "User.rank": "{name} of {$of}",
        },
    });
    for (section, members) in change.as_object().unwrap() {
        for (name, value) in members.as_object().unwrap() {
            data[section][name] = value.clone();
        }
    }
    data
}

/// The subgraphs, served.
struct Subgraphs {
    service: Arc<Service>,
    mock: Server,
    supergraph: String,
}

impl Subgraphs {
    fn start(sdls: &[(&str, &str)], data: Value) -> Subgraphs {
        let source = Source::Data(Data::from_json(data).unwrap().into());
        let sdls: Vec<(&str, String)> = sdls
            .iter()
            .map(|(name, sdl)| (*name, format!("{LINK}{sdl}")))
            .collect();
        let mut service = Service::new();
        for (name, sdl) in &sdls {
            let subgraph = Subgraph::new(name, sdl, source.clone(), Options::default())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let settings = Settings {
                record: true,
                ..Settings::default()
            };
            service.add(name, subgraph, settings);
        }
        let inputs: Vec<SubgraphInput<'_>> = sdls
            .iter()
            .map(|(name, sdl)| SubgraphInput { name, url: "", sdl })
            .collect();
        let composed = compose(&inputs, &ComposeOptions::default());
        let supergraph = composed
            .supergraph_sdl
            .unwrap_or_else(|| panic!("{:#?}", composed.errors));
        let service = Arc::new(service);
        Subgraphs {
            mock: Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap(),
            service,
            supergraph,
        }
    }
    /// A gateway before them.
    fn serve(&self, yaml: &str) -> Served {
        let mut config = config(yaml);
        for name in self.service.names() {
            let url = Url(self.mock.url(name));
            config.override_subgraph_url.insert(name.into(), url);
        }
        Served::start(state(&self.supergraph, &config), &config)
    }
    /// The answer under `execution`, as text, and how many requests `subgraph` got.
    fn ask(&self, execution: &str, query: &str, subgraph: &str) -> (String, u64) {
        let served = self.serve(&format!("execution: {{ {execution} }}"));
        self.service.reset();
        let answer = post_with(served.address, query, &[]);
        assert_eq!(self.service.total().refused, 0);
        let counts = self.service.counts(subgraph).unwrap();
        (answer.text(), counts.requests)
    }
    /// The same answer in every mode; gives it, and the requests that `subgraph` got with `off`, `entities` and `all`.
    fn alike(&self, query: &str, subgraph: &str) -> (String, [u64; 3]) {
        let (off, n) = self.ask("reuse: off", query, subgraph);
        let mut counts = [n, 0, 0];
        for (at, mode) in [(1, "reuse: entities"), (2, "reuse: all")] {
            let (answer, n) = self.ask(mode, query, subgraph);
            assert_eq!(answer, off, "{mode}");
            counts[at] = n;
        }
        (off, counts)
    }
}

fn users_and_posts(change: Value) -> Subgraphs {
    Subgraphs::start(&[("users", USERS), ("posts", POSTS)], data(change))
}

/// `me` as an object whose name is told on this path only.
fn me_is(name: Value) -> Value {
    json!({ "fields": { "Query.me": { "id": "1", "name": name } } })
}

const ME_AND_AUTHORS: &str = "{ me { id name posts { author { name } } } }";

#[test]
fn what_was_said_of_an_entity_is_not_asked_again() {
    let graph = users_and_posts(json!({}));
    let (answer, requests) = graph.alike(ME_AND_AUTHORS, "users");
    assert_eq!(requests, [2, 2, 1]);
    assert_eq!(
        answer,
        r#"{"data":{"me":{"id":"1","name":"Ann","posts":[{"author":{"name":"Ann"}},{"author":{"name":"Ann"}}]}}}"#
    );
    // It is what a configuration that says nothing does.
    let served = graph.serve("");
    graph.service.reset();
    assert_eq!(
        post_with(served.address, ME_AND_AUTHORS, &[]).text(),
        answer
    );
    assert_eq!(graph.service.counts("users").unwrap().requests, 1);
}

#[test]
fn a_subgraph_that_answers_by_path_can_be_left_out() {
    let graph = users_and_posts(me_is("Me".into()));
    let by_path = |name| {
        format!(
            r#"{{"data":{{"me":{{"id":"1","name":"Me","posts":[{{"author":{{"name":"{name}"}}}},{{"author":{{"name":"{name}"}}}}]}}}}}}"#
        )
    };
    for (execution, name, requests) in [
        // This is what the mode assumes not to happen.
        ("reuse: all", "Me", 1),
        ("reuse: entities", "Ann", 2),
        ("reuse: off", "Ann", 2),
        (
            "reuse: all, subgraphs: { users: { reuse: entities } }",
            "Ann",
            2,
        ),
        ("reuse: all, subgraphs: { users: { reuse: off } }", "Ann", 2),
        ("reuse: all, subgraphs: { posts: { reuse: off } }", "Me", 1),
        // Never more than the gateway as a whole.
        (
            "reuse: entities, subgraphs: { users: { reuse: all } }",
            "Ann",
            2,
        ),
    ] {
        let found = graph.ask(execution, ME_AND_AUTHORS, "users");
        assert_eq!(found, (by_path(name), requests), "{execution}");
    }
}

#[test]
fn other_arguments_are_another_value() {
    let graph = users_and_posts(json!({}));
    let query = r#"{ me { id r: rank(of: "A") posts { author { r: rank(of: "B") } } } }"#;
    let (answer, requests) = graph.alike(query, "users");
    assert_eq!(requests, [2, 2, 2]);
    assert!(answer.contains(r#"{"id":"1","r":"Ann of A","#), "{answer}");
    assert!(
        answer.contains(r#"{"author":{"r":"Ann of B"}}"#),
        "{answer}"
    );
    // By other names, with equal arguments, it is the same value.
    let query = query.replacen("r:", "mine:", 1).replace('B', "A");
    let (answer, requests) = graph.alike(&query, "users");
    assert_eq!(requests, [2, 2, 1]);
    assert!(
        answer.contains(r#"{"author":{"r":"Ann of A"}}"#),
        "{answer}"
    );
    // An argument that is left out is not the one that is given.
    let query = r#"{ me { id rank(of: "A") posts { author { rank } } } }"#;
    let (answer, requests) = graph.alike(query, "users");
    assert_eq!(requests, [2, 2, 2]);
    assert!(
        answer.contains(r#"{"author":{"rank":"Ann of all"}}"#),
        "{answer}"
    );
}

#[test]
fn what_was_not_wanted_this_time_is_asked() {
    let graph = users_and_posts(json!({}));
    for (wanted, requests) in [(true, 1), (false, 2)] {
        let query = format!(
            "query($a: Boolean = {wanted}) {{ me {{ id name @include(if: $a) posts {{ author {{ name }} }} }} }}"
        );
        let (answer, n) = graph.alike(&query, "users");
        assert_eq!(n[2], requests);
        assert!(answer.contains(r#"{"author":{"name":"Ann"}}"#), "{answer}");
    }
    // Fields that come later are asked, for all that is known.
    let query = "{ me { id name posts { author { name rank } } } }";
    let (answer, requests) = graph.alike(query, "users");
    assert_eq!(requests, [2, 2, 2]);
    assert!(answer.contains(r#""rank":"Ann of all""#), "{answer}");
}

#[test]
fn provided_values_stay_on_their_path() {
    // The pen name is the posts' own and told on one path; the name is the users'.
    let graph = users_and_posts(json!({
        "types": { "Post": [{ "id": "10", "author": { "id": "1", "name": "Pen" } }] },
        "fields": { "Query.posts": ["Post/10"] },
    }));
    let query = "{ signed { author { id name } } posts { author { id name } } }";
    let (answer, requests) = graph.alike(query, "users");
    assert_eq!(requests, [1, 1, 1]);
    assert_eq!(
        answer,
        r#"{"data":{"signed":[{"author":{"id":"1","name":"Pen"}}],"posts":[{"author":{"id":"1","name":"Ann"}}]}}"#
    );
}

#[test]
fn errors_and_nulls_are_asked_again() {
    let author = r#""posts":[{"author":{"name":"Ann"}},{"author":{"name":"Ann"}}]"#;
    for first in [json!({ "$error": "no luck" }), Value::Null] {
        let graph = users_and_posts(me_is(first));
        let (answer, requests) = graph.alike(ME_AND_AUTHORS, "users");
        assert_eq!(requests, [2, 2, 2]);
        assert!(answer.contains(author), "{answer}");
        assert!(
            answer.contains(r#""me":{"id":"1","name":null,"#),
            "{answer}"
        );
    }
    // An error anywhere in an answer makes all of it doubtful.
    let graph = users_and_posts(json!({
        "fields": { "Query.me": { "id": "1", "name": "Me", "rank": { "$error": "no luck" } } }
    }));
    let query = "{ me { id name rank posts { author { name } } } }";
    let (answer, requests) = graph.alike(query, "users");
    assert_eq!(requests, [2, 2, 2]);
    assert!(answer.contains(author), "{answer}");
}

#[test]
fn a_value_after_a_null_is_a_value() {
    // The author is found first, at the end of a chain that begins with null.
    let graph = users_and_posts(me_is(Value::Null));
    let query = "{ me { id name posts { author { name next { next { name } } } } } }";
    let (answer, _) = graph.alike(query, "users");
    assert!(
        answer.contains(r#"{"author":{"name":"Ann","next":{"next":{"name":"Ann"}}}}"#),
        "{answer}"
    );
}

#[test]
fn mutations_ask_for_everything() {
    let graph = users_and_posts(json!({}));
    let mutation =
        r#"mutation { rename(id: "1", name: "New") { id name posts { author { name } } } }"#;
    let (answer, requests) = graph.alike(mutation, "users");
    assert_eq!(requests, [2, 2, 2]);
    // The mock stores nothing, so that the second value tells where it comes from.
    assert_eq!(
        answer,
        r#"{"data":{"rename":{"id":"1","name":"New","posts":[{"author":{"name":"Ann"}},{"author":{"name":"Ann"}}]}}}"#
    );
}

/// The label is computed from a code that another subgraph owns.
const LABELS: &str = r#"
type User @key(fields: "id") {
  id: ID!
  code: String @external
  label: String @requires(fields: "code")
  next: User
}
"#;
const CODES: &str = r#"
type Query { first: User second: User }
type User @key(fields: "id") { id: ID! code: String }
"#;

#[test]
fn computed_values_belong_to_what_they_are_computed_from() {
    let query = "{ first { id label next { next { id label } } } }";
    let start = |first: Value| {
        let mut data = data(json!({}));
        data["fields"] = json!({ "Query.first": first, "User.label": "label {code}" });
        Subgraphs::start(&[("labels", LABELS), ("codes", CODES)], data)
    };
    // The same user at both ends, with the same code: one label is enough.
    let (answer, [_, entities, all]) = start("User/1".into()).alike(query, "labels");
    assert!(
        answer.contains(
            r#"{"id":"1","label":"label one","next":{"next":{"id":"1","label":"label one"}}}"#
        ),
        "{answer}"
    );
    assert!(all <= entities);
    // With another code on the first path, each has the label of its own code. That path is the codes' affair, which
    // is why they are left out.
    let graph = start(json!({ "id": "1", "code": "other" }));
    for execution in [
        "reuse: off",
        "reuse: entities",
        "reuse: all, subgraphs: { codes: { reuse: entities } }",
    ] {
        let (answer, _) = graph.ask(execution, query, "labels");
        assert!(
            answer.contains(
                r#"{"id":"1","label":"label other","next":{"next":{"id":"1","label":"label one"}}}"#
            ),
            "{execution}: {answer}"
        );
    }
}

#[test]
fn nothing_outlives_its_request() {
    let graph = users_and_posts(json!({}));
    let served = graph.serve(
        "headers: { all: { request: [{ propagate: { named: authorization } }] } }\nexecution: { reuse: all }",
    );
    graph.service.reset();
    for identity in ["Bearer ann", "Bearer bob", "Bearer ann"] {
        let before = graph.service.recorded().len();
        post_with(
            served.address,
            ME_AND_AUTHORS,
            &[("authorization", identity)],
        );
        let sent = graph.service.recorded().split_off(before);
        // The users once, the posts once, every time, with the credentials of the one who asks.
        assert_eq!(sent.len(), 2);
        for request in sent {
            let mut headers = request.headers.iter();
            assert!(headers.any(|(name, value)| name == "authorization" && value == identity));
        }
    }
}

/// Items have stars, whatever they are.
const STARS: &str = r#"
type Query { top: [Item!]! }
type Item @key(fields: "id") @interfaceObject { id: ID! stars: Int }
"#;

#[test]
fn interface_objects_are_told_apart_by_their_type() {
    let items = |films: &str| {
        format!(
            r#"
            type Query {{ books: [Item!]! }}
            interface Item @key(fields: "id") {{ id: ID! title: String }}
            type Book implements Item @key(fields: "id") {{ id: ID! title: String }}
            {films}"#
        )
    };
    let film = r#"type Film implements Item @key(fields: "id") { id: ID! title: String }"#;
    let query = "{ top { id stars title } books { __typename id title stars } }";
    for films in [film, ""] {
        let mut data = json!({
            "types": {
                "Book": [{ "id": "1", "title": "One" }, { "id": "2", "title": "Two" }],
                "Item": [{ "id": "1", "stars": 1 }, { "id": "2", "stars": 2 }, { "id": "9", "stars": 9 }],
            },
            "fields": { "Query.top": ["Item/1"], "Query.books": ["Book/1", "Book/2"] },
        });
        if !films.is_empty() {
            data["types"]["Film"] = json!([{ "id": "9", "title": "Nine" }]);
            data["fields"]["Query.top"] = json!(["Item/1", "Item/9"]);
        }
        let sdl = items(films);
        let graph = Subgraphs::start(&[("stars", STARS), ("items", &sdl)], data);
        let (answer, _) = graph.alike(query, "stars");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer.get("errors"), None, "{answer}");
        assert_eq!(
            answer["data"]["books"],
            json!([
                { "__typename": "Book", "id": "1", "title": "One", "stars": 1 },
                { "__typename": "Book", "id": "2", "title": "Two", "stars": 2 },
            ])
        );
        assert_eq!(answer["data"]["top"][0]["title"], "One");
    }
}
