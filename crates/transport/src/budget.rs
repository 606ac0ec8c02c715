//! How many bytes of answers one request of a client may have the gateway hold.
//!
//! Every answer has a limit of its own; a request that asks many subgraphs for as much as each may say would still fill
//! the memory. So bytes are taken from a budget while they arrive. What was taken for an answer that is not kept (a try that
//! failed, the encoded form of an answer) is given back.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of one request of a client. Nobody waits for anybody: one thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    held: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        Budget {
            max,
            held: AtomicUsize::new(0),
        }
    }
    pub(crate) fn max(&self) -> usize {
        self.max
    }
    /// What is left.
    pub(crate) fn left(&self) -> usize {
        self.max - self.held.load(Ordering::Relaxed)
    }
    /// Takes bytes for good; false if there are not as many.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.max);
        let held = &self.held;
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
    /// Begins to read an answer.
    pub(crate) fn read(&self) -> Reading<'_> {
        Reading {
            budget: self,
            bytes: 0,
        }
    }
}

/// An answer that arrives. Its bytes are given back at the end, when whoever keeps the answer takes them for good.
pub(crate) struct Reading<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Reading<'_> {
    /// Takes bytes for as long as the answer arrives; false if there are not as many.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.budget.take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_arrive_at_a_time_share_a_budget() {
        let budget = Budget::new(10);
        let (mut first, mut second) = (budget.read(), budget.read());
        assert!(first.take(4) && second.take(6));
        assert!(!first.take(1));
        drop(second);
        assert!(first.take(6));
        drop(first);
        assert!(budget.take(10) && !budget.take(1));
        assert_eq!(budget.left(), 0);
    }
}
