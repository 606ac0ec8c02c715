//! Making a connection: resolve, connect to one of the addresses, agree on TLS and HTTP version.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    body::Body,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ogive_execute::Failure;
use tokio::net::{TcpStream, UnixStream};

use crate::{
    ClientTls, Http2, Socket, Stream,
    address::{Address, Target},
    endpoint::Endpoint,
    error::{HTTP_ERROR, TIMEOUT, chain, failed},
    race::{DELAY, delay_within, race},
    resolve::Names,
};

/// How often a subgraph has to show that it is still there while HTTP/2 requests wait for it, and how long that may
/// take.
const PING: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(10));

/// What requests can carry.
pub(crate) trait Carried:
    Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static
{
}
impl<B> Carried for B where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static
{
}

/// hyper's handle of a connection; `B` is what its requests carry.
pub(crate) enum Sender<B> {
    /// For one request at a time.
    Http1(http1::SendRequest<B>),
    /// For many.
    Http2(http2::SendRequest<B>),
}

/// Connects within the endpoint's time for it; says whether to speak HTTP/2.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    address: &Address,
    tls: Option<&ClientTls>,
    names: &Names,
) -> Result<(Stream, bool), Failure> {
    let stream = connect_with(endpoint, address, (tls, false), names).await?;
    let http2 = match endpoint.traffic.http2 {
        Http2::Only => true,
        Http2::Enable => stream.agreed_on_http2(),
        Http2::Disable => false,
    };
    Ok((stream, http2))
}

/// The same for what only HTTP/1.1 can do.
pub(crate) async fn connect_http1(
    endpoint: &Endpoint,
    address: &Address,
    tls: Option<&ClientTls>,
    names: &Names,
) -> Result<Stream, Failure> {
    connect_with(endpoint, address, (tls, true), names).await
}

async fn connect_with(
    endpoint: &Endpoint,
    address: &Address,
    tls: (Option<&ClientTls>, bool),
    names: &Names,
) -> Result<Stream, Failure> {
    let timeout = endpoint.traffic.connect_timeout;
    let target = &address.target;
    let opened = open_within(address, tls, names, delay_within(timeout));
    match tokio::time::timeout(timeout, opened).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(failed(
            HTTP_ERROR,
            &endpoint.name,
            "the subgraph cannot be reached",
            format!("connecting to {target}: {error}"),
        )),
        Err(_) => Err(failed(
            TIMEOUT,
            &endpoint.name,
            "connecting took too long",
            format!("connecting to {target} took longer than {timeout:?}"),
        )),
    }
}

/// Connects, for whoever does so seldom.
pub(crate) async fn open(address: &Address, tls: Option<&ClientTls>) -> Result<Stream, String> {
    open_by(address, tls, &Names::default()).await
}

/// The same at addresses that somebody else finds.
pub(crate) async fn open_by(
    address: &Address,
    tls: Option<&ClientTls>,
    names: &Names,
) -> Result<Stream, String> {
    open_within(address, (tls, false), names, DELAY.0).await
}

/// With `true` beside TLS, nothing but HTTP/1.1 is offered during its handshake.
async fn open_within(
    address: &Address,
    (tls, http1_only): (Option<&ClientTls>, bool),
    names: &Names,
    delay: Duration,
) -> Result<Stream, String> {
    let (socket, peer) = match &address.target {
        Target::Tcp(host, port) => {
            let addresses = names.addresses(host, *port).await?;
            let won = race(&addresses, delay, TcpStream::connect).await;
            let won = won.map_err(|error| error.to_string())?;
            if !won.passed_over.is_empty() {
                names.passed_over(&won.passed_over);
            }
            let stream = won.connection;
            // Requests are written whole; waiting for more would only delay them.
            let _ = stream.set_nodelay(true);
            let peer = stream.peer_addr().ok().filter(|_| addresses.len() > 1);
            (Socket::Tcp(stream), peer)
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path).await;
            let stream = stream.map_err(|error| error.to_string())?;
            (Socket::Unix(stream), None)
        }
    };
    let (Some(tls), Target::Tcp(host, _)) = (tls, &address.target) else {
        return Ok(Stream::plain(socket));
    };
    let name = tls.server_name(host).map_err(|error| error.to_string())?;
    let mut config = tls.current().0;
    if http1_only && config.alpn_protocols != [b"http/1.1"] {
        let mut other = (*config).clone();
        other.alpn_protocols = vec![b"http/1.1".to_vec()];
        config = Arc::new(other);
    }
    let connector = tokio_rustls::TlsConnector::from(config);
    let mut suspect = Suspect { names, peer };
    let stream = connector
        .connect(name, socket)
        .await
        .map_err(|error| format!("TLS: {error}"))?;
    suspect.peer = None;
    Ok(Stream::tls(stream))
}

/// An address that took a connection and has not shown yet that somebody is behind it. If it does not, because of an error
/// or until time is over, the others of its host are tried first from now on.
struct Suspect<'n> {
    names: &'n Names,
    peer: Option<SocketAddr>,
}

impl Drop for Suspect<'_> {
    fn drop(&mut self) {
        if let Some(peer) = self.peer {
            self.names.passed_over(&[peer]);
        }
    }
}

/// HTTP/1.1 for requests whose bodies are made while they are sent; all others have [`crate::http1`].
pub(crate) async fn speak_http1<B: Carried>(
    stream: Stream,
) -> hyper::Result<http1::SendRequest<B>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the connection; a dropped sender closes it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = chain(&error), "subgraph connection ended");
        }
    });
    Ok(sender)
}

pub(crate) async fn speak_http2<B: Carried>(
    stream: Stream,
) -> hyper::Result<http2::SendRequest<B>> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .handshake(TokioIo::new(stream))
        .await?;
    // Ends with the connection, or when the last sender and the last answer are gone.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = chain(&error), "subgraph connection ended");
        }
    });
    Ok(sender)
}
