//! Why a run gives no result at all.

use std::fmt;

use ogive_json::ScanError;

use crate::variable::Variable;

/// Why a run gives no result at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The body is no JSON, or nested too deeply.
    Body(ScanError),
    /// A variable is no JSON, or nested too deeply.
    Variable(Variable, ScanError),
    /// It took more than [`RunLimits::steps_max`](crate::RunLimits::steps_max) steps.
    Steps,
    /// It held more than [`RunLimits::values_max`](crate::RunLimits::values_max) values.
    Values,
    /// Methods made more than [`RunLimits::computed_bytes_max`](crate::RunLimits::computed_bytes_max) bytes of text.
    ComputedBytes,
    /// The output has more than [`RunLimits::output_bytes_max`](crate::RunLimits::output_bytes_max) bytes.
    OutputBytes,
    /// Evaluations or values were nested more deeply than allowed.
    Nesting,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Body(error) => write!(f, "the body is no JSON: {error}"),
            Failure::Variable(variable, error) => {
                write!(f, "the variable `${}` is no JSON: {error}", variable.name())
            }
            Failure::Steps => f.write_str("the mapping took too many steps"),
            Failure::Values => f.write_str("the mapping held too many values"),
            Failure::ComputedBytes => f.write_str("methods of the mapping made too much text"),
            Failure::OutputBytes => f.write_str("the output of the mapping is too long"),
            Failure::Nesting => f.write_str("values of the mapping are nested too deeply"),
        }
    }
}

impl std::error::Error for Failure {}
