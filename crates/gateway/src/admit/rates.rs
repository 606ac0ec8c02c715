//! Who gets in: a cap on requests at a time, and a rate per client.
//!
//! Both say when to come back. The rate is kept per key as one number ([`ogive_store::gcra`]), so a key costs a few
//! bytes and no timer; the least used keys are forgotten first.

use std::{
    hash::BuildHasher,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, Response};
use ogive_base::{Client, MemoryBudget, Reservation, memory::CHUNK};
use ogive_config::{Config, RateLimitKey};
use ogive_edge::{
    error::RequestError,
    measured::{Exceeded, note},
    rate_state::RateState,
};
use ogive_limits::{Limit, Measured};
use ogive_store::gcra::{Cell, Quota};
use ogive_telemetry::codes;
use ogive_transport::first_text;

use crate::admit::{
    latency_sample::LatencySample,
    log_sample::LogSample,
    overload::Running,
    rate_keys::{RateKey, RateKeys},
};

/// What clients call the rate that has no name.
const DEFAULT: &str = "\"default\"";

/// By what its keys are found.
const NAME: &str = "rate_limit";

/// About what a key makes the process hold...
const KEY_BYTES: usize = 112;
/// ... and one that is counted together with other processes.
const SHARED_KEY_BYTES: usize = 384;
/// Keys are counted whenever there may be so many more: to count them looks at all parts of all tables, and whoever makes
/// keys up is not to have us do that with each of them.
const COUNTED_EVERY: usize = 32;

/// How often it is logged that a rate is exceeded that is only measured.
const MEASURED_INTERVAL: Duration = Duration::from_secs(10);

/// What a configuration asks for.
#[derive(Clone, Debug, Default)]
pub struct AdmissionOptions {
    /// Most requests at a time.
    pub concurrency: Option<Measured<usize>>,
    /// How many requests of one key in how much time.
    pub rate: Option<Rate>,
}

/// A rate.
#[derive(Clone, Debug)]
pub struct Rate {
    /// So many requests.
    pub capacity: u32,
    /// In so much time.
    pub interval: Duration,
    /// Whose.
    pub key: RateLimitKey,
    /// With [`RateLimitKey::Header`].
    pub header: Option<HeaderName>,
    /// With [`RateLimitKey::Claim`].
    pub claim: Box<str>,
    /// With [`RateLimitKey::ClientName`].
    pub client_names: Vec<HeaderName>,
    /// Whether exceeding it is only logged.
    pub measure_only: bool,
}

impl AdmissionOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let router = &config.traffic_shaping.router;
        AdmissionOptions {
            concurrency: router.concurrency_limit.map(|limit| {
                let warn_only = config.limits.warn_only;
                warn_only.size(Limit::Concurrency, limit.get(), 0)
            }),
            rate: router.rate_limit.as_ref().map(|rate| Rate {
                capacity: rate.capacity.get().min(u32::MAX as usize) as u32,
                interval: rate.interval.0.max(Duration::from_millis(1)),
                key: rate.key,
                header: HeaderName::from_bytes(rate.header.0.as_bytes()).ok(),
                claim: rate.claim.as_str().into(),
                client_names: {
                    let names = config.telemetry.clients.name_headers.iter();
                    let name =
                        |name: &ogive_config::HeaderName| HeaderName::from_bytes(name.0.as_bytes());
                    names.filter_map(|n| name(n).ok()).collect()
                },
                measure_only: rate.measure_only,
            }),
        }
    }
}

/// What is known about the clients of one process; outlives configurations.
#[derive(Debug)]
pub struct Admission {
    running: Arc<AtomicUsize>,
    start: Instant,
    keys: RateKeys,
    hasher: foldhash::fast::RandomState,
    /// How often it is logged that a rate is exceeded that is only measured.
    measured: LogSample,
    /// What keys make the process hold, those that are counted together with other processes included.
    memory: KeyMemory,
}

/// What keys of rates make the process hold. Keys are there already when they are counted: who makes many of them up must
/// not find a way around a rate.
#[derive(Debug)]
struct KeyMemory {
    reservation: Mutex<Reservation>,
    counted: AtomicUsize,
    /// How many keys were not known...
    made: AtomicUsize,
    /// ... and how many of those that are counted with other processes.
    made_shared: AtomicUsize,
}

/// Notes one more key; whether those that are kept are to be counted.
fn is_due(made: &AtomicUsize) -> bool {
    made.fetch_add(1, Ordering::Relaxed)
        .is_multiple_of(COUNTED_EVERY)
}

impl KeyMemory {
    fn count(&self, bytes: usize) {
        if bytes <= self.counted.load(Ordering::Relaxed) {
            return;
        }
        let reservation = self.reservation.lock();
        let reservation = reservation.unwrap_or_else(PoisonError::into_inner);
        let counted = self.counted.load(Ordering::Relaxed);
        if bytes > counted {
            let more = (bytes - counted).next_multiple_of(CHUNK);
            reservation.count(more);
            self.counted.store(counted + more, Ordering::Relaxed);
        }
    }
}

/// A request that is let in; counts until it is dropped.
#[derive(Debug, Default)]
pub struct Admitted {
    running: Option<Arc<AtomicUsize>>,
    /// That it counts among those that may run under overload.
    pub(crate) slot: Option<Running>,
    /// What to tell about the rate.
    pub rate: Option<RateState>,
    /// What is exceeded, but only measured.
    pub exceeded: Exceeded,
}

/// What a rate says of a request that it lets pass.
#[derive(Debug)]
pub struct Charged {
    /// What to tell the client.
    pub state: RateState,
    /// The code of the rate, if the request exceeds it and the rate is only measured.
    pub exceeded: Option<&'static str>,
}

impl Admitted {
    /// It has its answer, which tells of the rate.
    pub(crate) fn answered<B>(&mut self, answer: &mut Response<B>) {
        if let Some(rate) = &self.rate {
            rate.write(answer.headers_mut());
        }
        if let Some(running) = &mut self.slot {
            running.answered(LatencySample::of(answer));
        }
    }
    /// All of the request has come, but for files, which come while it runs. It is refused if too many run by now.
    pub(crate) fn received<T>(
        &mut self,
        received: Result<T, RequestError>,
        has_files: bool,
    ) -> Result<T, RequestError> {
        let received = received?;
        self.begin()?;
        if let Some(running) = self.slot.as_mut().filter(|_| has_files) {
            running.has_files();
        }
        Ok(received)
    }
    /// It runs from now on, if it did not; or is refused.
    pub(crate) fn begin(&mut self) -> Result<(), RequestError> {
        self.slot.as_mut().map_or(Ok(()), Running::begin)
    }
    /// What is counted, for people; nothing if nothing is.
    pub(crate) fn describe(&self) -> String {
        let rate = self.rate.as_ref();
        let mut out = rate.map_or_else(String::new, RateState::describe);
        for code in &self.exceeded {
            out.push_str(&format!("\nexceeded, which is only measured: {code}"));
        }
        out
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Admission {
    /// Knows nobody yet; counts what it keeps among the memory of the process.
    pub fn new(memory: &Arc<MemoryBudget>) -> Self {
        Admission {
            running: Arc::default(),
            start: Instant::now(),
            keys: RateKeys::default(),
            hasher: foldhash::fast::RandomState::default(),
            measured: LogSample::new(MEASURED_INTERVAL),
            memory: KeyMemory {
                reservation: Mutex::new(Reservation::new(memory)),
                counted: AtomicUsize::new(0),
                made: AtomicUsize::new(0),
                made_shared: AtomicUsize::new(0),
            },
        }
    }

    /// Counts a key that was not known.
    fn count_key(&self) {
        if is_due(&self.memory.made) {
            let keys = self.keys.len() + COUNTED_EVERY;
            self.memory.count(keys * KEY_BYTES);
        }
    }
    /// The same of one that is counted with other processes; `keys`: how many there are of these.
    pub(crate) fn count_shared_key(&self, keys: impl FnOnce() -> usize) {
        if is_due(&self.memory.made_shared) {
            let keys = keys() + COUNTED_EVERY;
            self.memory
                .count(self.keys.len() * KEY_BYTES + keys * SHARED_KEY_BYTES);
        }
    }
    /// Lets a request in, whoever asks, or says when to come back.
    pub fn admit(
        &self,
        options: &AdmissionOptions,
        headers: &HeaderMap,
        client: Client,
    ) -> Result<Admitted, RequestError> {
        let mut admitted = Admitted::default();
        // Counted only on demand: a counter that all threads write to costs each of them.
        if let Some(max) = &options.concurrency {
            let before = self.running.fetch_add(1, Ordering::Relaxed);
            admitted.running = Some(Arc::clone(&self.running));
            if before >= max.ceiling {
                let error = RequestError::http(
                    codes::REQUEST_CONCURRENCY_LIMITED,
                    "too many requests at a time",
                );
                return Err(retry_after(error, 1));
            }
            note(max, &(before + 1), &mut admitted.exceeded);
        }
        let Some(rate) = &options.rate else {
            return Ok(admitted);
        };
        let key = match rate.key {
            RateLimitKey::Global => RateKey::known(self.hasher.hash_one(0u8)),
            RateLimitKey::Ip => RateKey::known(self.of_address(client)),
            RateLimitKey::Header => match rate.header.as_ref().and_then(|name| headers.get(name)) {
                Some(value) => RateKey::known(self.hasher.hash_one((2u8, value.as_bytes()))),
                None => RateKey::stranger(self.of_address(client)),
            },
            RateLimitKey::ClientName => match first_text(headers, &rate.client_names) {
                Some(name) => RateKey::known(self.hasher.hash_one((6u8, name))),
                None => RateKey::stranger(self.of_address(client)),
            },
            // Not known yet.
            RateLimitKey::Claim | RateLimitKey::Operation => return Ok(admitted),
        };
        let charged = self.check(rate, key)?;
        admitted.exceeded.extend(charged.exceeded);
        admitted.rate = Some(charged.state);
        Ok(admitted)
    }

    /// Lets a caller in; `None` if the rate is not one of callers. `claim` gives what a claim says of the caller.
    pub fn admit_caller<'a>(
        &self,
        options: &AdmissionOptions,
        client: Client,
        claim: impl FnOnce(&str) -> Option<std::borrow::Cow<'a, str>>,
    ) -> Result<Option<Charged>, RequestError> {
        let rate = options.rate.as_ref();
        let Some(rate) = rate.filter(|rate| rate.key == RateLimitKey::Claim) else {
            return Ok(None);
        };
        // Strangers must not share one rate: any of them could use it up for all others.
        let key = match claim(&rate.claim) {
            Some(value) => RateKey::known(self.hasher.hash_one((4u8, value))),
            None => RateKey::stranger(self.of_address(client)),
        };
        self.check(rate, key).map(Some)
    }

    /// Lets an operation in, by its name; `None` if the rate is not one of operations.
    pub fn admit_operation(
        &self,
        options: &AdmissionOptions,
        name: Option<&str>,
    ) -> Result<Option<Charged>, RequestError> {
        let rate = options.rate.as_ref();
        let rate = rate.filter(|rate| rate.key == RateLimitKey::Operation);
        let key = || RateKey::known(self.hasher.hash_one((3u8, name)));
        rate.map(|rate| self.check(rate, key())).transpose()
    }

    fn of_address(&self, client: Client) -> u64 {
        match client.network() {
            Some(network) => self.hasher.hash_one((1u8, network)),
            // At a unix socket, where nobody can tell them apart.
            None => self.hasher.hash_one(5u8),
        }
    }

    fn check(&self, rate: &Rate, key: RateKey) -> Result<Charged, RequestError> {
        let (ok, state) = self.take(rate, key);
        if ok {
            let exceeded = None;
            return Ok(Charged { state, exceeded });
        }
        if !rate.measure_only {
            let error = RequestError::http(codes::REQUEST_RATE_LIMITED, "too many requests");
            let seconds = state.reset_seconds.unwrap_or_default().max(1);
            return Err(RequestError {
                rate: Some(Box::new(state)),
                ..retry_after(error, seconds)
            });
        }
        if let Some(requests) = self.measured.count(self.now()) {
            tracing::warn!(
                requests,
                "requests exceed the rate limit, which is only measured"
            );
        }
        let exceeded = Some(codes::REQUEST_RATE_LIMITED.as_str());
        Ok(Charged { state, exceeded })
    }

    fn take(&self, rate: &Rate, key: RateKey) -> (bool, RateState) {
        let quota = Quota {
            capacity: u64::from(rate.capacity),
            interval: rate.interval,
        };
        let cell = self.cell(NAME, key);
        let taken = cell.take(&quota, 1, self.now());
        let left = taken.unwrap_or_else(|left| left);
        (taken.is_ok(), RateState::of(DEFAULT, &quota, &left))
    }

    /// The rates of a configuration are counted from now on.
    pub(crate) fn count_by<'r>(
        &self,
        admission: &AdmissionOptions,
        several: impl Iterator<Item = &'r str>,
    ) {
        let one = admission.rate.iter().map(|_| NAME);
        self.keys.share_among(one.chain(several));
    }
    /// What a key of a rate has taken; see [`RateKeys::cell`].
    pub(crate) fn cell(&self, rate: &str, key: RateKey) -> Arc<Cell> {
        let (cell, is_new) = self.keys.cell(rate, key);
        if is_new {
            self.count_key();
        }
        cell
    }
    /// Nanoseconds since the process began.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
    /// What keys are hashed with.
    pub(crate) fn hasher(&self) -> &impl BuildHasher {
        &self.hasher
    }
}

fn retry_after(error: RequestError, seconds: u64) -> RequestError {
    RequestError {
        retry_after: Some(seconds),
        ..error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_among_the_memory_of_the_process() {
        let memory = Arc::new(MemoryBudget::new(64 << 20));
        let admission = Admission::new(&memory);
        let before = memory.used();
        (0..10_000).for_each(|key| drop(admission.cell("a", RateKey::known(key))));
        let used = memory.used() - before;
        assert!(
            (10_000 * KEY_BYTES..10_000 * KEY_BYTES + 2 * CHUNK).contains(&used),
            "{used}"
        );
        drop(admission);
        assert_eq!(memory.used(), before);
    }
}
