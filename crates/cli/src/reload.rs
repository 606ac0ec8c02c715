//! Reloading while serving: on SIGHUP, and when a watched file changes.
//!
//! The new configuration and supergraph are read, checked and warmed up on a thread of their own, beside the ones that
//! serve, and swapped by one pointer. Whatever is wrong with them is logged, and what was served before goes on.
//! How files are looked at: [`FileLooks`].

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use ogive_config::{CedarOptions, Config};
use ogive_gateway::Gateway;
use ogive_hooks::scripts::Program;
use ogive_sources::{FileLooks, FirstLook, SourceEvent, SourceKind, SourceResult, told};
use ogive_telemetry::metrics::Event;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    config_url::RemoteText,
    feed::Feed,
    restart::{held, needs_restart},
    serve_arguments::Arguments,
};

/// Shortest time between two looks at the files.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Most keys that are named because they are gone.
const GONE_SHOWN_MAX: usize = 20;

/// What is needed to load again what was loaded at the start.
pub(crate) struct Reloading {
    arguments: Arc<Arguments>,
    config: Config,
    /// The one of the start.
    first: Arc<Config>,
    gateway: Arc<Gateway>,
    hangup: Signal,
    seen: FileLooks,
    /// Files that are gone, and of which that was told.
    gone: Vec<PathBuf>,
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
            first: Arc::new(config.clone()),
            config,
            gateway,
            hangup,
            seen: FileLooks::default(),
            gone: Vec::new(),
        };
        reloading.seen = reloading.look();
        reloading.arguments.take();
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
            // Whoever sends a signal has written all of it, and nobody may look again.
            let seen = if self.config.hot_reload.enabled && why != "SIGHUP" {
                self.seen.clone()
            } else {
                FileLooks::default()
            };
            let first = Arc::clone(&self.first);
            let is_fed = self.feed.is_some();
            let loaded = tokio::task::spawn_blocking(move || -> Result<_> {
                let config = arguments.config()?;
                // Another configuration may name other files. They are looked at before they are read, too.
                let named = FileLooks::look(paths(&arguments, &config, is_fed));
                let (state, options) = arguments.compile(&held(&first, &config))?;
                if seen.again() != seen {
                    return Ok(None);
                }
                Ok(Some((gateway.reload_all(state, options), config, named)))
            });
            match loaded.await {
                // Somebody writes: it is read again when nobody does any more.
                Ok(Ok(None)) => {}
                Ok(Ok(Some((warm, config, named)))) => {
                    self.count(Event::Reloaded, SourceResult::Taken);
                    tracing::info!(
                        plans_kept = warm.kept,
                        operations_planned = warm.planned,
                        "{why}: reloaded"
                    );
                    tell_gone(&self.arguments.take());
                    for key in needs_restart(&self.config, &config) {
                        tracing::warn!("`{key}` has changed; it needs a restart");
                    }
                    self.config = config;
                    self.seen = named.as_before(&self.seen, FirstLook::Known);
                }
                Ok(Err(error)) => {
                    let refused = format!("{error:#}");
                    self.count(Event::ReloadRefused, SourceResult::Kept(&refused));
                    tracing::error!("{why}: reload refused, serving on as before: {refused}");
                }
                Err(_) => tracing::error!("{why}: reload failed, serving on as before"),
            }
        }
    }

    fn count(&self, event: Event, result: SourceResult<'_>) {
        let (kind, from) = (SourceKind::Configuration, "");
        SourceEvent { kind, from, result }.count();
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
        let mut pending = FileLooks::default();
        loop {
            tokio::select! {
                _ = self.hangup.recv() => return "SIGHUP".to_owned(),
                why = fed(&mut self.feed) => return why,
                why = sent(&mut self.remote) => return why.to_owned(),
                () = tokio::time::sleep(interval) => {}
            }
            // A file that is gone is being replaced; what comes after it counts.
            let now = self.look();
            if now == pending {
                self.tell_missing(&now);
            }
            if self.seen.is_settled(&mut pending, &now) {
                return changed(&self.seen, &now);
            }
        }
    }

    /// Tells once that files are gone for longer than it takes to replace them.
    fn tell_missing(&mut self, now: &FileLooks) {
        let missing = now.missing();
        let is_known = |path: &&Path| self.gone.iter().any(|gone| gone == path);
        for path in missing.iter().filter(|path| !is_known(path)) {
            tracing::warn!(
                "`{}` is gone: what was read of it serves on, and no change of any file is reloaded until it is back",
                path.display()
            );
        }
        self.gone = missing.into_iter().map(Path::to_path_buf).collect();
    }

    fn look(&self) -> FileLooks {
        FileLooks::look(paths(&self.arguments, &self.config, self.feed.is_some()))
    }
}

/// The files that are read with a configuration. `is_fed`: the supergraph is no file.
fn paths(arguments: &Arguments, config: &Config, is_fed: bool) -> Vec<PathBuf> {
    let supergraph = (!is_fed).then(|| arguments.supergraph_path(config).ok());
    let supergraph = supergraph.flatten();
    let manifests = &config.persisted_queries.local_manifests;
    let sources = config.persisted_queries.sources.iter();
    let sources = sources.filter_map(|source| source.path.as_ref());
    let manifests = manifests.iter().chain(sources).map(PathBuf::from);
    let cedar = config.authorization.policies.cedar.as_ref();
    let policies = cedar.into_iter().flat_map(CedarOptions::files);
    let plugins = config.plugins.iter().map(|plugin| &plugin.path);
    let rhai = &config.rhai;
    let scripts = rhai.scripts.iter();
    let scripts = scripts.flat_map(|folder| Program::watched(folder, &rhai.main));
    arguments
        .config_path()
        .into_iter()
        .chain(supergraph)
        .chain(manifests)
        .chain(policies.map(PathBuf::from))
        .chain(plugins.map(PathBuf::from))
        .chain(scripts)
        .chain(arguments.secrets())
        .collect()
}

/// Says which keys a configuration does not set any more: what protected may be gone by mistake.
fn tell_gone(keys: &[String]) {
    let shown = &keys[..keys.len().min(GONE_SHOWN_MAX)];
    let more = match keys.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if !keys.is_empty() {
        tracing::warn!(
            "the configuration does not set `{}`{more} any more: defaults hold",
            shown.join("`, `")
        );
    }
}

/// Which files have changed, as a cause.
fn changed(before: &FileLooks, now: &FileLooks) -> String {
    // Without names, the list of files is another one.
    let told = told(&now.changed_since(before), " files");
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
