//! The plans of one schema that wait to be made better ([`crate::schema::refine`]).

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_base::BitSet;
use ogive_config::Config;
use ogive_operation::Operation;

use crate::schema::plan_cache::{PlanSlot, Tier};

/// What may be spent on better plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefineLimits {
    /// Most plans that wait; default 64.
    pub queue_max: usize,
    /// Rule firings for one plan; default 20,000,000, which is about a tenth of a second.
    pub fuel: u64,
}

impl RefineLimits {
    /// The limits that a configuration asks for; `None`: plans stay as they are.
    pub fn new(config: &Config) -> Option<Self> {
        let refinement = &config.query_planning.refinement;
        // What is not kept cannot be replaced.
        let wanted = refinement.enabled && config.query_planning.cache.enabled;
        wanted.then(|| RefineLimits {
            queue_max: refinement.queue_size.get(),
            fuel: refinement.fuel.get() as u64,
        })
    }
}

/// The plans of one schema that wait to be refined.
#[derive(Debug, Default)]
pub struct Refinement {
    pub(crate) limits: Option<RefineLimits>,
    waiting: Mutex<VecDeque<Job>>,
    wakeup: Arc<Wakeup>,
    pub(crate) refined: AtomicU64,
    pub(crate) improved: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// Of the dropped ones, those that metrics know of.
    pub(crate) dropped_told: AtomicU64,
}

/// How many plans became what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RefineCounts {
    /// Planned again.
    pub refined: u64,
    /// Of those, replaced by a better one.
    pub improved: u64,
    /// Forgotten because the queue was full.
    pub dropped: u64,
    /// Still waiting.
    pub waiting: usize,
}

/// A plan that waits.
#[derive(Debug)]
pub(crate) struct Job {
    /// A plan that nobody keeps any more need not get better.
    pub(crate) slot: Weak<PlanSlot>,
    pub(crate) operation: Operation,
    pub(crate) labels: BitSet,
}

impl Refinement {
    /// An empty queue.
    pub fn new(limits: Option<RefineLimits>) -> Self {
        Refinement {
            limits,
            ..Refinement::default()
        }
    }
    /// Whether a plan should be offered: it is not known to be the best, or was made with an older snapshot, and nobody
    /// has offered it since.
    pub(crate) fn wants(&self, slot: &PlanSlot, epoch: u64) -> bool {
        if self.limits.is_none() || slot.is_claimed(epoch) {
            return false;
        }
        let shared = slot.current();
        match shared.tier {
            Tier::Bundle => false,
            Tier::Greedy => true,
            Tier::Exact | Tier::Refined => shared.epoch != epoch,
        }
    }
    /// Has a plan looked at again, if that is wanted.
    pub(crate) fn offer(
        &self,
        slot: &Arc<PlanSlot>,
        operation: Operation,
        labels: &BitSet,
        epoch: u64,
    ) {
        let Some(limits) = self.limits else { return };
        if !self.wants(slot, epoch) || !slot.claim(epoch) {
            return;
        }
        let mut waiting = self.waiting();
        if waiting.len() >= limits.queue_max {
            drop(waiting);
            slot.release();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            waiting.push_back(Job {
                slot: Arc::downgrade(slot),
                operation,
                labels: labels.clone(),
            });
            drop(waiting);
        }
        self.wakeup.wake();
    }
    /// What became of plans so far.
    pub fn counts(&self) -> RefineCounts {
        RefineCounts {
            refined: self.refined.load(Ordering::Relaxed),
            improved: self.improved.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            waiting: self.waiting().len(),
        }
    }
    /// Wakes this thread when there is new work.
    pub(crate) fn wake_at(&mut self, wakeup: &Arc<Wakeup>) {
        self.wakeup = Arc::clone(wakeup);
    }
    pub(crate) fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the thread that there is work, and everybody else when there is none left.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    state: Mutex<WakeupState>,
    changed: Condvar,
}

/// What the thread is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WakeupState {
    /// There may be work.
    pub(crate) work: bool,
    /// It is being done.
    pub(crate) busy: bool,
    /// The thread is to end, or has ended.
    pub(crate) stop: bool,
}

impl Wakeup {
    pub(crate) fn wake(&self) {
        self.change(|state| state.work = true);
    }
    pub(crate) fn change(&self, change: impl FnOnce(&mut WakeupState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, WakeupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn wait_while(
        &self,
        condition: impl Fn(&WakeupState) -> bool,
    ) -> MutexGuard<'_, WakeupState> {
        let wait = self.changed.wait_while(self.lock(), |r| condition(r));
        wait.unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for work; false if the thread is to end.
    pub(crate) fn work(&self) -> bool {
        self.change(|state| state.busy = false);
        let mut state = self.wait_while(|r| !r.work && !r.stop);
        state.work = false;
        state.busy = !state.stop;
        !state.stop
    }
}
