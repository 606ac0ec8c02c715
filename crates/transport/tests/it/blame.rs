//! What of a failed request is held against the subgraph: what it did, and not what its client asked for.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::{ErrorCode, Failure, SubgraphRequest, Transport};
use ogive_transport::{
    AdmissionFuture, CircuitBreaker, Client, Endpoint, FetchAdmission, HeaderRules, Hedge,
    OutlierEjection, Replicas, RequestTransport, Retry, Traffic, address::Address,
};

use crate::server::{Act, Server};
use crate::{OK, endpoint, send};

const LARGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n12345678901";
const BREAKER: CircuitBreaker = CircuitBreaker {
    error_percent: 1,
    volume: 1,
    window: Duration::from_secs(600),
    reset_timeout: Duration::from_secs(600),
};

fn traffic() -> Traffic {
    Traffic {
        breaker: Some(BREAKER),
        response_bytes_max: 10,
        ..Traffic::default()
    }
}

fn request() -> SubgraphRequest {
    SubgraphRequest {
        subgraph: 0,
        body: Bytes::from_static(br#"{"query":"{a}"}"#),
        idempotent: true,
    }
}

/// Found by an attacker: whoever asked for much kept others from asking for anything.
#[tokio::test]
async fn an_answer_that_is_too_large_opens_no_breaker() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n";
    let script = [LARGE, chunked, OK].map(|answer| vec![Act::Answer(answer)]);
    let server = Server::start(script.into()).await;
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic()));
    for _ in 0..2 {
        let error = send(&client, &endpoint, true).await.unwrap_err();
        assert!(error.message.contains("too large"), "{}", error.message);
    }
    assert!(!endpoint.health.is_open());
    assert_eq!(send(&client, &endpoint, true).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_answer_that_is_too_large_ejects_no_replica() {
    let mut urls = Vec::new();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let script = (0..8).map(|_| vec![Act::Answer(LARGE)]).collect();
        let server = Server::start(script).await;
        urls.push(format!("http://{}/", server.address));
        servers.push(server);
    }
    let addresses = urls.iter().map(|url| Address::parse(url));
    let addresses = addresses.collect::<Result<_, _>>().unwrap();
    let outlier = OutlierEjection {
        consecutive_failures: 1,
        base_ejection_time: Duration::from_secs(600),
        max_ejection_percent: 100,
    };
    let mut endpoint = Endpoint::new("products", &urls[0], traffic(), HeaderRules::default());
    let replicas = std::sync::Arc::new(Replicas::new(addresses, Some(outlier)).unwrap());
    endpoint.replicas = Ok(std::sync::Arc::clone(&replicas));
    let client = Client::new();
    for _ in 0..8 {
        send(&client, &endpoint, true).await.unwrap_err();
    }
    assert_eq!(replicas.ejected(), 0);
}

/// Asks a subgraph that says nothing when so much of a request's time is gone already.
async fn cut(spent: Duration, whole: Duration, timeout: Duration) -> bool {
    let server = Server::start(vec![vec![Act::Silence]]).await;
    let traffic = Traffic {
        timeout,
        ..traffic()
    };
    let (client, endpoints) = (Client::new(), [endpoint(&server, traffic)]);
    let headers = HeaderMap::new();
    let deadline = tokio::time::Instant::now() + whole;
    let transport = RequestTransport::new(&client, &endpoints, &headers, Some(deadline));
    let began = Instant::now();
    while began.elapsed() < spent {
        tokio::task::yield_now().await;
    }
    let error = transport.send(request()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::GATEWAY_TIMEOUT);
    endpoints[0].health.is_open()
}

/// Found by an attacker: a slow subgraph had another one left alone that got what was left of the time.
#[tokio::test]
async fn only_time_of_its_own_is_held_against_a_subgraph() {
    let ms = Duration::from_millis;
    assert!(!cut(ms(150), ms(300), ms(60_000)).await);
    // It had all of its own, or all that there was.
    assert!(cut(ms(0), ms(60_000), ms(20)).await);
    assert!(cut(ms(0), ms(5_000), ms(60_000)).await);
}

/// Lets so many requests through.
struct Admits(Cell<u32>);

impl FetchAdmission for Admits {
    fn admit<'a>(&'a self, _: &'a str) -> AdmissionFuture<'a> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        Box::pin(async move {
            let refused = || Failure::new(ErrorCode::REQUEST_RATE_LIMITED, "too many", "");
            (left > 0).then_some(()).ok_or_else(refused)
        })
    }
}

/// Sends a request that may be sent so often as far as rates go.
async fn limited(client: &Client, endpoint: &Endpoint, admits: u32) -> Result<u16, ErrorCode> {
    let (admits, headers) = (Admits(Cell::new(admits)), HeaderMap::new());
    let endpoints = [endpoint.clone()];
    let transport = RequestTransport::new(client, &endpoints, &headers, None);
    let transport = transport.admitted_by(Some(&admits));
    let answered = transport.send(request()).await;
    answered
        .map(|answer| answer.status)
        .map_err(|error| error.code)
}

#[tokio::test]
async fn a_further_try_that_a_rate_refuses_takes_nothing_from_the_budget() {
    const BUSY: &str = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
    let answers = [BUSY, BUSY, OK].map(Act::Answer);
    let server = Server::start(vec![answers.into()]).await;
    let mut retry = Retry {
        attempts: 1,
        backoff: Duration::ZERO,
        backoff_max: Duration::ZERO,
        budget_percent: 100,
        budget_per_second: 0,
    };
    let traffic = Traffic {
        retry: Some(retry),
        ..Traffic::default()
    };
    let (client, mut endpoint) = (Client::new(), endpoint(&server, traffic));
    let refused = limited(&client, &endpoint, 1).await;
    assert_eq!(refused, Err(ErrorCode::REQUEST_RATE_LIMITED));
    // Nothing is added: it lives on what is left.
    retry.budget_percent = 0;
    endpoint.traffic.retry = Some(retry);
    assert_eq!(limited(&client, &endpoint, 2).await, Ok(200));
}

#[tokio::test]
async fn a_hedge_that_a_rate_refuses_takes_nothing_from_the_budget() {
    let mut known: Vec<Act> = (0..20).map(|_| Act::Answer(OK)).collect();
    known.push(Act::Silence);
    let script = vec![known, vec![Act::Silence], vec![Act::Answer(OK)]];
    let server = Server::start(script).await;
    let traffic = Traffic {
        hedge: Some(Hedge {
            percentile: 50,
            delay_min: Duration::ZERO,
            // One for the twenty whose times are known then.
            budget_percent: 5,
        }),
        ..Traffic::default()
    };
    let (client, endpoint) = (Client::new(), endpoint(&server, traffic));
    for _ in 0..20 {
        send(&client, &endpoint, true).await.unwrap();
    }
    let mut hurried = endpoint.clone();
    hurried.traffic.timeout = Duration::from_millis(300);
    let cut = limited(&client, &hurried, 1).await;
    assert_eq!(cut, Err(ErrorCode::GATEWAY_TIMEOUT));
    assert_eq!(limited(&client, &endpoint, 2).await, Ok(200));
    assert_eq!(server.connections(), 3);
}
