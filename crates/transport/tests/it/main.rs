//! The subgraph client against scripted servers on real sockets.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(
    clippy::print_stderr,
    reason = "a measurement says what it has measured"
)]

mod arrival;
mod arriving;
mod blame;
mod coalescing;
mod connecting;
mod event_faults;
mod events;
#[path = "../../../plan/tests/it/fixture.rs"]
mod fixture;
mod foreign_events;
mod http1;
mod server;
mod sharing;
mod signing;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_execute::{Failure, SubgraphRequest, SubgraphResponse, Transport};
use ogive_transport::{
    Client, Endpoint, HeaderRule, HeaderRules, NameMatch, RequestTransport, Retry, Traffic,
};
use server::{Act, Server};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

fn endpoint(server: &Server, traffic: Traffic) -> Endpoint {
    let url = format!("http://{}/graphql?v=1", server.address);
    Endpoint::new("products", &url, traffic, HeaderRules::default())
}

async fn send(
    client: &Client,
    endpoint: &Endpoint,
    idempotent: bool,
) -> Result<SubgraphResponse, Failure> {
    send_with(client, endpoint, &HeaderMap::new(), idempotent).await
}

async fn send_with(
    client: &Client,
    endpoint: &Endpoint,
    headers: &HeaderMap,
    idempotent: bool,
) -> Result<SubgraphResponse, Failure> {
    let body = Bytes::from_static(br#"{"query":"{a}"}"#);
    send_body(client, endpoint, headers, (body, idempotent)).await
}

async fn send_body(
    client: &Client,
    endpoint: &Endpoint,
    headers: &HeaderMap,
    (body, idempotent): (Bytes, bool),
) -> Result<SubgraphResponse, Failure> {
    let endpoints = [endpoint.clone()];
    let transport = RequestTransport::new(client, &endpoints, headers, None);
    let request = SubgraphRequest {
        subgraph: 0,
        body,
        idempotent,
    };
    transport.send(request).await
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::start(vec![vec![
        Act::Answer(OK),
        Act::Answer(OK),
        Act::Answer(OK),
    ]])
    .await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    for _ in 0..3 {
        let response = send(&client, &endpoint, false).await.unwrap();
        assert_eq!((response.status, &response.body[..]), (200, &b"{}"[..]));
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(client.idle_connections(&endpoint), 1);
    let request = &server.requests()[2];
    assert!(
        request.starts_with("POST /graphql?v=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("content-type: application/json\r\n"),
        "{request}"
    );
    assert!(
        request.contains(&format!("host: {}\r\n", server.address)),
        "{request}"
    );
    assert!(
        request.ends_with("\r\n\r\n{\"query\":\"{a}\"}"),
        "{request}"
    );
}

#[tokio::test]
async fn any_status_is_an_answer() {
    let answer =
        "HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let server = Server::start(vec![vec![Act::Answer(answer)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    let response = send(&client, &endpoint, true).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (503, &b"abcde"[..]));
}

#[tokio::test]
async fn a_subgraph_may_ask_for_more_time_than_clocks_can_say() {
    let busy = "HTTP/1.1 503 No\r\nretry-after: 18446744073709551615\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(vec![vec![Act::Answer(busy), Act::Answer(OK)]]).await;
    let traffic = Traffic {
        retry: Some(Retry {
            attempts: 1,
            backoff: Duration::ZERO,
            backoff_max: Duration::ZERO,
            budget_percent: 100,
            budget_per_second: 0,
        }),
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    let answer = send(&client, &endpoint, true).await.unwrap();
    assert_eq!((answer.status, server.requests().len()), (503, 1));
}

#[tokio::test]
async fn the_time_left_replaces_no_header_of_the_exchange() {
    for (name, count) in [("x-time-left", 1), ("content-type", 0)] {
        let server = Server::start(vec![vec![Act::Answer(OK)]]).await;
        let traffic = Traffic {
            deadline_header: Some(HeaderName::from_static(name)),
            ..Traffic::default()
        };
        let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
        send(&client, &endpoint, true).await.unwrap();
        let request = &server.requests()[0];
        let left = request.lines().filter_map(|line| line.split_once(": "));
        let left = left.filter(|(n, value)| *n == name && value.parse::<u64>().is_ok());
        assert_eq!(left.count(), count, "{request}");
        assert_eq!(request.matches("content-type: ").count(), 1, "{request}");
    }
}

#[tokio::test]
async fn a_stale_connection_is_replaced_for_a_query() {
    let stale = vec![Act::Answer(OK), Act::ReadAndClose];
    let server = Server::start(vec![stale, vec![Act::Answer(OK)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    send(&client, &endpoint, true).await.unwrap();
    send(&client, &endpoint, true).await.unwrap();
    assert_eq!((server.connections(), server.requests().len()), (2, 3));
}

#[tokio::test]
async fn a_mutation_that_may_have_arrived_is_never_sent_again() {
    let stale = vec![Act::Answer(OK), Act::ReadAndClose];
    let server = Server::start(vec![stale, vec![Act::Answer(OK)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    send(&client, &endpoint, false).await.unwrap();
    let error = send(&client, &endpoint, false).await.unwrap_err();
    assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR");
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_connection_the_subgraph_closed_is_not_used_again() {
    let server = Server::start(vec![
        vec![Act::Answer(OK), Act::Close],
        vec![Act::Answer(OK)],
    ])
    .await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    send(&client, &endpoint, false).await.unwrap();
    server.closed(0).await;
    // Even a mutation: it was never sent on the closed connection.
    send(&client, &endpoint, false).await.unwrap();
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
}

#[tokio::test]
async fn a_fresh_connection_that_fails_is_final() {
    let server = Server::start(vec![vec![Act::ReadAndClose], vec![Act::Answer(OK)]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_idle_timeout_of_nothing_keeps_nothing() {
    let server = Server::start(vec![vec![Act::Answer(OK)], vec![Act::Answer(OK)]]).await;
    let traffic = Traffic {
        idle_timeout: Duration::ZERO,
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    send(&client, &endpoint, true).await.unwrap();
    send(&client, &endpoint, true).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_closed_port_says_so_without_the_host() {
    // Nobody listens there, and nobody else can have it.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let url = format!("http://{address}/");
    let endpoint = Endpoint::new("products", &url, Traffic::default(), HeaderRules::default());
    let error = send(&Client::new(), &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR");
    assert_eq!(
        error.message,
        "HTTP fetch failed from 'products': the subgraph cannot be reached"
    );
    assert!(error.detail.contains(&address), "{}", error.detail);
}

#[tokio::test]
async fn a_slow_answer_times_out_and_closes_its_connection() {
    let server = Server::start(vec![vec![Act::Answer(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    )]])
    .await;
    let traffic = Traffic {
        timeout: Duration::from_millis(30),
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "GATEWAY_TIMEOUT");
    server.closed(0).await;
    assert_eq!(client.idle_connections(&endpoint), 0);
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let server = Server::start(vec![vec![Act::Silence]]).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, Traffic::default()));
    tokio::select! {
        _ = send(&client, &endpoint, true) => panic!("nothing was answered"),
        () = server.received(1) => {}
    }
    server.closed(0).await;
}

#[tokio::test]
async fn answers_that_are_not_http_or_too_large_are_errors() {
    let cases: [(&'static str, &str); 4] = [
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "before an answer came"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n", "too large"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n",
            "too large",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
            "in the middle of an answer",
        ),
    ];
    for (answer, wanted) in cases {
        let server = Server::start(vec![vec![Act::Answer(answer)]]).await;
        let traffic = Traffic {
            response_bytes_max: 10,
            ..Traffic::default()
        };
        let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
        let error = send(&client, &endpoint, true).await.unwrap_err();
        assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR", "{answer}");
        assert!(
            error.message.contains(wanted),
            "{answer}: {}",
            error.message
        );
        assert_eq!(server.requests().len(), 1, "{answer}");
        assert_eq!(client.idle_connections(&endpoint), 0);
    }
}

#[tokio::test]
async fn unusable_urls_fail_with_a_reason() {
    let client = Client::new();
    let rules = HeaderRules::default();
    let endpoint = Endpoint::new("products", "https://a/", Traffic::default(), rules);
    let error = send(&client, &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR");
    assert!(error.detail.contains("https"), "{}", error.detail);
}

#[tokio::test]
async fn header_rules_decide_what_travels() {
    let server = Server::start(vec![vec![Act::Answer(OK)]]).await;
    let mut endpoint = endpoint(&server, Traffic::default());
    let from = NameMatch::Named(HeaderName::from_static("authorization"));
    endpoint.headers = HeaderRules::new(vec![HeaderRule::Propagate {
        from,
        rename: None,
        default: None,
    }]);
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer t"));
    headers.insert("cookie", HeaderValue::from_static("secret=1"));
    send_with(&Client::new(), &endpoint, &headers, true)
        .await
        .unwrap();
    let request = &server.requests()[0];
    assert!(request.contains("authorization: Bearer t\r\n"), "{request}");
    assert!(!request.contains("cookie"), "{request}");
}

/// Servers that know a connection by its credentials (NTLM, Negotiate) would take the next client for the one before.
#[tokio::test]
async fn a_connection_with_credentials_of_its_own_is_nobody_elses() {
    for (credentials, connections) in [("Negotiate YII", 2), ("ntlm TlR", 2), ("Bearer t", 1)] {
        let script = || vec![Act::Answer(OK), Act::Answer(OK)];
        let server = Server::start(vec![script(), script()]).await;
        let mut endpoint = endpoint(&server, Traffic::default());
        endpoint.headers = HeaderRules::new(vec![HeaderRule::Propagate {
            from: NameMatch::Named(HeaderName::from_static("authorization")),
            rename: None,
            default: None,
        }]);
        let client = Client::new();
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static(credentials));
        send_with(&client, &endpoint, &headers, true).await.unwrap();
        let nobody = HeaderMap::new();
        send_with(&client, &endpoint, &nobody, true).await.unwrap();
        assert_eq!(server.connections(), connections, "{credentials}");
    }
}
