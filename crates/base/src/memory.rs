//! The memory budget of a process: bytes that requests make it hold, whoever holds them, counted together.
//!
//! A [`MemoryBudget`] is one number that all threads share. A [`Reservation`] belongs to one request, or to a part of it,
//! and takes from the budget in chunks of [`CHUNK`], so that most requests touch the shared number twice: when they begin
//! and when the last of them is gone. What a reservation counts is given back when it is dropped.
//!
//! Beyond [`MemoryBudget::admitting`], a share of the limit, nothing new is begun but what is [`SMALL`], and that up to
//! [`MemoryBudget::admitting_small`]: whoever sends a few large things must not keep all others out. What runs may go on up
//! to the limit itself, because it gives back sooner when it is finished than when it fails.
//!
//! Invariants: `used` is the sum of what living reservations have taken; nothing exceeds the limit but what is there already
//! when it is counted ([`Reservation::count`]), and then nobody grows until it is gone.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What a reservation takes from the budget at a time, in bytes.
pub const CHUNK: usize = 16 << 10;

/// What counts no more than so many bytes is small.
pub const SMALL: usize = 2 * CHUNK;

/// Bytes that all requests of a process hold together.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicUsize,
    limit: AtomicUsize,
    refused: AtomicUsize,
}

impl Default for MemoryBudget {
    /// Without a limit.
    fn default() -> Self {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        MemoryBudget {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            refused: AtomicUsize::new(0),
        }
    }
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Most bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// Sets another limit; what is in use stays.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }
    /// How often something was refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
    /// Bytes up to which something new is begun: three quarters of the limit.
    pub fn admitting(&self) -> usize {
        let limit = self.limit();
        limit - limit / 4
    }
    /// Bytes up to which something small is begun: seven eighths of the limit.
    pub fn admitting_small(&self) -> usize {
        let limit = self.limit();
        limit - limit / 8
    }
    /// Takes bytes if no more than `most` are in use then.
    fn take(&self, bytes: usize, most: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|used| used <= most);
        if !fits {
            self.give_back(bytes);
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// There is no memory for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// What something makes the process hold; given back when it is dropped. One thread at a time changes it.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    /// What it counts.
    used: AtomicUsize,
    /// What it has taken from the budget: not less.
    taken: AtomicUsize,
    /// Whether it counts for something that runs.
    runs: AtomicBool,
}

impl Reservation {
    /// Counts nothing yet; for something new.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        Reservation {
            budget: Arc::clone(budget),
            used: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            runs: AtomicBool::new(false),
        }
    }
    /// Another one of the same budget, in the same state.
    #[must_use]
    pub fn beside(&self) -> Self {
        let other = Reservation::new(&self.budget);
        other.runs.store(self.is_running(), Ordering::Relaxed);
        other
    }
    /// From now on it counts for something that runs, and may use the whole limit.
    pub fn run(&self) {
        self.runs.store(true, Ordering::Relaxed);
    }
    fn is_running(&self) -> bool {
        self.runs.load(Ordering::Relaxed)
    }
    /// Bytes that are counted.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Counts so many bytes more, if there is memory for them.
    pub fn grow(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let used = self.used().checked_add(bytes).ok_or(OutOfMemory)?;
        let taken = self.taken.load(Ordering::Relaxed);
        if used > taken {
            self.take_up_to(used, taken)?;
        }
        self.used.store(used, Ordering::Relaxed);
        Ok(())
    }
    #[cold]
    fn take_up_to(&self, used: usize, taken: usize) -> Result<(), OutOfMemory> {
        let wanted = used.checked_next_multiple_of(CHUNK).ok_or(OutOfMemory)?;
        let most = match self.is_running() {
            true => self.budget.limit(),
            false if wanted <= SMALL => self.budget.admitting_small(),
            false => self.budget.admitting(),
        };
        if !self.budget.take(wanted - taken, most) {
            return Err(OutOfMemory);
        }
        self.taken.store(wanted, Ordering::Relaxed);
        Ok(())
    }
    /// Counts so many bytes more that are held already, whether there is memory for them or not.
    pub fn count(&self, bytes: usize) {
        let used = self.used().saturating_add(bytes);
        let taken = self.taken.load(Ordering::Relaxed);
        if used > taken {
            let wanted = used.next_multiple_of(CHUNK);
            self.budget
                .used
                .fetch_add(wanted - taken, Ordering::Relaxed);
            self.taken.store(wanted, Ordering::Relaxed);
        }
        self.used.store(used, Ordering::Relaxed);
    }
    /// Counts so many bytes less.
    pub fn shrink(&self, bytes: usize) {
        let used = self.used().saturating_sub(bytes);
        self.used.store(used, Ordering::Relaxed);
        let (taken, wanted) = (
            self.taken.load(Ordering::Relaxed),
            used.next_multiple_of(CHUNK),
        );
        // One chunk more may stay: what shrinks often grows again.
        if taken - wanted > CHUNK {
            self.budget.give_back(taken - wanted);
            self.taken.store(wanted, Ordering::Relaxed);
        }
    }
    /// Counts exactly so many bytes, if there is memory for them.
    pub fn set(&self, bytes: usize) -> Result<(), OutOfMemory> {
        match self.used() {
            used if used < bytes => self.grow(bytes - used),
            used => {
                self.shrink(used - bytes);
                Ok(())
            }
        }
    }
    /// Counts what another one has counted, which is gone then.
    pub fn absorb(&self, other: Reservation) {
        let (used, taken) = (other.used(), other.taken.swap(0, Ordering::Relaxed));
        self.used.fetch_add(used, Ordering::Relaxed);
        self.taken.fetch_add(taken, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken > 0 {
            self.budget.give_back(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(chunks: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(chunks * CHUNK))
    }

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = budget(8);
        let (one, other) = (Reservation::new(&budget), Reservation::new(&budget));
        one.grow(1).unwrap();
        assert_eq!(budget.used(), CHUNK);
        one.grow(CHUNK - 1).unwrap();
        assert_eq!(budget.used(), CHUNK, "a chunk is taken at once");
        other.grow(2 * CHUNK + 1).unwrap();
        assert_eq!(budget.used(), 4 * CHUNK);
        drop(other);
        assert_eq!(budget.used(), CHUNK);
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn nothing_new_is_begun_near_the_limit_and_what_runs_goes_on() {
        let budget = budget(16);
        let running = Reservation::new(&budget);
        running.run();
        running.grow(12 * CHUNK).unwrap();
        let new = Reservation::new(&budget);
        assert_eq!(new.grow(SMALL + 1), Err(OutOfMemory));
        assert_eq!((budget.used(), budget.refused()), (12 * CHUNK, 1));
        new.grow(SMALL).expect("it is small");
        assert_eq!(Reservation::new(&budget).grow(1), Err(OutOfMemory));
        running.grow(2 * CHUNK).unwrap();
        assert_eq!(running.grow(1), Err(OutOfMemory));
        assert_eq!(running.used(), 14 * CHUNK);
        running.shrink(8 * CHUNK);
        new.grow(CHUNK).unwrap();
        assert_eq!(budget.used(), 9 * CHUNK);
    }

    #[test]
    fn what_is_held_already_is_counted_and_keeps_others_from_growing() {
        let budget = budget(8);
        let (one, other) = (Reservation::new(&budget), Reservation::new(&budget));
        other.run();
        one.count(9 * CHUNK);
        assert_eq!(budget.used(), 9 * CHUNK);
        assert_eq!(other.grow(1), Err(OutOfMemory));
        one.shrink(9 * CHUNK);
        assert_eq!(other.grow(1), Ok(()));
    }

    #[test]
    fn one_reservation_takes_over_another() {
        let budget = budget(8);
        let request = Reservation::new(&budget);
        request.grow(10).unwrap();
        let job = request.beside();
        job.grow(3 * CHUNK).unwrap();
        request.absorb(job);
        assert_eq!(request.used(), 3 * CHUNK + 10);
        assert_eq!(budget.used(), 4 * CHUNK);
        request.set(5).unwrap();
        assert_eq!((request.used(), budget.used()), (5, CHUNK));
        request.set(20).unwrap();
        drop(request);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn sizes_beyond_all_numbers_are_refused() {
        let budget = Arc::new(MemoryBudget::default());
        let one = Reservation::new(&budget);
        one.grow(1).unwrap();
        assert_eq!(one.grow(usize::MAX), Err(OutOfMemory));
        assert_eq!(one.grow(usize::MAX - 1), Err(OutOfMemory));
    }
}
