//! Why reading ends before the end: limits, and text that is not what it should be.

use ogive_json::ScanError;

use crate::limits::ExecuteLimits;

/// A limit was reached; the name is the option's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitReached(pub(crate) &'static str);

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Limit(LimitReached),
    /// No JSON, or nested too deeply.
    Malformed(ScanError),
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Stop::Malformed(error)
    }
}
impl From<LimitReached> for Stop {
    fn from(limit: LimitReached) -> Self {
        Stop::Limit(limit)
    }
}

/// How much was compared in one answer with keys that nobody asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyComparisons {
    left: u64,
}

impl KeyComparisons {
    pub(crate) fn new(limits: &ExecuteLimits) -> Self {
        KeyComparisons {
            left: limits.key_comparisons_max,
        }
    }
    /// A key was compared with so many others, and is none of them.
    pub(crate) fn count(&mut self, comparisons: usize) -> Result<(), LimitReached> {
        let left = self.left.checked_sub(comparisons as u64);
        self.left = left.ok_or(LimitReached("key_comparisons_max"))?;
        Ok(())
    }
}
