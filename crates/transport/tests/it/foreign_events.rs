//! Subscriptions to subgraphs of others: GraphQL Yoga, graphql-ws, subscriptions-transport-ws, Apollo Server with graphql-ws,
//! Strawberry.

use std::{
    future::poll_fn,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use ogive_execute::{EventStream, SubgraphRequest, Transport};
use ogive_testbase::{
    left_out,
    needs::{ORACLE_IS_OFF, oracle},
};
use ogive_transport::{
    Client, Endpoint, EventProtocol, EventSource, HeaderRule, HeaderRules, NameMatch,
    RequestTransport, Traffic,
};

/// The servers of `oracle/subscriptions`, for as long as it lives.
struct Servers {
    child: Child,
    urls: String,
}

impl Servers {
    fn start(program: &Path, server: &Path) -> Servers {
        let mut child = Command::new(program)
            .arg(server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut urls = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut urls).unwrap();
        Servers { child, urls }
    }

    fn endpoint(&self, name: &str, protocol: EventProtocol) -> Endpoint {
        let after = self.urls.split(&format!("\"{name}\":\"")).nth(1).unwrap();
        let url = after.split('"').next().unwrap();
        let rules = HeaderRules::new(vec![HeaderRule::Propagate {
            from: NameMatch::Named(http::header::AUTHORIZATION),
            rename: None,
            default: None,
        }]);
        let mut endpoint = Endpoint::new(name, url, Traffic::default(), rules);
        let source = EventSource {
            protocol,
            ..EventSource::default()
        };
        endpoint.events = Some(source.into());
        endpoint
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn request(query: &str) -> SubgraphRequest {
    SubgraphRequest {
        subgraph: 0,
        body: format!("{{\"query\":\"{query}\"}}").into(),
        idempotent: false,
    }
}

async fn next(events: &mut EventStream<'_>) -> Option<String> {
    let event = poll_fn(|cx| events.as_mut().poll_next(cx));
    let event = tokio::time::timeout(Duration::from_secs(60), event).await;
    let event = event.expect("an event in time")?.unwrap();
    Some(String::from_utf8(event.body.to_vec()).unwrap())
}

#[tokio::test]
async fn subgraphs_of_others_are_subscribed_to_in_every_protocol() {
    let Some(folder) = oracle("subscriptions/node_modules/graphql-ws") else {
        return left_out(ORACLE_IS_OFF);
    };
    let servers = Servers::start(Path::new("node"), &folder.join("subscriptions/server.mjs"));
    for (name, protocol) in [
        ("yoga", EventProtocol::Sse),
        ("yoga", EventProtocol::Auto),
        ("modern", EventProtocol::TransportWs),
        ("legacy", EventProtocol::LegacyWs),
        ("apollo", EventProtocol::TransportWs),
        ("apollo", EventProtocol::Auto),
    ] {
        subscribe_to(&servers, name, protocol).await;
    }
}

#[tokio::test]
async fn strawberry_is_subscribed_to_in_every_protocol() {
    let Some(folder) = oracle("subscriptions") else {
        return left_out(ORACLE_IS_OFF);
    };
    let python = folder.join("subscriptions/python/bin/python");
    if !python.exists() {
        return left_out("the Python packages of oracle/subscriptions are not installed");
    }
    let server = folder.join("subscriptions/strawberry_server.py");
    let servers = Servers::start(&python, &server);
    for protocol in [
        EventProtocol::TransportWs,
        EventProtocol::LegacyWs,
        EventProtocol::Sse,
        EventProtocol::Multipart,
        EventProtocol::Auto,
    ] {
        subscribe_to(&servers, "strawberry", protocol).await;
    }
}

async fn subscribe_to(servers: &Servers, name: &str, protocol: EventProtocol) {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer t"));
    let endpoints = [servers.endpoint(name, protocol)];
    let client = Client::new();
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let open = |query: &'static str| transport.subscribe(request(query));
    // Events come whole and in order, and end.
    let mut events = open("subscription { count(to: 500) }").await.unwrap();
    for count in 1..=500 {
        let expected = format!("{{\"data\":{{\"count\":{count}}}}}");
        let event = next(&mut events).await;
        // Python writes a space behind commas and colons.
        let event = event.map(|event| event.replace(' ', ""));
        assert_eq!(event, Some(expected), "{name} {protocol:?}");
    }
    assert_eq!(next(&mut events).await, None, "{name} {protocol:?}");
    // The subgraph knows who asks.
    let mut events = open("subscription { whoAmI }").await.unwrap();
    let who = next(&mut events).await.unwrap();
    assert!(who.contains("Bearer t"), "{name} {protocol:?}: {who}");
    // Several at a time; one that is given up ends alone.
    let mut forever = open("subscription { forever }").await.unwrap();
    let first = next(&mut forever).await.unwrap().replace(' ', "");
    assert_eq!(first, "{\"data\":{\"forever\":1}}");
    let mut beside = open("subscription { count(to: 1) }").await.unwrap();
    drop(forever);
    assert!(next(&mut beside).await.is_some());
    assert_eq!(next(&mut beside).await, None);
    // What does not validate is told in its one answer.
    let mut wrong = open("subscription { nothing }").await.unwrap();
    let answer = next(&mut wrong).await.unwrap();
    assert!(
        answer.contains("errors") && answer.contains("nothing"),
        "{name}: {answer}"
    );
    assert_eq!(next(&mut wrong).await, None, "{name} {protocol:?}");
}
