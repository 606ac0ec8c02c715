//! How to serve.

use std::{num::NonZeroUsize, time::Duration};

use ogive_config::{Config, HttpOptions, Limit, LimitOptions, Measured, PeerRange, WarnOnly};
use tokio::sync::Semaphore;

/// What a connection holds, as long as there is one: the buffer of its parser, or of its session.
pub(crate) const CONNECTION_BYTES: usize = 8 << 10;

/// So many connections there may be however little memory there is.
const CONNECTIONS_LEAST: usize = 64;

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
            trusted_proxies: http.trusted_proxies.as_slice().into(),
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
    pub(crate) fn client_connections(&self) -> Measured<usize> {
        let default = HttpOptions::default().connections_per_client_max().get();
        let max = self.connections_per_client_max;
        self.warn_only.size(Limit::ClientConnections, max, default)
    }
    pub(crate) fn header_timeout(&self) -> Measured<Duration> {
        let default = HttpOptions::default().header_read_timeout.0;
        let limit = self.header_read_timeout;
        self.warn_only.time(Limit::HeaderTimeout, limit, default)
    }
    pub(crate) fn headers(&self) -> Measured<usize> {
        let default = LimitOptions::default().http1_max_request_headers.get();
        self.warn_only
            .size(Limit::Headers, self.headers_max, default)
    }
    pub(crate) fn header_bytes(&self) -> Measured<usize> {
        let default = LimitOptions::default().http1_max_request_buf_size.0;
        self.warn_only
            .size(Limit::HeaderSize, self.header_bytes_max, default)
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
