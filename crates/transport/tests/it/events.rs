//! Subscriptions towards subgraphs on real sockets, and everything that subgraphs do wrong with them.

use std::{future::poll_fn, time::Duration};

use crate::event_faults::EVENT_FAULTS;
use http::{HeaderMap, Method, Version};
use ogive_execute::{Event, EventStream, Failure, SubgraphRequest, Transport};
use ogive_stream::{
    Close, Protocol, Received, WebSocket, WebSocketLimits, handshake, multipart, sse,
};
use ogive_transport::{
    Client, Endpoint, EventProtocol, EventSource, HeaderRule, HeaderRules, NameMatch, Reconnect,
    RequestTransport, Traffic,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The code of a row of the table.
fn code_of(fault: &str) -> &'static str {
    let mut rows = EVENT_FAULTS.iter();
    let row = rows.find(|(known, _, _)| *known == fault);
    row.unwrap_or_else(|| panic!("`{fault}` is no row")).1
}

#[test]
fn every_row_of_the_table_is_played() {
    let tests = include_str!("events.rs");
    for (fault, _, _) in EVENT_FAULTS {
        assert!(tests.contains(&format!("\"{fault}\"")), "{fault}");
    }
}

const BODY: &str = r#"{"query":"subscription{a}"}"#;
const SECOND: Duration = Duration::from_secs(1);

/// A subgraph of which the test plays every connection.
struct Subgraph {
    listener: TcpListener,
}

/// A connection that has become a WebSocket.
type Socket = WebSocket<TcpStream>;

impl Subgraph {
    async fn start() -> Subgraph {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Subgraph { listener }
    }

    fn endpoint(&self, source: EventSource) -> Endpoint {
        let address = self.listener.local_addr().unwrap();
        let url = format!("http://{address}/graphql");
        let traffic = Traffic {
            response_bytes_max: 1_000,
            ..Traffic::default()
        };
        let mut endpoint = Endpoint::new("products", &url, traffic, HeaderRules::default());
        endpoint.events = Some(source.into());
        endpoint
    }

    /// The next connection, with the head of its first request.
    async fn asked(&self) -> (TcpStream, String) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    }

    /// The same, with the body.
    async fn posted(&self) -> (TcpStream, String) {
        let (mut stream, head) = self.asked().await;
        let mut body = vec![0; BODY.len()];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(body, BODY.as_bytes());
        (stream, head)
    }

    /// The next connection, upgraded.
    async fn upgraded(&self) -> (TcpStream, String) {
        let (mut stream, head) = self.asked().await;
        stream.write_all(&switching(&head)).await.unwrap();
        (stream, head)
    }

    /// The same, up to its acknowledgement, with what the gateway said of itself.
    async fn acknowledged(&self) -> (Socket, String) {
        let (stream, _) = self.upgraded().await;
        let mut socket = WebSocket::server(stream, WebSocketLimits::default());
        let init = text(&mut socket).await;
        socket.send(r#"{"type":"connection_ack"}"#).await.unwrap();
        (socket, init)
    }

    /// The same, up to its first subscription, whose message comes with it.
    async fn subscribed(&self) -> (Socket, String) {
        let (mut socket, _) = self.acknowledged().await;
        let subscribe = text(&mut socket).await;
        (socket, subscribe)
    }
}

/// The answer that agrees on WebSocket.
fn switching(head: &str) -> Vec<u8> {
    let mut headers = HeaderMap::new();
    for line in head.lines().skip(1) {
        if let Some((name, value)) = line.split_once(": ") {
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
    }
    let protocol = Protocol::choose(&headers);
    let first = (&Method::GET, Version::HTTP_11);
    let answer = handshake::accept(first, &headers, protocol).unwrap();
    let mut bytes = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    for (name, value) in &answer {
        bytes.extend_from_slice(format!("{name}: {}\r\n", value.to_str().unwrap()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

async fn text(socket: &mut Socket) -> String {
    loop {
        match socket.receive().await {
            Received::Text(text) => return text.to_string(),
            Received::Control => {}
            other => panic!("no message: {other:?}"),
        }
    }
}

fn source(protocol: EventProtocol) -> EventSource {
    EventSource {
        protocol,
        reconnect: Reconnect {
            attempts: 0,
            ..Reconnect::default()
        },
        ..EventSource::default()
    }
}

fn request() -> SubgraphRequest {
    SubgraphRequest {
        subgraph: 0,
        body: BODY.into(),
        idempotent: false,
    }
}

async fn next(events: &mut EventStream<'_>) -> Option<Event> {
    poll_fn(|cx| events.as_mut().poll_next(cx)).await
}

async fn body(events: &mut EventStream<'_>) -> String {
    let event = next(events).await.expect("an event").unwrap();
    String::from_utf8(event.body.to_vec()).unwrap()
}

async fn failure(events: &mut EventStream<'_>) -> Failure {
    let error = next(events).await.expect("an event").unwrap_err();
    assert!(next(events).await.is_none(), "nothing comes after an error");
    error
}

/// Opens a subscription while the subgraph does that.
async fn opened<'t, T>(
    transport: &'t RequestTransport<'_>,
    subgraph: impl Future<Output = T>,
) -> (Result<EventStream<'t>, Failure>, T) {
    tokio::join!(transport.subscribe(request()), subgraph)
}

const NEXT: &str = r#"{"id":"1","type":"next","payload":{"data":{"a":1}}}"#;
const COMPLETE: &str = r#"{"id":"1","type":"complete"}"#;

#[tokio::test]
async fn events_over_websocket_come_in_order_and_end() {
    for (protocol, kind) in [
        (EventProtocol::TransportWs, "next"),
        (EventProtocol::LegacyWs, "data"),
    ] {
        let subgraph = Subgraph::start().await;
        let endpoints = [subgraph.endpoint(source(protocol))];
        let (client, headers) = (Client::new(), HeaderMap::new());
        let transport = RequestTransport::new(&client, &endpoints, &headers, None);
        let (events, (mut socket, subscribe)) = opened(&transport, subgraph.subscribed()).await;
        let mut events = events.unwrap();
        assert!(subscribe.contains(BODY), "{subscribe}");
        for n in 0..300 {
            let text = format!(r#"{{"id":"1","type":"{kind}","payload":{{"data":{n}}}}}"#);
            socket.feed(text).await.unwrap();
        }
        socket.send(COMPLETE).await.unwrap();
        for n in 0..300 {
            assert_eq!(body(&mut events).await, format!("{{\"data\":{n}}}"));
        }
        assert!(next(&mut events).await.is_none());
        // Nobody needs the connection any more.
        let mut last = socket.receive().await;
        if protocol == EventProtocol::LegacyWs {
            assert!(matches!(last, Received::Text(_)), "{last:?}");
            last = socket.receive().await;
        }
        assert_eq!(last, Received::Closed(Some(Close::normal())));
    }
}

#[tokio::test]
async fn subscriptions_with_equal_headers_share_a_connection() {
    let subgraph = Subgraph::start().await;
    let mut endpoint = subgraph.endpoint(source(EventProtocol::TransportWs));
    endpoint.headers = HeaderRules::new(vec![HeaderRule::Propagate {
        from: NameMatch::Named(http::header::AUTHORIZATION),
        rename: None,
        default: None,
    }]);
    let endpoints = [endpoint];
    let mut alice = HeaderMap::new();
    alice.insert("authorization", "Bearer \"a\"".parse().unwrap());
    let mut bob = HeaderMap::new();
    bob.insert("authorization", "Bearer b".parse().unwrap());
    let client = Client::new();
    let transport = RequestTransport::new(&client, &endpoints, &alice, None);
    let (one, (mut socket, init)) = opened(&transport, subgraph.acknowledged()).await;
    let mut one = one.unwrap();
    assert_eq!(
        init,
        r#"{"type":"connection_init","payload":{"authorization":"Bearer \"a\""}}"#
    );
    assert!(text(&mut socket).await.contains("\"id\":\"1\""));
    let again = RequestTransport::new(&client, &endpoints, &alice, None);
    let two = again.subscribe(request()).await.unwrap();
    assert!(text(&mut socket).await.contains("\"id\":\"2\""));
    // Another caller has a connection of its own.
    let other = RequestTransport::new(&client, &endpoints, &bob, None);
    let (three, (_bobs, init)) = opened(&other, subgraph.acknowledged()).await;
    let _three = three.unwrap();
    assert!(init.contains("Bearer b"), "{init}");
    // One that is given up ends alone.
    drop(two);
    assert_eq!(text(&mut socket).await, r#"{"id":"2","type":"complete"}"#);
    socket.send(NEXT).await.unwrap();
    assert_eq!(body(&mut one).await, r#"{"data":{"a":1}}"#);
}

#[tokio::test]
async fn a_subscription_that_nobody_reads_makes_the_subgraph_wait() {
    let subgraph = Subgraph::start().await;
    let source = EventSource {
        queue_events: 4,
        ..source(EventProtocol::TransportWs)
    };
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let (events, (mut socket, _)) = opened(&transport, subgraph.subscribed()).await;
    let mut events = events.unwrap();
    let pad = "x".repeat(900);
    let sending = async {
        let mut sent = 0;
        loop {
            let text = format!(r#"{{"id":"1","type":"next","payload":{{"data":"{pad}"}}}}"#);
            if tokio::time::timeout(SECOND / 4, socket.send(text))
                .await
                .is_err()
            {
                return sent;
            }
            sent += 1;
            assert!(sent < 100_000, "nobody waits");
        }
    };
    let sent = sending.await;
    let fault = "sends more events than are taken, on a connection of its own";
    assert_eq!(code_of(fault), "");
    for _ in 0..sent {
        assert!(body(&mut events).await.contains(&pad));
    }
}

#[tokio::test]
async fn one_that_nobody_reads_harms_the_others_on_its_connection_for_a_while_only() {
    let subgraph = Subgraph::start().await;
    let source = EventSource {
        queue_events: 1,
        stall_timeout: Duration::from_millis(10),
        ..source(EventProtocol::TransportWs)
    };
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let (slow, (mut socket, _)) = opened(&transport, subgraph.subscribed()).await;
    let mut slow = slow.unwrap();
    let mut quick = transport.subscribe(request()).await.unwrap();
    text(&mut socket).await;
    for _ in 0..3 {
        socket.send(NEXT).await.unwrap();
    }
    socket
        .send(r#"{"id":"2","type":"next","payload":{"data":2}}"#)
        .await
        .unwrap();
    assert_eq!(body(&mut quick).await, r#"{"data":2}"#);
    assert_eq!(text(&mut socket).await, COMPLETE);
    body(&mut slow).await;
    let error = failure(&mut slow).await;
    let fault = "sends more events than are taken, beside others";
    assert_eq!(error.code, code_of(fault));
}

#[tokio::test]
async fn events_over_http_come_in_order_and_end() {
    for protocol in [
        EventProtocol::Sse,
        EventProtocol::Multipart,
        EventProtocol::Auto,
    ] {
        let subgraph = Subgraph::start().await;
        let endpoints = [subgraph.endpoint(source(protocol))];
        let (client, headers) = (Client::new(), HeaderMap::new());
        let transport = RequestTransport::new(&client, &endpoints, &headers, None);
        let is_sse = protocol != EventProtocol::Multipart;
        let mut stream = Vec::new();
        if is_sse {
            stream.extend_from_slice(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n",
            );
            sse::write_next(&mut stream, b"{\"data\":1}");
            stream.extend_from_slice(sse::HEARTBEAT);
            sse::write_next(&mut stream, b"{\"data\":2}");
            stream.extend_from_slice(sse::COMPLETE);
        } else {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {}\r\n\r\n",
                multipart::SUBSCRIPTION_TYPE
            );
            stream.extend_from_slice(head.as_bytes());
            multipart::write_start(&mut stream, multipart::BOUNDARY);
            multipart::write_payload(&mut stream, b"{\"data\":1}");
            multipart::write_part(&mut stream, multipart::BOUNDARY, multipart::HEARTBEAT);
            multipart::write_payload(&mut stream, b"{\"data\":2}");
            multipart::write_end(&mut stream);
        }
        let answered = async {
            let (mut connection, head) = subgraph.posted().await;
            connection.write_all(&stream).await.unwrap();
            (connection, head)
        };
        let (events, (_connection, head)) = opened(&transport, answered).await;
        let mut events = events.unwrap();
        let accepted = if is_sse {
            "text/event-stream"
        } else {
            "multipart/mixed"
        };
        assert!(head.contains(&format!("accept: {accepted}")), "{head}");
        for n in 1..=2 {
            assert_eq!(body(&mut events).await, format!("{{\"data\":{n}}}"));
        }
        assert!(next(&mut events).await.is_none());
    }
}

#[tokio::test]
async fn a_subscription_that_is_given_up_closes_its_connection() {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source(EventProtocol::Sse))];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let answered = async {
        let (mut connection, _) = subgraph.posted().await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        connection.write_all(head).await.unwrap();
        connection
    };
    let (events, mut connection) = opened(&transport, answered).await;
    drop(events.unwrap());
    assert_eq!(connection.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_no_stream_is_followed_by_websocket_and_remembered() {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source(EventProtocol::Auto))];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let answered = async {
        let (mut connection, _) = subgraph.posted().await;
        let answer = b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n";
        connection.write_all(answer).await.unwrap();
        subgraph.subscribed().await
    };
    let (events, (mut socket, _)) = opened(&transport, answered).await;
    let mut events = events.unwrap();
    socket.send(COMPLETE).await.unwrap();
    assert!(next(&mut events).await.is_none());
    drop(events);
    let (events, _socket) = opened(&transport, subgraph.subscribed()).await;
    assert!(events.is_ok());
}

#[tokio::test]
async fn what_answers_no_http_is_asked_over_websocket_before_its_time_is_over() {
    for closes in [true, false] {
        let subgraph = Subgraph::start().await;
        let mut source = source(EventProtocol::Auto);
        source.patience = Duration::from_millis(20);
        let endpoints = [subgraph.endpoint(source)];
        let (client, headers) = (Client::new(), HeaderMap::new());
        let transport = RequestTransport::new(&client, &endpoints, &headers, None);
        let answered = async {
            let silent = subgraph.posted().await;
            let silent = (!closes).then_some(silent);
            (silent, subgraph.subscribed().await)
        };
        let (events, (_silent, (mut socket, _))) = opened(&transport, answered).await;
        let mut events = events.unwrap();
        socket.send(COMPLETE).await.unwrap();
        assert!(next(&mut events).await.is_none());
    }
}

#[tokio::test]
async fn what_is_slow_over_http_and_speaks_no_websocket_is_waited_for() {
    let subgraph = Subgraph::start().await;
    let mut source = source(EventProtocol::Auto);
    source.patience = Duration::from_millis(1);
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let answered = async {
        let (mut slow, _) = subgraph.posted().await;
        let (mut other, _) = subgraph.asked().await;
        let answer = b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n";
        other.write_all(answer).await.unwrap();
        // Until the gateway has left.
        let _ = other.read(&mut [0; 16]).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        slow.write_all(head).await.unwrap();
        slow.write_all(sse::COMPLETE).await.unwrap();
        slow
    };
    let (events, _slow) = opened(&transport, answered).await;
    assert!(next(&mut events.unwrap()).await.is_none());
}

#[tokio::test]
async fn a_response_instead_of_a_stream_is_the_only_event() {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source(EventProtocol::Sse))];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let answered = async {
        let (mut connection, _) = subgraph.posted().await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"errors\":[]}";
        connection.write_all(answer).await.unwrap();
        connection
    };
    let (events, _connection) = opened(&transport, answered).await;
    let mut events = events.unwrap();
    assert_eq!(body(&mut events).await, "{\"errors\":[]}");
    assert!(next(&mut events).await.is_none());
}

#[tokio::test]
async fn an_operation_that_fails_is_answered_with_its_errors() {
    for (protocol, payload) in [
        (EventProtocol::TransportWs, r#"[{"message":"no"}]"#),
        (EventProtocol::LegacyWs, r#"{"message":"no"}"#),
    ] {
        let subgraph = Subgraph::start().await;
        let endpoints = [subgraph.endpoint(source(protocol))];
        let (client, headers) = (Client::new(), HeaderMap::new());
        let transport = RequestTransport::new(&client, &endpoints, &headers, None);
        let (events, (mut socket, _)) = opened(&transport, subgraph.subscribed()).await;
        let mut events = events.unwrap();
        let text = format!(r#"{{"id":"1","type":"error","payload":{payload}}}"#);
        socket.send(text).await.unwrap();
        assert_eq!(body(&mut events).await, r#"{"errors":[{"message":"no"}]}"#);
        assert!(next(&mut events).await.is_none());
    }
}

#[tokio::test]
async fn a_lost_stream_is_opened_again_by_policy() {
    let subgraph = Subgraph::start().await;
    let source = EventSource {
        reconnect: Reconnect {
            attempts: 2,
            delay: Duration::from_millis(1),
            delay_max: Duration::from_millis(1),
        },
        ..source(EventProtocol::TransportWs)
    };
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let (events, (socket, _)) = opened(&transport, subgraph.subscribed()).await;
    let mut events = events.unwrap();
    drop(socket);
    let (event, mut socket) = tokio::join!(body(&mut events), async {
        // Of the two tries the first one fails, too.
        drop(subgraph.asked().await);
        let (mut socket, _) = subgraph.subscribed().await;
        socket.send(NEXT).await.unwrap();
        socket
    });
    assert_eq!(event, r#"{"data":{"a":1}}"#);
    // An event has begun the count anew; what the subgraph does not let us do is not tried again.
    let close = Close::forbidden();
    let (error, ()) = tokio::join!(failure(&mut events), socket.close(close, SECOND));
    assert_eq!(error.code, "SUBREQUEST_STREAM_REFUSED");
}

/// What becomes of a subscription over WebSocket if the subgraph sends that instead of an event.
async fn after(bytes: &[u8]) -> Failure {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source(EventProtocol::TransportWs))];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let played = async {
        let (stream, _) = subgraph.upgraded().await;
        let mut socket = WebSocket::server(stream, WebSocketLimits::default());
        text(&mut socket).await;
        socket.send(r#"{"type":"connection_ack"}"#).await.unwrap();
        text(&mut socket).await;
        socket
    };
    let (events, socket) = opened(&transport, played).await;
    let mut events = events.unwrap();
    let mut stream = socket.into_stream();
    stream.write_all(bytes).await.unwrap();
    if bytes.is_empty() {
        drop(stream);
        return failure(&mut events).await;
    }
    failure(&mut events).await
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    if payload.len() < 126 {
        frame.push(payload.len() as u8);
    } else {
        frame.push(126);
        frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}

#[tokio::test]
async fn every_violation_on_a_websocket_connection_has_its_code() {
    let masked = frame(0x81, b"").into_iter().map(|byte| byte | 0x80);
    let cases: [(&str, Vec<u8>); 13] = [
        ("WebSocket: closes without a word", Vec::new()),
        (
            "WebSocket: closes because it stops (1001)",
            frame(0x88, &1001u16.to_be_bytes()),
        ),
        (
            "WebSocket: closes because we may not (4403)",
            frame(0x88, &4403u16.to_be_bytes()),
        ),
        ("WebSocket: sends garbage", vec![0xff; 64]),
        (
            "WebSocket: masks its frames",
            masked.chain([0; 4]).collect(),
        ),
        (
            "WebSocket: continues a message that it never began",
            frame(0x80, b"x"),
        ),
        (
            "WebSocket: sends text that is no UTF-8",
            frame(0x81, b"\xff"),
        ),
        ("WebSocket: sends binary messages", frame(0x82, b"{}")),
        (
            "WebSocket: sends a message larger than `response_max_bytes`",
            frame(0x81, &[b'x'; 1_001]),
        ),
        (
            "WebSocket: sends a message that is no JSON",
            frame(0x81, b"<html>"),
        ),
        (
            "WebSocket: sends a message that is not part of the sub-protocol",
            frame(0x81, br#"{"type":"hello"}"#),
        ),
        (
            "WebSocket: acknowledges twice",
            frame(0x81, br#"{"type":"connection_ack"}"#),
        ),
        (
            "WebSocket: floods with pings",
            frame(0x89, b"").repeat(1_000),
        ),
    ];
    for (fault, bytes) in cases {
        assert_eq!(after(&bytes).await.code, code_of(fault), "{fault}");
    }
}

/// How opening fails if the subgraph plays its connection like that.
async fn unopened<T, F: Future<Output = T>>(
    source: EventSource,
    play: impl FnOnce(TcpStream, String) -> F,
) -> Failure {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let played = async {
        let (stream, head) = subgraph.asked().await;
        play(stream, head).await
    };
    let (opened, _played) = opened(&transport, played).await;
    opened.err().expect("nothing was opened")
}

#[tokio::test]
async fn a_connection_that_is_not_acknowledged_as_it_should_is_not_used() {
    let modern = || source(EventProtocol::TransportWs);
    let answers: [(&str, &str); 5] = [
        (
            "WebSocket: answers the upgrade with 401",
            "401 No\r\ncontent-length: 0",
        ),
        (
            "WebSocket: answers the upgrade with 503",
            "503 No\r\ncontent-length: 0",
        ),
        (
            "WebSocket: answers the upgrade with HTML",
            "200 OK\r\ncontent-type: text/html\r\ncontent-length: 0",
        ),
        (
            "WebSocket: answers the upgrade for another key",
            "101 Ok\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x",
        ),
        (
            "WebSocket: redirects the upgrade",
            "307 No\r\nlocation: http://a/\r\ncontent-length: 0",
        ),
    ];
    for (fault, answer) in answers {
        let play = |mut stream: TcpStream, _| async move {
            let answer = format!("HTTP/1.1 {answer}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        assert_eq!(
            unopened(modern(), play).await.code,
            code_of(fault),
            "{fault}"
        );
    }
    // It speaks another sub-protocol.
    let play = |mut stream: TcpStream, head: String| async move {
        let head = head.replace("graphql-transport-ws", "graphql-ws");
        stream.write_all(&switching(&head)).await.unwrap();
        stream
    };
    let error = unopened(modern(), play).await;
    assert_eq!(
        error.code,
        code_of("WebSocket: agrees on another sub-protocol")
    );
    assert!(error.detail.contains("sub-protocol"), "{}", error.detail);
    // An event comes before the acknowledgement.
    let play = |mut stream: TcpStream, head: String| async move {
        stream.write_all(&switching(&head)).await.unwrap();
        stream
            .write_all(&frame(0x81, NEXT.as_bytes()))
            .await
            .unwrap();
        stream
    };
    let error = unopened(modern(), play).await;
    let fault = "WebSocket: sends an event before the acknowledgement";
    assert_eq!(error.code, code_of(fault));
    assert!(
        error.detail.contains("before the acknowledgement"),
        "{}",
        error.detail
    );
    // It never comes.
    let patient = EventSource {
        acknowledge_timeout: Duration::from_millis(10),
        ..modern()
    };
    let play = |mut stream: TcpStream, head: String| async move {
        stream.write_all(&switching(&head)).await.unwrap();
        stream
    };
    let fault = "WebSocket: never acknowledges the connection";
    assert_eq!(unopened(patient, play).await.code, code_of(fault));
    // The legacy sub-protocol has a word for no.
    let play = |mut stream: TcpStream, head: String| async move {
        stream.write_all(&switching(&head)).await.unwrap();
        let refused = br#"{"type":"connection_error","payload":{"message":"no"}}"#;
        stream.write_all(&frame(0x81, refused)).await.unwrap();
        stream
    };
    let legacy = source(EventProtocol::LegacyWs);
    let fault = "WebSocket: refuses the connection (`connection_error`)";
    assert_eq!(unopened(legacy, play).await.code, code_of(fault));
}

#[tokio::test]
async fn a_subgraph_that_does_not_answer_heartbeats_is_lost() {
    let began = std::time::Instant::now();
    // On a busy machine an answer may be too late.
    while !is_lost_after_three_heartbeats().await {
        assert!(began.elapsed() < 60 * SECOND, "answers count for nothing");
    }
}

/// Answers three heartbeats and no more; false if the connection was lost before.
async fn is_lost_after_three_heartbeats() -> bool {
    let subgraph = Subgraph::start().await;
    let source = EventSource {
        heartbeat_interval: Some(Duration::from_millis(50)),
        ..source(EventProtocol::TransportWs)
    };
    let endpoints = [subgraph.endpoint(source)];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let (events, (mut socket, _)) = opened(&transport, subgraph.subscribed()).await;
    let Ok(mut events) = events else {
        return false;
    };
    // As long as it answers all is well; then it is as if the network had gone.
    let pinged = async {
        let mut answered = 0;
        while answered < 3 {
            match socket.receive().await {
                Received::Text(text) if &*text == r#"{"type":"ping"}"# => {
                    if socket.send(r#"{"type":"pong"}"#).await.is_err() {
                        return false;
                    }
                    answered += 1;
                }
                Received::Text(_) | Received::Control => {}
                _ => return false,
            }
        }
        true
    };
    let (error, is_answered) = tokio::join!(failure(&mut events), pinged);
    let fault = "WebSocket: does not answer a heartbeat, as when the network is gone (half-open)";
    assert_eq!(error.code, code_of(fault));
    assert!(error.detail.contains("heartbeat"), "{}", error.detail);
    is_answered
}

#[tokio::test]
async fn a_subscription_that_ends_twice_harms_nobody_and_retires_its_connection() {
    let subgraph = Subgraph::start().await;
    let endpoints = [subgraph.endpoint(source(EventProtocol::TransportWs))];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let (one, (mut socket, _)) = opened(&transport, subgraph.subscribed()).await;
    let mut one = one.unwrap();
    let mut two = transport.subscribe(request()).await.unwrap();
    text(&mut socket).await;
    socket.send(COMPLETE).await.unwrap();
    socket.send(COMPLETE).await.unwrap();
    socket.send(NEXT).await.unwrap();
    socket
        .send(r#"{"id":"2","type":"next","payload":{"data":2}}"#)
        .await
        .unwrap();
    let fault = "WebSocket: ends a subscription twice, or sends events after its end";
    assert_eq!(code_of(fault), "");
    assert!(next(&mut one).await.is_none());
    assert_eq!(body(&mut two).await, r#"{"data":2}"#);
    let (three, (mut other, _)) = opened(&transport, subgraph.subscribed()).await;
    let mut three = three.unwrap();
    other.send(NEXT).await.unwrap();
    assert_eq!(body(&mut three).await, r#"{"data":{"a":1}}"#);
}

#[tokio::test]
async fn every_violation_in_a_stream_over_http_has_its_code() {
    let long = format!("data: {}", "x".repeat(1_001));
    let part = |body: &str| {
        format!("--graphql\r\ncontent-type: application/json\r\n\r\n{body}\r\n--graphql")
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        (
            "SSE: stops in the middle of an event",
            b"event: next\ndata: {".to_vec(),
        ),
        ("SSE: stops without `complete`", b":\n\n".to_vec()),
        (
            "SSE: sends an event larger than `response_max_bytes`",
            long.into_bytes(),
        ),
        (
            "SSE: sends data that is no UTF-8",
            b"event: next\ndata: \xff\n\n".to_vec(),
        ),
        ("multipart: stops without a last delimiter", Vec::new()),
        (
            "multipart: sends HTML as a part",
            part("<html>").into_bytes(),
        ),
        (
            "multipart: sends a part that is no event",
            part("{\"payload\":1}").into_bytes(),
        ),
        (
            "multipart: sends a part larger than `response_max_bytes`",
            part(&"x".repeat(1_001)).into_bytes(),
        ),
        (
            "multipart: writes something else behind a delimiter",
            b"--graphql nonsense".to_vec(),
        ),
        ("multipart: never writes a delimiter", vec![b'x'; 10_000]),
    ];
    for (fault, stream) in cases {
        let protocol = if fault.starts_with("SSE") {
            EventProtocol::Sse
        } else {
            EventProtocol::Multipart
        };
        let subgraph = Subgraph::start().await;
        let endpoints = [subgraph.endpoint(source(protocol))];
        let (client, headers) = (Client::new(), HeaderMap::new());
        let transport = RequestTransport::new(&client, &endpoints, &headers, None);
        let media = match protocol {
            EventProtocol::Sse => "text/event-stream",
            _ => "multipart/mixed; boundary=graphql",
        };
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\n\r\n").into_bytes();
        answer.extend_from_slice(&stream);
        let played = async {
            let (mut connection, _) = subgraph.posted().await;
            connection.write_all(&answer).await.unwrap();
        };
        let (events, ()) = opened(&transport, played).await;
        let error = failure(&mut events.unwrap()).await;
        assert_eq!(error.code, code_of(fault), "{fault}");
    }
}

#[tokio::test]
async fn answers_that_are_no_stream_have_their_codes() {
    for (fault, answer) in [
        ("SSE: answers 401", "401 No\r\ncontent-type: text/html"),
        ("SSE: answers 502", "502 No\r\ncontent-type: text/html"),
        (
            "SSE: answers with HTML",
            "200 OK\r\ncontent-type: text/html",
        ),
        (
            "SSE: encodes the stream, though nobody asked for it",
            "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip",
        ),
        ("SSE: redirects", "302 No\r\nlocation: /"),
    ] {
        let play = |mut stream: TcpStream, _| async move {
            let mut body = vec![0; BODY.len()];
            stream.read_exact(&mut body).await.unwrap();
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        let error = unopened(source(EventProtocol::Sse), play).await;
        assert_eq!(error.code, code_of(fault), "{fault}");
    }
}

#[tokio::test]
async fn a_subgraph_without_a_protocol_cannot_be_subscribed_to() {
    let subgraph = Subgraph::start().await;
    let mut endpoint = subgraph.endpoint(EventSource::default());
    endpoint.events = None;
    let endpoints = [endpoint];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let error = transport.subscribe(request()).await.err().unwrap();
    assert_eq!(error.code, "SUBREQUEST_NO_EVENTS");
}
