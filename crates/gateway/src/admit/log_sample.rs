//! What happens often and is logged seldom: once in an interval, with how often it happened since the last time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts what happens.
#[derive(Debug)]
pub(crate) struct LogSample {
    interval: u64,
    next: AtomicU64,
    unsaid: AtomicU64,
}

impl LogSample {
    pub(crate) fn new(interval: Duration) -> Self {
        LogSample {
            interval: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            next: AtomicU64::new(0),
            unsaid: AtomicU64::new(0),
        }
    }

    /// Counts one; gives how many there were if that is to be said now. `now`: nanoseconds since any time that stays the
    /// same.
    pub(crate) fn count(&self, now: u64) -> Option<u64> {
        let unsaid = self.unsaid.fetch_add(1, Ordering::Relaxed) + 1;
        let next = self.next.load(Ordering::Relaxed);
        let later = now.saturating_add(self.interval);
        let is_due = now >= next
            && self
                .next
                .compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_due.then(|| {
            self.unsaid.fetch_sub(unsaid, Ordering::Relaxed);
            unsaid
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_said_once_in_an_interval_with_how_often() {
        let sample = LogSample::new(Duration::from_nanos(100));
        let said: Vec<Option<u64>> = [5, 6, 104, 105, 106, 300].map(|at| sample.count(at)).into();
        assert_eq!(said, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
