//! Rates that several processes count together.
//!
//! Redis has one number per key, as [`gcra`](crate::gcra) has, by its own clock. A process does not ask for every request: it
//! leases a slice of what is left, and serves requests from it. Slices are a tenth of the rate at first, and become smaller as
//! less is left, so that the rate is used up to the last of it; who has none left waits for one answer, no longer than the
//! timeout of the store. A lease is good until all that was taken of the key is free again, since from then on Redis lets
//! others take it.
//!
//! While Redis does not answer, a process counts by itself, with its share of the rate: one of as many as there were
//! processes, and what came free of it since Redis answered last. What it had leased it may still use. So over an outage all
//! of them together let pass no more than the rate and what was leased; of keys that nobody has asked for before, one burst;
//! and one more burst if Redis comes back without what it knew.

use std::{
    convert::Infallible,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use quick_cache::sync::Cache;
use redis::Script;

use crate::{
    gcra::{Cell, Quota, Remaining},
    store::Store,
};

/// Of what is left, one lease takes at most such a part...
const PART: u64 = 8;
/// ... and of the whole rate at most such a one.
const SLICE: u64 = 10;
/// How often more is asked for in a row because others have taken what was there.
const TRIES: u32 = 4;
/// Leases that are worth less time than this are not made one by one.
const LEASE_TIME_MIN: Duration = Duration::from_millis(10);

/// Leases. The time at which all will be free again is kept, in microseconds.
static LEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local capacity, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local need, least, most, part = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local taken = tonumber(redis.call('GET', KEYS[1]) or 0)
if taken < now then taken = now end
local free = math.floor((now + interval - taken) * capacity / interval)
if free < 0 then free = 0 end
if free < need then
  local missing = (math.max(need, least) - free) * interval / capacity
  return {0, free, math.ceil(missing)}
end
local lease = math.max(need, math.min(free, most, math.max(least, math.floor(free / part))))
taken = taken + lease * interval / capacity
redis.call('SET', KEYS[1], string.format('%.0f', taken), 'PX', math.ceil((taken - now) / 1000) + 1)
return {lease, free - lease, math.ceil(taken - now)}",
    )
});

#[derive(Debug, Default)]
struct State {
    /// Units in hand.
    leased: u64,
    /// Until when they are good.
    good_until: Option<Instant>,
    /// What Redis said is left for all.
    free: u64,
    /// Until when there are not so many.
    nothing_until: Option<(Instant, u64)>,
    /// When Redis answered last.
    answered: Option<Instant>,
    /// Whether somebody asks for more.
    is_asking: bool,
}

#[derive(Debug)]
struct Bucket {
    key: Box<str>,
    state: Mutex<State>,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
    /// What is counted alone, while Redis does not answer.
    own: Cell,
    is_alone: AtomicBool,
}

/// The rates of one process that it counts together with others.
#[derive(Clone, Debug)]
pub struct SharedRates {
    store: Store,
    buckets: Arc<Cache<u64, Arc<Bucket>>>,
    started: Instant,
}

/// What was taken.
#[derive(Debug)]
pub struct SharedTaken {
    bucket: Arc<Bucket>,
    from: TakenFrom,
}

/// Of what it was taken.
#[derive(Clone, Copy, Debug)]
enum TakenFrom {
    /// Of what was leased, which is good for so long.
    Leased(Instant),
    /// Of this process' share, which will have come free by then.
    Own(Quota, u64),
}

impl SharedRates {
    /// Rates in a store, of so many keys at a time; those used least are forgotten, with what was leased for them.
    pub fn new(store: Store, keys_max: usize) -> Self {
        SharedRates {
            store,
            buckets: Arc::new(Cache::new(keys_max)),
            started: Instant::now(),
        }
    }

    /// Number of keys that are known.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bucket(&self, hash: u64, key: impl FnOnce() -> Box<str>) -> Arc<Bucket> {
        let made = || {
            Ok::<_, Infallible>(Arc::new(Bucket {
                key: key(),
                state: Mutex::default(),
                turn: tokio::sync::Mutex::default(),
                own: Cell::default(),
                is_alone: AtomicBool::new(false),
            }))
        };
        match self.buckets.get_or_insert_with(&hash, made) {
            Ok(bucket) => bucket,
            Err(never) => match never {},
        }
    }

    /// Takes units of a key, or nothing if there are not enough. Waits only if nothing is leased. `hash` tells keys apart in
    /// this process, `key` in all of them.
    pub async fn take(
        &self,
        hash: u64,
        key: impl FnOnce() -> Box<str>,
        quota: &Quota,
        units: u64,
    ) -> (Result<Remaining, Remaining>, SharedTaken) {
        let bucket = self.bucket(hash, key);
        let (left, from) = self.take_of(&bucket, quota, units).await;
        (left, SharedTaken { bucket, from })
    }

    async fn take_of(
        &self,
        bucket: &Arc<Bucket>,
        quota: &Quota,
        units: u64,
    ) -> (Result<Remaining, Remaining>, TakenFrom) {
        if let Some(found) = bucket.take(quota, units) {
            self.ask_ahead(quota, bucket);
            return found;
        }
        if units > quota.capacity {
            return (Err(bucket.left(quota)), TakenFrom::Leased(Instant::now()));
        }
        if self.store.is_away() {
            return self.take_alone(quota, units, bucket);
        }
        let _turn = bucket.turn.lock().await;
        for _ in 0..TRIES {
            // Somebody else may have asked meanwhile, or have taken what was asked for.
            if let Some(found) = bucket.take(quota, units) {
                return found;
            }
            if !self.lease(quota, units, bucket).await {
                return self.take_alone(quota, units, bucket);
            }
        }
        let found = bucket.take(quota, units);
        found.unwrap_or_else(|| (Err(bucket.left(quota)), TakenFrom::Leased(Instant::now())))
    }

    /// Asks for more before there is nothing left, without waiting for it.
    fn ask_ahead(&self, quota: &Quota, bucket: &Arc<Bucket>) {
        {
            let mut state = bucket.state();
            let is_enough = state.leased > quota.capacity / SLICE / 4;
            if state.is_asking || is_enough || state.free < PART || state.leased == 0 {
                return;
            }
            state.is_asking = true;
        }
        let (rates, quota, bucket) = (self.clone(), *quota, Arc::clone(bucket));
        self.store.spawn(async move {
            let _turn = bucket.turn.lock().await;
            rates.lease(&quota, 1, &bucket).await;
            bucket.state().is_asking = false;
        });
    }

    /// Whether Redis has answered.
    async fn lease(&self, quota: &Quota, units: u64, bucket: &Bucket) -> bool {
        let interval = quota.interval.max(Duration::from_millis(1));
        let worth = u128::from(quota.capacity) * LEASE_TIME_MIN.as_nanos() / interval.as_nanos();
        let worth = u64::try_from(worth).unwrap_or(u64::MAX);
        let least = worth.min(quota.capacity / 100).max(1);
        let most = (quota.capacity / SLICE).max(least);
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        let need = units.saturating_sub(bucket.state().leased).max(1);
        let arguments = vec![quota.capacity, interval_us, need, least, most, PART];
        let asked = self.store.run(&LEASE, &bucket.key, arguments).await;
        let answer: Result<(u64, u64, u64), _> = asked;
        let Ok((lease, free, microseconds)) = answer else {
            return false;
        };
        let now = Instant::now();
        let until = now + Duration::from_micros(microseconds);
        let mut state = bucket.state();
        state.answered = Some(now);
        state.free = free;
        bucket.is_alone.store(false, Ordering::Relaxed);
        if lease > 0 {
            state.leased = state.leased.saturating_add(lease);
            state.good_until = Some(until);
            state.nothing_until = None;
        } else {
            state.nothing_until = Some((until, units));
        }
        true
    }

    /// Takes from this process' share.
    fn take_alone(
        &self,
        quota: &Quota,
        units: u64,
        bucket: &Bucket,
    ) -> (Result<Remaining, Remaining>, TakenFrom) {
        let share = Quota {
            capacity: (quota.capacity / self.store.processes()).max(1),
            interval: quota.interval,
        };
        if !bucket.is_alone.swap(true, Ordering::Relaxed)
            && let Some(answered) = bucket.state().answered
        {
            // What there was of it then is leased already, or used up by others.
            bucket.own.exhaust(&share, self.since_start(answered));
        }
        let left = bucket
            .own
            .take(&share, units, self.since_start(Instant::now()));
        let until = match &left {
            Ok(left) => self.since_start(Instant::now() + left.reset),
            Err(_) => 0,
        };
        (left, TakenFrom::Own(share, until))
    }

    fn since_start(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Gives units back, unless time has given them back already.
    pub fn give_back(&self, taken: &SharedTaken, units: u64) {
        let now = Instant::now();
        match taken.from {
            TakenFrom::Leased(until) if until > now => {
                let mut state = taken.bucket.state();
                state.leased = state.leased.saturating_add(units);
                state.nothing_until = None;
                // Others of them may be good for longer than these.
                let known = state.good_until.filter(|known| *known > now);
                state.good_until = Some(known.unwrap_or(until));
            }
            TakenFrom::Leased(_) => {}
            TakenFrom::Own(share, until) => {
                let now = self.since_start(now);
                taken.bucket.own.give_back(&share, units, until, now);
            }
        }
    }
}

impl State {
    /// What is left, as far as is known.
    fn left(&self, quota: &Quota) -> u64 {
        let left = self.leased.saturating_add(self.free);
        left.min(quota.capacity)
    }
}

impl Bucket {
    /// What is left, for who gets nothing.
    fn left(&self, quota: &Quota) -> Remaining {
        Remaining {
            remaining: self.state().left(quota),
            reset: Duration::from_secs(1),
        }
    }

    // Numbers cannot be left half written.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes from what is leased; `None` if Redis has to be asked.
    fn take(&self, quota: &Quota, units: u64) -> Option<(Result<Remaining, Remaining>, TakenFrom)> {
        let now = Instant::now();
        let mut state = self.state();
        if state.good_until.is_some_and(|until| until <= now) {
            state.leased = 0;
            state.good_until = None;
        }
        if state.leased >= units {
            state.leased -= units;
            let remaining = state.left(quota);
            let reset = quota.duration(quota.capacity - remaining);
            let from = TakenFrom::Leased(state.good_until.unwrap_or(now));
            return Some((Ok(Remaining { remaining, reset }), from));
        }
        let (until, few) = state.nothing_until?;
        if until <= now || units < few {
            return None;
        }
        let refused = Remaining {
            remaining: state.left(quota),
            reset: until - now,
        };
        Some((Err(refused), TakenFrom::Leased(now)))
    }
}
