//! The published benchmark scenarios, rebuilt from their facts: each subgraph can be served, and the engine over the
//! merged types answers the scenario's request byte for byte.

use std::{collections::BTreeMap, fs, path::Path};

use ogive_base::FastMap;
use ogive_mock::{Data, Generator, GeneratorOptions, Model, Options, Source, Subgraph};
use serde_json::{Map, Value, json};

use crate::support::{assert_same, build, run, shared};

/// The rule of many-plans: child `nK` of X is X + K, field `fK` of X is `fK-X`.
pub(crate) fn many_plans_data() -> Data {
    let mut fields = Map::new();
    fields.insert("Query.node".into(), "Node/0".into());
    for k in 0..7 {
        fields.insert(format!("Node.n{k}"), format!("Node/{{id0}}{k}").into());
        fields.insert(format!("Node.f{k}"), format!("f{k}-{{id0}}").into());
    }
    Data::from_json(json!({ "fields": fields })).unwrap()
}

/// The rows of fed, collected from its expected answer: every object of the answer is a row, seen from several sides.
pub(crate) fn fed_data(expected: &Value) -> Data {
    type Rows = BTreeMap<u32, Map<String, Value>>;
    fn collect(value: &Value, tables: &mut BTreeMap<&'static str, Rows>) -> Option<Value> {
        match value {
            Value::Array(items) => Some(
                items
                    .iter()
                    .map(|item| collect(item, tables).unwrap_or_else(|| item.clone()))
                    .collect(),
            ),
            Value::Object(map) => {
                let (ty, key) = if map.contains_key("upc") {
                    ("Product", "upc")
                } else if map.contains_key("body") {
                    ("Review", "id")
                } else if map.contains_key("username") {
                    ("User", "id")
                } else {
                    map.values().for_each(|v| drop(collect(v, tables)));
                    return None;
                };
                let id: u32 = map[key].as_str()?.parse().ok()?;
                for (name, value) in map {
                    let value = collect(value, tables).unwrap_or_else(|| value.clone());
                    let row = tables.entry(ty).or_default().entry(id).or_default();
                    row.insert(name.clone(), value);
                }
                Some(map[key].clone())
            }
            _ => None,
        }
    }
    let mut tables = BTreeMap::new();
    collect(expected, &mut tables);
    let types: Map<String, Value> = tables
        .into_iter()
        .map(|(ty, rows)| {
            (
                ty.to_string(),
                rows.into_values().map(Value::Object).collect(),
            )
        })
        .collect();
    assert_eq!(types["User"].as_array().map(Vec::len), Some(6));
    Data::from_json(json!({ "types": types })).unwrap()
}

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

#[test]
fn many_plans_answers_byte_for_byte() {
    let Some(folder) = shared("scenarios/many-plans") else {
        return;
    };
    let source = Source::Data(many_plans_data().into());
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

    let merged: String = (0..7)
        .map(|k| format!("n{k}: Node f{k}: String "))
        .collect();
    let monolith = build(
        &format!("type Query {{ node: Node }} type Node {{ id0: ID! {merged} }}"),
        source,
    );
    let body = read(&folder.join("body.json"));
    let answer = monolith.execute_body(body.as_bytes(), &FastMap::default());
    let expected = read(&folder.join("expected.json"));
    assert_same(&answer.body, expected.trim());
}

#[test]
fn fed_answers_byte_for_byte() {
    let Some(folder) = shared("scenarios/fed") else {
        return;
    };
    let text = read(&folder.join("expected.json"));
    let expected: Value = serde_json::from_str(&text).unwrap();
    let source = Source::Data(fed_data(&expected).into());
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
    assert_eq!(answer["data"]["user"]["username"], json!("kamilkisiela"));
    assert_eq!(answer["data"]["me"]["id"], json!("1"));

    let monolith = build(
        "type Query { users: [User] topProducts(first: Int = 5): [Product] }
         type User { id: ID! name: String username: String reviews: [Review] }
         type Product { upc: String! name: String price: Int weight: Int inStock: Boolean shippingEstimate: Int reviews: [Review] }
         type Review { id: ID! body: String product: Product author: User }",
        source,
    );
    let body = read(&folder.join("body.json"));
    let answer = monolith.execute_body(body.as_bytes(), &FastMap::default());
    assert_same(&answer.body, text.trim());
}

#[test]
fn big_response_is_generated() {
    let Some(folder) = shared("scenarios/big-response") else {
        return;
    };
    let sdls: Vec<String> = (0..2)
        .map(|i| read(&folder.join(format!("subgraphs/subgraph{i}.graphql"))))
        .collect();
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
    let body = read(&folder.join("body.json"));
    let answer = served["subgraph0"].execute_body(body.as_bytes(), &FastMap::default());
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
