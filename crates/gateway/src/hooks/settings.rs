//! What a configuration asks of a coprocessor, and the coprocessor that it is asked of.

use std::{
    fmt::Write,
    sync::{Arc, OnceLock},
};

use ogive_config::{Config, ContextWord, Http2Word, OnErrorWord, StageSelection};
use ogive_federation::Supergraph;
use ogive_hooks::scripts::{Limits, Program, ProgramError, Scripts, require_offered};
use ogive_hooks::{
    ContextSelection, Coprocessor, CoprocessorOptions, Exchange, Message, Stage,
    entries::REQUIRED_POLICIES,
};
use ogive_identity::CallerOptions;
use ogive_schema::print::{PrintOptions, print};
use ogive_selectors::Selector;
use ogive_telemetry::Hook;
use ogive_transport::{
    CircuitBreaker, ClientTls, ClientTlsOptions, EndpointError, Http2, SubgraphService,
};

use super::{components::LoadedComponent, condition::StageCondition};
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
pub struct HookSettings {
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
    components: Vec<LoadedComponent>,
    /// Whether a hook may read or write the context.
    uses_context: bool,
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
    /// What is told of an exchange, but for the context.
    pub(crate) fn message<'m>(&self, exchange: &'m Exchange, sdl: Option<&'m str>) -> Message<'m> {
        let (told, client) = (&self.selection, &exchange.client);
        // The head of a part that comes later has left with the first.
        let has_head = exchange.is_first;
        let method = if self.stage.is_of_subgraph() {
            "POST"
        } else {
            client.method.as_str()
        };
        // By it the answers of a list are told apart.
        let tells_id = told.subgraph_request_id || told.batch;
        let id = exchange.subgraph_request_id.as_deref();
        let status = exchange.status;
        Message {
            subgraph_request_id: id.filter(|_| tells_id),
            headers: (told.headers && has_head).then_some(&*exchange.headers),
            body: exchange.body.as_ref().filter(|_| told.body),
            sdl: sdl.filter(|_| told.sdl),
            path: told.path.then_some(&*client.path),
            method: told.method.then_some(method),
            uri: exchange.uri.as_deref().filter(|_| told.uri),
            service_name: exchange.subgraph.as_deref().filter(|_| told.service_name),
            status_code: status.filter(|_| told.status_code && has_head),
            has_next: exchange.has_next,
            query_plan: exchange.query_plan.as_deref().filter(|_| told.query_plan),
            ..Message::new(self.stage, &exchange.id)
        }
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

impl HookSettings {
    /// The scripts, if there are any.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }
    /// The same with the scripts, which are read and tried, and the components. The error is for the operator.
    pub(crate) fn load(
        config: &Config,
        components: &[LoadedComponent],
    ) -> Result<Option<Self>, String> {
        let settings = Self::with_scripts(config)?;
        let at_stages = components.iter().filter(|of| of.has_stages());
        let at_stages: Vec<LoadedComponent> = at_stages.cloned().collect();
        let mut settings = if at_stages.is_empty() {
            let Some(settings) = settings else {
                return Ok(None);
            };
            settings
        } else {
            let settings = settings.or_else(|| Self::made(config));
            settings.ok_or("`coprocessor` has an unknown stage")?
        };
        settings.components = at_stages;
        // One that only decides may read what the hooks of stages leave.
        settings.uses_context |= components.iter().any(LoadedComponent::uses_context);
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
        settings.uses_context |= program.looks_at_context();
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
    pub(crate) fn notes(&self) -> Vec<String> {
        let program = self.program.as_ref();
        program.map(Program::warnings).unwrap_or_default()
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
        Some(HookSettings {
            // A coprocessor may write entries, told or not.
            uses_context: !options.urls.is_empty(),
            options,
            stages,
            goes_on: section.on_error == OnErrorWord::Continue,
            caller: caller_options(&config.authentication.router.jwt),
            program: None,
            components: Vec::new(),
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
pub(crate) struct HookStages {
    settings: HookSettings,
    pub(crate) coprocessor: Coprocessor,
    /// Where calls of scripts run that take long.
    pub(crate) script_threads: HookThreads,
}

impl HookStages {
    /// Begins to ask.
    fn start(settings: HookSettings) -> Self {
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
        HookStages {
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
    pub(crate) fn components(&self) -> &[LoadedComponent] {
        &self.settings.components
    }
    /// Whether a hook may read or write the context.
    pub(crate) fn uses_context(&self) -> bool {
        self.settings.uses_context
    }
    /// Whether requests go on if it fails.
    pub(crate) fn goes_on(&self) -> bool {
        self.settings.goes_on
    }
    /// How claims that it changes are read.
    pub(crate) fn caller_options(&self) -> &CallerOptions {
        &self.settings.caller
    }
}

/// A coprocessor and scripts beside the schema that they are told.
#[derive(Debug)]
pub(crate) struct HookState {
    pub(crate) stages: Arc<HookStages>,
    /// The scripts; an error if they cannot be used with this schema, which ends every request.
    pub(crate) scripts: Option<Result<Arc<Scripts>, ProgramError>>,
    sdl: OnceLock<Arc<str>>,
}

impl HookState {
    /// What is asked for; what was there before goes on if that is the same.
    pub(crate) fn of(
        settings: Option<&HookSettings>,
        before: Option<Arc<HookStages>>,
        state: &Arc<SchemaState>,
    ) -> Option<Self> {
        let settings = settings?;
        let before = before.filter(|before| before.settings == *settings);
        let stages = before.unwrap_or_else(|| Arc::new(HookStages::start(settings.clone())));
        let scripts = settings.program.as_ref().map(|program| {
            let state = Arc::clone(state);
            let started = Scripts::start(program, move || sdl(&state.supergraph));
            started.map(Arc::new).inspect_err(|error| {
                tracing::error!(cause = %error, "the scripts cannot be used with this schema");
            })
        });
        Some(HookState {
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
            let components = self.stages.components().iter();
            for of in components.filter(|of| of.component.is_at(stage)) {
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
                .components()
                .iter()
                .any(|of| of.component.is_at(stage))
    }
    /// Whether what is sent to clients passes the same stages under another configuration: if anybody looks at it, then by the
    /// same settings, and by scripts that can be used.
    pub(crate) fn passes_alike(before: Option<&Arc<HookStages>>, now: Option<&Self>) -> bool {
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
    pub(crate) fn of_streams(&self) -> Option<&Arc<HookStages>> {
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
    use ogive_hooks::entries::OF_OPERATION;

    use super::*;

    #[test]
    fn every_stage_of_the_configuration_is_one_of_the_protocol() {
        let stage = "{ request: { headers: true }, response: { headers: true } }";
        let yaml = format!(
            "coprocessor: {{ url: 'http://localhost:1/', router: {stage}, supergraph: {stage}, execution: {stage}, \
             subgraph: {{ all: {stage} }} }}"
        );
        let config = ogive_config::load(SourceId(0), &yaml, &|_| None).unwrap();
        let settings = HookSettings::new(&config).unwrap();
        assert!(settings.stages.iter().all(Option::is_some));
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
