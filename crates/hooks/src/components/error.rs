//! Why a component cannot be used.

use std::fmt;

/// Why a component cannot be used, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComponentError(pub String);

impl fmt::Display for ComponentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ComponentError {}

/// Longest reason that is told.
#[cfg(feature = "components")]
const REASON_BYTES_MAX: usize = 1_000;

/// What is said, in one line and not more than is of use.
#[cfg(feature = "components")]
pub(crate) fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(REASON_BYTES_MAX);
    let is_line = |c: char| if c.is_control() { ' ' } else { c };
    text[..end].chars().map(is_line).collect()
}
