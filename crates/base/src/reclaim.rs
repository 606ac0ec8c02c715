//! Memory that can be given up: caches hold it while requests do not need it.
//!
//! A cache counts its bytes in the budget of the process as [`ReclaimableBytes`], only while no more than half of the limit
//! is in use. A request for which the budget has no room has the caches give up as much as it needs before it is refused.

use std::sync::{Arc, PoisonError, Weak};

use crate::{MemoryBudget, OutOfMemory, memory::Reclaim};

/// Bytes that a cache holds; given back when this is dropped.
#[derive(Debug)]
pub struct ReclaimableBytes {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for ReclaimableBytes {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl MemoryBudget {
    /// Registers a cache that gives up memory when requests need it.
    pub fn reclaim_from(&self, holder: Weak<dyn Reclaim>) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Counts bytes of a cache, if no more than half of the limit is in use then.
    pub fn hold_reclaimable(
        self: &Arc<Self>,
        bytes: usize,
    ) -> Result<ReclaimableBytes, OutOfMemory> {
        if !self.is_roomy(bytes) || !self.try_take(bytes, self.limit()) {
            return Err(OutOfMemory);
        }
        let budget = Arc::clone(self);
        Ok(ReclaimableBytes { budget, bytes })
    }

    /// Has caches give up bytes; false if there are no caches.
    pub(crate) fn reclaim_from_holders(&self, bytes: usize) -> bool {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        // Without the lock: a cache may drop the last reference to an object that takes it.
        let holders: Vec<_> = holders.iter().filter_map(Weak::upgrade).collect();
        holders.iter().for_each(|holder| holder.reclaim(bytes));
        !holders.is_empty()
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
        let holder = Arc::new(Holder::default());
        let weak: Weak<Holder> = Arc::downgrade(&holder);
        budget.reclaim_from(weak);
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
}
