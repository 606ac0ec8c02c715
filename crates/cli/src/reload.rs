//! Reloading while serving: on SIGHUP, and when a watched file changes.
//!
//! The new configuration and supergraph are read, checked and warmed up on a thread of their own, beside the ones that
//! serve, and swapped by one pointer. Whatever is wrong with them is logged, and what was served before goes on.
//! Files are looked at by size, time and identity, which needs no help of the operating system and works on every
//! mounted volume, links of config maps included.

use std::{
    convert::Infallible,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use ogive_config::{Config, Limit, SupergraphOptions, WhenMissing};
use ogive_gateway::Gateway;
use ogive_telemetry::metrics::Event;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{changes, config_url::RemoteText, feed::Feed, serve_arguments::Arguments};

/// Shortest time between two looks at the files.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// What a file looks like from outside; `None` if it is not there.
type Look = Option<(u64, u64, i64, i64)>;

/// What is needed to load again what was loaded at the start.
pub(crate) struct Reloading {
    arguments: Arc<Arguments>,
    config: Config,
    gateway: Arc<Gateway>,
    hangup: Signal,
    seen: Vec<(PathBuf, Look)>,
    feed: Option<Feed>,
    remote: Option<RemoteText>,
}

impl Reloading {
    /// Listens for SIGHUP from now on, so that an early one does not end the process.
    pub(crate) fn start(
        arguments: Arguments,
        config: Config,
        gateway: Arc<Gateway>,
    ) -> Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        let mut reloading = Reloading {
            feed: arguments.feed(),
            remote: arguments.remote(),
            arguments: Arc::new(arguments),
            config,
            gateway,
            hangup,
            seen: Vec::new(),
        };
        reloading.seen = reloading.look();
        Ok(reloading)
    }

    /// Reloads whenever it is time to.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            let why = self.cause().await;
            // Whoever moves log files away says so like this, too.
            if why == "SIGHUP" {
                self.gateway.telemetry().reopen();
            }
            // Looked at before it is read: a change in between is found the next time.
            self.seen = self.look();
            let (arguments, gateway) = (Arc::clone(&self.arguments), Arc::clone(&self.gateway));
            let loaded = tokio::task::spawn_blocking(move || -> Result<_> {
                let config = arguments.config()?;
                let (state, options) = arguments.compile(&config)?;
                Ok((gateway.reload_all(state, options), config))
            });
            match loaded.await {
                Ok(Ok((warm, config))) => {
                    self.count(Event::Reloaded);
                    tracing::info!(
                        plans_kept = warm.kept,
                        operations_planned = warm.planned,
                        "{why}: reloaded"
                    );
                    for key in needs_restart(&self.config, &config) {
                        tracing::warn!("`{key}` has changed; it needs a restart");
                    }
                    self.config = config;
                    // Another configuration may name another supergraph.
                    self.seen = self.watch_again();
                }
                Ok(Err(error)) => {
                    self.count(Event::ReloadRefused);
                    tracing::error!("{why}: reload refused, serving on as before: {error:#}");
                }
                Err(_) => tracing::error!("{why}: reload failed, serving on as before"),
            }
        }
    }

    fn count(&self, event: Event) {
        if let Some(metrics) = &self.gateway.telemetry().metrics {
            metrics.count(event);
        }
    }

    async fn cause(&mut self) -> String {
        if !self.config.hot_reload.enabled {
            return tokio::select! {
                _ = self.hangup.recv() => "SIGHUP".to_owned(),
                why = fed(&mut self.feed) => why,
                why = sent(&mut self.remote) => why.to_owned(),
            };
        }
        let interval = self.config.hot_reload.interval.0.max(INTERVAL_MIN);
        loop {
            tokio::select! {
                _ = self.hangup.recv() => return "SIGHUP".to_owned(),
                why = fed(&mut self.feed) => return why,
                why = sent(&mut self.remote) => return why.to_owned(),
                () = tokio::time::sleep(interval) => {}
            }
            // A file that is gone is being replaced; what comes after it counts.
            let now = self.look();
            if now != self.seen && now.iter().all(|(_, look)| look.is_some()) {
                return changed(&self.seen, &now);
            }
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        let supergraph = match self.feed {
            Some(_) => None,
            None => self.arguments.supergraph_path(&self.config).ok(),
        };
        let manifests = &self.config.persisted_queries.local_manifests;
        let manifests = manifests.iter().map(PathBuf::from);
        let config = self.arguments.config_path();
        config
            .into_iter()
            .chain(supergraph)
            .chain(manifests)
            .chain(self.arguments.secrets())
            .collect()
    }

    fn look(&self) -> Vec<(PathBuf, Look)> {
        let paths = self.paths().into_iter();
        paths
            .map(|path| (look(&path), path))
            .map(|(look, path)| (path, look))
            .collect()
    }

    /// Keeps what was seen of files that were watched before, so that a change while they were read is not lost.
    fn watch_again(&self) -> Vec<(PathBuf, Look)> {
        let mut now = self.look();
        for (path, look) in &mut now {
            if let Some((_, before)) = self.seen.iter().find(|(p, _)| p == path) {
                *look = *before;
            }
        }
        now
    }
}

/// Which files have changed, as a cause.
fn changed(before: &[(PathBuf, Look)], now: &[(PathBuf, Look)]) -> String {
    let other = |file: &&(PathBuf, Look)| !before.contains(file);
    let names = now
        .iter()
        .filter(other)
        .map(|(path, _)| format!("`{}`", path.display()));
    let names: Vec<String> = names.collect();
    // Without names, the list of files is another one.
    let told = changes::told(&names, " files");
    told.unwrap_or_else(|| "the files of the configuration have changed".to_owned())
}

/// Waits for the next supergraph that is no file, if they are none. Gives the cause.
async fn fed(feed: &mut Option<Feed>) -> String {
    match feed {
        Some(feed) => {
            feed.changed().await;
            feed.why()
        }
        None => std::future::pending().await,
    }
}

/// Waits for the next configuration that is no file, if it is none. Gives the cause.
async fn sent(remote: &mut Option<RemoteText>) -> &'static str {
    match remote {
        Some(remote) => {
            remote.changed().await;
            "the URL has another configuration"
        }
        None => std::future::pending().await,
    }
}

fn look(path: &Path) -> Look {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

/// Limits of the server, which reads them once.
const MEASURED_AT_START: [Limit; 5] = [
    Limit::Headers,
    Limit::HeaderSize,
    Limit::Connections,
    Limit::ClientConnections,
    Limit::HeaderTimeout,
];

/// Keys that are read once.
fn needs_restart(before: &Config, after: &Config) -> Vec<&'static str> {
    let (old, new) = (&before.http, &after.http);
    let changed = [
        ("listen", before.listen != after.listen),
        ("listen_mode", before.listen_mode != after.listen_mode),
        (
            "supergraph.subgraphs",
            before.supergraph.subgraphs != after.supergraph.subgraphs,
        ),
        ("http.workers", old.workers != new.workers),
        (
            "http.connections_max",
            old.connections_max != new.connections_max,
        ),
        (
            "http.connections_per_client_max",
            old.connections_per_client_max != new.connections_per_client_max,
        ),
        (
            "http.trusted_proxies",
            old.trusted_proxies != new.trusted_proxies,
        ),
        (
            "http.header_read_timeout",
            old.header_read_timeout != new.header_read_timeout,
        ),
        ("http.write_timeout", old.write_timeout != new.write_timeout),
        ("http.http2", old.http2 != new.http2),
        ("http.drain_delay", old.drain_delay != new.drain_delay),
        (
            "http.drain_idle_timeout",
            old.drain_idle_timeout != new.drain_idle_timeout,
        ),
        (
            "tls.supergraph",
            before.tls.supergraph != after.tls.supergraph,
        ),
        (
            "tls.reload_interval",
            before.tls.reload_interval != after.tls.reload_interval,
        ),
        (
            "http.connection_shutdown_timeout",
            old.connection_shutdown_timeout != new.connection_shutdown_timeout,
        ),
        (
            "limits.http1_max_request_headers",
            before.limits.http1_max_request_headers != after.limits.http1_max_request_headers,
        ),
        (
            "limits.http1_max_request_buf_size",
            before.limits.http1_max_request_buf_size != after.limits.http1_max_request_buf_size,
        ),
        (
            "limits.warn_only",
            MEASURED_AT_START.iter().any(|limit| {
                let held = |config: &Config| config.limits.warn_only.holds_for(*limit);
                held(before) != held(after)
            }),
        ),
        (
            "apq.router.cache.in_memory.limit",
            before.apq.router.cache != after.apq.router.cache,
        ),
        ("log", before.log != after.log),
        (
            "supergraph.url",
            polled(&before.supergraph) != polled(&after.supergraph),
        ),
        (
            "health_check.listen",
            before.health_check.listen != after.health_check.listen,
        ),
        (
            "telemetry.exporters",
            before.telemetry.exporters != after.telemetry.exporters,
        ),
        (
            "telemetry.access_log",
            before.telemetry.access_log != after.telemetry.access_log,
        ),
    ];
    changed
        .into_iter()
        .filter(|(_, is)| *is)
        .map(|(key, _)| key)
        .collect()
}

/// What polling began with.
fn polled(options: &SupergraphOptions) -> SupergraphOptions {
    SupergraphOptions {
        path: None,
        introspection: false,
        when_missing: WhenMissing::Fail,
        ..options.clone()
    }
}
