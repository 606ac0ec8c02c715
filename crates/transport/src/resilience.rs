//! What a subgraph's past says about its next request: whether it is asked at all (circuit breaker) and whether a
//! failed request is sent once more (retry budget).
//!
//! One [`Health`] per subgraph, shared by all workers. A budget keeps retries a small part of all requests, so that they
//! cannot finish off a subgraph that is already struggling; jitter keeps them from arriving together.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// When failed queries are sent once more. Mutations never are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// Most further tries of one request.
    pub attempts: u32,
    /// Longest wait before the first further try; doubles with each. The wait is a random part of it.
    pub backoff: Duration,
    /// Longest wait before any try.
    pub backoff_max: Duration,
    /// Further tries as a part of all requests.
    pub budget_percent: u32,
    /// Further tries per second that are fine however few requests there are.
    pub budget_per_second: u32,
}

/// When a query that takes longer than most is asked a second time, elsewhere if there are several replicas. The first
/// good answer counts, the other request is given up. Mutations never are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hedge {
    /// A query is slow if so many percent of the last ones were faster.
    pub percentile: u32,
    /// Shortest time that is slow.
    pub delay_min: Duration,
    /// Second requests in percent of all.
    pub budget_percent: u32,
}

/// When a subgraph is left alone for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitBreaker {
    /// Failures as a part of the requests of a window.
    pub error_percent: u32,
    /// Fewest requests in a window that say anything.
    pub volume: u32,
    /// How long requests are counted together.
    pub window: Duration,
    /// How long it is left alone before one request tries again.
    pub reset_timeout: Duration,
}

/// What is known about one subgraph.
#[derive(Debug)]
pub struct Health {
    state: Mutex<State>,
    random: RandomState,
}

#[derive(Debug)]
struct State {
    window_start: Instant,
    total: u32,
    failed: u32,
    open_until: Option<Instant>,
    /// One request is trying whether the subgraph is well again.
    probing: bool,
    /// Retries that may be made, in hundredths.
    budget: u64,
    budget_at: Instant,
    drawn: u64,
    /// Second requests that may be made, in hundredths.
    hedges: u64,
    latencies: Latencies,
}

/// How long the last queries took: numbers of queries by time, four classes for each power of two of microseconds.
#[derive(Debug)]
struct Latencies {
    counts: [u32; 4 * 32],
    total: u32,
}

/// Queries after which those before count half.
const LATENCIES_MAX: u32 = 2_000;
/// Fewest queries that say what is slow.
const LATENCIES_MIN: u32 = 20;
/// Most second requests that can be saved up, in hundredths.
const HEDGES_MAX: u64 = 10 * 100;

impl Latencies {
    fn class(latency: Duration) -> usize {
        let micros = latency.as_micros().clamp(4, u128::from(u32::MAX)) as u32;
        let power = micros.ilog2();
        (4 * power + ((micros >> (power - 2)) & 3)) as usize
    }
    /// The longest time of a class.
    fn end(class: usize) -> Duration {
        let (power, quarter) = (class / 4, class as u64 % 4);
        Duration::from_micros(((4 + quarter + 1) << power) >> 2)
    }
    fn add(&mut self, latency: Duration) {
        self.counts[Self::class(latency)] += 1;
        self.total += 1;
        if self.total >= LATENCIES_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }
    fn percentile(&self, percentile: u32) -> Option<Duration> {
        if self.total < LATENCIES_MIN {
            return None;
        }
        let wanted = (u64::from(self.total) * u64::from(percentile)).div_ceil(100);
        let mut so_far = 0;
        let class = self.counts.iter().position(|count| {
            so_far += u64::from(*count);
            so_far >= wanted
        });
        class.map(Self::end)
    }
}

/// Most retries that can be saved up, in hundredths.
const BUDGET_MAX: u64 = 100 * 100;

impl Default for Health {
    fn default() -> Self {
        let now = Instant::now();
        Health {
            state: Mutex::new(State {
                window_start: now,
                total: 0,
                failed: 0,
                open_until: None,
                probing: false,
                // A second's worth of the smallest budget is added at once below.
                budget: 0,
                budget_at: now.checked_sub(Duration::from_secs(1)).unwrap_or(now),
                drawn: 0,
                hedges: 0,
                latencies: Latencies {
                    counts: [0; 4 * 32],
                    total: 0,
                },
            }),
            random: RandomState::new(),
        }
    }
}

impl Health {
    /// Every change is complete when the lock is given back, so a panic elsewhere leaves nothing half-done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the circuit breaker is open: the subgraph is left alone, or has not answered well since.
    pub fn is_open(&self) -> bool {
        self.state().open_until.is_some()
    }

    /// Permission to ask the subgraph; `None` while it is left alone.
    pub(crate) fn admit(&self, breaker: Option<CircuitBreaker>) -> Option<Permit<'_>> {
        let mut permit = Permit {
            health: self,
            breaker,
            probe: false,
        };
        if breaker.is_some() {
            let mut state = self.state();
            if let Some(until) = state.open_until {
                if state.probing || Instant::now() < until {
                    return None;
                }
                state.probing = true;
                permit.probe = true;
            }
        }
        Some(permit)
    }

    /// Counts a request towards the budget of retries.
    pub(crate) fn deposit(&self, retry: &Retry) {
        let mut state = self.state();
        state.budget = (state.budget + u64::from(retry.budget_percent)).min(BUDGET_MAX);
    }

    /// How long to wait before further try number `attempt` (from 0); `None` if the budget is spent.
    pub(crate) fn withdraw(&self, retry: &Retry, attempt: u32) -> Option<Duration> {
        let mut state = self.state();
        let now = Instant::now();
        let passed = now.duration_since(state.budget_at).as_millis().min(1000) as u64;
        let earned = passed * u64::from(retry.budget_per_second) / 10;
        if earned > 0 {
            state.budget_at = now;
            state.budget = (state.budget + earned).min(BUDGET_MAX);
        }
        state.budget = state.budget.checked_sub(100)?;
        state.drawn = state.drawn.wrapping_add(1);
        let dice = self.random.hash_one(state.drawn);
        let longest = retry
            .backoff
            .saturating_mul(1 << attempt.min(16))
            .min(retry.backoff_max);
        let longest = longest.as_micros().min(u128::from(u32::MAX)) as u64;
        Some(Duration::from_micros(
            longest / 2 + dice % (longest / 2 + 1),
        ))
    }
}

impl Health {
    /// A further try that was withdrawn is not made.
    pub(crate) fn give_back(&self) {
        let mut state = self.state();
        state.budget = (state.budget + 100).min(BUDGET_MAX);
    }
    /// How long to wait for an answer before asking a second time; `None` until that is known.
    pub(crate) fn hedge_after(&self, hedge: &Hedge) -> Option<Duration> {
        let mut state = self.state();
        state.hedges = (state.hedges + u64::from(hedge.budget_percent)).min(HEDGES_MAX);
        let slow = state.latencies.percentile(hedge.percentile)?;
        Some(slow.max(hedge.delay_min))
    }
    /// Whether a second request may be made now.
    pub(crate) fn withdraw_hedge(&self) -> bool {
        let mut state = self.state();
        let rest = state.hedges.checked_sub(100);
        state.hedges = rest.unwrap_or(state.hedges);
        rest.is_some()
    }
    /// One that was withdrawn is not made.
    pub(crate) fn give_back_hedge(&self) {
        let mut state = self.state();
        state.hedges = (state.hedges + 100).min(HEDGES_MAX);
    }
    /// How long a query took that was answered well.
    pub(crate) fn answered(&self, latency: Duration) {
        self.state().latencies.add(latency);
    }
}

/// A request that was let through. Dropped without an outcome, it counts as neither.
pub(crate) struct Permit<'h> {
    health: &'h Health,
    breaker: Option<CircuitBreaker>,
    probe: bool,
}

impl Permit<'_> {
    /// Says how it went. Tells whether the subgraph is left alone from now on.
    pub(crate) fn done(mut self, ok: bool) -> bool {
        let Some(breaker) = self.breaker else {
            return false;
        };
        let mut state = self.health.state();
        let now = Instant::now();
        if self.probe {
            self.probe = false;
            state.probing = false;
            state.open_until = (!ok).then(|| now + breaker.reset_timeout);
            (state.window_start, state.total, state.failed) = (now, 0, 0);
            return !ok;
        }
        if state.open_until.is_some() {
            return false;
        }
        if now.duration_since(state.window_start) > breaker.window {
            (state.window_start, state.total, state.failed) = (now, 0, 0);
        }
        state.total = state.total.saturating_add(1);
        state.failed = state.failed.saturating_add(u32::from(!ok));
        let opens = !ok
            && state.total >= breaker.volume
            && u64::from(state.failed) * 100
                >= u64::from(state.total) * u64::from(breaker.error_percent);
        if opens {
            state.open_until = Some(now + breaker.reset_timeout);
        }
        opens
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.probe {
            self.health.state().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: CircuitBreaker = CircuitBreaker {
        error_percent: 50,
        volume: 4,
        window: Duration::from_secs(10),
        reset_timeout: Duration::from_secs(5),
    };

    fn ask(health: &Health, ok: bool) -> bool {
        health
            .admit(Some(BREAKER))
            .map(|permit| permit.done(ok))
            .is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_breaker_opens_probes_and_closes() {
        let health = Health::default();
        for ok in [true, true, false] {
            assert!(ask(&health, ok), "too few to say anything");
        }
        assert!(ask(&health, false), "half of four: opens after this one");
        assert!(!ask(&health, true));
        tokio::time::advance(Duration::from_secs(5)).await;
        let probe = health.admit(Some(BREAKER)).expect("one request may try");
        assert!(!ask(&health, true), "only one");
        assert!(probe.done(false));
        assert!(!ask(&health, true), "left alone again");
        tokio::time::advance(Duration::from_secs(5)).await;
        drop(health.admit(Some(BREAKER)).expect("one may try"));
        assert!(ask(&health, true), "a client that left decides nothing");
        for _ in 0..3 {
            assert!(ask(&health, true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn old_failures_are_forgotten() {
        let health = Health::default();
        for _ in 0..3 {
            assert!(ask(&health, false));
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        for _ in 0..3 {
            assert!(ask(&health, false), "a new window");
        }
    }

    #[test]
    fn percentiles_are_measured() {
        let mut latencies = Latencies {
            counts: [0; 4 * 32],
            total: 0,
        };
        for ms in 1..20 {
            latencies.add(Duration::from_millis(ms));
        }
        assert_eq!(latencies.percentile(95), None, "too few to say anything");
        for ms in 20..=100 {
            latencies.add(Duration::from_millis(ms));
        }
        for (percentile, ms) in [(1, 1), (50, 50), (95, 95), (100, 100)] {
            let found = latencies.percentile(percentile).unwrap().as_secs_f64() * 1e3;
            let ms = f64::from(ms);
            assert!(
                found >= ms && found <= ms * 1.26,
                "p{percentile}: {found} ms"
            );
        }
        for _ in 0..10 * LATENCIES_MAX {
            latencies.add(Duration::from_micros(900));
        }
        assert!(latencies.percentile(99).unwrap() < Duration::from_millis(2));
        assert!(latencies.total < LATENCIES_MAX);
        for micros in [0, 1, 4, 5, 7, 8, 1_000_000, u64::MAX] {
            let class = Latencies::class(Duration::from_micros(micros));
            assert!(Latencies::end(class) >= Duration::from_micros(micros.min(1 << 31)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retries_stay_within_their_budget() {
        let retry = Retry {
            attempts: 3,
            backoff: Duration::from_millis(10),
            backoff_max: Duration::from_millis(25),
            budget_percent: 20,
            budget_per_second: 2,
        };
        let health = Health::default();
        let waits: Vec<_> = (0..4).map_while(|i| health.withdraw(&retry, i)).collect();
        assert_eq!(waits.len(), 2, "two a second");
        assert!(waits[0] >= Duration::from_millis(5) && waits[0] <= Duration::from_millis(10));
        assert!(waits[1] >= Duration::from_millis(10) && waits[1] <= Duration::from_millis(20));
        for _ in 0..10 {
            health.deposit(&retry);
        }
        assert_eq!(
            (0..4).map_while(|i| health.withdraw(&retry, i)).count(),
            2,
            "a fifth of ten"
        );
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(
            (0..9).map_while(|i| health.withdraw(&retry, i)).count(),
            2,
            "not saved up"
        );
    }
}
