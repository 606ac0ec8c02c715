//! Clients that mean harm, or are broken: refused cheaply, and nobody else notices.

use std::{
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use ogive_net::encoding::{Encoding, encode};
use serde_json::json;

use super::{compare, seen};
use crate::{
    graph::Graph,
    http_client::{Answer, Connection, connect, post, post_with, request, send},
};

/// An attack on a gateway at an address, and what its client sees.
pub(super) struct Case {
    pub(super) attack: &'static str,
    /// Status and code.
    pub(super) seen: &'static str,
    pub(super) survives: &'static str,
    pub(super) run: fn(SocketAddr) -> Option<Answer>,
}

const JSON: (&str, &str) = ("content-type", "application/json");
const SMALL: &str = "answered as ever";
const REFUSED: &str = "refused";

fn repeat(count: usize, field: impl Fn(usize) -> String) -> String {
    let fields: Vec<String> = (0..count).map(field).collect();
    format!("{{ {} }}", fields.join(" "))
}
fn body(gateway: SocketAddr, body: impl AsRef<[u8]>) -> Answer {
    send(gateway, "POST", "/graphql", &[JSON], body.as_ref())
}
fn query(gateway: SocketAddr, query: &str) -> Answer {
    post(gateway, query)
}
/// Fragments that double at each level.
fn fragment_bomb(levels: usize) -> String {
    let mut text = "{ ...F0 }".to_owned();
    for level in 0..levels {
        let next = level + 1;
        text.push_str(&format!(
            " fragment F{level} on Query {{ ...F{next} ...F{next} }}"
        ));
    }
    text + format!(" fragment F{levels} on Query {{ __typename }}").as_str()
}
/// Fields that double at each level.
fn field_bomb(levels: usize) -> String {
    let mut text = "{ me { ...F0 } }".to_owned();
    for level in 0..levels {
        let next = level + 1;
        text.push_str(&format!(
            " fragment F{level} on Person {{ a: reviews {{ author {{ ...F{next} }} }} b: reviews {{ author {{ ...F{next} }} }} }}"
        ));
    }
    text + format!(" fragment F{levels} on Person {{ name }}").as_str()
}

/// One address opens more connections than it may, and says nothing; gives what another one is answered.
fn hoard(connections: usize, allowed: usize) -> Option<Answer> {
    let graph = Graph::with(&format!(
        "http: {{ connections_per_client_max: {allowed}, header_read_timeout: 10m }}"
    ));
    let all: Vec<_> = (0..connections).map(|_| connect(graph.address())).collect();
    let mut other = Connection::open_from([127, 0, 0, 2].into(), graph.address());
    other.write_what_is_taken(&request("GET", "/health", &[], b""));
    let answer = other.try_read();
    // Which ones may stay depends on how fast they came.
    let is_open = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let said = stream.peek(&mut [0]);
        said.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let began = Instant::now();
    while all.iter().filter(is_open).count() > allowed {
        assert!(began.elapsed() < LONGEST, "it holds too many");
        std::thread::yield_now();
    }
    answer
}

macro_rules! cases {
    ($( $attack:literal => $seen:expr, $survives:expr, |$graph:ident| $run:expr; )*) => {
        &[$( Case { attack: $attack, seen: $seen, survives: $survives, run: |$graph| $run.into() }, )*]
    };
}

pub(super) const CASES: &[Case] = cases! {
    "10,000 aliases" => "400 MAX_TOKENS_LIMIT", REFUSED, |g| query(g, &repeat(10_000, |i| format!("a{i}: me {{ name }}")));
    "1,000 aliases of a field" => "400 MAX_ALIASES_LIMIT", REFUSED, |g| query(g, &repeat(1_000, |i| format!("a{i}: __typename")));
    "2,000 overlapping selections" => "200", "answered: merged in linear time", |g| query(g, &repeat(2_000, |_| "me { name }".into()));
    "2,000 overlapping selections in conflict" => "400 GRAPHQL_VALIDATION_FAILED", REFUSED, |g| query(g, &repeat(2_000, |i| format!("x: {}", if i % 2 == 0 { "__typename" } else { "me { name }" })));
    "a fragment bomb, 2^40 spreads" => "200", "answered: each fragment is read once", |g| query(g, &fragment_bomb(40));
    "a field bomb, 2^40 fields" => "400 OPERATION_TOO_LARGE", REFUSED, |g| query(g, &field_bomb(40));
    "fragments in a circle" => "400 GRAPHQL_VALIDATION_FAILED", REFUSED, |g| query(g, "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }");
    "100,000 directives" => "400 MAX_TOKENS_LIMIT", REFUSED, |g| query(g, &format!("{{ __typename {} }}", "@include(if: true) ".repeat(100_000)));
    "1,000 directives" => "400 MAX_DIRECTIVES_LIMIT", REFUSED, |g| query(g, &format!("{{ __typename {} }}", "@a ".repeat(1_000)));
    "10,000 unknown fields" => "400 GRAPHQL_VALIDATION_FAILED", REFUSED, |g| query(g, &repeat(10_000, |i| format!("nope{i}")));
    "selections nested 10,000 deep" => "400 MAX_PARSE_DEPTH", REFUSED, |g| query(g, &format!("{}a{}", "{a".repeat(10_000), "}".repeat(10_000)));
    "values nested 10,000 deep" => "400 MAX_PARSE_DEPTH", REFUSED, |g| query(g, &format!("{{ topProducts(first: {}{}) {{ name }} }}", "[".repeat(10_000), "]".repeat(10_000)));
    "variables nested 10,000 deep" => "400 INVALID_GRAPHQL_REQUEST", REFUSED, |g| body(g, format!(r#"{{"query":"{{ __typename }}","variables":{{"a":{}{}}}}}"#, "[".repeat(10_000), "]".repeat(10_000)));
    "a number of 1,000,000 digits" => "400 VALIDATION_INVALID_TYPE_VARIABLE", REFUSED, |g| body(g, format!(r#"{{"query":"query($n: Int) {{ topProducts(first: $n) {{ name }} }}","variables":{{"n":{}}}}}"#, "9".repeat(1_000_000)));
    "a body of 10 MB" => "413 REQUEST_TOO_LARGE", REFUSED, |g| { let mut c = Connection::open(g); c.write_what_is_taken(&request("POST", "/graphql", &[JSON], &vec![b' '; 10_000_000])); c.try_read() };
    "a gzip bomb" => "413 REQUEST_TOO_LARGE", REFUSED, |g| send(g, "POST", "/graphql", &[JSON, ("content-encoding", "gzip")], &encode(Encoding::Gzip, &vec![b' '; 64 << 20]).unwrap());
    "an operation of 1 MB in one name" => "400 GRAPHQL_VALIDATION_FAILED", REFUSED, |g| query(g, &format!("{{ {} }}", "x".repeat(1_000_000)));
    "a list of 1,000 requests" => "400 BATCHING_NOT_ENABLED", REFUSED, |g| body(g, format!("[{}]", vec![r#"{"query":"{ __typename }"}"#; 1_000].join(",")));
    "1,000 headers" => "431", REFUSED, |g| { let names: Vec<String> = (0..1_000).map(|i| format!("x-{i}")).collect(); let all: Vec<_> = names.iter().map(|n| (n.as_str(), "1")).collect(); send(g, "GET", "/health", &all, b"") };
    "a header of 1 MB" => "431", REFUSED, |g| { let mut c = Connection::open(g); c.write_what_is_taken(format!("GET /health HTTP/1.1\r\nhost: a\r\nx: {}", "x".repeat(1 << 20)).as_bytes()); c.try_read() };
    "a URL of 1 MB" => "431", REFUSED, |g| { let mut c = Connection::open(g); c.write_what_is_taken(format!("GET /graphql?query={}", "x".repeat(1 << 20)).as_bytes()); c.try_read() };
    "1,000 values of `accept`" => "200", SMALL, |g| { let accept = vec!["application/json;q=0.1"; 1_000].join(","); post_with(g, "{ __typename }", &[("accept", &accept)]) };
    "a head that never ends (slowloris)" => "closed", "the connection is closed after `header_read_timeout`", |g| { let mut c = Connection::open(g); c.write(b"GET /health HTTP/1.1\r\nhost: a\r\nx-slow: "); c.try_read() };
    "a body that never ends" => "408 REQUEST_TIMEOUT", "the connection is closed after `body_read_timeout`", |g| { let mut c = Connection::open(g); c.write(b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"); c.try_read() };
    "no HTTP at all" => "400", REFUSED, |g| { let mut c = Connection::open(g); c.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"); c.try_read() };
    "10,000 HTTP/2 streams that are reset at once (rapid reset)" => "closed", "none of them is begun; the connection is closed", |g| { crate::http2::rapid_reset(g, 10_000); None::<Answer> };
    "HTTP/2 streams of which nothing is taken (slow reading)" => "closed", "the connection is closed after `write_timeout`, however busy it is", |_g| { crate::http2::take_nothing(Graph::with("http: { write_timeout: 200ms, header_read_timeout: 60s }").address()); None::<Answer> };
    "1,000 connections of one address, 20 allowed" => "200", "other addresses are served as ever: `connections_per_client_max`", |_g| hoard(1_000, 20);
    "1,000 idle connections" => "200", "others are answered as ever", |g| { let _idle: Vec<TcpStream> = (0..1_000).map(|_| TcpStream::connect(g).unwrap()).collect(); query(g, "{ me { name } }") };
    "1,000 clients that ask and leave" => "200", "others are answered as ever; the work stops upstream", |g| {
        for i in 0..1_000 {
            let text = json!({ "query": format!("{{ a{i}: me {{ name }} }}") }).to_string();
            Connection::open(g).write(&request("POST", "/graphql", &[JSON], text.as_bytes()));
        }
        query(g, "{ me { name } }")
    };
};

/// No attack may take longer than this, on a slow machine in a debug build.
const LONGEST: Duration = Duration::from_secs(60);

#[test]
fn attacks_are_refused_and_nobody_else_notices() {
    let unhurried = Graph::start();
    // For those who say nothing more. Whoever asks beside them has time enough.
    let hurried = Graph::with("http: { header_read_timeout: 10s, body_read_timeout: 300ms }");
    let mut found = Vec::new();
    for case in CASES {
        let waits = ["`header_read_timeout`", "`body_read_timeout`"];
        let graph = if waits.iter().any(|time| case.survives.contains(*time)) {
            &hurried
        } else {
            &unhurried
        };
        let before = graph.service.total().requests;
        let began = Instant::now();
        let answer = (case.run)(graph.address());
        let name = case.attack;
        assert!(began.elapsed() < LONGEST, "{name}: {:?}", began.elapsed());
        let size = answer.as_ref().map_or(0, |answer| answer.body.len());
        assert!(size < 100_000, "{name}: {size} bytes");
        let text = answer.map_or_else(|| "closed".to_owned(), |answer| seen(&answer));
        found.push((name, text, case.seen));
        if case.survives == REFUSED {
            let reached = graph.service.total().requests - before;
            assert_eq!(reached, 0, "{name} reached a subgraph");
        }
        let healthy = post(graph.address(), "{ me { name } }");
        assert_eq!(
            healthy.text(),
            r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#,
            "{name}"
        );
    }
    compare(&found);
}

/// What takes long is told by size before it is begun, and done elsewhere; what is small stays.
#[test]
fn workers_hand_over_what_takes_long() {
    let graph = Graph::with("http: { workers: 1 }");
    let (address, offload) = (graph.address(), graph.served.gateway.offload());
    post(address, "{ nope }");
    assert_eq!(offload.done(), 0);
    // A worker that was interrupted has spent its time, and hands over what is small, too, for a while.
    for small in ["me { name }", "__typename"] {
        let is_handed_over = |n: usize| {
            let before = offload.done();
            post(address, &format!("{{ a{n}: {small} }}"));
            offload.done() > before
        };
        assert!((0..100_000).any(|n| !is_handed_over(n)), "{small}");
    }
    let many = repeat(2_000, |_| "me { name }".into());
    let variables = format!(
        r#"{{"query":"{{ __typename }}","variables":{{"a":[{}0]}}}}"#,
        "0,".repeat(10_000)
    );
    let bombs: [(&str, u64, &dyn Fn() -> Answer); 5] = [
        ("reading, validating", 2, &|| query(address, &many)),
        ("known, but still read", 2, &|| query(address, &many)),
        ("a bomb of a few bytes", 1, &|| {
            query(address, &field_bomb(40))
        }),
        ("many unknown fields", 2, &|| {
            query(address, &repeat(10_000, |i| format!("nope{i}")))
        }),
        ("many variables", 2, &|| body(address, &variables)),
    ];
    for (what, least, bomb) in bombs {
        let before = offload.done();
        bomb();
        let done = offload.done() - before;
        assert!(done >= least, "{what}: {done} times");
    }
    // Planning, of an operation that is quickly read.
    let before = offload.done();
    let wide = repeat(50, |i| format!("a{i}: me {{ name }}"));
    assert_eq!(query(address, &wide).status, 200);
    assert!(offload.done() > before);
    let before = offload.done();
    assert_eq!(query(address, &wide).status, 200);
    assert_eq!(offload.done(), before, "known by now");
}

/// While one client sends bombs, the requests of another are answered in between, on a single worker.
#[test]
fn one_worker_serves_others_while_it_is_attacked() {
    let graph = Graph::with("http: { workers: 1 }");
    let address = graph.address();
    let bombs = [
        repeat(2_000, |_| "me { name }".into()),
        repeat(10_000, |i| format!("nope{i}")),
        field_bomb(14),
    ];
    std::thread::scope(|scope| {
        let attack = scope.spawn(|| bombs.iter().for_each(|bomb| drop(post(address, bomb))));
        let mut slowest = Duration::ZERO;
        let mut asked = 0;
        while !attack.is_finished() || asked < 5 {
            let began = Instant::now();
            assert_eq!(post(address, "{ me { name } }").status, 200);
            slowest = slowest.max(began.elapsed());
            asked += 1;
        }
        assert!(slowest < LONGEST, "{slowest:?}");
    });
}
