//! Where new connections lead, and how long old ones are used.

use std::{
    future::poll_fn,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ogive_transport::{Client, Endpoint, HeaderRules, Http2, Resolver, Resolving, Traffic};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
};

use crate::{
    OK, send,
    server::{Act, Server},
};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Says one list after the other, the last for good; an empty list is a failure.
#[derive(Debug)]
struct Says(Vec<Vec<IpAddr>>, AtomicUsize);

impl Resolver for Says {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        assert_eq!(host, "products.example");
        let at = self.1.fetch_add(1, Ordering::Relaxed);
        let said = self.0[at.min(self.0.len() - 1)].clone();
        Box::pin(async move {
            if said.is_empty() {
                Err(io::Error::other("no such host"))
            } else {
                Ok(said.iter().map(|ip| SocketAddr::new(*ip, 0)).collect())
            }
        })
    }
}

fn client(said: &[&[IpAddr]]) -> Client {
    let said = said.iter().map(|said| said.to_vec()).collect();
    Client::with_resolver(Arc::new(Says(said, AtomicUsize::new(0))))
}

fn endpoint(port: u16, traffic: Traffic) -> Endpoint {
    let url = format!("http://products.example:{port}/graphql");
    Endpoint::new("products", &url, traffic, HeaderRules::default())
}

/// Connections are too old for another request at once.
fn of_age(age: Duration) -> Traffic {
    Traffic {
        connection_age_max: age,
        ..Traffic::default()
    }
}

/// An address that answers nobody: there is no more room for connections that wait to be accepted.
struct Silent {
    _listener: TcpListener,
    _waiting: TcpStream,
}

impl Silent {
    async fn at(address: SocketAddr) -> Silent {
        let socket = TcpSocket::new_v4().unwrap();
        // Connections of others there may have ended a moment ago.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        let listener = socket.listen(0).unwrap();
        Silent {
            _waiting: TcpStream::connect(address).await.unwrap(),
            _listener: listener,
        }
    }
}

/// Found by a review: a host with several addresses was down if the first was silent.
#[tokio::test]
async fn a_host_is_there_though_its_first_address_is_silent() {
    let server = Server::start(vec![vec![Act::Answer(OK)], vec![Act::Answer(OK)]]).await;
    let port = server.address.port();
    let _silent = Silent::at((TWO, port).into()).await;
    let (client, endpoint) = (
        client(&[&[TWO, ONE]]),
        endpoint(port, of_age(Duration::ZERO)),
    );
    for _ in 0..2 {
        let answer = send(&client, &endpoint, true).await;
        assert_eq!(answer.unwrap().status, 200);
    }
    assert_eq!(server.connections(), 2);
}

/// Found by a review: a change of the name service was not followed as long as there was traffic.
#[tokio::test]
async fn connections_that_are_old_lead_to_where_the_name_is_now() {
    for (age, requests) in [(Duration::ZERO, (1, 1)), (Duration::MAX, (2, 0))] {
        let one = Server::start(vec![vec![Act::Answer(OK), Act::Answer(OK)]]).await;
        let port = one.address.port();
        let two = Server::start_at((TWO, port).into(), vec![vec![Act::Answer(OK)]]).await;
        let (client, endpoint) = (client(&[&[ONE], &[TWO]]), endpoint(port, of_age(age)));
        for idempotent in [true, false] {
            let answer = send(&client, &endpoint, idempotent).await;
            assert_eq!(answer.unwrap().status, 200);
        }
        let asked = (one.requests().len(), two.requests().len());
        assert_eq!(asked, requests, "{age:?}");
    }
}

/// Otherwise connections that grow old would make every failure of the name service one of the subgraph.
#[tokio::test]
async fn a_name_service_that_fails_takes_no_subgraph_away() {
    let server = Server::start(vec![vec![Act::Answer(OK)], vec![Act::Answer(OK)]]).await;
    let traffic = of_age(Duration::ZERO);
    let (client, endpoint) = (
        client(&[&[ONE], &[]]),
        endpoint(server.address.port(), traffic),
    );
    for _ in 0..2 {
        let answer = send(&client, &endpoint, true).await;
        assert_eq!(answer.unwrap().status, 200);
    }
    assert_eq!(server.connections(), 2);
}

/// Found by a review: an answer whose length is not announced cost more than the limit that refuses it. What a buffer
/// takes while it grows is tested in `src/growth.rs`; here is what comes over the wire before the connection is closed.
#[tokio::test]
async fn an_answer_without_a_length_is_refused_at_its_limit() {
    const LIMIT: usize = 8 << 20;
    // What is on its way: buffers of sockets, and windows of HTTP/2.
    const UNDER_WAY: usize = 24 << 20;
    for kind in ["chunked", "to the end", "HTTP/2"] {
        let listener = TcpListener::bind((ONE, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let sending = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            match kind {
                "HTTP/2" => endless_http2(stream).await,
                kind => endless_http1(stream, kind == "chunked").await,
            }
        });
        let traffic = Traffic {
            response_bytes_max: LIMIT,
            http2: match kind {
                "HTTP/2" => Http2::Only,
                _ => Http2::Disable,
            },
            ..Traffic::default()
        };
        let (client, endpoint) = (client(&[&[ONE]]), endpoint(address.port(), traffic));
        let error = send(&client, &endpoint, true).await.unwrap_err();
        assert_eq!(error.code, "SUBREQUEST_HTTP_ERROR", "{kind}");
        let detail = "the answer is larger than 8388608 bytes: see `response_max_bytes`";
        assert_eq!(error.detail, detail, "{kind}");
        let sent = sending.await.unwrap();
        assert!((LIMIT..LIMIT + UNDER_WAY).contains(&sent), "{kind}: {sent}");
        if kind != "HTTP/2" {
            assert_eq!(client.idle_connections(&endpoint), 0, "{kind}");
        }
    }
}

/// Most bytes of an answer that nobody ends.
const ENDLESS: usize = 200 << 20;

/// Answers until nobody reads; says how many bytes were taken.
async fn endless_http1(mut stream: TcpStream, chunked: bool) -> usize {
    let mut request = vec![0; 4096];
    assert!(stream.read(&mut request).await.unwrap() > 0);
    let piece = if chunked {
        format!("10000\r\n{}\r\n", " ".repeat(64 << 10))
    } else {
        " ".repeat(64 << 10)
    };
    let coding = if chunked {
        "transfer-encoding: chunked\r\n"
    } else {
        ""
    };
    let head = format!("HTTP/1.1 200 OK\r\n{coding}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut sent = 0;
    while sent < ENDLESS && stream.write_all(piece.as_bytes()).await.is_ok() {
        sent += 64 << 10;
    }
    sent
}

/// The same.
async fn endless_http2(stream: TcpStream) -> usize {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (_, mut respond) = connection.accept().await.unwrap().unwrap();
    let mut body = respond
        .send_response(http::Response::new(()), false)
        .unwrap();
    let driving = tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let mut sent = 0;
    while sent < ENDLESS {
        body.reserve_capacity(64 << 10);
        let Some(Ok(room)) = poll_fn(|cx| body.poll_capacity(cx)).await else {
            break;
        };
        if body.send_data(vec![b' '; room].into(), false).is_err() {
            break;
        }
        sent += room;
    }
    driving.abort();
    sent
}

/// What an HTTP/2 server has seen: connections, those that ended, and requests.
type Seen = (usize, usize, usize);

/// An HTTP/2 server that answers a request once so many have come.
async fn http2(answers_from: usize) -> (SocketAddr, watch::Receiver<Seen>) {
    let listener = TcpListener::bind((ONE, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = watch::channel((0, 0, 0));
    let tell = Arc::new(tell);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tell.send_modify(|seen| seen.0 += 1);
            let tell = Arc::clone(&tell);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    tell.send_modify(|seen| seen.2 += 1);
                    let mut requests = tell.subscribe();
                    tokio::spawn(async move {
                        let enough = requests.wait_for(|seen| seen.2 >= answers_from);
                        drop(enough.await.unwrap());
                        let head = http::Response::new(());
                        let mut body = respond.send_response(head, false).unwrap();
                        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
                    });
                }
                tell.send_modify(|seen| seen.1 += 1);
            });
        }
    });
    (address, seen)
}

#[tokio::test]
async fn an_old_connection_ends_after_its_requests_and_not_before() {
    for (age, connections) in [(Duration::ZERO, 2), (Duration::MAX, 1)] {
        let (address, mut seen) = http2(2).await;
        let traffic = Traffic {
            http2: Http2::Only,
            deduplicate_query: false,
            ..of_age(age)
        };
        let (client, endpoint) = (client(&[&[ONE]]), endpoint(address.port(), traffic));
        // Neither is answered before both have come.
        let (one, two) = tokio::join!(
            send(&client, &endpoint, true),
            send(&client, &endpoint, false)
        );
        for answer in [one, two] {
            assert_eq!(&answer.unwrap().body[..], b"{}");
        }
        assert_eq!(seen.borrow().0, connections, "{age:?}");
        if connections > 1 {
            // The older one, which nobody may use any more.
            drop(seen.wait_for(|seen| seen.1 > 0).await.unwrap());
        }
    }
}
