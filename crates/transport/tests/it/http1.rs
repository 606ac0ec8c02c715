//! HTTP/1.1 on real sockets: where answers end, what becomes of the connection, and answers that come before their
//! requests were read. What is found in the bytes themselves is tested in `src/http1/framing`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_transport::{
    Client, Endpoint, HeaderRules, Http2, NameMatch, RequestTransport, ResponseHeaderRule,
    ResponseHeaderRules, Source, Traffic, fetch,
};

use crate::{
    OK, endpoint, send, send_body,
    server::{Act, Server},
};

const CLOSING: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";

/// Sends two queries; what they were answered, and how many connections that took.
async fn twice(first: Act) -> (String, String, usize) {
    let server = Server::start(vec![
        vec![first, Act::Answer(OK)],
        vec![Act::Answer("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n2")],
    ])
    .await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    let mut answers = Vec::new();
    for _ in 0..2 {
        let answer = send(&client, &endpoint, false).await;
        answers.push(match answer {
            Ok(answer) => format!(
                "{} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            ),
            Err(error) => error.message,
        });
    }
    let second = answers.pop().unwrap();
    (answers.pop().unwrap(), second, server.connections())
}

#[tokio::test]
async fn connections_are_used_again_only_after_answers_that_allow_it() {
    let again = [
        OK,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x\r\n{\r\n1\r\n}\r\n0\r\nx-sum: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ];
    for answer in again {
        for act in [Act::Answer(answer), Act::Drip(answer)] {
            let seen = twice(act).await;
            assert_eq!(seen, ("200 {}".into(), "200 {}".into(), 1), "{answer}");
        }
    }
    let not_again = [
        CLOSING,
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
    ];
    for answer in not_again {
        let seen = twice(Act::Answer(answer)).await;
        assert_eq!(seen, ("200 {}".into(), "200 2".into(), 2), "{answer}");
    }
    // No body, but bytes after it.
    let empty = "HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n";
    assert_eq!(
        twice(Act::Drip(empty)).await,
        ("204 ".into(), "200 {}".into(), 1)
    );
    let more = "HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(
        twice(Act::Answer(more)).await,
        ("204 ".into(), "200 2".into(), 2)
    );
    let closed = b"HTTP/1.1 200 OK\r\n\r\n{}".to_vec();
    assert_eq!(
        twice(Act::Last(closed)).await,
        ("200 {}".into(), "200 2".into(), 2)
    );
    assert_eq!(
        twice(Act::HalfClose(OK)).await,
        ("200 {}".into(), "200 2".into(), 2)
    );
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_an_error() {
    const ANSWERS: [&str; 3] = [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{ }",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1",
    ];
    let short = |answer: &str, end| Act::Last(answer.as_bytes()[..end].to_vec());
    let ends = ANSWERS
        .iter()
        .flat_map(|a| (0..a.len()).map(move |end| (*a, end)));
    let ends: Vec<(&str, usize)> = ends.collect();
    let script = ends.iter().map(|(answer, end)| vec![short(answer, *end)]);
    let server = Server::start(script.collect()).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    for (count, (answer, end)) in ends.iter().enumerate() {
        let error = send(&client, &endpoint, true).await.unwrap_err();
        assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR");
        let what = match answer
            .rfind("\r\n\r\n{")
            .or(answer.find("\r\n\r\n2"))
            .or(answer.rfind("\r\n\r\n"))
        {
            Some(head) if *end >= head + 4 => "the connection failed in the middle of an answer",
            _ => "the connection failed before an answer came",
        };
        assert!(
            error.message.ends_with(what),
            "{answer} up to {end}: {}",
            error.message
        );
        assert_eq!(server.requests().len(), count + 1, "nothing is sent again");
    }
    assert_eq!(client.idle_connections(&endpoint), 0);
}

#[tokio::test]
async fn a_query_whose_answer_has_begun_is_not_sent_again() {
    let cut = Act::Last(b"HTTP/1.1 2".to_vec());
    let server = Server::start(vec![vec![Act::Answer(OK), cut], vec![Act::Answer(OK)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    send(&client, &endpoint, true).await.unwrap();
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert!(
        error.message.contains("before an answer came"),
        "{}",
        error.message
    );
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn what_is_said_without_being_asked_is_no_answer() {
    let evil = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    for idempotent in [false, true] {
        let server = Server::start(vec![
            vec![Act::Answer(OK), Act::Say(evil), Act::Silence],
            vec![Act::Answer(OK)],
        ])
        .await;
        let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
        send(&client, &endpoint, idempotent).await.unwrap();
        server.said().await;
        // For queries what the reactor knows is enough; let it look.
        tokio::task::yield_now().await;
        let answer = send(&client, &endpoint, idempotent).await.unwrap();
        assert_eq!(&answer.body[..], b"{}");
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn a_large_request_is_written_whole() {
    let body = format!(r#"{{"query":"{{{}}}"}}"#, "a ".repeat(3 << 20));
    let server = Server::start(vec![vec![Act::Answer(OK), Act::Answer(OK)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    for n in 0..2 {
        let sent = (Bytes::from(body.clone()), false);
        let answer = send_body(&client, &endpoint, &HeaderMap::new(), sent).await;
        assert_eq!(&answer.unwrap().body[..], b"{}");
        let request = &server.requests()[n];
        assert!(
            request.split_once("\r\n\r\n").unwrap().1 == body,
            "not what was sent"
        );
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_answer_may_come_before_the_request_was_read() {
    let refusal = "HTTP/1.1 413 Too large\r\ncontent-length: 2\r\n\r\n{}";
    for act in [Act::Early(refusal), Act::EarlyLast(refusal)] {
        let server = Server::start(vec![vec![act], vec![Act::Answer(OK)]]).await;
        let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
        // More than sockets hold.
        let sent = (Bytes::from(vec![b' '; 24 << 20]), false);
        let answer = send_body(&client, &endpoint, &HeaderMap::new(), sent)
            .await
            .unwrap();
        assert_eq!((answer.status, &answer.body[..]), (413, &b"{}"[..]));
        assert_eq!(client.idle_connections(&endpoint), 0);
        // It sees the client leave.
        server.closed(0).await;
        send(&client, &endpoint, false).await.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn large_answers_arrive_as_they_are() {
    let body: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
    let chunked = body.chunks(40_009).flat_map(|chunk| {
        let size = format!("{:x}\r\n", chunk.len()).into_bytes();
        [&size, chunk, b"\r\n"].concat()
    });
    let answers = [
        [
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes(),
            body.clone(),
        ]
        .concat(),
        [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), body.clone()].concat(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            .iter()
            .copied()
            .chain(chunked)
            .chain(*b"0\r\n\r\n")
            .collect(),
    ];
    for answer in answers {
        let server = Server::start(vec![vec![Act::Last(answer)]]).await;
        let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
        let got = send(&client, &endpoint, true).await.unwrap();
        assert!(got.body == body, "{} bytes", got.body.len());
    }
}

#[tokio::test]
async fn a_head_that_drips_takes_too_long_to_begin() {
    let server = Server::start(vec![vec![Act::Drip("HTTP/1.1 200 OK\r\ncontent-le")]]).await;
    let traffic = Traffic {
        first_byte_timeout: Some(Duration::from_millis(30)),
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "GATEWAY_TIMEOUT");
    assert!(
        error.message.contains("too long to begin"),
        "{}",
        error.message
    );
    server.closed(0).await;
}

#[tokio::test]
async fn an_answer_that_is_no_http_says_why_to_operators() {
    let server = Server::start(vec![vec![Act::Answer(
        "HTTP/1.1 101 No\r\nupgrade: x\r\n\r\n",
    )]])
    .await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert!(
        error.message.contains("before an answer came"),
        "{}",
        error.message
    );
    assert!(
        error.detail.contains("switches protocols"),
        "{}",
        error.detail
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn rules_see_all_headers_of_an_answer() {
    let answer = "HTTP/1.1 200 OK\r\nset-cookie: a\r\nX-Mine: 1\r\ncontent-length: 2\r\nset-cookie: b\r\n\r\n{}";
    let server = Server::start(vec![vec![Act::Answer(answer)]]).await;
    let mut endpoint = endpoint(&server, Traffic::default());
    let rule = |name| ResponseHeaderRule::Propagate {
        from: NameMatch::Named(HeaderName::from_static(name)),
        rename: None,
        default: None,
        algorithm: None,
    };
    endpoint.response_headers = ResponseHeaderRules::new(vec![rule("x-mine"), rule("set-cookie")]);
    let (client, headers, endpoints) = (Client::new(), HeaderMap::new(), [endpoint]);
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let request = ogive_execute::SubgraphRequest {
        subgraph: 0,
        body: Bytes::from_static(b"{}"),
        idempotent: true,
    };
    ogive_execute::Transport::send(&transport, request)
        .await
        .unwrap();
    let collected = transport.response_headers(false, false).0;
    assert_eq!(collected["x-mine"], "1");
    assert_eq!(collected.get_all("set-cookie").iter().count(), 2);
}

#[tokio::test]
async fn idle_connections_age_while_others_are_used() {
    let answers = || vec![Act::Answer(OK), Act::Answer(OK), Act::Answer(OK)];
    let (one, two) = (
        Server::start(vec![answers()]).await,
        Server::start(vec![answers()]).await,
    );
    let client = Client::new();
    let soon = endpoint(
        &one,
        Traffic {
            idle_timeout: Duration::ZERO,
            ..Traffic::default()
        },
    );
    let other = endpoint(&two, Traffic::default());
    send(&client, &soon, true).await.unwrap();
    for _ in 0..2 {
        send(&client, &other, true).await.unwrap();
    }
    assert_eq!(
        (
            client.idle_connections(&soon),
            client.idle_connections(&other)
        ),
        (0, 1)
    );
    one.closed(0).await;
}

#[tokio::test]
async fn trimming_closes_what_the_subgraph_has_closed() {
    let server = Server::start(vec![vec![Act::Answer(OK), Act::Close]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    send(&client, &endpoint, true).await.unwrap();
    server.closed(0).await;
    tokio::task::yield_now().await;
    assert_eq!((client.trim(), client.idle_connections(&endpoint)), (1, 0));
}

#[tokio::test]
async fn only_so_many_connections_are_kept() {
    let answers = || vec![Act::Answer(OK)];
    let server = Server::start(vec![answers(), answers(), answers()]).await;
    let traffic = Traffic {
        idle_max: 2,
        deduplicate_query: false,
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    let send = || send(&client, &endpoint, true);
    let (a, b, c) = tokio::join!(send(), send(), send());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(
        (server.connections(), client.idle_connections(&endpoint)),
        (3, 2)
    );
}

#[tokio::test]
async fn of_all_origins_the_oldest_connections_are_closed() {
    let answers = |n| (0..n).map(|_| vec![Act::Answer(OK)]).collect();
    let traffic = || Traffic {
        idle_total_max: 3,
        deduplicate_query: false,
        ..Traffic::default()
    };
    let client = Client::new();
    let first = Server::start(answers(2)).await;
    let second = Server::start(answers(2)).await;
    let answer = || Act::Answer(OK);
    let third = Server::start(vec![vec![answer(), answer(), answer()]]).await;
    let [a, b, c] = [&first, &second, &third].map(|server| endpoint(server, traffic()));
    let idle = || [&a, &b, &c].map(|endpoint| client.idle_connections(endpoint));
    for endpoint in [&a, &b] {
        let send = || send(&client, endpoint, true);
        let (one, two) = tokio::join!(send(), send());
        assert!(one.is_ok() && two.is_ok());
    }
    assert_eq!(idle(), [1, 2, 0]);
    send(&client, &c, true).await.unwrap();
    assert_eq!(idle(), [0, 2, 1]);
    first.closed(0).await;
    first.closed(1).await;
    // What is in use does not count, and nobody is closed who need not be.
    for _ in 0..2 {
        client.trim();
        assert_eq!(idle(), [0, 2, 1]);
        assert_eq!(third.connections(), 1);
        send(&client, &c, true).await.unwrap();
    }
    let made = [&first, &second, &third].map(|server| server.connections());
    assert_eq!(made, [2, 2, 1]);
}

#[tokio::test]
async fn single_requests_are_read_alike() {
    let answer =
        "HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
    let server = Server::start(vec![
        vec![Act::Answer(answer)],
        vec![Act::Answer(head)],
        vec![Act::Answer(answer)],
        vec![Act::Answer(answer)],
    ])
    .await;
    let url = format!("http://{}/schema", server.address);
    let mut source = Source::new(&url, Http2::Enable).unwrap();
    let ask = |method| source.send(method, HeaderMap::new(), Bytes::new());
    let fetched = ask(http::Method::GET).await.unwrap();
    assert_eq!(
        (&fetched.body[..], &fetched.headers["x-a"]),
        (&b"{}"[..], &HeaderValue::from_static("1"))
    );
    let fetched = ask(http::Method::HEAD).await.unwrap();
    assert_eq!((fetched.status, fetched.body.len()), (200, 0));
    source.body_bytes_max = 1;
    let error = source
        .send(http::Method::POST, HeaderMap::new(), Bytes::new())
        .await;
    assert!(error.unwrap_err().contains("larger than 1 bytes"));
    let endpoint = Endpoint::new("a", &url, Traffic::default(), HeaderRules::default());
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/x"));
    let fetched = fetch(&endpoint, headers, Bytes::from_static(b"abc"))
        .await
        .unwrap();
    assert_eq!(
        (&fetched.body[..], &fetched.headers["x-a"]),
        (&b"{}"[..], &HeaderValue::from_static("1"))
    );
    let requests = server.requests();
    assert!(
        requests[0].starts_with("GET /schema HTTP/1.1\r\nhost: "),
        "{}",
        requests[0]
    );
    assert!(!requests[0].contains("content-length"), "{}", requests[0]);
    assert!(
        requests[2].contains("content-length: 0\r\n"),
        "{}",
        requests[2]
    );
    assert!(
        requests[3].contains("content-type: text/x\r\n"),
        "{}",
        requests[3]
    );
    assert!(requests[3].ends_with("\r\n\r\nabc"), "{}", requests[3]);
}
