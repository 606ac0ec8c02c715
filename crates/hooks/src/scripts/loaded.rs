//! What scripts have registered, and calling it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::Instant,
};

use http::StatusCode;
use ogive_failure::codes;
use rhai::{
    CallFnOptions, Dynamic, Engine, EvalAltResult, FnPtr, Map, Scope,
    module_resolvers::StaticModuleResolver,
};

use super::{
    ProgramError,
    exchange::{Lent, LentExchange},
    modules::LogLines,
    objects::Message,
    program::{Deadline, Program, TimeOver, engine, within},
    values::{self, to_json},
};
use crate::{
    Body, Break, CallError, CallMode, Exchange, HookEngine, Stage, WorkerTime, entries,
    worker_time::TURN,
};

/// What is called at one place; those that come first run first.
#[derive(Debug, Default)]
struct Hook {
    calls: Vec<Call>,
    turns: WorkerTime,
}

/// A function that is called.
#[derive(Debug)]
struct Call {
    function: FnPtr,
    /// Whether it is one of the main script; looking for it costs as much as calling it.
    is_of_script: bool,
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
    /// Runs the entry points. `sdl` gives the supergraph schema, when a script asks for it.
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
        let deadline = Deadline {
            limit: Instant::now() + self.program.limits.time,
            turn: None,
        };
        let called = within(deadline, || {
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
        let call = |function: FnPtr| {
            let mut known = self.program.ast.iter_functions();
            let is_of_script = known.any(|known| known.name == function.fn_name());
            Call {
                function,
                is_of_script,
            }
        };
        let hook = |functions: Vec<FnPtr>| {
            (!functions.is_empty()).then(|| {
                Arc::new(Hook {
                    calls: functions.into_iter().map(call).collect(),
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

    /// What is called at the stage of an exchange.
    fn hook(&self, exchange: &Exchange) -> Result<Option<Arc<Hook>>, ProgramError> {
        let stage = exchange.stage;
        let pair = match stage {
            Stage::RouterRequest | Stage::RouterResponse => &self.router,
            Stage::SupergraphRequest | Stage::SupergraphResponse => &self.supergraph,
            Stage::ExecutionRequest | Stage::ExecutionResponse => &self.execution,
            Stage::SubgraphRequest | Stage::SubgraphResponse => {
                let name = exchange.subgraph.as_deref().unwrap_or_default();
                return Ok(self.subgraph(name)?.of(stage).cloned());
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
    fn run(&self, call: &Call, message: Message) -> Result<Dynamic, Box<EvalAltResult>> {
        let (ast, function) = (&self.program.ast, &call.function);
        if !call.is_of_script {
            return function.call(&self.engine, ast, (message,));
        }
        let name = function.fn_name();
        let mut arguments = function.curry().to_vec();
        arguments.push(Dynamic::from(message));
        let options = CallFnOptions::new().eval_ast(self.has_statements);
        let mut scope = Scope::new();
        self.engine
            .call_fn_with_options(options, &mut scope, ast, name, arguments)
    }

    /// Calls the functions of a hook, until one ends the request. Also when that was.
    fn call_all(
        &self,
        hook: &Hook,
        lent: &Lent,
        (started, mode): (Instant, CallMode),
    ) -> (Result<Option<Break>, CallError>, Instant) {
        let time = self.program.limits.time;
        // What may take no longer than a turn anyway ends by its limit.
        let has_turn = mode == CallMode::Turn && time > TURN;
        let turn = has_turn.then(|| started + TURN);
        let mut begun = started;
        for call in &hook.calls {
            let message = Message(lent.clone());
            let limit = begun + time;
            let called = within(Deadline { limit, turn }, || self.run(call, message));
            let now = Instant::now();
            if let Err(error) = called {
                return (thrown(*error), now);
            }
            // A single operation may take longer than all.
            if now > limit {
                let why = "its time is over".to_owned();
                return (Err(CallError::Limit(why)), now);
            }
            begun = now;
        }
        (Ok(None), begun)
    }
}

impl HookEngine for Scripts {
    fn mode(&self, exchange: &Exchange) -> Option<CallMode> {
        match self.hook(exchange) {
            Ok(hook) => hook.map(|hook| hook.turns.mode()),
            // The call fails for that.
            Err(_) => Some(CallMode::Turn),
        }
    }

    fn call(&self, exchange: Exchange, mode: CallMode) -> Result<Exchange, CallError> {
        let hook = self.hook(&exchange);
        let Some(hook) = hook.map_err(|error| CallError::Failed(error.0))? else {
            return Ok(exchange);
        };
        let stage = exchange.stage;
        let lent = Lent(Arc::new(Mutex::new(LentExchange::new(exchange))));
        let lines = (mode == CallMode::Turn).then(LogLines::hold);
        let started = Instant::now();
        let (called, ended) = self.call_all(&hook, &lent, (started, mode));
        if let Some(lines) = lines {
            hook.turns.note(ended - started);
            if called != Err(CallError::Unfinished) {
                lines.write();
            }
        }
        let left = match Arc::try_unwrap(lent.0) {
            Ok(left) => left.into_inner().unwrap_or_else(PoisonError::into_inner),
            // A script may keep a handle for longer. It has nothing of this request then.
            Err(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut *kept, LentExchange::new(Exchange::new(stage)))
            }
        };
        let mut exchange = left.into_exchange();
        exchange.changes.ending = called?.map(Box::new);
        Ok(exchange)
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
fn thrown(error: EvalAltResult) -> Result<Option<Break>, CallError> {
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

fn thrown_of(error: EvalAltResult, text: String) -> Result<Option<Break>, CallError> {
    match error {
        EvalAltResult::ErrorRuntime(value, _) => match value.try_cast::<Map>() {
            Some(map) => ended(&map).map(Some).ok_or(CallError::Failed(text)),
            None => Err(CallError::Failed(text)),
        },
        EvalAltResult::ErrorTerminated(token, _) if token.is::<TimeOver>() => {
            Err(CallError::Unfinished)
        }
        EvalAltResult::ErrorTooManyOperations(_)
        | EvalAltResult::ErrorTooManyVariables(_)
        | EvalAltResult::ErrorTooManyModules(_)
        | EvalAltResult::ErrorStackOverflow(_)
        | EvalAltResult::ErrorDataTooLarge(..)
        | EvalAltResult::ErrorTerminated(..) => Err(CallError::Limit(text)),
        _ => Err(CallError::Failed(text)),
    }
}

/// `#{ status, message, body }`.
fn ended(map: &Map) -> Option<Break> {
    let status = match map.get("status") {
        None => StatusCode::INTERNAL_SERVER_ERROR,
        Some(status) => {
            let code = status.as_int().ok();
            let code = code.or_else(|| {
                let status = status.clone().try_cast::<values::Status>();
                status.map(|status| i64::from(status.0))
            });
            let code = u16::try_from(code?).ok();
            StatusCode::from_u16(code.filter(|code| (200..600).contains(code))?).ok()?
        }
    };
    let code = codes::SCRIPT_BREAK;
    let body = match map.get("body").filter(|body| !body.is_unit()) {
        Some(body) => Body::Json(to_json(body).ok()?.into()),
        None => match map.get("message") {
            Some(message) => Body::error(&message.to_string(), code),
            None => Body::of_status(status, code),
        },
    };
    Some(Break {
        status,
        headers: None,
        body: Some(body),
        code,
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
