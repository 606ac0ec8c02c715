//! The demo graph of `examples/demo`: its four subgraphs can be served, its supergraph can be read, and the engine over
//! the merged schema gives the expected answer. Bless with `BLESS=1`.

use std::{fs, path::PathBuf, sync::Arc};

use ogive_base::{FastMap, SourceId};
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_mock::{Config, Data, Model, Options, Sdl, Source, Subgraph, Vocabulary};
use ogive_testbase::assert_recorded;
use serde_json::{Map, Value, json};

use crate::support::{assert_same, build, run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn source() -> Source {
    Source::Data(
        Data::parse(&text("data.yaml"))
            .unwrap_or_else(|e| panic!("{e}"))
            .into(),
    )
}

fn monolith() -> Subgraph {
    let read = read_supergraph(
        &text("supergraph.graphql"),
        SourceId(0),
        &ReadOptions::default(),
    );
    let supergraph = read.unwrap_or_else(|errors| panic!("{errors:#?}"));
    let model = Model::from_schema(Arc::new(supergraph.api), "", &Vocabulary::default());
    Subgraph::from_model(model, source(), Options::default())
}

#[test]
fn the_query_has_the_expected_answer() {
    let answer = monolith().execute(
        &text("query.graphql"),
        None,
        &Map::new(),
        &FastMap::default(),
    );
    let found: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_recorded(folder().join("expected.json"), &format!("{found:#}\n"));
    // To the byte, which reading it does not show.
    let expected: Value = serde_json::from_str(&text("expected.json")).unwrap();
    assert_same(&answer.body, &expected.to_string());
}

#[test]
fn every_subgraph_of_the_config_can_be_served_and_knows_its_entities() {
    let config = Config::parse(&text("mock.yaml"), &folder()).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = config.subgraphs.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["accounts", "inventory", "products", "reviews"]);
    for subgraph in &config.subgraphs {
        let Sdl::File(path) = &subgraph.sdl else {
            panic!("an SDL file");
        };
        let sdl = fs::read_to_string(path).unwrap();
        let served = build(&sdl, source());
        assert_eq!(
            run(&served, "{ _service { sdl } }", json!({})),
            json!({"data": {"_service": {"sdl": sdl}}})
        );
        assert!(
            served.model().entity_types().count() > 0,
            "{}",
            subgraph.name
        );
    }
}

#[test]
fn shipping_is_computed_from_the_representation() {
    let inventory = build(&text("inventory.graphql"), source());
    let ask = |representation: Value| {
        run(
            &inventory,
            "query($r: [_Any!]!) { _entities(representations: $r) { ... on Product { shippingCost { amount currency } } } }",
            json!({ "r": [representation] }),
        )
    };
    let cost = |weight: u32, price: f64| {
        ask(
            json!({"__typename": "Product", "sku": "HP-204", "weightGrams": weight,
                   "price": {"amount": price, "currency": "USD"}}),
        )["data"]["_entities"][0]["shippingCost"]
            .clone()
    };
    assert_eq!(cost(1200, 99.0), json!({"amount": 6.0, "currency": "USD"}));
    assert_eq!(cost(1200, 100.0), json!({"amount": 0.0, "currency": "USD"}));
}

#[test]
fn the_mutation_answers_with_what_it_was_given() {
    let answer = run(
        &monolith(),
        "mutation($r: NewReview!) { addReview(review: $r) { id stars text product { name } author { username } } }",
        json!({"r": {"product": "HP-204", "stars": 5, "title": "Boils"}}),
    );
    let expected = json!({"id": "r13", "stars": 5, "text": null, "product": {"name": "Enamel kettle"},
                          "author": {"username": "ida"}});
    assert_eq!(answer, json!({"data": {"addReview": expected}}));
}
