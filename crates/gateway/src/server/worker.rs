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
    time::Duration,
};

use ogive_transport::ServerTls;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::JoinSet,
};

use super::{
    ServeOptions, Threads,
    connection::{Shared, serve},
    listener::Accepted,
    places::Held,
    strangers::{Line, Stranger},
};
use crate::{Gateway, WorkerState};

/// Threads per worker for what cannot be done without blocking: resolving the names of subgraph hosts.
const BLOCKING_THREADS_MAX: usize = 4;
/// Connections begun in one go. In a burst of newcomers, those who are there already have their turn after so many.
const BEGUN_MAX: usize = 8;
/// Connections that wait to be begun; the operating system holds the others. Few, because on a busy machine the thread
/// that accepts them may run on a worker's core, and does not stop for it by itself.
const HANDED_OVER_MAX: usize = 16;

/// A thread without requests for at least so long, and at most twice as long, is at rest.
pub(super) const REST: Duration = Duration::from_secs(5);

/// A client's connection on its way to a worker.
pub(super) struct Connection {
    pub(super) accepted: Accepted,
    /// Held for as long as the connection is open; guests need none.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// Held as long.
    pub(super) held: Held,
}

/// The handle of a worker thread.
pub(super) struct Worker {
    /// Bounded by the connection permits.
    connections: mpsc::UnboundedSender<Connection>,
    counts: Arc<Counts>,
    finished: oneshot::Receiver<usize>,
}

/// Numbers of connections.
struct Counts {
    open: AtomicUsize,
    /// Handed over, and not begun.
    waiting: AtomicUsize,
    /// Told whenever one is begun.
    room: Arc<Notify>,
}

impl Worker {
    pub(super) fn start(
        index: usize,
        gateway: Arc<Gateway>,
        options: ServeOptions,
        tls: Option<Arc<ServerTls>>,
        draining: watch::Receiver<bool>,
        room: Arc<Notify>,
        threads: Threads,
    ) -> io::Result<Worker> {
        let (connections, incoming) = mpsc::unbounded_channel();
        let (finish, finished) = oneshot::channel();
        let counts = Arc::new(Counts {
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            room,
        });
        let counted = Arc::clone(&counts);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name(format!("ogive-worker-{index}"))
            .spawn(move || {
                if let Some(start) = threads.start {
                    start();
                }
                // A runtime of this thread alone, so that tasks that stay on it need no queue of their own.
                let runtime = Builder::new_current_thread()
                    .enable_all()
                    .max_blocking_threads(BLOCKING_THREADS_MAX)
                    .build_local(LocalOptions::default());
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                let _ = tell.send(Ok(()));
                let shared = Shared {
                    gateway,
                    worker: Rc::new(WorkerState::new()),
                    options: Rc::new(options),
                    tls,
                    draining,
                    starts: Rc::default(),
                };
                if let Some(give_back) = threads.give_back {
                    runtime.spawn_local(rest(Rc::clone(&shared.worker), give_back));
                }
                let cut_off = runtime.block_on(run(shared, incoming, counted));
                // Whoever asked may be gone already.
                let _ = finish.send(cut_off);
            })?;
        told.recv().map_err(io::Error::other)??;
        Ok(Worker {
            connections,
            counts,
            finished,
        })
    }
    /// Open connections.
    pub(super) fn load(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }
    /// Whether it keeps up with what is handed over.
    pub(super) fn has_room(&self) -> bool {
        self.counts.waiting.load(Ordering::Relaxed) < HANDED_OVER_MAX
    }
    /// Hands a connection over.
    pub(super) fn take(&self, connection: Connection) {
        // Counted here, so that a burst spreads before the workers have seen any of it.
        let counts = &self.counts;
        counts.open.fetch_add(1, Ordering::Relaxed);
        counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.connections.send(connection).is_err() {
            counts.open.fetch_sub(1, Ordering::Relaxed);
            counts.waiting.fetch_sub(1, Ordering::Relaxed);
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
    counts: Arc<Counts>,
) -> usize {
    let (shared, line) = (Rc::new(shared), Rc::new(Line::default()));
    tokio::task::spawn_local(Rc::clone(&line).advance());
    tokio::task::spawn_local(Rc::clone(&shared.starts).advance());
    let mut tasks = JoinSet::new();
    let mut begun = 0;
    loop {
        tokio::select! {
            connection = incoming.recv() => match connection {
                Some(Connection { accepted, permit, held }) => {
                    counts.waiting.fetch_sub(1, Ordering::Relaxed);
                    counts.room.notify_one();
                    let guard = OpenGuard(Arc::clone(&counts));
                    let (shared, line) = (Rc::clone(&shared), Rc::clone(&line));
                    tasks.spawn_local(async move {
                        let _held = (guard, permit);
                        let stranger = Stranger::new();
                        let work = pin!(serve(accepted, held, shared, stranger.clone()));
                        line.wait(&stranger, work).await;
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
struct OpenGuard(Arc<Counts>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
