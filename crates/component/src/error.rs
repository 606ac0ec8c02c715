//! Why a component cannot be used, and why a call of one failed.

use std::fmt;

/// Why a component cannot be used, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginError(pub String);

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PluginError {}

/// Why a call failed, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// It needed more than it may have: fuel, time, memory or stack.
    Limit(String),
    /// It did what it is not permitted to do.
    Forbidden(String),
    /// It gave something that nobody can use: a header that is none, a body that is no JSON.
    Malformed(String),
    /// It is wrong.
    Trapped(String),
    /// It says so itself.
    Failed(String),
    /// As many calls of it are under way as it has instances.
    Busy(usize),
    /// It is left alone, because it failed too often.
    Ejected,
    /// It was called in a worker and is not done within its turn. It has changed nothing and is to be called again beside the
    /// workers.
    Unfinished,
}

impl CallError {
    /// Whether it counts towards ejection: not what it says itself, which is an answer.
    pub(crate) fn is_fault(&self) -> bool {
        !matches!(
            self,
            CallError::Failed(_) | CallError::Busy(_) | CallError::Ejected | CallError::Unfinished
        )
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
        }
    }
}

impl std::error::Error for CallError {}

/// Longest reason that is told.
#[cfg(feature = "engine")]
const REASON_BYTES_MAX: usize = 1_000;

/// What is said, in one line and not more than is of use.
#[cfg(feature = "engine")]
pub(crate) fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(REASON_BYTES_MAX);
    let is_line = |c: char| if c.is_control() { ' ' } else { c };
    text[..end].chars().map(is_line).collect()
}
