//! Attacks that fill memory on purpose: few bytes on the wire that become many, and answers that nobody takes.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use ogive_net::encoding::{Encoding, encode};
use tokio::net::TcpStream;

use crate::{
    graph::Graph,
    http_client::{Connection, connect, post, request, send},
    http2::frame,
    toxic::Toxic,
};

/// An attack on a gateway with a configuration.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) yaml: &'static str,
    /// Stands for the subgraph `inventory`.
    pub(super) subgraph: Option<fn() -> Toxic>,
    pub(super) run: fn(SocketAddr),
}

const JSON: (&str, &str) = ("content-type", "application/json");
const GZIP: (&str, &str) = ("content-encoding", "gzip");
/// Bytes of a body before it is compressed: just below the limit of a request.
const BODY: usize = 1_900_000;
/// Streams of one connection.
const STREAMS: usize = 20;

/// `text` as often as it fits, between `before` and `after`.
fn filled(before: &str, text: &str, after: &str) -> Vec<u8> {
    let mut body = before.to_owned();
    while body.len() + text.len() < BODY {
        body.push_str(text);
        body.push(',');
    }
    body.pop();
    body.push_str(after);
    body.into_bytes()
}

/// Small objects in a member that nobody reads.
fn extensions(query: &str) -> Vec<u8> {
    let before = format!(r#"{{"query":"{query}","extensions":{{"a":["#);
    filled(&before, r#"{"":0}"#, "]}}")
}
fn variables(query: &str) -> Vec<u8> {
    let before = format!(r#"{{"query":"{query}","variables":{{"a":["#);
    filled(&before, r#"{"":0}"#, "]}}")
}
fn nested_variables() -> Vec<u8> {
    let deep = format!("{}{}", "[".repeat(30), "]".repeat(30));
    filled(
        r#"{"query":"{ __typename }","variables":{"a":["#,
        &deep,
        "]}}",
    )
}
fn batch() -> Vec<u8> {
    let entry = r#"{"query":"{__typename}","variables":{"a":[[],[],[],[],[],[],[],[],[],[]]}}"#;
    let mut body = b"[".to_vec();
    body.extend_from_slice(&[entry; 10].join(",").into_bytes());
    body.push(b']');
    body
}

/// Compressed bodies on all streams of one HTTP/2 connection.
fn on_streams(address: SocketAddr, body: &[u8]) {
    let body = Bytes::from(encode(Encoding::Gzip, body).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let work = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        let ended = tokio::spawn(connection);
        let asked: Vec<_> = (0..STREAMS)
            .map(|_| tokio::spawn(one_stream(sender.clone(), address, body.clone())))
            .collect();
        for stream in asked {
            let _ = stream.await;
        }
        ended.abort();
    };
    runtime.block_on(async { drop(tokio::time::timeout(Duration::from_secs(30), work).await) });
}

async fn one_stream(
    sender: SendRequest<Bytes>,
    address: SocketAddr,
    body: Bytes,
) -> Result<(), h2::Error> {
    let head = http::Request::post(format!("http://{address}/graphql"))
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(())
        .unwrap();
    let mut sender = sender.ready().await?;
    let (response, mut out) = sender.send_request(head, false)?;
    out.send_data(body, true)?;
    let mut body = response.await?.into_body();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(())
}

fn gzipped(address: SocketAddr, body: &[u8]) {
    let body = encode(Encoding::Gzip, body).unwrap();
    drop(send(address, "POST", "/graphql", &[JSON, GZIP], &body));
}
fn plain(address: SocketAddr, body: &[u8]) {
    drop(send(address, "POST", "/graphql", &[JSON], body));
}

/// Another number each time, in the whole process.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What begins an HTTP/2 connection, with the largest windows unless they are for nothing.
fn http2_opening(window: u32) -> Vec<u8> {
    let window = [&4_u16.to_be_bytes()[..], &window.to_be_bytes()].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &window));
    bytes
}

/// POST /graphql of JSON.
const HTTP2_POST: &[u8] = b"\x83\x86\x04\x08/graphql\x01\x01a\x0f\x10\x10application/json";

/// A head in as many frames as it needs; the stream stays open.
fn http2_head(stream: u32, head: &[u8]) -> Vec<u8> {
    let mut pieces = head.chunks(16_000).enumerate().peekable();
    let mut bytes = Vec::new();
    while let Some((nth, piece)) = pieces.next() {
        let kind = if nth == 0 { 1 } else { 9 };
        let flags = if pieces.peek().is_none() { 4 } else { 0 };
        bytes.extend(frame(kind, flags, stream, piece));
    }
    bytes
}

/// A body in as many frames as it needs, and the end of the stream.
fn http2_body(stream: u32, body: &[u8]) -> Vec<u8> {
    let pieces = body.chunks(16_000);
    let data = pieces.flat_map(|piece| frame(0, 0, stream, piece));
    data.chain(frame(0, 1, stream, b"")).collect()
}

/// Writes frames as far as they are taken, and keeps the connection for a moment.
fn http2_frames(address: SocketAddr, window: u32, frames: impl Iterator<Item = Vec<u8>>) {
    let mut stream = connect(address);
    let moment = Some(Duration::from_millis(500));
    let _ = stream.set_write_timeout(moment);
    let _ = stream.set_read_timeout(moment);
    let mut all = frames;
    if stream.write_all(&http2_opening(window)).is_ok()
        && all.all(|frame| stream.write_all(&frame).is_ok())
    {
        while matches!(stream.read(&mut [0; 16 << 10]), Ok(1..)) {}
    }
}

/// Asks for a lot, and takes none of it until the gateway gives up.
fn take_nothing(address: SocketAddr, query: &str) {
    let mut connection = Connection::open(address);
    let body = serde_json::json!({ "query": query }).to_string();
    let request = request("POST", "/graphql", &[JSON], body.as_bytes());
    connection.write_what_is_taken(&request);
    std::thread::sleep(Duration::from_millis(500));
}

fn large_answer(bytes: usize) -> Toxic {
    let text = "x".repeat(bytes);
    Toxic::answering(
        200,
        "",
        format!(
            r#"{{"data":{{"_entities":[{{"shippingCost":{{"amount":1.5}},"unknown":"{text}"}},{{"shippingCost":{{"amount":2.5}}}}]}}}}"#
        ),
    )
}
fn long_name(bytes: usize) -> Toxic {
    let text = "x".repeat(bytes);
    let warehouse = |city: &str| format!(r#"{{"warehouse":{{"city":"{city}"}}}}"#);
    let entities = [warehouse(&text), warehouse("Lund")].join(",");
    Toxic::answering(
        200,
        "",
        format!(r#"{{"data":{{"_entities":[{entities}]}}}}"#),
    )
}

const ASKS_INVENTORY: &str = "{ topProducts(first: 2) { name shippingCost { amount } } }";
const ASKS_WAREHOUSE: &str = "{ topProducts(first: 2) { name warehouse { city } } }";
const INTROSPECTION: &str = "supergraph: { introspection: true }\n";
const BATCHES: &str = "batching: { enabled: true, maximum_size: 10 }\n";
const UPLOADS: &str = "file_uploads: { enabled: true }\n";

fn small_operation(nth: u64) -> String {
    format!("{{ a{nth}: me {{ name }} }}")
}
/// One that all subgraphs are asked for.
fn large_operation(nth: u64) -> String {
    let products = "name price { amount } shippingCost { amount } reviews { text author { name } }";
    format!(
        "{{ a{nth}: me {{ name reviews {{ product {{ name }} }} }} topProducts {{ {products} }} }}"
    )
}

/// Operations that have to be planned, ten on each of twenty connections that ask at the same time.
fn ask_anew(address: SocketAddr, query: impl Fn(u64) -> String) {
    let mut all: Vec<Connection> = (0..20).map(|_| Connection::open(address)).collect();
    for _ in 0..10 {
        for connection in &mut all {
            let body = serde_json::json!({ "query": query(unique()) }).to_string();
            connection.write(&request("POST", "/graphql", &[JSON], body.as_bytes()));
        }
        for connection in &mut all {
            connection.try_read();
        }
    }
}

macro_rules! cases {
    ($( $name:literal, $yaml:expr, $subgraph:expr, |$g:ident| $run:expr; )*) => {
        &[$( Case { name: $name, yaml: $yaml, subgraph: $subgraph, run: |$g| $run }, )*]
    };
}

/// What neighbours may notice of planning.
pub(super) const UNKNOWN: &[Case] = cases! {
    "200 small operations that nobody has seen, by 20 connections", "", None, |g| ask_anew(g, small_operation);
    "200 operations of four subgraphs that nobody has seen, by 20 connections", "", None, |g| ask_anew(g, large_operation);
};

pub(super) const CASES: &[Case] = cases! {
    "extensions of small objects, compressed, 20 streams", "", None, |g| on_streams(g, &extensions("{ me { name } }"));
    "the same for a query that asks no subgraph", "", None, |g| on_streams(g, &extensions("{ __typename }"));
    "variables of small objects, compressed, 20 streams", "", None, |g| on_streams(g, &variables("{ me { name } }"));
    "nested variables, compressed, 20 streams", "", None, |g| on_streams(g, &nested_variables());
    "the same over HTTP/1.1", "", None, |g| gzipped(g, &nested_variables());
    "extensions of small objects, plain", "", None, |g| plain(g, &extensions("{ me { name } }"));
    "batches with variables", BATCHES, None, |g| plain(g, &batch());
    "a large batch entry", BATCHES, None, |g| gzipped(g, &[b"[".to_vec(), extensions("{ me { name } }"), b"]".to_vec()].concat());
    "query strings with variables", "", None, |g| {
        let values = "%7B%22%22%3A0%7D,".repeat(3_000);
        let target = format!("/graphql?query=%7B__typename%7D&variables=%7B%22a%22%3A%5B{}0%5D%7D", values);
        drop(send(g, "GET", &target, &[("apollo-require-preflight", "1")], b""));
    };
    "names of operations of 1.9 MB", "", None, |g| plain(g, format!(r#"{{"query":"query {}{} {{ __typename }}"}}"#, "x".repeat(BODY), unique()).as_bytes());
    "unknown operation names of 1.9 MB", "", None, |g| plain(g, format!(r#"{{"query":"query A {{ __typename }}","operationName":"{}{}"}}"#, "x".repeat(BODY), unique()).as_bytes());
    "operations that nobody has seen", "", None, |g| plain(g, serde_json::json!({ "query": large_operation(unique()) }).to_string().as_bytes());
    "names of fields that nobody has seen", "", None, |g| plain(g, format!(r#"{{"query":"{{ {} }}"}}"#, (0..2_000).map(|i| format!("f{}x{i} ", unique())).collect::<String>()).as_bytes());
    "the field `operations` of an upload", UPLOADS, None, |g| {
        let operations = String::from_utf8(extensions("{ __typename }")).unwrap();
        let body = format!("--b\r\ncontent-disposition: form-data; name=\"operations\"\r\n\r\n{operations}\r\n--b\r\ncontent-disposition: form-data; name=\"map\"\r\n\r\n{{}}\r\n--b--\r\n");
        let headers = [("content-type", "multipart/form-data; boundary=b"), ("apollo-require-preflight", "1")];
        drop(send(g, "POST", "/graphql", &headers, body.as_bytes()));
    };
    "strings of 1.9 MB as values", "", None, |g| plain(g, format!(r#"{{"query":"query($s: ID!) {{ account(id: $s) {{ name }} }}","variables":{{"s":"{}{}"}}}}"#, "x".repeat(BODY), unique()).as_bytes());
    "answers of 30 MB that nobody needs", "", Some(|| large_answer(30 << 20)), |g| plain(g, serde_json::json!({ "query": ASKS_INVENTORY }).to_string().as_bytes());
    "answers of 30 MB that the client wants", "", Some(|| long_name(30 << 20)), |g| plain(g, serde_json::json!({ "query": ASKS_WAREHOUSE }).to_string().as_bytes());
    "answers of 30 MB that the client does not take", "", Some(|| long_name(30 << 20)), |g| take_nothing(g, ASKS_WAREHOUSE);
    "bodies of 1.9 MB that never end", "", None, |g| {
        let mut connection = Connection::open(g);
        connection.write_what_is_taken(b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1999999\r\n\r\n");
        connection.write_what_is_taken(&vec![b' '; BODY]);
        std::thread::sleep(Duration::from_millis(500));
    };
    "ids of documents that nobody has registered", "", None, |g| plain(g, format!(r#"{{"extensions":{{"persistedQuery":{{"version":1,"sha256Hash":"{}{}"}}}}}}"#, "a".repeat(1_000_000), unique()).as_bytes());
    "HTTP/2 heads of 60 kB whose bodies never come, 100 streams", "", None, |g| {
        let mut head = HTTP2_POST.to_vec();
        // A field without an index: its name, its length in two bytes more, its value.
        head.extend(b"\x00\x01x\x7f\xe1\xd3\x03");
        head.extend([b'x'; 60_000]);
        http2_frames(g, 65_535, (0..100).map(|nth| http2_head(1 + 2 * nth, &head)));
    };
    "HTTP/2 heads of 1,800 fields of a byte each, 100 streams", "", None, |g| {
        let again = [HTTP2_POST, &[0xbe; 1_800]].concat();
        let first = [HTTP2_POST, &b"\x40\x01a\x01b"[..], &[0xbe; 10]].concat();
        let heads = (0..100).map(move |nth| http2_head(1 + 2 * nth, if nth == 0 { &first } else { &again }));
        http2_frames(g, 65_535, heads);
    };
    "HTTP/2 frames without end: PING, SETTINGS, WINDOW_UPDATE, PRIORITY, CONTINUATION, empty DATA", "", None, |g| {
        let (first, again) = match unique() % 6 {
            0 => (vec![], frame(6, 0, 0, b"12345678")),
            1 => (vec![], frame(4, 0, 0, b"")),
            2 => (vec![], frame(8, 0, 0, &[0, 0, 0, 1])),
            3 => (vec![], frame(2, 0, 1, &[0, 0, 0, 3, 1])),
            4 => (frame(1, 0, 1, HTTP2_POST), frame(9, 0, 1, b"\x82")),
            _ => (frame(1, 4, 1, HTTP2_POST), frame(0, 0, 1, b"")),
        };
        http2_frames(g, 65_535, std::iter::once(first).chain(vec![again.repeat(1_000); 200]));
    };
    "HTTP/2 answers for which there is no window, 100 streams", INTROSPECTION, None, |g| {
        let body = br#"{"query":"{ __schema { types { name description fields { name description type { name } } } } }"}"#;
        let ask = |nth: u32| [http2_head(1 + 2 * nth, HTTP2_POST), frame(0, 1, 1 + 2 * nth, body)].concat();
        http2_frames(g, 0, (0..100).map(ask));
    };
    "half heads of 60 kB, 20 connections each", "", None, |g| {
        let half = format!("GET /health HTTP/1.1\r\nhost: a\r\nx: {}", "x".repeat(60_000));
        let held: Vec<Connection> = (0..20).map(|_| { let mut c = Connection::open(g); c.write_what_is_taken(half.as_bytes()); c }).collect();
        std::thread::sleep(Duration::from_millis(500));
        drop(held);
    };
    "introspection that nobody has seen", INTROSPECTION, None, |g| {
        let types = format!("a{}: __schema {{ types {{ name description fields {{ name description args {{ name type {{ name ofType {{ name }} }} }} type {{ name ofType {{ name ofType {{ name }} }} }} }} }} }}", unique());
        plain(g, format!(r#"{{"query":"{{ {types} }}"}}"#).as_bytes());
    };
    "documents of 1.9 MB that are seen twice", "", None, |g| {
        let body = format!(r##"{{"query":"#{}{}\n{{ __typename }}"}}"##, "x".repeat(BODY), unique());
        plain(g, body.as_bytes());
        plain(g, body.as_bytes());
    };
    "uploads whose file never ends", UPLOADS, None, |g| {
        let begun = "--b\r\ncontent-disposition: form-data; name=\"operations\"\r\n\r\n{\"query\":\"{ me { name } }\",\"variables\":{\"f\":null}}\r\n--b\r\ncontent-disposition: form-data; name=\"map\"\r\n\r\n{\"0\":[\"variables.f\"]}\r\n--b\r\ncontent-disposition: form-data; name=\"0\"; filename=\"a\"\r\n\r\n";
        let head = "POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=b\r\napollo-require-preflight: 1\r\ncontent-length: 99999999\r\n\r\n";
        let mut connection = Connection::open(g);
        connection.write_what_is_taken(&[head.as_bytes(), begun.as_bytes(), &vec![b'x'; 4 << 20]].concat());
    };
    "answers of 5,000,000 small objects that nobody needs", "", Some(|| {
        let objects = vec!["{}"; 5_000_000].join(",");
        Toxic::answering(200, "", format!(r#"{{"data":{{"_entities":[{{"shippingCost":{{"amount":1.5}},"unknown":[{objects}]}},{{"shippingCost":{{"amount":2.5}}}}]}}}}"#))
    }), |g| plain(g, serde_json::json!({ "query": ASKS_INVENTORY }).to_string().as_bytes());
    "answers with 1,000,000 errors", "", Some(|| {
        let errors = vec![r#"{"message":"x"}"#; 1_000_000].join(",");
        Toxic::answering(200, "", format!(r#"{{"errors":[{errors}]}}"#))
    }), |g| plain(g, serde_json::json!({ "query": ASKS_INVENTORY }).to_string().as_bytes());
    "HTTP/2 answers that are encoded, of which a byte is taken, 100 streams", "", None, |g| {
        // `accept-encoding: br`, in every second connection gzip.
        let encoding: &[u8] = if unique().is_multiple_of(2) { b"\x0f\x01\x02br" } else { b"\x0f\x01\x04gzip" };
        let head = [HTTP2_POST, encoding].concat();
        let long = "x".repeat(1_200);
        let fields: String = (0..150).map(|i| format!("{long}{i}:__typename ")).collect();
        let body = format!(r#"{{"query":"{{{fields}}}"}}"#);
        let ask = |nth: u32| [http2_head(1 + 2 * nth, &head), http2_body(1 + 2 * nth, body.as_bytes())].concat();
        http2_frames(g, 1, (0..100).map(ask));
    };
};

/// What is refused at once is no flood of planning.
#[test]
fn operations_that_nobody_has_seen_are_answered() {
    let graph = Graph::start();
    for query in [small_operation(1), large_operation(1)] {
        let answer = post(graph.address(), &query);
        assert_eq!((answer.status, answer.codes()), (200, vec![]), "{query}");
    }
}
