//! `content-encoding` on both sides, and what bombs do.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::mpsc,
};

use ogive_net::encoding::{Encoding, decode, encode};
use serde_json::json;

use crate::{
    graph::Graph,
    http_client::{post, post_with, send},
};

fn decoded(encoding: Encoding, body: &[u8]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let text = runtime
        .block_on(decode(encoding, body, 64 << 20, None))
        .unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// An operation with a large answer.
fn large() -> String {
    let long = "a".repeat(20);
    let field = |i| format!("{long}{i}: me {{ name }}");
    let fields: Vec<String> = (0..190).map(field).collect();
    format!("{{ {} }}", fields.join(" "))
}

#[test]
fn answers_are_encoded_as_the_client_likes_best() {
    let graph = Graph::start();
    let plain = post(graph.address(), &large());
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
    for (accept, encoding) in [
        ("gzip", Encoding::Gzip),
        ("gzip, deflate, br", Encoding::Brotli),
        ("gzip, deflate, br, zstd", Encoding::Zstd),
    ] {
        let answer = post_with(graph.address(), &large(), &[("accept-encoding", accept)]);
        assert_eq!(answer.header("content-encoding"), Some(encoding.name()));
        assert!(
            answer.body.len() * 3 < plain.body.len(),
            "{accept}: {}",
            answer.body.len()
        );
        assert_eq!(decoded(encoding, &answer.body), plain.text(), "{accept}");
    }
    let small = post_with(
        graph.address(),
        "{ me { name } }",
        &[("accept-encoding", "gzip")],
    );
    assert_eq!(small.header("content-encoding"), None, "not worth it");
    let refused = post_with(
        graph.address(),
        &large(),
        &[("accept-encoding", "gzip;q=0, identity")],
    );
    assert_eq!(refused.header("content-encoding"), None);
    let off = Graph::with("http: { compression: { enabled: false } }");
    let answer = post_with(off.address(), &large(), &[("accept-encoding", "gzip")]);
    assert_eq!(
        (answer.header("content-encoding"), answer.header("vary")),
        (None, None)
    );
    let eager = Graph::with("http: { compression: { min_bytes: 1 } }");
    let answer = post_with(
        eager.address(),
        "{ me { name } }",
        &[("accept-encoding", "gzip")],
    );
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
}

#[test]
fn requests_may_come_encoded_and_bombs_are_refused() {
    let graph = Graph::with("limits: { http_max_request_bytes: 1MB }");
    let body = json!({ "query": "{ me { name } }" }).to_string();
    let bomb = vec![b' '; 40 << 20];
    for encoding in Encoding::ALL {
        let headers = [
            ("content-type", "application/json"),
            ("content-encoding", encoding.name()),
        ];
        let ask = |body: &[u8]| send(graph.address(), "POST", "/graphql", &headers, body);
        let good = ask(&encode(encoding, body.as_bytes()).unwrap());
        assert_eq!(good.text(), r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#);
        let bad = ask(body.as_bytes());
        assert_eq!(
            (bad.status, bad.codes()),
            (400, vec!["INVALID_GRAPHQL_REQUEST".into()])
        );
        let large = ask(&encode(encoding, &bomb).unwrap());
        assert_eq!(
            (large.status, large.codes()),
            (413, vec!["REQUEST_TOO_LARGE".into()])
        );
    }
}

/// A subgraph that answers every request on every connection with the same bytes and hands over what it was sent.
fn subgraph(answer: Vec<u8>) -> (SocketAddr, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 16 << 10];
            let whole = |request: &[u8]| {
                let head = request.windows(4).position(|w| w == b"\r\n\r\n")?;
                let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
                let length = text
                    .split("content-length: ")
                    .nth(1)?
                    .lines()
                    .next()?
                    .parse::<usize>()
                    .ok()?;
                (request.len() >= head + 4 + length).then_some(())
            };
            while whole(&request).is_none() {
                match stream.read(&mut piece) {
                    Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                    _ => break,
                }
            }
            if tell.send(request).is_err() {
                return;
            }
            let _ = stream.write_all(&answer);
        }
    });
    (address, told)
}

fn http(encoding: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

#[test]
fn subgraphs_may_answer_encoded() {
    for encoding in Encoding::ALL {
        let body = encode(encoding, br#"{"data":{"me":{"name":"Zoe"}}}"#).unwrap();
        let (address, told) = subgraph(http(encoding.name(), &body));
        let url = format!("override_subgraph_url: {{ accounts: 'http://{address}/' }}");
        let graph = Graph::with(&format!(
            "{url}\ntraffic_shaping: {{ all: {{ accept_compression: true, compression: {} }} }}",
            encoding.name()
        ));
        let answer = post(graph.address(), "{ me { name } }");
        assert_eq!(
            answer.text(),
            r#"{"data":{"me":{"name":"Zoe"}}}"#,
            "{encoding:?}"
        );
        let request = String::from_utf8_lossy(&told.recv().unwrap()).into_owned();
        assert!(
            request.contains("accept-encoding: zstd, br, gzip"),
            "{request}"
        );
        assert!(
            !request.contains("content-encoding"),
            "too small to be worth it: {request}"
        );
        // A large request is encoded.
        post(graph.address(), &large());
        let request = told.recv().unwrap();
        let head = request.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        let text = String::from_utf8_lossy(&request[..head]).into_owned();
        assert!(
            text.contains(&format!("content-encoding: {}", encoding.name())),
            "{text}"
        );
        assert!(decoded(encoding, &request[head..]).starts_with(r#"{"query":"#));
    }
}

#[test]
fn encoded_lies_of_subgraphs_cost_their_own_fields() {
    let spaces = vec![b' '; 64 << 20];
    for (name, answer) in [
        ("noise", http("gzip", b"no gzip")),
        ("unknown", http("rot13", b"{}")),
        ("two", http("gzip, br", b"{}")),
        (
            "gzip bomb",
            http("gzip", &encode(Encoding::Gzip, &spaces).unwrap()),
        ),
        (
            "br bomb",
            http("br", &encode(Encoding::Brotli, &spaces).unwrap()),
        ),
        (
            "zstd bomb",
            http("zstd", &encode(Encoding::Zstd, &spaces).unwrap()),
        ),
    ] {
        let (address, _told) = subgraph(answer);
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ accounts: 'http://{address}/' }}\n\
             traffic_shaping: {{ all: {{ response_max_bytes: 1MB }} }}"
        ));
        let answer = post(
            graph.address(),
            "{ me { name } topProducts(first: 1) { name } }",
        );
        assert_eq!(
            (answer.status, answer.codes()),
            (200, vec!["SUBREQUEST_HTTP_ERROR".into()]),
            "{name}"
        );
        let data = answer.json()["data"].to_string();
        assert_eq!(
            data, r#"{"me":null,"topProducts":[{"name":"Ridge 30 backpack"}]}"#,
            "{name}"
        );
    }
}
