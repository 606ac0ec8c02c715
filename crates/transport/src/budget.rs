//! How many bytes of answers one request of a client may have the gateway hold.
//!
//! Every answer has a limit of its own; a request that asks many subgraphs for as much as each may say would still fill
//! the memory. So bytes are taken from a budget while they arrive. What was taken for an answer that is not kept (a try that
//! failed, the encoded form of an answer) is given back. All of it counts in the memory of the process, too
//! ([`ogive_base::memory`]).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ogive_base::Reservation;

/// The budget of one request of a client. Nobody waits for anybody: one thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    max: usize,
    /// Where the bytes count for the process.
    process: Option<&'a Reservation>,
    /// Whether the process had no memory for some.
    process_is_full: AtomicBool,
    held: AtomicUsize,
    /// Bytes that are held besides answers.
    beside: AtomicUsize,
    /// The most that was held.
    peak: AtomicUsize,
    /// Whether an answer was larger than it should be.
    large_answer: AtomicBool,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(max: usize) -> Self {
        Budget {
            max,
            process: None,
            process_is_full: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            beside: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            large_answer: AtomicBool::new(false),
        }
    }
    /// Counts the bytes there, too. So many are held already.
    pub(crate) fn of_process(self, process: Option<&'a Reservation>, held: usize) -> Self {
        Budget {
            process,
            held: AtomicUsize::new(held),
            peak: AtomicUsize::new(held),
            ..self
        }
    }
    pub(crate) fn process(&self) -> Option<&'a Reservation> {
        self.process
    }
    /// Whether something did not fit because of what others hold.
    pub(crate) fn process_is_full(&self) -> bool {
        self.process_is_full.load(Ordering::Relaxed)
    }
    /// Whether the process has memory for so many bytes of this request; takes them.
    fn process_takes(&self, bytes: usize) -> bool {
        let takes = self
            .process
            .is_none_or(|process| process.grow(bytes).is_ok());
        if !takes {
            self.process_is_full.store(true, Ordering::Relaxed);
        }
        takes
    }
    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(process) = self.process {
            process.shrink(bytes);
        }
    }
    pub(crate) fn max(&self) -> usize {
        self.max
    }
    /// What is left.
    pub(crate) fn left(&self) -> usize {
        let held = self.held.load(Ordering::Relaxed);
        self.max.saturating_sub(held).saturating_sub(self.beside())
    }
    /// Takes bytes for good; false if there are not as many.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let max = self.max.saturating_sub(self.beside());
        let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= max);
        let held = &self.held;
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if let Ok(before) = taken {
            let held = before + bytes + self.beside();
            self.peak.fetch_max(held, Ordering::Relaxed);
            if !self.process_takes(bytes) {
                self.held.fetch_sub(bytes, Ordering::Relaxed);
                return false;
            }
        }
        taken.is_ok()
    }
    fn beside(&self) -> usize {
        self.beside.load(Ordering::Relaxed)
    }
    /// Says how much is held besides answers.
    pub(crate) fn hold_beside(&self, bytes: usize) {
        self.beside.store(bytes, Ordering::Relaxed);
    }
    /// The most that was held at a time.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
    /// Notes that an answer was larger than it should be; says whether it is the first.
    pub(crate) fn note_answer(&self) -> bool {
        !self.large_answer.swap(true, Ordering::Relaxed)
    }
    pub(crate) fn has_large_answer(&self) -> bool {
        self.large_answer.load(Ordering::Relaxed)
    }
    /// Begins to read an answer.
    pub(crate) fn read<'b>(&'b self) -> Reading<'a, 'b> {
        Reading {
            budget: self,
            bytes: 0,
        }
    }
}

/// An answer that arrives. Its bytes are given back at the end, when whoever keeps the answer takes them for good.
pub(crate) struct Reading<'a, 'b> {
    budget: &'b Budget<'a>,
    bytes: usize,
}

impl Reading<'_, '_> {
    /// Takes bytes for as long as the answer arrives; false if there are not as many.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.budget.take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Reading<'_, '_> {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
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
