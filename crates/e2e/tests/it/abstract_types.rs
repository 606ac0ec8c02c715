//! Objects of interfaces and unions that subgraphs know differently: composed subgraphs with data of their own each, a
//! gateway, real sockets.

use std::sync::Arc;

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_mock::{Data, Options, Server, Service, Settings, Source, Subgraph};
use serde_json::{Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::post_with,
};

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.7",
    import: ["@key", "@external", "@shareable", "@interfaceObject", "@override"])
"#;

/// Served subgraphs and a gateway before them.
struct Graph {
    service: Arc<Service>,
    _mock: Server,
    served: Served,
}

impl Graph {
    /// Subgraphs with the rules of their fields.
    fn start(subgraphs: &[(&str, &str, Value)], yaml: &str) -> Graph {
        let mut service = Service::new();
        let mut sdls = Vec::new();
        for (name, sdl, fields) in subgraphs {
            let sdl = format!("{LINK}{sdl}");
            let data = Data::from_json(json!({ "fields": fields })).unwrap();
            let source = Source::Data(data.into());
            let subgraph = Subgraph::new(name, &sdl, source, Options::default())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            service.add(name, subgraph, Settings::default());
            sdls.push((*name, sdl));
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
        let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
        let mut config = config(yaml);
        for name in service.names() {
            let url = Url(mock.url(name));
            config.override_subgraph_url.insert(name.into(), url);
        }
        Graph {
            served: Served::start(state(&supergraph, &config), &config),
            service,
            _mock: mock,
        }
    }
    /// The answer, and the number of requests to subgraphs.
    fn ask(&self, query: &str) -> (Value, u64) {
        self.service.reset();
        let answer = post_with(self.served.address, query, &[]);
        let total = self.service.total();
        assert_eq!(total.refused, 0, "{query}");
        (
            serde_json::from_str(&answer.text()).unwrap(),
            total.requests,
        )
    }
    /// The data of an answer without errors.
    fn data(&self, query: &str) -> (Value, u64) {
        let (answer, requests) = self.ask(query);
        assert_eq!(answer["errors"], Value::Null, "{query}");
        (answer["data"].clone(), requests)
    }
    /// Nothing is asked, and nothing answered but an error.
    fn is_refused(&self, query: &str, words: &str) {
        let (answer, requests) = self.ask(query);
        assert_eq!(
            (&answer["data"], requests),
            (&Value::Null, 0),
            "{query}: {answer}"
        );
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{query}: {message}");
    }
}

const HOUSE: &str = "
type Query { lobby: Room entrance: Room @shareable highlight: Work @shareable piece: Piece @shareable }
type Room @key(fields: \"id\") { id: ID! wall: Wall @shareable }
type Wall @shareable { works: [Work!]! }
union Work = Painting | Fresco
interface Piece { title: String }
type Painting implements Piece @shareable { title: String }
type Fresco implements Piece { title: String plaster: String }
";
const FAIR: &str = "
type Query { tent: Room entrance: Room @shareable highlight: Work @shareable piece: Piece @shareable }
type Room @key(fields: \"id\") { id: ID! wall: Wall @shareable stand: Wall }
type Wall @shareable { works: [Work!]! }
union Work = Painting | Print
interface Piece { title: String }
type Painting implements Piece @shareable { title: String }
type Print implements Piece { title: String copies: Int! }
";

fn gallery() -> Graph {
    let painting = json!({ "__typename": "Painting", "title": "Tide" });
    let fresco = json!({ "__typename": "Fresco", "title": "Vault", "plaster": "lime" });
    let print = json!({ "__typename": "Print", "title": "Fair", "copies": 7 });
    let room = |wall: &Value| json!({ "id": "1", "wall": wall });
    let house = json!({ "works": [painting, fresco] });
    let fair = json!({ "works": [painting, print] });
    let house = json!({
        "Query.lobby": room(&house), "Query.entrance": room(&house), "Room.wall": house,
        "Query.highlight": fresco, "Query.piece": fresco,
    });
    let fair = json!({
        "Query.tent": room(&fair), "Query.entrance": room(&fair), "Room.wall": fair,
        "Room.stand": fair, "Query.highlight": painting, "Query.piece": painting,
    });
    Graph::start(&[("house", HOUSE, house), ("market", FAIR, fair)], "")
}

const WORKS: &str = "works { __typename ... on Painting { title } ... on Fresco { plaster } ... on Print { copies } }";

#[test]
fn members_that_not_all_know_are_null_and_nobody_is_asked() {
    let graph = gallery();
    let painting = json!({ "__typename": "Painting", "title": "Tide" });
    let fresco = json!({ "__typename": "Fresco", "plaster": null });
    for root in ["lobby", "entrance"] {
        let (data, requests) = graph.data(&format!("{{ {root} {{ wall {{ {WORKS} }} }} }}"));
        assert_eq!(
            data[root]["wall"]["works"],
            json!([painting, fresco]),
            "{root}"
        );
        assert_eq!(requests, 1, "{root}");
    }
    // Where the subgraph that is asked has no such member at all, there is nothing to be null.
    let (data, requests) = graph.data("{ lobby { wall { works { ... on Print { copies } } } } }");
    assert_eq!(
        (&data["lobby"]["wall"]["works"], requests),
        (&json!([{}, {}]), 1)
    );
    // One alone can serve stands.
    let (data, requests) = graph.data(&format!("{{ lobby {{ stand {{ {WORKS} }} }} }}"));
    let print = json!({ "__typename": "Print", "copies": 7 });
    assert_eq!(
        (&data["lobby"]["stand"]["works"], requests),
        (&json!([painting, print]), 2)
    );
    // A field that is never null cannot be so here: that is an error, and the object is null.
    let (answer, requests) = graph.ask("{ tent { wall { works { ... on Print { copies } } } } }");
    assert_eq!(
        (&answer["data"], requests),
        (&json!({ "tent": { "wall": null } }), 1)
    );
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
}

#[test]
fn one_subgraph_s_objects_serve_an_interface() {
    let graph = gallery();
    // The house is the first; its frescos have a title, whether or not the fair knows frescos.
    let (data, requests) = graph.data("{ piece { __typename title } }");
    assert_eq!(
        data,
        json!({ "piece": { "__typename": "Fresco", "title": "Vault" } })
    );
    assert_eq!(requests, 1);
    let (data, requests) = graph.data("{ piece { title ... on Fresco { plaster } } }");
    assert_eq!(
        data,
        json!({ "piece": { "title": "Vault", "plaster": null } })
    );
    assert_eq!(requests, 1);

    let house = "
        type Query { member(id: ID!): Member @shareable friend: Friend }
        interface Member { id: ID! }
        type Friend implements Member @key(fields: \"id\") { id: ID! since: Int }
        type Dealer implements Member @key(fields: \"id\") { id: ID! @external stalls: Int }
    ";
    let fair = "
        type Query { member(id: ID!): Member @shareable dealer: Dealer }
        interface Member { id: ID! }
        type Friend implements Member @key(fields: \"id\") { id: ID! @external visits: Int }
        type Dealer implements Member @key(fields: \"id\") { id: ID! firm: String }
    ";
    let friend = json!({ "__typename": "Friend", "id": "f1", "since": 1999 });
    let graph = Graph::start(
        &[
            ("house", house, json!({ "Query.member": friend })),
            ("market", fair, json!({ "Query.member": friend })),
        ],
        "",
    );
    for query in [
        "{ member(id: \"f1\") { id } }",
        "{ member(id: \"f1\") { __typename id ... on Friend { since } } }",
        "{ member(id: \"f1\") { ... on Member { id } } }",
    ] {
        graph.is_refused(query, "no subgraph can resolve");
    }
    let by_kind = "{ member(id: \"f1\") { __typename ... on Friend { id since } ... on Dealer { id firm } } }";
    assert_eq!(graph.data(by_kind).0, json!({ "member": friend }));
    let (data, requests) = graph.data("{ member(id: \"f1\") { __typename } }");
    assert_eq!(
        (data, requests),
        (json!({ "member": { "__typename": "Friend" } }), 1)
    );
}

#[test]
fn objects_that_nobody_can_name_have_their_fields() {
    let bank = "
        type Query { pledged: Deed pledges: [Deed!]! }
        type Deed @interfaceObject @key(fields: \"id\", resolvable: false) { id: ID! amount: Int }
    ";
    let notary = "
        type Query { filed: Deed }
        interface Deed @key(fields: \"id\") { id: ID! }
    ";
    let deed = json!({ "id": "d1", "amount": 5 });
    let fields = json!({ "Query.pledged": deed, "Query.pledges": [deed, deed] });
    let graph = Graph::start(
        &[("bank", bank, fields), ("notary", notary, json!({}))],
        "supergraph: { introspection: true }",
    );
    for (query, data) in [
        ("{ pledged { id amount } }", json!({ "pledged": deed })),
        (
            "{ pledged { ... on Deed { id } } }",
            json!({ "pledged": { "id": "d1" } }),
        ),
        (
            "{ pledges { amount } }",
            json!({ "pledges": [{ "amount": 5 }, { "amount": 5 }] }),
        ),
    ] {
        assert_eq!(graph.data(query), (data, 1), "{query}");
    }
    for query in [
        "{ pledged { __typename } }",
        "{ pledges { id __typename } }",
    ] {
        graph.is_refused(query, "no subgraph tells the concrete types");
    }
    graph.is_refused("{ filed { amount } }", "no subgraph can resolve");
    // Clients are not told that the interface stands for itself.
    let (data, _) = graph.data("{ __type(name: \"Deed\") { kind possibleTypes { name } } }");
    assert_eq!(
        data["__type"],
        json!({ "kind": "INTERFACE", "possibleTypes": [] })
    );
}

#[test]
fn an_overridden_field_serves_while_its_label_is_off() {
    let sensors = "
        type Query { gauge: Gauge station: Station }
        interface Gauge { pressure: Int }
        type Station implements Gauge @key(fields: \"id\") { id: ID! pressure: Int }
    ";
    let climate = "
        type Query { nearest: Station }
        type Station @key(fields: \"id\") { id: ID! pressure: Int @override(from: \"sensors\", label: \"moved\") }
    ";
    let station =
        |pressure: i32| json!({ "__typename": "Station", "id": "s1", "pressure": pressure });
    let start = |yaml: &str| {
        let fields = json!({ "Query.gauge": station(1), "Query.station": station(1) });
        let own = json!({ "Query.nearest": station(2), "Station.pressure": 2 });
        Graph::start(
            &[("sensors", sensors, fields), ("climate", climate, own)],
            yaml,
        )
    };
    let query = "{ gauge { pressure } station { pressure } }";
    let all = |pressure: i32| json!({ "gauge": { "pressure": pressure }, "station": { "pressure": pressure } });
    assert_eq!(start("").data(query), (all(1), 1));
}
