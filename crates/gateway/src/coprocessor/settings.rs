//! What a configuration asks of a coprocessor, and the coprocessor that it is asked of.

use std::{
    fmt::Write,
    sync::{Arc, OnceLock},
};

use ogive_component::hook_name;
use ogive_config::{Config, ContextWord, Http2Word, OnErrorWord, StageSelection};
use ogive_coprocessor::{
    ContextSelection, Coprocessor, CoprocessorOptions, Message, Stage, entries::REQUIRED_POLICIES,
};
use ogive_federation::Supergraph;
use ogive_identity::CallerOptions;
use ogive_schema::print::{PrintOptions, print};
use ogive_script::{Limits, Program, ProgramError, Scripts, check::require_offered};
use ogive_selectors::Selector;
use ogive_telemetry::Hook;
use ogive_transport::{
    CircuitBreaker, ClientTls, ClientTlsOptions, EndpointError, Http2, SubgraphService,
};

use super::{condition::StageCondition, plugins::LoadedPlugin};
use crate::{
    identify::caller_options::caller_options,
    schema::state::SchemaState,
    shared::{hook_threads::HookThreads, selectors::Selected},
};

/// The stages that look at what is sent on open streams, or at what subgraphs are asked for it.
const STREAM_STAGES: [Stage; 5] = [
    Stage::SubgraphRequest,
    Stage::SubgraphResponse,
    Stage::ExecutionResponse,
    Stage::SupergraphResponse,
    Stage::RouterResponse,
];

/// How a coprocessor is asked at the stages of a configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct CoprocessorSettings {
    options: CoprocessorOptions,
    /// By stage.
    stages: [Option<StageSettings>; Stage::ALL.len()],
    /// Whether requests go on if it fails.
    goes_on: bool,
    /// How claims that it changes are read.
    caller: CallerOptions,
    /// Scripts, which are asked beside it.
    program: Option<Program>,
    /// Components, which are, too.
    plugins: Vec<LoadedPlugin>,
    /// What is asked in its place, in this process.
    local: Option<EmbeddedCoprocessor>,
}

/// What is asked in place of a coprocessor.
#[derive(Clone, Debug)]
struct EmbeddedCoprocessor(Arc<dyn SubgraphService>);

impl PartialEq for EmbeddedCoprocessor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// One stage.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StageSettings {
    stage: Stage,
    pub(crate) selection: StageSelection,
    /// Of which requests it is told, and which entries of the context.
    pub(crate) when: StageCondition,
    /// The place of its URL in the options.
    pub(crate) url: usize,
}

impl StageSettings {
    /// Leaves of a message what is told.
    pub(crate) fn select<'m>(&self, message: &mut Message<'m>, sdl: Option<&'m str>) {
        let selection = &self.selection;
        // The head of a part that comes later has left with the first.
        let has_head = !message.is_later_part;
        message.headers = message.headers.filter(|_| selection.headers && has_head);
        message.body = message.body.filter(|_| selection.body);
        message.sdl = sdl.filter(|_| selection.sdl);
        message.path = message.path.filter(|_| selection.path);
        message.method = message.method.filter(|_| selection.method);
        message.uri = message.uri.filter(|_| selection.uri);
        message.service_name = message.service_name.filter(|_| selection.service_name);
        let status_code = message.status_code;
        message.status_code = status_code.filter(|_| selection.status_code && has_head);
        let id = message.subgraph_request_id;
        // By it the answers of a list are told apart.
        let tells_id = selection.subgraph_request_id || selection.batch;
        message.subgraph_request_id = id.filter(|_| tells_id);
    }
    /// Whether it is told an entry of the context, or judged by it.
    pub(crate) fn sees(&self, entry: &str) -> bool {
        self.when.names.shown(entry).is_some() || self.when.looks_at(entry)
    }
    /// Whether it is told the body, or judged by it.
    pub(crate) fn looks_at_body(&self) -> bool {
        self.selection.body || (self.stage != Stage::RouterResponse && self.looks_at_errors())
    }
    /// Whether it is judged by whether there are errors.
    pub(crate) fn looks_at_errors(&self) -> bool {
        self.when.looks_at_errors()
    }
}

/// Whether somebody may be told of a request of which it is not known yet what it asks, or else which policies that needs.
pub(crate) fn may_be_told(
    when: &StageCondition,
    of: &impl Selected,
    knows_operation: bool,
) -> bool {
    let known = |selector: &Selector| {
        (knows_operation || !when.is_of_operation(selector))
            && !when.is_entry(selector, REQUIRED_POLICIES)
    };
    when.may_be_met(of, &known)
}

impl CoprocessorSettings {
    /// The scripts, if there are any.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }
    /// The same with the scripts, which are read and tried, and the components. The error is for the operator.
    pub(crate) fn load(config: &Config, plugins: &[LoadedPlugin]) -> Result<Option<Self>, String> {
        let settings = Self::with_scripts(config)?;
        let at_stages = plugins.iter().filter(|of| of.has_stages());
        let plugins: Vec<LoadedPlugin> = at_stages.cloned().collect();
        if plugins.is_empty() {
            return Ok(settings);
        }
        let settings = settings.or_else(|| Self::made(config));
        let mut settings = settings.ok_or("`coprocessor` has an unknown stage")?;
        settings.plugins = plugins;
        Ok(Some(settings))
    }

    /// The same with the scripts alone. One that calls what is not offered is refused: every request that gets there would
    /// fail.
    pub(crate) fn with_scripts(config: &Config) -> Result<Option<Self>, String> {
        let rhai = &config.rhai;
        let Some(folder) = &rhai.scripts else {
            return Ok(Self::new(config));
        };
        let limits = Limits {
            operations: rhai.limits.operations.get() as u64,
            time: rhai.limits.timeout.0,
            calls: rhai.limits.depth.get(),
            size: rhai.limits.memory.0,
        };
        let told = |error: ProgramError| format!("`rhai`: {error}");
        let program = Program::read(folder, &rhai.main, limits).map_err(told)?;
        require_offered(&program).map_err(told)?;
        let mut settings = Self::made(config).ok_or("`coprocessor` has an unknown stage")?;
        settings.program = Some(program);
        Ok(Some(settings))
    }

    /// What a configuration asks for; `None` if no stage tells anything. Reads no files, so there are no scripts.
    pub fn new(config: &Config) -> Option<Self> {
        Self::made(config).filter(|settings| !settings.options.urls.is_empty())
    }

    /// Tries the scripts with the subgraphs of a schema. The error is for the operator.
    pub(crate) fn check_scripts(&self, state: &SchemaState) -> Result<(), String> {
        let Some(program) = &self.program else {
            return Ok(());
        };
        let schema = sdl(&state.supergraph);
        let subgraphs = state.supergraph.subgraphs.iter();
        let tried = Scripts::start(program, move || schema.clone())
            .and_then(|scripts| scripts.enter(subgraphs.map(|(_, subgraph)| &*subgraph.name)));
        tried.map_err(|error| format!("`rhai`: {error}"))
    }

    /// What does not do what it seems to, for the operator, beside what the configuration says alone: each a sentence.
    pub(crate) fn notes(&self, has_subscriptions: bool) -> Vec<String> {
        let program = self.program.as_ref();
        let mut notes = program.map(Program::warnings).unwrap_or_default();
        if has_subscriptions {
            notes.extend(self.subscription_refusals());
        }
        notes
    }

    /// Why every subscription is refused, if it is: each a sentence.
    pub(crate) fn subscription_refusals(&self) -> Vec<String> {
        let program = self.program.as_ref();
        let mut looking = Vec::new();
        for stage in [Stage::SubgraphRequest, Stage::SubgraphResponse] {
            if self.stages[stage as usize].is_some() {
                looking.push(format!("the coprocessor is told at `{}`", stage.name()));
            }
            let called = self.plugins.iter().filter(|of| of.plugin.is_at(stage));
            looking.extend(called.map(|of| {
                let hook = hook_name(stage).replace('-', "_");
                format!("the component `{}` is called at `{hook}`", of.name())
            }));
        }
        if program.is_some_and(Program::is_at_subgraphs) {
            looking.push("the scripts have `subgraph_service`".to_owned());
        }
        let refused = looking.into_iter().map(|who| {
            format!(
                "every subscription is refused: {who}, and requests to subgraphs for subscriptions are not shown there"
            )
        });
        refused.collect()
    }

    /// Asks something in this process in place of the coprocessor.
    pub(crate) fn ask_locally(&mut self, service: Arc<dyn SubgraphService>) {
        self.local = Some(EmbeddedCoprocessor(service));
    }

    fn made(config: &Config) -> Option<Self> {
        let section = &config.coprocessor;
        let mut urls: Vec<Box<str>> = Vec::new();
        let mut stages = Stage::ALL.map(|_| None);
        for (name, selection) in section.stages() {
            let stage = Stage::ALL.into_iter().find(|stage| stage.name() == name)?;
            let url = selection.url.as_ref().or(section.url.as_ref());
            let url: &str = url.map_or("", |url| &url.0);
            let at = urls.iter().position(|known| **known == *url);
            let at = at.unwrap_or_else(|| {
                urls.push(url.into());
                urls.len() - 1
            });
            stages[stage as usize] = Some(StageSettings {
                stage,
                when: StageCondition {
                    condition: selection.condition.as_ref().map(|when| when.0.clone()),
                    names: context_selection(&selection.context),
                },
                url: at,
                selection,
            });
        }
        let options = CoprocessorOptions {
            urls,
            timeout: section.timeout.0,
            in_flight_max: section.max_in_flight.get(),
            reply_bytes_max: section.max_response_size.0,
            http2: match section.client.experimental_http2 {
                Http2Word::Enable => Http2::Enable,
                Http2Word::Disable => Http2::Disable,
                Http2Word::Only => Http2::Only,
            },
            breaker: section
                .circuit_breaker
                .as_ref()
                .map(|breaker| CircuitBreaker {
                    error_percent: breaker.error_threshold_percent,
                    volume: breaker.volume_threshold,
                    window: breaker.window.0,
                    reset_timeout: breaker.reset_timeout.0,
                }),
        };
        Some(CoprocessorSettings {
            options,
            stages,
            goes_on: section.on_error == OnErrorWord::Continue,
            caller: caller_options(&config.authentication.router.jwt),
            program: None,
            plugins: Vec::new(),
            local: None,
        })
    }
}

fn context_selection(word: &ContextWord) -> ContextSelection {
    match word {
        ContextWord::Nothing => ContextSelection::Nothing,
        ContextWord::All => ContextSelection::All,
        ContextWord::Deprecated => ContextSelection::Deprecated,
        ContextWord::Selective(names) => {
            ContextSelection::Selective(names.iter().map(|name| name.as_str().into()).collect())
        }
    }
}

/// A coprocessor at its stages, under one configuration.
#[derive(Debug)]
pub(crate) struct CoprocessorStages {
    settings: CoprocessorSettings,
    pub(crate) coprocessor: Coprocessor,
    /// Where calls of scripts run that take long.
    pub(crate) script_threads: HookThreads,
}

impl CoprocessorStages {
    /// Begins to ask.
    fn start(settings: CoprocessorSettings) -> Self {
        let http2 = settings.options.http2;
        let local = settings.local.clone();
        let coprocessor = Coprocessor::new(settings.options.clone(), |endpoint| {
            if let Some(local) = &local {
                endpoint.serve_locally(Arc::clone(&local.0));
            }
            if endpoint.is_https() {
                let tls = ClientTls::load(ClientTlsOptions::default(), http2);
                endpoint.tls = tls
                    .map(|tls| Some(Arc::new(tls)))
                    .map_err(|error| EndpointError::Tls(error.to_string()));
            }
        });
        CoprocessorStages {
            settings,
            coprocessor,
            script_threads: HookThreads::default(),
        }
    }
    /// What a stage is told; `None` if it is off.
    pub(crate) fn at(&self, stage: Stage) -> Option<&StageSettings> {
        self.settings.stages[stage as usize].as_ref()
    }
    /// The components that are asked beside it.
    pub(crate) fn plugins(&self) -> &[LoadedPlugin] {
        &self.settings.plugins
    }
    /// Whether requests go on if it fails.
    pub(crate) fn goes_on(&self) -> bool {
        self.settings.goes_on
    }
    /// How claims that it changes are read.
    pub(crate) fn caller_options(&self) -> &CallerOptions {
        &self.settings.caller
    }
    /// Whether a stage that is not about the request itself is judged by it.
    pub(crate) fn looks_back(&self) -> bool {
        let is_later = |stage: &Stage| stage.is_response() || *stage == Stage::SubgraphRequest;
        let stages = Stage::ALL.into_iter().filter(is_later);
        let settings = stages.filter_map(|stage| self.at(stage));
        let mut selectors = settings.flat_map(|at| at.when.selectors());
        selectors.any(|selector| {
            matches!(
                selector,
                Selector::RequestHeader(_)
                    | Selector::RequestMethod
                    | Selector::ClientName
                    | Selector::ClientVersion
            )
        })
    }
}

/// A coprocessor and scripts beside the schema that they are told.
#[derive(Debug)]
pub(crate) struct CoprocessorState {
    pub(crate) stages: Arc<CoprocessorStages>,
    /// The scripts; an error if they cannot be used with this schema, which ends every request.
    pub(crate) scripts: Option<Result<Arc<Scripts>, ProgramError>>,
    sdl: OnceLock<Arc<str>>,
}

impl CoprocessorState {
    /// What is asked for; what was there before goes on if that is the same.
    pub(crate) fn of(
        settings: Option<&CoprocessorSettings>,
        before: Option<Arc<CoprocessorStages>>,
        state: &Arc<SchemaState>,
    ) -> Option<Self> {
        let settings = settings?;
        let before = before.filter(|before| before.settings == *settings);
        let stages = before.unwrap_or_else(|| Arc::new(CoprocessorStages::start(settings.clone())));
        let scripts = settings.program.as_ref().map(|program| {
            let state = Arc::clone(state);
            let started = Scripts::start(program, move || sdl(&state.supergraph));
            started.map(Arc::new).inspect_err(|error| {
                tracing::error!(cause = %error, "the scripts cannot be used with this schema");
            })
        });
        Some(CoprocessorState {
            stages,
            scripts,
            sdl: OnceLock::new(),
        })
    }
    /// Who is called at which stage, for people.
    pub(crate) fn shown(&self) -> String {
        let scripts = self.scripts.as_ref();
        let scripts = scripts.and_then(|scripts| scripts.as_ref().ok());
        let mut out = String::new();
        for stage in Stage::ALL {
            let plugins = self.stages.plugins().iter();
            for of in plugins.filter(|of| of.plugin.is_at(stage)) {
                let when = of.when(stage).shown();
                let _ = writeln!(out, "{}: {}{when}", stage.name(), of.hook.word());
            }
            if scripts.is_some_and(|scripts| scripts.has(stage)) {
                let _ = writeln!(out, "{}: {}", stage.name(), Hook::Script.word());
            }
            if let Some(at) = self.stages.at(stage) {
                let when = at.when.shown();
                let hook = Hook::Coprocessor.word();
                let _ = writeln!(out, "{}: {hook}{when}", stage.name());
            }
        }
        if let Some(Err(error)) = &self.scripts {
            let _ = writeln!(out, "the scripts cannot be used with this schema: {error}");
        }
        out.push_str("(called with `--execute` only)");
        out
    }
    /// The supergraph schema; printed when it is told for the first time.
    pub(crate) fn sdl(&self, supergraph: &Supergraph) -> &Arc<str> {
        self.sdl.get_or_init(|| sdl(supergraph).into())
    }
    /// The schema that stages are told, if any is.
    pub(crate) fn told_sdl(&self, supergraph: &Supergraph) -> Option<&Arc<str>> {
        let is_told = |stage| self.stages.at(stage).is_some_and(|at| at.selection.sdl);
        let tells = Stage::ALL.into_iter().any(is_told);
        tells.then(|| self.sdl(supergraph))
    }
    /// Whether anybody is asked at a stage.
    fn is_on(&self, stage: Stage) -> bool {
        let scripts = self
            .scripts
            .as_ref()
            .and_then(|scripts| scripts.as_ref().ok());
        self.stages.at(stage).is_some()
            || scripts.is_some_and(|scripts| scripts.has(stage))
            || self
                .stages
                .plugins()
                .iter()
                .any(|of| of.plugin.is_at(stage))
    }
    /// Whether what is sent to clients passes the same stages under another configuration: if anybody looks at it, then by the
    /// same settings, and by scripts that can be used.
    pub(crate) fn passes_alike(
        before: Option<&Arc<CoprocessorStages>>,
        now: Option<&Self>,
    ) -> bool {
        let now = now.filter(|now| {
            let scripts = now.scripts.as_ref();
            scripts.is_some_and(|scripts| scripts.is_err())
                || STREAM_STAGES.into_iter().any(|stage| now.is_on(stage))
        });
        match (before, now) {
            (None, None) => true,
            (Some(before), Some(now)) => {
                Arc::ptr_eq(before, &now.stages) && !matches!(now.scripts, Some(Err(_)))
            }
            _ => false,
        }
    }
    /// The stages by which that is judged; `None` if nobody looks.
    pub(crate) fn of_streams(&self) -> Option<&Arc<CoprocessorStages>> {
        let is_on = STREAM_STAGES.into_iter().any(|stage| self.is_on(stage));
        is_on.then_some(&self.stages)
    }
}

/// The supergraph schema, as Apollo Router tells it: with what no client sees, and with the machinery of federation.
fn sdl(supergraph: &Supergraph) -> String {
    print(&supergraph.schema, &PrintOptions::default())
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;
    use ogive_coprocessor::entries::OF_OPERATION;

    use super::*;

    #[test]
    fn every_stage_of_the_configuration_is_one_of_the_protocol() {
        let stage = "{ request: { headers: true }, response: { headers: true } }";
        let yaml = format!(
            "coprocessor: {{ url: 'http://localhost:1/', router: {stage}, supergraph: {stage}, execution: {stage}, \
             subgraph: {{ all: {stage} }} }}"
        );
        let config = ogive_config::load(SourceId(0), &yaml, &|_| None).unwrap();
        let settings = CoprocessorSettings::new(&config).unwrap();
        assert!(settings.stages.iter().all(Option::is_some));
    }

    #[test]
    fn whoever_looks_at_requests_to_subgraphs_keeps_subscriptions_out() {
        let notes = |stage: &str, has_subscriptions| {
            let yaml = format!("coprocessor: {{ url: 'http://localhost:1/', {stage} }}");
            let config = ogive_config::load(SourceId(0), &yaml, &|_| None).unwrap();
            let settings = CoprocessorSettings::new(&config).unwrap();
            settings.notes(has_subscriptions)
        };
        let of_client = "router: { response: { headers: true } }, supergraph: { response: { body: true } }, execution: { response: { body: true } }";
        assert_eq!(notes(of_client, true), [""; 0]);
        for (way, name) in [
            ("request", "SubgraphRequest"),
            ("response", "SubgraphResponse"),
        ] {
            let stage = format!("subgraph: {{ all: {{ {way}: {{ headers: true }} }} }}");
            let found = notes(&stage, true);
            let wanted =
                format!("every subscription is refused: the coprocessor is told at `{name}`");
            assert!(
                found.len() == 1 && found[0].starts_with(&wanted),
                "{found:?}"
            );
            assert_eq!(notes(&stage, false), [""; 0]);
        }
    }

    #[test]
    fn the_configuration_knows_which_entries_are_of_an_operation() {
        let is_good = |name: &str, context: &str| {
            let yaml = format!(
                "coprocessor: {{ url: 'http://localhost:1/', router: {{ request: {{ context: {context}, \
                 condition: {{ exists: {{ request_context: '{name}' }} }} }} }} }}"
            );
            ogive_config::load(SourceId(0), &yaml, &|_| None).is_ok()
        };
        for name in OF_OPERATION {
            let old = ContextSelection::Deprecated.shown(name).unwrap();
            assert_ne!(old, name);
            assert!(!is_good(name, "all") && !is_good(old, "true"), "{name}");
            assert!(is_good(old, "all"), "{old}");
        }
    }
}
