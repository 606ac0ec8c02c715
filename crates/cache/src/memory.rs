//! The memory tier: entries and `Vary` records of one process, bounded in bytes.
//!
//! The bytes of an entry count in three places: in the tier's own limit; in the memory budget of the process, which makes the
//! tier give up memory that requests need; and in the share of the client whose request stored the entry, so that one client
//! with many different requests does not push out the entries of all others.

use std::{
    net::IpAddr,
    sync::{Arc, Weak},
};

use ogive_base::{MemoryBudget, Reclaim, ReclaimableBytes, Share, ShareLimits, Shares};
use quick_cache::{
    Weighter,
    sync::{Cache, DefaultLifecycle},
};

use crate::{Entry, Key, StoringRefusal, VaryRecord};

/// Most bytes of the tier, by default.
pub const BYTES: usize = 64 << 20;
/// Assumed bytes of an entry: sets the initial capacity of the table.
const USUAL_ENTRY: usize = 2 << 10;
/// Bytes of a record without its names.
const RECORD: usize = 192;

/// Limits of the memory tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimits {
    /// Most bytes.
    pub bytes: usize,
    /// Most bytes of entries that the requests of one client stored, in percent of `bytes`.
    pub client_percent: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits {
            bytes: BYTES,
            client_percent: 50,
        }
    }
}

/// Entries and records in memory, for all threads.
#[derive(Debug)]
pub struct MemoryTier {
    table: Table,
    limits: MemoryLimits,
    budget: Arc<MemoryBudget>,
    clients: Arc<Shares<IpAddr>>,
}

type Table = Cache<Key, Stored, BySize, foldhash::fast::RandomState, DefaultLifecycle<Key, Stored>>;

/// The value of a key: a record under a first key, an entry under a second key. Both are hashes with different prefixes, so
/// no first key equals a second key.
#[derive(Clone, Debug)]
enum Stored {
    Entry(Arc<Counted<Entry>>),
    Record(Arc<Counted<VaryRecord>>),
}

/// A value and the bytes that it counts.
#[derive(Debug)]
struct Counted<T> {
    value: Arc<T>,
    bytes: usize,
    _memory: ReclaimableBytes,
    _share: Share<IpAddr>,
}

#[derive(Clone, Copy, Debug)]
struct BySize;

impl Weighter<Key, Stored> for BySize {
    fn weight(&self, _: &Key, stored: &Stored) -> u64 {
        let bytes = match stored {
            Stored::Entry(entry) => entry.bytes,
            Stored::Record(record) => record.bytes,
        };
        bytes as u64
    }
}

impl MemoryTier {
    /// An empty tier, which counts its bytes in `budget`.
    pub fn new(limits: MemoryLimits, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        let tier = Arc::new(MemoryTier {
            table: Cache::with(
                (limits.bytes / USUAL_ENTRY).max(32),
                limits.bytes as u64,
                BySize,
                foldhash::fast::RandomState::default(),
                DefaultLifecycle::default(),
            ),
            limits,
            budget: Arc::clone(budget),
            clients: Arc::default(),
        });
        let holder: Weak<MemoryTier> = Arc::downgrade(&tier);
        budget.reclaim_from(holder);
        tier
    }

    /// The entry of a second key.
    pub fn entry(&self, second: &Key) -> Option<Arc<Entry>> {
        match self.table.get(second)? {
            Stored::Entry(entry) => Some(Arc::clone(&entry.value)),
            Stored::Record(_) => None,
        }
    }

    /// The record of a first key.
    pub fn record(&self, first: &Key) -> Option<Arc<VaryRecord>> {
        match self.table.get(first)? {
            Stored::Record(record) => Some(Arc::clone(&record.value)),
            Stored::Entry(_) => None,
        }
    }

    /// Stores an entry, in the share of `client`.
    pub fn insert(
        &self,
        second: Key,
        entry: Arc<Entry>,
        client: Option<IpAddr>,
    ) -> Result<(), StoringRefusal> {
        let bytes = entry.bytes();
        let counted = self.count(entry, bytes, client)?;
        self.table.insert(second, Stored::Entry(Arc::new(counted)));
        Ok(())
    }

    /// Stores a record, in the share of `client`.
    pub fn insert_record(
        &self,
        first: Key,
        record: VaryRecord,
        client: Option<IpAddr>,
    ) -> Result<(), StoringRefusal> {
        let bytes = RECORD + record.bytes();
        let counted = self.count(Arc::new(record), bytes, client)?;
        self.table.insert(first, Stored::Record(Arc::new(counted)));
        Ok(())
    }

    /// Removes an entry.
    pub fn remove(&self, second: &Key) {
        self.table.remove(second);
    }

    /// Bytes of all entries and records.
    pub fn bytes(&self) -> u64 {
        self.table.weight()
    }

    /// How many entries and records there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn count<T>(
        &self,
        value: Arc<T>,
        bytes: usize,
        client: Option<IpAddr>,
    ) -> Result<Counted<T>, StoringRefusal> {
        // The table silently drops a value that is larger than one of its shards.
        if bytes as u64 > self.table.shard_capacity() {
            return Err(StoringRefusal::TooBig);
        }
        let each = ShareLimits::of(self.limits.bytes, self.limits.client_percent).each;
        // The table itself bounds the sum over all clients.
        let limits = ShareLimits {
            all: usize::MAX,
            each,
        };
        let share = self.clients.take(client, bytes, limits);
        let share = share.map_err(|_| StoringRefusal::ClientShare)?;
        let memory = self.budget.hold_reclaimable(bytes);
        Ok(Counted {
            value,
            bytes,
            _memory: memory.map_err(|_| StoringRefusal::OutOfMemory)?,
            _share: share,
        })
    }
}

impl Reclaim for MemoryTier {
    fn reclaim(&self, bytes: usize) {
        let left = self.table.weight().saturating_sub(bytes as u64);
        // The shards are emptied evenly. A shard whose capacity was 0 would store nothing from then on.
        self.table.set_capacity(left.max(1));
        self.table.set_capacity(self.limits.bytes as u64);
    }
}
