//! The HTTP/1.1 server: one accepting task, one single-threaded runtime per worker.
//!
//! The accepting task hands every connection to the worker with the fewest open ones; from then on nothing about the
//! connection is shared between threads. A permit per connection bounds their number: beyond it the operating
//! system's listen queue holds newcomers back.
//!
//! Draining: on shutdown the listener closes, readiness turns to 503, idle connections close at once, busy ones after
//! their current answer; what is not done at the deadline is cut off.

mod worker;

use std::{future::Future, io, net::SocketAddr, num::NonZeroUsize, sync::Arc, time::Duration};

use ogive_config::Config;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use crate::Gateway;
use worker::{Connection, Worker};

/// How to serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeOptions {
    /// Worker threads; default one per core.
    pub workers: NonZeroUsize,
    /// Most open connections; default 10,000.
    pub connections_max: usize,
    /// How long the head of a request may take to arrive; default 60 s.
    pub header_read_timeout: Duration,
    /// Most headers of a request; default 100.
    pub headers_max: usize,
    /// Largest head of a request in bytes; default 64 KiB.
    pub header_bytes_max: usize,
    /// How long requests in flight may take to finish after shutdown began; default 30 s.
    pub drain_timeout: Duration,
}

impl ServeOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let http = &config.http;
        ServeOptions {
            workers: http.workers.unwrap_or_else(|| {
                std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
            }),
            connections_max: http.connections_max.get(),
            header_read_timeout: http.header_read_timeout.0,
            headers_max: config.limits.http1_max_request_headers.get(),
            // Smaller heads than this are a browser's everyday.
            header_bytes_max: config.limits.http1_max_request_buf_size.0.max(8 << 10),
            drain_timeout: http.connection_shutdown_timeout.0,
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Connections that were cut off at the deadline.
    pub cut_off: usize,
}

impl Bound {
    /// Binds `HOST:PORT`; a host name is resolved, port 0 picks a free port.
    pub async fn bind(listen: &str) -> io::Result<Bound> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Bound { listener, address })
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes, then drains. Fails only if threads cannot be started.
    pub async fn serve(
        self,
        gateway: Arc<Gateway>,
        options: ServeOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<Drained> {
        let (drain, draining) = watch::channel(false);
        let workers = (0..options.workers.get())
            .map(|index| Worker::start(index, Arc::clone(&gateway), options, draining.clone()))
            .collect::<io::Result<Vec<Worker>>>()?;
        let permits = Arc::new(Semaphore::new(options.connections_max));
        tokio::select! {
            () = shutdown => {}
            () = accept(&self.listener, &workers, &permits) => {}
        }
        gateway.start_draining();
        drop(self.listener);
        // Receivers live in the workers; a worker that is gone has nothing to drain.
        let _ = drain.send(true);
        let mut drained = Drained::default();
        for worker in workers {
            drained.cut_off += worker.finish().await;
        }
        Ok(drained)
    }
}

async fn accept(listener: &TcpListener, workers: &[Worker], permits: &Arc<Semaphore>) {
    loop {
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most often the process is out of file descriptors; trying again at once would only burn time.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // The stream leaves this thread's reactor for the worker's.
        let Ok(stream) = stream.into_std() else {
            continue;
        };
        if let Some(worker) = workers.iter().min_by_key(|w| w.load()) {
            worker.take(Connection { stream, permit });
        }
    }
}
