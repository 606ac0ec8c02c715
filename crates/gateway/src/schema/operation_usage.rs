//! What a prepared operation keeps for those who count its use ([`crate::usage`]).

use std::sync::{Arc, OnceLock};

/// An operation as it is told: its document without literals, and the coordinates that it uses.
type Text = (Arc<str>, Arc<[Box<str>]>);

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct OperationUsage {
    /// Of its text and name.
    pub(crate) hash: u64,
    /// Made when it is first told.
    pub(crate) text: OnceLock<Text>,
}

impl OperationUsage {
    pub(crate) fn new(hash: u64) -> Self {
        OperationUsage {
            hash,
            text: OnceLock::new(),
        }
    }
}
