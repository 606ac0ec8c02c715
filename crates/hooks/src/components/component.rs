//! Loading a component, and calling it.

use std::{
    fmt::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use ogive_files::Pipes;
use ring::digest::{SHA256, digest};

use super::{
    ComponentError,
    decide::{PolicyQuestion, Verdict},
    ejection::Faults,
    options::{ComponentOptions, Decision},
    outgoing::Sender,
    pool::{CallResult, Pool},
};
use crate::{CallError, CallMode, Exchange, HookEngine, Stage, WorkerTime};

/// Largest file of a component, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// How many hooks there are.
const HOOKS: usize = Stage::ALL.len() + Decision::ALL.len();

/// The place of a decision among all hooks, behind the stages.
fn place(decision: Decision) -> usize {
    Stage::ALL.len() + decision as usize
}

/// A component that was loaded.
#[derive(Debug)]
pub struct Component {
    options: ComponentOptions,
    /// The SHA-256 of its file.
    digest: Box<[u8]>,
    pool: Pool,
    faults: Faults,
    /// By stage, and by what is decided.
    turns: [WorkerTime; HOOKS],
}

/// The same file under the same options is the same component.
impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.options == other.options
    }
}

impl Component {
    /// Reads and compiles it, checks what it imports and exports, and starts one instance.
    pub fn load(
        options: ComponentOptions,
        sender: Option<Arc<dyn Sender>>,
    ) -> Result<Self, ComponentError> {
        let told = |why: String| ComponentError(format!("`{}`: {why}", options.name));
        let path = &options.path;
        let bytes = ogive_files::read(path.as_ref(), FILE_BYTES_MAX, Pipes::Refused);
        let engine = if cfg!(feature = "components") {
            ""
        } else {
            "; and this build has no engine for components (`ogive version`)"
        };
        let bytes =
            bytes.map_err(|error| told(format!("cannot read `{path}`: {error}{engine}")))?;
        Self::sending(options, &bytes, sender)
    }

    /// The same of what was read; nobody sends requests for it.
    pub fn of(options: ComponentOptions, bytes: &[u8]) -> Result<Self, ComponentError> {
        Self::sending(options, bytes, None)
    }

    /// The same with somebody who sends its requests to other hosts.
    pub fn sending(
        mut options: ComponentOptions,
        bytes: &[u8],
        sender: Option<Arc<dyn Sender>>,
    ) -> Result<Self, ComponentError> {
        let told = |name: &str, why: String| ComponentError(format!("`{name}`: {why}"));
        let digest = digest(&SHA256, bytes);
        let mut hex = String::new();
        for byte in digest.as_ref() {
            let _ = write!(hex, "{byte:02x}");
        }
        if let Some(wanted) = &options.sha256
            && !wanted.eq_ignore_ascii_case(&hex)
        {
            let why = format!("the SHA-256 of `{}` is {hex}", options.path);
            return Err(told(&options.name, why));
        }
        let (pool, stages) =
            Pool::start(&options, bytes, sender).map_err(|why| told(&options.name, why))?;
        options.stages = stages;
        Ok(Component {
            digest: digest.as_ref().into(),
            faults: Faults::new(options.ejection, Instant::now()),
            turns: Default::default(),
            pool,
            options,
        })
    }

    /// What the configuration says of it; its stages are those at which it is called.
    pub fn options(&self) -> &ComponentOptions {
        &self.options
    }
    /// Whether it is called at a stage.
    pub fn is_at(&self, stage: Stage) -> bool {
        self.options.stages.contains(&stage)
    }
    /// Whether it is lent the body at a stage.
    pub fn looks_at_body(&self, stage: Stage) -> bool {
        self.is_at(stage) && self.options.bodies.contains(&stage)
    }
    /// Whether its calls may wait for other hosts, so that none runs where others would wait for it.
    pub fn sends_requests(&self) -> bool {
        self.pool.sends_requests()
    }
    /// How its next call is made that decides something.
    pub fn decision_mode(&self, decision: Decision) -> CallMode {
        self.mode_at(place(decision))
    }
    fn mode_at(&self, hook: usize) -> CallMode {
        if self.sends_requests() {
            return CallMode::Whole;
        }
        self.turns[hook].mode()
    }

    /// Asks it who asks. The exchange is only looked at.
    pub fn authenticate(
        &self,
        exchange: &mut Exchange,
        mode: CallMode,
    ) -> Result<Verdict, CallError> {
        let hook = hook_of_decision(Decision::Authenticate);
        self.called(hook, mode, || self.pool.authenticate(exchange, mode))
    }

    /// Asks it which policies hold. It may name some that it was not asked about; the caller leaves them out.
    pub fn policies(
        &self,
        question: &PolicyQuestion,
        mode: CallMode,
    ) -> Result<Vec<String>, CallError> {
        let mut exchange = Exchange::new(Stage::RouterRequest);
        let hook = hook_of_decision(Decision::Policies);
        self.called(hook, mode, || {
            self.pool.policies(&mut exchange, question, mode)
        })
    }

    /// Asks it what an operation is counted by. The exchange is only looked at.
    pub fn rate_key(
        &self,
        exchange: &mut Exchange,
        mode: CallMode,
    ) -> Result<Option<String>, CallError> {
        let hook = hook_of_decision(Decision::RateKey);
        self.called(hook, mode, || self.pool.rate_key(exchange, mode))
    }

    /// A call, if it is not left alone; what it took and how it failed is noted.
    fn called<T>(
        &self,
        (at, name): (usize, &'static str),
        mode: CallMode,
        call: impl FnOnce() -> CallResult<T>,
    ) -> Result<T, CallError> {
        if self.faults.is_ejected(Instant::now) {
            return Err(CallError::Ejected);
        }
        let (called, took) = match call() {
            Ok(done) => done,
            Err(error) => (Err(error), Duration::ZERO),
        };
        if mode == CallMode::Turn {
            self.turns[at].note(took);
        }
        if let Err(error) = &called {
            self.failed(name, error);
        }
        called
    }

    fn failed(&self, hook: &str, error: &CallError) {
        if !error.is_fault() {
            return;
        }
        if let Some(time) = self.faults.note(Instant::now()) {
            tracing::warn!(
                plugin = self.options.name,
                stage = hook,
                cause = %error,
                "a component failed too often and is left alone for {time:?}"
            );
        }
    }
}

impl HookEngine for Component {
    fn mode(&self, exchange: &Exchange) -> Option<CallMode> {
        let stage = exchange.stage;
        self.is_at(stage).then(|| self.mode_at(stage as usize))
    }

    fn call(&self, mut exchange: Exchange, mode: CallMode) -> Result<Exchange, CallError> {
        let hook = (exchange.stage as usize, exchange.stage.name());
        self.called(hook, mode, || self.pool.call(&mut exchange, mode))?;
        Ok(exchange)
    }
}

/// The place and the name of what is decided.
fn hook_of_decision(decision: Decision) -> (usize, &'static str) {
    (place(decision), decision.hook_name())
}

#[cfg(all(test, not(feature = "components")))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_does_not_hide_that_there_is_no_engine() {
        let error = Component::load(ComponentOptions::new("mine", "/not/there.wasm"), None);
        let told = error.unwrap_err().to_string();
        let parts = [
            "cannot read `/not/there.wasm`",
            "has no engine for components",
        ];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
}
