//! Whether prefetching parts of fetches pays for an operation ([`ogive_plan::Prefetch`]): its executions tell.

use std::sync::atomic::{AtomicU32, Ordering};

use ogive_execute::ExecuteStats;

/// Learns from executions whether the rest of a fetch that was sent in two parts has something to ask. If it has, the
/// prefetched part was one request too many.
#[derive(Debug, Default)]
pub struct SplitFetch {
    /// Executions in a row in which some rest had something to ask.
    misses: AtomicU32,
    /// Executions since.
    since: AtomicU32,
}

impl SplitFetch {
    /// After so many misses parts are no longer prefetched,
    const MISSES_MAX: u32 = 2;
    /// but in one of so many executions, to see whether the data has changed.
    const RETRY_EVERY: u32 = 64;

    /// Whether to prefetch parts this time.
    pub fn try_it(&self) -> bool {
        self.misses.load(Ordering::Relaxed) < Self::MISSES_MAX
            || self.since.fetch_add(1, Ordering::Relaxed) % Self::RETRY_EVERY
                == Self::RETRY_EVERY - 1
    }
    /// Says what became of them.
    pub fn learn(&self, stats: &ExecuteStats) {
        match stats.prefetched {
            0 => {}
            n if stats.prefetch_sufficed == n => self.misses.store(0, Ordering::Relaxed),
            _ => {
                let more = |misses: u32| Some(misses.saturating_add(1));
                let _ = self
                    .misses
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
            }
        }
    }
}
