//! `ogive serve`: the gateway.

use std::{convert::Infallible, path::Path, sync::Arc};

use anyhow::Result;
use ogive_config::Config;
use ogive_federation::Supergraph;
use ogive_gateway::{
    Background, Gateway, StartError,
    listen::{listener_tls, serve_options},
    shared::observe,
};
use ogive_server::offload::Offload;
use ogive_server::{Bound, Threads};
use ogive_workshop::codes::ADDRESS_UNUSABLE;
use tokio::runtime::Runtime;

use crate::{
    composing::Composing,
    config_url::{ConfigPolling, is_url},
    feed::Feed,
    manual, memory,
    polling::Polling,
    reload::Reloading,
    schedule,
    serve_arguments::Arguments,
    serving::{bind, raise_file_limit, runtime, serve, start_log, warn_of_few_files},
    terminal,
};

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = runtime()?;
    let served = run_on(&runtime, arguments);
    // What blocks a thread, such as looking up a name, must not hold up the end.
    runtime.shutdown_background();
    served
}

fn run_on(runtime: &Runtime, mut arguments: Arguments) -> Result<()> {
    let asking = ask_first(runtime, &mut arguments)?;
    let config = arguments.config()?;
    start_log(&config, arguments.log.as_deref())?;
    tracing::info!("{}", arguments.configuration());
    if let Some(asking) = &asking {
        asking.tell();
    }
    let sources = runtime.block_on(Sources::start(asking, &arguments, &config))?;
    arguments.feed = sources.feed();
    raise_file_limit();
    warn_of_few_files(config.http.connections_max.get());
    let what = sources.shown(&arguments, &config)?;
    let missing = arguments.is_missing(&config)?;
    let gateway = gateway(&arguments, &config, missing)?;
    // Goes on until it is dropped.
    let _background = start_background(&config, &gateway)?;
    let observed = Arc::clone(&gateway);
    runtime.block_on(async {
        let dev = arguments.dev;
        let reloading = Reloading::start(arguments, config.clone(), Arc::clone(&gateway))?;
        let tls = listener_tls(&config).map_err(|error| {
            terminal::error(error, "correct `tls.supergraph` in the configuration")
        })?;
        if let Some(authentication) = gateway.authentication() {
            authentication.ready().await.map_err(|why| {
                terminal::error(
                    why,
                    "check `authentication.router.jwt.jwks`; with `when_missing: refuse_tokens` the start does not need it",
                )
            })?;
        }
        gateway.documents_ready().await.map_err(|why| {
            terminal::error(
                why,
                "check `persisted_queries.sources`; with `when_missing: wait` the start does not need it",
            )
        })?;
        schedule::of_worker();
        let bound = bind(&config.listen, config.listen_mode)
            .await?
            .with_tls(tls);
        let bound = bound.with_threads(Threads {
            start: Some(schedule::of_worker),
            give_back: Some(memory::give_back),
        });
        let path_of_endpoint = gateway.options().graphql_path.clone();
        let options = serve_options(&config).within_memory(gateway.memory().limit());
        let announce = |bound: &Bound| {
            memory::give_back();
            let url = bound.url();
            if missing { tracing::warn!(
                    "{url}{path_of_endpoint} answers 503 until there is a supergraph: waiting for {what}"
                ) } else { tracing::info!(supergraph = %what, "serving {url}{path_of_endpoint}") }
            if dev {
                terminal::remark(&format!("GraphiQL: {}/", bound.url()));
            }
        };
        tokio::select! {
            // The first thing to be done is to listen.
            biased;
            served = serve(bound, gateway, options, announce) => served,
            never = reloading.run() => match never {},
            never = sources.run() => match never {},
        }
    })?;
    observed.telemetry().finish();
    Ok(())
}

/// Takes what is not said from the environment, and asks for the configuration if that is a URL's.
fn ask_first(runtime: &Runtime, arguments: &mut Arguments) -> Result<Option<ConfigPolling>> {
    arguments.take_environment();
    let asking = match &arguments.config {
        Some(url) if is_url(url) => {
            let asking = ConfigPolling::start(url, &arguments.config_url);
            Some(runtime.block_on(asking)?)
        }
        _ => None,
    };
    arguments.remote = asking.as_ref().map(ConfigPolling::text);
    Ok(asking)
}

/// The configuration alone that would be served with.
pub(crate) fn look_at_config(runtime: &Runtime, mut arguments: Arguments) -> Result<Config> {
    ask_first(runtime, &mut arguments)?;
    arguments.config()
}

/// What would be served, by the same reading, for commands that look at it once.
pub(crate) fn look(runtime: &Runtime, mut arguments: Arguments) -> Result<(Config, Supergraph)> {
    let asking = ask_first(runtime, &mut arguments)?;
    let config = arguments.config()?;
    let sources = runtime.block_on(Sources::start(asking, &arguments, &config))?;
    arguments.feed = sources.feed();
    let supergraph = arguments.read_supergraph(&config)?;
    Ok((config, supergraph))
}

/// The gateway, ready to serve.
fn gateway(arguments: &Arguments, config: &Config, missing: bool) -> Result<Arc<Gateway>> {
    let (state, options) = if missing {
        arguments.compile_nothing(config)?
    } else {
        arguments.compile(config)?
    };
    let telemetry = observe::telemetry(config, manual::commit())
        .map_err(|error| terminal::error(error, "correct `telemetry` in the configuration"))?;
    let offload = Offload::starting(Offload::threads(), schedule::of_heavy_work);
    let gateway = Gateway::new(state, options).observed_by(telemetry);
    let gateway = gateway.with_offload(offload);
    gateway.memory().on_freed(memory::give_back_soon);
    Ok(Arc::new(if missing {
        gateway.without_schema()
    } else {
        gateway
    }))
}

/// Starts what goes on beside requests, and says where it listens.
fn start_background(config: &Config, gateway: &Arc<Gateway>) -> Result<Background> {
    let background =
        Background::start(config, Arc::clone(gateway)).map_err(|error| match &error {
            StartError::Address { .. } => terminal::coded(
                ADDRESS_UNUSABLE,
                error,
                "choose another address for it; port 0 picks a free one",
            ),
            StartError::Other(_) => terminal::coded(
                ogive_config::codes::UNUSABLE,
                error,
                "correct `telemetry` in the configuration",
            ),
        })?;
    if let Some(address) = background.metrics_address() {
        let path = &config.telemetry.exporters.metrics.prometheus.path.0;
        tracing::info!("metrics at http://{address}{path}");
    }
    if let Some(address) = background.health_address() {
        tracing::info!("health at http://{address}{}", config.health_check.path.0);
    }
    Ok(background)
}

/// Where supergraph and configuration come from if they are no files.
struct Sources {
    /// Composes the supergraph.
    composing: Option<Composing>,
    /// Asks a URL for the supergraph.
    polling: Option<Polling>,
    /// Asks a URL for the configuration.
    asking: Option<ConfigPolling>,
}

impl Sources {
    /// Composes or fetches the supergraph for the first time, if that is what is asked for.
    async fn start(
        asking: Option<ConfigPolling>,
        arguments: &Arguments,
        config: &Config,
    ) -> Result<Self> {
        let composing = match arguments.subgraph_inputs(config)? {
            Some(inputs) => {
                let cache = arguments.schema_cache.clone();
                let cache = (cache != Path::new("none")).then_some(cache);
                Some(Composing::start(inputs, cache, arguments.dev).await?)
            }
            None => None,
        };
        let polling = match &composing {
            None if arguments.supergraph.is_none() => {
                Polling::start(config, arguments.reads_once).await?
            }
            _ => None,
        };
        Ok(Sources {
            composing,
            polling,
            asking,
        })
    }
    /// For the gateway.
    fn feed(&self) -> Option<Feed> {
        match &self.polling {
            Some(polling) => Some(polling.feed()),
            None => self.composing.as_ref().map(Composing::feed),
        }
    }
    /// What the supergraph is from, for the log.
    fn shown(&self, arguments: &Arguments, config: &Config) -> Result<String> {
        Ok(match (&self.composing, &self.polling) {
            (Some(composing), _) => format!("{} subgraphs, composed", composing.subgraphs()),
            (None, Some(polling)) => polling.url().to_owned(),
            (None, None) => arguments.supergraph_path(config)?.display().to_string(),
        })
    }
    /// Follows all of them.
    async fn run(self) -> Infallible {
        tokio::select! {
            never = follow(self.composing) => never,
            never = poll(self.polling) => never,
            never = ask(self.asking) => never,
        }
    }
}

/// Composes again whenever a subgraph changes; waits forever if there is nothing to compose.
async fn follow(composing: Option<Composing>) -> Infallible {
    match composing {
        Some(composing) => composing.run().await,
        None => std::future::pending().await,
    }
}

/// Fetches the supergraph again and again; waits forever if it is no URL's.
async fn poll(polling: Option<Polling>) -> Infallible {
    match polling {
        Some(polling) => polling.run().await,
        None => std::future::pending().await,
    }
}

/// Fetches the configuration again and again; waits forever if it is no URL's.
async fn ask(asking: Option<ConfigPolling>) -> Infallible {
    match asking {
        Some(asking) => asking.run().await,
        None => std::future::pending().await,
    }
}
