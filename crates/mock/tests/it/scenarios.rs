//! The graphs that the benchmarks run on: each subgraph can be served, and the engine over the merged types answers
//! their operations as recorded, byte for byte (`BLESS=1` records), and with the values that the data have.

use std::{collections::BTreeMap, fs, path::Path};

use ogive_base::FastMap;
use ogive_mock::{Data, Generator, GeneratorOptions, Model, Options, Source, Subgraph};
use ogive_testbase::assert_recorded;
use serde_json::{Map, Value, json};

use crate::support::{build, graph, run};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn subgraphs(folder: &Path, source: &Source) -> BTreeMap<String, Subgraph> {
    let entries = fs::read_dir(folder.join("subgraphs")).unwrap();
    let files: BTreeMap<String, String> = entries
        .map(|e| e.unwrap().path())
        .map(|p| {
            (
                p.file_stem().unwrap().to_string_lossy().into_owned(),
                read(&p),
            )
        })
        .collect();
    let serve = |sdl: &String| Subgraph::new("s", sdl, source.clone(), Options::default());
    files
        .iter()
        .map(|(name, sdl)| {
            (
                name.clone(),
                serve(sdl).unwrap_or_else(|e| panic!("{name}:\n{e}")),
            )
        })
        .collect()
}

/// The data of a graph, for its subgraphs and for the engine over its merged types alike.
fn data(folder: &Path) -> Source {
    let data = Data::parse(&read(&folder.join("data.json"))).unwrap_or_else(|e| panic!("{e}"));
    Source::Data(data.into())
}

/// What the engine over the merged types answers is as recorded, and as `expected` says where that is known.
fn answers(folder: &Path, operation: &str, source: Source) -> Value {
    let monolith = build(&read(&folder.join("monolith.graphql")), source);
    let query = read(&folder.join(format!("operations/{operation}.graphql")));
    let answer = monolith.execute(&query, None, &Map::new(), &FastMap::default());
    assert!(!answer.has_errors);
    let text = String::from_utf8(answer.body).unwrap();
    assert_recorded(folder.join("expected.json"), &format!("{text}\n"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn many_plans_answers_byte_for_byte() {
    let folder = graph("many-plans");
    let source = data(&folder);
    let served = subgraphs(&folder, &source);
    assert_eq!(served.len(), 7);
    let answer = run(
        &served["subgraph3"],
        "query($r: [_Any!]!) { _entities(representations: $r) { ... on Node { id0 f1 n3 { id0 __typename } } } }",
        json!({"r": [{"__typename": "Node", "id0": "0123"}]}),
    );
    assert_eq!(answer["errors"], Value::Null, "{answer}");
    let entity = &answer["data"]["_entities"][0];
    assert_eq!(entity["n3"], json!({"id0": "01233", "__typename": "Node"}));

    // Child `nK` of X is XK, field `fK` of X is `fK-X`.
    fn follows(node: &Map<String, Value>, id: &str) -> usize {
        let each = node.iter().map(|(name, value)| match name.split_at(1) {
            ("n", k) => follows(value.as_object().unwrap(), &format!("{id}{k}")),
            _ => {
                assert_eq!(*value, json!(format!("{name}-{id}")));
                1
            }
        });
        each.sum()
    }
    let answer = answers(&folder, "deep", source);
    let leaves = follows(answer["data"]["node"].as_object().unwrap(), "0");
    assert!(leaves > 800, "{leaves}");
}

#[test]
fn shop_answers_byte_for_byte() {
    let folder = graph("shop");
    let source = data(&folder);
    let served = subgraphs(&folder, &source);
    assert_eq!(served.len(), 4);
    let answer = run(
        &served["products"],
        "{ topProducts { upc } two: topProducts(first: 2) { price } }",
        json!({}),
    );
    assert_eq!(
        answer["data"]["topProducts"].as_array().map(Vec::len),
        Some(5)
    );
    assert_eq!(answer["data"]["two"].as_array().map(Vec::len), Some(2));
    let answer = run(
        &served["inventory"],
        "query($r: [_Any!]!) { _entities(representations: $r) { ... on Product { inStock } } }",
        json!({"r": [{"__typename": "Product", "upc": "1"}, {"__typename": "Product", "upc": "2"}]}),
    );
    assert_eq!(
        answer["data"]["_entities"],
        json!([{"inStock": true}, {"inStock": false}])
    );
    let answer = run(
        &served["accounts"],
        "{ user(id: 3) { username } me { id } }",
        json!({}),
    );
    assert_eq!(answer["data"]["user"]["username"], json!("oluwaseun"));
    assert_eq!(answer["data"]["me"]["id"], json!("1"));

    // Every object of the answer is its row of the data.
    fn rows(value: &Value, data: &Value) -> usize {
        let Some(object) = value.as_object() else {
            return value
                .as_array()
                .map_or(0, |items| items.iter().map(|item| rows(item, data)).sum());
        };
        let key = if object.contains_key("upc") {
            ("Product", "upc")
        } else if object.contains_key("body") {
            ("Review", "id")
        } else {
            ("User", "id")
        };
        let table = data["types"][key.0].as_array().unwrap();
        let row = table
            .iter()
            .find(|row| row[key.1] == object[key.1])
            .unwrap();
        let leaves = object
            .iter()
            .filter(|(_, v)| !v.is_array() && !v.is_object());
        for (name, value) in leaves.filter(|(name, _)| row.get(name).is_some()) {
            assert_eq!(row[name], *value, "{key:?} {name}");
        }
        1 + object.values().map(|v| rows(v, data)).sum::<usize>()
    }
    let answer = answers(&folder, "test-query", source);
    let known: Value = serde_json::from_str(&read(&folder.join("data.json"))).unwrap();
    let objects: usize = answer["data"]
        .as_object()
        .unwrap()
        .values()
        .map(|v| rows(v, &known))
        .sum();
    assert!(objects > 350, "{objects}");
}

#[test]
fn big_response_is_generated() {
    let folder = graph("big-response");
    let sdls =
        ["labels", "content"].map(|name| read(&folder.join(format!("subgraphs/{name}.graphql"))));
    let models: Vec<Model> = sdls
        .iter()
        .map(|sdl| Model::from_sdl("s", sdl, Default::default()).unwrap())
        .collect();
    let mut options = GeneratorOptions::default();
    for field in ["floats", "ints", "strings"] {
        options.lengths.insert(format!("Node.{field}"), (0, 64));
    }
    options.texts.insert("Node.strings".into(), (0, 128));
    options.texts.insert("Node.string".into(), (0, 128));
    let generator = Generator::new(&models.iter().collect::<Vec<_>>(), options);
    let source = Source::Generated(generator.into());
    let served = subgraphs(&folder, &source);
    let query = read(&folder.join("operations/all.graphql"));
    let answer = served["content"].execute(&query, None, &Map::new(), &FastMap::default());
    assert!(!answer.has_errors);
    let megabytes = answer.body.len() as f64 / 1e6;
    assert!((5.0..12.0).contains(&megabytes), "{megabytes} MB");
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(value["data"]["nodes"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        value["data"]["nodes"][3]["objects"]
            .as_array()
            .map(Vec::len),
        Some(14)
    );
}
