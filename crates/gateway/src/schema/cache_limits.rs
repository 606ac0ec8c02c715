//! What the caches of a schema may hold.

use std::hash::Hash;

use quick_cache::{
    Weighter,
    sync::{Cache, DefaultLifecycle},
};

/// A cache of a schema.
pub(crate) type SchemaCache<K, V, W> = Cache<K, V, W, foldhash::fast::RandomState>;

/// Bounds of a cache: it holds neither more entries nor more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits {
    /// Most entries; default 1,000.
    pub entries_max: usize,
    /// Most bytes, as estimated; default 64 MiB.
    pub bytes_max: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        CacheLimits {
            entries_max: 1_000,
            bytes_max: 64 << 20,
        }
    }
}

impl CacheLimits {
    /// A cache within these limits, whose entries weigh what `weighter` says.
    pub(crate) fn cache<K, V, W>(self, weighter: W) -> SchemaCache<K, V, W>
    where
        K: Eq + Hash,
        V: Clone,
        W: Weighter<K, V> + Clone,
    {
        let hasher = foldhash::fast::RandomState::default();
        let lifecycle = DefaultLifecycle::default();
        Cache::with(
            self.entries_max,
            self.bytes_max as u64,
            weighter,
            hasher,
            lifecycle,
        )
    }
    /// What an entry of so many bytes weighs: at least its share, so that both bounds hold.
    pub(crate) fn weight(&self, bytes: usize) -> u64 {
        let share = self.bytes_max / self.entries_max.max(1);
        bytes.max(share).max(1) as u64
    }
}
