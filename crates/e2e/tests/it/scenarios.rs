//! Graphs that the benchmarks run on over real sockets: answers byte for byte, and how many requests it takes.

use std::{fs, path::PathBuf, sync::Arc};

use ogive_config::Url;
use ogive_edge::receive::Delivery;
use ogive_mock::{Data, Options, Server, Service, Settings, Source, Subgraph};
use serde_json::json;

use crate::{
    graph::{Served, config, state},
    http_client::{Answer, send},
};

/// A graph of `bench/graphs` with one of its operations.
struct Scenario {
    folder: PathBuf,
    query: String,
}

impl Scenario {
    fn of(graph: &str, operation: &str) -> Scenario {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../bench/graphs")
            .join(graph);
        let query = fs::read_to_string(folder.join(format!("operations/{operation}.graphql")));
        Scenario {
            folder,
            query: query.unwrap_or_else(|e| panic!("{graph}/{operation}: {e}")),
        }
    }
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
    /// The answer of an engine over the merged types (`crates/mock/tests/it/scenarios.rs`).
    fn expected(&self) -> String {
        self.file("expected.json").trim_end().to_owned()
    }
    /// Serves the subgraphs and a gateway before them, and sends the operation. Gives the answer, the subgraphs and the
    /// number of waves of the plan.
    fn run(&self) -> (Answer, Arc<Service>, u32) {
        self.run_with("")
    }
    fn run_with(&self, yaml: &str) -> (Answer, Arc<Service>, u32) {
        let data = Data::parse(&self.file("data.json")).unwrap_or_else(|e| panic!("{e}"));
        let source = Source::Data(data.into());
        let mut service = Service::new();
        for entry in fs::read_dir(self.folder.join("subgraphs")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
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
        let body = json!({ "query": self.query }).to_string();
        let answer = send(
            served.address,
            "POST",
            "/graphql",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );
        let operation = served
            .gateway
            .state()
            .operations
            .get(&self.query, None, Delivery::Whole);
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
fn shop_takes_six_requests_in_four_waves_if_equal_look_ups_are_reused() {
    let scenario = Scenario::of("shop", "test-query");
    let (answer, service, waves) = scenario.run_with("execution: { reuse: entities }");
    assert_same(&answer.text(), &scenario.expected());
    let total = service.total();
    assert_eq!(total.refused, 0);
    assert!(total.requests <= 6, "{} requests", total.requests);
    assert!(waves <= 4, "{waves} waves");
}

/// Everything that is wanted of products and users beyond the reviews is known from the root fields, so each subgraph
/// is asked once.
#[test]
fn shop_takes_four_requests() {
    let scenario = Scenario::of("shop", "test-query");
    let (answer, service, _) = scenario.run();
    assert_same(&answer.text(), &scenario.expected());
    assert_eq!(service.total().requests, 4);
}

#[test]
fn many_plans_takes_eight_requests() {
    let scenario = Scenario::of("many-plans", "deep");
    let (answer, service, _) = scenario.run();
    assert_same(&answer.text(), &scenario.expected());
    let total = service.total();
    assert_eq!(total.refused, 0);
    assert!(total.requests <= 8, "{} requests", total.requests);
}
