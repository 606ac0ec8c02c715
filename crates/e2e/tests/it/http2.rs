//! HTTP/2 on both sides: by prior knowledge and by agreement, its limits, its end.

use std::{future::Future, io::Write, net::SocketAddr, time::Duration};

use bytes::Bytes;
use h2::{Reason, client::SendRequest};
use http::{Method, Request};
use tokio::{net::TcpStream, task::JoinHandle};

use crate::{
    certificates::{Authority, Folder},
    graph::Graph,
    http_client::{Connection, post, request},
    toxic::{Reply, Toxic},
};

const ANSWER: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(120), test).await };
    runtime.block_on(bounded).expect("took too long")
}

type Ended = JoinHandle<Result<(), h2::Error>>;

async fn open(address: SocketAddr) -> (SendRequest<Bytes>, Ended) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

fn head(address: SocketAddr, headers: &[(&str, &str)]) -> Request<()> {
    let uri = format!("http://{address}/graphql");
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Status and body.
async fn ask(
    sender: &SendRequest<Bytes>,
    request: Request<()>,
    query: &str,
) -> Result<(u16, String), h2::Error> {
    let mut sender = sender.clone().ready().await?;
    let (response, mut body) = sender.send_request(request, false)?;
    let query = serde_json::json!({ "query": query }).to_string();
    body.send_data(query.into(), true)?;
    let response = response.await?;
    let status = response.status().as_u16();
    let (mut text, mut body) = (Vec::new(), response.into_body());
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        text.extend_from_slice(&piece);
    }
    Ok((status, String::from_utf8(text).unwrap()))
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Large heads count, because a connection may have many of them at a time.
#[test]
fn heads_take_no_more_memory_than_there_is() {
    // Their bodies are waited for, however long it takes to send the heads.
    let yaml = "limits: { max_memory: 1MB }\nhttp: { body_read_timeout: 10m }";
    let graph = Graph::with(yaml);
    let address = graph.address();
    let long = "x".repeat(50_000);
    run(async {
        let (sender, _ended) = open(address).await;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut bodies = Vec::new();
        for _ in 0..30 {
            let mut sender = sender.clone().ready().await.unwrap();
            let head = head(address, &[("x-long", &long)]);
            // Its body never comes.
            let (response, body) = sender.send_request(head, false).unwrap();
            bodies.push(body);
            let tell = tell.clone();
            tokio::spawn(async move { tell.send(response.await.unwrap().status().as_u16()) });
        }
        assert_eq!(told.recv().await, Some(503));
        let memory = graph.served.gateway.memory();
        assert!(memory.used() > 500_000 && memory.used() <= memory.limit());
    });
    assert_eq!(post(address, "{ me { name } }").text(), ANSWER);
}

/// Whoever came before us may have believed the other one.
#[test]
fn a_request_names_one_host() {
    let graph = Graph::with("");
    let address = graph.address();
    let own = address.to_string();
    run(async {
        let (sender, _ended) = open(address).await;
        for (host, status) in [
            (own.as_str(), 200),
            ("evil.example", 400),
            ("127.0.0.1", 400),
        ] {
            let head = head(address, &[("host", host)]);
            let answer = ask(&sender, head, "{ me { name } }").await.unwrap();
            assert_eq!(answer.0, status, "{host}: {}", answer.1);
        }
    });
}

#[test]
fn many_requests_share_a_connection() {
    let graph = Graph::with("http: { connections_max: 1 }");
    let address = graph.address();
    run(async {
        let (sender, _ended) = open(address).await;
        let asking: Vec<_> = (0..20)
            .map(|_| {
                let sender = sender.clone();
                tokio::spawn(
                    async move { ask(&sender, head(address, &[]), "{ me { name } }").await },
                )
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap().unwrap(), (200, ANSWER.to_owned()));
        }
        assert_eq!(sender.current_max_send_streams(), 100);
    });
}

#[test]
fn it_can_be_switched_off_and_bounded() {
    let off = Graph::with("http: { http2: { enabled: false } }");
    run(async {
        let stream = TcpStream::connect(off.address()).await.unwrap();
        let opened = async {
            let (sender, connection) = h2::client::handshake(stream).await?;
            tokio::spawn(connection);
            ask(&sender, head(off.address(), &[]), "{ me { name } }").await
        };
        assert!(opened.await.is_err());
    });
    assert_eq!(post(off.address(), "{ me { name } }").text(), ANSWER);
    let bounded = Graph::with("http: { http2: { max_concurrent_streams: 3 } }");
    run(async {
        let (sender, _ended) = open(bounded.address()).await;
        let answer = ask(&sender, head(bounded.address(), &[]), "{ me { name } }").await;
        assert_eq!(answer.unwrap().0, 200);
        assert_eq!(sender.current_max_send_streams(), 3);
    });
}

#[test]
fn heads_have_the_limits_of_http1() {
    let graph =
        Graph::with("limits: { http1_max_request_headers: 10, http1_max_request_buf_size: 8KiB }");
    let address = graph.address();
    run(async {
        let (sender, _ended) = open(address).await;
        let names: Vec<String> = (0..20).map(|i| format!("x-{i}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "1")).collect();
        let answer = ask(&sender, head(address, &many), "{ me { name } }").await;
        assert_eq!(answer.unwrap().0, 431);
        let long = "x".repeat(20_000);
        let refused = ask(
            &sender,
            head(address, &[("x-long", &long)]),
            "{ me { name } }",
        )
        .await;
        assert!(refused.is_err() || refused.is_ok_and(|(status, _)| status == 431));
        let (sender, _ended) = open(address).await;
        let answer = ask(&sender, head(address, &[]), "{ me { name } }").await;
        assert_eq!(answer.unwrap().0, 200);
    });
}

/// Opens streams and gives each up once the subgraph has been asked; the number of those that worked.
fn give_up(graph: &Graph, subgraph: &Toxic, most: usize) -> usize {
    let address = graph.address();
    run(async {
        let (sender, ended) = open(address).await;
        let before = subgraph.asked();
        for i in 0..most {
            let Ok(mut ready) = sender.clone().ready().await else {
                return i;
            };
            let Ok((_response, mut body)) = ready.send_request(head(address, &[]), false) else {
                return i;
            };
            let query = format!(r#"{{"query":"{{ a{i}: me {{ name }} }}"}}"#);
            if body.send_data(query.into(), true).is_err() {
                return i;
            }
            while subgraph.asked() <= before + i {
                if ended.is_finished() {
                    return i;
                }
                tokio::task::yield_now().await;
            }
            body.send_reset(Reason::CANCEL);
        }
        most
    })
}

#[test]
fn a_client_that_gives_up_most_of_what_it_asks_is_sent_away() {
    let subgraph = Toxic::start(|_, _| Reply::Hang(Vec::new()));
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\nhttp: {{ http2: {{ max_reset_streams: 10 }} }}",
        subgraph.url()
    ));
    assert_eq!(give_up(&graph, &subgraph, 8), 8, "a few are fine");
    let worked = give_up(&graph, &subgraph, 100);
    assert!((11..20).contains(&worked), "{worked}");
}

/// Sends so many HEADERS and RST_STREAM in one go; waits for the end of the connection.
pub(crate) fn rapid_reset(address: SocketAddr, streams: u32) {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend_from_slice(payload);
        out
    };
    let mut flood = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    flood.extend(frame(4, 0, 0, b""));
    for i in 0..streams {
        // `:method: POST`, `:scheme: http`, `:path: /`, `:authority: a`; then CANCEL.
        flood.extend(frame(1, 4, 2 * i + 1, b"\x83\x86\x84\x41\x01a"));
        flood.extend(frame(3, 0, 2 * i + 1, &8u32.to_be_bytes()));
    }
    let mut connection = Connection::open(address);
    connection.write_what_is_taken(&flood);
    let mut said = Vec::new();
    while connection.read_some(&mut said) {}
    let mut frames = Vec::new();
    while said.len() >= 9 {
        let size = u32::from_be_bytes([0, said[0], said[1], said[2]]) as usize;
        frames.push((said[3], said[9..9 + size].to_vec()));
        said.drain(..9 + size);
    }
    let goodbye = frames.iter().find(|(kind, _)| *kind == 7);
    // A connection that is closed with unread bytes may lose its last words.
    if let Some((_, payload)) = goodbye {
        assert_eq!(payload[4..8], 11u32.to_be_bytes(), "ENHANCE_YOUR_CALM");
    }
}

#[test]
fn resets_in_one_go_are_not_even_begun() {
    let subgraph = Toxic::start(|_, _| Reply::Hang(Vec::new()));
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}",
        subgraph.url()
    ));
    rapid_reset(graph.address(), 10_000);
    assert_eq!(subgraph.asked(), 0);
    let answer = post(graph.address(), "{ topProducts(first: 1) { name } }");
    assert_eq!(answer.codes(), Vec::<String>::new());
}

#[test]
fn connections_that_say_nothing_are_closed() {
    let graph = Graph::with("http: { header_read_timeout: 100ms }");
    run(async {
        // On a busy machine the time of a connection may be over before it has asked.
        let (sender, ended) = loop {
            let (sender, ended) = open(graph.address()).await;
            let answer = ask(&sender, head(graph.address(), &[]), "{ me { name } }").await;
            if answer.is_ok_and(|(status, _)| status == 200) {
                break (sender, ended);
            }
        };
        // With a last word, unless the client is too busy to answer a ping.
        let _ = ended.await.unwrap();
        assert!(sender.ready().await.is_err());
    });
    // Half a preface, and a preface without anything behind it.
    for bytes in [
        &b"PRI * HTTP/2.0\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut connection = Connection::open(graph.address());
        connection.write(bytes);
        while connection.read_some(&mut Vec::new()) {}
    }
}

/// Asks for a large answer and takes ten bytes of it, on a connection that stays alive otherwise; returns when the
/// connection is closed.
pub(crate) fn take_nothing(address: SocketAddr) {
    let long = "x".repeat(1_200);
    let fields: String = (0..190)
        .map(|i| format!(" {long}{i}: __typename"))
        .collect();
    let query = serde_json::json!({ "query": format!("{{{fields} }}") }).to_string();
    run(async {
        loop {
            let stream = TcpStream::connect(address).await.unwrap();
            let (sender, connection) = h2::client::Builder::new()
                .initial_window_size(10)
                .handshake::<_, Bytes>(stream)
                .await
                .unwrap();
            let ended: Ended = tokio::spawn(connection);
            let mut sender = sender.ready().await.unwrap();
            let (response, mut body) = sender.send_request(head(address, &[]), false).unwrap();
            body.send_data(query.clone().into(), true).unwrap();
            // On a busy machine the time for writing may be over before anything is written.
            let Ok(response) = response.await else {
                continue;
            };
            assert_eq!(response.status(), 200);
            // The window is ten bytes, and no more is allowed; the connection answers pings all the while.
            let mut answer = response.into_body();
            let Some(Ok(first)) = answer.data().await else {
                continue;
            };
            assert_eq!(first.len(), 10);
            while let Some(Ok(_)) = answer.data().await {}
            let _ = ended.await.unwrap();
            return;
        }
    });
}

#[test]
fn an_answer_of_which_nothing_is_taken_ends_the_connection() {
    // Well before the connection as a whole counts as idle.
    let graph = Graph::with("http: { write_timeout: 200ms, header_read_timeout: 60s }");
    take_nothing(graph.address());
    // Others are served as before.
    assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
}

/// Frames that have to be answered, from a client that reads no answer: they do not pile up, and it is sent away.
#[test]
fn floods_of_frames_end_with_the_connection() {
    let graph = Graph::with("http: { write_timeout: 300ms }");
    let begun: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for (what, first, frame) in [
        ("PING", &b""[..], &b"\0\0\x08\x06\0\0\0\0\x0012345678"[..]),
        ("SETTINGS", b"", b"\0\0\0\x04\0\0\0\0\0"),
        // A header block that never ends.
        (
            "CONTINUATION",
            b"\0\0\x01\x01\0\0\0\0\x01\x82",
            b"\0\0\x01\x09\0\0\0\0\x01\x82",
        ),
    ] {
        let mut stream = crate::http_client::connect(graph.address());
        stream.write_all(&[begun, first].concat()).unwrap();
        let many = frame.repeat(4_096);
        let mut written = 0;
        while stream.write_all(&many).is_ok() {
            written += many.len();
            assert!(written < 1 << 30, "{what} are taken for ever");
        }
        assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
    }
}

#[test]
fn draining_lets_streams_finish() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let subgraph = Toxic::start(move |_, _| {
        let _ = told.lock().unwrap().recv();
        Reply::Last(crate::toxic::answer(
            200,
            "",
            br#"{"data":{"me":{"name":"Zoe"}}}"#,
        ))
    });
    let mut graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\nhttp: {{ connection_shutdown_timeout: 2m }}",
        subgraph.url()
    ));
    let address = graph.address();
    run(async {
        let (sender, ended) = open(address).await;
        let asking = {
            let sender = sender.clone();
            tokio::spawn(async move { ask(&sender, head(address, &[]), "{ me { name } }").await })
        };
        while subgraph.asked() == 0 {
            tokio::task::yield_now().await;
        }
        graph.served.begin_stop();
        // The gateway says that it leaves; new streams are refused.
        while sender.clone().ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
        tell.send(()).unwrap();
        assert_eq!(
            asking.await.unwrap().unwrap(),
            (200, r#"{"data":{"me":{"name":"Zoe"}}}"#.to_owned())
        );
        ended.await.unwrap().unwrap();
    });
    assert_eq!(graph.served.stopped().cut_off, 0);
}

/// Eight different queries at the same time.
fn ask_eight(graph: &Graph) {
    std::thread::scope(|scope| {
        for i in 0..8 {
            scope.spawn(move || {
                let answer = post(graph.address(), &format!("{{ a{i}: me {{ name }} }}"));
                let json = answer.json();
                assert_eq!(
                    json["data"][format!("a{i}")]["name"],
                    "Ida Lindqvist",
                    "{json}"
                );
            });
        }
    });
}

#[test]
fn subgraphs_are_asked_over_one_connection() {
    // A gateway that takes a single connection is the subgraph.
    let subgraph = Graph::with("http: { connections_max: 1 }");
    let url = format!("http://{}/graphql", subgraph.address());
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{url}' }}\nhttp: {{ workers: 1 }}\n\
         traffic_shaping: {{ subgraphs: {{ accounts: {{ http2: http2only }} }} }}"
    ));
    ask_eight(&graph);
    let http1 = Graph::with("http: { http2: { enabled: false } }");
    let url = format!("http://{}/graphql", http1.address());
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{url}' }}\ntraffic_shaping: {{ all: {{ http2: http2only }} }}"
    ));
    let answer = post(graph.address(), "{ me { name } }");
    assert_eq!(answer.codes(), ["SUBREQUEST_HTTP_ERROR"]);
}

#[test]
fn subgraphs_agree_on_it_during_the_tls_handshake() {
    let (authority, folder) = (Authority::new(), Folder::new("h2-subgraph"));
    let identity = folder.identity("server", &authority.issue("localhost"));
    let ca = folder.write("ca.pem", &authority.pem);
    for http2 in ["enable", "http2only"] {
        let subgraph = Graph::with(&format!(
            "http: {{ connections_max: 1 }}\ntls: {{ supergraph: {{ {identity} }} }}"
        ));
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ accounts: 'https://localhost:{}/graphql' }}\n\
             http: {{ workers: 1 }}\ntls: {{ subgraph: {{ all: {{ certificate_authorities: '{ca}' }} }} }}\n\
             traffic_shaping: {{ all: {{ http2: {http2} }} }}",
            subgraph.address().port()
        ));
        assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
        ask_eight(&graph);
    }
    let http1 = Graph::with(&format!(
        "http: {{ http2: {{ enabled: false }} }}\ntls: {{ supergraph: {{ {identity} }} }}"
    ));
    for (http2, codes) in [
        ("enable", &[][..]),
        ("disable", &[]),
        ("http2only", &["SUBREQUEST_HTTP_ERROR"]),
    ] {
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ accounts: 'https://localhost:{}/graphql' }}\n\
             tls: {{ subgraph: {{ all: {{ certificate_authorities: '{ca}' }} }} }}\n\
             traffic_shaping: {{ all: {{ http2: {http2} }} }}",
            http1.address().port()
        ));
        assert_eq!(
            post(graph.address(), "{ me { name } }").codes(),
            codes,
            "{http2}"
        );
    }
}

/// A subgraph that restarts must not cost a query, whatever the version of HTTP.
#[test]
fn a_connection_that_ended_is_replaced() {
    let folder = Folder::new("h2-restart");
    let socket = folder.path("accounts.sock");
    let start = || Graph::with(&format!("listen: 'unix://{socket}'"));
    for http2 in ["enable", "http2only"] {
        let first = start();
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ accounts: 'unix://{socket}?path=/graphql' }}\n\
             traffic_shaping: {{ all: {{ http2: {http2} }} }}"
        ));
        for _ in 0..4 {
            assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
        }
        drop(first);
        let _second = start();
        for _ in 0..4 {
            assert_eq!(
                post(graph.address(), "{ me { name } }").text(),
                ANSWER,
                "{http2}"
            );
        }
    }
}

#[test]
fn http1_goes_on_beside_it() {
    let graph = Graph::start();
    let mut connection = Connection::open(graph.address());
    // The first bytes could become a preface.
    connection.write(b"P");
    let whole = request(
        "POST",
        "/graphql",
        &[("content-type", "application/json")],
        br#"{"query":"{ me { name } }"}"#,
    );
    connection.write(&whole[1..]);
    assert_eq!(connection.read().text(), ANSWER);
}

/// What is refused by its head is read all the same: a stream that is reset behind its answer costs some clients the
/// answer. More is sent than the gateway takes without reading.
#[test]
fn refusals_reach_clients_that_are_still_sending() {
    let graph = Graph::with(
        "file_uploads: { enabled: true }\n\
         traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, key: header, header: x-client } } }",
    );
    let address = graph.address();
    run(async {
        let (sender, _ended) = open(address).await;
        let first = ask(
            &sender,
            head(address, &[("x-client", "a")]),
            "{ __typename }",
        );
        assert_eq!(first.await.unwrap().0, 200);
        let json = ("content-type", "application/json");
        let many = [("x-many", "1"); 101];
        let passes = ("apollo-require-preflight", "true");
        let no_boundary = ("content-type", "multipart/form-data");
        for (path, method, headers, status) in [
            ("/nowhere", "POST", &[json][..], 404),
            ("/graphql", "POST", &many, 431),
            (
                "/graphql",
                "POST",
                &[no_boundary, passes, ("x-client", "d")],
                400,
            ),
            (
                "/graphql",
                "POST",
                &[
                    no_boundary,
                    passes,
                    ("x-client", "e"),
                    ("content-encoding", "gzip"),
                ],
                415,
            ),
            (
                "/graphql",
                "POST",
                &[("content-type", "multipart/form-data; boundary=x")],
                400,
            ),
            ("/graphql", "POST", &[json, ("accept", "text/html")], 406),
            ("/graphql", "PUT", &[json, ("x-client", "b")], 405),
            ("/graphql", "POST", &[json, ("x-client", "a")], 429),
            (
                "/graphql",
                "POST",
                &[json, ("x-client", "c"), ("content-encoding", "x")],
                415,
            ),
        ] {
            let mut attempt = 0;
            // Whoever pauses for too long is not read from any more, and on a busy machine anybody may: asks again then,
            // as somebody of whom nothing was counted.
            let response = loop {
                let (sender, _ended) = open(address).await;
                let mut request = Request::builder()
                    .method(method)
                    .uri(format!("http://{address}{path}"));
                for (name, value) in headers {
                    let value = match *name {
                        "x-client" if *value != "a" => format!("{value}{attempt}"),
                        _ => (*value).to_owned(),
                    };
                    request = request.header(*name, value);
                }
                if attempt > 0 && headers.iter().all(|(name, _)| *name != "x-client") {
                    request = request.header("x-client", format!("again{attempt}"));
                }
                let mut sender = sender.ready().await.unwrap();
                let request = request.body(()).unwrap();
                let (response, mut body) = sender.send_request(request, false).unwrap();
                if send_all(&mut body, 3 << 20).await {
                    break response.await.unwrap();
                }
                attempt += 1;
            };
            let found = response.status();
            assert_eq!(found, status, "{path} {headers:?}");
        }
    });
}

/// Sends so many bytes of a body; false if the stream ends before that.
async fn send_all(body: &mut h2::SendStream<Bytes>, mut left: usize) -> bool {
    while left > 0 {
        body.reserve_capacity(left);
        let room = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
        let Some(Ok(room)) = room else {
            return false;
        };
        let sent = body.send_data(vec![b' '; room].into(), room == left);
        if sent.is_err() {
            return false;
        }
        left -= room;
    }
    true
}
