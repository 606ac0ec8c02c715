//! One worker: a thread, a single-threaded runtime, its own connections.

use std::{
    cell::Cell,
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

use ogive_net::ServerTls;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::JoinSet,
};

use crate::{
    connection::serve,
    connection_queue::{ConnectionQueue, NewConnection},
    draining::Draining,
    listener::Accepted,
    options::{ServeOptions, Threads},
    places::PlaceGuard,
    service::Service,
    shared::Shared,
};

/// Threads that a worker may start for what blocks. Nothing does: heavy work and names of hosts have threads of their own.
const BLOCKING_THREADS_MAX: usize = 4;
/// Connections begun in one go. In a burst of newcomers, those who are there already have their turn after so many.
const BEGUN_MAX: usize = 8;
/// Connections that wait to be begun; the operating system holds the others. Few, because on a busy machine the thread
/// that accepts them may run on a worker's core, and does not stop for it by itself.
const HANDED_OVER_MAX: usize = 16;

/// A thread without requests for at least so long, and at most twice as long, is at rest.
pub(crate) const REST: Duration = Duration::from_secs(5);

/// A client's connection on its way to a worker.
pub(crate) struct Connection {
    pub(crate) accepted: Accepted,
    /// Held for as long as the connection is open; guests need none.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// Held as long.
    pub(crate) place: PlaceGuard,
}

/// What a worker starts with.
pub(crate) struct WorkerOptions {
    pub(crate) options: ServeOptions,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) draining: watch::Receiver<bool>,
    /// Told whenever it has begun a connection.
    pub(crate) room: Arc<Notify>,
    pub(crate) threads: Threads,
}

/// The handle of a worker thread.
pub(crate) struct Worker {
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
    pub(crate) fn start<S: Service>(
        index: usize,
        service: Arc<S>,
        with: WorkerOptions,
    ) -> io::Result<Worker> {
        let WorkerOptions {
            options,
            tls,
            draining,
            room,
            threads,
        } = with;
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
                let worker = service.worker();
                let shared = Shared {
                    connections: service.reserve(&worker),
                    worker,
                    service,
                    options: Rc::new(options),
                    tls,
                    draining: Draining::new(draining),
                    queue: Rc::default(),
                    requests: Cell::new(0),
                };
                let shared = Rc::new(shared);
                if let Some(give_back) = threads.give_back {
                    runtime.spawn_local(rest(Rc::clone(&shared), give_back));
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
    pub(crate) fn load(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }
    /// Whether it keeps up with what is handed over.
    pub(crate) fn has_room(&self) -> bool {
        self.counts.waiting.load(Ordering::Relaxed) < HANDED_OVER_MAX
    }
    /// Hands a connection over.
    pub(crate) fn take(&self, connection: Connection) {
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
    pub(crate) async fn finish(self) -> usize {
        drop(self.connections);
        self.finished.await.unwrap_or(0)
    }
}

async fn run<S: Service>(
    shared: Rc<Shared<S>>,
    mut incoming: mpsc::UnboundedReceiver<Connection>,
    counts: Arc<Counts>,
) -> usize {
    let queue = Rc::new(ConnectionQueue::default());
    tokio::task::spawn_local(Rc::clone(&queue).advance());
    tokio::task::spawn_local(Rc::clone(&shared.queue).advance());
    let mut tasks = JoinSet::new();
    let mut begun = 0;
    loop {
        tokio::select! {
            connection = incoming.recv() => match connection {
                Some(Connection { accepted, permit, place }) => {
                    counts.waiting.fetch_sub(1, Ordering::Relaxed);
                    counts.room.notify_one();
                    let guard = OpenGuard(Arc::clone(&counts));
                    let (shared, queue) = (Rc::clone(&shared), Rc::clone(&queue));
                    tasks.spawn_local(async move {
                        let _held = (guard, permit);
                        let queued = NewConnection::new();
                        let work = pin!(serve(accepted, place, shared, queued.clone()));
                        queue.wait(&queued, work).await;
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

/// Tidies up once nothing was asked for [`REST`]: closes what was kept open for too long, and lets the
/// allocator give back what is free then.
async fn rest<S: Service>(shared: Rc<Shared<S>>, give_back: fn()) -> Infallible {
    let mut seen = 0;
    let mut tidy = true;
    loop {
        tokio::time::sleep(REST).await;
        let requests = shared.requests.get();
        if requests != seen {
            seen = requests;
            tidy = false;
        } else if shared.service.trim(&shared.worker) {
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
