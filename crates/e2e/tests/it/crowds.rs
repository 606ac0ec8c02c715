//! Clients that hold connections and ask nothing, or half a head: others are answered, and so is whoever asks about health.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use crate::{
    graph::Graph,
    http_client::{Answer, Connection, connect, request, send},
    http2::frame,
    toxic::{Reply, Toxic, answer},
};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const ME: &str = r#"{"query":"{ me { name } }"}"#;
/// Longer than a newcomer waits for a place, on a slow machine in a debug build; much shorter than [`LONG`].
const SOON: Duration = Duration::from_secs(60);
/// So nobody is gone only because of having said nothing for too long.
const LONG: &str = "header_read_timeout: 10m";
const HERE: [u8; 4] = [127, 0, 0, 1];

/// Connections that say two bytes and no more.
fn hold(address: SocketAddr, number: usize) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = connect(address);
        stream.write_all(b"PR").unwrap();
        stream
    };
    (0..number).map(open).collect()
}

/// Asks until there is an answer: whoever is let in for a moment only has to come again if that was over on a busy machine
/// before all of it was said.
fn answered(from: [u8; 4], address: SocketAddr, asked: &[u8]) -> (Connection, Answer) {
    let began = Instant::now();
    loop {
        let mut connection = Connection::open_from(IpAddr::from(from), address);
        connection.write_what_is_taken(asked);
        if let Some(answer) = connection.try_read() {
            return (connection, answer);
        }
        assert!(began.elapsed() < SOON, "nobody answers");
    }
}

fn health(address: SocketAddr) -> Answer {
    answered(HERE, address, &request("GET", "/health", &[], b"")).1
}

fn query() -> Vec<u8> {
    request("POST", "/graphql", &JSON, ME.as_bytes())
}

/// Asks until there is a place, which may take longer than somebody waits for one; gives the connection.
fn let_in(from: [u8; 4], address: SocketAddr) -> Connection {
    let began = Instant::now();
    loop {
        let (connection, answer) = answered(from, address, &query());
        if answer.status == 200 {
            return connection;
        }
        assert_eq!(answer.codes(), ["CONNECTIONS_LIMITED"]);
        assert!(began.elapsed() < SOON, "there is no place for {from:?}");
    }
}

fn is_over(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}

/// A graph whose subgraph answers when it is told to.
fn held_up(yaml: &str) -> (Graph, Toxic, std::sync::mpsc::Sender<()>) {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let subgraph = Toxic::start(move |_, _| {
        // All go on when nobody is there to tell any more.
        let _ = told.lock().unwrap().recv();
        let people: Vec<String> = (0..10)
            .map(|i| format!(r#""a{i}":{{"name":"Zoe"}}"#))
            .collect();
        let body = format!(r#"{{"data":{{{}}}}}"#, people.join(","));
        Reply::Last(answer(200, "", body.as_bytes()))
    });
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n\
         traffic_shaping: {{ router: {{ timeout: 10m }}, all: {{ timeout: 10m }} }}\n{yaml}",
        subgraph.url()
    ));
    (graph, subgraph, tell)
}

/// Up to ten clients that wait for an answer, on connections of their own.
fn wait(graph: &Graph, subgraph: &Toxic, number: usize) -> Vec<Connection> {
    let ask = |i| {
        let mut connection = Connection::open(graph.address());
        // Each is another one, because equal requests to subgraphs are sent once.
        let body = format!(r#"{{"query":"{{ a{i}: me {{ name }} }}"}}"#);
        connection.write(&request("POST", "/graphql", &JSON, body.as_bytes()));
        connection
    };
    let waiting = (0..number).map(ask).collect();
    while subgraph.asked() < number {
        std::thread::yield_now();
    }
    waiting
}

#[test]
fn whoever_says_nothing_keeps_nobody_out() {
    let graph = Graph::with(&format!(
        "http: {{ connections_max: 200, connections_per_client_max: 200, {LONG} }}"
    ));
    let held = hold(graph.address(), 200);
    for from in [HERE, [127, 0, 0, 2]] {
        let_in(from, graph.address());
    }
    assert_eq!(health(graph.address()).status, 200);
    // Those that had waited for the longest time have gone.
    assert!(is_over(&mut { held }[0]));
}

#[test]
fn whoever_is_idle_keeps_nobody_out() {
    let graph = Graph::with(&format!("http: {{ connections_max: 10, {LONG} }}"));
    let idle: Vec<Connection> = (0..10)
        .map(|_| {
            let mut connection = Connection::open(graph.address());
            connection.write(&request("GET", "/health", &[], b""));
            assert_eq!(connection.read().status, 200);
            connection
        })
        .collect();
    let_in(HERE, graph.address());
    drop(idle);
}

#[test]
fn one_client_has_a_part_of_all_connections_by_default() {
    let graph = Graph::with(&format!("http: {{ connections_max: 1200, {LONG} }}"));
    // Three hundred are for one address; this is more than all.
    let mut held = hold(graph.address(), 1_300);
    let mut other = let_in([127, 0, 0, 2], graph.address());
    other.write(&query());
    assert_eq!(other.read().status, 200);
    assert!(is_over(&mut held[0]), "the oldest of its client");
    // The same client is served as well.
    let_in(HERE, graph.address());
}

#[test]
fn health_is_answered_where_every_place_is_busy() {
    let (graph, subgraph, tell) = held_up("http: { connections_max: 5 }");
    let waiting = wait(&graph, &subgraph, 5);
    let well = health(graph.address());
    assert_eq!(
        (well.status, well.header("connection")),
        (200, Some("close"))
    );
    let ready = request("GET", "/readiness", &[], b"");
    let (_, ready) = answered(HERE, graph.address(), &ready);
    assert_eq!(ready.status, 200);
    // Everybody else is told to come back.
    let (_, refused) = answered(HERE, graph.address(), &query());
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(refused.codes(), ["CONNECTIONS_LIMITED"]);
    // Those who only hold the places that are kept for this hold nobody up either.
    let _held = hold(graph.address(), 100);
    assert_eq!(health(graph.address()).status, 200);
    drop(tell);
    for (i, mut connection) in waiting.into_iter().enumerate() {
        let expected = format!(r#"{{"data":{{"a{i}":{{"name":"Zoe"}}}}}}"#);
        assert_eq!(connection.read().text(), expected);
    }
    // The gateway notices that they have left when it reads the end.
    let_in(HERE, graph.address());
}

/// Sends pieces for as long as the other side is there, and whatever it says; gives how long it was.
fn trickle(stream: &mut TcpStream, mut piece: impl FnMut(u32) -> Vec<u8>) -> Duration {
    let began = Instant::now();
    // Which is how long it waits between two pieces.
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    for nth in 0.. {
        if stream.write_all(&piece(nth)).is_err() {
            break;
        }
        match stream.read(&mut [0; 4096]) {
            Ok(0) => break,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break,
            _ => {}
        }
        assert!(began.elapsed() < SOON, "it may go on for ever");
    }
    began.elapsed()
}

#[test]
fn whoever_is_let_in_for_a_moment_is_gone_after_it_whatever_it_sends() {
    let (graph, subgraph, tell) = held_up("http: { connections_max: 5 }");
    let waiting = wait(&graph, &subgraph, 5);
    // Bodies of one byte at a time, with a new request whenever another one is answered.
    let mut guest = connect(graph.address());
    let begun = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &frame(4, 0, 0, b""),
    ];
    guest.write_all(&begun.concat()).unwrap();
    // POST, http, a path and an authority; a head without an end of the stream.
    let head = b"\x83\x86\x04\x08/graphql\x01\x01a";
    trickle(&mut guest, |nth| {
        let stream = 1 + 2 * (nth / 4);
        match nth % 4 {
            0 => frame(1, 4, stream, head),
            _ => frame(0, 0, stream, b" "),
        }
    });
    // One after another on a connection, of which no more than the first is answered.
    let mut guest = connect(graph.address());
    let request = b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
    trickle(&mut guest, |nth| {
        vec![request.get(nth as usize).copied().unwrap_or(b' ')]
    });
    drop(tell);
    drop(waiting);
}

/// There are thirty-two places for them, however busy their holders are.
#[test]
fn guests_that_send_bodies_make_room_for_one_another() {
    let (graph, subgraph, tell) = held_up("http: { connections_max: 5 }");
    let waiting = wait(&graph, &subgraph, 5);
    let mut guests: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut guest = connect(graph.address());
            let half = b"POST /health HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx";
            // It may have been sent away already.
            let _ = guest.write_all(half);
            guest
        })
        .collect();
    assert!(is_over(&mut guests[0]));
    assert_eq!(health(graph.address()).status, 200);
    drop(tell);
    drop(waiting);
}

/// What has come of heads that are not over counts, for all connections together.
#[test]
fn half_heads_take_no_more_memory_than_there_is() {
    let graph = Graph::with(&format!(
        "limits: {{ max_memory: 1MB }}\nhttp: {{ {LONG} }}"
    ));
    let memory = graph.served.gateway.memory();
    let half = format!(
        "GET /health HTTP/1.1\r\nhost: a\r\nx: {}",
        "x".repeat(60_000)
    );
    let mut held = Vec::new();
    let began = Instant::now();
    let refused = (1..).find(|number| {
        let mut stream = connect(graph.address());
        let _ = stream.write_all(half.as_bytes());
        stream
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        // Until all of it has come and counts, or it is sent away.
        loop {
            match stream.read(&mut [0; 64]) {
                Ok(0) => return true,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return true,
                _ if memory.used() >= number * half.len() => break,
                _ => assert!(began.elapsed() < SOON, "{} bytes count", memory.used()),
            }
        }
        held.push(stream);
        false
    });
    assert!(refused.is_some_and(|number| number > 5), "{refused:?}");
    assert!(memory.used() <= memory.limit());
    assert_eq!(
        send(graph.address(), "GET", "/health", &[], b"").status,
        200
    );
    drop(held);
    while memory.used() > 0 {
        assert!(began.elapsed() < SOON, "{} bytes are kept", memory.used());
    }
}

#[test]
fn one_client_has_only_so_many_busy_connections() {
    let (graph, subgraph, tell) = held_up("http: { connections_per_client_max: 3 }");
    let waiting = wait(&graph, &subgraph, 3);
    let (_, refused) = answered(HERE, graph.address(), &query());
    assert_eq!(refused.status, 503);
    assert_eq!(refused.codes(), ["CONNECTIONS_LIMITED"]);
    let mut other = Connection::open_from([127, 0, 0, 2].into(), graph.address());
    other.write(&request(
        "POST",
        "/graphql",
        &JSON,
        br#"{"query":"{ __typename }"}"#,
    ));
    assert_eq!(other.read().status, 200);
    drop(tell);
    for mut connection in waiting {
        assert_eq!(connection.read().status, 200);
    }
    let trusting =
        Graph::with("http: { connections_per_client_max: 1, trusted_proxies: [127.0.0.1, '::1'] }");
    let mut all: Vec<Connection> = (0..5)
        .map(|_| Connection::open(trusting.address()))
        .collect();
    for connection in &mut all {
        connection.write(&request(
            "POST",
            "/graphql",
            &JSON,
            br#"{"query":"{ __typename }"}"#,
        ));
        assert_eq!(connection.read().status, 200);
    }
}

#[test]
fn a_head_has_one_deadline_from_the_beginning() {
    let patience = Duration::from_secs(2);
    let graph = Graph::with("http: { header_read_timeout: 2s }");
    // With a deadline that began anew it would take seven fourths of it, every time. A busy machine may take as long, but
    // not always.
    let closed_after = |_| {
        let began = Instant::now();
        let mut slow = connect(graph.address());
        // Could become HTTP/2, until shortly before the end.
        slow.write_all(b"PR").unwrap();
        slow.set_read_timeout(Some(patience * 3 / 4)).unwrap();
        let is_quiet = slow.read(&mut [0; 1]).is_err();
        assert!(is_quiet || began.elapsed() >= patience, "closed early");
        slow.set_read_timeout(Some(SOON)).unwrap();
        let _ = slow.write_all(b"X / HTTP/1.1\r\n");
        assert!(is_over(&mut slow));
        // Else it was too late for the second half.
        is_quiet.then(|| began.elapsed())
    };
    let mut tried = (0..20).map(closed_after);
    let in_time = tried.any(|took| took.is_some_and(|took| took < patience * 3 / 2));
    assert!(in_time, "closed later, every time");
}

#[test]
fn the_operators_health_is_answered_although_others_say_nothing() {
    let graph = Graph::with("health_check: { listen: '127.0.0.1:0' }");
    let background = graph.served.background.as_ref().unwrap();
    let address = background.health_address().unwrap();
    let _held = hold(address, 100);
    // Whoever has waited for half a minute is gone by itself.
    let began = Instant::now();
    assert_eq!(health(address).status, 200);
    assert!(began.elapsed() < SOON / 3, "after {:?}", began.elapsed());
}
