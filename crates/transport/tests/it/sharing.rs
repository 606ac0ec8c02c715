//! Who shares a request with whom, and whose time it takes.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_execute::{Failure, SubgraphRequest, SubgraphResponse, Transport};
use ogive_transport::{
    Answered, Client, Endpoint, HeaderRule, HeaderRules, NameMatch, Observer, RequestTransport,
    Traffic,
};
use tokio::time::Instant;

use crate::{
    OK, endpoint,
    server::{Act, Server},
};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);
/// The time of those who have little: enough to ask.
const SHORT: Duration = Duration::from_secs(1);

/// Asks for somebody who has so much time.
async fn ask(
    client: &Client,
    endpoints: &[Endpoint],
    time: Duration,
) -> Result<SubgraphResponse, Failure> {
    let headers = HeaderMap::new();
    let deadline = Some(Instant::now() + time);
    let transport = RequestTransport::new(client, endpoints, &headers, deadline);
    let request = SubgraphRequest {
        subgraph: 0,
        body: Bytes::from_static(br#"{"query":"{a}"}"#),
        idempotent: true,
    };
    transport.send(request).await
}

fn patient(server: &Server) -> [Endpoint; 1] {
    let traffic = Traffic {
        timeout: LONG,
        ..Traffic::default()
    };
    [endpoint(server, traffic)]
}

#[tokio::test]
async fn who_joins_waits_for_as_long_as_their_own_time_is() {
    let server = Server::start(vec![vec![Act::Silence]]).await;
    let (client, endpoints) = (Client::new(), patient(&server));
    let mut leader = pin!(ask(&client, &endpoints, LONG));
    tokio::select! {
        biased;
        led = leader.as_mut() => panic!("nobody answers: {led:?}"),
        () = server.received(1) => {}
    }
    let joined = tokio::select! {
        biased;
        led = leader.as_mut() => panic!("nobody answers: {led:?}"),
        joined = ask(&client, &endpoints, SHORT) => joined,
    };
    assert_eq!(joined.unwrap_err().code, "GATEWAY_TIMEOUT");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn who_has_more_time_than_the_one_who_asks_asks_again() {
    let server = Server::start(vec![vec![Act::Silence], vec![Act::Answer(OK)]]).await;
    let (client, endpoints) = (Client::new(), patient(&server));
    let (led, joined, also) = tokio::join!(
        biased;
        ask(&client, &endpoints, SHORT),
        ask(&client, &endpoints, LONG),
        ask(&client, &endpoints, LONG),
    );
    assert_eq!(led.unwrap_err().code, "GATEWAY_TIMEOUT");
    assert_eq!(joined.unwrap().status, 200);
    assert_eq!(also.unwrap().status, 200);
    // The two share the second one.
    assert_eq!(server.requests().len(), 2);
}

/// A subgraph that is told how little time is left may give up early. That is no answer for those who have more.
#[tokio::test]
async fn who_gives_up_for_want_of_somebodys_time_is_asked_again() {
    const LATE: &str = "HTTP/1.1 504 Late\r\ncontent-length: 0\r\n\r\n";
    let script = vec![vec![Act::Answer(LATE), Act::Answer(OK)]];
    let server = Server::start(script).await;
    let traffic = Traffic {
        timeout: 2 * LONG,
        deadline_header: Some(HeaderName::from_static("x-time-left")),
        ..Traffic::default()
    };
    let (client, endpoints) = (Client::new(), [endpoint(&server, traffic)]);
    let (led, joined) = tokio::join!(
        biased;
        ask(&client, &endpoints, LONG / 2),
        ask(&client, &endpoints, LONG),
    );
    assert_eq!((led.unwrap().status, joined.unwrap().status), (504, 200));
}

/// Otherwise all who ask at the same time would take twice as long, where a balancer sets a cookie with every answer.
#[tokio::test]
async fn nobody_waits_for_an_answer_that_will_be_somebody_elses() {
    const COOKIE: &str = "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\ncontent-length: 2\r\n\r\n{}";
    let script = || vec![Act::Answer(COOKIE), Act::Answer(COOKIE), Act::Silence];
    let server = Server::start(vec![script(), vec![Act::Silence]]).await;
    let (client, endpoints) = (Client::new(), patient(&server));
    // One after the other: nobody knew.
    let (led, joined) = tokio::join!(
        biased;
        ask(&client, &endpoints, LONG),
        ask(&client, &endpoints, LONG),
    );
    assert_eq!((led.unwrap().status, joined.unwrap().status), (200, 200));
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
    tokio::select! {
        _ = ask(&client, &endpoints, LONG) => panic!("nobody answers"),
        _ = ask(&client, &endpoints, LONG) => panic!("nobody answers"),
        () = server.received(4) => {}
    }
}

#[tokio::test]
async fn the_time_of_a_subgraph_is_the_same_for_everybody() {
    let server = Server::start(vec![vec![Act::Silence]]).await;
    let traffic = Traffic {
        timeout: SHORT,
        ..Traffic::default()
    };
    let (client, endpoints) = (Client::new(), [endpoint(&server, traffic)]);
    let (led, joined) = tokio::join!(
        biased;
        ask(&client, &endpoints, LONG),
        ask(&client, &endpoints, LONG),
    );
    for outcome in [led, joined] {
        assert_eq!(outcome.unwrap_err().code, "GATEWAY_TIMEOUT");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn who_has_no_time_left_asks_nobody() {
    let server = Server::start(vec![vec![Act::Answer(OK)]]).await;
    let (client, endpoints) = (Client::new(), patient(&server));
    let late = ask(&client, &endpoints, Duration::ZERO).await;
    assert_eq!(late.unwrap_err().code, "GATEWAY_TIMEOUT");
    assert_eq!(server.connections(), 0);
}

/// Tells two callers apart by something that no rule names.
struct Baggage(&'static str);
impl Observer for Baggage {
    fn asked(&self, _: u32) -> u32 {
        0
    }
    fn sending(&self, _: u32, _: &mut HeaderMap) {}
    fn identity(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.0.as_bytes());
    }
    fn answered(&self, _: u32, _: Answered) {}
}

type Headers<'a> = &'a [(&'static str, &'static str)];

#[test]
fn what_makes_two_callers_the_same() {
    let named = |name| HeaderRule::Propagate {
        from: NameMatch::Named(HeaderName::from_static(name)),
        rename: None,
        default: None,
    };
    let rules = HeaderRules::new(vec![named("authorization"), named("x-a")]);
    let endpoints = ["http://a/1", "http://a/2"]
        .map(|url| Endpoint::new("products", url, Traffic::default(), rules.clone()));
    let client = Client::new();
    let identity = |(headers, subgraph, baggage): (Headers<'_>, u32, Option<&'static str>)| {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let baggage = baggage.map(Baggage);
        let observer = baggage.as_ref().map(|baggage| baggage as &dyn Observer);
        let transport =
            RequestTransport::new(&client, &endpoints, &map, None).observed_by(observer);
        transport.identity(subgraph).unwrap()
    };
    let base: Headers<'_> = &[("authorization", "a"), ("x-a", "1")];
    let same: [(Headers<'_>, u32, Option<&'static str>); 3] = [
        (base, 0, None),
        // In another order, which the rules decide.
        (&[("x-a", "1"), ("authorization", "a")], 0, None),
        // With what no subgraph is sent.
        (
            &[("authorization", "a"), ("x-a", "1"), ("cookie", "c")],
            0,
            None,
        ),
    ];
    for case in same {
        assert_eq!(identity(case), identity((base, 0, None)), "{case:?}");
    }
    let different: [(Headers<'_>, u32, Option<&'static str>); 12] = [
        (base, 0, None),
        (&[("authorization", "b"), ("x-a", "1")], 0, None),
        (&[("authorization", "a"), ("x-a", "2")], 0, None),
        (&[("authorization", "a")], 0, None),
        (&[], 0, None),
        // A header twice, in either order, and one that looks like two.
        (
            &[("authorization", "a"), ("x-a", "1"), ("x-a", "2")],
            0,
            None,
        ),
        (
            &[("authorization", "a"), ("x-a", "2"), ("x-a", "1")],
            0,
            None,
        ),
        (&[("authorization", "a"), ("x-a", "1, 2")], 0, None),
        (&[("authorization", "ax-a:1")], 0, None),
        // Another URL.
        (base, 1, None),
        // What tracing passes on.
        (base, 0, Some("user=alice")),
        (base, 0, Some("user=bob")),
    ];
    for (at, one) in different.iter().enumerate() {
        for other in &different[at + 1..] {
            assert_ne!(identity(*one), identity(*other), "{one:?} and {other:?}");
        }
    }
}
