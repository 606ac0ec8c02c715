//! A gateway over a small supergraph whose subgraph is never there.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use ogive_base::{Peer, SourceId, Sources};
use ogive_config::Config;
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::WorkerState;
use ogive_gateway::{Gateway, GatewayOptions, SchemaState};
use serde_json::Value;

pub(crate) const SUPERGRAPH: &str = r#"
schema
  @link(url: "https://specs.apollo.dev/link/v1.0")
  @link(url: "https://specs.apollo.dev/join/v0.3", for: EXECUTION)
{ query: Query mutation: Mutation subscription: Subscription }

directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA

scalar join__FieldSet
scalar link__Import
enum link__Purpose { SECURITY EXECUTION }
enum join__Graph { A @join__graph(name: "a", url: "") }

type Query @join__type(graph: A) {
  me: User
  user(id: ID!): User
  size(of: Size!): Int
}
type Mutation @join__type(graph: A) { rename(name: String!): User }
type Subscription @join__type(graph: A) { renamed: User }
type User @join__type(graph: A) { id: ID! name: String }
enum Size @join__type(graph: A) { SMALL LARGE }
"#;

pub(crate) fn state(config: &Config) -> SchemaState {
    let mut sources = Sources::new();
    sources.add("supergraph.graphql", SUPERGRAPH);
    let supergraph = read_supergraph(SUPERGRAPH, SourceId(0), &ReadOptions::default())
        .unwrap_or_else(|errors| panic!("{}", errors[0].render(&sources, false)));
    SchemaState::new(supergraph, config).0
}

pub(crate) fn gateway_with(yaml: &str) -> Arc<Gateway> {
    let config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
    let options = GatewayOptions::new(&config);
    Arc::new(Gateway::new(state(&config), options))
}

/// One answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e} in {:?}", String::from_utf8_lossy(&self.body)))
    }
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
    /// Code of the first error, after checking that the whole body is a GraphQL response.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        let errors = json["errors"].as_array().expect("errors");
        assert!(!errors.is_empty());
        for error in errors {
            assert!(
                error["message"].as_str().is_some_and(|m| !m.is_empty()),
                "{json}"
            );
            assert!(error["extensions"]["code"].is_string(), "{json}");
        }
        errors[0]["extensions"]["code"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn send(gateway: &Gateway, request: Request<Full<Bytes>>) -> Answer {
    let response = gateway
        .handle(request, Peer::Unix, &WorkerState::new())
        .await;
    let (parts, body) = response.into_parts();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: body.to_vec().into(),
    }
}

/// A POST of JSON with an `accept` header (none if empty).
pub(crate) async fn post(gateway: &Gateway, accept: &str, body: impl Into<Bytes>) -> Answer {
    let mut request = Request::post("/graphql").header("content-type", "application/json");
    if !accept.is_empty() {
        request = request.header("accept", accept);
    }
    send(gateway, request.body(Full::new(body.into())).unwrap()).await
}

pub(crate) async fn get(gateway: &Gateway, path: &str, accept: &str) -> Answer {
    let mut request = Request::get(path).header("apollo-require-preflight", "true");
    if !accept.is_empty() {
        request = request.header("accept", accept);
    }
    send(gateway, request.body(Full::default()).unwrap()).await
}
