//! Rates that several processes count together.
//!
//! Redis has one number per key, as [`gcra`](crate::gcra) has, by its own clock. A process does not ask for every request: it
//! leases a slice of what is left, and serves requests from it. Slices are a tenth of the rate at first, and become smaller as
//! less is left, so that the rate is used up to the last of it; who has none left waits for one answer, no longer than the
//! timeout of the store. A lease is good until all that was taken of the key is free again, since from then on Redis lets
//! others take it.
//!
//! While Redis does not answer, a process counts by itself, with its share of the rate: one of as many as there were
//! processes, and what came free of it since Redis answered last. What it had leased it may still use. What it lets pass that
//! way is a [`Debt`], which it charges to Redis as soon as Redis answers again. It goes on counting by itself, and charging,
//! until all processes have had the time to find Redis again and to charge theirs: before that, what is free in Redis may have
//! been let pass already. So over an outage, and after it, all of them together let pass no more than the rate and what was
//! leased; of keys that a process has not asked for before, its share of one burst; and one more burst if Redis comes back
//! without what it knew.

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

/// Leases, and charges a debt. The time at which all will be free again is kept, in microseconds. Whatever else lies there, or
/// is further away than it can be, counts as if all were taken, and is replaced.
static LEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local capacity, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local need, least, most, part = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local debt = tonumber(ARGV[7])
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'table' and not string.find(kept.err, 'WRONGTYPE', 1, true) then return kept end
local full = now + interval
local taken = tonumber(kept or 0)
local replaced = not (taken and taken <= full)
if replaced then taken = full end
taken = math.min(math.max(taken, now) + debt, full)
local free = math.max(math.floor((full - taken) * capacity / interval), 0)
local lease = 0
if free >= need then
  lease = math.max(need, math.min(free, most, math.max(least, math.floor(free / part))))
  taken = taken + lease * interval / capacity
end
if lease > 0 or debt > 0 or replaced then
  redis.call('SET', KEYS[1], string.format('%.0f', taken), 'PX', math.ceil((taken - now) / 1000) + 1)
end
local wait = taken - now
if lease == 0 then wait = math.max(math.max(need, least) - free, 0) * interval / capacity end
return {lease, free - lease, math.ceil(wait), replaced and 1 or 0}",
    )
});

/// What [`LEASE`] answers: what is leased, what is left for all, how long the lease is good or how long there is none, in
/// microseconds, and whether the value was replaced.
type Leased = (u64, u64, u64, u64);

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
    debt: Debt,
}

/// What a process has let pass by itself, and Redis does not know of.
#[derive(Clone, Copy, Default, Debug)]
struct Debt {
    units: u64,
    /// The capacity of the share that they were taken of.
    share: u64,
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
    debtors: Arc<Debtors>,
    started: Instant,
}

/// The keys of which something is to be charged to Redis: no more than there may be keys.
#[derive(Debug)]
struct Debtors {
    max: usize,
    waiting: Mutex<Vec<Debtor>>,
}

#[derive(Debug)]
struct Debtor {
    bucket: Arc<Bucket>,
    quota: Quota,
}

impl Debtors {
    fn add(&self, bucket: &Arc<Bucket>, quota: &Quota) {
        let mut waiting = self.waiting();
        if waiting.len() < self.max {
            let (bucket, quota) = (Arc::clone(bucket), *quota);
            waiting.push(Debtor { bucket, quota });
        }
    }
    fn take_all(&self) -> Vec<Debtor> {
        std::mem::take(&mut *self.waiting())
    }
    // A list cannot be left half written.
    fn waiting(&self) -> MutexGuard<'_, Vec<Debtor>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            debtors: Arc::new(Debtors {
                max: keys_max,
                waiting: Mutex::default(),
            }),
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
        if self.store.is_away() || self.store.is_regrouping() {
            let taken = self.take_alone(quota, units, bucket);
            self.settle();
            return taken;
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
        if self.store.is_regrouping() {
            return;
        }
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
        let need = units.saturating_sub(bucket.state().leased).max(1);
        let asked = [need, least, most, PART];
        let Some((lease, free, microseconds, _)) = self.ask(quota, bucket, asked).await else {
            return false;
        };
        self.settle();
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

    /// Asks Redis for what is needed of a key, and charges the debt of this process; `None` if Redis does not answer.
    async fn ask(&self, quota: &Quota, bucket: &Bucket, asked: [u64; 4]) -> Option<Leased> {
        let owed = bucket.state().debt;
        let ahead = bucket.own.ahead(self.since_start(Instant::now()));
        let debt = owed.time(quota, ahead).as_micros();
        let interval = quota.interval.max(Duration::from_millis(1)).as_micros();
        let [interval, debt] = [interval, debt].map(|time| u64::try_from(time).unwrap_or(u64::MAX));
        let [need, least, most, part] = asked;
        let arguments = vec![quota.capacity, interval, need, least, most, part, debt];
        let answer = self.store.run(&LEASE, &bucket.key, arguments).await;
        let leased: Leased = answer.ok()?;
        let mut state = bucket.state();
        state.debt.units = state.debt.units.saturating_sub(owed.units);
        drop(state);
        if leased.3 > 0 {
            self.store.replaced(&bucket.key);
        }
        Some(leased)
    }

    /// Charges the debts of all keys, also of those that no request asks for any more, without waiting for it.
    fn settle(&self) {
        if self.store.is_away() {
            return;
        }
        let debtors = self.debtors.take_all();
        if debtors.is_empty() {
            return;
        }
        let rates = self.clone();
        self.store.spawn(async move {
            for Debtor { bucket, quota } in debtors {
                let _turn = bucket.turn.lock().await;
                if bucket.state().debt.units > 0 {
                    rates.ask(&quota, &bucket, [0, 0, 0, 1]).await;
                }
                // Redis has not answered, or more was let pass meanwhile.
                if bucket.state().debt.units > 0 {
                    rates.debtors.add(&bucket, &quota);
                }
            }
        });
    }

    /// Takes from this process' share.
    fn take_alone(
        &self,
        quota: &Quota,
        units: u64,
        bucket: &Arc<Bucket>,
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
            Ok(left) => {
                let mut state = bucket.state();
                if state.debt.units == 0 {
                    self.debtors.add(bucket, quota);
                }
                state.debt.units = state.debt.units.saturating_add(units);
                state.debt.share = share.capacity;
                self.since_start(Instant::now() + left.reset)
            }
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
                let mut state = taken.bucket.state();
                state.debt.units = state.debt.units.saturating_sub(units);
            }
        }
    }
}

impl Debt {
    /// How much later all of the rate is free, `ahead` nanoseconds being left until all of the share is. What the share has
    /// given back is given back: of a long outage no more is left than of the last interval.
    fn time(&self, quota: &Quota, ahead: u64) -> Duration {
        let part = u128::from(ahead) * u128::from(self.share) / u128::from(quota.capacity);
        let part = Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX));
        quota.duration(self.units).min(part)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_is_what_was_taken_and_has_not_come_free_yet() {
        let quota = Quota {
            capacity: 100,
            interval: Duration::from_secs(10),
        };
        // Half of the rate: what takes the share two seconds takes all one.
        let debt = Debt {
            units: 30,
            share: 50,
        };
        let time = |seconds: u64| debt.time(&quota, seconds * 1_000_000_000).as_secs();
        assert_eq!([0, 2, 6, 10].map(time), [0, 1, 3, 3]);
        assert_eq!(Debt::default().time(&quota, u64::MAX), Duration::ZERO);
    }
}
