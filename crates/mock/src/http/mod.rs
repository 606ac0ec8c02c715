//! The HTTP/1.1 server: one current-thread runtime per worker, all accepting from the same socket.
//!
//! Routes: `POST` and `GET` on `/graphql/<name>` and `/<name>` (with one subgraph also `/graphql` and `/`), `/stats`,
//! `/requests`, `/health`. Subscriptions are served there, too: see `subscriptions`.
//!
//! A connection begins in `direct`, which answers plain POSTs to subgraphs at the least cost. With the first request
//! that is anything else the connection goes to hyper and `routes`, for good.

mod callback;
mod direct;
mod payload;
mod routes;
mod subscriptions;

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    rc::Rc,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncReadExt, net::TcpStream, sync::watch};

use crate::{service::Service, timer::Timer};

/// Longest an answer can be held back; who asks for more gets this.
const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A running server. Dropping it stops the workers.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds and starts `workers` threads.
    pub fn start(
        service: Arc<Service>,
        addr: impl ToSocketAddrs,
        workers: usize,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let mut threads = Vec::new();
        for i in 0..workers.max(1) {
            let listener = listener.try_clone()?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()?;
            let (service, stopped) = (service.clone(), stopped.clone());
            let thread = std::thread::Builder::new()
                .name(format!("mock-{i}"))
                .spawn(move || runtime.block_on(accept(listener, service, stopped)))?;
            threads.push(thread);
        }
        Ok(Server {
            addr,
            stop,
            workers: threads,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a subgraph.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/graphql/{name}", self.addr)
    }

    /// Waits until the workers end, which they do only after a stop.
    pub fn join(mut self) {
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// What the connections of one worker share.
#[derive(Debug)]
struct Worker {
    service: Arc<Service>,
    timer: Rc<Timer>,
    dates: direct::Dates,
}

async fn accept(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let (Ok(listener), Ok(timer)) = (tokio::net::TcpListener::from_std(listener), Timer::new())
    else {
        return;
    };
    let worker = Rc::new(Worker {
        service,
        timer,
        dates: direct::Dates::default(),
    });
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            tokio::task::spawn_local(worker.timer.clone().run());
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => stream,
                        // Out of file descriptors or a connection that is gone already; the next may do better.
                        Err(_) => {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            continue;
                        }
                    },
                    _ = stopped.changed() => return,
                };
                let _ = stream.set_nodelay(true);
                tokio::task::spawn_local(connection(stream, worker.clone()));
            }
        })
        .await;
}

async fn connection(mut stream: TcpStream, worker: Rc<Worker>) {
    let mut read = BytesMut::new();
    match direct::serve(&mut stream, &worker, &mut read).await {
        Ok(direct::End::Odd) => {}
        // The client is gone; there is nobody to tell.
        Ok(direct::End::Closed) | Err(_) => return,
    }
    let (reader, writer) = stream.into_split();
    let stream = tokio::io::join(io::Cursor::new(read).chain(reader), writer);
    let serve = service_fn(move |request| {
        routes::answer(worker.service.clone(), worker.timer.clone(), request)
    });
    // An error here is the client's or an injected one; there is nobody to tell.
    let _ = http1::Builder::new()
        // A gateway that plans for half a minute must find its idle connections open.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), serve)
        .with_upgrades()
        .await;
}

/// When an answer to a request that arrived at some time may be sent.
fn due(arrived: Instant, delay: Duration) -> Instant {
    arrived + delay.min(DELAY_MAX)
}

/// An injected fault that ends the connection.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was closed on purpose")
    }
}

impl std::error::Error for Closed {}
