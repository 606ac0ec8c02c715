//! Instances of one component: started when none waits, kept for the next call, and thrown away after one that failed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_coprocessor::Stage;
use wasmtime::{
    Store, Trap,
    component::{Component, ComponentExportIndex, InstancePre, TypedFunc},
};

use crate::{
    CallError,
    engine::{Machine, machine, ticks},
    exchange::{Changes, Exchange},
    host::{Lent, Settings},
    options::{Limits, PluginOptions, hook_name},
    outgoing::Sender,
};

/// A hook, as it is exported.
type Handle = TypedFunc<(), (Result<(), String>,)>;

/// The version of the package that hooks are looked for in; later ones of the same major version are found, too.
const VERSION: &str = "1.0.0";

/// An instance between two calls.
struct Idle {
    store: Store<Lent>,
    hooks: [Option<Handle>; Stage::ALL.len()],
}

/// The instances of one component.
pub(crate) struct Pool {
    machine: &'static Machine,
    /// Keeps what is compiled known to the machine.
    _component: Arc<Component>,
    instances: InstancePre<Lent>,
    exports: [Option<ComponentExportIndex>; Stage::ALL.len()],
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

impl Pool {
    /// Compiles a component and starts one instance. Also at which stages it is called: those that are named, or else all
    /// that it has hooks for.
    pub(crate) fn start(
        options: &PluginOptions,
        bytes: &[u8],
        sender: Option<Arc<dyn Sender>>,
    ) -> Result<(Self, Vec<Stage>), String> {
        let machine = machine()?;
        if !bytes.starts_with(b"\0asm") {
            return Err("its file is no WebAssembly".to_owned());
        }
        let component = machine.compile(bytes).map_err(|error| {
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
        let exports = Stage::ALL.map(|stage| (stage, exported(&component, stage)));
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
        if stages.is_empty() {
            return Err(format!(
                "it exports no interface of `ogive:hooks@{VERSION}`, so it would never be called"
            ));
        }
        let pool = Pool {
            machine,
            _component: component,
            instances,
            exports: found,
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
        let _under_way = self.begin(&mut store);
        let instance = self.instances.instantiate(&mut store);
        let instance = instance.map_err(|error| why(&error, &store, self.limits))?;
        let mut hooks: [Option<Handle>; Stage::ALL.len()] = Default::default();
        for (export, hook) in self.exports.iter().zip(&mut hooks) {
            if let Some(export) = export {
                let found = instance.get_typed_func(&mut store, export);
                *hook = Some(found.map_err(|error| CallError::Trapped(shown(&error)))?);
            }
        }
        Ok(Idle { store, hooks })
    }

    /// Lets the limits of a call begin.
    fn begin(&self, store: &mut Store<Lent>) -> crate::engine::Running<'static> {
        // Fuel is on, so that there is no error.
        let _ = store.set_fuel(self.limits.fuel);
        store.set_epoch_deadline(ticks(self.limits.time));
        self.machine.enter()
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

    /// Calls the hook of the exchange's stage: what came of it, and how long it took. If it failed, headers and body are as
    /// the component left them, and the changes are none.
    #[expect(clippy::type_complexity, reason = "a call, and whether there was one")]
    pub(crate) fn call(
        &self,
        exchange: &mut Exchange,
    ) -> Result<(Result<(), CallError>, Duration), CallError> {
        let mut instance = self.lend()?;
        let stage = exchange.stage;
        let store = &mut instance.store;
        let Some(hook) = &instance.hooks[stage as usize] else {
            self.put_back(instance);
            return Ok((Ok(()), Duration::ZERO));
        };
        store
            .data_mut()
            .begin(std::mem::replace(exchange, Exchange::new(stage)));
        let started = Instant::now();
        let called = {
            let _under_way = self.begin(store);
            hook.call(&mut *store, ())
        };
        let took = started.elapsed();
        let outcome = match &called {
            Ok((Ok(()),)) => Ok(()),
            Ok((Err(reason),)) => Err(CallError::Failed(bounded(reason))),
            Err(error) => Err(why(error, store, self.limits)),
        };
        *exchange = store.data_mut().end(stage);
        if outcome.is_err() {
            exchange.changes = Changes {
                ends: exchange.changes.ends,
                ..Changes::default()
            };
        }
        if called.is_ok() {
            self.put_back(instance);
        } else {
            // Whatever state it is in, nobody sees it again.
            drop(instance);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok((outcome, took))
    }
}

/// The interface for requests to other hosts.
const HTTP: &str = "ogive:hooks/http";

/// Whether a component imports that, in whichever version.
fn imports_http(machine: &Machine, component: &Component) -> bool {
    let kind = component.component_type();
    let mut imports = kind.imports(&machine.engine);
    imports.any(|(name, _)| name.split('@').next() == Some(HTTP))
}

/// The hook of a stage, if a component has one.
fn exported(component: &Component, stage: Stage) -> Option<ComponentExportIndex> {
    let interface = format!("ogive:hooks/{}@{VERSION}", hook_name(stage));
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
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => CallError::Limit(format!("more than {} of fuel", limits.fuel)),
        Some(Trap::Interrupt) => CallError::Limit(format!("longer than {:?}", limits.time)),
        Some(Trap::StackOverflow) => CallError::Limit("its stack is full".to_owned()),
        Some(trap) => CallError::Trapped(trap.to_string()),
        None => CallError::Trapped(shown(error)),
    }
}

/// An error in one line, the cause included.
fn shown(error: &wasmtime::Error) -> String {
    bounded(&format!("{error:#}"))
}

/// Longest reason that is told.
const REASON_BYTES_MAX: usize = 1_000;

/// What is said, in one line and not more than is of use.
fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(REASON_BYTES_MAX);
    let is_line = |c: char| if c.is_control() { ' ' } else { c };
    text[..end].chars().map(is_line).collect()
}
