//! What clients do wrong with streams, and what they hear. `docs/faults.md` is made from the rows, too.

use ogive_stream::{WebSocket, WebSocketLimits};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Streamed,
    over_websocket::{Client, MODERN, run},
};

/// A fault, what the client hears, and what becomes of it.
pub(crate) struct StreamCase {
    pub(crate) fault: &'static str,
    /// The code of the close frame, or of the error; empty: nothing.
    pub(crate) heard: &'static str,
    pub(crate) survives: &'static str,
}

const fn closed(fault: &'static str, heard: &'static str) -> StreamCase {
    StreamCase {
        fault,
        heard,
        survives: "the connection is closed, its operations end",
    }
}

const fn goes_on(fault: &'static str, heard: &'static str) -> StreamCase {
    StreamCase {
        fault,
        heard,
        survives: "the connection goes on",
    }
}

/// All of them.
pub(crate) const CASES: &[StreamCase] = &[
    closed("offers no sub-protocol that is spoken", "4406"),
    closed("says nothing behind the upgrade", "4408"),
    closed("subscribes before `connection_init`", "4401"),
    closed("sends `connection_init` twice", "4429"),
    closed("sends text that is no JSON", "4400"),
    closed("sends a type that is none", "4400"),
    closed("subscribes without an id", "4400"),
    closed("subscribes without a payload", "4400"),
    closed("subscribes with an id of a kilobyte", "4400"),
    closed("subscribes with an id that runs", "4409"),
    closed("sends a message larger than `max_message_size`", "1009"),
    closed("sends fragments that are together larger than that", "1009"),
    closed("begins a message within another one", "1002"),
    closed("continues a message that it never began", "1002"),
    closed("sends a frame that is not masked", "1002"),
    closed("sends a frame with reserved bits", "1002"),
    closed("sends a frame of a type that is none", "1002"),
    closed("sends a ping in fragments", "1002"),
    closed("sends a close frame of one byte", "1002"),
    closed("sends text that is no UTF-8", "1007"),
    closed("sends a binary message", "1003"),
    closed("floods with pings", "1008"),
    closed("floods with fragments of nothing", "1008"),
    closed("never says anything again (half-open)", "1001"),
    closed("breaks the connection without a word", ""),
    goes_on("sends a message in a thousand fragments", ""),
    goes_on("completes an operation twice, or one that never was", ""),
    goes_on(
        "subscribes beyond `max_operations_per_connection`",
        "OPERATIONS_LIMITED",
    ),
    goes_on(
        "subscribes to what is not valid",
        "GRAPHQL_VALIDATION_FAILED",
    ),
];

/// A frame of a client: its first byte, and whether it is masked, with zeros.
fn frame(first: u8, payload: &[u8], is_masked: bool) -> Vec<u8> {
    let mask = if is_masked { 0x80 } else { 0 };
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(mask | short as u8),
        long => {
            frame.push(mask | 126);
            frame.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    if is_masked {
        frame.extend_from_slice(&[0; 4]);
    }
    frame.extend_from_slice(payload);
    frame
}

const FINAL: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const PING: u8 = 9;

async fn over(stream: TcpStream) -> Client {
    let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
    Client { socket }
}

/// Writes bytes behind the acknowledgement.
async fn raw(graph: &Streamed, bytes: &[u8]) -> Client {
    let mut stream = Client::open(graph, MODERN).await.socket.into_stream();
    // Whoever is closed early need not take everything.
    let _ = stream.write_all(bytes).await;
    over(stream).await
}

/// A message in pieces.
fn pieces(text: &str, size: usize) -> Vec<u8> {
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
    let last = pieces.len() - 1;
    let frame = |(at, piece): (usize, &&[u8])| {
        let first = if at == 0 { TEXT } else { CONTINUATION };
        let end = if at == last { FINAL } else { 0 };
        frame(end | first, piece, true)
    };
    pieces.iter().enumerate().flat_map(frame).collect()
}

const PING_QUERY: &str = r#"{"id":"q","type":"subscribe","payload":{"query":"{ping}"}}"#;

/// Does what is wrong where nothing but the code of the close frame comes of it.
async fn violates(graph: &Streamed, fault: &str) -> Client {
    let say = async |messages: &[serde_json::Value]| {
        let mut client = Client::open(graph, MODERN).await;
        for message in messages {
            client.say(message.clone()).await;
        }
        client
    };
    let running =
        json!({"id": "1", "type": "subscribe", "payload": {"query": "subscription { counted }"}});
    match fault {
        "says nothing behind the upgrade" => Client::connect(graph, MODERN).await,
        "offers no sub-protocol that is spoken" => {
            let address = graph.served.address;
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "GET /graphql HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                 sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 sec-websocket-protocol: unknown\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                read.push(stream.read_u8().await.unwrap());
            }
            over(stream).await
        }
        "subscribes before `connection_init`" => {
            let mut client = Client::connect(graph, MODERN).await;
            client.subscribe("1", "{ping}").await;
            client
        }
        "sends `connection_init` twice" => say(&[json!({"type": "connection_init"})]).await,
        "sends text that is no JSON" => raw(graph, &frame(FINAL | TEXT, b"{", true)).await,
        "sends a type that is none" => say(&[json!({"type": "begin"})]).await,
        "subscribes without an id" => {
            say(&[json!({"type": "subscribe", "payload": {"query": "{ping}"}})]).await
        }
        "subscribes without a payload" => say(&[json!({"id": "1", "type": "subscribe"})]).await,
        "subscribes with an id of a kilobyte" => {
            let id = "i".repeat(1 << 10);
            say(&[json!({"id": id, "type": "subscribe", "payload": {"query": "{ping}"}})]).await
        }
        "subscribes with an id that runs" => say(&[running.clone(), running]).await,
        "sends a message larger than `max_message_size`" => {
            raw(graph, &frame(FINAL | TEXT, &[b' '; 5_000], true)).await
        }
        "sends fragments that are together larger than that" => {
            raw(graph, &pieces(&" ".repeat(5_000), 1_000)).await
        }
        "begins a message within another one" => {
            raw(
                graph,
                &[frame(TEXT, b"{", true), frame(TEXT, b"{", true)].concat(),
            )
            .await
        }
        "continues a message that it never began" => {
            raw(graph, &frame(FINAL | CONTINUATION, b"{", true)).await
        }
        "sends a frame that is not masked" => {
            raw(graph, &frame(FINAL | TEXT, PING_QUERY.as_bytes(), false)).await
        }
        "sends a frame with reserved bits" => {
            raw(
                graph,
                &frame(FINAL | 0x40 | TEXT, PING_QUERY.as_bytes(), true),
            )
            .await
        }
        "sends a frame of a type that is none" => raw(graph, &frame(FINAL | 3, b"", true)).await,
        "sends a ping in fragments" => raw(graph, &frame(PING, b"", true)).await,
        "sends a close frame of one byte" => raw(graph, &frame(FINAL | 8, b"x", true)).await,
        "sends text that is no UTF-8" => raw(graph, &frame(FINAL | TEXT, b"\xff", true)).await,
        "sends a binary message" => raw(graph, &frame(FINAL | 2, b"{}", true)).await,
        "floods with pings" => raw(graph, &frame(FINAL | PING, b"", true).repeat(10_000)).await,
        "floods with fragments of nothing" => {
            let begun = frame(TEXT, b"", true);
            let more = frame(CONTINUATION, b"", true).repeat(10_000);
            raw(graph, &[begun, more].concat()).await
        }
        "never says anything again (half-open)" => Client::open(graph, MODERN).await,
        fault => panic!("nobody plays this: {fault}"),
    }
}

/// One fault, in front of a gateway that has another client.
fn play(case: &StreamCase) {
    let graph = Streamed::with(match case.fault {
        "says nothing behind the upgrade" => {
            // Long enough for the other client.
            "  client: { websocket: { connection_init_timeout: 9s } }\n"
        }
        "never says anything again (half-open)" => "  client: { heartbeat_interval: 20ms }\n",
        "sends a message in a thousand fragments" => "",
        _ => {
            "  client: { websocket: { max_operations_per_connection: 1, max_message_size: 4KiB } }\n"
        }
    });
    run(async {
        let mut other = Client::open(&graph, MODERN).await;
        match case.fault {
            "breaks the connection without a word" => {
                let mut client = Client::open(&graph, MODERN).await;
                client.subscribe("1", "subscription { counted }").await;
                let source = graph.feed.opened();
                drop(client);
                source.wait_until_left();
            }
            "sends a message in a thousand fragments" => {
                let padded = format!("{PING_QUERY}{}", " ".repeat(1_000));
                let mut client = raw(&graph, &pieces(&padded, 1)).await;
                assert_eq!(client.hear().await["type"], "next");
            }
            "completes an operation twice, or one that never was" => {
                let mut client = Client::open(&graph, MODERN).await;
                client.subscribe("1", "subscription { counted }").await;
                let source = graph.feed.opened();
                for id in ["1", "1", "never"] {
                    client.say(json!({"id": id, "type": "complete"})).await;
                }
                source.wait_until_left();
                client.subscribe("1", "{ping}").await;
                assert_eq!(client.hear().await["type"], "next");
            }
            "subscribes beyond `max_operations_per_connection`"
            | "subscribes to what is not valid" => {
                let mut client = Client::open(&graph, MODERN).await;
                client.subscribe("1", "subscription { counted }").await;
                let mut source = graph.feed.opened();
                if case.heard == "GRAPHQL_VALIDATION_FAILED" {
                    client.say(json!({"id": "1", "type": "complete"})).await;
                }
                client.subscribe("2", "{nothing}").await;
                let heard = client.hear().await;
                assert_eq!(heard["type"], "error");
                assert_eq!(heard["payload"][0]["extensions"]["code"], case.heard);
                if case.heard == "OPERATIONS_LIMITED" {
                    source.send(r#"{"counted":1}"#);
                    assert_eq!(client.hear().await["id"], "1");
                }
            }
            fault => {
                let code = violates(&graph, fault).await.closed().await;
                assert_eq!(code.to_string(), case.heard, "{fault}");
            }
        }
        if case.fault != "never says anything again (half-open)" {
            other.subscribe("1", "{ping}").await;
            assert_eq!(other.hear().await["type"], "next", "{}", case.fault);
        }
    });
}

#[test]
fn whatever_clients_do_wrong_is_told_and_harms_nobody_else() {
    for case in CASES {
        play(case);
    }
}
