//! Endpoints for the operator, such as health and metrics, on addresses of their own: a few plain connections whose
//! requests are answered from their head, at once.

use std::{
    collections::VecDeque, convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::body::ResponseBody;

/// Most connections to an address at a time.
const CONNECTIONS_MAX: usize = 64;
/// How long such a connection may be idle or send a request. When there are too many, the oldest goes.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it waits after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address of the operator's.
#[derive(Debug)]
pub struct OperatorListener {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl OperatorListener {
    /// Binds `HOST:PORT`.
    pub fn bind(listen: &str) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(OperatorListener { listener, address })
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// Answers until it is dropped; ends only if the runtime cannot watch the socket.
    pub async fn serve<F>(self, answer: F) -> io::Error
    where
        F: Fn(&Request<()>) -> Response<ResponseBody> + Send + Sync + 'static,
    {
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return error,
        };
        let answer = Arc::new(answer);
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            connections.retain(|connection| !connection.is_finished());
            // Whoever says nothing must not keep out who asks whether the process is well. Answers are there at once.
            if connections.len() >= CONNECTIONS_MAX
                && let Some(oldest) = connections.pop_front()
            {
                oldest.abort();
            }
            let serving = tokio::spawn(serve_connection(stream, Arc::clone(&answer)));
            connections.push_back(serving.abort_handle());
        }
    }
}

async fn serve_connection<F>(stream: TcpStream, answer: Arc<F>)
where
    F: Fn(&Request<()>) -> Response<ResponseBody>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(&request.map(drop));
        let response = response.map(|body| Full::<Bytes>::from(body.to_vec()));
        async move { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "an operator's connection ended early");
    }
}
