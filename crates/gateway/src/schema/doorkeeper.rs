//! What a cache has been asked to keep before: entries are kept when they come for the second time.
//!
//! A client that never sends the same operation twice would fill a cache with what nobody will ask for again. So a cache
//! keeps what comes first only while it is mostly empty ([`FREE`]); afterwards an entry has to come twice while its hash is
//! remembered here. The table has a fixed size: two generations of hashes, of which the older one goes when the younger
//! one is full. A hash that is taken for another one costs a place in the cache, nothing else.
//!
//! It is asked only when something was made and is to be kept, never when something is found.

use std::{
    hash::{BuildHasher, Hash},
    sync::{Mutex, PoisonError},
};

/// The part of a cache that is filled by whatever comes: one in so many.
pub(crate) const FREE: u64 = 16;

/// Hashes of one generation.
const PLACES: usize = 4096;
/// A generation is full when so many of its places are taken: what hits a place that is taken goes over it.
const TAKEN_MAX: usize = PLACES / 2;

/// Remembers what came lately. 32 KiB.
#[derive(Debug)]
pub(crate) struct Doorkeeper {
    /// All of its bits are used, and keys may differ in few.
    hasher: foldhash::quality::RandomState,
    generations: Mutex<Generations>,
}

#[derive(Debug)]
struct Generations {
    /// No hash is 0.
    young: Box<[u32; PLACES]>,
    old: Box<[u32; PLACES]>,
    taken: usize,
}

impl Default for Doorkeeper {
    fn default() -> Self {
        Doorkeeper {
            hasher: foldhash::quality::RandomState::default(),
            generations: Mutex::new(Generations {
                young: Box::new([0; PLACES]),
                old: Box::new([0; PLACES]),
                taken: 0,
            }),
        }
    }
}

impl Doorkeeper {
    /// Whether an entry is to be kept: it came before, or little of the cache is used. Remembers that it came.
    pub(crate) fn admits(&self, key: impl Hash, used: u64, max: u64) -> bool {
        let hash = self.hasher.hash_one(key);
        let (place, hash) = ((hash >> 32) as usize % PLACES, (hash as u32).max(1));
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let came = generations.young[place] == hash || generations.old[place] == hash;
        if !came {
            generations.remember(place, hash);
        }
        came || used < max / FREE
    }
}

impl Generations {
    fn remember(&mut self, place: usize, hash: u32) {
        if self.taken == TAKEN_MAX {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.fill(0);
            self.taken = 0;
        }
        self.taken += usize::from(self.young[place] == 0);
        self.young[place] = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_is_kept() {
        let doorkeeper = Doorkeeper::default();
        assert!(!doorkeeper.admits("a", 100, 100));
        assert!(doorkeeper.admits("a", 100, 100));
        assert!(doorkeeper.admits("a", 100, 100));
        assert!(!doorkeeper.admits("b", 100, 100));
    }

    #[test]
    fn an_empty_cache_takes_whatever_comes() {
        let doorkeeper = Doorkeeper::default();
        assert!(doorkeeper.admits("a", 0, 100));
        assert!(doorkeeper.admits("b", 5, 100));
        assert!(!doorkeeper.admits("c", 6, 100));
        assert!(doorkeeper.admits("c", 6, 100));
    }

    #[test]
    fn what_came_long_ago_is_forgotten_and_what_came_lately_is_not() {
        let doorkeeper = Doorkeeper::default();
        let come = |from: u32, to: u32| {
            let admitted = (from..to).filter(|key| doorkeeper.admits(key, 1, 1));
            admitted.count()
        };
        assert!(come(0, 500) < 10);
        let again = come(0, 500);
        // Some have taken the places of others.
        assert!(again > 350, "{again} of 500");
        let strangers = come(1_000, 100_000);
        assert!(
            strangers < 100,
            "{strangers} of 99,000 are taken for others"
        );
        assert!(come(0, 500) < 10);
    }
}
