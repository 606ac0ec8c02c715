//! What `ogive serve` is told on the command line, and what follows from it: the configuration, and what is served.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use ogive_config::{AuthorizationDirectives, Config, WhenMissing, keys_set};
use ogive_federation::Supergraph;
use ogive_files::Pipes;
use ogive_gateway::{GatewayOptions, SchemaState, unusable};
use ogive_workshop::{
    codes::{NO_SUPERGRAPH, REDACTION_UNUSABLE, SUPERGRAPH_RESTRICTED},
    inputs::Inputs,
};

use crate::{
    composing::CACHE,
    config_url::{ConfigUrlArguments, RemoteText},
    environment,
    feed::Feed,
    inputs::{MoreArguments, SubgraphArguments},
    load,
    serving::parse_listen,
    terminal,
};

/// Largest bundle of plans.
const PLANS_BYTES_MAX: u64 = 1 << 30;

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
    pub(crate) supergraph: Option<PathBuf>,
    /// Compose these subgraphs and follow their changes instead of reading a supergraph: a supergraph.yaml, a folder,
    /// NAME=FILE or NAME=URL; may be repeated; wins over `supergraph.subgraphs`
    #[arg(long, value_name = "SUBGRAPH", conflicts_with = "supergraph")]
    pub(crate) subgraphs: Vec<String>,
    #[command(flatten)]
    pub(crate) more: MoreArguments,
    /// Where schemas of running subgraphs are kept for when they do not answer; `none` to keep none
    #[arg(long, value_name = "DIR", default_value = CACHE)]
    pub(crate) schema_cache: PathBuf,
    #[arg(skip)]
    pub(crate) dev: bool,
    /// Whether files are read once, so that pipes will do.
    #[arg(skip)]
    pub(crate) reads_once: bool,
    #[arg(skip)]
    pub(crate) feed: Option<Feed>,
    /// Files that values of the configuration came from when it was read last.
    #[arg(skip)]
    pub(crate) secrets: Mutex<Vec<PathBuf>>,
    /// What the configuration was and is.
    #[arg(skip)]
    pub(crate) texts: Mutex<Texts>,
    /// Address to serve on, such as 127.0.0.1:4000, or unix:///run/ogive.sock; port 0 picks a free one; wins over `listen`
    #[arg(short, long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Configuration file, or an https URL that is asked for it again and again
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config_url: ConfigUrlArguments,
    #[arg(skip)]
    pub(crate) remote: Option<RemoteText>,
    /// Plans made by `ogive plan build`; their operations need no planning
    #[arg(long, value_name = "FILE")]
    pub(crate) plans: Option<PathBuf>,
    /// Watch the files of configuration and supergraph; SIGHUP reloads them in any case
    #[arg(long)]
    pub(crate) hot_reload: bool,
    /// What to log: error, warn, info, debug, trace, or a list such as info,ogive_transport=debug; wins over
    /// `log.filter`
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// Texts of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The one that is served with.
    taken: Arc<str>,
    /// The one that was read last.
    read: Arc<str>,
}

/// Stands in for a supergraph that is not there yet.
pub(crate) const NOTHING: &str = include_str!("nothing.graphql");

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
            subgraphs: subgraphs.subgraphs,
            more: subgraphs.more,
            schema_cache,
            reads_once: false,
            dev: true,
            hot_reload: true,
            log: Some(log),
            listen: Some(listen),
            config_url: ConfigUrlArguments::default(),
            ..Self::only_looking(None, config)
        }
    }
    /// For commands that look once at what would be served.
    pub(crate) fn only_looking(supergraph: Option<PathBuf>, config: Option<PathBuf>) -> Self {
        Arguments {
            supergraph,
            subgraphs: Vec::new(),
            more: MoreArguments::default(),
            // Nothing is written.
            schema_cache: "none".into(),
            dev: false,
            reads_once: true,
            feed: None,
            secrets: Mutex::default(),
            texts: Mutex::default(),
            listen: None,
            config,
            config_url: ConfigUrlArguments::only_looking(),
            remote: None,
            plans: None,
            hot_reload: false,
            log: None,
        }
    }
    fn pipes(&self) -> Pipes {
        if self.reads_once {
            Pipes::Read
        } else {
            Pipes::Refused
        }
    }
    /// What is not said is taken from the environment.
    pub(crate) fn take_environment(&mut self) {
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
    pub(crate) fn configuration(&self) -> String {
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
    pub(crate) fn subgraph_inputs(&self, config: &Config) -> Result<Option<Inputs>> {
        let mut subgraphs = self.subgraphs.clone();
        if subgraphs.is_empty() && self.supergraph.is_none() {
            subgraphs.extend(config.supergraph.subgraphs.clone());
        }
        if subgraphs.is_empty() {
            Ok(None)
        } else {
            self.more.inputs(&subgraphs).map(Some)
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
        let (called, text): (Arc<str>, Arc<str>) = match (&self.remote, self.config_path()) {
            (Some(remote), _) => (Arc::clone(&remote.name), remote.get()),
            (None, Some(path)) => (
                path.display().to_string().into(),
                load::config_file(&path, self.pipes())?.into(),
            ),
            (None, None) => ("the environment".into(), "".into()),
        };
        self.refuse_half(&called, &text)?;
        let config = load::config_text(&called, &text, &mut files);
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
            config.subscription.enabled = true;
        }
        Ok(config)
    }
    /// Refuses a configuration that sets nothing any more, or that is the beginning of the one before and ends within a line.
    /// Whoever writes a file empties it first, and stops in between if the disk is full: that must not take protections
    /// away, and what is left out is valid.
    fn refuse_half(&self, called: &str, text: &Arc<str>) -> Result<()> {
        let mut texts = self.texts();
        let what = if load::says_nothing(text) && !load::says_nothing(&texts.taken) {
            "has become empty"
        } else if is_cut_off(text, &texts.taken) {
            "ends in the middle of a line of the one before, as if it were half written"
        } else {
            texts.read = Arc::clone(text);
            return Ok(());
        };
        Err(terminal::error(
            format_args!("the configuration `{called}` {what}"),
            "write all of it anew: what protects may be in the part that is gone",
        ))
    }
    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Notes that the configuration that was read last is served with. Gives the keys that the one before has set and this
    /// one does not.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut texts = self.texts();
        let before = std::mem::take(&mut texts.taken);
        texts.taken = Arc::clone(&texts.read);
        if before == texts.taken {
            return Vec::new();
        }
        let now = keys_set(&texts.taken);
        let mut gone = keys_set(&before);
        gone.retain(|key| now.binary_search(key).is_err());
        gone
    }
    /// Where the supergraph is.
    pub(crate) fn supergraph_path(&self, config: &Config) -> Result<PathBuf> {
        let path = self
            .supergraph
            .clone()
            .or_else(|| config.supergraph.path.as_ref().map(PathBuf::from));
        path.ok_or_else(|| {
            terminal::coded(
                NO_SUPERGRAPH,
                if self.reads_once { "no supergraph to look at" } else { "no supergraph to serve" },
                if self.reads_once {
                    "name one with `--supergraph FILE`, or set `supergraph.path` in the configuration; `--demo` takes the \
                     demo's"
                } else {
                    "name one: `ogive serve --supergraph supergraph.graphql`, or set `supergraph.path` in the \
                     configuration; `--subgraphs` composes one, and `ogive demo` needs none"
                },
            )
        })
    }
    /// Whether there is nothing to serve yet, and that is fine.
    pub(crate) fn is_missing(&self, config: &Config) -> Result<bool> {
        if config.supergraph.when_missing == WhenMissing::Fail {
            return Ok(false);
        }
        Ok(match &self.feed {
            Some(feed) => feed.is_empty(),
            None => !self.supergraph_path(config)?.exists(),
        })
    }
    /// Makes a configuration ready to wait for a supergraph.
    pub(crate) fn compile_nothing(&self, config: &Config) -> Result<(SchemaState, GatewayOptions)> {
        refuse_missing_files(config)?;
        let nothing = load::supergraph_text("nothing.graphql", NOTHING)?;
        let (state, _) = SchemaState::new(nothing, config);
        Ok((state, self.options(config)?))
    }
    /// Reads the supergraph, wherever it is from.
    pub(crate) fn read_supergraph(&self, config: &Config) -> Result<Supergraph> {
        match &self.feed {
            Some(feed) => feed.supergraph(),
            None => load::supergraph_named(
                &self.supergraph_path(config)?,
                match (&self.supergraph, &config.supergraph.path) {
                    (None, Some(_)) => {
                        "check `supergraph.path` in the configuration; `--supergraph` wins over it"
                    }
                    _ => load::SUPERGRAPH_ARGUMENT,
                },
                self.pipes(),
            ),
        }
    }
    /// Makes a configuration ready to serve.
    pub(crate) fn compile(&self, config: &Config) -> Result<(SchemaState, GatewayOptions)> {
        let supergraph = self.read_supergraph(config)?;
        refuse_missing_files(config)?;
        for warning in &supergraph.warnings {
            tracing::warn!(code = warning.code, "{}", warning.message);
        }
        let enforced;
        let config = match ogive_gateway::authorize::check(&supergraph, config) {
            Ok(()) => config,
            // Nobody sees more than with `enforce`, and whoever develops need not set anything up to see the rest.
            Err(what) if self.dev => {
                tracing::warn!("{what}: {TO_BE_KNOWN}");
                enforced = with_restrictions_enforced(config);
                &enforced
            }
            Err(what) => return Err(restricted(&what)),
        };
        redacts(&supergraph, config)?;
        let (mut state, notes) = SchemaState::new(supergraph, config);
        for note in notes {
            tracing::warn!("{note}");
        }
        if let Some(path) = &self.plans {
            load_plans(&mut state, path)?;
        }
        let options = self.options(config)?;
        options.check_scripts(&state).map_err(unusable_scripts)?;
        for note in options.notes() {
            tracing::warn!("{note}");
        }
        Ok((state, options))
    }
    fn options(&self, config: &Config) -> Result<GatewayOptions> {
        let shown = if self.dev {
            with_work_shown(config)
        } else {
            config.clone()
        };
        let mut options =
            GatewayOptions::load_with(&shown, crate::cedar::read).map_err(|error| {
                terminal::coded(
                    ogive_config::codes::UNUSABLE,
                    error,
                    "correct the file, or its name in the configuration",
                )
            })?;
        options.dev_diagnostics = self.feed.as_ref().and_then(Feed::diagnostics);
        Ok(options)
    }
}

/// What whoever develops a restricted graph can do.
const TO_BE_KNOWN: &str = "`ogive dev` enforces it, so fields that are restricted are null for whoever is not known. To be \
     known, name a file with `--config` that sets `authentication.router.jwt` (or `api_keys`), and send the token with the \
     operation: GraphiQL has a tab for headers. `authorization.directives: ignore` shows all of it to everybody";

/// Checks that what is to be redacted is there.
pub(crate) fn redacts(supergraph: &Supergraph, config: &Config) -> Result<()> {
    ogive_gateway::redaction::check(supergraph, config).map_err(|what| {
        let remedy = "correct the rule, or take it out if the field is gone for good";
        terminal::coded(REDACTION_UNUSABLE, what, remedy)
    })
}

/// The refusal of scripts that cannot be used with the supergraph.
pub(crate) fn unusable_scripts(error: String) -> anyhow::Error {
    terminal::coded(
        ogive_config::codes::UNUSABLE,
        error,
        "correct the script: its entry points run for every subgraph before anybody is served",
    )
}

/// The refusal of a supergraph with restrictions.
pub(crate) fn restricted(what: &str) -> anyhow::Error {
    terminal::coded(
        SUPERGRAPH_RESTRICTED,
        what,
        "set `authorization.directives: enforce` in the configuration, and say how callers are known: \
         `authentication.router.jwt` (or `api_keys`, `introspection`, `client_certificate`), or `authorization.claims` for a \
         proxy that knows them; only if every subgraph checks by itself who may see what, \
         `authorization.directives: ignore`",
    )
}

fn with_restrictions_enforced(config: &Config) -> Config {
    let mut config = config.clone();
    config.authorization.directives = AuthorizationDirectives::Enforce;
    config
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

/// Whether a text is the beginning of another one up to the middle of a line.
fn is_cut_off(text: &str, before: &str) -> bool {
    let rest = before.strip_prefix(text).unwrap_or_default();
    !text.is_empty()
        && !text.ends_with('\n')
        && !rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n')
        && !rest.trim().is_empty()
}

/// Files that requests need must be there and good, in whatever part of the configuration they are named.
pub(crate) fn refuse_missing_files(config: &Config) -> Result<()> {
    let problems = unusable::refused_files(config);
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let more = match problems.len() - 1 {
        0 => String::new(),
        1 => "; and one more".to_owned(),
        more => format!("; and {more} more"),
    };
    let (key, message) = (format!("`{}`", first.at.join(".")), &first.message);
    let about = if message.contains(&key) {
        String::new()
    } else {
        format!("{key}: ")
    };
    Err(terminal::coded(
        ogive_config::codes::UNUSABLE,
        format_args!("{about}{message}{more}"),
        "correct the file, or its name in the configuration; `ogive config validate` shows all of them, with their lines",
    ))
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
    let bytes = ogive_files::read(path, PLANS_BYTES_MAX, Pipes::Refused);
    let bytes = bytes.map_err(|error| fail(&error))?;
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
