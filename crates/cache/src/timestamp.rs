//! Times of entries. Several processes share entries, also across restarts, so the times are wall-clock times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch. Callers pass the time, so that tests can set it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The system's time.
    pub fn now() -> Self {
        SystemTime::now().into()
    }
    /// The time from `earlier` to this one; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
    /// The time `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_add(millis(duration)))
    }
    /// The time `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_sub(millis(duration)))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(millis(since))
    }
}

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
