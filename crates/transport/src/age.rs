//! How old a connection may become.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use tokio::time::Instant;

/// When a connection was made, and how much of the longest time it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    born: Instant,
    percent: u32,
}

/// The least part of the longest time that a connection has, in percent: those made together do not end together.
const AGE_PERCENT_MIN: u32 = 80;

impl Age {
    /// That of a new connection.
    pub(crate) fn new() -> Self {
        // Keyed anew each time.
        let random = RandomState::new().build_hasher().finish();
        let more = random % u64::from(100 - AGE_PERCENT_MIN + 1);
        Age {
            born: Instant::now(),
            percent: AGE_PERCENT_MIN + more as u32,
        }
    }
    pub(crate) fn is_over(&self, now: Instant, max: Duration) -> bool {
        let age = now.saturating_duration_since(self.born);
        // Mostly it is far from it.
        if age.as_secs() < max.as_secs() / 5 * (AGE_PERCENT_MIN as u64 / 20) {
            return false;
        }
        age >= (max / 100).saturating_mul(self.percent)
    }
}
