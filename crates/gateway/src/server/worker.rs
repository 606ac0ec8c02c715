//! One worker: a thread, a single-threaded runtime, its own connections to clients and subgraphs.

use std::{
    convert::Infallible,
    io,
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::{JoinSet, LocalSet},
};

use super::ServeOptions;
use crate::{Gateway, WorkerState, admission::ClientAddress};

/// Threads per worker for what cannot be done without blocking: resolving the names of subgraph hosts.
const BLOCKING_THREADS_MAX: usize = 4;

/// A client's connection on its way to a worker.
pub(super) struct Connection {
    pub(super) stream: std::net::TcpStream,
    /// Held for as long as the connection is open.
    pub(super) permit: OwnedSemaphorePermit,
}

/// The handle of a worker thread.
pub(super) struct Worker {
    /// Bounded by the connection permits.
    connections: mpsc::UnboundedSender<Connection>,
    open: Arc<AtomicUsize>,
    finished: oneshot::Receiver<usize>,
}

impl Worker {
    pub(super) fn start(
        index: usize,
        gateway: Arc<Gateway>,
        options: ServeOptions,
        draining: watch::Receiver<bool>,
    ) -> io::Result<Worker> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()?;
        let (connections, incoming) = mpsc::unbounded_channel();
        let (finish, finished) = oneshot::channel();
        let open = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&open);
        std::thread::Builder::new()
            .name(format!("ogive-worker-{index}"))
            .spawn(move || {
                let local = LocalSet::new();
                let cut_off =
                    local.block_on(&runtime, run(gateway, options, incoming, draining, counter));
                // Whoever asked may be gone already.
                let _ = finish.send(cut_off);
            })?;
        Ok(Worker {
            connections,
            open,
            finished,
        })
    }
    /// Open connections.
    pub(super) fn load(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
    /// Hands a connection over.
    pub(super) fn take(&self, connection: Connection) {
        // Counted here, so that a burst spreads before the workers have seen any of it.
        self.open.fetch_add(1, Ordering::Relaxed);
        if self.connections.send(connection).is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
            tracing::error!("a worker is gone; its connection is dropped");
        }
    }
    /// Waits for the last connection. Gives the number of connections cut off.
    pub(super) async fn finish(self) -> usize {
        drop(self.connections);
        self.finished.await.unwrap_or(0)
    }
}

async fn run(
    gateway: Arc<Gateway>,
    options: ServeOptions,
    mut incoming: mpsc::UnboundedReceiver<Connection>,
    draining: watch::Receiver<bool>,
    open: Arc<AtomicUsize>,
) -> usize {
    let worker = Rc::new(WorkerState::new());
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            connection = incoming.recv() => match connection {
                Some(connection) => {
                    let guard = OpenGuard(Arc::clone(&open));
                    let gateway = Arc::clone(&gateway);
                    let worker = Rc::clone(&worker);
                    let draining = draining.clone();
                    tasks.spawn_local(async move {
                        let _guard = guard;
                        serve_connection(connection, gateway, worker, options, draining).await;
                    });
                }
                None => break,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(options.drain_timeout, all).await;
    tasks.len()
}

/// Counts a connection down however its task ends.
struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_connection(
    connection: Connection,
    gateway: Arc<Gateway>,
    worker: Rc<WorkerState>,
    options: ServeOptions,
    mut draining: watch::Receiver<bool>,
) {
    let Connection { stream, permit } = connection;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be served");
            return;
        }
    };
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let address = stream.peer_addr().ok().map(|a| ClientAddress(a.ip()));
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        if let Some(address) = address {
            request.extensions_mut().insert(address);
        }
        let (gateway, worker) = (Arc::clone(&gateway), Rc::clone(&worker));
        async move { Ok::<_, Infallible>(gateway.handle(request, &worker).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_read_timeout)
        .max_headers(options.headers_max)
        .max_header_size(options.header_bytes_max)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let result = tokio::select! {
        result = serving.as_mut() => result,
        _ = draining.wait_for(|draining| *draining) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        // Clients leave in all kinds of ways; nobody is to be woken for it.
        tracing::debug!(%error, "a client connection ended early");
    }
    drop(permit);
}
