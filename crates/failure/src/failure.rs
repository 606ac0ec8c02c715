//! What failed in one case.

use crate::ErrorCode;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure, with all that is known of the kind.
    pub code: ErrorCode,
    /// For clients that may see what is wrong: no hosts, no internals.
    pub message: String,
    /// For operators.
    pub detail: String,
    /// Whether the same request may be sent again at once. Not what [`ErrorCode::is_transient`] says, which holds for whoever
    /// comes back later.
    pub may_retry: bool,
    /// Whether whoever was asked did answer, and the answer is refused for what the client has asked for: nobody is left
    /// alone for that.
    pub is_answered: bool,
}

impl Failure {
    /// One after which nothing is sent again.
    pub fn new(code: ErrorCode, message: impl Into<String>, detail: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            detail: detail.into(),
            may_retry: false,
            is_answered: false,
        }
    }
    /// The same, after which the same request may be sent again.
    #[must_use]
    pub fn retried(self) -> Self {
        Failure {
            may_retry: true,
            ..self
        }
    }
    /// The same, which is not held against whoever was asked.
    #[must_use]
    pub fn answered(self) -> Self {
        Failure {
            is_answered: true,
            ..self
        }
    }
}
