//! A circuit breaker for one use of a service: after some failures in a row it rejects calls for a while, and then admits
//! one call as a probe.
//!
//! The breaker of a subgraph (`CircuitBreaker` in `transport`) counts percentages of a window, because a subgraph may fail
//! for some operations only. A call to a service of the operator has no such variety, so failures in a row suffice.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Failures in a row that open it, by default.
pub const FAILURES: u32 = 3;
/// How long it rejects calls before it admits a probe, by default.
pub const PAUSE: Duration = Duration::from_millis(500);

/// Decides whether a call to a service may be made. Closed: every call may. Open: one probe per pause may.
#[derive(Debug)]
pub struct Breaker {
    failures_max: u32,
    pause: Duration,
    /// Whether it is open; read without the lock.
    is_open: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// While the breaker is open: when the next probe may be made.
    next_try: Option<Instant>,
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker::new(FAILURES, PAUSE)
    }
}

impl Breaker {
    /// A closed breaker. It opens after `failures_max` failures in a row, at least one, and admits a probe each `pause`.
    pub fn new(failures_max: u32, pause: Duration) -> Self {
        Breaker {
            failures_max: failures_max.max(1),
            pause,
            is_open: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Whether a call may be made now. While the breaker is open, one call per pause may: the probe.
    pub fn admits(&self) -> bool {
        if !self.is_open.load(Ordering::Relaxed) {
            return true;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match state.next_try {
            Some(next_try) if now < next_try => false,
            Some(_) => {
                state.next_try = Some(now + self.pause);
                true
            }
            None => true,
        }
    }

    /// Notes whether a call succeeded; true if that opens or closes the breaker.
    pub fn note(&self, is_well: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was_open = state.next_try.is_some();
        if is_well {
            *state = State::default();
        } else {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= self.failures_max {
                state.next_try = Some(Instant::now() + self.pause);
            }
        }
        let is_open = state.next_try.is_some();
        self.is_open.store(is_open, Ordering::Relaxed);
        is_open != was_open
    }
}
