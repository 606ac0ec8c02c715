//! A listening socket, and serving on it from the first connection to the last.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use ogive_net::ServerTls;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use crate::{
    acceptor::Acceptor,
    certificates::keep_up_to_date,
    listener::Listener,
    options::{ServeOptions, Threads},
    service::Service,
    worker::{REST, Worker, WorkerOptions},
};

/// How much later than the deadline of draining a worker may end.
const WORKER_LATE_MAX: Duration = Duration::from_secs(1);

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    tls: Option<Arc<ServerTls>>,
    threads: Threads,
}

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Connections that were cut off at the deadline.
    pub cut_off: usize,
}

impl Bound {
    /// Binds `HOST:PORT`, or `unix://` and a path that its owner may connect to; a host name is resolved, port 0 picks a
    /// free one.
    pub async fn bind(listen: &str) -> std::io::Result<Bound> {
        Bound::bind_with(listen, 0o600).await
    }
    /// The same; the file of a unix socket has the permission bits `mode`.
    pub async fn bind_with(listen: &str, mode: u32) -> std::io::Result<Bound> {
        let listener = Listener::bind(listen, mode).await?;
        Ok(Bound {
            listener,
            tls: None,
            threads: Threads::default(),
        })
    }
    /// Speaks TLS with every client.
    pub fn with_tls(self, tls: Option<Arc<ServerTls>>) -> Bound {
        Bound { tls, ..self }
    }
    /// Has threads call something.
    pub fn with_threads(self, threads: Threads) -> Bound {
        Bound { threads, ..self }
    }
    /// Where it listens; `None` on a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }
    /// Where it listens, as a URL without a path.
    pub fn url(&self) -> String {
        self.listener.url(self.tls.is_some())
    }

    /// Serves until `shutdown` completes, then drains. Fails only if threads cannot be started.
    pub async fn serve(
        self,
        service: Arc<impl Service>,
        options: ServeOptions,
        shutdown: impl Future<Output = ()>,
    ) -> std::io::Result<Drained> {
        let (drain, draining) = watch::channel(false);
        let Bound {
            listener,
            tls,
            threads,
        } = self;
        let room = Arc::new(Notify::new());
        let workers = (0..options.workers.get())
            .map(|index| {
                let with = WorkerOptions {
                    options: options.clone(),
                    tls: tls.clone(),
                    draining: draining.clone(),
                    room: Arc::clone(&room),
                    threads,
                };
                Worker::start(index, Arc::clone(&service), with)
            })
            .collect::<std::io::Result<Vec<Worker>>>()?;
        let acceptor = Acceptor::new(&options, workers, room);
        let stopping = async {
            shutdown.await;
            service.start_draining();
            tokio::time::sleep(options.drain_delay).await;
        };
        tokio::select! {
            () = stopping => {}
            () = acceptor.accept(&listener, &*service) => {}
            never = keep_up_to_date(&service, tls, options.tls_interval) => match never {},
            () = rest(&*service, threads.give_back) => {}
        }
        acceptor.close(listener, &*service);
        // Receivers live in the workers; a worker that is gone has nothing to drain.
        let _ = drain.send(true);
        let mut drained = Drained::default();
        // A worker has its own end; one that does not come to it must not hold up the process.
        let end = Instant::now() + options.drain_timeout + WORKER_LATE_MAX;
        for worker in acceptor.into_workers() {
            drained.cut_off += timeout_at(end, worker.finish()).await.unwrap_or(1);
        }
        Ok(drained)
    }
}

/// What a reload leaves behind is free on this thread.
async fn rest(service: &impl Service, give_back: Option<fn()>) {
    let Some(give_back) = give_back else {
        return std::future::pending().await;
    };
    let mut seen = None;
    loop {
        tokio::time::sleep(REST).await;
        let generation = Some(service.generation());
        if generation != seen {
            seen = generation;
            give_back();
        }
    }
}
