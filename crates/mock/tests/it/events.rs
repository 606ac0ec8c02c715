//! Subscriptions over real sockets, in every protocol.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use ogive_mock::{EventFault, EventSchedule, Server, Service, Settings};
use ogive_stream::{
    Protocol, Received, WebSocket, WebSocketLimits,
    handshake::ClientHandshake,
    multipart::{MultipartReader, subscription_part},
    sse::{SseEvent, SseReader},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const SDL: &str = "
type Query { users: [User] }
type Subscription { userAdded: User }
type User { id: ID! name: String }
";
const DATA: &str = "types: { User: [{ id: 1, name: Ann }, { id: 2, name: Bob }] }";
const REQUEST: &str = r#"{"query":"subscription { userAdded { name } }"}"#;
const EVENTS: [&str; 3] = [
    r#"{"data":{"userAdded":{"name":"Ann"}}}"#,
    r#"{"data":{"userAdded":{"name":"Bob"}}}"#,
    r#"{"data":{"userAdded":{"name":"Ann"}}}"#,
];

fn server(faults: &[&str]) -> Server {
    let subgraph = crate::support::subgraph(SDL, DATA);
    let mut service = Service::new();
    let faults = faults.iter().map(|fault| EventFault::parse(fault).unwrap());
    let settings = Settings {
        events: EventSchedule {
            count: Some(3),
            interval: Duration::ZERO,
            faults: faults.collect(),
        },
        ..Settings::default()
    };
    service.add("users", subgraph, settings);
    Server::start(Arc::new(service), "127.0.0.1:0", 1).unwrap()
}

/// The body of an answer that is a stream, to its end or to where it breaks off, without the sizes of its chunks.
async fn streamed(server: &Server, accept: &str, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    let length = request.len();
    let text = format!(
        "POST /graphql/users HTTP/1.1\r\nhost: a\r\nconnection: close\r\naccept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{request}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let (mut rest, mut body) = (&bytes[end + 4..], Vec::new());
    while let Some(at) = rest.windows(2).position(|at| at == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + 2 + size + 2..];
    }
    (head, body)
}

/// A WebSocket connection that has introduced itself.
async fn socket(server: &Server, protocol: Protocol) -> WebSocket<TcpStream> {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    let handshake = ClientHandshake::new(protocol).unwrap();
    let mut headers = http::HeaderMap::new();
    handshake.write(&mut headers);
    let mut text = String::from("GET /graphql/users HTTP/1.1\r\nhost: a\r\n");
    for (name, value) in &headers {
        text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let mut answered = http::HeaderMap::new();
    for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        let name: http::HeaderName = name.parse().unwrap();
        answered.insert(name, value.parse().unwrap());
    }
    let status = StatusCode::SWITCHING_PROTOCOLS;
    assert_eq!(handshake.check(status, &answered), Ok(()));
    let mut socket = WebSocket::client(stream, &[], WebSocketLimits::default());
    socket.send(r#"{"type":"connection_init"}"#).await.unwrap();
    socket
}

/// What comes until the end of the connection, or so many messages.
async fn texts(socket: &mut WebSocket<TcpStream>, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        match socket.receive().await {
            Received::Text(text) => texts.push(text.to_string()),
            Received::Control => {}
            _ => break,
        }
    }
    texts
}

#[tokio::test]
async fn events_come_over_server_sent_events() {
    let server = server(&[]);
    let (head, body) = streamed(&server, "text/event-stream", REQUEST).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let mut reader = SseReader::new(10_000);
    reader.push(&body).unwrap();
    let events: Vec<SseEvent> = std::iter::from_fn(|| reader.take()).collect();
    let mut expected = vec![SseEvent::Heartbeat];
    expected.extend(EVENTS.map(|event| SseEvent::Next(event.into())));
    expected.push(SseEvent::Complete);
    assert_eq!(events, expected);
    let wrong = r#"{"query":"subscription { nothing }"}"#;
    let (_, body) = streamed(&server, "text/event-stream", wrong).await;
    let body = String::from_utf8(body).unwrap();
    assert_eq!(body.matches("event: next").count(), 1, "{body}");
    assert!(
        body.contains("errors") && body.contains("complete"),
        "{body}"
    );
}

#[tokio::test]
async fn events_come_over_multipart() {
    let server = server(&[]);
    let accept = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0, application/json";
    let (_, body) = streamed(&server, accept, REQUEST).await;
    let mut reader = MultipartReader::new("graphql", 10_000);
    reader.push(&body).unwrap();
    let parts: Vec<_> = std::iter::from_fn(|| reader.take()).collect();
    assert!(reader.is_complete());
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| subscription_part(part).is_some()));
}

#[tokio::test]
async fn events_come_over_both_sub_protocols() {
    for (protocol, start, kind) in [
        (Protocol::TransportWs, "subscribe", "next"),
        (Protocol::LegacyWs, "start", "data"),
    ] {
        let server = server(&[]);
        let mut socket = socket(&server, protocol).await;
        let text = format!(r#"{{"id":"7","type":"{start}","payload":{REQUEST}}}"#);
        socket.send(text).await.unwrap();
        let mut expected = vec![r#"{"type":"connection_ack"}"#.to_owned()];
        let next = |event| format!(r#"{{"id":"7","type":"{kind}","payload":{event}}}"#);
        expected.extend(EVENTS.map(next));
        expected.push(r#"{"id":"7","type":"complete"}"#.into());
        assert_eq!(texts(&mut socket, 5).await, expected);
        let query = r#"{"query":"{ users { name } }"}"#;
        let text = format!(r#"{{"id":"8","type":"{start}","payload":{query}}}"#);
        socket.send(text).await.unwrap();
        let answer = texts(&mut socket, 2).await;
        assert!(
            answer[0].contains("Bob") && answer[1].contains("complete"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn every_fault_happens() {
    let subscribe = format!(r#"{{"id":"1","type":"subscribe","payload":{REQUEST}}}"#);
    let ping = r#"{"type":"ping"}"#;
    let cases: [(&str, &str, usize); 6] = [
        ("drop@2", "ack next", 9),
        ("garbage@2", "ack next garbage next complete", 5),
        ("twice", "ack next next next complete complete", 6),
        ("early", "next ack next next next complete", 6),
        ("no-end", "ack next next next", 4),
        ("silent", "ack next next next complete", 5),
    ];
    for (fault, expected, count) in cases {
        let server = server(&[fault]);
        let mut socket = socket(&server, Protocol::TransportWs).await;
        socket.send(ping).await.unwrap();
        socket.send(subscribe.clone()).await.unwrap();
        let found = texts(
            &mut socket,
            if fault == "silent" { count } else { count + 1 }.min(9),
        );
        // A pong comes to everybody but those who wait for it in vain.
        let found = tokio::time::timeout(Duration::from_secs(60), found).await;
        let found = found.unwrap_or_default();
        let words = ["ack", "pong", "next", "garbage", "complete"];
        let words = found.iter().map(|text| {
            let word = words.iter().find(|word| text.contains(**word));
            *word.expect("a known message")
        });
        let words: Vec<&str> = words.filter(|word| *word != "pong").collect();
        assert_eq!(words.join(" "), expected, "{fault}");
        let pongs = found.iter().filter(|text| text.contains("pong")).count();
        assert_eq!(pongs, usize::from(fault != "silent"), "{fault}");
    }
    let server = server(&["no-ack"]);
    let mut socket = socket(&server, Protocol::TransportWs).await;
    socket.send(ping).await.unwrap();
    assert_eq!(texts(&mut socket, 1).await, [r#"{"type":"pong"}"#]);
}
