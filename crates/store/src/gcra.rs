//! The generic cell rate algorithm: what a key has taken is one number, the time at which it will have used that up.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// So much in so much time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// At least 1.
    pub capacity: u64,
    /// In so much time.
    pub interval: Duration,
}

/// What a key has taken, in nanoseconds.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

/// What is left after something was taken, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remaining {
    /// So much.
    pub remaining: u64,
    /// When it would fit, or when everything is free again.
    pub reset: Duration,
}

impl Quota {
    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.interval.as_nanos())
            .unwrap_or(u64::MAX / 4)
            .min(u64::MAX / 4)
    }
    /// How long so many units take.
    fn time(&self, units: u64) -> u64 {
        let time = u128::from(self.nanoseconds()) * u128::from(units) / u128::from(self.capacity);
        let time = u64::try_from(time)
            .unwrap_or(u64::MAX / 4)
            .min(u64::MAX / 4);
        if units == 0 { 0 } else { time.max(1) }
    }
    /// How long so many units take.
    pub fn duration(&self, units: u64) -> Duration {
        Duration::from_nanos(self.time(units))
    }
    fn units(&self, time: u64) -> u64 {
        let interval = u128::from(self.nanoseconds().max(1));
        let units = u128::from(time) * u128::from(self.capacity) / interval;
        u64::try_from(units).unwrap_or(u64::MAX).min(self.capacity)
    }
}

impl Cell {
    /// Takes units, or nothing if there are not enough; `now` since any time that stays the same.
    pub fn take(&self, quota: &Quota, units: u64, now: u64) -> Result<Remaining, Remaining> {
        let (interval, time) = (quota.nanoseconds(), quota.time(units));
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                let next = until.max(now).saturating_add(time);
                (next <= now.saturating_add(interval)).then_some(next)
            });
        match taken {
            Ok(before) => {
                let ahead = before.max(now).saturating_add(time) - now;
                Ok(Remaining {
                    remaining: quota.units(interval.saturating_sub(ahead)),
                    reset: Duration::from_nanos(ahead),
                })
            }
            Err(until) => {
                let ahead = until.saturating_sub(now);
                let missing = ahead.saturating_add(time).saturating_sub(interval);
                Err(Remaining {
                    remaining: quota.units(interval.saturating_sub(ahead)),
                    reset: Duration::from_nanos(missing),
                })
            }
        }
    }
    /// In how many nanoseconds all will be free again.
    pub fn ahead(&self, now: u64) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_sub(now)
    }
    /// Takes all that there was at a time.
    pub fn exhaust(&self, quota: &Quota, at: u64) {
        let until = at.saturating_add(quota.nanoseconds());
        self.0.fetch_max(until, Ordering::Relaxed);
    }
    /// Gives units back that were taken. `until`: when time will have given them back; what it has given back by `now` is
    /// not given back once more.
    pub fn give_back(&self, quota: &Quota, units: u64, until: u64, now: u64) {
        let time = quota.time(units).min(until.saturating_sub(now));
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                Some(until.saturating_sub(time))
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_is_taken_comes_back_with_time() {
        let quota = Quota {
            capacity: 10,
            interval: Duration::from_secs(10),
        };
        let cell = Cell::default();
        let now = 5 * SECOND;
        assert_eq!(cell.take(&quota, 4, now).unwrap().remaining, 6);
        assert_eq!(cell.take(&quota, 6, now).unwrap().remaining, 0);
        let refused = cell.take(&quota, 3, now).unwrap_err();
        assert_eq!((refused.remaining, refused.reset.as_secs()), (0, 3));
        assert_eq!(cell.take(&quota, 3, now + 3 * SECOND).unwrap().remaining, 0);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let quota = Quota {
            capacity: 10,
            interval: Duration::from_secs(10),
        };
        let cell = Cell::default();
        assert!(cell.take(&quota, 10, 0).is_ok());
        cell.give_back(&quota, 7, 10 * SECOND, 0);
        assert_eq!(cell.take(&quota, 7, 0).unwrap().remaining, 0);
        assert!(cell.take(&quota, 1, 0).is_err());
        // More than there ever is does not fit however long one waits.
        assert!(Cell::default().take(&quota, 11, 100 * SECOND).is_err());
    }

    #[test]
    fn what_time_has_given_back_is_not_given_back_again() {
        let quota = Quota {
            capacity: 10,
            interval: Duration::from_secs(10),
        };
        let cell = Cell::default();
        assert!(cell.take(&quota, 10, 0).is_ok());
        // All of it has come back by itself, and somebody else has taken it.
        assert!(cell.take(&quota, 10, 10 * SECOND).is_ok());
        cell.give_back(&quota, 7, 10 * SECOND, 10 * SECOND);
        assert!(cell.take(&quota, 1, 10 * SECOND).is_err());
        // Four of ten have come back: six are left to be given back.
        let cell = Cell::default();
        assert!(cell.take(&quota, 10, 0).is_ok());
        assert!(cell.take(&quota, 4, 4 * SECOND).is_ok());
        cell.give_back(&quota, 10, 10 * SECOND, 4 * SECOND);
        assert!(cell.take(&quota, 7, 4 * SECOND).is_err());
        assert!(cell.take(&quota, 6, 4 * SECOND).is_ok());
    }
}
