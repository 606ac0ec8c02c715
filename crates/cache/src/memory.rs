//! The memory tier: entries and `Vary` records of one process, bounded in bytes.
//!
//! Bytes count three times: against the tier's own limit, in the memory budget of the process, which has the tier give up
//! what requests need, and in the share of the client whose request made the entry, so that one client with many
//! different requests does not push out the entries of all others.

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

/// Bytes of the tier, by default.
pub const BYTES: usize = 64 << 20;
/// Bytes that an entry takes, as far as is known before there are any.
const USUAL_ENTRY: usize = 2 << 10;
/// Bytes that a record takes besides names.
const RECORD: usize = 192;

/// How much the tier holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimits {
    /// Most bytes.
    pub bytes: usize,
    /// Most bytes of entries that the requests of one client made, in percent.
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

/// What is stored under a key. First and second keys are hashes for two purposes, so they never meet.
#[derive(Clone, Debug)]
enum Stored {
    Entry(Arc<Counted<Entry>>),
    Record(Arc<Counted<VaryRecord>>),
}

/// Something with what it counts for.
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
    /// An empty tier, which counts in `budget`.
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

    /// Stores an entry that a request of `client` made.
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

    /// Stores a record that a request of `client` made.
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

    /// Drops an entry that is of no use any more.
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
        // The table drops what is larger than one of its parts without a word.
        if bytes as u64 > self.table.shard_capacity() {
            return Err(StoringRefusal::TooBig);
        }
        let each = ShareLimits::of(self.limits.bytes, self.limits.client_percent).each;
        // The table bounds all together.
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
        // Parts are emptied evenly. No part may be left without capacity: it would keep nothing from then on.
        self.table.set_capacity(left.max(1));
        self.table.set_capacity(self.limits.bytes as u64);
    }
}
