//! How calls of one hook share the workers with everything else: a worker gives a call a turn, and a call that is not done then
//! is made again on a thread beside the workers.
//!
//! WorkerTime that end without a result are lost time, so all calls of a hook together lose a tenth of the workers' time at most.
//! A hook that has lost more is called beside the workers at once, until time has made up for it. Calls that are done within
//! their turn never move, whatever other calls of the hook do.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a worker waits for one call.
pub const TURN: Duration = Duration::from_millis(1);

/// Calls that outlast their turn have one part in so many of the time of all workers ...
const SHARE: u32 = 10;
/// ... and so much of one worker at once, if there were none for a while.
const AT_ONCE: Duration = Duration::from_millis(4);

/// How a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallMode {
    /// In the worker that serves the request. A call that is not done within [`TURN`] ends there and has changed nothing.
    Turn,
    /// Where no other request waits for it, within the limits of the hook alone.
    Whole,
}

/// What calls of one hook have lost of the workers' time.
#[derive(Debug)]
pub struct WorkerTime {
    begun: Instant,
    /// Nanoseconds from `begun` until what was lost is a tenth of the time; 0 if nothing was.
    even: AtomicU64,
}

impl Default for WorkerTime {
    fn default() -> Self {
        WorkerTime {
            begun: Instant::now(),
            even: AtomicU64::new(0),
        }
    }
}

impl WorkerTime {
    /// How the next call is made.
    pub fn mode(&self) -> CallMode {
        // A hook whose calls are all short looks at no clock.
        match self.even.load(Ordering::Relaxed) {
            0 => CallMode::Turn,
            even => mode_at(even, self.begun.elapsed()),
        }
    }

    /// Notes what a call has taken of a worker's time.
    pub fn note(&self, took: Duration) {
        if took < TURN {
            return;
        }
        let (now, cost) = (self.begun.elapsed(), took * SHARE / workers());
        let _ = self
            .even
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |even| {
                Some(even.max(nanoseconds(now)) + nanoseconds(cost))
            });
    }
}

/// How a call is made at a time after the beginning.
fn mode_at(even: u64, now: Duration) -> CallMode {
    if even > nanoseconds(now + AT_ONCE * SHARE) {
        CallMode::Whole
    } else {
        CallMode::Turn
    }
}

fn nanoseconds(time: Duration) -> u64 {
    // Enough for 500 years.
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How many workers there are, unless the operator wants another number.
fn workers() -> u32 {
    static WORKERS: OnceLock<u32> = OnceLock::new();
    *WORKERS.get_or_init(|| {
        let cores = std::thread::available_parallelism();
        cores.map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_move_nowhere_and_lost_time_moves_calls_for_ten_times_as_long() {
        let turns = WorkerTime::default();
        for _ in 0..10_000 {
            turns.note(TURN / 2);
        }
        assert_eq!(turns.even.load(Ordering::Relaxed), 0);
        assert_eq!(turns.mode(), CallMode::Turn);
        // An hour, so that no test is slow enough to make up for it.
        let lost = Duration::from_secs(3600);
        turns.note(lost);
        assert_eq!(turns.mode(), CallMode::Whole);
        let even = turns.even.load(Ordering::Relaxed);
        let cost = lost * SHARE / workers();
        assert!(even >= nanoseconds(cost));
        let end = Duration::from_nanos(even);
        assert_eq!(mode_at(even, end - AT_ONCE * SHARE), CallMode::Turn);
        let before = end - AT_ONCE * SHARE - Duration::from_nanos(1);
        assert_eq!(mode_at(even, before), CallMode::Whole);
        // A short call between two long ones makes up for nothing.
        turns.note(Duration::from_micros(1));
        assert_eq!(turns.even.load(Ordering::Relaxed), even);
    }
}
