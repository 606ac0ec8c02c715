//! Why a script cannot be used.

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
