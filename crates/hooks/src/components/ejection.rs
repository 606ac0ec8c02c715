//! Leaving a component alone that fails again and again.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::options::Ejection;

/// The faults of one component.
#[derive(Debug)]
pub(crate) struct Faults {
    options: Ejection,
    began: Instant,
    /// Until when it is left alone, in milliseconds from the beginning on.
    until: AtomicU64,
    recent: Mutex<VecDeque<Instant>>,
}

impl Faults {
    /// Of a component that has none yet.
    pub(crate) fn new(options: Ejection, now: Instant) -> Self {
        Faults {
            options,
            began: now,
            until: AtomicU64::new(0),
            recent: Mutex::default(),
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began).as_millis();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// Whether it is left alone. Whoever was not looks at no clock.
    pub(crate) fn is_ejected(&self, now: impl FnOnce() -> Instant) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && self.millis(now()) < until
    }

    /// Notes a fault. For how long it is left alone from now on, if this was one too many.
    pub(crate) fn note(&self, now: Instant) -> Option<Duration> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(now);
        while recent
            .front()
            .is_some_and(|first| now.saturating_duration_since(*first) > self.options.window)
        {
            recent.pop_front();
        }
        if recent.len() < self.options.faults {
            return None;
        }
        recent.clear();
        let until = self.millis(now + self.options.time).max(1);
        self.until.store(until, Ordering::Relaxed);
        Some(self.options.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fails_too_often_within_a_while_is_left_alone_for_a_while() {
        let options = Ejection {
            faults: 3,
            window: Duration::from_secs(10),
            time: Duration::from_secs(5),
        };
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let faults = Faults::new(options, began);
        assert!(!faults.is_ejected(|| at(0)));
        // The first is too long ago when the third comes.
        assert_eq!(faults.note(at(1)), None);
        assert_eq!(faults.note(at(8)), None);
        assert_eq!(faults.note(at(12)), None);
        assert!(!faults.is_ejected(|| at(12)));
        assert_eq!(faults.note(at(13)), Some(options.time));
        assert!(faults.is_ejected(|| at(17)));
        assert!(!faults.is_ejected(|| at(18)));
        assert_eq!(faults.note(at(18)), None, "it begins anew");
    }
}
