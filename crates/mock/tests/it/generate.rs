//! Generated values: pure, the same in every subgraph and in a monolith, and strict about representations.

use std::sync::Arc;

use ogive_mock::{Federation, Generator, GeneratorOptions, Model, Options, Source, Subgraph};
use serde_json::{Map, Value, json};

use crate::support::run;

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key", "@shareable", "@external", "@requires", "@interfaceObject", "@inaccessible"])"#;

const CATALOGUE: &str = r#"
type Query { media(first: Int): [Media!]! book(id: ID!): Book byCode(code: Int!): Item pick: Pick items(size: Int, colour: Colour = RED): [Item] }
interface Media @key(fields: "id") { id: ID! title: String author: Person }
type Book implements Media @key(fields: "id") { id: ID! title: String author: Person pages: Int colour: Colour }
type Film implements Media @key(fields: "id") { id: ID! title: String author: Person minutes: Float size: Size @shareable }
type Person @key(fields: "id") { id: ID! name: String @shareable born: Int }
type Item @key(fields: "id") @key(fields: "code") { id: ID! code: Int! size: Size @shareable price: Float tags: [String!] owner: Person where: Place }
type Place @key(fields: "spot { code } kind") { spot: Spot! kind: Kind! note: String }
type Spot { code: String! @shareable label: String @shareable }
type Size @shareable { w: Int h: Int unit: Unit }
enum Unit { MM CM INCH }
enum Colour { RED GREEN BLUE }
enum Kind { A B }
union Pick = Book | Item | Size
"#;

const REVIEWS: &str = r#"
type Query { best: Media reviews: [Review] }
type Media @key(fields: "id") @interfaceObject { id: ID! stars: Int reviews(first: Int = 2): [Review!]! }
type Review @key(fields: "id") { id: ID! text: String about: Media! by: Person unit: Unit }
type Person @key(fields: "id") { id: ID! name: String! @shareable reviews: [Review] }
enum Unit { CM INCH }
"#;

const STOCK: &str = r#"
type Query { places: [Place] }
type Item @key(fields: "code") { code: Int! price: Float @external size: Size! @shareable left: Int cost(days: Int = 3): Float @requires(fields: "price size { w unit }") }
type Place @key(fields: "spot { code } kind") { spot: Spot! kind: Kind! items: [Item!] }
type Spot { code: String! @shareable label: String @shareable }
type Size @shareable { w: Int h: Int! unit: Unit }
enum Unit { MM CM INCH }
enum Kind { A B }
"#;

const MONOLITH: &str = r#"
type Query { media(first: Int): [Media!]! book(id: ID!): Book byCode(code: Int!): Item pick: Pick items(size: Int, colour: Colour = RED): [Item] best: Media reviews: [Review] places: [Place] }
interface Media { id: ID! title: String author: Person stars: Int reviews(first: Int = 2): [Review!]! }
type Book implements Media { id: ID! title: String author: Person pages: Int colour: Colour stars: Int reviews(first: Int = 2): [Review!]! }
type Film implements Media { id: ID! title: String author: Person minutes: Float size: Size stars: Int reviews(first: Int = 2): [Review!]! }
type Person { id: ID! name: String born: Int reviews: [Review] }
type Item { id: ID! code: Int! size: Size price: Float tags: [String!] owner: Person where: Place left: Int cost(days: Int = 3): Float }
type Place { spot: Spot! kind: Kind! note: String items: [Item!] }
type Spot { code: String! label: String }
type Size { w: Int h: Int unit: Unit }
type Review { id: ID! text: String about: Media! by: Person unit: Unit }
enum Unit { MM CM INCH }
enum Colour { RED GREEN BLUE }
enum Kind { A B }
union Pick = Book | Item | Size
"#;

struct Graph {
    monolith: Subgraph,
    subgraphs: Vec<Subgraph>,
    generator: Arc<Generator>,
}

fn graph(options: GeneratorOptions) -> Graph {
    let model =
        |sdl: &str| Model::from_sdl("s", sdl, Federation::Auto).unwrap_or_else(|e| panic!("{e}"));
    let models: Vec<Model> = [CATALOGUE, REVIEWS, STOCK]
        .iter()
        .map(|sdl| model(&format!("{LINK}\n{sdl}")))
        .collect();
    let generator = Arc::new(Generator::new(&models.iter().collect::<Vec<_>>(), options));
    let serve = |model| {
        let source = Source::Generated(generator.clone());
        Subgraph::from_model(model, source, Options::default())
    };
    Graph {
        monolith: serve(model(MONOLITH)),
        subgraphs: models.into_iter().map(serve).collect(),
        generator,
    }
}

fn nulls(per_mille: u32, seed: u64) -> GeneratorOptions {
    GeneratorOptions {
        seed,
        null_per_mille: per_mille,
        wild: true,
        list_min: 0,
        ..GeneratorOptions::default()
    }
}

fn data(answer: &Value) -> &Value {
    assert_eq!(answer.get("errors"), None, "{answer}");
    &answer["data"]
}

#[test]
fn every_subgraph_gives_what_the_monolith_gives() {
    for seed in 0..20 {
        let graph = graph(nulls(150, seed));
        let [catalogue, reviews, stock] = graph.subgraphs.as_slice() else {
            panic!("three subgraphs");
        };
        let same = |subgraph: &Subgraph, query: &str| {
            let expected = run(&graph.monolith, query, json!({}));
            assert_eq!(
                run(subgraph, query, json!({})),
                expected,
                "seed {seed}: {query}"
            );
        };
        same(
            catalogue,
            "{ media(first: 6) { __typename id title author { id name born } ... on Book { pages colour } ... on Film { minutes size { w h unit } } }
               items(size: 4) { id code size { w h unit } price tags owner { name } where { spot { code label } kind note } }
               blue: items(size: 2, colour: BLUE) { id }
               pick { __typename ... on Size { w } ... on Book { id } ... on Item { id } } }",
        );
        same(
            reviews,
            "{ reviews { id text about { id stars reviews { id } } by { id name reviews { id } } unit } best { id stars } }",
        );
        same(
            stock,
            "{ places { spot { code label } kind items { code size { w h } left } } }",
        );
    }
}

/// Walks the monolith and asks every subgraph for the same entity by each of its keys.
#[test]
fn entities_are_the_same_by_every_key() {
    let mut n_compared = 0;
    for seed in 0..20 {
        let graph = graph(nulls(150, seed));
        let found = run(
            &graph.monolith,
            "{ items(size: 10) { __typename id code size { w unit } price left cost(days: 2) owner { __typename id name born reviews { id } }
                 where { __typename spot { code } kind note items { code } } }
               media(first: 10) { __typename id title stars reviews { id } } }",
            json!({}),
        );
        let [catalogue, reviews, stock] = graph.subgraphs.as_slice() else {
            panic!("three subgraphs");
        };
        let mut compare = |subgraph: &Subgraph,
                           selection: &str,
                           representation: Value,
                           expected: &Value,
                           names: &[&str]| {
            let query = format!(
                "query($r: [_Any!]!) {{ _entities(representations: $r) {{ {selection} }} }}"
            );
            let answer = run(subgraph, &query, json!({ "r": [representation] }));
            let entity = &data(&answer)["_entities"][0];
            for name in names {
                assert_eq!(
                    entity[*name], expected[*name],
                    "seed {seed}: {name} of {representation}"
                );
                n_compared += 1;
            }
        };
        for item in found["data"]["items"].as_array().into_iter().flatten() {
            if item.is_null() {
                continue;
            }
            let fields = "... on Item { id code price }";
            for key in ["id", "code"] {
                let representation = json!({"__typename": "Item", key: item[key]});
                compare(
                    catalogue,
                    fields,
                    representation,
                    item,
                    &["id", "code", "price"],
                );
            }
            let mut representation = json!({"__typename": "Item", "code": item["code"]});
            representation["price"] = item["price"].clone();
            representation["size"] = item["size"].clone();
            compare(
                stock,
                "... on Item { left cost(days: 2) }",
                representation,
                item,
                &["left", "cost"],
            );
            let owner = &item["owner"];
            if !owner.is_null() {
                let representation = json!({"__typename": "Person", "id": owner["id"]});
                compare(
                    reviews,
                    "... on Person { name reviews { id } }",
                    representation.clone(),
                    owner,
                    &["name", "reviews"],
                );
                compare(
                    catalogue,
                    "... on Person { name born }",
                    representation,
                    owner,
                    &["name", "born"],
                );
            }
            let place = &item["where"];
            if !place.is_null() {
                let representation =
                    json!({"__typename": "Place", "spot": place["spot"], "kind": place["kind"]});
                compare(
                    stock,
                    "... on Place { items { code } kind }",
                    representation,
                    place,
                    &["items", "kind"],
                );
            }
        }
        for media in found["data"]["media"].as_array().unwrap() {
            let representation = json!({"__typename": "Media", "id": media["id"]});
            compare(
                reviews,
                "... on Media { id stars reviews { id } }",
                representation.clone(),
                media,
                &["id", "stars", "reviews"],
            );
            // The interface tells the concrete type.
            compare(
                catalogue,
                "... on Media { __typename title }",
                representation,
                media,
                &["__typename", "title"],
            );
            let representation = json!({"__typename": media["__typename"], "id": media["id"]});
            compare(
                catalogue,
                "... on Media { __typename title }",
                representation,
                media,
                &["__typename", "title"],
            );
        }
    }
    assert!(n_compared > 2000, "{n_compared}");
}

#[test]
fn wrong_representations_are_refused() {
    let graph = graph(nulls(0, 7));
    let found = run(
        &graph.monolith,
        "{ items(size: 1) { code price size { w unit } } media(first: 1) { __typename id } }",
        json!({}),
    );
    let item = &found["data"]["items"][0];
    let media = &found["data"]["media"][0];
    let ask = |subgraph: usize, representation: Value| {
        let query = "query($r: [_Any!]!) { _entities(representations: $r) { __typename ... on Item { c: cost } } }";
        let query = if subgraph == 2 {
            query.to_string()
        } else {
            query.replace("... on Item { c: cost }", "")
        };
        run(
            &graph.subgraphs[subgraph],
            &query,
            json!({ "r": [representation] }),
        )
    };
    let full = json!({"__typename": "Item", "code": item["code"], "price": item["price"], "size": item["size"]});
    data(&ask(2, full.clone()));
    let change = |pointer: &str, value: Value| {
        let mut changed = full.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let mut missing = full.clone();
    missing.as_object_mut().unwrap().remove("price");
    for wrong in [
        missing,
        change("/price", json!(1.125)),
        change("/size/w", json!(5000)),
        change("/size", json!(null)),
    ] {
        let answer = ask(2, wrong.clone());
        assert_eq!(
            answer["errors"][0]["path"],
            json!(["_entities", 0, "c"]),
            "{wrong}"
        );
    }
    let other = if media["__typename"] == "Book" {
        "Film"
    } else {
        "Book"
    };
    for wrong in [
        json!({"__typename": other, "id": media["id"]}),
        json!({"__typename": "Book", "id": "17"}),
        json!({"__typename": "Item", "code": "x"}),
        json!({"__typename": "Place", "spot": {"code": "Spot:1:code"}, "kind": "C"}),
    ] {
        let answer = ask(0, wrong.clone());
        assert_eq!(
            answer["errors"][0]["path"],
            json!(["_entities", 0]),
            "{wrong}"
        );
    }
    // A field that requires others is not resolved on the way.
    let answer = run(
        &graph.subgraphs[2],
        "{ places { items { cost } } }",
        json!({}),
    );
    assert!(
        answer["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("requires other fields")
    );
}

#[test]
fn root_arguments_find_entities_and_count_lists() {
    let graph = graph(nulls(0, 1));
    let found = run(
        &graph.monolith,
        "{ items(size: 7) { id code } media(first: 20) { __typename id } }",
        json!({}),
    );
    let items = found["data"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 7);
    for item in items {
        let answer = run(
            &graph.monolith,
            "query($c: Int!) { byCode(code: $c) { id code } }",
            json!({"c": item["code"]}),
        );
        assert_eq!(&data(&answer)["byCode"], item);
    }
    let media = found["data"]["media"].as_array().unwrap();
    let book = media.iter().find(|m| m["__typename"] == "Book").unwrap();
    let answer = run(
        &graph.monolith,
        "query($i: ID!) { book(id: $i) { __typename id } }",
        json!({"i": book["id"]}),
    );
    assert_eq!(&data(&answer)["book"], book);
}

#[test]
fn values_are_pure_and_depend_on_everything_they_should() {
    let one = graph(nulls(0, 1));
    let model = one.monolith.model();
    let value = |generator: &Generator, identity: u64, field: &str, arguments: Value| {
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        generator
            .value(model, "Item", identity, field, &arguments)
            .unwrap()
    };
    let generator = &one.generator;
    assert_eq!(value(generator, 7, "id", json!({})), json!("Item:7:id"));
    assert_eq!(value(generator, 7, "code", json!({})), json!(7));
    let price = |identity| value(generator, identity, "left", json!({}));
    assert_eq!(price(7), price(7));
    assert!((0..20).any(|i| price(i) != price(i + 1)));
    assert_ne!(
        (0..20)
            .map(|i| value(generator, i, "cost", json!({"days": 1})))
            .collect::<Vec<_>>(),
        (0..20)
            .map(|i| value(generator, i, "cost", json!({"days": 2})))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        value(generator, 3, "cost", json!({"days": 1})),
        value(generator, 3, "cost", json!({"days": 1.0}))
    );
    let other = graph(nulls(0, 2));
    let all = |generator: &Generator| {
        (0..20)
            .map(|i| value(generator, i, "left", json!({})))
            .collect::<Vec<_>>()
    };
    assert_ne!(all(generator), all(&other.generator));
    assert_eq!(generator.value(model, "Item", 1, "nope", &Map::new()), None);
    let owner = generator
        .value(model, "Item", 1, "owner", &Map::new())
        .unwrap();
    assert_eq!(owner["__typename"], json!("Person"));
    assert!(owner["$identity"].is_u64());
}

#[test]
fn rates_are_rates() {
    // The first seed for which the list itself is there.
    let answer = (0..)
        .map(|seed| {
            let options = GeneratorOptions {
                error_per_mille: 100,
                population: 100_000,
                ..nulls(500, seed)
            };
            let query = "{ items(size: 1000) { id tags price } }";
            run(&graph(options).monolith, query, json!({}))
        })
        .find(|answer| answer["data"]["items"].is_array())
        .unwrap();
    let items = answer["data"]["items"].as_array().unwrap();
    let n_null = items.iter().filter(|i| i.is_null()).count();
    assert!((400..600).contains(&n_null), "{n_null}");
    let n_errors = answer["errors"].as_array().unwrap().len();
    // `tags` alone: `price` is required elsewhere and keys never fail.
    assert!((20..100).contains(&n_errors), "{n_errors}");
    for error in answer["errors"].as_array().unwrap() {
        assert_eq!(error["path"][2], json!("tags"));
    }
}
