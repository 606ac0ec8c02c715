//! The published scenarios `fed` and `many-plans` over real sockets: answers byte for byte, and how many requests it
//! takes. Skipped where their data are not at hand.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use ogive_config::Url;
use ogive_mock::{Data, Options, Server, Service, Settings, Source, Subgraph};
use serde_json::{Map, Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::{Answer, send},
};

struct Scenario {
    folder: PathBuf,
}

impl Scenario {
    fn find(name: &str) -> Option<Scenario> {
        let root = match std::env::var_os("OGIVE_SHARED") {
            Some(root) => PathBuf::from(root),
            None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        };
        let folder = root.join("data/scenarios").join(name);
        if !folder.exists() {
            eprintln!("skipped: the scenario {name} is not there");
            return None;
        }
        Some(Scenario { folder })
    }
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
    fn expected(&self) -> Value {
        serde_json::from_str(&self.file("expected.json")).unwrap()
    }
    /// Serves the subgraphs with `data` and a gateway before them, and sends the scenario's request. Gives the answer,
    /// the subgraphs and the number of waves of the plan.
    fn run(&self, data: Data) -> (Answer, Arc<Service>, u32) {
        self.run_with(data, "")
    }
    fn run_with(&self, data: Data, yaml: &str) -> (Answer, Arc<Service>, u32) {
        let source = Source::Data(data.into());
        let mut service = Service::new();
        for entry in fs::read_dir(self.folder.join("subgraphs")).unwrap() {
            let path = entry.unwrap().path();
            // The supergraph calls `subgraph0.graphql` by the name `sub0`.
            let name = path.file_stem().unwrap().to_string_lossy();
            let name = name.replace("subgraph", "sub");
            let sdl = fs::read_to_string(&path).unwrap();
            let subgraph = Subgraph::new(&name, &sdl, source.clone(), Options::default())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            service.add(&name, subgraph, Settings::default());
        }
        let service = Arc::new(service);
        let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
        let mut config = config(yaml);
        for name in service.names() {
            let url = Url(mock.url(name));
            config.override_subgraph_url.insert(name.into(), url);
        }
        let state = state(&self.file("supergraph.graphql"), &config);
        let served = Served::start(state, &config);
        let answer = send(
            served.address,
            "POST",
            "/graphql",
            &[("content-type", "application/json")],
            self.file("body.json").as_bytes(),
        );
        let body: Value = serde_json::from_str(&self.file("body.json")).unwrap();
        let operations = &served.gateway.state().operations;
        let operation = operations.get(
            body["query"].as_str().unwrap(),
            body["operationName"].as_str(),
        );
        let plan = operation.unwrap().planned.load_full().unwrap().plan.clone();
        let waves = plan.fetches.as_slice().iter().map(|f| f.wave).max();
        (answer, service, waves.unwrap_or(0))
    }
}

/// Where two long texts part.
fn assert_same(found: &str, expected: &str) {
    let at = found
        .bytes()
        .zip(expected.bytes())
        .position(|(a, b)| a != b);
    let at = at.unwrap_or(found.len().min(expected.len()));
    let around = |text: &str| {
        let start = text.floor_char_boundary(at.saturating_sub(100));
        let end = text.floor_char_boundary((at + 100).min(text.len()));
        text[start..end].to_owned()
    };
    assert!(
        found == expected,
        "different at byte {at}\nfound    ..{}\nexpected ..{}",
        around(found),
        around(expected)
    );
}

#[test]
fn fed_takes_six_requests_in_four_waves_if_equal_look_ups_are_reused() {
    let Some(scenario) = Scenario::find("fed") else {
        return;
    };
    let expected = scenario.expected();
    let yaml = "execution: { reuse: entities }";
    let (answer, service, waves) = scenario.run_with(fed_data(&expected), yaml);
    assert_same(&answer.text(), &expected.to_string());
    let total = service.total();
    assert_eq!(total.refused, 0);
    assert!(total.requests <= 6, "{} requests", total.requests);
    assert!(waves <= 4, "{waves} waves");
}

/// Everything that is wanted of products and users beyond the reviews is known from the root fields, so each subgraph
/// is asked once.
#[test]
fn fed_takes_four_requests() {
    let Some(scenario) = Scenario::find("fed") else {
        return;
    };
    let expected = scenario.expected();
    let (answer, service, _) = scenario.run(fed_data(&expected));
    assert_same(&answer.text(), &expected.to_string());
    assert_eq!(service.total().requests, 4);
}

#[test]
fn many_plans_takes_eight_requests() {
    let Some(scenario) = Scenario::find("many-plans") else {
        return;
    };
    let mut fields = Map::new();
    fields.insert("Query.node".into(), "Node/0".into());
    for k in 0..7 {
        fields.insert(format!("Node.n{k}"), format!("Node/{{id0}}{k}").into());
        fields.insert(format!("Node.f{k}"), format!("f{k}-{{id0}}").into());
    }
    let data = Data::from_json(json!({ "fields": fields })).unwrap();
    let (answer, service, _) = scenario.run(data);
    assert_same(&answer.text(), &scenario.expected().to_string());
    let total = service.total();
    assert_eq!(total.refused, 0);
    assert!(total.requests <= 8, "{} requests", total.requests);
}

/// The rows of fed, gathered from its expected answer: every object there is a row, seen from several sides.
fn fed_data(expected: &Value) -> Data {
    type Rows = BTreeMap<u32, Map<String, Value>>;
    fn gather(value: &Value, tables: &mut BTreeMap<&'static str, Rows>) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| gather(item, tables)).collect(),
            Value::Object(map) => {
                let (ty, key) = if map.contains_key("upc") {
                    ("Product", "upc")
                } else if map.contains_key("body") {
                    ("Review", "id")
                } else if map.contains_key("username") {
                    ("User", "id")
                } else {
                    for value in map.values() {
                        gather(value, tables);
                    }
                    return Value::Null;
                };
                let id: u32 = map[key].as_str().unwrap().parse().unwrap();
                for (name, value) in map {
                    let value = gather(value, tables);
                    let row = tables.entry(ty).or_default().entry(id).or_default();
                    row.insert(name.clone(), value);
                }
                map[key].clone()
            }
            leaf => leaf.clone(),
        }
    }
    let mut tables = BTreeMap::new();
    gather(expected, &mut tables);
    let types: Map<String, Value> = tables
        .into_iter()
        .map(|(ty, rows)| {
            let rows: Vec<Value> = rows.into_values().map(Value::Object).collect();
            (ty.to_owned(), rows.into())
        })
        .collect();
    Data::from_json(json!({ "types": types })).unwrap()
}
