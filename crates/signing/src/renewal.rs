//! What has to be fetched and ends: fetched once for the whole process, and renewed before it ends.
//!
//! One fetch is under way at a time, whoever waits for it, as a task of its own: a request that is given up does not end
//! it. While the last value is good it is used, so that nobody waits for a renewal and whoever gives the values may be
//! away for as long as they last. After a failure comes a pause, which doubles up to [`PAUSE_MAX`]; requests that find
//! no good value meanwhile fail at once.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use ogive_transport::SignError;
use tokio::{sync::Notify, time::Instant};

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Between two renewals because a subgraph refused what it was shown.
const REFUSALS_APART: Duration = Duration::from_secs(10);

/// A value as it comes.
pub(crate) struct Fresh<T> {
    pub(crate) value: T,
    /// How long it is good from now on; `None` if it has no end.
    pub(crate) lives: Option<Duration>,
}

/// A value on its way.
pub(crate) type FetchFuture<'a, T> = Pin<Box<dyn Future<Output = Result<Fresh<T>, String>> + 'a>>;

/// Where values come from. Every fetch ends by itself.
pub(crate) trait Fetch: Send + Sync + 'static {
    type Value: Send + Sync + 'static;
    fn fetch(&self) -> FetchFuture<'_, Self::Value>;
    /// What it is, for the operator.
    fn name(&self) -> String;
}

struct Held<T> {
    value: Arc<T>,
    since: Instant,
    /// Whether it came because the one before was refused.
    after_refusal: bool,
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
}

struct State<T> {
    held: Option<Held<T>>,
    fetching: bool,
    /// Whether a subgraph refused what is held, so that it is worth waiting for the next.
    refused: bool,
    refusal_after: Option<Instant>,
    failures: u32,
    pause_until: Option<Instant>,
    why: String,
}

/// A value that is renewed.
pub(crate) struct Renewal<F: Fetch> {
    source: F,
    /// How long before its end a value is renewed; at most half of its life.
    before: Duration,
    state: Mutex<State<F::Value>>,
    changed: Notify,
}

enum Look<T> {
    Good(Arc<T>),
    Wait,
    Failed(String),
}

impl<F: Fetch> Renewal<F> {
    pub(crate) fn new(source: F, before: Duration) -> Self {
        Renewal {
            source,
            before,
            state: Mutex::new(State {
                held: None,
                fetching: false,
                refused: false,
                refusal_after: None,
                failures: 0,
                pause_until: None,
                why: String::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Every change is complete when the lock is given back.
    fn state(&self) -> MutexGuard<'_, State<F::Value>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A good value. Must be called on a runtime whose tasks stay on its thread.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Arc<F::Value>, SignError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From now on, so that nothing is missed between looking and waiting.
            changed.as_mut().enable();
            match self.look() {
                Look::Good(value) => return Ok(value),
                Look::Failed(why) => return Err(SignError(why)),
                Look::Wait => changed.await,
            }
        }
    }

    /// The value that [`get`](Self::get) has waited for, without waiting: one that has ended since then is still given, as
    /// the request that it is for has begun.
    pub(crate) fn held(&self) -> Result<Arc<F::Value>, SignError> {
        let state = self.state();
        let held = state.held.as_ref().map(|held| Arc::clone(&held.value));
        held.ok_or_else(|| SignError(format!("{}: nothing was fetched", self.source.name())))
    }

    fn look(self: &Arc<Self>) -> Look<F::Value> {
        let now = Instant::now();
        let state = self.state();
        let paused = state.pause_until.is_some_and(|until| now < until);
        let held = state.held.as_ref();
        let good = held.filter(|held| held.ends_at.is_none_or(|end| now < end));
        if let Some(held) = good {
            let value = Arc::clone(&held.value);
            let due = held.renew_at.is_some_and(|at| at <= now);
            if due && !state.fetching && !paused {
                self.start(state);
            }
            return Look::Good(value);
        }
        if state.fetching {
            return Look::Wait;
        }
        if paused {
            return Look::Failed(state.why.clone());
        }
        self.start(state);
        Look::Wait
    }

    /// A subgraph refused what a request showed that began then: whether there is another value, once a renewal is over. Only
    /// who was refused waits for that; others go on with the value that is held.
    pub(crate) async fn refused(self: &Arc<Self>, began: Instant) -> bool {
        if !self.renew_refused(began) {
            return false;
        }
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state();
                if !state.fetching {
                    return state.held.as_ref().is_some_and(|held| held.since > began);
                }
            }
            changed.await;
        }
    }

    /// Whether there is, or may be, another value than the one that was refused; begins to fetch it.
    fn renew_refused(self: &Arc<Self>, began: Instant) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let Some(held) = &state.held else {
            return false;
        };
        // Otherwise it may be the very one that was shown: the request had to wait for it.
        if held.after_refusal && held.since > began {
            return true;
        }
        if state.fetching {
            state.refused = true;
            return true;
        }
        let too_soon = |until: Option<Instant>| until.is_some_and(|until| now < until);
        if too_soon(state.refusal_after) || too_soon(state.pause_until) {
            return false;
        }
        state.refusal_after = Some(now + REFUSALS_APART);
        state.refused = true;
        self.start(state);
        true
    }

    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State<F::Value>>) {
        state.fetching = true;
        drop(state);
        let under_way = UnderWay(Arc::clone(self));
        tokio::task::spawn_local(async move {
            let fetched = under_way.0.source.fetch().await;
            under_way.0.done(fetched);
        });
    }

    fn done(&self, fetched: Result<Fresh<F::Value>, String>) {
        let now = Instant::now();
        let mut state = self.state();
        let after_refusal = std::mem::take(&mut state.refused);
        match fetched {
            Ok(Fresh { value, lives }) => {
                let ends_at = lives.map(|lives| now + lives);
                let before = lives.map(|lives| self.before.min(lives / 2));
                let renew_at = ends_at.zip(before).map(|(end, before)| end - before);
                state.held = Some(Held {
                    value: Arc::new(value),
                    since: now,
                    after_refusal,
                    renew_at,
                    ends_at,
                });
                if std::mem::take(&mut state.failures) > 0 {
                    tracing::info!("{} is there again", self.source.name());
                }
                state.pause_until = None;
            }
            Err(why) => {
                let pause = PAUSE_MIN * (1 << state.failures.min(6));
                state.failures += 1;
                state.pause_until = Some(now + pause.min(PAUSE_MAX));
                state.why = format!("{}: {why}", self.source.name());
                tracing::warn!("no credentials for subgraphs: {}", state.why);
            }
        }
    }
}

/// A fetch under way; it is over however it ends.
struct UnderWay<F: Fetch>(Arc<Renewal<F>>);

impl<F: Fetch> Drop for UnderWay<F> {
    fn drop(&mut self) {
        self.0.state().fetching = false;
        self.0.changed.notify_waiters();
    }
}

/// Values that are in use, by what they are fetched with: several subgraphs, and configurations one after the other, share
/// one.
pub(crate) struct Shared<O, F: Fetch>(Mutex<Vec<(O, Weak<Renewal<F>>)>>);

impl<O: PartialEq, F: Fetch> Shared<O, F> {
    pub(crate) const fn new() -> Self {
        Shared(Mutex::new(Vec::new()))
    }

    /// The one of equal options, or a new one.
    pub(crate) fn get(&self, options: O, make: impl FnOnce() -> Renewal<F>) -> Arc<Renewal<F>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, value)| value.strong_count() > 0);
        let mut known = all.iter().filter(|(known, _)| *known == options);
        if let Some(value) = known.find_map(|(_, value)| value.upgrade()) {
            return value;
        }
        let value = Arc::new(make());
        all.push((options, Arc::downgrade(&value)));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::LocalSet;

    use super::*;

    /// Gives its number; the third fetch fails.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Fetch for Counter {
        type Value = usize;
        fn fetch(&self) -> FetchFuture<'_, usize> {
            Box::pin(async {
                let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                match number {
                    3 => Err("away".into()),
                    value => Ok(Fresh {
                        value,
                        lives: Some(Duration::from_secs(100)),
                    }),
                }
            })
        }
        fn name(&self) -> String {
            "the counter".into()
        }
    }

    fn renewal() -> Arc<Renewal<Counter>> {
        Arc::new(Renewal::new(Counter::default(), Duration::from_secs(60)))
    }

    async fn value(renewal: &Arc<Renewal<Counter>>) -> Result<usize, String> {
        let value = renewal.get().await;
        value.map(|value| *value).map_err(|error| error.0)
    }

    async fn pass(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_fetched_once_renewed_ahead_and_used_to_its_end() {
        let renewal = renewal();
        let test = async {
            let both = tokio::join!(value(&renewal), value(&renewal));
            assert_eq!(both, (Ok(1), Ok(1)));
            // Half of a life of 100 s comes before the last 60 s.
            pass(49).await;
            assert_eq!(value(&renewal).await, Ok(1));
            assert_eq!(renewal.source.0.load(Ordering::Relaxed), 1);
            pass(2).await;
            assert_eq!(value(&renewal).await, Ok(1), "nobody waits for a renewal");
            pass(2).await;
            assert_eq!(value(&renewal).await, Ok(2));
            // The third fails; what is held is used to its end, then there is nothing.
            pass(60).await;
            assert_eq!(value(&renewal).await, Ok(2));
            pass(1).await;
            assert_eq!(value(&renewal).await, Ok(2));
            assert_eq!(renewal.source.0.load(Ordering::Relaxed), 3);
            pass(200).await;
            assert_eq!(value(&renewal).await, Ok(4));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_told_at_once_during_a_pause() {
        let renewal = renewal();
        renewal.source.0.store(2, Ordering::Relaxed);
        let test = async {
            let away = Err("the counter: away".to_owned());
            assert_eq!(value(&renewal).await, away);
            let before = Instant::now();
            assert_eq!(value(&renewal).await, away);
            assert_eq!(before.elapsed(), Duration::ZERO);
            pass(1).await;
            assert_eq!(value(&renewal).await, Ok(4));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_renewed_now_and_then() {
        let renewal = renewal();
        let test = async {
            let began = Instant::now();
            assert!(!renewal.refused(began).await, "there is nothing yet");
            // The request that waits for the first value shows it.
            assert_eq!(value(&renewal).await, Ok(1));
            let other = async {
                let asked = Instant::now();
                (value(&renewal).await, asked.elapsed())
            };
            let (renewed, other) = tokio::join!(renewal.refused(began), other);
            assert!(renewed);
            assert_eq!(other, (Ok(1), Duration::ZERO), "nobody else waits");
            assert_eq!(value(&renewal).await, Ok(2));
            assert!(renewal.refused(began).await, "it is another one already");
            pass(1).await;
            assert!(!renewal.refused(Instant::now()).await, "too soon");
            assert_eq!(renewal.source.0.load(Ordering::Relaxed), 2);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_gives_up_does_not_end_the_fetch() {
        let renewal = renewal();
        let test = async {
            let short = Duration::from_millis(10);
            let waited = tokio::time::timeout(short, renewal.get()).await;
            assert!(waited.is_err());
            assert_eq!(value(&renewal).await, Ok(1));
        };
        LocalSet::new().run_until(test).await;
    }

    #[test]
    fn equal_options_share_one() {
        static SHARED: Shared<u32, Counter> = Shared::new();
        let make = || Renewal::new(Counter::default(), Duration::ZERO);
        let one = SHARED.get(1, make);
        assert!(Arc::ptr_eq(&one, &SHARED.get(1, make)));
        assert!(!Arc::ptr_eq(&one, &SHARED.get(2, make)));
    }
}
