//! The machine that components run on: one for the process, with a clock that ticks while calls are under way.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ring::digest::{SHA256, digest};
use wasmtime::{
    Config, Engine,
    component::{Component, Linker},
};

use super::host::{self, Lent};

/// How long an epoch is, which is how exactly the time of calls is kept.
const TICK: Duration = Duration::from_millis(5);
/// After how many ticks without a call the clock rests.
const IDLE_TICKS: u32 = 200;

/// Most bytes of the native stack that a call uses. Threads of the gateway have four times as much at least.
const STACK_BYTES_MAX: usize = 512 << 10;

/// A component that was compiled, by the SHA-256 of its bytes.
type Compiled = (Box<[u8]>, Weak<Component>);

/// What all components share.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Lent>,
    clock: Arc<Clock>,
    /// What is compiled and in use.
    compiled: Mutex<Vec<Compiled>>,
}

/// The machine, made when it is needed for the first time.
pub(crate) fn machine() -> Result<&'static Machine, String> {
    static MACHINE: OnceLock<Result<Machine, String>> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Machine::start().map_err(|error| format!("{error:#}")));
    machine.as_ref().map_err(Clone::clone)
}

impl Machine {
    fn start() -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config
            .consume_fuel(true)
            .epoch_interruption(true)
            .concurrency_support(false)
            .max_wasm_stack(STACK_BYTES_MAX);
        let engine = Engine::new(&config)?;
        let clock = Arc::new(Clock::default());
        let (ticking, of) = (Arc::clone(&clock), engine.clone());
        thread::Builder::new()
            .name("component-clock".into())
            .spawn(move || ticking.run(&of))?;
        Ok(Machine {
            linker: host::linker(&engine)?,
            engine,
            clock,
            compiled: Mutex::default(),
        })
    }

    /// Compiles a component, unless somebody uses the same one.
    pub(crate) fn compile(&self, bytes: &[u8]) -> wasmtime::Result<Arc<Component>> {
        let digest: Box<[u8]> = digest(&SHA256, bytes).as_ref().into();
        let known = || {
            let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
            compiled.retain(|(_, component)| component.strong_count() > 0);
            let mut compiled = compiled.iter();
            compiled.find(|(known, _)| *known == digest)?.1.upgrade()
        };
        if let Some(component) = known() {
            return Ok(component);
        }
        let component = Arc::new(Component::from_binary(&self.engine, bytes)?);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.push((digest, Arc::downgrade(&component)));
        Ok(component)
    }

    /// Lets the clock tick until this is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.clock.enter();
        Running(&self.clock)
    }
}

/// How many ticks a time has, the one that has begun included.
pub(crate) fn ticks(time: Duration) -> u64 {
    let ticks = time.as_micros().div_ceil(TICK.as_micros());
    u64::try_from(ticks).unwrap_or(u64::MAX - 1) + 1
}

/// A call that is under way.
pub(crate) struct Running<'a>(&'a Clock);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ticks while calls are under way, and a while longer: a thread that rests has to be woken, and that costs a call more than
/// all else.
#[derive(Default)]
struct Clock {
    under_way: AtomicUsize,
    begun: AtomicU64,
    rests: AtomicBool,
    thread: OnceLock<thread::Thread>,
}

impl Clock {
    fn enter(&self) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::Relaxed);
        if self.rests.load(Ordering::SeqCst)
            && self.rests.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self, engine: &Engine) {
        let _ = self.thread.set(thread::current());
        let (mut idle, mut seen) = (0, 0);
        loop {
            thread::sleep(TICK);
            engine.increment_epoch();
            let begun = self.begun.load(Ordering::Relaxed);
            if self.under_way.load(Ordering::SeqCst) > 0 || begun != seen {
                (idle, seen) = (0, begun);
                continue;
            }
            idle += 1;
            if idle < IDLE_TICKS {
                continue;
            }
            idle = 0;
            // Who enters says so before looking whether the clock rests: one of both sees the other.
            self.rests.store(true, Ordering::SeqCst);
            if self.under_way.load(Ordering::SeqCst) > 0 {
                self.rests.store(false, Ordering::SeqCst);
            }
            while self.rests.load(Ordering::SeqCst) {
                thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(ticks(Duration::from_millis(1)), 2);
        assert_eq!(ticks(Duration::from_millis(5)), 2);
        assert_eq!(ticks(Duration::from_millis(100)), 21);
    }
}
