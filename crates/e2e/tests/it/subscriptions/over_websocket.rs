//! WebSockets: both sub-protocols, and what clients may not do.

use std::{future::Future, net::SocketAddr, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode};
use ogive_stream::{Protocol, Received, WebSocket, WebSocketLimits, handshake::ClientHandshake};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use super::{Streamed, over_http::lines};
use crate::http_client::{JSON, send};
use crate::identity::{
    ISSUER, claims,
    made::{Folder, Made, jwks},
};

pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(180), test).await };
    runtime.block_on(bounded).expect("took too long")
}

pub(super) struct Client<S = TcpStream> {
    pub(super) socket: WebSocket<S>,
}

/// The answer to a request for a WebSocket, and the connection.
pub(super) async fn upgrade(
    graph: &Streamed,
    protocol: Protocol,
    headers: &str,
) -> (StatusCode, HeaderMap, TcpStream, ClientHandshake) {
    upgrade_at(graph.served.address, protocol, headers).await
}

pub(super) async fn upgrade_at(
    address: SocketAddr,
    protocol: Protocol,
    headers: &str,
) -> (StatusCode, HeaderMap, TcpStream, ClientHandshake) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let handshake = ClientHandshake::new(protocol).unwrap();
    let mut own = HeaderMap::new();
    handshake.write(&mut own);
    let mut head = format!("GET /graphql HTTP/1.1\r\nhost: {address}\r\n{headers}");
    for (name, value) in &own {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.unwrap();
        read.push(byte);
    }
    let text = String::from_utf8(read).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let mut found = HeaderMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let name: http::HeaderName = name.parse().unwrap();
        found.append(name, HeaderValue::from_str(value).unwrap());
    }
    (status, found, stream, handshake)
}

impl Client {
    pub(super) async fn connect(graph: &Streamed, protocol: Protocol) -> Client {
        let (status, headers, stream, handshake) = upgrade(graph, protocol, "").await;
        handshake.check(status, &headers).unwrap();
        let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
        Client { socket }
    }
    pub(super) async fn open(graph: &Streamed, protocol: Protocol) -> Client {
        let mut client = Client::connect(graph, protocol).await;
        client.say(json!({"type": "connection_init"})).await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(super) async fn say(&mut self, message: Value) {
        self.socket.send(message.to_string()).await.unwrap();
    }
    pub(super) async fn hear(&mut self) -> Value {
        loop {
            match self.socket.receive().await {
                Received::Text(text) => return serde_json::from_str(text.as_str()).unwrap(),
                Received::Control => {}
                other => panic!("{other:?}"),
            }
        }
    }
    /// The code with which the connection ends.
    pub(super) async fn closed(&mut self) -> u16 {
        loop {
            match self.socket.receive().await {
                Received::Closed(Some(close)) => return close.code,
                Received::Text(_) | Received::Control => {}
                other => panic!("{other:?}"),
            }
        }
    }
    pub(super) async fn subscribe(&mut self, id: &str, query: &str) {
        let payload = json!({ "query": query });
        self.say(json!({"type": "subscribe", "id": id, "payload": payload}))
            .await;
    }
}

pub(super) const MODERN: Protocol = Protocol::TransportWs;

#[test]
fn queries_mutations_errors_and_subscriptions_share_a_connection() {
    let graph = Streamed::with("");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        for query in ["{ping}", "mutation{ping}"] {
            client.subscribe("q", query).await;
            let next = json!({"id": "q", "type": "next", "payload": {"data": {"ping": 1}}});
            assert_eq!(client.hear().await, next);
            assert_eq!(client.hear().await, json!({"id": "q", "type": "complete"}));
        }
        client.subscribe("e", "{nothing}").await;
        let error = client.hear().await;
        assert_eq!(
            (&error["type"], &error["id"]),
            (&json!("error"), &json!("e"))
        );
        let code = &error["payload"][0]["extensions"]["code"];
        assert_eq!(code, "GRAPHQL_VALIDATION_FAILED");
        client
            .subscribe("s", "subscription { added { id text } }")
            .await;
        let mut source = graph.feed.opened();
        source.add("1");
        let payload = json!({"data": {"added": {"id": "1", "text": "text of 1"}}});
        assert_eq!(
            client.hear().await,
            json!({"id": "s", "type": "next", "payload": payload})
        );
        source.complete();
        assert_eq!(client.hear().await, json!({"id": "s", "type": "complete"}));
        client.say(json!({"type": "ping"})).await;
        assert_eq!(client.hear().await["type"], "pong");
    });
}

#[test]
fn events_arrive_in_order_whether_the_socket_takes_them_at_once_or_later() {
    const EVENTS: usize = 20_000;
    let path = format!("{}-websocket.txt", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path);
    let _ = std::fs::remove_file(&path);
    let graph = Streamed::with(&format!(
        "  queue_capacity: 100000\n  queue_bytes: 64MiB\nhttp: {{ write_timeout: 10m }}\ntelemetry: {{ access_log: {{ enabled: true, \
         format: text, path: '{}', fields: [status, events, end] }} }}\n",
        path.display()
    ));
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        client.subscribe("1", "subscription { added { id } }").await;
        let mut source = graph.feed.opened();
        // So long that no socket has room for all of them.
        let long = "x".repeat(1_000);
        for n in 0..EVENTS {
            source.add(&format!("{n} {long}"));
            if n < 10 {
                let id = &client.hear().await["payload"]["data"]["added"]["id"];
                assert_eq!(*id, format!("{n} {long}"));
            }
        }
        source.complete();
        for n in 10..EVENTS {
            let id = &client.hear().await["payload"]["data"]["added"]["id"];
            assert_eq!(*id, format!("{n} {long}"));
        }
        assert_eq!(client.hear().await["type"], "complete");
    });
    // Behind those of the upgrade and of the beginning.
    let ended = lines(&path, 3);
    let expected = format!("status=200 events={EVENTS} end=complete");
    assert_eq!(ended[2], expected, "{ended:?}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_client_that_stops_or_leaves_ends_the_source() {
    let graph = Streamed::with("");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        client.subscribe("s", "subscription { counted }").await;
        let source = graph.feed.opened();
        client.say(json!({"type": "complete", "id": "s"})).await;
        source.wait_until_left();
        client.subscribe("s", "subscription { counted }").await;
        let source = graph.feed.opened();
        drop(client);
        source.wait_until_left();
    });
    graph.wait_for_open(0);
}

#[test]
fn the_legacy_sub_protocol_is_spoken_too() {
    let graph = Streamed::with("");
    run(async {
        let mut client = Client::open(&graph, Protocol::LegacyWs).await;
        let payload = json!({"query": "subscription { counted }"});
        client
            .say(json!({"type": "start", "id": "1", "payload": payload}))
            .await;
        let mut source = graph.feed.opened();
        source.send(r#"{"counted":1}"#);
        let data = json!({"id": "1", "type": "data", "payload": {"data": {"counted": 1}}});
        assert_eq!(client.hear().await, data);
        client.say(json!({"type": "stop", "id": "1"})).await;
        source.wait_until_left();
        client.say(json!({"type": "connection_terminate"})).await;
        assert_eq!(client.closed().await, 1000);
    });
}

#[test]
fn violations_close_the_connection_with_the_codes_of_the_protocol() {
    let graph = Streamed::with("  client:\n    websocket:\n      connection_init_timeout: 50ms\n");
    run(async {
        let mut silent = Client::connect(&graph, MODERN).await;
        assert_eq!(silent.closed().await, 4408);
    });
    let graph = Streamed::with(
        "  client:\n    websocket:\n      max_operations_per_connection: 1\n      max_message_size: 1KiB\n",
    );
    run(async {
        let mut early = Client::connect(&graph, MODERN).await;
        early.subscribe("1", "{ping}").await;
        assert_eq!(early.closed().await, 4401);
        let mut garbage = Client::open(&graph, MODERN).await;
        garbage.say(json!("no message")).await;
        assert_eq!(garbage.closed().await, 4400);
        let mut again = Client::open(&graph, MODERN).await;
        again.say(json!({"type": "connection_init"})).await;
        assert_eq!(again.closed().await, 4429);
        let mut twice = Client::open(&graph, MODERN).await;
        twice.subscribe("1", "subscription { counted }").await;
        let _source = graph.feed.opened();
        twice.subscribe("2", "{ping}").await;
        let refused = twice.hear().await;
        assert_eq!(
            refused["payload"][0]["extensions"]["code"],
            "OPERATIONS_LIMITED"
        );
        twice.subscribe("1", "subscription { counted }").await;
        assert_eq!(twice.closed().await, 4409);
        let mut large = Client::open(&graph, MODERN).await;
        large.subscribe("1", &" ".repeat(2 << 10)).await;
        assert_eq!(large.closed().await, 1009);
    });
}

#[test]
fn pages_of_other_origins_and_upgrades_that_are_none_are_refused() {
    let graph = Streamed::with("");
    run(async {
        let foreign = upgrade(&graph, MODERN, "origin: https://evil.example\r\n").await;
        assert_eq!(foreign.0, StatusCode::FORBIDDEN);
        let own = format!("origin: http://{}\r\n", graph.served.address);
        let own = upgrade(&graph, MODERN, &own).await;
        assert_eq!(own.0, StatusCode::SWITCHING_PROTOCOLS);
    });
    let graph = Streamed::with("cors:\n  policies:\n    - origins: [\"https://app.example\"]\n");
    run(async {
        let known = upgrade(&graph, MODERN, "origin: https://app.example\r\n").await;
        assert_eq!(known.0, StatusCode::SWITCHING_PROTOCOLS);
    });
    let graph = Streamed::with("  client:\n    websocket:\n      enabled: false\n");
    run(async {
        let off = upgrade(&graph, MODERN, "").await;
        assert_eq!(off.0, StatusCode::BAD_REQUEST);
    });
    let graph = Streamed::with("  client:\n    websocket:\n      path: /ws\n");
    run(async {
        let elsewhere = upgrade(&graph, MODERN, "").await;
        assert_eq!(elsewhere.0, StatusCode::BAD_REQUEST);
    });
    // It is a path for WebSockets, and for nothing else.
    let headers = [JSON, ("connection", "upgrade"), ("upgrade", "websocket")];
    let body = br#"{"query":"{ __typename }"}"#;
    let posted = send(graph.served.address, "POST", "/ws", &headers, body);
    assert_eq!(posted.status, 404, "{}", posted.text());
}

#[test]
fn headers_may_come_with_the_introduction() {
    let graph = Streamed::with(
        "headers:\n  all:\n    request:\n      - propagate:\n          named: authorization\n      - propagate:\n          named: x-other\n",
    );
    run(async {
        let mut client = Client::connect(&graph, MODERN).await;
        let payload = json!({"Authorization": "Bearer a", "x-other": "not asked for"});
        client
            .say(json!({"type": "connection_init", "payload": payload}))
            .await;
        client.hear().await;
        client.subscribe("1", "subscription { counted }").await;
        let source = graph.feed.opened();
        assert!(
            source.request.contains("authorization: Bearer a"),
            "{}",
            source.request
        );
        assert!(!source.request.contains("x-other"));
    });
}

#[test]
fn a_reload_and_the_end_of_the_process_close_with_codes_on_which_clients_come_back() {
    let mut graph =
        Streamed::with("  reload_window: 0s\nhttp:\n  connection_shutdown_timeout: 30s\n");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        client.subscribe("1", "subscription { counted }").await;
        let _source = graph.feed.opened();
        graph.reload_without_subscriptions();
        assert_eq!(client.closed().await, 1012);
        graph.reload();
        let mut idle = Client::open(&graph, MODERN).await;
        let mut busy = Client::open(&graph, MODERN).await;
        busy.subscribe("1", "subscription { counted }").await;
        let _source = graph.feed.opened();
        graph.served.begin_stop();
        assert_eq!(idle.closed().await, 1001);
        assert_eq!(busy.closed().await, 1001);
    });
    assert_eq!(graph.served.stopped().cut_off, 0);
}

#[test]
fn pages_that_may_not_use_credentials_come_as_strangers() {
    const PASSED: &str =
        "headers:\n  all:\n    request:\n      - propagate:\n          matching: \".*\"\n";
    let request = |cors: &str, origin: &str| {
        let graph = Streamed::with(&format!("{cors}{PASSED}"));
        let headers = format!(
            "origin: {origin}\r\ncookie: session=1\r\nauthorization: Basic eA\r\nx-user: 1\r\n"
        );
        run(async {
            let (status, found, stream, handshake) = upgrade(&graph, MODERN, &headers).await;
            handshake.check(status, &found).unwrap();
            let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
            let mut client = Client { socket };
            let payload = json!({"authorization": "Bearer own"});
            client
                .say(json!({"type": "connection_init", "payload": payload}))
                .await;
            assert_eq!(client.hear().await["type"], "connection_ack");
            client.subscribe("1", "subscription { counted }").await;
            graph.feed.opened().request
        })
    };
    let any = "cors:\n  allow_any_origin: true\n";
    let named = "cors:\n  policies:\n    - origins: [\"http://evil.example\"]\n";
    for cors in [any, named] {
        let sent = request(cors, "http://evil.example");
        assert!(sent.contains("authorization: Bearer own"), "{sent}");
        for secret in ["cookie", "Basic eA", "x-user"] {
            assert!(!sent.contains(secret), "{secret}: {sent}");
        }
    }
    let trusted = format!("{named}      allow_credentials: true\n");
    let sent = request(&trusted, "http://evil.example");
    assert!(sent.contains("cookie: session=1"), "{sent}");
}

#[test]
fn a_subscription_ends_with_the_api_key_of_its_caller() {
    let folder = Folder::new();
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // Of `abc`.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let keys = json!({"keys": {"a": {"sha256": digest, "expires": now + 20}}});
    let path = folder.write("keys.json", &keys.to_string());
    let graph = Streamed::with(&format!(
        "authentication:\n  router:\n    api_keys:\n      file: '{}'\n      header_name: x-api-key\n",
        path.display()
    ));
    run(async {
        let (status, found, stream, handshake) =
            upgrade(&graph, MODERN, "x-api-key: abc\r\n").await;
        handshake.check(status, &found).unwrap();
        let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
        let mut client = Client { socket };
        client.say(json!({"type": "connection_init"})).await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client.subscribe("1", "subscription { counted }").await;
        let _source = graph.feed.opened();
        assert_eq!(client.closed().await, 4403);
    });
}

#[test]
fn introductions_count_against_the_rate_of_requests() {
    let graph = Streamed::with(
        "traffic_shaping:\n  router:\n    rate_limit: { capacity: 1, interval: 1h, key: ip }\n",
    );
    run(async {
        Client::open(&graph, MODERN).await;
        let mut refused = Client::connect(&graph, MODERN).await;
        refused.say(json!({"type": "connection_init"})).await;
        assert_eq!(refused.closed().await, 4403);
    });
}

#[test]
fn a_reload_ends_subscriptions_that_a_subgraph_has_not_answered() {
    let graph = Streamed::with("  reload_window: 0s\n");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        client.subscribe("1", "subscription { withheld }").await;
        let source = graph.feed.opened();
        graph.reload_without_subscriptions();
        assert_eq!(client.closed().await, 1012);
        source.wait_until_left();
    });
}

#[test]
fn a_client_that_takes_nothing_keeps_no_source_open() {
    let graph = Streamed::with("  queue_capacity: 4\n");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        client.subscribe("1", "subscription { added { id } }").await;
        let source = graph.feed.opened();
        assert!(source.flood(400));
        assert_eq!(graph.served.gateway.subscriptions().overflows, 1);
    });
}

#[test]
fn what_a_subgraph_refuses_is_an_error_of_the_operation_and_ends_it() {
    let graph = Streamed::with("include_subgraph_errors: { all: true }\n");
    run(async {
        let mut client = Client::open(&graph, MODERN).await;
        for events in [0, 1] {
            client.subscribe("1", "subscription { counted }").await;
            let mut source = graph.feed.opened();
            for _ in 0..events {
                source.send(r#"{"counted":1}"#);
                assert_eq!(client.hear().await["type"], "next");
            }
            source.refuse("no");
            let heard = client.hear().await;
            assert_eq!(heard["type"], "error");
            assert_eq!(heard["payload"][0]["message"], "no");
            source.wait_until_left();
        }
        // An event of which nothing could be had is one.
        client.subscribe("2", "subscription { counted }").await;
        let mut source = graph.feed.opened();
        source.send("null");
        let heard = client.hear().await;
        assert_eq!(
            (&heard["type"], &heard["payload"]["data"]["counted"]),
            (&"next".into(), &Value::Null)
        );
        source.send(r#"{"counted":2}"#);
        assert_eq!(client.hear().await["payload"]["data"]["counted"], 2);
    });
}

#[test]
fn a_fresh_token_in_a_ping_keeps_operations_beyond_the_end_of_the_first_one() {
    let (folder, key) = (Folder::new(), Made::new("1"));
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let graph = Streamed::with(&format!(
        "headers: {{ all: {{ request: [ {{ propagate: {{ named: authorization }} }} ] }} }}\nauthentication: {{ router: {{ \
         jwt: {{ clock_skew: 0s, jwks: [{{ url: 'file://{}', issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n",
        path.display()
    ));
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let token = |sub: &str, end: u64| {
        let token = key.token(&claims(json!({"sub": sub, "exp": now + end})));
        json!({ "authorization": format!("Bearer {token}") })
    };
    run(async {
        let mut renewing = Client::connect(&graph, MODERN).await;
        renewing
            .say(json!({"type": "connection_init", "payload": token("a", 20)}))
            .await;
        assert_eq!(renewing.hear().await["type"], "connection_ack");
        renewing
            .subscribe("1", "subscription { added { id text } }")
            .await;
        let mut source = graph.feed.opened();
        let mut other = Client::connect(&graph, MODERN).await;
        other
            .say(json!({"type": "connection_init", "payload": token("b", 20)}))
            .await;
        assert_eq!(other.hear().await["type"], "connection_ack");
        other.subscribe("1", "subscription { counted }").await;
        let _other_source = graph.feed.opened();
        // A ping without a token is a ping.
        renewing
            .say(json!({"type": "ping", "payload": {"a": 1}}))
            .await;
        assert_eq!(
            renewing.hear().await,
            json!({"type": "pong", "payload": {"a": 1}})
        );
        let fresh = token("a", 600);
        renewing
            .say(json!({"type": "ping", "payload": fresh}))
            .await;
        assert_eq!(renewing.hear().await["type"], "pong");
        // The one that is not renewed tells when the first token has ended.
        assert_eq!(other.closed().await, 4403);
        source.add("1");
        assert_eq!(
            renewing.hear().await["payload"]["data"]["added"]["text"],
            "text of 1"
        );
        assert_eq!(graph.feed.told(), fresh["authorization"]);
        // Operations from now on are by the fresh one, too.
        renewing.subscribe("2", "{ping}").await;
        assert_eq!(renewing.hear().await["type"], "next");
        assert_eq!(renewing.hear().await["type"], "complete");
        // Nobody takes over the connection of somebody else.
        renewing
            .say(json!({"type": "ping", "payload": token("b", 600)}))
            .await;
        assert_eq!(renewing.closed().await, 4403);
    });
}

#[test]
fn nobody_moves_a_source_that_others_share_to_what_they_bring() {
    let graph = Streamed::with(
        "headers: { all: { request: [ { propagate: { named: authorization } } ] } }\n",
    );
    run(async {
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(&graph, MODERN).await;
            let payload = json!({ "authorization": "Bearer both" });
            client
                .say(json!({"type": "connection_init", "payload": payload}))
                .await;
            assert_eq!(client.hear().await["type"], "connection_ack");
            client
                .subscribe("1", "subscription { added { id text } }")
                .await;
            clients.push(client);
        }
        let mut source = graph.feed.opened();
        graph.wait_for_open(2);
        let payload = json!({ "authorization": "Bearer mine" });
        clients[0]
            .say(json!({"type": "ping", "payload": payload}))
            .await;
        assert_eq!(clients[0].hear().await["type"], "pong");
        source.add("1");
        for client in &mut clients {
            let message = client.hear().await;
            let text = &message["payload"]["data"]["added"]["text"];
            assert_eq!(text, "text of 1", "{message}");
        }
        assert_eq!(graph.feed.told(), "Bearer both");
        assert!(graph.feed.is_quiet(), "one source serves both");
    });
}
