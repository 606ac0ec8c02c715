//! Instances of one component: started when none waits, kept for the next call, and thrown away after one that failed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use wasmtime::{
    Store, Trap,
    component::{
        Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower,
        TypedFunc,
    },
};

use super::{
    decide::{PolicyQuestion, Verdict},
    engine::{Machine, machine, ticks},
    error::bounded,
    host::{Lent, Settings},
    options::{ComponentOptions, Decision, Limits, hook_name},
    outgoing::Sender,
    verdict::{TextVerdict, key},
};
use crate::{CallError, CallMode, Exchange, Stage, worker_time::TURN};

/// A hook, as it is exported.
type Handle = TypedFunc<(), (Result<(), String>,)>;

/// The hook that says who asks.
type AuthenticateHandle = TypedFunc<(), (Result<TextVerdict, String>,)>;
/// The hook that says which policies hold.
type PoliciesHandle = TypedFunc<(Texts, String, Texts, String), (Result<Texts, String>,)>;
type Texts = Vec<String>;
/// The hook that says what an operation is counted by.
type RateKeyHandle = TypedFunc<(), (Result<Option<String>, String>,)>;

/// The version of the package that hooks are looked for in; earlier and later ones of the same major version are found, too.
const VERSION: &str = "1.1.0";

/// Bytes that one call of an import is given for each millisecond of a call's time.
const COPIED_PER_MS: usize = 128 << 10;

/// Fuel of a call in a worker: about a millisecond.
const TURN_FUEL: u64 = 2_000_000;

/// Most bytes that are taken over of what is said where something is decided: a text that a list has a thousand times is
/// counted a thousand times.
const SAID_BYTES_MAX: usize = 1 << 20;

/// An instance between two calls.
struct Idle {
    store: Store<Lent>,
    hooks: Hooks,
    /// What one call of what it imports may have copied, at stages.
    copied_max: usize,
}

/// What an instance has that can be called.
#[derive(Default)]
struct Hooks {
    stages: [Option<Handle>; Stage::ALL.len()],
    authenticate: Option<AuthenticateHandle>,
    policies: Option<PoliciesHandle>,
    rate_key: Option<RateKeyHandle>,
}

/// What came of a call, and how long it took; or why there was none.
pub(crate) type CallResult<T> = Result<(Result<T, CallError>, Duration), CallError>;

/// The instances of one component.
pub(crate) struct Pool {
    machine: &'static Machine,
    /// Keeps what is compiled known to the machine.
    _component: Arc<Component>,
    instances: InstancePre<Lent>,
    exports: [Option<ComponentExportIndex>; Stage::ALL.len()],
    /// What it decides.
    decides: [Option<ComponentExportIndex>; Decision::ALL.len()],
    settings: Arc<Settings>,
    /// Whether it imports what sends requests to other hosts.
    sends_requests: bool,
    limits: Limits,
    idle: Mutex<Vec<Idle>>,
    /// All of them, those under way included.
    count: AtomicUsize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// Components are compiled to machine code when they are loaded.
const NOT_EXECUTABLE: &str = "the system does not let this process make memory executable, which every component needs: remove \
     `MemoryDenyWriteExecute=yes` from the systemd unit and its drop-ins, or whatever else denies it";

/// Whether the engine could not make what it compiled executable.
fn is_denied(error: &wasmtime::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| cause.to_string().contains("memory executable"))
}

impl Pool {
    /// Compiles a component and starts one instance. Also at which stages it is called: those that are named, or else all
    /// that it has hooks for.
    pub(crate) fn start(
        options: &ComponentOptions,
        bytes: &[u8],
        sender: Option<Arc<dyn Sender>>,
    ) -> Result<(Self, Vec<Stage>), String> {
        let machine = machine()?;
        if !bytes.starts_with(b"\0asm") {
            return Err("its file is no WebAssembly".to_owned());
        }
        let component = machine.compile(bytes).map_err(|error| {
            if is_denied(&error) {
                return NOT_EXECUTABLE.to_owned();
            }
            format!("it is no component that can be compiled: {}", shown(&error))
        })?;
        let instances = machine.linker.instantiate_pre(&component);
        let instances = instances
            .map_err(|error| format!("it imports what is not offered: {}", shown(&error)))?;
        let sends_requests = imports_http(machine, &component);
        if sends_requests && options.permissions.hosts.is_empty() {
            return Err(format!(
                "it imports `{HTTP}`, and `permissions.hosts` names no host"
            ));
        }
        let decides = decisions(&component, &options.decides)?;
        let exports = Stage::ALL.map(|stage| (stage, exported(&component, hook_name(stage))));
        let is_wanted = |stage: &Stage| options.stages.is_empty() || options.stages.contains(stage);
        let mut found: [Option<ComponentExportIndex>; Stage::ALL.len()] = Default::default();
        let mut stages = Vec::new();
        for (stage, export) in exports {
            if export.is_some() && is_wanted(&stage) {
                stages.push(stage);
                found[stage as usize] = export;
            }
        }
        let mut missing = options.stages.iter().chain(&options.bodies);
        if let Some(missing) = missing.find(|stage| !stages.contains(stage)) {
            let name = hook_name(*missing);
            return Err(format!(
                "it exports no `ogive:hooks/{name}@{VERSION}`, or that is not among its `stages`"
            ));
        }
        if stages.is_empty() && options.decides.is_empty() {
            return Err(never_called(&component));
        }
        let pool = Pool {
            machine,
            _component: component,
            instances,
            exports: found,
            decides,
            settings: Arc::new(Settings::of(options, sender)),
            sends_requests,
            limits: options.limits,
            idle: Mutex::default(),
            count: AtomicUsize::new(0),
        };
        let first = pool.instance().map_err(|error| error.to_string())?;
        pool.count.store(1, Ordering::Relaxed);
        pool.put_back(first);
        Ok((pool, stages))
    }

    /// Whether calls may wait for other hosts.
    pub(crate) fn sends_requests(&self) -> bool {
        self.sends_requests
    }

    /// A new instance.
    fn instance(&self) -> Result<Idle, CallError> {
        let lent = Lent::new(Arc::clone(&self.settings), self.limits.memory);
        let mut store = Store::new(&self.machine.engine, lent);
        store.limiter(|lent| lent);
        let _under_way = self.begin(&mut store, CallMode::Whole);
        let instance = self.instances.instantiate(&mut store);
        let instance = instance.map_err(|error| why(&error, &store, self.limits))?;
        let mut hooks = Hooks::default();
        for (export, hook) in self.exports.iter().zip(&mut hooks.stages) {
            *hook = found(&instance, &mut store, export.as_ref())?;
        }
        let [authenticate, policies, rate_key] = &self.decides;
        hooks.authenticate = found(&instance, &mut store, authenticate.as_ref())?;
        hooks.policies = found(&instance, &mut store, policies.as_ref())?;
        hooks.rate_key = found(&instance, &mut store, rate_key.as_ref())?;
        Ok(Idle {
            // What is longer than its memory says the same again and again.
            copied_max: store
                .hostcall_fuel()
                .min(self.limits.memory)
                .min(copied_within(self.limits.time)),
            store,
            hooks,
        })
    }

    /// Lets the limits of a call begin.
    fn begin(
        &self,
        store: &mut Store<Lent>,
        mode: CallMode,
    ) -> crate::components::engine::Running<'static> {
        let (fuel, time) = match mode {
            CallMode::Turn => (self.limits.fuel.min(TURN_FUEL), self.limits.time.min(TURN)),
            CallMode::Whole => (self.limits.fuel, self.limits.time),
        };
        // Fuel is on, so that there is no error.
        let _ = store.set_fuel(fuel);
        store.set_epoch_deadline(ticks(time));
        self.machine.enter()
    }
    /// Whether a call has ended because its turn is over, and may go on for longer elsewhere.
    fn is_unfinished(&self, error: &wasmtime::Error, mode: CallMode) -> bool {
        mode == CallMode::Turn
            && match error.downcast_ref::<Trap>() {
                Some(Trap::OutOfFuel) => self.limits.fuel > TURN_FUEL,
                Some(Trap::Interrupt) => self.limits.time > TURN,
                _ => false,
            }
    }

    fn take(&self) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop()
    }

    fn put_back(&self, instance: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(instance);
    }

    /// An instance for a call: the one that was used last, or a new one if there may be more.
    fn lend(&self) -> Result<Idle, CallError> {
        if let Some(idle) = self.take() {
            return Ok(idle);
        }
        let max = self.limits.instances;
        let more = |count: usize| (count < max).then_some(count + 1);
        let counted = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if counted.is_err() {
            return Err(CallError::Busy(max));
        }
        let instance = self.instance();
        if instance.is_err() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        instance
    }

    /// Calls the hook of the exchange's stage.
    pub(crate) fn call(&self, exchange: &mut Exchange, mode: CallMode) -> CallResult<()> {
        let stage = exchange.stage;
        self.run(exchange, (mode, false), |hooks, store| {
            let hook = hooks.stages[stage as usize].as_ref();
            hook.map_or(Ok(Ok(())), |hook| Ok(hook.call(store, ())?.0))
        })
    }

    /// Asks who asks.
    pub(crate) fn authenticate(
        &self,
        exchange: &mut Exchange,
        mode: CallMode,
    ) -> CallResult<Verdict> {
        let called = self.decide(exchange, mode, |hooks, store| {
            let hook = hooks.authenticate.as_ref();
            let unknown = Ok(Ok(TextVerdict::Unknown));
            hook.map_or(unknown, |hook| Ok(hook.call(store, ())?.0))
        });
        usable(called, TextVerdict::read)
    }

    /// Asks which policies hold.
    pub(crate) fn policies(
        &self,
        exchange: &mut Exchange,
        question: &PolicyQuestion,
        mode: CallMode,
    ) -> CallResult<Texts> {
        self.decide(exchange, mode, |hooks, store| {
            let PolicyQuestion {
                policies,
                kind,
                scopes,
                claims,
            } = question.clone();
            let asked = (policies, kind, scopes, claims);
            let hook = hooks.policies.as_ref();
            hook.map_or(Ok(Ok(Texts::new())), |hook| Ok(hook.call(store, asked)?.0))
        })
    }

    /// Asks what an operation is counted by.
    pub(crate) fn rate_key(
        &self,
        exchange: &mut Exchange,
        mode: CallMode,
    ) -> CallResult<Option<String>> {
        let called = self.decide(exchange, mode, |hooks, store| {
            let hook = hooks.rate_key.as_ref();
            hook.map_or(Ok(Ok(None)), |hook| Ok(hook.call(store, ())?.0))
        });
        usable(called, key)
    }

    /// A call that says something, of which not more is taken over than is of use.
    fn decide<T>(
        &self,
        exchange: &mut Exchange,
        mode: CallMode,
        call: impl FnOnce(&Hooks, &mut Store<Lent>) -> wasmtime::Result<Result<T, String>>,
    ) -> CallResult<T> {
        self.run(exchange, (mode, true), |hooks, store| {
            store.set_hostcall_fuel(SAID_BYTES_MAX);
            call(hooks, store)
        })
    }

    /// A call, with what it is lent.
    fn run<T>(
        &self,
        exchange: &mut Exchange,
        (mode, is_read_only): (CallMode, bool),
        call: impl FnOnce(&Hooks, &mut Store<Lent>) -> wasmtime::Result<Result<T, String>>,
    ) -> CallResult<T> {
        let mut instance = self.lend()?;
        let store = &mut instance.store;
        store.data_mut().begin(exchange, is_read_only);
        let started = Instant::now();
        let called = {
            let _under_way = self.begin(store, mode);
            store.set_hostcall_fuel(instance.copied_max);
            call(&instance.hooks, store)
        };
        let took = started.elapsed();
        let is_whole = called.is_ok();
        let outcome = match called {
            Ok(Ok(said)) => Ok(said),
            Ok(Err(reason)) => Err(CallError::Failed(bounded(&reason))),
            Err(error) if self.is_unfinished(&error, mode) => Err(CallError::Unfinished),
            Err(error) => Err(why(&error, store, self.limits)),
        };
        // What a call that is made again has said is said then.
        let is_over = !matches!(outcome, Err(CallError::Unfinished));
        let ends = store.data_mut().end(exchange, is_over);
        let outcome = outcome.map_err(|error| {
            if ends && is_over {
                CallError::Ending(Box::new(error))
            } else {
                error
            }
        });
        if is_whole {
            self.put_back(instance);
        } else {
            // Whatever state it is in, nobody sees it again.
            drop(instance);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok((outcome, took))
    }
}

/// How much one call of an import may be given within the time of a call: reading it cannot be stopped.
fn copied_within(time: Duration) -> usize {
    let milliseconds = usize::try_from(time.as_millis()).unwrap_or(usize::MAX);
    milliseconds
        .saturating_mul(COPIED_PER_MS)
        .max(SAID_BYTES_MAX)
}

/// The interface for requests to other hosts.
const HTTP: &str = "ogive:hooks/http";

/// Whether a component imports that, in whichever version.
fn imports_http(machine: &Machine, component: &Component) -> bool {
    let kind = component.component_type();
    let mut imports = kind.imports(&machine.engine);
    imports.any(|(name, _)| name.split('@').next() == Some(HTTP))
}

/// What was said, if it can be used.
fn usable<T, U>(
    called: CallResult<T>,
    read: impl FnOnce(T) -> Result<U, CallError>,
) -> CallResult<U> {
    let (outcome, took) = called?;
    Ok((outcome.and_then(read), took))
}

/// A hook of an instance, if it is called.
fn found<P, R>(
    instance: &Instance,
    store: &mut Store<Lent>,
    export: Option<&ComponentExportIndex>,
) -> Result<Option<TypedFunc<P, R>>, CallError>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    let Some(export) = export else {
        return Ok(None);
    };
    let found = instance.get_typed_func(store, export);
    Ok(Some(
        found.map_err(|error| CallError::Trapped(shown(&error)))?,
    ))
}

/// The hooks of what a component is to decide.
fn decisions(
    component: &Component,
    wanted: &[Decision],
) -> Result<[Option<ComponentExportIndex>; Decision::ALL.len()], String> {
    let mut found: [Option<ComponentExportIndex>; Decision::ALL.len()] = Default::default();
    for decision in wanted {
        let name = decision.hook_name();
        let export = exported(component, name);
        found[*decision as usize] = Some(export.ok_or_else(|| {
            format!(
                "it exports no `ogive:hooks/{name}@{VERSION}`, for which the configuration names it"
            )
        })?);
    }
    Ok(found)
}

/// Why a component would never be called.
fn never_called(component: &Component) -> String {
    let mut decisions = Decision::ALL.into_iter().map(Decision::hook_name);
    match decisions.find(|name| exported(component, name).is_some()) {
        Some(name) => format!(
            "it exports `ogive:hooks/{name}@{VERSION}`, and the configuration names it nowhere where that is decided"
        ),
        None => {
            format!(
                "it exports no interface of `ogive:hooks@{VERSION}`, so it would never be called"
            )
        }
    }
}

/// The hook of an interface, if a component has it.
fn exported(component: &Component, name: &str) -> Option<ComponentExportIndex> {
    let interface = format!("ogive:hooks/{name}@{VERSION}");
    let interface = component.get_export_index(None, &*interface)?;
    component.get_export_index(Some(&interface), "handle")
}

/// What went wrong with a call.
fn why(error: &wasmtime::Error, store: &Store<Lent>, limits: Limits) -> CallError {
    if let Some(error) = error.downcast_ref::<CallError>() {
        return error.clone();
    }
    if store.data().memory_is_refused() {
        let most = limits.memory;
        return CallError::Limit(format!("more than {most} bytes of memory"));
    }
    if is_too_much(error) {
        let most = store.hostcall_fuel();
        return CallError::Limit(format!("more than {most} bytes of what it says"));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => CallError::Limit(format!("more than {} of fuel", limits.fuel)),
        Some(Trap::Interrupt) => CallError::Limit(format!("longer than {:?}", limits.time)),
        Some(Trap::StackOverflow) => CallError::Limit("its stack is full".to_owned()),
        Some(trap) => CallError::Trapped(trap.to_string()),
        None => CallError::Trapped(shown(error)),
    }
}

/// Whether an engine refuses to copy so much. Its error has no type that others see.
fn is_too_much(error: &wasmtime::Error) -> bool {
    format!("{error:#}").contains("too much data is being copied")
}

/// An error in one line, the cause included.
fn shown(error: &wasmtime::Error) -> String {
    bounded(&format!("{error:#}"))
}
