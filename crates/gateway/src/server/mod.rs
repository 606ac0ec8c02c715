//! The HTTP server: one accepting task, one single-threaded runtime per worker.
//!
//! The accepting task hands every connection to the worker with the fewest open ones; from then on nothing about the
//! connection is shared between threads. A permit per connection bounds their number: beyond it idle
//! ones give up theirs, and those for whom there is none are told so ([`places`]). The operating system's listen queue
//! holds newcomers back while all workers have some to begin ([`worker`]); those
//! that a worker has begun wait in a line until they have asked something ([`strangers`]). Requests of a worker that is
//! asked more than it can answer are begun in turns ([`starts`]).
//!
//! Draining: on shutdown readiness turns to 503; after `drain_delay` the listener closes, and every connection ends
//! after its current answer ([`connection`]); what is not done at the deadline is cut off.

mod activity;
mod clock;
mod connection;
mod framing;
mod http1;
mod http2;
mod io;
mod listener;
mod places;
mod starts;
mod strangers;
mod worker;

use std::{
    cell::RefCell, future::Future, net::SocketAddr, num::NonZeroUsize, sync::Arc, time::Duration,
};

use ogive_config::{Config, FileMode, HttpOptions, Limit, LimitOptions, Measured, WarnOnly};
use ogive_transport::ServerTls;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};

use crate::{Gateway, background::certificates, identify::proxies::Proxies};
use listener::{Accepted, Listener};
use places::{Places, SPARED};
use worker::{Connection, REST, Worker};

/// How much later than the deadline of draining a worker may end.
const WORKER_LATE_MAX: Duration = Duration::from_secs(1);

/// How often connections that are idle are looked for while a newcomer waits.
const LOOK: Duration = Duration::from_millis(100);

/// How to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServeOptions {
    /// Worker threads; default one per core.
    pub workers: NonZeroUsize,
    /// Most open connections; default 10,000.
    pub connections_max: usize,
    /// Most open connections of one address; default a quarter of all, and at least 100.
    pub connections_per_client_max: usize,
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
    /// How long requests in flight may take to finish after shutdown began; default 10 s.
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
            connections_per_client_max: http.connections_per_client_max().get(),
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
    fn client_connections(&self) -> Measured<usize> {
        let default = HttpOptions::default().connections_per_client_max().get();
        let max = self.connections_per_client_max;
        self.warn_only.size(Limit::ClientConnections, max, default)
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
    /// Binds `HOST:PORT`, or `unix://` and a path that its owner may connect to; a host name is resolved, port 0 picks a
    /// free one.
    pub async fn bind(listen: &str) -> std::io::Result<Bound> {
        Bound::bind_with(listen, Config::default().listen_mode).await
    }
    /// The same; the file of a unix socket has this mode.
    pub async fn bind_with(listen: &str, mode: FileMode) -> std::io::Result<Bound> {
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
        gateway: Arc<Gateway>,
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
                let (gateway, tls) = (Arc::clone(&gateway), tls.clone());
                let (options, room) = (options.clone(), Arc::clone(&room));
                let draining = draining.clone();
                Worker::start(index, gateway, options, tls, draining, room, threads)
            })
            .collect::<std::io::Result<Vec<Worker>>>()?;
        let door = Door {
            permits: Arc::new(Semaphore::new(options.connections().ceiling)),
            max: options.connections(),
            places: Places::new(&options),
            workers,
            room,
            waiting: RefCell::default(),
        };
        let stopping = async {
            shutdown.await;
            gateway.start_draining();
            tokio::time::sleep(options.drain_delay).await;
        };
        tokio::select! {
            () = stopping => {}
            () = door.accept(&listener, &gateway) => {}
            () = certificates::keep_up_to_date(&gateway, tls, options.tls_interval) => {}
            () = rest(&gateway, threads.give_back) => {}
        }
        let waiting = door.waiting.take();
        for accepted in waiting.into_iter().chain(listener.close()) {
            let permit = Arc::clone(&door.permits).try_acquire_owned().ok();
            door.let_in(accepted, permit, &gateway);
        }
        // Receivers live in the workers; a worker that is gone has nothing to drain.
        let _ = drain.send(true);
        let mut drained = Drained::default();
        // A worker has its own end; one that does not come to it must not hold up the process.
        let end = Instant::now() + options.drain_timeout + WORKER_LATE_MAX;
        for worker in door.workers {
            drained.cut_off += timeout_at(end, worker.finish()).await.unwrap_or(1);
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

/// Where connections are let in.
struct Door {
    permits: Arc<Semaphore>,
    max: Measured<usize>,
    places: Places,
    workers: Vec<Worker>,
    /// Told when a worker has begun a connection.
    room: Arc<Notify>,
    /// Accepted, and not let in yet.
    waiting: RefCell<Option<Accepted>>,
}

impl Door {
    async fn accept(&self, listener: &Listener, gateway: &Gateway) {
        // Since when there has been no place for a newcomer.
        let mut full = None;
        loop {
            // Asked before one is accepted: the operating system holds those for whom there is no room.
            while !self.workers.iter().any(Worker::has_room) {
                self.room.notified().await;
            }
            match listener.accept().await {
                Ok(accepted) => {
                    self.waiting.replace(Some(accepted));
                    let permit = self.permit(&mut full).await;
                    if let Some(accepted) = self.waiting.take() {
                        self.let_in(accepted, permit, gateway);
                    }
                }
                Err(error) => {
                    // Most often the process is out of file descriptors; trying again at once would only burn time.
                    tracing::warn!(%error, "a connection could not be accepted");
                    self.places.give_up(self.max.ceiling);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    /// A permit, if there is one or will be in a moment: nobody waits for one after newcomers have waited for it so long
    /// that all idle connections could have gone.
    async fn permit(&self, full: &mut Option<Instant>) -> Option<OwnedSemaphorePermit> {
        let permits = &self.permits;
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            *full = None;
            return Some(permit);
        }
        let end = *full.get_or_insert_with(Instant::now) + 2 * SPARED;
        loop {
            let some_leave = self.places.give_up(self.max.ceiling);
            let now = Instant::now();
            if !some_leave && now >= end {
                return None;
            }
            let waiting = timeout_at(now + LOOK, Arc::clone(permits).acquire_owned());
            if let Ok(permit) = waiting.await {
                return permit.ok();
            }
        }
    }
    /// Hands a connection to a worker; one without a permit, or of a client that has too many, is let in for a moment.
    fn let_in(&self, accepted: Accepted, permit: Option<OwnedSemaphorePermit>, gateway: &Gateway) {
        let taken = match permit {
            Some(permit) => self
                .places
                .take(accepted.peer())
                .map(|taken| (permit, taken)),
            None => None,
        };
        let (held, permit) = match taken {
            Some((permit, (held, number))) => {
                let max = &self.max;
                gateway.note(max, &(max.ceiling - self.permits.available_permits()));
                if let Some(number) = number {
                    gateway.note(self.places.per_client(), &number);
                }
                (held, Some(permit))
            }
            None => {
                tracing::debug!(peer = ?accepted.peer(), "there is no place for a connection");
                (self.places.take_guest(), None)
            }
        };
        let connection = Connection {
            accepted,
            permit,
            held,
        };
        // One that is busy with others may have the fewest.
        let workers = self.workers.iter();
        if let Some(worker) = workers.min_by_key(|w| (!w.has_room(), w.load())) {
            worker.take(connection);
        }
    }
}
