//! One request per missing key in the process.
//!
//! The first caller that misses a key leads: its request is sent. Later callers wait, on any thread, and look the key up
//! again when the leader is done. They never get the leader's answer from here: a look-up decides whether a stored answer is
//! for them. If the leader gives up, the callers that wait look the key up again, too, and one of them leads.
//!
//! A caller that waits for an answer that is not stored has waited in vain. So the table remembers keys whose last answer
//! was not stored, and no caller waits for their requests until an answer is stored again.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_base::{FastMap, Share, ShareLimits, Shares};
use tokio::sync::watch;

use crate::Key;

/// Most requests that are led at a time, by default. A request beyond is sent without others waiting for it.
pub const FLIGHTS_MAX: usize = 16_384;
/// Parts of the table, each with a lock and limits of its own.
const PARTS: usize = 16;
/// Most keys that are remembered because their answers are not stored; of two in one place the later one is.
const FUTILE: usize = 4096;

/// The requests in flight of one process, by the keys for which they are sent.
#[derive(Debug)]
pub struct Flights {
    parts: [Part; PARTS],
    /// Of each part.
    limits: ShareLimits,
    futile: FutileKeys,
}

/// The requests in flight whose keys fall into one part of the table.
#[derive(Debug, Default)]
struct Part {
    requests: Mutex<FastMap<Key, watch::Receiver<FlightOutcome>>>,
    /// How many of them each client leads.
    led: Arc<Shares<IpAddr>>,
}

/// Keys whose last answer was not stored.
#[derive(Debug)]
struct FutileKeys(Box<[AtomicU64]>);

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlightOutcome {
    /// It has not ended yet.
    InFlight,
    /// Its answer was stored: look again.
    Stored,
    /// Its answer was not stored: each caller that waited sends a request of its own.
    NotStored,
    /// It failed: a caller that found a stale entry usable on errors uses it; other callers send their own requests.
    Failed,
    /// The leader gave it up: look again, and perhaps lead.
    Abandoned,
}

/// What to do about a missing key.
#[derive(Debug)]
pub enum FlightRole {
    /// Send a request, and say how it ended.
    Lead(Leader),
    /// Wait for a request in flight.
    Wait(Waiter),
    /// Send a request for which no other caller waits: its answer is not stored, or the client leads its share of requests,
    /// or all clients together lead too many.
    Alone,
}

/// The right to send the request. Dropping it gives the request up.
#[derive(Debug)]
pub struct Leader {
    flights: Arc<Flights>,
    key: Key,
    sender: watch::Sender<FlightOutcome>,
    _share: Share<IpAddr>,
}

/// A place among the callers that wait for the request of another.
#[derive(Clone, Debug)]
pub struct Waiter(watch::Receiver<FlightOutcome>);

impl Default for Flights {
    fn default() -> Self {
        Flights::new(ShareLimits::of(FLIGHTS_MAX, 100))
    }
}

impl Flights {
    /// An empty table. Each of its parts has an equal part of these limits.
    pub fn new(limits: ShareLimits) -> Self {
        Flights {
            parts: Default::default(),
            limits: ShareLimits {
                all: limits.all.div_ceil(PARTS),
                each: limits.each.div_ceil(PARTS),
            },
            futile: FutileKeys((0..FUTILE).map(|_| AtomicU64::new(0)).collect()),
        }
    }

    /// Notes whether the answer to a request for a key was stored.
    pub fn note(&self, key: &Key, is_stored: bool) {
        self.futile.note(key, is_stored);
    }

    /// Decides who sends the request for a key that `client` misses.
    pub fn begin(self: &Arc<Self>, key: Key, client: Option<IpAddr>) -> FlightRole {
        if self.futile.contains(&key) {
            return FlightRole::Alone;
        }
        let part = self.part(&key);
        let mut requests = part.lock();
        if let Some(receiver) = requests.get(&key) {
            return FlightRole::Wait(Waiter(receiver.clone()));
        }
        let Ok(_share) = part.led.take(client, 1, self.limits) else {
            return FlightRole::Alone;
        };
        let (sender, receiver) = watch::channel(FlightOutcome::InFlight);
        requests.insert(key, receiver);
        drop(requests);
        FlightRole::Lead(Leader {
            flights: Arc::clone(self),
            key,
            sender,
            _share,
        })
    }

    /// How many requests are led.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len()).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn part(&self, key: &Key) -> &Part {
        &self.parts[usize::from(key.0[0]) % PARTS]
    }
}

impl Part {
    /// Every change is complete when the lock is released, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, FastMap<Key, watch::Receiver<FlightOutcome>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FutileKeys {
    fn note(&self, key: &Key, is_stored: bool) {
        let (place, word) = (self.place(key), FutileKeys::word(key));
        if !is_stored {
            place.store(word, Ordering::Relaxed);
        } else if place.load(Ordering::Relaxed) == word {
            place.store(0, Ordering::Relaxed);
        }
    }

    fn contains(&self, key: &Key) -> bool {
        self.place(key).load(Ordering::Relaxed) == FutileKeys::word(key)
    }

    fn place(&self, key: &Key) -> &AtomicU64 {
        &self.0[(u128::from_le_bytes(key.0) >> 64) as usize % FUTILE]
    }

    /// 64 bits of a key; never 0, which is an empty place.
    fn word(key: &Key) -> u64 {
        u128::from_le_bytes(key.0) as u64 | 1
    }
}

impl Leader {
    /// Says that there is an answer. If it is stored, it is there already.
    pub fn land(self, is_stored: bool) {
        self.flights.note(&self.key, is_stored);
        self.sender.send_replace(if is_stored {
            FlightOutcome::Stored
        } else {
            FlightOutcome::NotStored
        });
    }

    /// Says that the request failed.
    pub fn fail(self) {
        self.sender.send_replace(FlightOutcome::Failed);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // First: a caller that is woken must be able to lead.
        self.flights.part(&self.key).lock().remove(&self.key);
        self.sender.send_if_modified(|outcome| {
            let is_given_up = *outcome == FlightOutcome::InFlight;
            if is_given_up {
                *outcome = FlightOutcome::Abandoned;
            }
            is_given_up
        });
    }
}

impl Waiter {
    /// Waits until the request has ended.
    pub async fn outcome(mut self) -> FlightOutcome {
        let ended = self
            .0
            .wait_for(|outcome| *outcome != FlightOutcome::InFlight);
        ended
            .await
            .map_or(FlightOutcome::Abandoned, |outcome| *outcome)
    }
}
