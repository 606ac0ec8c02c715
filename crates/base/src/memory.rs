//! The memory budget of a process: bytes that requests make it hold, whoever holds them, counted together.
//!
//! A [`MemoryBudget`] is one number that all threads share. A [`Reservation`] belongs to one request, or to a part of it,
//! and takes from the budget in chunks of [`CHUNK`]. What a reservation counts is given back when it is dropped.
//!
//! A number that every request on every core changes twice would be handed from core to core all the time. So each worker
//! has a [`MemoryShare`]: it takes [`SPARE`] more than it needs, keeps at most [`IDLE_MAX`] of what is given back, and its
//! requests are served from that. What is idle in a share counts as used, so nothing is ever admitted that the budget would
//! not have admitted; whoever would be refused takes the idle bytes of all shares back first, so nothing is refused for
//! them either. From half of the limit on shares keep nothing.
//!
//! Beyond [`MemoryBudget::admitting`], a share of the limit, nothing new is begun but what is [`SMALL`], and that up to
//! [`MemoryBudget::admitting_small`]: whoever sends a few large things must not keep all others out. What runs may go on
//! nearly up to the limit, because it gives back sooner when it is finished than when it fails; the last sixteenth is for
//! what is small, so that large things that run keep nobody else out either.
//!
//! What is given back is free, but an allocator keeps free memory for a while, each thread some of its own, and the
//! operating system counts that for the process. So large reservations that are over are added up, and when there are too
//! many for what else is in use, somebody is called who has the allocator give it back ([`MemoryBudget::on_freed`]). What is
//! in use and what the allocator keeps are then never much more than what may be in use.
//!
//! Invariants: the number is the sum of what living reservations have taken, what shares keep and what caches hold
//! ([`reclaim`](crate::reclaim)). Only bytes that are there already when they are counted exceed the limit
//! ([`Reservation::count`]); nothing else grows then until they are gone.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::caches::Caches;

/// What a reservation takes from the budget at a time, in bytes.
pub const CHUNK: usize = 16 << 10;

/// What counts no more than so many bytes is small.
pub const SMALL: usize = 2 * CHUNK;

/// What a share takes from the budget beyond what it needs, in bytes.
pub const SPARE: usize = 256 << 10;

/// Most bytes that a share keeps although nobody uses them.
pub const IDLE_MAX: usize = 2 * SPARE;

/// Bytes that all requests of a process hold together.
#[derive(Debug)]
pub struct MemoryBudget {
    /// What shares keep counts, too.
    taken: AtomicUsize,
    limit: AtomicUsize,
    refused: AtomicUsize,
    shares: Mutex<Vec<Weak<MemoryShare>>>,
    pub(crate) caches: Caches,
    /// What large reservations have given back since `on_freed` was called last.
    freed: AtomicUsize,
    on_freed: OnceLock<fn()>,
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
            taken: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            refused: AtomicUsize::new(0),
            shares: Mutex::default(),
            caches: Caches::default(),
            freed: AtomicUsize::new(0),
            on_freed: OnceLock::new(),
        }
    }
    /// Has this called when so much was given back that the allocator should give it back, too: when it is more than a
    /// sixteenth of the limit, and half of the limit with what is in use. It is called on threads that have other things
    /// to do. Only the first one is.
    pub fn on_freed(&self, call: fn()) {
        let _ = self.on_freed.set(call);
    }
    /// Bytes in use.
    pub fn used(&self) -> usize {
        let mut idle = 0;
        self.each_share(|share| idle += share.idle.load(Ordering::Relaxed));
        self.taken.load(Ordering::Relaxed).saturating_sub(idle)
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
    /// Bytes up to which something small is begun: all but a thirty-second of the limit.
    pub fn admitting_small(&self) -> usize {
        let limit = self.limit();
        limit - limit / 32
    }
    /// Bytes up to which what runs may go on unless it is small: all but a sixteenth of the limit.
    pub fn running(&self) -> usize {
        let limit = self.limit();
        limit - limit / 16
    }
    /// Takes bytes if no more than `most` are in use then. If there is no room, shares give back what is idle; if that is not
    /// enough, caches give up what is lacking.
    fn take(&self, bytes: usize, most: usize) -> bool {
        let fits = self.try_take(bytes, most)
            || (self.reclaim() && self.try_take(bytes, most))
            || self.take_from_caches(bytes, most);
        if !fits {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
    pub(crate) fn try_take(&self, bytes: usize, most: usize) -> bool {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|taken| taken <= most);
        if fits {
            self.look_at_freed()
        } else {
            self.give_back(bytes)
        }
        fits
    }
    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
    /// Notes that the allocator may keep so many bytes.
    fn note_freed(&self, bytes: usize) {
        self.freed.fetch_add(bytes, Ordering::Relaxed);
        self.look_at_freed();
    }
    fn look_at_freed(&self) {
        let (freed, limit) = (self.freed.load(Ordering::Relaxed), self.limit());
        let taken = self.taken.load(Ordering::Relaxed);
        if freed > limit / 16
            && freed.saturating_add(taken) > limit / 2
            && self.freed.swap(0, Ordering::Relaxed) > 0
            && let Some(on_freed) = self.on_freed.get()
        {
            on_freed();
        }
    }
    /// Bytes up to which shares and caches keep what no request needs: half of the limit.
    pub(crate) fn roomy(&self) -> usize {
        self.limit() / 2
    }
    /// Whether there is so much room that shares may keep some of it.
    fn is_roomy(&self, bytes: usize) -> bool {
        self.taken().saturating_add(bytes) <= self.roomy()
    }
    /// Bytes that reservations have taken and shares keep.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
    /// Takes back what is idle; false if there was nothing.
    fn reclaim(&self) -> bool {
        let mut idle = 0;
        self.each_share(|share| idle += share.idle.swap(0, Ordering::Relaxed));
        self.give_back(idle);
        idle > 0
    }
    fn each_share(&self, mut each: impl FnMut(&MemoryShare)) {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|share| each(&share));
    }
}

/// A worker's part of the budget: what its requests give back is kept for the next ones.
#[derive(Debug)]
pub struct MemoryShare {
    budget: Arc<MemoryBudget>,
    idle: AtomicUsize,
    /// Whether it keeps anything.
    keeps: bool,
}

impl MemoryShare {
    /// A share of a budget.
    pub fn new(budget: &Arc<MemoryBudget>) -> Arc<Self> {
        let share = MemoryShare::with(budget, true);
        let mut shares = budget.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&share));
        drop(shares);
        share
    }
    fn with(budget: &Arc<MemoryBudget>, keeps: bool) -> Arc<Self> {
        Arc::new(MemoryShare {
            budget: Arc::clone(budget),
            idle: AtomicUsize::new(0),
            keeps,
        })
    }
    /// Whether it is a share of this budget.
    pub fn is_of(&self, budget: &Arc<MemoryBudget>) -> bool {
        Arc::ptr_eq(&self.budget, budget)
    }
    /// Takes bytes if no more than `most` are in use then.
    fn take(&self, bytes: usize, most: usize) -> bool {
        // Many read this number, few change it.
        let fits = self.budget.taken.load(Ordering::Relaxed) <= most;
        (fits && self.take_idle(bytes)) || self.take_more(bytes, most)
    }
    fn take_idle(&self, bytes: usize) -> bool {
        let less = |idle: usize| idle.checked_sub(bytes);
        self.idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
    #[cold]
    fn take_more(&self, bytes: usize, most: usize) -> bool {
        let more = bytes.saturating_add(SPARE);
        if self.keeps && self.budget.is_roomy(more) && self.budget.try_take(more, most) {
            self.idle.fetch_add(SPARE, Ordering::Relaxed);
            return true;
        }
        self.budget.take(bytes, most)
    }
    fn give_back(&self, bytes: usize) {
        let idle = self.idle.load(Ordering::Relaxed);
        if self.keeps && idle.saturating_add(bytes) <= IDLE_MAX && self.budget.is_roomy(0) {
            self.idle.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.budget.give_back(bytes);
        }
        // Small ones are used again at once.
        if bytes > SMALL {
            self.budget.note_freed(bytes);
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.give_back(*self.idle.get_mut());
    }
}

/// There is no memory for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// What something makes the process hold; given back when it is dropped. One thread at a time changes it.
#[derive(Debug)]
pub struct Reservation {
    share: Arc<MemoryShare>,
    /// What it counts.
    used: AtomicUsize,
    /// What it has taken from the share: not less.
    taken: AtomicUsize,
    /// Whether it counts for something that runs.
    runs: AtomicBool,
}

impl Reservation {
    /// Counts nothing yet; for something new that no worker does.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        Reservation::of(&MemoryShare::with(budget, false))
    }
    /// Counts nothing yet; for something new.
    pub fn of(share: &Arc<MemoryShare>) -> Self {
        Reservation {
            share: Arc::clone(share),
            used: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            runs: AtomicBool::new(false),
        }
    }
    /// Another one of the same budget, in the same state.
    #[must_use]
    pub fn beside(&self) -> Self {
        let other = Reservation::of(&self.share);
        other.runs.store(self.is_running(), Ordering::Relaxed);
        other
    }
    /// From now on it counts for something that runs, and may use what nothing new may.
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
    /// The same for what can be done without: only up to half of the limit.
    pub fn grow_if_roomy(&self, bytes: usize) -> Result<(), OutOfMemory> {
        if self.share.budget.is_roomy(bytes) {
            self.grow(bytes)
        } else {
            Err(OutOfMemory)
        }
    }
    #[cold]
    fn take_up_to(&self, used: usize, taken: usize) -> Result<(), OutOfMemory> {
        let wanted = used.checked_next_multiple_of(CHUNK).ok_or(OutOfMemory)?;
        let budget = &self.share.budget;
        let most = match (self.is_running(), wanted <= SMALL) {
            (true, true) => budget.limit(),
            (true, false) => budget.running(),
            (false, true) => budget.admitting_small(),
            (false, false) => budget.admitting(),
        };
        if !self.share.take(wanted - taken, most) {
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
            let more = wanted - taken;
            if !self.share.take_idle(more) {
                self.share.budget.taken.fetch_add(more, Ordering::Relaxed);
            }
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
        // One chunk more may stay: what shrinks often grows again. What holds nothing keeps nothing.
        if taken - wanted > CHUNK || used == 0 {
            self.share.give_back(taken - wanted);
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
            self.share.give_back(taken);
        }
    }
}

/// A reservation in which many small things count: one of its own takes a chunk at least, which is more than each of them
/// holds.
#[derive(Debug)]
pub struct CommonReservation(Mutex<Reservation>);

impl CommonReservation {
    /// Counts nothing yet.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        CommonReservation(Mutex::new(Reservation::new(budget)))
    }
    /// Counts something new, if there is memory for it.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<HeldBytes, OutOfMemory> {
        let common = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        common.grow(bytes)?;
        Ok(HeldBytes {
            common: Arc::clone(self),
            bytes,
        })
    }
}

/// What one of many small things holds; given back when it is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    common: Arc<CommonReservation>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let common = self.common.0.lock();
        let common = common.unwrap_or_else(PoisonError::into_inner);
        common.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_things_take_no_more_than_they_hold() {
        let budget = budget(64);
        let common = Arc::new(CommonReservation::new(&budget));
        let mut held = Vec::new();
        while let Ok(one) = common.hold(1_000) {
            held.push(one);
        }
        // Up to where nothing new is begun.
        assert_eq!(held.len(), 48 * CHUNK / 1_000);
        drop(held);
        assert_eq!(budget.used(), 0);
    }

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
        let budget = budget(64);
        let running = Reservation::new(&budget);
        running.run();
        running.grow(48 * CHUNK).unwrap();
        let new = Reservation::new(&budget);
        assert_eq!(new.grow(SMALL + 1), Err(OutOfMemory));
        assert_eq!((budget.used(), budget.refused()), (48 * CHUNK, 1));
        new.grow(SMALL).expect("it is small");
        running.grow(10 * CHUNK).unwrap();
        assert_eq!(running.grow(1), Err(OutOfMemory));
        assert_eq!(running.used(), 58 * CHUNK);
        running.shrink(30 * CHUNK);
        new.grow(CHUNK).unwrap();
        assert_eq!(budget.used(), 31 * CHUNK);
    }

    #[test]
    fn large_things_that_run_leave_room_for_small_ones() {
        let budget = budget(64);
        let large = Reservation::new(&budget);
        large.run();
        large.grow(60 * CHUNK).unwrap();
        assert_eq!(large.grow(1), Err(OutOfMemory));
        let small = Reservation::new(&budget);
        small.grow(SMALL).expect("there is room for small ones");
        assert_eq!(Reservation::new(&budget).grow(1), Err(OutOfMemory));
        // The rest is for small ones that run.
        let begun = Reservation::new(&budget);
        begun.run();
        begun.grow(SMALL).unwrap();
        assert_eq!(begun.grow(1), Err(OutOfMemory));
        assert_eq!(budget.used(), 64 * CHUNK);
    }

    #[test]
    fn what_large_ones_leave_is_returned_before_it_is_too_much_with_what_is_in_use() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let calls = || CALLS.load(Ordering::Relaxed);
        let budget = budget(64);
        budget.on_freed(|| {
            CALLS.fetch_add(1, Ordering::Relaxed);
        });
        let use_for_a_moment = |chunks: usize| {
            let reservation = Reservation::new(&budget);
            reservation.run();
            reservation.grow(chunks * CHUNK).unwrap();
        };
        for _ in 0..1_000 {
            use_for_a_moment(SMALL / CHUNK);
        }
        (0..4).for_each(|_| use_for_a_moment(8));
        assert_eq!(calls(), 0, "half of the limit");
        use_for_a_moment(8);
        assert_eq!(calls(), 1, "the fourth is still free when there is a fifth");
        use_for_a_moment(8);
        let others = Reservation::new(&budget);
        others.run();
        others.grow(16 * CHUNK).unwrap();
        assert_eq!(calls(), 1);
        others.grow(16 * CHUNK).unwrap();
        assert_eq!(calls(), 2, "what is in use counts, too");
        others.grow(16 * CHUNK).unwrap();
        use_for_a_moment(4);
        assert_eq!(calls(), 2, "it is not worth it");
        use_for_a_moment(4);
        assert_eq!(calls(), 3);
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

    /// A hundred requests, one after another, and the number that all workers share is changed once.
    #[test]
    fn a_worker_serves_its_requests_from_what_it_keeps() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let share = MemoryShare::new(&budget);
        for _ in 0..100 {
            let request = Reservation::of(&share);
            request.grow(SMALL).unwrap();
            assert_eq!(budget.used(), SMALL);
            assert_eq!(budget.taken.load(Ordering::Relaxed), SMALL + SPARE);
        }
        assert_eq!(budget.used(), 0, "what is idle is not in use");
        let many: Vec<_> = (0..100).map(|_| Reservation::of(&share)).collect();
        many.iter().for_each(|one| one.grow(SMALL).unwrap());
        drop(many);
        let idle = budget.taken.load(Ordering::Relaxed);
        assert!(idle <= IDLE_MAX, "{idle} bytes are kept");
        drop(share);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nothing_is_refused_for_what_is_idle_with_another_worker() {
        let budget = Arc::new(MemoryBudget::new(8 * SPARE));
        let shares: Vec<_> = (0..3).map(|_| MemoryShare::new(&budget)).collect();
        for share in &shares {
            Reservation::of(share).grow(1).unwrap();
        }
        assert_eq!(budget.used(), 0);
        assert!(budget.taken.load(Ordering::Relaxed) > 3 * SPARE);
        // All that is for something new, which is more than is left beside what is idle.
        let large = Reservation::of(&shares[0]);
        large.grow(6 * SPARE).unwrap();
        assert_eq!((budget.used(), budget.refused()), (6 * SPARE, 0));
        // There is no room to keep anything any more.
        Reservation::of(&shares[1]).grow(1).unwrap();
        assert_eq!(budget.taken.load(Ordering::Relaxed), 6 * SPARE);
        assert_eq!(
            Reservation::of(&shares[2]).grow(2 * SPARE),
            Err(OutOfMemory)
        );
        assert_eq!(budget.refused(), 1);
    }

    /// However threads take and give back, no more is in use than the limit, and nothing stays.
    #[test]
    fn many_workers_never_have_more_than_the_limit() {
        const LIMIT: usize = 64 * CHUNK;
        let budget = Arc::new(MemoryBudget::new(LIMIT));
        let used = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for nth in 1..5 {
                let (budget, used) = (&budget, &used);
                scope.spawn(move || {
                    let share = MemoryShare::new(budget);
                    for round in 0..2_000 {
                        let one = Reservation::of(&share);
                        one.run();
                        let bytes = (round * nth % 40) * CHUNK;
                        if one.grow(bytes).is_ok() {
                            let now = used.fetch_add(bytes, Ordering::Relaxed) + bytes;
                            assert!(now <= LIMIT, "{now} bytes");
                            used.fetch_sub(bytes, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
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
