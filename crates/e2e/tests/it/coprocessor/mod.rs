//! Coprocessors on real sockets: what they are told at every stage, what they may change, and what becomes of a request when
//! they end it, fail, or lie.

mod changes;
mod conditions;
mod edges;
pub(crate) mod endings;
pub(crate) mod failing;
mod fetch_batch;
mod languages;
mod parts;
mod policies;
mod schema;
mod seen;
mod told;
mod whole;

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use crate::{
    graph::Graph,
    http_client::{Answer, post_with},
};

/// The stages in the order in which a request passes them.
pub(crate) const STAGES: [&str; 8] = [
    "RouterRequest",
    "SupergraphRequest",
    "ExecutionRequest",
    "SubgraphRequest",
    "SubgraphResponse",
    "ExecutionResponse",
    "SupergraphResponse",
    "RouterResponse",
];

/// Whether a stage is one of a request to a subgraph.
pub(crate) fn is_of_subgraph(stage: &str) -> bool {
    stage.starts_with("Subgraph")
}

/// The section of a stage in which everything is selected.
pub(crate) fn all_of(stage: &str) -> &'static str {
    match stage {
        "RouterRequest" => {
            "router: { request: { headers: true, body: true, context: all, sdl: true, path: true, method: true } }"
        }
        "RouterResponse" => {
            "router: { response: { headers: true, body: true, context: all, sdl: true, status_code: true } }"
        }
        "SupergraphRequest" => {
            "supergraph: { request: { headers: true, body: true, context: all, sdl: true, method: true } }"
        }
        "SupergraphResponse" => {
            "supergraph: { response: { headers: true, body: true, context: all, sdl: true, status_code: true } }"
        }
        "ExecutionRequest" => {
            "execution: { request: { headers: true, body: true, context: all, sdl: true, method: true, query_plan: true } }"
        }
        "ExecutionResponse" => {
            "execution: { response: { headers: true, body: true, context: all, sdl: true, status_code: true } }"
        }
        "SubgraphRequest" => {
            "subgraph: { all: { request: { headers: true, body: true, context: all, uri: true, method: true, service_name: true, subgraph_request_id: true } } }"
        }
        "SubgraphResponse" => {
            "subgraph: { all: { response: { headers: true, body: true, context: all, service_name: true, subgraph_request_id: true, status_code: true } } }"
        }
        other => panic!("{other}"),
    }
}

/// Every stage with everything.
pub(crate) const EVERYTHING: &str = "
  router:
    request: { headers: true, body: true, context: all, sdl: true, path: true, method: true }
    response: { headers: true, body: true, context: all, sdl: true, status_code: true }
  supergraph:
    request: { headers: true, body: true, context: all, sdl: true, method: true }
    response: { headers: true, body: true, context: all, sdl: true, status_code: true }
  execution:
    request: { headers: true, body: true, context: all, sdl: true, method: true, query_plan: true }
    response: { headers: true, body: true, context: all, sdl: true, status_code: true }
  subgraph:
    all:
      request: { headers: true, body: true, context: all, uri: true, method: true, service_name: true, subgraph_request_id: true }
      response: { headers: true, body: true, context: all, service_name: true, subgraph_request_id: true, status_code: true }
";

/// One fetch.
pub(crate) const ME: &str = "query Me { me { name } }";

/// What a request to a played server has as its body.
pub(crate) fn told(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A coprocessor that makes something of every message.
pub(crate) fn playing(make: impl Fn(Value) -> Value + Send + Sync + 'static) -> StubSubgraph {
    StubSubgraph::start(move |_, request| {
        let said = make(told(request)).to_string();
        Reply::Whole(answer(
            200,
            "content-type: application/json\r\n",
            said.as_bytes(),
        ))
    })
}

/// A gateway with a coprocessor.
pub(crate) struct Coprocessed {
    pub(crate) graph: Graph,
    pub(crate) coprocessor: StubSubgraph,
}

impl Coprocessed {
    /// `stages` is YAML below `coprocessor`, in lines of their own; `more` is further configuration.
    pub(crate) fn with(coprocessor: StubSubgraph, stages: &str, more: &str) -> Coprocessed {
        let yaml = format!(
            "coprocessor:\n  url: '{}'\n  timeout: 20s\n  {}\n{more}",
            coprocessor.url(),
            stages.trim()
        );
        Coprocessed {
            graph: Graph::with(&yaml),
            coprocessor,
        }
    }
    pub(crate) fn ask(&self, query: &str, headers: &[(&str, &str)]) -> Answer {
        post_with(self.graph.address(), query, headers)
    }
    /// What it was told so far.
    pub(crate) fn told(&self) -> Vec<Value> {
        let requests = self.coprocessor.requests();
        requests.iter().map(|request| told(request)).collect()
    }
    /// The stages at which it was told something.
    pub(crate) fn stages(&self) -> Vec<String> {
        let stage = |told: Value| told["stage"].as_str().unwrap().to_owned();
        self.told().into_iter().map(stage).collect()
    }
}

/// Changes nothing.
pub(crate) fn nothing(_: Value) -> Value {
    json!({})
}
