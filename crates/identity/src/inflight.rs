//! What others are asked: once for all who want to know the same at the same time, and remembered for a while.
//!
//! Who comes first asks, on its own thread; who comes later waits for that answer. If the first is given up, because its
//! client has left, the next one asks.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use ogive_base::FastMap;
use quick_cache::{Weighter, sync::Cache};
use tokio::sync::watch;

use crate::digest::Digest;

/// Questions that are under way, by what they ask.
#[derive(Debug)]
pub struct Inflight<V>(Mutex<FastMap<Digest, watch::Receiver<Option<V>>>>);

impl<V> Default for Inflight<V> {
    fn default() -> Self {
        Inflight(Mutex::default())
    }
}

/// A question under way; it is over however it ends.
struct Asking<'a, V> {
    all: &'a Inflight<V>,
    key: Digest,
}

impl<V> Drop for Asking<'_, V> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

enum Turn<V> {
    Ask(watch::Sender<Option<V>>),
    Wait(watch::Receiver<Option<V>>),
}

impl<V: Clone> Inflight<V> {
    /// The answer to the question of a key. What `ask` does is over when it returns.
    pub async fn share(&self, key: Digest, ask: impl AsyncFn() -> V) -> V {
        loop {
            match self.turn(key) {
                Turn::Ask(tell) => {
                    let asking = Asking { all: self, key };
                    let answer = ask().await;
                    drop(asking);
                    tell.send_replace(Some(answer.clone()));
                    return answer;
                }
                Turn::Wait(mut told) => {
                    if let Ok(answer) = told.wait_for(Option::is_some).await
                        && let Some(answer) = answer.clone()
                    {
                        return answer;
                    }
                }
            }
        }
    }

    fn turn(&self, key: Digest) -> Turn<V> {
        let mut all = self.lock();
        if let Some(told) = all.get(&key) {
            return Turn::Wait(told.clone());
        }
        let (tell, told) = watch::channel(None);
        all.insert(key, told);
        Turn::Ask(tell)
    }
}

impl<V> Inflight<V> {
    fn lock(&self) -> MutexGuard<'_, FastMap<Digest, watch::Receiver<Option<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers that are still good, within a bound.
#[derive(Debug)]
pub struct AnswerCache<V>(Cache<Digest, Known<V>, BySize, foldhash::fast::RandomState>);

#[derive(Clone, Debug)]
struct Known<V> {
    value: V,
    until: Instant,
    size: usize,
}

#[derive(Clone, Debug)]
struct BySize;

impl<V> Weighter<Digest, Known<V>> for BySize {
    fn weight(&self, _: &Digest, known: &Known<V>) -> u64 {
        known.size as u64
    }
}

/// Bytes of an entry besides what its value points to, about.
pub const ENTRY_BYTES: usize = 192;

impl<V: Clone> AnswerCache<V> {
    /// Room for at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        AnswerCache(Cache::with(
            (bytes_max / ENTRY_BYTES).max(16),
            bytes_max as u64,
            BySize,
            foldhash::fast::RandomState::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }
    /// The answer of a key, if it is still good.
    pub fn get(&self, key: &Digest, now: Instant) -> Option<V> {
        let known = self.0.get(key)?;
        if now < known.until {
            return Some(known.value);
        }
        self.0.remove(key);
        None
    }
    /// Remembers one of so many bytes, [`ENTRY_BYTES`] included.
    pub fn insert(&self, key: Digest, value: V, until: Instant, size: usize) {
        self.0.insert(key, Known { value, until, size });
    }
    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn, pin::pin, task::Poll, time::Duration};

    use super::*;

    const KEY: Digest = [1; 32];

    #[tokio::test]
    async fn who_comes_while_it_is_asked_waits_and_who_leaves_stops_nobody() {
        let (all, asked) = (Inflight::default(), Cell::new(0));
        let gate = tokio::sync::Notify::new();
        let ask = async || {
            asked.set(asked.get() + 1);
            gate.notified().await;
            asked.get()
        };
        {
            let mut first = pin!(all.share(KEY, ask));
            let mut second = pin!(all.share(KEY, ask));
            let mut other = pin!(all.share([2; 32], async || 7));
            poll_fn(|cx| {
                assert!(first.as_mut().poll(cx).is_pending());
                assert!(second.as_mut().poll(cx).is_pending());
                assert_eq!(other.as_mut().poll(cx), Poll::Ready(7));
                Poll::Ready(())
            })
            .await;
            assert_eq!(asked.get(), 1);
            gate.notify_one();
            assert_eq!((first.await, second.await), (1, 1));
        }
        {
            let mut second = pin!(all.share(KEY, ask));
            {
                let mut first = Box::pin(all.share(KEY, ask));
                poll_fn(|cx| {
                    assert!(first.as_mut().poll(cx).is_pending());
                    assert!(second.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                assert_eq!(asked.get(), 2);
            }
            gate.notify_one();
            assert_eq!(second.await, 3, "asks itself");
        }
        assert!(all.lock().is_empty());
    }

    #[test]
    fn answers_are_remembered_for_a_while_and_within_a_bound() {
        let now = Instant::now();
        let known = AnswerCache::new(100 * ENTRY_BYTES);
        known.insert(KEY, 1, now + Duration::from_secs(1), ENTRY_BYTES);
        assert_eq!(known.get(&KEY, now), Some(1));
        assert_eq!(known.get(&KEY, now + Duration::from_secs(1)), None);
        assert_eq!(known.get(&KEY, now), None, "is forgotten");
        for number in 0..1000u32 {
            let mut key = KEY;
            key[..4].copy_from_slice(&number.to_le_bytes());
            known.insert(key, 1, now + Duration::from_secs(1), ENTRY_BYTES);
        }
        assert!(known.len() <= 100, "{}", known.len());
    }
}
