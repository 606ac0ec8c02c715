//! Attacks that fill memory on purpose: few bytes on the wire that become many, and answers that nobody takes.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use ogive_transport::encoding::{Encoding, encode};
use tokio::net::TcpStream;

use crate::{
    http_client::{Connection, request, send},
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
const BATCHES: &str = "batching: { enabled: true, maximum_size: 10 }\n";
const UPLOADS: &str = "file_uploads: { enabled: true }\n";

macro_rules! cases {
    ($( $name:literal, $yaml:expr, $subgraph:expr, |$g:ident| $run:expr; )*) => {
        &[$( Case { name: $name, yaml: $yaml, subgraph: $subgraph, run: |$g| $run }, )*]
    };
}

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
    "operations that nobody has seen", "", None, |g| plain(g, format!(r#"{{"query":"{{ a{}: me {{ name reviews {{ body product {{ name price {{ amount }} }} }} }} topProducts {{ name reviews {{ author {{ name }} }} }} }}"}}"#, unique()).as_bytes());
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
};
