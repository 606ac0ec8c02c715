//! Writes to the remote tier, in the background: no request waits for them.
//!
//! The queue is bounded in bytes. One client fills its share of them at most, and the memory budget counts them as those of
//! a cache. A write for which there is no room is dropped: the next process that misses the entry writes it.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_base::{MemoryBudget, Reclaim, ReclaimableBytes, Share, ShareLimits, Shares};
use tokio::sync::Notify;

use crate::{Remote, RemoteUse, RemoteWrite};

/// Most bytes that wait, [`WRITE_BYTES`] of each write included.
pub const BYTES_MAX: usize = 16 << 20;
/// Bytes of a write besides its value.
pub const WRITE_BYTES: usize = size_of::<Waiting>();
/// Most writes of one round.
const BATCH: usize = 64;

/// Writes that wait.
#[derive(Debug)]
pub struct WriteQueue {
    waiting: Mutex<VecDeque<Waiting>>,
    arrived: Notify,
    limits: ShareLimits,
    clients: Arc<Shares<IpAddr>>,
    budget: Arc<MemoryBudget>,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Waiting {
    write: RemoteWrite,
    held: Held,
}

/// What a write counts for until it is written or dropped.
#[derive(Debug)]
struct Held {
    _share: Share<IpAddr>,
    _memory: ReclaimableBytes,
}

impl WriteQueue {
    /// An empty queue. `limits`: the bytes that wait.
    pub fn new(limits: ShareLimits, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        let queue = Arc::new(WriteQueue {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            limits,
            clients: Arc::default(),
            budget: Arc::clone(budget),
            dropped: AtomicU64::new(0),
        });
        let cache: Weak<WriteQueue> = Arc::downgrade(&queue);
        budget.reclaim_from(cache);
        queue
    }

    /// Adds a write that a request of `client` made, or drops it if there is no room.
    pub fn push(&self, write: RemoteWrite, client: Option<IpAddr>) {
        let Some(held) = self.hold(write.queued_bytes(), client) else {
            self.note_dropped(1);
            return;
        };
        self.lock().push_back(Waiting { write, held });
        self.arrived.notify_one();
    }

    /// How many writes wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many writes were dropped because there was no room or because the remote tier failed.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sends all writes that wait. A write that fails is dropped.
    pub async fn flush(&self, remote: &Remote) {
        loop {
            let batch = self.take_batch();
            if batch.is_empty() {
                return;
            }
            let count = batch.len();
            let split = batch.into_iter().map(|one| (one.write, one.held));
            let (writes, _held): (Vec<RemoteWrite>, Vec<Held>) = split.unzip();
            let written = remote.tier.insert(writes);
            if let Err(error) = remote.call(RemoteUse::Insert, written).await {
                self.note_dropped(count);
                tracing::debug!(%error, count, "entries were not written to the remote cache");
            }
        }
    }

    /// Sends writes as they arrive. Never returns.
    pub async fn run(&self, remote: &Remote) {
        loop {
            self.flush(remote).await;
            self.arrived.notified().await;
        }
    }

    fn hold(&self, bytes: usize, client: Option<IpAddr>) -> Option<Held> {
        Some(Held {
            _share: self.clients.take(client, bytes, self.limits).ok()?,
            _memory: self.budget.hold_reclaimable(bytes).ok()?,
        })
    }

    fn take_batch(&self) -> Vec<Waiting> {
        let mut waiting = self.lock();
        let count = waiting.len().min(BATCH);
        waiting.drain(..count).collect()
    }

    fn note_dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Every change is complete when the lock is released, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reclaim for WriteQueue {
    /// Drops the latest writes.
    fn reclaim(&self, bytes: usize) {
        let mut waiting = self.lock();
        let mut left = bytes;
        while left > 0
            && let Some(last) = waiting.pop_back()
        {
            left = left.saturating_sub(last.write.queued_bytes());
            self.note_dropped(1);
        }
    }
}

impl RemoteWrite {
    fn queued_bytes(&self) -> usize {
        WRITE_BYTES + self.value.len()
    }
}
