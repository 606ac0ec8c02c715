//! What signers are shown is what is sent: over HTTP/1.1 and HTTP/2, encoded or not, anew for every try.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use ogive_testbase::subgraph::StubSubgraph;
use ogive_transport::{
    Client, Encoding, Endpoint, HeaderRule, HeaderRules, Http2, NameMatch, SignError, Signer,
    Signing, Traffic, Unsigned,
};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    OK, endpoint, send, send_body,
    server::{Act, Server},
};

/// Adds what it was shown: `x-saw` with all headers, and the number of the signature.
#[derive(Debug, Default)]
struct Witness {
    signed: AtomicUsize,
    /// Whether it has nothing to show.
    is_empty_handed: bool,
}

impl Signer for Witness {
    fn sign<'a>(&'a self, request: Unsigned<'a>) -> Signing<'a> {
        Box::pin(async move {
            if self.is_empty_handed {
                return Err(SignError("there is no token".into()));
            }
            let number = self.signed.fetch_add(1, Ordering::Relaxed);
            let mut saw: Vec<String> = vec![
                format!("host: {}", request.authority.to_str().unwrap()),
                format!("target: {}", request.target),
                format!("body: {}", request.body.map_or(0, Bytes::len)),
            ];
            for (name, value) in request.headers {
                saw.push(format!("{name}: {}", value.to_str().unwrap()));
            }
            let mut headers = HeaderMap::new();
            headers.insert("x-saw", HeaderValue::from_str(&saw.join("|")).unwrap());
            headers.insert("x-number", HeaderValue::from(number));
            headers.insert("authorization", HeaderValue::from_static("Bearer own"));
            Ok(headers)
        })
    }
}

fn signed(mut endpoint: Endpoint) -> (Endpoint, Arc<Witness>) {
    let witness = Arc::new(Witness::default());
    endpoint.signer = Some(Arc::<Witness>::clone(&witness));
    (endpoint, witness)
}

type Headers = BTreeMap<String, String>;

/// Compares what came with what was signed.
fn compare(mut came: Headers, target: &str) {
    let saw = came.remove("x-saw").unwrap();
    assert!(came.remove("x-number").is_some());
    assert_eq!(came.remove("authorization").as_deref(), Some("Bearer own"));
    let split = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    let mut saw: Headers = saw.split('|').map(split).collect();
    assert_eq!(saw.remove("target").as_deref(), Some(target));
    // What a header of the client said before it was replaced.
    saw.remove("authorization");
    assert_eq!(saw.remove("body"), came.get("content-length").cloned());
    assert_eq!(saw, came);
}

fn of_text(request: &str) -> Headers {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let lines = head.lines().skip(1).map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    });
    lines.collect()
}

/// A query that is worth encoding, and headers of the client's.
fn large() -> (Bytes, HeaderMap) {
    let body = format!("{{\"query\":\"{{{}}}\"}}", "a ".repeat(2_000));
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer client"));
    headers.insert("x-user", HeaderValue::from_static("u1"));
    (body.into(), headers)
}

fn all_headers() -> HeaderRules {
    HeaderRules::new(vec![HeaderRule::Propagate {
        from: NameMatch::matching(".*").unwrap(),
        rename: None,
        default: None,
    }])
}

fn traffic(compression: Option<Encoding>) -> Traffic {
    Traffic {
        compression,
        accept_compression: compression.is_some(),
        timeout: Duration::from_secs(60),
        ..Traffic::default()
    }
}

#[tokio::test]
async fn what_is_signed_is_what_is_sent() {
    for compression in [None, Some(Encoding::Gzip)] {
        let server = StubSubgraph::answering(200, "", "{}");
        let url = format!("{}graphql?v=1", server.url());
        let (traffic, rules) = (traffic(compression), all_headers());
        let (endpoint, _) = signed(Endpoint::new("products", &url, traffic, rules));
        let (body, headers) = large();
        let length = body.len();
        let client = Client::new();
        let sent = send_body(&client, &endpoint, &headers, (body, true));
        sent.await.unwrap();
        let came = of_text(&server.requests()[0]);
        let sent: usize = came["content-length"].parse().unwrap();
        assert_eq!(sent < length, compression.is_some());
        assert_eq!(
            came.get("content-encoding").map(String::as_str),
            compression.map(|_| "gzip")
        );
        compare(came, "/graphql?v=1");
    }
}

#[tokio::test]
async fn over_http2_it_is_the_same() {
    for compression in [None, Some(Encoding::Gzip)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/graphql?v=1", listener.local_addr().unwrap());
        let (tell, told) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            let authority = request.uri().authority().unwrap().to_string();
            let mut came: Headers = [("host".to_owned(), authority)].into();
            for (name, value) in request.headers() {
                came.insert(name.to_string(), value.to_str().unwrap().to_owned());
            }
            tell.send(came).unwrap();
            let mut body = respond
                .send_response(http::Response::new(()), false)
                .unwrap();
            body.send_data(Bytes::from_static(b"{}"), true).unwrap();
            while connection.accept().await.is_some() {}
        });
        let traffic = Traffic {
            http2: Http2::Only,
            ..traffic(compression)
        };
        let rules = all_headers();
        let (endpoint, _) = signed(Endpoint::new("products", &url, traffic, rules));
        let (body, headers) = large();
        let client = Client::new();
        send_body(&client, &endpoint, &headers, (body, true))
            .await
            .unwrap();
        compare(told.await.unwrap(), "/graphql?v=1");
        serving.abort();
    }
}

fn numbers(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests
        .iter()
        .map(|request| of_text(request)["x-number"].clone())
        .collect()
}

#[tokio::test]
async fn what_a_stale_connection_took_is_signed_anew() {
    let stale = vec![Act::Answer(OK), Act::ReadAndClose];
    let server = Server::start(vec![stale, vec![Act::Answer(OK)]]).await;
    let (endpoint, _) = signed(endpoint(&server, traffic(None)));
    let client = Client::new();
    send(&client, &endpoint, true).await.unwrap();
    send(&client, &endpoint, true).await.unwrap();
    assert_eq!(numbers(&server), ["0", "1", "2"]);
}

#[tokio::test]
async fn equal_queries_are_signed_and_sent_once() {
    let server = Server::start(vec![vec![Act::Answer(OK)]]).await;
    let (endpoint, witness) = signed(endpoint(&server, traffic(None)));
    // One and the same endpoint: a copy of it is another one.
    let (client, endpoints, headers) = (Client::new(), [endpoint], HeaderMap::new());
    let one = || async {
        let transport = ogive_transport::RequestTransport::new(&client, &endpoints, &headers, None);
        let request = ogive_execute::SubgraphRequest {
            subgraph: 0,
            body: Bytes::from_static(br#"{"query":"{a}"}"#),
            idempotent: true,
        };
        ogive_execute::Transport::send(&transport, request).await
    };
    let (first, second) = tokio::join!(one(), one());
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(
        (
            numbers(&server).len(),
            witness.signed.load(Ordering::Relaxed)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn nothing_goes_out_without_proof() {
    let server = Server::start(vec![]).await;
    let mut endpoint = endpoint(&server, traffic(None));
    endpoint.signer = Some(Arc::new(Witness {
        is_empty_handed: true,
        ..Witness::default()
    }));
    let error = send(&Client::new(), &endpoint, true).await.unwrap_err();
    assert_eq!(error.code, "SUBREQUEST_CREDENTIALS_UNAVAILABLE");
    assert_eq!(error.detail, "there is no token");
    assert_eq!(
        error.message,
        "HTTP fetch failed from 'products': the gateway has no credentials for the subgraph now"
    );
    assert!(server.requests().is_empty());
}
