//! `ogive serve`: the gateway.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use ogive_config::{Config, FileMode, Listen, LogFormat, WhenMissing};
use ogive_gateway::{
    Background, Bound, Gateway, GatewayOptions, SchemaState, ServeOptions, Threads,
    shared::observe, shared::offload::Heavy, tls::listener_tls,
};
use ogive_telemetry::log::{self, Format};
use ogive_workshop::inputs::Inputs;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{
    composing::{CACHE, Composing, Feed},
    config_url::{ConfigPolling, ConfigUrlArguments, RemoteText, is_url},
    environment,
    inputs::{MoreArguments, SubgraphArguments},
    load, memory,
    polling::Polling,
    reload, terminal, turns,
};

/// The configuration that is read when none is named.
const DEFAULT_CONFIG: &str = "ogive.yaml";

/// Arguments of `ogive serve`.
#[derive(clap::Args)]
#[command(
    after_help = "GraphQL is served at /graphql, GraphiQL at /, liveness at /health, readiness at /readiness.\n\
                  Without --config, `ogive.yaml` is read if the working directory has one.\n\n\
                  Environment: OGIVE_CONFIG, OGIVE_SUPERGRAPH, OGIVE_LISTEN and OGIVE_LOG stand for the arguments of these names;\n\
                  OGIVE__section__key=VALUE sets any key of the configuration, as in OGIVE__limits__max_depth=12.\n\
                  Arguments win over the environment, the environment over the file, the file over defaults."
)]
pub(crate) struct Arguments {
    /// Supergraph SDL file; wins over `supergraph.path`
    #[arg(short, long, value_name = "FILE")]
    supergraph: Option<PathBuf>,
    /// Compose these subgraphs and follow their changes instead of reading a supergraph: a supergraph.yaml, a folder,
    /// NAME=FILE or NAME=URL; may be repeated; wins over `supergraph.subgraphs`
    #[arg(long, value_name = "SUBGRAPH", conflicts_with = "supergraph")]
    subgraphs: Vec<String>,
    #[command(flatten)]
    more: MoreArguments,
    /// Where schemas of running subgraphs are kept for when they do not answer; `none` to keep none
    #[arg(long, value_name = "DIR", default_value = CACHE)]
    schema_cache: PathBuf,
    #[arg(skip)]
    dev: bool,
    #[arg(skip)]
    feed: Option<Feed>,
    /// Files that values of the configuration came from when it was read last.
    #[arg(skip)]
    secrets: Mutex<Vec<PathBuf>>,
    /// Address to serve on, such as 127.0.0.1:4000, or unix:///run/ogive.sock; port 0 picks a free one; wins over `listen`
    #[arg(short, long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Configuration file, or an https URL that is asked for it again and again
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    config_url: ConfigUrlArguments,
    #[arg(skip)]
    remote: Option<RemoteText>,
    /// Plans made by `ogive plan build`; their operations need no planning
    #[arg(long, value_name = "FILE")]
    plans: Option<PathBuf>,
    /// Watch the files of configuration and supergraph; SIGHUP reloads them in any case
    #[arg(long)]
    hot_reload: bool,
    /// What to log: error, warn, info, debug, trace, or a list such as info,ogive_transport=debug; wins over
    /// `log.filter`
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = runtime()?;
    let served = run_on(&runtime, arguments);
    // What blocks a thread, such as looking up a name, must not hold up the end.
    runtime.shutdown_background();
    served
}

fn run_on(runtime: &tokio::runtime::Runtime, arguments: Arguments) -> Result<()> {
    let mut arguments = arguments;
    arguments.take_environment();
    let asking = match &arguments.config {
        Some(url) if is_url(url) => {
            let asking = ConfigPolling::start(url, &arguments.config_url);
            Some(runtime.block_on(asking)?)
        }
        _ => None,
    };
    arguments.remote = asking.as_ref().map(ConfigPolling::text);
    let config = arguments.config()?;
    start_log(&config, arguments.log.as_deref())?;
    tracing::info!("{}", arguments.configuration());
    if let Some(asking) = &asking {
        asking.tell();
    }
    let composing = match arguments.subgraph_inputs(&config)? {
        Some(inputs) => {
            let cache = arguments.schema_cache.clone();
            let cache = (cache != Path::new("none")).then_some(cache);
            Some(runtime.block_on(Composing::start(inputs, cache, arguments.dev))?)
        }
        None => None,
    };
    let polling = match &composing {
        None if arguments.supergraph.is_none() => runtime.block_on(Polling::start(&config))?,
        _ => None,
    };
    arguments.feed = match &polling {
        Some(polling) => Some(polling.feed()),
        None => composing.as_ref().map(Composing::feed),
    };
    raise_file_limit();
    warn_of_few_files(config.http.connections_max.get());
    let dev = arguments.dev;
    let what = match (&composing, &polling) {
        (Some(composing), _) => format!("{} subgraphs, composed", composing.subgraphs()),
        (None, Some(polling)) => polling.url().to_owned(),
        (None, None) => arguments.supergraph_path(&config)?.display().to_string(),
    };
    let missing = arguments.is_missing(&config)?;
    let (state, options) = match missing {
        true => arguments.compile_nothing(&config)?,
        false => arguments.compile(&config)?,
    };
    let telemetry = observe::telemetry(&config)
        .map_err(|error| terminal::error(error, "correct `telemetry` in the configuration"))?;
    let heavy = Heavy::starting(Heavy::threads(), turns::of_heavy_work);
    let gateway = Gateway::new(state, options).observed_by(telemetry);
    let gateway = gateway.with_heavy(heavy);
    let gateway = Arc::new(match missing {
        true => gateway.without_schema(),
        false => gateway,
    });
    let background = Background::start(&config, Arc::clone(&gateway)).map_err(|error| {
        terminal::error(
            error,
            "correct `telemetry` or `health_check` in the configuration",
        )
    })?;
    if let Some(address) = background.metrics_address() {
        let path = &config.telemetry.exporters.metrics.prometheus.path.0;
        tracing::info!("metrics at http://{address}{path}");
    }
    if let Some(address) = background.health_address() {
        tracing::info!("health at http://{address}{}", config.health_check.path.0);
    }
    let observed = Arc::clone(&gateway);
    runtime.block_on(async {
        let reloading = reload::Reloading::start(arguments, config.clone(), Arc::clone(&gateway))?;
        let tls = listener_tls(&config).map_err(|error| {
            terminal::error(error, "correct `tls.supergraph` in the configuration")
        })?;
        turns::of_worker();
        let bound = bind(&config.listen, config.listen_mode)
            .await?
            .with_tls(tls);
        let bound = bound.with_threads(Threads {
            start: Some(turns::of_worker),
            give_back: Some(memory::give_back),
        });
        let path_of_endpoint = gateway.options().graphql_path.clone();
        let announce = |bound: &Bound| {
            memory::give_back();
            let url = bound.url();
            match missing {
                true => tracing::warn!(
                    "{url}{path_of_endpoint} answers 503 until there is a supergraph: waiting for {what}"
                ),
                false => tracing::info!(supergraph = %what, "serving {url}{path_of_endpoint}"),
            }
            if dev {
                terminal::remark(&format!("GraphiQL: {}/", bound.url()));
            }
        };
        tokio::select! {
            served = serve(bound, gateway, ServeOptions::new(&config), announce) => served,
            never = reloading.run() => match never {},
            never = follow(composing) => match never {},
            never = poll(polling) => match never {},
            never = ask(asking) => match never {},
        }
    })?;
    observed.telemetry().finish();
    Ok(())
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

/// A configuration with which GraphiQL shows plans and traces, for whoever develops the graph. It is meant, so nobody is
/// warned of it as of a configuration that somebody wrote.
pub(crate) fn with_work_shown(config: &Config) -> Config {
    let mut config = config.clone();
    config.query_planning.expose.enabled = true;
    // A trace that needs a secret keeps it.
    config.telemetry.execution_trace.enabled = true;
    config
}

/// Stands in for a supergraph that is not there yet.
const NOTHING: &str = include_str!("nothing.graphql");

impl Arguments {
    /// `ogive dev`.
    pub(crate) fn for_development(
        subgraphs: SubgraphArguments,
        config: Option<PathBuf>,
        listen: String,
        schema_cache: PathBuf,
        log: String,
    ) -> Self {
        Arguments {
            supergraph: None,
            subgraphs: subgraphs.subgraphs,
            more: subgraphs.more,
            schema_cache,
            dev: true,
            feed: None,
            secrets: Mutex::default(),
            listen: Some(listen),
            config,
            config_url: ConfigUrlArguments::default(),
            remote: None,
            plans: None,
            hot_reload: true,
            log: Some(log),
        }
    }
    /// What is not said is taken from the environment.
    fn take_environment(&mut self) {
        let given = |known: &mut Option<PathBuf>, name| {
            if known.is_none() {
                *known = environment::path(name);
            }
        };
        given(&mut self.config, environment::CONFIG);
        if self.subgraphs.is_empty() {
            given(&mut self.supergraph, environment::SUPERGRAPH);
        }
        for (known, name) in [
            (&mut self.listen, environment::LISTEN),
            (&mut self.log, environment::LOG),
        ] {
            if known.is_none() {
                *known = environment::text(name);
            }
        }
    }
    /// Where the configuration is from, for the log: names, no values.
    fn configuration(&self) -> String {
        let mut text = match (&self.remote, &self.config, self.config_path()) {
            (Some(remote), ..) => format!("configuration from {}", remote.name),
            (None, Some(path), _) => format!("configuration from {}", path.display()),
            (None, None, Some(path)) => {
                format!(
                    "configuration from {}, found in the working directory",
                    path.display()
                )
            }
            (None, None, None) => "no configuration file, so defaults hold".to_owned(),
        };
        let names = environment::override_names();
        if !names.is_empty() {
            text.push_str(&format!(
                "; over it from the environment: {}",
                names.join(", ")
            ));
        }
        text
    }
    /// The subgraphs to compose, if that is what is asked for.
    fn subgraph_inputs(&self, config: &Config) -> Result<Option<Inputs>> {
        let mut subgraphs = self.subgraphs.clone();
        if subgraphs.is_empty() && self.supergraph.is_none() {
            subgraphs.extend(config.supergraph.subgraphs.clone());
        }
        match subgraphs.is_empty() {
            true => Ok(None),
            false => self.more.inputs(&subgraphs).map(Some),
        }
    }
    /// What the gateway is fed with, if it composes.
    pub(crate) fn feed(&self) -> Option<Feed> {
        self.feed.clone()
    }
    /// The configuration of a URL, if it is one's.
    pub(crate) fn remote(&self) -> Option<RemoteText> {
        self.remote.clone()
    }
    /// Files that values of the configuration came from when it was read last.
    pub(crate) fn secrets(&self) -> Vec<PathBuf> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.clone()
    }
    /// The configuration file, if there is one.
    pub(crate) fn config_path(&self) -> Option<PathBuf> {
        match &self.config {
            _ if self.remote.is_some() => None,
            Some(path) => Some(path.clone()),
            None => Path::new(DEFAULT_CONFIG)
                .exists()
                .then(|| DEFAULT_CONFIG.into()),
        }
    }
    /// Reads the configuration; arguments win over it.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut files = Vec::new();
        let config = match (&self.remote, self.config_path()) {
            (Some(remote), _) => load::config_text(&remote.name, &remote.get(), &mut files),
            (None, Some(path)) => load::config_and_files(&path, &mut files),
            (None, None) => load::config_text("the environment", "", &mut files),
        };
        // Of a configuration that is refused, too: what is wrong may be in one of them.
        *self.secrets.lock().unwrap_or_else(PoisonError::into_inner) = files;
        let mut config = config?;
        if let Some(listen) = &self.listen {
            config.listen = parse_listen(listen)?;
        }
        for (_, refusal) in config.refusals() {
            // Whoever develops may use the configuration of a place where there is one.
            if !self.dev {
                return Err(terminal::error(
                    refusal,
                    "name the addresses of the proxies instead, or listen on `unix:///PATH`",
                ));
            }
        }
        config.hot_reload.enabled |= self.hot_reload;
        if self.dev {
            // There is nothing to hide from whoever develops it, and GraphiQL needs the schema.
            config.supergraph.introspection = true;
            config.include_subgraph_errors.all = true;
        }
        Ok(config)
    }
    /// Where the supergraph is.
    pub(crate) fn supergraph_path(&self, config: &Config) -> Result<PathBuf> {
        let path = self
            .supergraph
            .clone()
            .or_else(|| config.supergraph.path.as_ref().map(PathBuf::from));
        path.ok_or_else(|| {
            terminal::error(
                "no supergraph to serve",
                "name one: `ogive serve --supergraph supergraph.graphql`, or set `supergraph.path` in the \
                 configuration; `--subgraphs` composes one, and `ogive demo` needs none",
            )
        })
    }
    /// Whether there is nothing to serve yet, and that is fine.
    fn is_missing(&self, config: &Config) -> Result<bool> {
        if config.supergraph.when_missing == WhenMissing::Fail {
            return Ok(false);
        }
        Ok(match &self.feed {
            Some(feed) => feed.is_empty(),
            None => !self.supergraph_path(config)?.exists(),
        })
    }
    /// Makes a configuration ready to wait for a supergraph.
    fn compile_nothing(&self, config: &Config) -> Result<(SchemaState, GatewayOptions)> {
        let nothing = load::supergraph_text("nothing.graphql", NOTHING)?;
        let (state, _) = SchemaState::new(nothing, config);
        Ok((state, self.options(config)?))
    }
    /// Makes a configuration ready to serve.
    pub(crate) fn compile(&self, config: &Config) -> Result<(SchemaState, GatewayOptions)> {
        let supergraph = match &self.feed {
            Some(feed) => feed.supergraph()?,
            None => load::supergraph(&self.supergraph_path(config)?)?,
        };
        for warning in &supergraph.warnings {
            tracing::warn!(code = warning.code, "{}", warning.message);
        }
        ogive_gateway::authorize::check(&supergraph, config).map_err(|error| {
            terminal::error(
                error,
                "set `authorization.directives: enforce` in the configuration, and `authorization.claims` to say how \
                 callers are known; or, if the subgraphs check by themselves who may see what, \
                 `authorization.directives: ignore`",
            )
        })?;
        let (mut state, notes) = SchemaState::new(supergraph, config);
        refuse_bad_tls(&state, config)?;
        for note in notes {
            tracing::warn!("{note}");
        }
        if let Some(path) = &self.plans {
            load_plans(&mut state, path)?;
        }
        Ok((state, self.options(config)?))
    }
    fn options(&self, config: &Config) -> Result<GatewayOptions> {
        let shown = match self.dev {
            true => with_work_shown(config),
            false => config.clone(),
        };
        let mut options = GatewayOptions::load(&shown).map_err(|error| {
            terminal::error(
                error,
                "correct `persisted_queries.local_manifests` in the configuration",
            )
        })?;
        options.notice = self.feed.as_ref().and_then(Feed::notice);
        Ok(options)
    }
}

/// A file that TLS towards a subgraph needs must be good: without it every request to the subgraph would fail.
fn refuse_bad_tls(state: &SchemaState, config: &Config) -> Result<()> {
    for endpoint in &state.endpoints {
        let Err(error) = &endpoint.tls else { continue };
        let name = &endpoint.name;
        let tls = config.subgraph_tls(name);
        let identity = tls.client_authentication;
        let (chain, key) = identity.map(|i| (i.certificate_chain, i.key)).unzip();
        let files: Vec<String> = [tls.certificate_authorities, chain, key]
            .into_iter()
            .flatten()
            .filter(|text| !text.contains("-----BEGIN"))
            .map(|file| format!("`{file}`"))
            .collect();
        return Err(terminal::error(
            format_args!(
                "the subgraph `{name}` cannot be asked: {error}; its files are {}",
                files.join(", ")
            ),
            "correct `tls.subgraph` in the configuration, or the file",
        ));
    }
    Ok(())
}

/// Reads a bundle of plans. One that does not fit at all is an error, because whoever asks for it counts on it.
fn load_plans(state: &mut SchemaState, path: &Path) -> Result<()> {
    let help = "make it anew: `ogive plan build --supergraph FILE --operations DIR --output FILE`";
    let fail = |what: &dyn std::fmt::Display| {
        terminal::error(
            format_args!("cannot use the plans `{}`: {what}", path.display()),
            help,
        )
    };
    let bytes = std::fs::read(path).map_err(|error| fail(&error))?;
    let bundle = ogive_plan::Bundle::decode(&bytes).map_err(|error| fail(&error))?;
    let loaded =
        ogive_gateway::schema::bundle::load(state, bundle).map_err(|refused| fail(&refused.0))?;
    for name in &loaded.outdated {
        tracing::warn!(
            operation = &**name,
            "the schema changed below a bundled plan; the operation is planned when it is asked"
        );
    }
    tracing::info!(
        plans = loaded.used,
        outdated = loaded.outdated.len(),
        "plans loaded from {}",
        path.display()
    );
    Ok(())
}

/// Checks an address given as an argument.
pub(crate) fn parse_listen(text: &str) -> Result<Listen> {
    Listen::parse(text)
        .map_err(|remedy| terminal::error(format_args!("`{text}` is no address"), remedy))
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
    log::init(filter, format)?;
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

fn warn_of_few_files(connections_max: usize) {
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
        .on_thread_start(turns::of_heavy_work)
        .build()
        .context("the runtime could not be started")
}

/// Binds an address.
pub(crate) async fn bind(listen: &Listen, mode: FileMode) -> Result<Bound> {
    Bound::bind_with(&listen.0, mode).await.map_err(|error| {
        terminal::error(
            format_args!("cannot listen on {}: {error}", listen.0),
            "choose another address with `--listen HOST:PORT`; port 0 picks a free one",
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
    let served = bound.serve(gateway, options, async {
        let _ = draining.await;
    });
    let last_word = async {
        // The first signal is taken before anybody is told of it, so that a second one cannot be mistaken for it.
        let name = signals.next().await;
        tracing::info!("{name}: draining; no new connections, requests in flight may finish");
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
