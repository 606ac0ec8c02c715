//! The protocols of subgraphs, as the configuration names them, end to end: mock, gateway, client.

use std::{
    io::{Read, Write},
    sync::Arc,
    time::Duration,
};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_gateway::GatewayOptions;
use ogive_mock::{
    Data, EventFault, EventSchedule, Options, Server, Service, Settings, Source, Subgraph,
};
use serde_json::json;

use crate::{
    graph::{Served, config, state},
    http_client::connect,
    scripts::Script,
};

const SDL: &str = "
type Query { users: [User] }
type Subscription { userAdded: User }
type User { id: ID! name: String }
";
const DATA: &str = "types: { User: [{ id: 1, name: Ann }, { id: 2, name: Bob }] }";

/// What a client gets over server-sent events, to the end of the stream.
fn subscribed(mode: &str, faults: &[&str]) -> String {
    subscribed_with(mode, faults, |url| (url, String::new()))
}

/// The same; `hooks` gets the URL of the subgraph, and gives the one that the gateway knows, and further configuration.
fn subscribed_with(
    mode: &str,
    faults: &[&str],
    hooks: impl FnOnce(String) -> (String, String),
) -> String {
    let source = Source::Data(Arc::new(Data::parse(DATA).unwrap()));
    let subgraph = Subgraph::new("users", SDL, source, Options::default()).unwrap();
    let faults = faults.iter().map(|fault| EventFault::parse(fault).unwrap());
    let settings = Settings {
        events: EventSchedule {
            count: Some(3),
            interval: Duration::ZERO,
            faults: faults.collect(),
        },
        ..Settings::default()
    };
    let mut service = Service::new();
    service.add("users", subgraph, settings);
    let mock = Server::start(Arc::new(service), "127.0.0.1:0", 1).unwrap();
    let input = SubgraphInput {
        name: "users",
        url: "",
        sdl: SDL,
    };
    let composed = compose(&[input], &ComposeOptions::default());
    let supergraph = composed.supergraph_sdl.unwrap();
    let (url, more) = hooks(mock.url("users"));
    let mut config = config(&format!("subscription:\n  enabled: true\n{mode}{more}"));
    config
        .override_subgraph_url
        .insert("users".into(), Url(url));
    let served = Served::start(state(&supergraph, &config), &config);
    if mode.contains("callback") {
        // Subgraphs call whatever port the gateway has.
        let url = format!("http://{}/callback", served.address);
        config.subscription.mode.callback.public_url = Some(Url(url));
        let options = GatewayOptions::load(&config).unwrap();
        let state = state(&supergraph, &config);
        served.gateway.reload_all(state, options);
    }
    let body = json!({"query": "subscription { userAdded { name } }"}).to_string();
    let (address, length) = (served.address, body.len());
    let mut stream = connect(address);
    let text = format!(
        "POST /graphql HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn mode(protocol: &str) -> String {
    format!(
        "  max_reconnect_attempts: 0\n  mode: {{ passthrough: {{ all: {{ protocol: {protocol}, acknowledge_timeout: 60s }} }} }}\n"
    )
}

/// A subgraph that is busy for three heartbeats is lost.
fn called_back(heartbeat: &str) -> String {
    format!(
        "  max_reconnect_attempts: 0\n  mode: {{ callback: {{ public_url: 'http://h', subgraphs: [users], heartbeat_interval: {heartbeat} }}, \
         passthrough: {{ all: {{ acknowledge_timeout: 60s }} }} }}\n"
    )
}

/// The protocols that a subgraph may speak, each with its configuration.
fn every_mode() -> impl Iterator<Item = (&'static str, String)> {
    let protocols = [
        "auto",
        "graphql_ws",
        "graphql_transport_ws",
        "sse",
        "multipart",
    ];
    let modes = protocols.map(|protocol| (protocol, mode(protocol)));
    modes.into_iter().chain([("callback", called_back("60s"))])
}

#[test]
fn events_arrive_whichever_protocol_the_subgraph_speaks() {
    for (protocol, mode) in every_mode() {
        let answer = subscribed(&mode, &[]);
        let names = answer.split("\"name\":\"").skip(1).map(|rest| &rest[..3]);
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["Ann", "Bob", "Ann"], "{protocol}: {answer}");
        assert!(answer.contains("event: complete"), "{protocol}: {answer}");
        assert!(!answer.contains("errors"), "{protocol}: {answer}");
    }
}

/// The subgraph is reached only at the URL that a hook sends the request to, and its events are those that a hook makes of them.
#[test]
fn hooks_see_requests_and_events_whichever_protocol_the_subgraph_speaks() {
    for (protocol, mode) in every_mode() {
        let mut script = None;
        let answer = subscribed_with(&mode, &[], |url| {
            let port = url.rsplit(':').next().unwrap();
            let (port, path) = port.split_once('/').unwrap();
            let script = script.insert(Script::new(&format!(
                "fn subgraph_service(service, name) {{
                    service.map_request(|request| {{ request.subgraph.uri.port = {port}; }});
                    service.map_response(|response| {{
                        if response.has_next {{
                            let data = response.body.data;
                            data.userAdded.name += \"!\";
                            response.body.data = data;
                        }}
                    }});
                }}"
            )));
            // Nothing listens there.
            (format!("http://127.0.0.1:1/{path}"), script.yaml())
        });
        let names = answer.split("\"name\":\"").skip(1).map(|rest| &rest[..4]);
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["Ann!", "Bob!", "Ann!"], "{protocol}: {answer}");
        assert!(answer.contains("event: complete"), "{protocol}: {answer}");
        assert!(!answer.contains("errors"), "{protocol}: {answer}");
    }
}

#[test]
fn a_stream_that_is_lost_is_an_error_with_a_code() {
    let protocols = ["graphql_ws", "graphql_transport_ws", "sse", "multipart"];
    let modes = protocols.map(|protocol| (protocol, mode(protocol)));
    // Nothing else tells that one is gone that calls back; the two events come before.
    let called = ("callback", called_back("4s"));
    for (protocol, mode) in modes.into_iter().chain([called]) {
        let answer = subscribed(&mode, &["drop@3"]);
        assert_eq!(
            answer.matches("\"name\"").count(),
            2,
            "{protocol}: {answer}"
        );
        let code = "SUBREQUEST_STREAM_LOST";
        assert!(answer.contains(code), "{protocol}: {answer}");
    }
}
