//! What a configuration asks of a coprocessor, and the coprocessor that it is asked of.

use std::sync::{Arc, OnceLock};

use ogive_config::{
    Condition, Config, ContextWord, Http2Word, OnErrorWord, Selector, StageSelection,
};
use ogive_coprocessor::{ContextSelection, Coprocessor, CoprocessorOptions, Message, Stage};
use ogive_identity::CallerOptions;
use ogive_schema::{
    Schema,
    print::{Applied, PrintOptions, print},
};
use ogive_script::{Limits, Program, ProgramError, Scripts};
use ogive_transport::{CircuitBreaker, ClientTls, ClientTlsOptions, EndpointError, Http2};

use crate::{identify::caller_options::caller_options, schema::state::SchemaState};

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
}

/// One stage.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StageSettings {
    pub(crate) selection: StageSelection,
    pub(crate) condition: Option<Condition>,
    pub(crate) context: ContextSelection,
    /// The place of its URL in the options.
    pub(crate) url: usize,
}

impl StageSettings {
    /// Leaves of a message what is told.
    pub(crate) fn select<'m>(&self, message: &mut Message<'m>, sdl: Option<&'m str>) {
        let selection = &self.selection;
        message.headers = message.headers.filter(|_| selection.headers);
        message.body = message.body.filter(|_| selection.body);
        message.sdl = sdl.filter(|_| selection.sdl);
        message.path = message.path.filter(|_| selection.path);
        message.method = message.method.filter(|_| selection.method);
        message.uri = message.uri.filter(|_| selection.uri);
        message.service_name = message.service_name.filter(|_| selection.service_name);
        message.status_code = message.status_code.filter(|_| selection.status_code);
        let id = message.subgraph_request_id;
        message.subgraph_request_id = id.filter(|_| selection.subgraph_request_id);
    }
    /// Whether it is told an entry of the context, or judged by it.
    pub(crate) fn sees(&self, entry: &str) -> bool {
        let is = |selector: &&Selector| matches!(selector, Selector::RequestContext(name) if name == entry);
        self.context.shown(entry).is_some() || self.selectors().iter().any(is)
    }
    /// Whether it is told the body, or judged by it.
    pub(crate) fn looks_at_body(&self) -> bool {
        self.selection.body || self.selectors().contains(&&Selector::OnGraphqlError)
    }
    /// Whether it is judged by what the operation is.
    pub(crate) fn looks_at_operation(&self) -> bool {
        let operation = [Selector::OperationName, Selector::OperationKind];
        let selectors = self.selectors();
        operation.iter().any(|one| selectors.contains(&one))
    }
    fn selectors(&self) -> Vec<&Selector> {
        let condition = self.condition.as_ref();
        condition.map_or_else(Vec::new, Condition::selectors)
    }
}

impl CoprocessorSettings {
    /// The same with the scripts, which are read and tried. The error is for the operator.
    pub fn load(config: &Config) -> Result<Option<Self>, String> {
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
        Scripts::start(&program, String::new).map_err(told)?;
        let mut settings = Self::made(config).ok_or("`coprocessor` has an unknown stage")?;
        settings.program = Some(program);
        Ok(Some(settings))
    }

    /// What a configuration asks for; `None` if no stage tells anything. Reads no files, so there are no scripts.
    pub fn new(config: &Config) -> Option<Self> {
        Self::made(config).filter(|settings| !settings.options.urls.is_empty())
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
                condition: selection.condition.as_ref().map(|when| when.0.clone()),
                context: context_selection(&selection.context),
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
}

impl CoprocessorStages {
    /// Begins to ask.
    fn start(settings: CoprocessorSettings) -> Self {
        let http2 = settings.options.http2;
        let coprocessor = Coprocessor::new(settings.options.clone(), |endpoint| {
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
        }
    }
    /// What a stage is told; `None` if it is off.
    pub(crate) fn at(&self, stage: Stage) -> Option<&StageSettings> {
        self.settings.stages[stage as usize].as_ref()
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
        let mut selectors = settings.flat_map(StageSettings::selectors);
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
    sdl: OnceLock<String>,
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
            let started = Scripts::start(program, move || sdl(&state.supergraph.api));
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
    /// The schema that clients see; made when it is told for the first time.
    pub(crate) fn sdl(&self, api: &Schema) -> &str {
        self.sdl.get_or_init(|| sdl(api))
    }
}

fn sdl(api: &Schema) -> String {
    let options = PrintOptions {
        applied: Applied::Specified,
        ..PrintOptions::default()
    };
    print(api, &options)
}
