//! What bounds scripts.

use std::time::Duration;

/// What one call may need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most operations.
    pub operations: u64,
    /// Longest time.
    pub time: Duration,
    /// Most calls within one another.
    pub calls: usize,
    /// Most bytes of a text, items of a list or members of an object.
    pub size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            operations: 500_000,
            time: Duration::from_millis(100),
            calls: 64,
            size: 1 << 20,
        }
    }
}

/// What [`Limits::size`] may be for each 100 ms of a call's time: an operation on a value of that size takes a part of it, and
/// cannot be stopped.
const SIZE_PER_100_MS: usize = 1 << 20;
/// It may be so much, however short the time is.
const SIZE_MIN: usize = 64 << 10;

impl Limits {
    /// The size that values may have: as much as is configured, as far as one operation on them fits into the time of a call.
    pub fn usable_size(&self) -> usize {
        let milliseconds = usize::try_from(self.time.as_millis()).unwrap_or(usize::MAX);
        let within_time = milliseconds.saturating_mul(SIZE_PER_100_MS) / 100;
        self.size.min(within_time.max(SIZE_MIN))
    }
}
