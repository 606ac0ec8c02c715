//! One worker: a thread, a single-threaded runtime, its own connections to clients and subgraphs.

use std::{
    convert::Infallible,
    io,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ogive_transport::ServerTls;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::{JoinSet, LocalSet},
};

use super::{
    ServeOptions,
    clients::Place,
    connection::{Shared, serve},
    listener::Accepted,
};
use crate::{Gateway, WorkerState};

/// Threads per worker for what cannot be done without blocking: resolving the names of subgraph hosts.
const BLOCKING_THREADS_MAX: usize = 4;
/// Connections begun in one go. In a burst of newcomers, those who are there already have their turn after so many.
const BEGUN_MAX: usize = 8;

/// A thread without requests for at least so long, and at most twice as long, is at rest.
pub(super) const REST: Duration = Duration::from_secs(5);

/// A client's connection on its way to a worker.
pub(super) struct Connection {
    pub(super) accepted: Accepted,
    /// Held for as long as the connection is open.
    pub(super) permit: OwnedSemaphorePermit,
    /// Among those of its client, if they are counted; held as long.
    pub(super) place: Option<Place>,
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
        tls: Option<Arc<ServerTls>>,
        draining: watch::Receiver<bool>,
        give_back: Option<fn()>,
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
                let shared = Shared {
                    gateway,
                    worker: Rc::new(WorkerState::new()),
                    options: Rc::new(options),
                    tls,
                    draining,
                };
                if let Some(give_back) = give_back {
                    local.spawn_local(rest(Rc::clone(&shared.worker), give_back));
                }
                let cut_off = local.block_on(&runtime, run(shared, incoming, counter));
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
    shared: Shared,
    mut incoming: mpsc::UnboundedReceiver<Connection>,
    open: Arc<AtomicUsize>,
) -> usize {
    let mut tasks = JoinSet::new();
    let mut begun = 0;
    loop {
        tokio::select! {
            connection = incoming.recv() => match connection {
                Some(Connection { accepted, permit, place }) => {
                    let guard = OpenGuard(Arc::clone(&open));
                    let shared = shared.clone();
                    tasks.spawn_local(async move {
                        let _held = (guard, permit, place);
                        serve(accepted, shared).await;
                    });
                    begun += 1;
                    if begun % BEGUN_MAX == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                None => break,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(shared.options.drain_timeout, all).await;
    tasks.len()
}

/// Tidies up once nothing was asked for [`REST`]: closes connections to subgraphs that are too old, and lets the
/// allocator give back what is free then.
async fn rest(worker: Rc<WorkerState>, give_back: fn()) -> Infallible {
    let mut seen = 0;
    let mut tidy = true;
    loop {
        tokio::time::sleep(REST).await;
        let requests = worker.requests.get();
        if requests != seen {
            seen = requests;
            tidy = false;
        } else if worker.client.trim() > 0 {
            // Their tasks end before the next look.
            tidy = false;
        } else if !tidy {
            tidy = true;
            give_back();
            tracing::debug!("at rest");
        }
    }
}

/// Counts a connection down however its task ends.
struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
