//! What the caches of a schema may hold.

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
    /// What an entry of so many bytes weighs: at least its share, so that both bounds hold.
    pub(crate) fn weight(&self, bytes: usize) -> u64 {
        let share = self.bytes_max / self.entries_max.max(1);
        bytes.max(share).max(1) as u64
    }
}
