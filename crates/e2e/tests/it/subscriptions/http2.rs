//! WebSockets over HTTP/2 (RFC 8441): streams of one connection, beside requests.

use std::{
    io::{Read, Write},
    net::SocketAddr,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http2, ext::Protocol, upgrade::Upgraded};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ogive_stream::{WebSocket, WebSocketLimits};
use serde_json::json;
use tokio::net::TcpStream;

use super::{
    Streamed,
    over_websocket::{Client, run},
};

type Sender = http2::SendRequest<Full<Bytes>>;

/// A connection on which the server has said what it speaks.
async fn connect(graph: &Streamed) -> Sender {
    let stream = TcpStream::connect(graph.served.address).await.unwrap();
    let opened = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.unwrap();
    tokio::spawn(connection);
    assert_eq!(query(&mut sender).await, StatusCode::OK);
    sender
}

async fn query(sender: &mut Sender) -> StatusCode {
    let request = Request::post("http://gateway.test/graphql")
        .header("content-type", "application/json")
        .body(Full::from(r#"{"query":"{ping}"}"#))
        .unwrap();
    sender.send_request(request).await.unwrap().status()
}

async fn ask(
    sender: &mut Sender,
    protocol: &'static str,
    headers: &[(&str, &str)],
) -> Response<Incoming> {
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri("http://gateway.test/graphql")
        .extension(Protocol::from_static(protocol));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::default()).unwrap();
    sender.send_request(request).await.unwrap()
}

const USUAL: [(&str, &str); 2] = [
    ("sec-websocket-version", "13"),
    ("sec-websocket-protocol", "graphql-transport-ws"),
];

async fn open(sender: &mut Sender) -> Client<TokioIo<Upgraded>> {
    let response = ask(sender, "websocket", &USUAL).await;
    assert_eq!(response.status(), StatusCode::OK);
    let chosen = &response.headers()["sec-websocket-protocol"];
    assert_eq!(chosen, "graphql-transport-ws");
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let stream = TokioIo::new(upgraded);
    let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
    let mut client = Client { socket };
    client.say(json!({"type": "connection_init"})).await;
    assert_eq!(client.hear().await["type"], "connection_ack");
    client
}

#[test]
fn websockets_share_a_connection_with_each_other_and_with_requests() {
    let graph = Streamed::with("");
    run(async {
        let mut sender = connect(&graph).await;
        let (mut first, mut second) = (open(&mut sender).await, open(&mut sender).await);
        first
            .subscribe("s", "subscription { added { id text } }")
            .await;
        second.subscribe("q", "{ping}").await;
        let next = json!({"id": "q", "type": "next", "payload": {"data": {"ping": 1}}});
        assert_eq!(second.hear().await, next);
        assert_eq!(second.hear().await["type"], "complete");
        let mut source = graph.feed.opened();
        for id in ["1", "2"] {
            source.add(id);
            let payload = json!({"data": {"added": {"id": id, "text": format!("text of {id}")}}});
            let next = json!({"id": "s", "type": "next", "payload": payload});
            assert_eq!(first.hear().await, next);
            assert_eq!(query(&mut sender).await, StatusCode::OK);
        }
        // The end of one of them is that of no other.
        drop(second);
        source.complete();
        assert_eq!(first.hear().await["type"], "complete");
        first.say(json!({"type": "ping"})).await;
        assert_eq!(first.hear().await["type"], "pong");
        first.say(json!({"type": "connection_init"})).await;
        assert_eq!(first.closed().await, 4429);
        assert_eq!(query(&mut sender).await, StatusCode::OK);
    });
}

#[test]
fn what_is_no_request_for_a_websocket_is_refused_as_over_http1() {
    let graph = Streamed::with("");
    run(async {
        let mut sender = connect(&graph).await;
        let foreign = [USUAL[0], USUAL[1], ("origin", "https://foreign.test")];
        let old = [("sec-websocket-version", "8"), USUAL[1]];
        for (protocol, headers, status) in [
            ("websocket", &foreign[..], 403),
            ("websocket", &old[..], 426),
            ("other", &USUAL[..], 405),
        ] {
            let response = ask(&mut sender, protocol, headers).await;
            assert_eq!(response.status(), status, "{protocol} {headers:?}");
        }
        let own = [USUAL[0], USUAL[1], ("origin", "http://gateway.test")];
        let response = ask(&mut sender, "websocket", &own).await;
        assert_eq!(response.status(), StatusCode::OK);
    });
}

#[test]
fn they_are_told_when_the_process_stops() {
    let mut graph = Streamed::with("http: { connection_shutdown_timeout: 30s }\n");
    run(async {
        let mut sender = connect(&graph).await;
        let mut client = open(&mut sender).await;
        graph.served.begin_stop();
        assert_eq!(client.closed().await, 1001);
    });
}

/// A body that breaks off says so for ever, which must not keep the only worker busy.
#[test]
fn a_body_that_is_reset_ends_its_request_and_nothing_else() {
    let graph = Streamed::with("http: { workers: 1 }\n");
    let mut reserving = crate::http_client::Connection::open(graph.served.address);
    reserving.write(b"PUT /graphql HTTP/1.1\r\nhost: x\r\n\r\n");
    let token = reserving.read().text();
    run(async {
        let stream = TcpStream::connect(graph.served.address).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let request = |with_token: bool| {
            let mut request = Request::post("http://gateway.test/graphql")
                .header("content-type", "application/json");
            if with_token {
                request = request.header("x-graphql-event-stream-token", &token);
            }
            request.body(()).unwrap()
        };
        let mut sender = sender.ready().await.unwrap();
        let (_answer, mut body) = sender.send_request(request(true), false).unwrap();
        body.send_data(Bytes::from_static(b"{\"query\":"), false)
            .unwrap();
        // Its beginning is read before it breaks off.
        let (answer, mut other) = sender.send_request(request(false), false).unwrap();
        let whole = Bytes::from_static(br#"{"query":"{ping}"}"#);
        other.send_data(whole.clone(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
        body.send_reset(h2::Reason::CANCEL);
        let (answer, mut other) = sender.send_request(request(false), false).unwrap();
        other.send_data(whole, true).unwrap();
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    });
}

/// Whether a server says in its settings that WebSockets may be opened (RFC 8441, section 3).
fn offers_websockets(address: SocketAddr) -> bool {
    let mut stream = crate::http_client::connect(address);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "settings come first");
    let mut settings = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut settings).unwrap();
    settings.chunks(6).any(|row| row == [0, 8, 0, 0, 0, 1])
}

#[test]
fn they_are_offered_where_they_are_served_and_nowhere_else() {
    assert!(offers_websockets(Streamed::with("").served.address));
    assert!(!offers_websockets(crate::graph::Graph::start().address()));
    let graph = Streamed::with("  client: { websocket: { enabled: false } }\n");
    assert!(!offers_websockets(graph.served.address));
}

/// They need no connection of their own, so connections do not bound them: a client has its share of all, counted as memory.
#[test]
fn a_client_has_its_share_of_websockets() {
    let graph = Streamed::with(
        "  client: { websocket: { max_connections: 150 } }\nhttp: { trusted_proxies: [127.0.0.1] }\n",
    );
    let open = async |sender: &mut Sender, client: &str| {
        let headers = [USUAL[0], USUAL[1], ("x-forwarded-for", client)];
        ask(sender, "websocket", &headers).await
    };
    run(async {
        let (mut first, mut second) = (connect(&graph).await, connect(&graph).await);
        let before = graph.served.gateway.memory().used();
        let mut sockets = Vec::new();
        for nth in 0..100 {
            let sender = if nth % 2 == 0 {
                &mut first
            } else {
                &mut second
            };
            let response = open(sender, "10.0.0.1").await;
            assert_eq!(response.status(), StatusCode::OK, "{nth}");
            sockets.push(hyper::upgrade::on(response).await.unwrap());
        }
        let held = graph.served.gateway.memory().used() - before;
        assert!(held >= 100 * (6 << 10), "{held} bytes");
        let refused = open(&mut first, "10.0.0.1").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let other = open(&mut first, "10.0.0.2").await;
        assert_eq!(other.status(), StatusCode::OK);
        assert_eq!(query(&mut second).await, StatusCode::OK);
    });
}
