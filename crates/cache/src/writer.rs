//! Writes to the remote tier, in the background: no request waits for them.
//!
//! The queue is bounded in bytes and in writes. When it is full, what comes next is not stored remotely.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

use crate::{Remote, RemoteUse, RemoteWrite, StoringRefusal};

/// Most writes that wait.
pub const WRITES_MAX: usize = 4096;
/// Most bytes that wait.
pub const BYTES_MAX: usize = 16 << 20;
/// Most writes of one round.
const BATCH: usize = 64;

/// Writes that wait.
#[derive(Debug, Default)]
pub struct WriteQueue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    writes: VecDeque<RemoteWrite>,
    bytes: usize,
}

impl WriteQueue {
    /// Adds a write.
    pub fn push(&self, write: RemoteWrite) -> Result<(), StoringRefusal> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = waiting.bytes.saturating_add(write.value.len());
        if waiting.writes.len() >= WRITES_MAX || bytes > BYTES_MAX {
            return Err(StoringRefusal::QueueFull);
        }
        waiting.bytes = bytes;
        waiting.writes.push_back(write);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// How many writes wait.
    pub fn len(&self) -> usize {
        let waiting = self.waiting.lock();
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.writes.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take_batch(&self) -> Vec<RemoteWrite> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.writes.len().min(BATCH);
        let batch: Vec<_> = waiting.writes.drain(..count).collect();
        waiting.bytes -= batch.iter().map(|write| write.value.len()).sum::<usize>();
        batch
    }

    /// Writes what waits. A write that fails is dropped: the next miss makes it again.
    pub async fn flush(&self, remote: &Remote) {
        loop {
            let batch = self.take_batch();
            if batch.is_empty() {
                return;
            }
            let written = remote.tier.insert(batch);
            if let Err(error) = remote.call(RemoteUse::Insert, written).await {
                tracing::debug!(%error, "entries were not stored in the remote cache");
            }
        }
    }

    /// Writes whatever comes, for ever.
    pub async fn run(&self, remote: &Remote) {
        loop {
            self.flush(remote).await;
            self.arrived.notified().await;
        }
    }
}
