//! Events that subgraphs send by requests (callback 1.0): the test is the subgraph.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Command, Stdio},
};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_gateway::GatewayOptions;
use ogive_testbase::{
    left_out,
    needs::{ORACLE_IS_OFF, oracle},
};
use serde_json::{Value, json};

use super::{
    Streamed,
    feed::FeedStream,
    over_http::{Client, SSE, lines},
};
use crate::{
    graph::{Served, config, state},
    http_client::{Answer, Connection},
};

/// Fault, code and what becomes of it; `docs/faults.md` is made from them, too.
pub(crate) const CALLBACK_FAULTS: &[(&str, &str, &str)] = &[
    (
        "callback: somebody who does not know the secret, or a request of which nobody can say whose it is",
        "",
        "400; the subscription has not noticed",
    ),
    (
        "callback: for a subscription that is none, or over",
        "",
        "404, and what comes is thrown away",
    ),
    (
        "callback: an event before a `check`",
        "SUBREQUEST_STREAM_MALFORMED",
        "400; the subscription ends",
    ),
    (
        "callback: an action that is none, an event that is no object, errors that are no list",
        "SUBREQUEST_STREAM_MALFORMED",
        "400; the subscription ends",
    ),
    (
        "callback: an event larger than `response_max_bytes`",
        "",
        "413; the subscription goes on without it",
    ),
    (
        "callback: the subgraph answers and never asks back",
        "SUBREQUEST_TIMEOUT",
        "opened again by `max_reconnect_attempts`",
    ),
    (
        "callback: nothing is heard for three heartbeats",
        "SUBREQUEST_STREAM_LOST",
        "opened again by `max_reconnect_attempts`",
    ),
    (
        "callback: sends events after the end",
        "",
        "404; nobody is harmed",
    ),
];

const WITHHELD: &str = "subscription { withheld }";

/// A gateway that is called back, and a client of it.
struct Called {
    graph: Streamed,
    client: Client,
    source: FeedStream,
    emitter: Emitter,
}

/// Whoever has the events.
struct Emitter {
    address: SocketAddr,
    path: String,
    id: String,
    verifier: String,
}

impl Called {
    fn with(callback: &str, more: &str) -> Called {
        Called::at("/back", callback, more)
    }
    fn at(prefix: &str, callback: &str, more: &str) -> Called {
        // The test is slow, not gone.
        let callback = match callback {
            "" => ", heartbeat_interval: 60s",
            callback => callback,
        };
        let yaml = format!(
            "  max_reconnect_attempts: 0\n  mode:\n    callback: {{ public_url: 'http://gateway.test{prefix}/', path: \
             {prefix}, subgraphs: [events]{callback} }}\n{more}"
        );
        let graph = Streamed::with(&yaml);
        let client = Client::subscribe(graph.served.address, SSE, WITHHELD);
        let source = graph.feed.opened();
        let (head, body) = source.request.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("accept: application/json;callbackspec=1.0"),
            "{head}"
        );
        let body: Value = serde_json::from_str(body).unwrap();
        let told = &body["extensions"]["subscription"];
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        let url = text("callbackUrl");
        let path = url.strip_prefix("http://gateway.test").unwrap().to_owned();
        assert_eq!(path, format!("{prefix}/{}", text("subscriptionId")));
        assert!(text("subscriptionId").len() >= 32 && text("verifier").len() >= 32);
        let emitter = Emitter {
            address: graph.served.address,
            path,
            id: text("subscriptionId"),
            verifier: text("verifier"),
        };
        Called {
            graph,
            client,
            source,
            emitter,
        }
    }
    /// One whose subgraph has asked and answered.
    fn begun(callback: &str, more: &str) -> Called {
        let mut called = Called::with(callback, more);
        assert_eq!(called.emitter.say(json!({"action": "check"})), 204);
        called.source.answer(200, r#"{"data":null}"#);
        called
    }
    /// What the client hears up to the end.
    fn rest(&mut self) -> String {
        self.client.until("event: complete")
    }
}

impl Emitter {
    fn post(&self, path: &str, body: &str) -> Answer {
        let mut connection = Connection::open(self.address);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_what_is_taken(format!("{head}{body}").as_bytes());
        connection.read()
    }
    fn message(&self, mut message: Value) -> String {
        message["kind"] = "subscription".into();
        message["id"] = self.id.as_str().into();
        message["verifier"] = self.verifier.as_str().into();
        message.to_string()
    }
    /// Says something; the status of the answer, which says which protocol it is.
    fn say(&self, message: Value) -> u16 {
        let answer = self.post(&self.path, &self.message(message));
        assert_eq!(answer.header("subscription-protocol"), Some("callback/1.0"));
        answer.status
    }
    fn next(&self, n: usize) -> u16 {
        self.say(json!({"action": "next", "payload": {"data": {"withheld": n}}}))
    }
}

#[test]
fn events_come_by_requests_of_the_subgraph() {
    let mut called = Called::begun("", "");
    for n in 0..200 {
        assert_eq!(called.emitter.next(n), 202);
    }
    for n in 0..200 {
        let event = called.client.until("\n\n");
        let event = match event.trim() {
            ":" => called.client.until("\n\n"),
            _ => event,
        };
        assert!(event.contains(&format!("{{\"withheld\":{n}}}")), "{event}");
    }
    assert_eq!(called.emitter.say(json!({"action": "complete"})), 202);
    assert!(!called.rest().contains("errors"));
    // Whoever goes on hears that it is over.
    for again in ["check", "complete"] {
        assert_eq!(called.emitter.say(json!({"action": again})), 404);
    }
    assert_eq!(called.emitter.next(0), 404);
}

#[test]
fn a_client_that_leaves_ends_the_subscription() {
    let called = Called::begun("", "");
    drop(called.client);
    called.graph.wait_for_open(0);
    let since = std::time::Instant::now();
    while called.emitter.say(json!({"action": "check"})) != 404 {
        assert!(since.elapsed() < crate::http_client::PATIENCE);
    }
    assert_eq!(called.emitter.next(1), 404);
}

#[test]
fn who_does_not_know_the_secret_changes_nothing() {
    let mut called = Called::begun("", "");
    let emitter = &called.emitter;
    let guessed = |verifier: &str, action: &str| {
        let mut message = json!({"kind": "subscription", "action": action, "id": emitter.id,
            "verifier": verifier, "payload": {"data": {"withheld": 7}}});
        if action == "complete" {
            message["errors"] = json!([{"message": "guessed"}]);
        }
        message.to_string()
    };
    let mut almost = emitter.verifier.clone();
    almost.replace_range(0..1, if almost.starts_with('0') { "1" } else { "0" });
    for verifier in ["", "x", &almost, &emitter.id] {
        for action in ["check", "next", "complete", "other"] {
            let answer = emitter.post(&emitter.path, &guessed(verifier, action));
            assert_eq!(answer.status, 400, "{verifier} {action}");
        }
    }
    for garbage in ["", "garbage", "[]", "{}", "null"] {
        assert_eq!(
            emitter.post(&emitter.path, garbage).status,
            400,
            "{garbage}"
        );
    }
    for path in ["/back/", "/back/0", "/back/../graphql", "/back"] {
        let answer = emitter.post(path, &emitter.message(json!({"action": "check"})));
        assert_eq!(answer.status, 404, "{path}");
    }
    let mut connection = Connection::open(emitter.address);
    let get = format!("GET {} HTTP/1.1\r\nhost: h\r\n\r\n", emitter.path);
    connection.write(get.as_bytes());
    assert_eq!(connection.read().status, 405);
    // The subscription has not noticed.
    assert_eq!(emitter.next(1), 202);
    assert_eq!(emitter.say(json!({"action": "complete"})), 202);
    let heard = called.rest();
    assert!(
        heard.contains("{\"withheld\":1}") && !heard.contains("errors"),
        "{heard}"
    );
}

#[test]
fn what_is_against_the_protocol_ends_the_subscription_with_a_code() {
    for (is_begun, message, status, code) in [
        (
            false,
            json!({"action": "next", "payload": {"data": null}}),
            400,
            "SUBREQUEST_STREAM_MALFORMED",
        ),
        (
            true,
            json!({"action": "again"}),
            400,
            "SUBREQUEST_STREAM_MALFORMED",
        ),
        (
            true,
            json!({"action": "next"}),
            400,
            "SUBREQUEST_STREAM_MALFORMED",
        ),
        (
            true,
            json!({"action": "complete", "errors": "why"}),
            400,
            "SUBREQUEST_STREAM_MALFORMED",
        ),
        (
            true,
            json!({"action": "complete", "errors": [{"message": "m", "extensions": {"code": "OWN"}}]}),
            202,
            "OWN",
        ),
    ] {
        let errors = "include_subgraph_errors: { all: true }\n";
        let mut called = if is_begun {
            Called::begun("", errors)
        } else {
            Called::with("", errors)
        };
        let said = called.emitter.say(message.clone());
        assert_eq!(said, status, "{message}");
        if !is_begun {
            called.source.answer(200, r#"{"data":null}"#);
        }
        let heard = called.rest();
        assert!(heard.contains(code), "{message}: {heard}");
        assert_eq!(called.emitter.say(json!({"action": "check"})), 404);
    }
}

#[test]
fn a_subgraph_that_refuses_or_does_not_ask_back_is_no_source() {
    let errors = "include_subgraph_errors: { all: true }\n";
    let mut refused = Called::with("", errors);
    refused
        .source
        .answer(200, r#"{"errors":[{"message":"no such thing"}]}"#);
    assert!(refused.rest().contains("no such thing"));
    let quick = format!("    passthrough: {{ all: {{ acknowledge_timeout: 50ms }} }}\n{errors}");
    let mut silent = Called::with("", &quick);
    silent.source.answer(200, r#"{"data":null}"#);
    let heard = silent.rest();
    assert!(
        heard.contains("SUBREQUEST_TIMEOUT") || heard.contains("errors"),
        "{heard}"
    );
    assert_eq!(silent.emitter.say(json!({"action": "check"})), 404);
}

#[test]
fn the_id_of_a_subscription_is_in_no_log() {
    let path = format!("{}-callbacks.txt", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path);
    let _ = std::fs::remove_file(&path);
    let log = format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', fields: [path, status] }} }}\n",
        path.display()
    );
    let called = Called::at("/graphql/back", "", &log);
    let emitter = &called.emitter;
    assert_eq!(emitter.say(json!({"action": "check"})), 204);
    // Turned away before anybody looks into it.
    let mut connection = Connection::open(emitter.address);
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: gateway.test\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        emitter.path
    );
    connection.write_what_is_taken(head.as_bytes());
    assert_eq!(connection.read().status, 400);
    let found = lines(&path, 3);
    let expected = [
        "path=/graphql status=200",
        "path=/graphql/back/ status=204",
        "path=/graphql/back/ status=400",
    ];
    assert_eq!(found, expected);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn who_is_not_heard_of_is_lost() {
    let mut called = Called::begun(", heartbeat_interval: 50ms", "");
    let heard = called.rest();
    assert!(heard.contains("SUBREQUEST_STREAM_LOST"), "{heard}");
    let never = Called::begun(", heartbeat_interval: 0s", "");
    assert!(never.source.request.contains("\"heartbeatIntervalMs\":0"));
}

#[test]
fn an_event_that_is_too_large_is_refused() {
    let called = Called::begun(
        "",
        "traffic_shaping: { all: { response_max_bytes: 1KiB } }\n",
    );
    let large = "x".repeat(4 << 10);
    let emitter = &called.emitter;
    let message = json!({"action": "next", "payload": {"data": {"withheld": large}}});
    let answer = emitter.post(&emitter.path, &emitter.message(message));
    assert_eq!(answer.status, 413);
}

/// The plugin of Apollo Server as it is.
#[test]
fn the_plugin_of_apollo_server_sends_its_events() {
    let Some(folder) = oracle("subscriptions/node_modules/@apollo/server") else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut server = Command::new("node")
        .arg(folder.join("subscriptions/server.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut urls = String::new();
    let stdout = server.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut urls).unwrap();
    let urls: Value = serde_json::from_str(&urls).unwrap();
    let url = urls["callback"].as_str().unwrap();
    let sdl = "type Query { a: Int }\n\
               type Subscription { count(to: Int!): Int!, whoAmI: String, forever: Int }";
    let input = SubgraphInput {
        name: "events",
        url,
        sdl,
    };
    let supergraph = compose(&[input], &ComposeOptions::default()).supergraph_sdl;
    let supergraph = supergraph.unwrap();
    let mut config = config(
        "subscription:\n  enabled: true\n  client: { heartbeat_interval: 1s }\n  mode: { callback: { public_url: 'http://h', subgraphs: [events], \
         heartbeat_interval: 4s }, passthrough: { all: { acknowledge_timeout: 60s } } }\ninclude_subgraph_errors: { all: true }\n",
    );
    let served = Served::start(state(&supergraph, &config), &config);
    let own = Url(format!("http://{}/callback", served.address));
    config.subscription.mode.callback.public_url = Some(own);
    let options = GatewayOptions::load(&config).unwrap();
    let of = state(&supergraph, &config);
    served.gateway.reload_all(of, options);
    let ask = |query: &str| Client::subscribe(served.address, SSE, query);
    // Whole and in order.
    let text = ask("subscription { count(to: 300) }").until("event: complete");
    let counts = text.split("\"count\":").skip(1);
    let counts = counts.map(|rest| rest.split('}').next().unwrap().parse().unwrap());
    let counts: Vec<usize> = counts.collect();
    assert_eq!(counts, (1..=300).collect::<Vec<_>>());
    assert!(!text.contains("errors"), "{text}");
    // What stays open longer than three heartbeats is not lost, and ends when the client leaves.
    let mut forever = ask("subscription { forever }");
    forever.until("{\"forever\":1}");
    for _ in 0..14 {
        forever.until(":\n\n");
    }
    assert_eq!(served.gateway.subscriptions().open, 1);
    drop(forever);
    let since = std::time::Instant::now();
    while served.gateway.subscriptions().sources > 0 {
        assert!(since.elapsed() < crate::http_client::PATIENCE);
        std::thread::yield_now();
    }
    drop(server.stdin.take());
    server.wait().unwrap();
}
