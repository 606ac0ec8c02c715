//! What scripts have registered, and calling it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use ogive_coprocessor::{Stage, entries};
use rhai::{
    CallFnOptions, Dynamic, Engine, EvalAltResult, FnPtr, Map, Scope,
    module_resolvers::StaticModuleResolver,
};

use crate::{
    ProgramError, ScriptError,
    exchange::{Exchange, Lent},
    objects::Message,
    program::{Program, engine, within},
    values::to_json,
};

/// From how long a time on a call is one that others should not wait for.
const LONG: Duration = Duration::from_millis(1);
/// After so many of them in a row a hook is called beside the worker.
const LONG_CALLS: u32 = 3;

/// What is called at one place; those that come first run first.
#[derive(Debug, Default)]
pub struct Hook {
    calls: Vec<FnPtr>,
    /// Whether a call took long.
    long_calls: AtomicU32,
}

impl Hook {
    /// Whether its calls should run where nobody waits for them.
    pub fn is_long(&self) -> bool {
        self.long_calls.load(Ordering::Relaxed) >= LONG_CALLS
    }
}

/// How a script ended a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The status of the response.
    pub status: u16,
    /// What it says.
    pub message: Option<String>,
    /// Its body, a JSON text.
    pub body: Option<Bytes>,
}

/// What an entry point registers.
#[derive(Clone, Debug, Default)]
struct Service(Arc<Mutex<(Vec<FnPtr>, Vec<FnPtr>)>>);

/// Hooks around one service.
#[derive(Debug, Default)]
struct Pair {
    request: Option<Arc<Hook>>,
    response: Option<Arc<Hook>>,
}

/// The scripts of a configuration under one schema.
pub struct Scripts {
    engine: Engine,
    program: Program,
    router: Pair,
    supergraph: Pair,
    execution: Pair,
    /// By subgraph; filled when one is asked for the first time.
    subgraphs: RwLock<BTreeMap<Box<str>, Arc<Pair>>>,
    has_subgraphs: bool,
    looks_at_bodies: bool,
    /// Whether anything stands outside of functions.
    has_statements: bool,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripts").finish_non_exhaustive()
    }
}

impl Scripts {
    /// Runs the entry points. `sdl` gives the schema that clients see, when a script asks for it.
    pub fn start(
        program: &Program,
        sdl: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Self, ProgramError> {
        let mut engine = engine(program.limits);
        engine
            .register_type_with_name::<Service>("Service")
            .register_fn("map_request", |service: &mut Service, call: FnPtr| {
                // What is registered later stands around what is there.
                service
                    .0
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
                    .insert(0, call);
            })
            .register_fn("map_response", |service: &mut Service, call: FnPtr| {
                service
                    .0
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .1
                    .push(call);
            });
        constants(&mut engine, sdl);
        // What scripts import was read with them; nothing is read any more.
        if let Some(resolver) = program.ast.resolver() {
            engine.set_module_resolver(StaticModuleResolver::clone(resolver));
        }
        let has_subgraphs = program.is_at_subgraphs();
        let mut scripts = Scripts {
            router: Pair::default(),
            supergraph: Pair::default(),
            execution: Pair::default(),
            subgraphs: RwLock::default(),
            has_subgraphs,
            has_statements: !program.ast.statements().is_empty(),
            looks_at_bodies: program.mentions("body") || program.mentions("on_graphql"),
            program: program.clone(),
            engine,
        };
        if program.has_entry("router_service", 1) {
            scripts.router = scripts.entered("router_service", None)?;
        }
        if program.has_entry("supergraph_service", 1) {
            scripts.supergraph = scripts.entered("supergraph_service", None)?;
        }
        if program.has_entry("execution_service", 1) {
            scripts.execution = scripts.entered("execution_service", None)?;
        }
        if has_subgraphs {
            // What is wrong with it is known now, whatever subgraphs there are.
            scripts.entered("subgraph_service", Some(""))?;
        }
        Ok(scripts)
    }

    /// Runs the entry point of these subgraphs, so that what is wrong with it is known before anybody is served.
    pub fn enter<'n>(
        &self,
        mut subgraphs: impl Iterator<Item = &'n str>,
    ) -> Result<(), ProgramError> {
        subgraphs.try_for_each(|name| self.subgraph(name).map(|_| ()))
    }

    /// What an entry point registers.
    fn entered(&self, name: &str, subgraph: Option<&str>) -> Result<Pair, ProgramError> {
        let service = Service::default();
        let mut arguments = vec![Dynamic::from(service.clone())];
        arguments.extend(subgraph.map(|name| name.to_owned().into()));
        let options = CallFnOptions::new().eval_ast(true).rewind_scope(false);
        let (ast, mut scope) = (&self.program.ast, Scope::new());
        let called = within(self.program.limits.time, || {
            self.engine
                .call_fn_with_options::<Dynamic>(options, &mut scope, ast, name, arguments)
        });
        if let Err(error) = called {
            let at = subgraph.filter(|name| !name.is_empty());
            let at = at.map_or_else(String::new, |name| format!(" for the subgraph `{name}`"));
            let why = format!("`{name}` of the scripts failed{at}: {error}");
            return Err(ProgramError(why));
        }
        let (request, response) =
            std::mem::take(&mut *service.0.lock().unwrap_or_else(PoisonError::into_inner));
        let hook = |calls: Vec<FnPtr>| {
            (!calls.is_empty()).then(|| {
                Arc::new(Hook {
                    calls,
                    ..Hook::default()
                })
            })
        };
        Ok(Pair {
            request: hook(request),
            response: hook(response),
        })
    }

    /// Whether anything may be called at a stage.
    pub fn has(&self, stage: Stage) -> bool {
        let pair = match stage {
            Stage::RouterRequest | Stage::RouterResponse => &self.router,
            Stage::SupergraphRequest | Stage::SupergraphResponse => &self.supergraph,
            Stage::ExecutionRequest | Stage::ExecutionResponse => &self.execution,
            Stage::SubgraphRequest | Stage::SubgraphResponse => return self.has_subgraphs,
        };
        pair.of(stage).is_some()
    }

    /// Whether a script looks at bodies.
    pub fn looks_at_bodies(&self) -> bool {
        self.looks_at_bodies
    }

    /// What is called at a stage.
    pub fn hook(&self, stage: Stage, subgraph: &str) -> Result<Option<Arc<Hook>>, ProgramError> {
        let pair = match stage {
            Stage::RouterRequest | Stage::RouterResponse => &self.router,
            Stage::SupergraphRequest | Stage::SupergraphResponse => &self.supergraph,
            Stage::ExecutionRequest | Stage::ExecutionResponse => &self.execution,
            Stage::SubgraphRequest | Stage::SubgraphResponse => {
                return Ok(self.subgraph(subgraph)?.of(stage).cloned());
            }
        };
        Ok(pair.of(stage).cloned())
    }

    fn subgraph(&self, name: &str) -> Result<Arc<Pair>, ProgramError> {
        if !self.has_subgraphs {
            return Ok(Arc::default());
        }
        let known = self
            .subgraphs
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = known.get(name) {
            return Ok(Arc::clone(pair));
        }
        drop(known);
        let pair = Arc::new(self.entered("subgraph_service", Some(name))?);
        let mut known = self
            .subgraphs
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(name.into(), Arc::clone(&pair));
        Ok(pair)
    }

    /// Calls one function. What stands outside of functions is run before, because they see imports and constants of it.
    fn run(&self, call: &FnPtr, message: Message) -> Result<Dynamic, Box<EvalAltResult>> {
        let (ast, name) = (&self.program.ast, call.fn_name());
        if !ast.iter_functions().any(|function| function.name == name) {
            return call.call(&self.engine, ast, (message,));
        }
        let mut arguments = call.curry().to_vec();
        arguments.push(Dynamic::from(message));
        let options = CallFnOptions::new().eval_ast(self.has_statements);
        let mut scope = Scope::new();
        self.engine
            .call_fn_with_options(options, &mut scope, ast, name, arguments)
    }

    /// Calls a hook. What it has made of the exchange is given back also if it ends the request.
    pub fn call(
        &self,
        hook: &Hook,
        exchange: Exchange,
    ) -> (Exchange, Result<Option<Outcome>, ScriptError>) {
        let started = Instant::now();
        let lent = Lent(Arc::new(Mutex::new(exchange)));
        let mut outcome = Ok(None);
        for call in &hook.calls {
            let message = Message(lent.clone());
            let time = self.program.limits.time;
            let begun = Instant::now();
            let called = within(time, || self.run(call, message));
            if let Err(error) = called {
                outcome = thrown(*error);
                break;
            }
            // A single operation may take longer than all.
            if begun.elapsed() > time {
                outcome = Err(ScriptError::Limit("its time is over".to_owned()));
                break;
            }
        }
        // A thread that had to wait its turn has not worked longer: only several calls in a row say something.
        if started.elapsed() < LONG {
            hook.long_calls.store(0, Ordering::Relaxed);
        } else {
            hook.long_calls.fetch_add(1, Ordering::Relaxed);
        }
        // A script may keep a handle for longer; what it does with that is nobody's any more.
        let stage = lent.0.lock().unwrap_or_else(PoisonError::into_inner).stage;
        let exchange = match Arc::try_unwrap(lent.0) {
            Ok(exchange) => exchange
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
            Err(shared) => {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut *kept, Exchange::new(stage))
            }
        };
        (exchange, outcome)
    }
}

impl Pair {
    fn of(&self, stage: Stage) -> Option<&Arc<Hook>> {
        if stage.is_response() {
            self.response.as_ref()
        } else {
            self.request.as_ref()
        }
    }
}

/// What a script has thrown, or what went wrong.
fn thrown(error: EvalAltResult) -> Result<Option<Outcome>, ScriptError> {
    let text = error.to_string();
    let mut error = error;
    loop {
        error = match error {
            EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
            | EvalAltResult::ErrorInModule(_, inner, _) => *inner,
            error => break thrown_of(error, text),
        };
    }
}

fn thrown_of(error: EvalAltResult, text: String) -> Result<Option<Outcome>, ScriptError> {
    match error {
        EvalAltResult::ErrorRuntime(value, _) => match value.try_cast::<Map>() {
            Some(map) => ended(&map).map(Some).ok_or(ScriptError::Failed(text)),
            None => Err(ScriptError::Failed(text)),
        },
        EvalAltResult::ErrorTooManyOperations(_)
        | EvalAltResult::ErrorTooManyVariables(_)
        | EvalAltResult::ErrorTooManyModules(_)
        | EvalAltResult::ErrorStackOverflow(_)
        | EvalAltResult::ErrorDataTooLarge(..)
        | EvalAltResult::ErrorTerminated(..) => Err(ScriptError::Limit(text)),
        _ => Err(ScriptError::Failed(text)),
    }
}

/// `#{ status, message, body }`.
fn ended(map: &Map) -> Option<Outcome> {
    let status = match map.get("status") {
        None => 500,
        Some(status) => {
            let code = status.as_int().ok();
            let code = code.or_else(|| {
                let status = status.clone().try_cast::<crate::values::Status>();
                status.map(|status| i64::from(status.0))
            });
            u16::try_from(code?)
                .ok()
                .filter(|code| (200..600).contains(code))?
        }
    };
    let body = map.get("body").filter(|body| !body.is_unit());
    let body = body.map(|body| to_json(body).ok().map(Bytes::from));
    let body = match body {
        Some(None) => return None,
        Some(Some(json)) => Some(json),
        None => None,
    };
    let message = map.get("message").map(Dynamic::to_string);
    Some(Outcome {
        status,
        message,
        body,
    })
}

/// `Router.APOLLO_SDL` and its like, wherever a script is.
fn constants(engine: &mut Engine, sdl: impl Fn() -> String + Send + Sync + 'static) {
    let router: OnceLock<Dynamic> = OnceLock::new();
    let started = Instant::now();
    let make = move || {
        let mut map = Map::new();
        map.insert("APOLLO_SDL".into(), sdl().into());
        map.insert("APOLLO_START".into(), Dynamic::from(started));
        for (name, entry) in ROUTER {
            map.insert(name.into(), entry.into());
        }
        Dynamic::from(map).into_read_only()
    };
    #[expect(
        deprecated,
        reason = "its authors call it volatile, and there is no other way"
    )]
    engine.on_var(move |name, _, _| {
        Ok((name == "Router").then(|| router.get_or_init(&make).clone()))
    });
}

/// Members of `Router` that are names of entries of the context.
pub(crate) const ROUTER: [(&str, &str); 8] = [
    ("APOLLO_AUTHENTICATION_JWT_CLAIMS", entries::JWT_CLAIMS),
    (
        "APOLLO_AUTHORIZATION_POLICIES_REQUIRED",
        entries::REQUIRED_POLICIES,
    ),
    ("APOLLO_OPERATION_ID", "apollo::supergraph::operation_id"),
    (
        "APOLLO_SUBSCRIPTION_WS_CUSTOM_CONNECTION_PARAMS",
        "apollo::subscriptions::websocket_connection_params",
    ),
    (
        "APOLLO_COST_ESTIMATED_KEY",
        "apollo::demand_control::estimated_cost",
    ),
    (
        "APOLLO_COST_ACTUAL_KEY",
        "apollo::demand_control::actual_cost",
    ),
    (
        "APOLLO_COST_STRATEGY_KEY",
        "apollo::demand_control::strategy",
    ),
    ("APOLLO_COST_RESULT_KEY", "apollo::demand_control::result"),
];
