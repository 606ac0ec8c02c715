//! The HTTP server: one accepting task, one single-threaded runtime per worker.
//!
//! The accepting task hands every connection to the worker with the fewest open ones; from then on nothing about the
//! connection is shared between threads. A permit per connection bounds their number: beyond it the operating
//! system's listen queue holds newcomers back. It also does while all workers have some to begin ([`worker`]); those
//! that a worker has begun wait in a line until they have asked something ([`strangers`]). Requests of a worker that is
//! asked more than it can answer are begun in turns ([`starts`]).
//!
//! Draining: on shutdown readiness turns to 503; after `drain_delay` the listener closes, and every connection ends
//! after its current answer ([`connection`]); what is not done at the deadline is cut off.

mod clients;
mod clock;
mod connection;
mod listener;
mod starts;
mod strangers;
mod worker;

use std::{future::Future, io, net::SocketAddr, num::NonZeroUsize, sync::Arc, time::Duration};

use ogive_config::{Config, HttpOptions, Limit, LimitOptions, Measured, WarnOnly};
use ogive_transport::ServerTls;
use tokio::sync::{Notify, Semaphore, watch};

use crate::{Gateway, proxies::Proxies, tls};
use clients::Clients;
use listener::Listener;
use worker::{Connection, REST, Worker};

/// How to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServeOptions {
    /// Worker threads; default one per core.
    pub workers: NonZeroUsize,
    /// Most open connections; default 10,000.
    pub connections_max: usize,
    /// Most open connections of one address; default no limit.
    pub connections_per_client_max: Option<usize>,
    /// Whom that limit does not hold for; default nobody.
    pub trusted_proxies: Proxies,
    /// How long the head of a request may take to arrive; default 60 s.
    pub header_read_timeout: Duration,
    /// Most headers of a request; default 100.
    pub headers_max: usize,
    /// Largest head of a request in bytes; default 64 KiB.
    pub header_bytes_max: usize,
    /// How long a client may take nothing of an answer; default 60 s.
    pub write_timeout: Duration,
    /// Whether HTTP/2 is served; default yes.
    pub http2: bool,
    /// Most requests at a time on one HTTP/2 connection; default 100.
    pub http2_streams_max: u32,
    /// Most requests that a client may give up on one HTTP/2 connection while they are most of all; default 200.
    pub http2_resets_max: u32,
    /// How often certificates are looked at; default 10 s.
    pub tls_interval: Duration,
    /// How long new connections are welcome after shutdown began; default not at all.
    pub drain_delay: Duration,
    /// How long an idle connection may still bring a request after that; default 500 ms.
    pub drain_idle_timeout: Duration,
    /// How long requests in flight may take to finish after shutdown began; default 30 s.
    pub drain_timeout: Duration,
    /// Which of these limits are only measured; default none.
    pub warn_only: WarnOnly,
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
            connections_per_client_max: http.connections_per_client_max.map(usize::from),
            trusted_proxies: Proxies::new(config),
            header_read_timeout: http.header_read_timeout.0,
            headers_max: config.limits.http1_max_request_headers.get(),
            // Smaller heads than this are a browser's everyday.
            header_bytes_max: config.limits.http1_max_request_buf_size.0.max(8 << 10),
            write_timeout: http.write_timeout.0,
            http2: http.http2.enabled,
            http2_streams_max: http.http2.max_concurrent_streams.max(1),
            http2_resets_max: http.http2.max_reset_streams,
            tls_interval: config.tls.reload_interval.0,
            drain_delay: http.drain_delay.0,
            drain_idle_timeout: http.drain_idle_timeout.0,
            drain_timeout: http.connection_shutdown_timeout.0,
            warn_only: config.limits.warn_only,
        }
    }
    fn connections(&self) -> Measured<usize> {
        let default = HttpOptions::default().connections_max.get();
        let measured = self
            .warn_only
            .size(Limit::Connections, self.connections_max, default);
        let ceiling = measured.ceiling.min(Semaphore::MAX_PERMITS);
        Measured {
            ceiling,
            ..measured
        }
    }
    fn client_connections(&self) -> Option<Measured<usize>> {
        let max = self.connections_per_client_max?;
        Some(self.warn_only.size(Limit::ClientConnections, max, 0))
    }
    fn header_timeout(&self) -> Measured<Duration> {
        let default = HttpOptions::default().header_read_timeout.0;
        let limit = self.header_read_timeout;
        self.warn_only.time(Limit::HeaderTimeout, limit, default)
    }
    fn headers(&self) -> Measured<usize> {
        let default = LimitOptions::default().http1_max_request_headers.get();
        self.warn_only
            .size(Limit::Headers, self.headers_max, default)
    }
    fn header_bytes(&self) -> Measured<usize> {
        let default = LimitOptions::default().http1_max_request_buf_size.0;
        self.warn_only
            .size(Limit::HeaderSize, self.header_bytes_max, default)
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    tls: Option<Arc<ServerTls>>,
    threads: Threads,
}

/// What threads call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// A worker, when it starts. Default: nothing.
    pub start: Option<fn()>,
    /// Every thread that has come to rest, so that the allocator can return what the thread has freed. Default: nothing.
    pub give_back: Option<fn()>,
}

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Connections that were cut off at the deadline.
    pub cut_off: usize,
}

impl Bound {
    /// Binds `HOST:PORT`, or `unix://` and a path; a host name is resolved, port 0 picks a free one.
    pub async fn bind(listen: &str) -> io::Result<Bound> {
        let listener = Listener::bind(listen).await?;
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
        gateway: Arc<Gateway>,
        options: ServeOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<Drained> {
        let (drain, draining) = watch::channel(false);
        let Bound {
            listener,
            tls,
            threads,
        } = self;
        let room = Arc::new(Notify::new());
        let workers = (0..options.workers.get())
            .map(|index| {
                let (gateway, tls) = (Arc::clone(&gateway), tls.clone());
                let (options, room) = (options.clone(), Arc::clone(&room));
                let draining = draining.clone();
                Worker::start(index, gateway, options, tls, draining, room, threads)
            })
            .collect::<io::Result<Vec<Worker>>>()?;
        let permits = Arc::new(Semaphore::new(options.connections().ceiling));
        let clients = Clients::new(&options);
        let stopping = async {
            shutdown.await;
            gateway.start_draining();
            tokio::time::sleep(options.drain_delay).await;
        };
        tokio::select! {
            () = stopping => {}
            () = accept(&listener, &workers, &room, (&permits, options.connections()), &clients, &gateway) => {}
            () = tls::keep_up_to_date(&gateway, tls, options.tls_interval) => {}
            () = rest(&gateway, threads.give_back) => {}
        }
        for accepted in listener.close() {
            if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                let Ok(place) = clients.place(accepted.address()) else {
                    continue;
                };
                let connection = Connection {
                    accepted,
                    permit,
                    place,
                };
                hand_over(&workers, connection);
            }
        }
        // Receivers live in the workers; a worker that is gone has nothing to drain.
        let _ = drain.send(true);
        let mut drained = Drained::default();
        for worker in workers {
            drained.cut_off += worker.finish().await;
        }
        Ok(drained)
    }
}

/// What a reload leaves behind is free on this thread.
async fn rest(gateway: &Gateway, give_back: Option<fn()>) {
    let Some(give_back) = give_back else {
        return std::future::pending().await;
    };
    let mut seen = None;
    loop {
        tokio::time::sleep(REST).await;
        let state = Some(Arc::as_ptr(&gateway.state()).addr());
        if state != seen {
            seen = state;
            give_back();
        }
    }
}

async fn accept(
    listener: &Listener,
    workers: &[Worker],
    room: &Notify,
    (permits, max): (&Arc<Semaphore>, Measured<usize>),
    clients: &Clients,
    gateway: &Gateway,
) {
    loop {
        // Asked before one is accepted: it would be lost if this is dropped while it waits.
        while !workers.iter().any(Worker::has_room) {
            room.notified().await;
        }
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok(accepted) => match clients.place(accepted.address()) {
                Ok(place) => {
                    gateway.note(&max, &(max.ceiling - permits.available_permits()));
                    if let (Some(place), Some(max)) = (&place, clients.max()) {
                        gateway.note(max, &place.number);
                    }
                    let connection = Connection {
                        accepted,
                        permit,
                        place,
                    };
                    hand_over(workers, connection);
                }
                Err(address) => tracing::debug!(%address, "too many connections of one client"),
            },
            Err(error) => {
                // Most often the process is out of file descriptors; trying again at once would only burn time.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn hand_over(workers: &[Worker], connection: Connection) {
    // One that is busy with others may have the fewest.
    if let Some(worker) = workers.iter().min_by_key(|w| (!w.has_room(), w.load())) {
        worker.take(connection);
    }
}
