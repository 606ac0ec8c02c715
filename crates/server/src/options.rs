//! How to serve.

use std::{num::NonZeroUsize, time::Duration};

use ogive_base::PeerRange;
use ogive_limits::{Limit, Measured, WarnOnly};
use tokio::sync::Semaphore;

/// What a connection holds, as long as there is one: the buffer of its parser, or of its session.
pub(crate) const CONNECTION_BYTES: usize = 8 << 10;

/// So many connections there may be however little memory there is.
const CONNECTIONS_LEAST: usize = 64;

/// Default of [`ServeOptions::connections_max`].
const CONNECTIONS_MAX: usize = 10_000;
/// Default of [`ServeOptions::connections_per_client_max`].
const CLIENT_CONNECTIONS_MAX: usize = 2_500;
/// Default of [`ServeOptions::header_read_timeout`].
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Default of [`ServeOptions::headers_max`].
const HEADERS_MAX: usize = 100;
/// Default of [`ServeOptions::header_bytes_max`].
const HEADER_BYTES_MAX: usize = 64 << 10;

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
    pub trusted_proxies: Vec<PeerRange>,
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

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            connections_max: CONNECTIONS_MAX,
            connections_per_client_max: CLIENT_CONNECTIONS_MAX,
            trusted_proxies: Vec::new(),
            header_read_timeout: HEADER_READ_TIMEOUT,
            headers_max: HEADERS_MAX,
            header_bytes_max: HEADER_BYTES_MAX,
            write_timeout: Duration::from_secs(60),
            http2: true,
            http2_streams_max: 100,
            http2_resets_max: 200,
            tls_interval: Duration::from_secs(10),
            drain_delay: Duration::ZERO,
            drain_idle_timeout: Duration::from_millis(500),
            drain_timeout: Duration::from_secs(10),
            warn_only: WarnOnly::default(),
        }
    }
}

impl ServeOptions {
    /// The same with no more connections than half of so much memory has room for, and at least 64.
    #[must_use]
    pub fn within_memory(mut self, bytes: usize) -> Self {
        let most = (bytes / 2 / CONNECTION_BYTES).max(CONNECTIONS_LEAST);
        if most < self.connections_max {
            let asked = self.connections_max;
            tracing::warn!(
                "`limits.max_memory` has room for {most} connections: `http.connections_max` asks for {asked}"
            );
            self.connections_max = most;
            self.connections_per_client_max = self.connections_per_client_max.min(most);
        }
        self
    }
    pub(crate) fn connections(&self) -> Measured<usize> {
        let measured =
            self.warn_only
                .size(Limit::Connections, self.connections_max, CONNECTIONS_MAX);
        let ceiling = measured.ceiling.min(Semaphore::MAX_PERMITS);
        Measured {
            ceiling,
            ..measured
        }
    }
    pub(crate) fn client_connections(&self) -> Measured<usize> {
        let max = self.connections_per_client_max;
        self.warn_only
            .size(Limit::ClientConnections, max, CLIENT_CONNECTIONS_MAX)
    }
    pub(crate) fn header_timeout(&self) -> Measured<Duration> {
        let limit = self.header_read_timeout;
        self.warn_only
            .time(Limit::HeaderTimeout, limit, HEADER_READ_TIMEOUT)
    }
    pub(crate) fn headers(&self) -> Measured<usize> {
        self.warn_only
            .size(Limit::Headers, self.headers_max, HEADERS_MAX)
    }
    pub(crate) fn header_bytes(&self) -> Measured<usize> {
        self.warn_only
            .size(Limit::HeaderSize, self.header_bytes_max, HEADER_BYTES_MAX)
    }
}

/// What threads call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// A worker, when it starts. Default: nothing.
    pub start: Option<fn()>,
    /// Every thread that has come to rest, so that the allocator can return what the thread has freed. Default: nothing.
    pub give_back: Option<fn()>,
}
