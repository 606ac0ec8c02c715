//! Connections: clients that leave, shutdown with work in flight, limits.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use ogive_testbase::subgraph::ManualSubgraph;

use crate::{
    graph::Graph,
    http_client::{Connection, PATIENCE, post, request, send},
};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const QUERY: &[u8] = br#"{"query":"{ me { name } }"}"#;
const ANSWER: &[u8] = b"{\"data\":{\"me\":{\"name\":\"Ann\"}}}";

pub(crate) fn graph_with_played_accounts(more: &str) -> (Graph, ManualSubgraph) {
    let played = ManualSubgraph::start();
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n{more}",
        played.url()
    ));
    (graph, played)
}

#[test]
fn a_client_that_leaves_stops_the_work_upstream() {
    let (graph, accounts) = graph_with_played_accounts("");
    let mut client = Connection::open(graph.address());
    client.write(&request("POST", "/graphql", &JSON, QUERY));
    let mut upstream = accounts.next();
    drop(client);
    // The gateway closes its connection to the subgraph, in whatever way, and says nothing more on it.
    assert!(upstream.is_left());
    assert_eq!(
        send(graph.address(), "GET", "/health", &[], b"").status,
        200
    );
}

#[test]
fn shutdown_lets_requests_in_flight_finish() {
    let (mut graph, accounts) =
        graph_with_played_accounts("http: { connection_shutdown_timeout: 2m }");
    let address = graph.address();
    let mut idle = Connection::open(address);
    idle.write(&request("GET", "/readiness", &[], b""));
    assert_eq!(idle.read().status, 200);
    let mut client = Connection::open(address);
    client.write(&request("POST", "/graphql", &JSON, QUERY));
    let mut upstream = accounts.next();
    graph.served.begin_stop();
    // The idle connection is closed, and nobody is let in any more.
    assert!(idle.is_closed());
    refuses(address);
    upstream.answer(200, "", ANSWER);
    let answer = client.read();
    assert_eq!((answer.status, answer.body.as_slice()), (200, ANSWER));
    assert!(client.is_closed());
    assert_eq!(graph.served.stopped().cut_off, 0);
}

/// Waits until nothing listens at the address.
fn refuses(address: SocketAddr) {
    let began = Instant::now();
    while let Ok(mut stream) = TcpStream::connect(address) {
        assert!(began.elapsed() < PATIENCE, "it still listens");
        // Accepted by the operating system just before the listener went: closed without an answer.
        let mut byte = [0; 1];
        let _ = stream.write_all(b"GET /readiness HTTP/1.1\r\nhost: a\r\n\r\n");
        if let Ok(n) = stream.read(&mut byte) {
            assert_eq!(n, 0, "a new request was taken while draining");
        }
    }
}

#[test]
fn shutdown_has_a_deadline() {
    let (mut graph, accounts) =
        graph_with_played_accounts("http: { connection_shutdown_timeout: 50ms }");
    let mut client = Connection::open(graph.address());
    client.write(&request("POST", "/graphql", &JSON, QUERY));
    let upstream = accounts.next();
    graph.served.begin_stop();
    // Nobody answers.
    assert_eq!(graph.served.stopped().cut_off, 1);
    assert!(client.is_closed());
    drop(upstream);
}

#[test]
fn beyond_the_limit_connections_wait_their_turn() {
    let (graph, accounts) = graph_with_played_accounts("http: { connections_max: 1 }");
    loop {
        let mut first = Connection::open(graph.address());
        first.write(&request("POST", "/graphql", &JSON, QUERY));
        let mut upstream = accounts.next();
        let began = Instant::now();
        let mut second = Connection::open(graph.address());
        let typename = br#"{"query":"{ __typename }"}"#;
        second.write_what_is_taken(&request("POST", "/graphql", &JSON, typename));
        // The first has the only place until it leaves, which is in a moment.
        upstream.answer(200, "connection: close\r\n", ANSWER);
        assert_eq!(first.read().status, 200);
        drop(first);
        if second.try_read().is_some_and(|answer| answer.status == 200) {
            break;
        }
        // Two seconds are too long, and may pass on a busy machine.
        assert!(began.elapsed() >= Duration::from_secs(2), "it did not wait");
    }
}

#[test]
fn a_stale_subgraph_connection_is_replaced() {
    let (graph, accounts) = graph_with_played_accounts("http: { workers: 1 }");
    let first = std::thread::scope(|scope| {
        let client = scope.spawn(|| post(graph.address(), "{ me { name } }"));
        let mut upstream = accounts.next();
        upstream.answer(200, "", ANSWER);
        assert_eq!(client.join().unwrap().body, ANSWER);
        upstream
    });
    // The subgraph tires of the connection; the next request must not suffer.
    drop(first);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| post(graph.address(), "{ me { name } }"));
        let mut upstream = accounts.next();
        upstream.answer(200, "", ANSWER);
        assert_eq!(client.join().unwrap().body, ANSWER);
    });
}

#[test]
fn connections_that_say_nothing_are_closed() {
    let graph = Graph::with("http: { header_read_timeout: 100ms }");
    // Nothing at all, half a head, and a pause between two requests.
    let mut silent = Connection::open(graph.address());
    let mut slow = Connection::open(graph.address());
    slow.write_what_is_taken(b"GET /health HTTP/1.1\r\nhost: a\r\nx-slow: ");
    // On a busy machine the time of a connection may be over before it has asked.
    let mut idle = loop {
        let mut idle = Connection::open(graph.address());
        idle.write_what_is_taken(&request("GET", "/health", &[], b""));
        if idle.try_read().is_some_and(|answer| answer.status == 200) {
            break idle;
        }
    };
    assert!(silent.is_closed());
    assert!(idle.is_closed());
    // hyper may say 408 before it closes.
    while !slow.is_closed() {
        slow.read();
    }
}

#[test]
fn a_body_that_never_comes_is_not_waited_for() {
    let graph = Graph::with("http: { body_read_timeout: 50ms }");
    let mut connection = Connection::open(graph.address());
    connection.write(
        b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    let answer = connection.read();
    assert_eq!(
        (answer.status, answer.codes()[0].as_str()),
        (408, "REQUEST_TIMEOUT")
    );
    assert!(connection.is_closed());
}
