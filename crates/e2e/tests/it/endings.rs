//! The end of a gateway comes in its time, whatever clients do; and the end of a connection is noticed, whatever was sent
//! before.

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::{
    certificates::{Authority, Folder},
    connections::graph_with_played_accounts,
    graph::Graph,
    http_client::{Connection, connect, request, send},
    toxic::Toxic,
};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const QUERY: &[u8] = br#"{"query":"{ me { name } }"}"#;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}
/// Much shorter than the time that requests in flight have, which is [`LATE`].
const SOON: Duration = Duration::from_secs(60);
const LATE: &str = "http: { connection_shutdown_timeout: 10m, header_read_timeout: 10m }";

/// Stops a gateway whose client has said this, and nothing else from then on.
fn stops_soon(what: &str, said: &[u8]) {
    let mut graph = Graph::with(LATE);
    let mut client = connect(graph.address());
    client.write_all(said).unwrap();
    // Whoever comes later is served, so what came before was read.
    for _ in 0..2 {
        assert_eq!(
            send(graph.address(), "GET", "/health", &[], b"").status,
            200
        );
    }
    let began = Instant::now();
    graph.served.begin_stop();
    let drained = graph.served.stopped();
    let took = began.elapsed();
    assert!(took < SOON, "{what}: stopped after {took:?}");
    assert_eq!(drained.cut_off, 0, "{what}");
}

#[test]
fn whoever_says_half_a_head_holds_up_no_shutdown() {
    stops_soon("nothing", b"");
    stops_soon("half a preface", &PREFACE[..10]);
    stops_soon(
        "half a head",
        b"POST /graphql HTTP/1.1\r\nhost: a\r\nx-slow: ",
    );
    stops_soon(
        "half a second head",
        b"GET /health HTTP/1.1\r\nhost: a\r\n\r\nGET /health HTTP/1.1\r\nho",
    );
}

#[test]
fn whoever_says_half_of_http2_holds_up_no_shutdown() {
    let settings = frame(4, 0, 0, b"");
    let http2 = |more: &[u8]| [PREFACE, &settings, more].concat();
    stops_soon("a preface", PREFACE);
    stops_soon("an idle client that answers nothing", &http2(b""));
    // `:method: GET`, and the rest of the block never comes.
    let block = frame(1, 0, 1, &[0x82]);
    stops_soon("half a header block", &http2(&block));
    stops_soon("half a frame", &http2(&block[..5]));
}

#[test]
fn half_a_tls_handshake_holds_up_no_shutdown() {
    let (authority, folder) = (Authority::new(), Folder::new("endings"));
    let issued = authority.issue("localhost");
    let identity = folder.identity("gateway", &issued);
    let mut graph = Graph::with(&format!("{LATE}\ntls: {{ supergraph: {{ {identity} }} }}"));
    let mut client = connect(graph.address());
    client
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .unwrap();
    let began = Instant::now();
    graph.served.begin_stop();
    assert_eq!(graph.served.stopped().cut_off, 0);
    assert!(began.elapsed() < SOON, "after {:?}", began.elapsed());
}

/// Whoever takes nothing of its answer is cut off at the deadline.
#[test]
fn whoever_reads_nothing_holds_up_no_shutdown_for_longer_than_its_time() {
    let name = "x".repeat(24 << 20);
    let body = format!(r#"{{"data":{{"me":{{"name":"{name}"}}}}}}"#);
    let large = Toxic::answering(200, "", body);
    let mut graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n\
         http: {{ connection_shutdown_timeout: 1s, write_timeout: 10m }}",
        large.url()
    ));
    let mut client = Connection::open(graph.address());
    client.write(&request("POST", "/graphql", &JSON, QUERY));
    // Some of the answer is there, so all of it is on its way.
    assert!(client.read_some(&mut Vec::new()));
    let began = Instant::now();
    graph.served.begin_stop();
    assert_eq!(graph.served.stopped().cut_off, 1);
    assert!(began.elapsed() < SOON, "after {:?}", began.elapsed());
}

#[test]
fn the_default_leaves_time_before_a_supervisor_kills() {
    let http = ogive_config::HttpOptions::default();
    let most = http.drain_delay.0 + http.drain_idle_timeout.0 + http.connection_shutdown_timeout.0;
    // And five seconds for the last metrics and spans.
    assert!(most <= Duration::from_secs(15), "{most:?}");
}

/// With one more byte behind the body, nobody reads from the connection while the request is answered.
#[test]
fn a_client_that_has_sent_more_and_leaves_stops_the_work_upstream() {
    for reset in [false, true] {
        // Otherwise it is given up after half a minute, whoever waits for it.
        let (graph, accounts) = graph_with_played_accounts(
            "traffic_shaping: { router: { timeout: 10m }, all: { timeout: 10m } }",
        );
        let mut client = connect(graph.address());
        client
            .write_all(&[&request("POST", "/graphql", &JSON, QUERY)[..], b"x"].concat())
            .unwrap();
        let mut upstream = accounts.next();
        let began = Instant::now();
        leave(client, reset);
        assert!(upstream.is_left());
        let took = began.elapsed();
        assert!(took < SOON, "reset: {reset}; noticed after {took:?}");
    }
}

/// Closes a connection; with a reset if that is asked for.
pub(crate) fn leave(stream: TcpStream, reset: bool) {
    if reset {
        let now = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream, now).unwrap();
    }
}
