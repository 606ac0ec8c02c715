//! Requests whose end two parties could see at different places. Each carries a second request, `GET /smuggled`, where
//! one reading has it: it must never be answered.

use super::compare;
use crate::{graph::Graph, http_client::Connection};

/// A request, and what it got.
pub(super) struct Case {
    pub(super) request: &'static str,
    /// Status, and what became of the connection.
    pub(super) seen: &'static str,
    bytes: fn() -> Vec<u8>,
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
const BODY: &str = r#"{"query":"{ __typename }"}"#;

/// A POST of a good body with these header lines for its length, and `rest` as it is.
fn post(lines: &str, rest: &str) -> Vec<u8> {
    format!("POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{lines}\r\n{rest}{SMUGGLED}")
        .into_bytes()
}
fn chunked(size: &str, end: &str) -> Vec<u8> {
    let rest = format!("{size}\r\n{BODY}{end}0\r\n\r\n");
    post("transfer-encoding: chunked\r\n", &rest)
}
fn get(lines: &str) -> Vec<u8> {
    format!("GET /health HTTP/1.1\r\n{lines}\r\n{SMUGGLED}").into_bytes()
}

const REFUSED: &str = "400, closed";

macro_rules! cases {
    ($( $request:literal => $seen:expr, $bytes:expr; )*) => {
        &[$( Case { request: $request, seen: $seen, bytes: || $bytes }, )*]
    };
}

pub(super) const CASES: &[Case] = cases! {
    "`content-length` before `transfer-encoding: chunked`" => REFUSED, post("content-length: 4\r\ntransfer-encoding: chunked\r\n", &format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()));
    "`transfer-encoding: chunked` before `content-length`" => REFUSED, post("transfer-encoding: chunked\r\ncontent-length: 4\r\n", &format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()));
    "two different `content-length`" => REFUSED, post("content-length: 26\r\ncontent-length: 0\r\n", BODY);
    "`content-length: 26, 0`" => REFUSED, post("content-length: 26, 0\r\n", BODY);
    "`content-length: +26`" => REFUSED, post("content-length: +26\r\n", BODY);
    "`content-length: -1`" => REFUSED, post("content-length: -1\r\n", BODY);
    "`content-length: 0x1a`" => REFUSED, post("content-length: 0x1a\r\n", BODY);
    "`content-length: 2 6`" => REFUSED, post("content-length: 2 6\r\n", BODY);
    "an empty `content-length`" => REFUSED, post("content-length:\r\n", BODY);
    "`content-length` beyond 64 bits" => REFUSED, post("content-length: 18446744073709551642\r\n", BODY);
    "`transfer-encoding: xchunked`" => REFUSED, post("transfer-encoding: xchunked\r\n", BODY);
    "`transfer-encoding: chunked` twice" => REFUSED, post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", &format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()));
    "`transfer-encoding: chunked, identity`" => REFUSED, post("transfer-encoding: chunked, identity\r\n", BODY);
    "`transfer-encoding: identity`" => REFUSED, post("transfer-encoding: identity\r\ncontent-length: 26\r\n", BODY);
    "a space before the colon of `transfer-encoding :`" => REFUSED, post("transfer-encoding : chunked\r\n", "0\r\n\r\n");
    "a vertical tab before `chunked`" => REFUSED, post("transfer-encoding:\x0bchunked\r\n", "0\r\n\r\n");
    "a folded header line" => REFUSED, post("x-a: b\r\n transfer-encoding: chunked\r\ncontent-length: 26\r\n", BODY);
    "a header line that starts with a space" => REFUSED, b"POST /graphql HTTP/1.1\r\n host: a\r\n\r\n".to_vec();
    "a bare CR in a header" => REFUSED, get("host: a\r\nx-a: b\rcontent-length: 40\r\n");
    "a NUL in a header" => REFUSED, get("host: a\r\nx-a: b\0c\r\n");
    "no `host`" => REFUSED, get("");
    "two `host`" => REFUSED, get("host: a\r\nhost: b\r\n");
    "chunks in HTTP/1.0" => REFUSED, b"POST /graphql HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_vec();
    "a chunk size that is no number" => REFUSED, chunked("zz", "\r\n");
    "a chunk size with `0x`" => REFUSED, chunked("0x1a", "\r\n");
    "a negative chunk size" => REFUSED, chunked("-1a", "\r\n");
    "a chunk size beyond 64 bits" => REFUSED, chunked("1000000000000001a", "\r\n");
    "a chunk without an end of line" => REFUSED, chunked("1a", "XX");
    "a chunk size that ends with a bare LF" => REFUSED, post("transfer-encoding: chunked\r\n", &format!("1a\n{BODY}\r\n0\r\n\r\n"));
    "a chunk extension with a bare LF" => REFUSED, chunked("1a;a=\nb", "\r\n");
    "64 KiB of chunk extensions" => REFUSED, chunked(&format!("1a;{}", "x".repeat(64 << 10)), "\r\n");
    "a small chunk extension" => "200 404, open", chunked("1a;a=b", "\r\n");
    "equal `content-length` twice" => "200 404, open", post("content-length: 26\r\ncontent-length: 26\r\n", BODY);
    "two good requests at once" => "200 404, open", get("host: a\r\n");
    "a body of a GET that looks like a request" => "200, open", get(&format!("host: a\r\ncontent-length: {}\r\n", SMUGGLED.len()));
    "trailers that look like framing" => "200 404, open", post("transfer-encoding: chunked\r\n", &format!("1a\r\n{BODY}\r\n0\r\ncontent-length: 40\r\n\r\n"));
    "an announced body that is too large to be read" => "413, closed", post("content-length: 50000000\r\n", "");
};

/// What may come before a request, in the same bytes, and be answered first.
const BEFORE: [&str; 3] = [
    "GET /health HTTP/1.1\r\nhost: a\r\n\r\n",
    "POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 26\r\n\r\n{\"query\":\"{ __typename }\"}",
    "POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
     1a;x=y\r\n{\"query\":\"{ __typename }\"}\r\n0\r\nx: y\r\n\r\n",
];

/// Sends the bytes, with so many good requests before, and one more request; reads whatever is answered.
fn statuses(graph: &Graph, bytes: &[u8], before: usize) -> String {
    let mut connection = Connection::open(graph.address());
    connection.write_what_is_taken(bytes);
    let answers = (0..=before).map_while(|_| connection.try_read());
    let mut statuses: Vec<u16> = answers.map(|answer| answer.status).collect();
    // What comes last on an open connection is the answer to this one.
    connection
        .write_what_is_taken(b"GET /readiness HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    while let Some(answer) = connection.try_read() {
        statuses.push(answer.status);
    }
    let open = statuses.len() > before + 1;
    if open {
        assert_eq!(statuses.pop(), Some(200));
    }
    let statuses: Vec<String> = statuses.iter().map(u16::to_string).collect();
    format!(
        "{}, {}",
        statuses.join(" "),
        if open { "open" } else { "closed" }
    )
}

#[test]
fn no_second_request_hides_in_a_first() {
    let graph = Graph::start();
    let found: Vec<_> = CASES
        .iter()
        .map(|case| {
            (
                case.request,
                statuses(&graph, &(case.bytes)(), 0),
                case.seen,
            )
        })
        .collect();
    compare(&found);
    assert_eq!(graph.service.total().requests, 0);
}

/// What holds for the first request of a connection holds for one that comes while another is answered.
#[test]
fn no_second_request_hides_in_one_that_comes_behind_others() {
    let graph = Graph::start();
    for before in [
        BEFORE[0].to_owned(),
        BEFORE[1].to_owned(),
        BEFORE[2].to_owned(),
        BEFORE.concat(),
    ] {
        let answers = before.matches("HTTP/1.1").count();
        let found: Vec<_> = CASES
            .iter()
            .map(|case| {
                let bytes = [before.as_bytes(), &(case.bytes)()].concat();
                let seen = statuses(&graph, &bytes, answers);
                let seen = match seen.strip_prefix(&"200 ".repeat(answers)) {
                    Some(seen) => seen.to_owned(),
                    None => format!("not answered before it: {seen}"),
                };
                (case.request, seen, case.seen)
            })
            .collect();
        compare(&found);
    }
    assert_eq!(graph.service.total().requests, 0);
}
