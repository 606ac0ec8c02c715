//! Why a coprocessor did not do its work.

use std::fmt;

/// Why a coprocessor failed, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoprocessorError {
    /// It could not be asked, or did not answer in time.
    Unanswered(String),
    /// It answered with another status than 200.
    Status(u16),
    /// Its answer cannot be read.
    Unreadable(String),
    /// It changed what no coprocessor may change.
    Changed(&'static str),
    /// A member of its answer is not of the type that it has to be.
    Malformed(&'static str, &'static str),
    /// A header of its answer is none.
    Header(String),
    /// A body is nested deeper than this.
    Depth(u32),
    /// The process has no memory for it.
    Memory,
    /// The context has more bytes than are kept.
    Context(usize),
    /// It wanted something else than to go on, and something is wrong with its answer.
    Ending(Box<CoprocessorError>),
}

impl CoprocessorError {
    /// Whether it is known not to have wanted the request to go on.
    pub fn is_ending(&self) -> bool {
        matches!(self, CoprocessorError::Ending(_))
    }
}

impl fmt::Display for CoprocessorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoprocessorError::Unanswered(why) => f.write_str(why),
            CoprocessorError::Status(status) => write!(f, "it answers {status} instead of 200"),
            CoprocessorError::Unreadable(why) => write!(f, "its answer cannot be read: {why}"),
            CoprocessorError::Changed(what) => write!(f, "it changed `{what}`"),
            CoprocessorError::Malformed(what, expected) => {
                write!(f, "`{what}` of its answer is not {expected}")
            }
            CoprocessorError::Header(name) => {
                write!(f, "the header `{name}` of its answer cannot be sent")
            }
            CoprocessorError::Depth(max) => {
                write!(f, "`body` of its answer is nested deeper than {max}")
            }
            CoprocessorError::Memory => f.write_str("there is no memory for it"),
            CoprocessorError::Context(max) => {
                write!(f, "the context would have more than {max} bytes")
            }
            CoprocessorError::Ending(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CoprocessorError {}
