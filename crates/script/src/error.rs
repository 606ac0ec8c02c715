//! Why a script cannot be used, and why a call of one failed.

use std::fmt;

/// Why scripts cannot be used, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramError(pub String);

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProgramError {}

/// Why a call failed, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptError {
    /// It needed more than it may have: operations, time, memory or depth.
    Limit(String),
    /// It is wrong.
    Failed(String),
    /// It was called in a worker and is not done within its turn. It has changed nothing and is to be called again beside the
    /// workers.
    Unfinished,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::Limit(why) => write!(f, "the script needs more than it may have: {why}"),
            ScriptError::Failed(why) => write!(f, "the script failed: {why}"),
            ScriptError::Unfinished => f.write_str("the script needs longer than a worker waits"),
        }
    }
}

impl std::error::Error for ScriptError {}
