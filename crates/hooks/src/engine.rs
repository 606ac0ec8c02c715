//! Hooks that run in this process.

use std::{fmt, sync::Arc};

use crate::{Exchange, headers::kept, worker_time::CallMode};

/// Code of the operator that is called at the stages of a request.
pub trait HookEngine: Send + Sync {
    /// How the hook for an exchange is called next; `None` if the engine has no hook for it.
    fn mode(&self, exchange: &Exchange) -> Option<CallMode>;
    /// Calls the hook for an exchange, and gives the exchange as the hook leaves it. What no hook may change is restored by
    /// [`Exchange::pass`].
    fn call(&self, exchange: Exchange, mode: CallMode) -> Result<Exchange, CallError>;
}

impl Exchange {
    /// Lets an engine call its hook. What no hook may change stays; a call that fails changes nothing.
    pub fn pass(
        &mut self,
        engine: &(impl HookEngine + ?Sized),
        mode: CallMode,
    ) -> Result<(), CallError> {
        let mut after = engine.call(self.clone(), mode)?;
        if after.changes.headers {
            let headers = Arc::unwrap_or_clone(after.headers);
            after.headers = kept(&self.headers, headers, self.stage.peer()).into();
        }
        *self = after;
        Ok(())
    }
}

/// Why a call failed, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The hook needed more than it may have: operations, time, memory or stack.
    Limit(String),
    /// The hook did what it is not permitted to do.
    Forbidden(String),
    /// The hook gave something that cannot be used: a header with a line break, a body that is not JSON.
    Malformed(String),
    /// The WebAssembly trapped.
    Trapped(String),
    /// The hook says so itself, or its script is wrong.
    Failed(String),
    /// As many calls of the hook are in flight as it has instances.
    Busy(usize),
    /// The hook failed too often and is not called for a while.
    Ejected,
    /// The call ran in a worker and did not end within its turn. It has changed nothing and is to be made again beside the
    /// workers.
    Unfinished,
    /// The hook asked to end the request, and then failed.
    Ending(Box<CallError>),
}

impl CallError {
    /// Whether the error counts towards ejection: not what a hook says itself, which is an answer.
    pub(crate) fn is_fault(&self) -> bool {
        match self {
            CallError::Failed(_)
            | CallError::Busy(_)
            | CallError::Ejected
            | CallError::Unfinished => false,
            CallError::Ending(error) => error.is_fault(),
            _ => true,
        }
    }
    /// Whether the hook asked to end the request, so that the request does not go on.
    pub fn is_ending(&self) -> bool {
        matches!(self, CallError::Ending(_))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Limit(why) => write!(f, "it needs more than it may have: {why}"),
            CallError::Forbidden(why) => write!(f, "it is not permitted: {why}"),
            CallError::Malformed(why) => write!(f, "it gave what cannot be used: {why}"),
            CallError::Trapped(why) => write!(f, "it trapped: {why}"),
            CallError::Failed(why) => write!(f, "it failed: {why}"),
            CallError::Busy(max) => write!(f, "all of its {max} instances are busy"),
            CallError::Unfinished => f.write_str("it needs longer than a worker waits"),
            CallError::Ejected => f.write_str("it failed too often and is left alone for a while"),
            CallError::Ending(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}
