//! Several replicas of one subgraph: who is asked next, and who is left alone.
//!
//! Of two replicas picked at random the one with the smaller product of latency and requests in flight is asked ("the
//! power of two choices"). Latency is an average that follows rises at once and falls with time, so a replica that was
//! slow is asked again after a while; for a moment after a failure it counts as very slow, so that failing fast attracts
//! nobody. A replica that fails several times in a row is left alone for a while that grows
//! each time; the others are never all left alone.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::address::Address;

/// When a replica is left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutlierEjection {
    /// Failures in a row: no answer, or 5xx.
    pub consecutive_failures: u32,
    /// How long it is left alone the first time; each further time as much longer.
    pub base_ejection_time: Duration,
    /// Most replicas left alone at a time, in percent.
    pub max_ejection_percent: u32,
}

/// Latencies are forgotten in about this time.
const MEMORY: Duration = Duration::from_secs(10);
/// The latency, in seconds, that a failure counts as at least, and for how long.
const FAILED: (f64, Duration) = (1.0, Duration::from_secs(1));
/// Most times that make a replica's time alone longer.
const EJECTIONS_MAX: u32 = 10;

/// All replicas of a subgraph, at least one.
#[derive(Debug)]
pub struct Replicas {
    list: Box<[Replica]>,
    outlier: Option<OutlierEjection>,
    random: RandomState,
    drawn: AtomicU64,
}

/// One replica.
#[derive(Debug)]
struct Replica {
    address: Address,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Seconds; nothing is known at 0.
    latency: f64,
    measured: Instant,
    in_flight: u32,
    failed: Option<Instant>,
    failures: u32,
    ejections: u32,
    ejected_until: Option<Instant>,
}

impl Replica {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn cost(&self, now: Instant) -> f64 {
        let age = now.duration_since(self.measured).as_secs_f64();
        let mut latency = self.latency * (-age / MEMORY.as_secs_f64()).exp();
        if self
            .failed
            .is_some_and(|at| now.duration_since(at) < FAILED.1)
        {
            latency = latency.max(FAILED.0);
        }
        // Never exactly nothing, so that among unknown ones the idle one is cheaper.
        latency.max(1e-6) * f64::from(self.in_flight + 1)
    }
    fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }
}

impl Replicas {
    /// Replicas at these addresses; `None` without any.
    pub fn new(addresses: Vec<Address>, outlier: Option<OutlierEjection>) -> Option<Self> {
        let now = Instant::now();
        let list: Box<[Replica]> = addresses
            .into_iter()
            .map(|address| Replica {
                address,
                state: Mutex::new(State {
                    latency: 0.0,
                    measured: now,
                    in_flight: 0,
                    failed: None,
                    failures: 0,
                    ejections: 0,
                    ejected_until: None,
                }),
            })
            .collect();
        (!list.is_empty()).then(|| Replicas {
            list,
            outlier,
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        })
    }
    /// Where they are.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.list.iter().map(|replica| &replica.address)
    }

    /// How many of them are left alone now.
    pub fn ejected(&self) -> usize {
        let now = Instant::now();
        let ejected = |replica: &&Replica| replica.state().is_ejected(now);
        self.list.iter().filter(ejected).count()
    }

    /// The replica to ask next; not the one to avoid if there is another that is well.
    pub(crate) fn choose(&self, avoid: Option<usize>) -> Chosen<'_> {
        let at = match self.list.len() {
            1 => 0,
            _ => self.best(avoid),
        };
        if self.list.len() > 1 {
            self.list[at].state().in_flight += 1;
        }
        Chosen {
            replicas: self,
            at,
            began: Instant::now(),
            told: false,
            counted: self.list.len() > 1,
        }
    }

    fn best(&self, avoid: Option<usize>) -> usize {
        let now = Instant::now();
        let well: Vec<usize> = (0..self.list.len())
            .filter(|at| !self.list[*at].state().is_ejected(now))
            .collect();
        let fresh: Vec<usize> = well
            .iter()
            .copied()
            .filter(|at| Some(*at) != avoid)
            .collect();
        let from = match (fresh.is_empty(), well.is_empty()) {
            (false, _) => fresh,
            (true, false) => well,
            (true, true) => (0..self.list.len()).collect(),
        };
        let dice = self
            .random
            .hash_one(self.drawn.fetch_add(1, Ordering::Relaxed));
        let one = from[dice as usize % from.len()];
        if from.len() == 1 {
            return one;
        }
        // Another one: skips the first.
        let step = 1 + (dice >> 32) as usize % (from.len() - 1);
        let other = from[(dice as usize % from.len() + step) % from.len()];
        let cost = |at: usize| self.list[at].state().cost(now);
        if cost(other) < cost(one) { other } else { one }
    }

    fn done(&self, at: usize, ok: bool, latency: Duration) {
        let now = Instant::now();
        let mut state = self.list[at].state();
        let age = now.duration_since(state.measured).as_secs_f64();
        let keep = (-age / MEMORY.as_secs_f64()).exp();
        let latency = latency.as_secs_f64();
        state.latency = if latency > state.latency * keep {
            latency
        } else {
            state.latency * keep + latency * (1.0 - keep)
        };
        state.measured = now;
        state.failed = (!ok).then_some(now);
        if ok {
            state.failures = 0;
            state.ejections = 0;
            return;
        }
        state.failures = state.failures.saturating_add(1);
        let Some(outlier) = self.outlier else { return };
        if state.failures < outlier.consecutive_failures.max(1) || state.is_ejected(now) {
            return;
        }
        drop(state);
        if (self.ejected() + 1) * 100 > self.list.len() * outlier.max_ejection_percent as usize {
            return;
        }
        let mut state = self.list[at].state();
        state.ejections = (state.ejections + 1).min(EJECTIONS_MAX);
        state.ejected_until = Some(now + outlier.base_ejection_time * state.ejections);
        tracing::warn!(
            replica = %self.list[at].address.target,
            failures = state.failures,
            "a replica fails too often and is left alone for a while"
        );
    }
}

/// A replica that is being asked. Dropped without an outcome, it took at least so long.
pub(crate) struct Chosen<'r> {
    replicas: &'r Replicas,
    at: usize,
    began: Instant,
    told: bool,
    counted: bool,
}

impl Chosen<'_> {
    pub(crate) fn address(&self) -> &Address {
        &self.replicas.list[self.at].address
    }
    pub(crate) fn index(&self) -> usize {
        self.at
    }
    /// Says how it went.
    pub(crate) fn done(mut self, ok: bool) {
        self.told = true;
        if self.counted {
            self.replicas.done(self.at, ok, self.began.elapsed());
        }
    }
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        if self.counted {
            let mut state = self.replicas.list[self.at].state();
            state.in_flight = state.in_flight.saturating_sub(1);
            let waited = self.began.elapsed().as_secs_f64();
            if !self.told && waited > state.latency {
                (state.latency, state.measured) = (waited, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(count: usize, outlier: Option<OutlierEjection>) -> Replicas {
        let addresses = (0..count).map(|i| Address::parse(&format!("http://r{i}/")).unwrap());
        Replicas::new(addresses.collect(), outlier).unwrap()
    }

    const OUTLIER: OutlierEjection = OutlierEjection {
        consecutive_failures: 2,
        base_ejection_time: Duration::from_secs(10),
        max_ejection_percent: 50,
    };

    #[tokio::test(start_paused = true)]
    async fn the_faster_replica_is_asked_more_often() {
        let replicas = replicas(2, None);
        let mut asked = [0; 2];
        for _ in 0..200 {
            let chosen = replicas.choose(None);
            let at = chosen.index();
            asked[at] += 1;
            tokio::time::advance(Duration::from_millis(if at == 0 { 5 } else { 50 })).await;
            chosen.done(true);
        }
        assert!(asked[0] > 10 * asked[1] && asked[1] > 0, "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_in_flight_count() {
        let replicas = replicas(2, None);
        let first = replicas.choose(None);
        for _ in 0..20 {
            assert_ne!(replicas.choose(None).index(), first.index());
        }
        let avoided = replicas.choose(Some(1 - first.index()));
        assert_eq!(avoided.index(), first.index());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_replica_is_left_alone_for_longer_each_time() {
        let replicas = replicas(2, Some(OUTLIER));
        let bad = || {
            for _ in 0..40 {
                let chosen = replicas.choose(Some(0));
                let at = chosen.index();
                chosen.done(at == 0);
                if at == 0 {
                    return false;
                }
            }
            true
        };
        assert!(!bad(), "ejected, so the one to avoid is asked");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(!bad());
        tokio::time::advance(Duration::from_secs(2)).await;
        let chosen = replicas.choose(Some(0));
        assert_eq!(chosen.index(), 1, "it may try again");
        chosen.done(false);
        assert_eq!(replicas.choose(Some(0)).index(), 0, "once is enough now");
        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(replicas.choose(Some(0)).index(), 0);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(replicas.choose(Some(0)).index(), 1);
        for _ in 0..9 {
            replicas.choose(Some(1)).done(false);
            replicas.choose(Some(0)).done(false);
        }
        let now = Instant::now();
        let left = replicas.list.iter().filter(|r| !r.state().is_ejected(now));
        assert_eq!(left.count(), 1, "never all of them");
    }
}
