//! What every command that serves does alike: the runtime, the log, the address, and serving until a signal.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use ogive_config::{Config, FileMode, Listen, LogFormat};
use ogive_gateway::Gateway;
use ogive_server::{Bound, ServeOptions};
use ogive_telemetry::log::{self, Format};
use ogive_workshop::codes::{ADDRESS_UNUSABLE, INVALID_ARGUMENT};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{schedule, terminal};

/// Checks an address given as an argument.
pub(crate) fn parse_listen(text: &str) -> Result<Listen> {
    Listen::parse(text).map_err(|remedy| {
        let message = format_args!("`{text}` is no address");
        terminal::coded(INVALID_ARGUMENT, message, remedy)
    })
}

/// Sets logging up; an argument wins over the configuration.
pub(crate) fn start_log(config: &Config, argument: Option<&str>) -> Result<()> {
    let filter = argument.unwrap_or(&config.log.filter);
    let format = match config.log.format {
        LogFormat::Text => Format::Text {
            colour: terminal::colour(),
        },
        LogFormat::Json => Format::Json,
    };
    log::init(filter, format).map_err(|error| match argument {
        Some(_) => {
            let remedy = "correct `--log`, or `OGIVE_LOG` in the environment";
            terminal::coded(INVALID_ARGUMENT, error, remedy)
        }
        None => {
            let remedy = "correct `log.filter` in the configuration";
            terminal::coded(ogive_config::codes::UNUSABLE, error, remedy)
        }
    })?;
    // A panic costs one request; it must still be found by whoever reads the log.
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(
            place = panic.location().map(ToString::to_string),
            "panic: {}",
            panic.payload_as_str().unwrap_or("(no message)")
        );
        // Nobody else writes it if this is the end of the process.
        if std::thread::current().name() == Some("main") {
            log::finish();
        }
    }));
    Ok(())
}

/// Lets the process open as many files as it may: shells give few, because some old programs cannot deal with more.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit on open files stays as it is");
        }
    }
}

/// Says that fewer files may be open than connections.
pub(crate) fn warn_of_few_files(connections_max: usize) {
    let files = getrlimit(Resource::Nofile).current;
    if let Some(files) = files.filter(|files| *files < connections_max as u64) {
        tracing::warn!(
            "the process may open {files} files, fewer than `http.connections_max` ({connections_max}): raise \
             `ulimit -Hn`, or lower the key"
        );
    }
}

/// The runtime that accepts connections; workers bring their own.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Threads for what takes long, such as reading a new supergraph: newcomers come first.
        .on_thread_start(schedule::of_heavy_work)
        .build()
        .context("the runtime could not be started")
}

/// Binds an address.
pub(crate) async fn bind(listen: &Listen, mode: FileMode) -> Result<Bound> {
    Bound::bind_with(&listen.0, mode.0).await.map_err(|error| {
        terminal::coded(
            ADDRESS_UNUSABLE,
            format_args!("cannot listen on {}: {error}", listen.0),
            "choose another address with `listen` in the configuration, or `--listen HOST:PORT`, which wins over it; port 0 \
             picks a free one",
        )
    })
}

/// How long after SIGTERM another one still counts as the same: supervisors such as `timeout` send theirs to the
/// process and then to its group, and requests in flight must not pay for that. Whoever presses Ctrl-C twice means it.
const SAME_SIGNAL: Duration = Duration::from_secs(2);

/// Serves until SIGTERM or SIGINT; a second signal ends the process at once. `announce` is called once both are
/// listened for.
pub(crate) async fn serve(
    bound: Bound,
    gateway: Arc<Gateway>,
    options: ServeOptions,
    announce: impl FnOnce(&Bound),
) -> Result<()> {
    let mut signals = Signals::new()?;
    // Whoever reads the announcement may send a signal at once.
    announce(&bound);
    let (drain, draining) = tokio::sync::oneshot::channel::<()>();
    let served = ogive_gateway::serve::serve(bound, gateway, options, async {
        let _ = draining.await;
    });
    let last_word = async {
        // The first signal is taken before anybody is told of it, so that a second one cannot be mistaken for it.
        let name = signals.next().await;
        tracing::info!("{name}: draining; not ready from now on, requests in flight may finish");
        let _ = drain.send(());
        let first = tokio::time::Instant::now();
        loop {
            let again = signals.next().await;
            if [name, again] != ["SIGTERM"; 2] || first.elapsed() >= SAME_SIGNAL {
                break again;
            }
        }
    };
    let drained = tokio::select! {
        drained = served => drained?,
        name = last_word => {
            tracing::warn!("{name} again: stopping without draining");
            return Ok(());
        }
    };
    if drained.cut_off > 0 {
        tracing::warn!(
            connections = drained.cut_off,
            "some connections were cut off at the deadline"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
