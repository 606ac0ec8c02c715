//! Hash-map aliases. Hashing is fast and seeded per map; no result may depend on iteration order
//! (clippy's `iter_over_hash_type` guards that), so outputs are the same on any machine and seed.

use std::hash::{BuildHasher, Hash};

/// A hash map for internal keys.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, foldhash::fast::RandomState>;
/// A hash set for internal keys.
pub type FastSet<K> = hashbrown::HashSet<K, foldhash::fast::RandomState>;

/// A 64-bit hash that is the same in every process: for hash-consing and cache shards, never for identity.
pub fn hash_one<T: Hash + ?Sized>(value: &T) -> u64 {
    foldhash::fast::FixedState::with_seed(0x917e_5eed).hash_one(value)
}
