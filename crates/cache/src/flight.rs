//! One request per missing key in the process.
//!
//! The first who misses leads: its request is sent. Others wait, on any thread, and look again when the leader is done.
//! They are never handed the leader's answer: only an answer that was stored is known to be for them, and a look-up
//! decides that. If the leader gives up, those who wait look again, too, and one of them leads.
//!
//! A caller that waits for an answer that is not stored has waited in vain. So keys whose last answer was not stored are
//! remembered, and no caller waits for their requests until an answer is stored again.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use ogive_base::FastMap;
use tokio::sync::watch;

use crate::Key;

/// Most requests that are led at a time, by default. A request beyond is sent without others waiting for it.
pub const FLIGHTS_MAX: usize = 16_384;
/// Parts of the table, each with a lock of its own.
const PARTS: usize = 16;
/// Most keys that are remembered because their answers are not stored; of two in one place the later one is.
const FUTILE: usize = 4096;

/// The requests in flight of one process, by the keys for which they are sent.
#[derive(Debug)]
pub struct Flights {
    parts: [Mutex<FastMap<Key, watch::Receiver<FlightOutcome>>>; PARTS],
    part_max: usize,
    /// Keys whose last answer was not stored, as 64 bits of each.
    futile: Box<[AtomicU64]>,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlightOutcome {
    /// It has not yet.
    InFlight,
    /// Its answer was stored: look again.
    Stored,
    /// Its answer was not stored: each caller that waited sends a request of its own.
    NotStored,
    /// It failed: a caller with a stale entry for such a case uses it, others send requests of their own.
    Failed,
    /// It was given up: look again, and lead perhaps.
    Abandoned,
}

/// What to do about a missing key.
#[derive(Debug)]
pub enum FlightRole {
    /// Send a request, and say how it ended.
    Lead(Leader),
    /// Wait for a request in flight.
    Wait(Waiter),
    /// Send a request for which no other caller waits: its answer is not stored, or there are too many requests.
    Alone,
}

/// The right to send the request. Dropping it gives the request up.
#[derive(Debug)]
pub struct Leader {
    flights: Arc<Flights>,
    key: Key,
    sender: watch::Sender<FlightOutcome>,
}

/// A place among the callers that wait for the request of another.
#[derive(Clone, Debug)]
pub struct Waiter(watch::Receiver<FlightOutcome>);

impl Default for Flights {
    fn default() -> Self {
        Flights::new(FLIGHTS_MAX)
    }
}

impl Flights {
    /// None yet, and about so many at most.
    pub fn new(max: usize) -> Self {
        Flights {
            parts: Default::default(),
            part_max: max.div_ceil(PARTS),
            futile: (0..FUTILE).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Notes whether the answer to a request for a key was stored.
    pub fn note(&self, key: &Key, is_stored: bool) {
        let (place, word) = self.futile_place(key);
        if !is_stored {
            place.store(word, Ordering::Relaxed);
        } else if place.load(Ordering::Relaxed) == word {
            place.store(0, Ordering::Relaxed);
        }
    }

    fn futile_place(&self, key: &Key) -> (&AtomicU64, u64) {
        let number = u128::from_le_bytes(key.0);
        // No key is 0: that is an empty place.
        (
            &self.futile[(number >> 64) as usize % FUTILE],
            number as u64 | 1,
        )
    }

    /// Who sends the request for a key.
    pub fn begin(self: &Arc<Self>, key: Key) -> FlightRole {
        let (place, word) = self.futile_place(&key);
        if place.load(Ordering::Relaxed) == word {
            return FlightRole::Alone;
        }
        let mut part = self.part(&key);
        if let Some(receiver) = part.get(&key) {
            return FlightRole::Wait(Waiter(receiver.clone()));
        }
        if part.len() >= self.part_max {
            return FlightRole::Alone;
        }
        let (sender, receiver) = watch::channel(FlightOutcome::InFlight);
        part.insert(key, receiver);
        drop(part);
        FlightRole::Lead(Leader {
            flights: Arc::clone(self),
            key,
            sender,
        })
    }

    /// How many requests are led.
    pub fn len(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| lock(part).len()).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn part(&self, key: &Key) -> MutexGuard<'_, FastMap<Key, watch::Receiver<FlightOutcome>>> {
        lock(&self.parts[usize::from(key.0[0]) % PARTS])
    }
}

// Every change is complete when the lock is given back.
fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.flights.part(&self.key).remove(&self.key);
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
