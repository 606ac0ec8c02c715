//! Memory that can be given up: caches hold it while requests do not need it.
//!
//! A cache counts its bytes in the memory budget of the process as [`ReclaimableBytes`], only while no more than half of the
//! limit is in use. Before the budget refuses a request, it makes caches give up what the request lacks. Where caches hold
//! less than that, they keep it: the request is refused either way.

use std::sync::{Arc, Weak, atomic::Ordering};

use crate::{MemoryBudget, OutOfMemory, Reclaim};

/// Bytes that a cache holds; given back when this is dropped.
#[derive(Debug)]
pub struct ReclaimableBytes {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for ReclaimableBytes {
    fn drop(&mut self) {
        self.budget
            .caches
            .bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.give_back(self.bytes);
    }
}

impl MemoryBudget {
    /// Registers a cache that gives up memory when requests need it.
    pub fn reclaim_from(&self, cache: Weak<dyn Reclaim>) {
        let mut list = self.caches.lock();
        list.retain(|cache| cache.strong_count() > 0);
        list.push(cache);
    }

    /// Counts bytes of a cache, if no more than half of the limit is in use then.
    pub fn hold_reclaimable(
        self: &Arc<Self>,
        bytes: usize,
    ) -> Result<ReclaimableBytes, OutOfMemory> {
        if !self.try_take(bytes, self.roomy()) {
            return Err(OutOfMemory);
        }
        self.caches.bytes.fetch_add(bytes, Ordering::Relaxed);
        let budget = Arc::clone(self);
        Ok(ReclaimableBytes { budget, bytes })
    }

    /// Makes one cache after another give up what is lacking, and takes bytes if no more than `most` are in use then.
    pub(crate) fn take_from_caches(&self, bytes: usize, most: usize) -> bool {
        let lacking = || self.taken().saturating_add(bytes).saturating_sub(most);
        if lacking() > self.caches.bytes.load(Ordering::Relaxed) {
            return false;
        }
        self.caches.living().iter().any(|cache| {
            cache.reclaim(lacking());
            self.try_take(bytes, most)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Reservation, memory::CHUNK};

    #[derive(Debug, Default)]
    struct Holder(Mutex<Vec<ReclaimableBytes>>);

    impl Reclaim for Holder {
        fn reclaim(&self, bytes: usize) {
            let mut held = self.0.lock().unwrap();
            let mut left = bytes;
            while left > 0
                && let Some(one) = held.pop()
            {
                left = left.saturating_sub(one.bytes);
            }
        }
    }

    #[test]
    fn a_request_has_caches_give_up_what_it_needs_and_no_more() {
        let budget = Arc::new(MemoryBudget::new(64 * CHUNK));
        let holder = cache(&budget, 0);
        while let Ok(one) = budget.hold_reclaimable(CHUNK) {
            holder.0.lock().unwrap().push(one);
        }
        assert_eq!(budget.used(), 32 * CHUNK, "caches take half of the limit");
        let request = Reservation::new(&budget);
        request.grow(16 * CHUNK).unwrap();
        assert_eq!(budget.used(), 48 * CHUNK);
        request.grow(4 * CHUNK).unwrap();
        assert_eq!(budget.used(), 48 * CHUNK, "caches gave up what was needed");
        assert_eq!(holder.0.lock().unwrap().len(), 28);
        request.grow(28 * CHUNK).unwrap();
        assert!(request.grow(1).is_err(), "nothing is left to give up");
        assert_eq!(budget.refused(), 1);
        drop(request);
        assert_eq!(budget.used(), 0);
    }

    /// A cache that holds so many chunks.
    fn cache(budget: &Arc<MemoryBudget>, chunks: usize) -> Arc<Holder> {
        let holder = Arc::new(Holder::default());
        let weak: Weak<Holder> = Arc::downgrade(&holder);
        budget.reclaim_from(weak);
        let held = (0..chunks).map(|_| budget.hold_reclaimable(CHUNK).unwrap());
        holder.0.lock().unwrap().extend(held);
        holder
    }

    fn chunks(holder: &Holder) -> usize {
        holder.0.lock().unwrap().len()
    }

    #[test]
    fn caches_give_up_one_after_another_and_no_more_than_is_lacking() {
        let budget = Arc::new(MemoryBudget::new(64 * CHUNK));
        let caches = [8, 8].map(|chunks| cache(&budget, chunks));
        let running = Reservation::new(&budget);
        running.run();
        running.grow(44 * CHUNK).unwrap();
        // Something new may begin up to 48 chunks, so a request of three lacks fifteen of the sixteen that caches hold.
        let request = Reservation::new(&budget);
        request.grow(3 * CHUNK).unwrap();
        assert_eq!([chunks(&caches[0]), chunks(&caches[1])], [0, 1]);
    }

    #[test]
    fn a_request_that_is_refused_either_way_leaves_caches_full() {
        let budget = Arc::new(MemoryBudget::new(64 * CHUNK));
        let full = cache(&budget, 32);
        let request = Reservation::new(&budget);
        assert_eq!(request.grow(49 * CHUNK), Err(OutOfMemory));
        assert_eq!(chunks(&full), 32);
    }
}
