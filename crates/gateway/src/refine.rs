//! Better plans in the background: a first plan is made at once, within the planner's fuel; one that is not known to be
//! the best is planned again with more, beside the requests, and replaced where it is kept.
//!
//! Both plans give the same answers. A request that runs keeps the plan it has; the next one takes the better one. The
//! result depends on the schema, the operation, the planning options and the snapshot of what was measured
//! ([`crate::feedback`]) alone, never on how busy the machine is. With a new snapshot, plans are looked at again.
//!
//! One thread of the lowest priority works for the whole gateway ([`Refiner`]). What waits belongs to a schema
//! ([`Refinement`]) and goes with it. A full queue forgets: the plan stays as it is until another document needs it.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_base::{BitSet, bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_config::Config;
use ogive_operation::Operation;
use ogive_planner::{PlanError, Planned};
use ogive_telemetry::metrics::Event;

use crate::{
    Gateway,
    plan::options_with,
    plans::{PlanSlot, SharedPlan, Tier},
    state::SchemaState,
};

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
    limits: Option<RefineLimits>,
    waiting: Mutex<VecDeque<Job>>,
    bell: Arc<Bell>,
    refined: AtomicU64,
    improved: AtomicU64,
    dropped: AtomicU64,
    /// Of the dropped ones, those that metrics know of.
    dropped_told: AtomicU64,
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

#[derive(Debug)]
struct Job {
    /// A plan that nobody keeps any more need not get better.
    slot: Weak<PlanSlot>,
    operation: Operation,
    labels: BitSet,
}

/// What came of planning once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refined {
    /// A better plan is in place.
    Improved,
    /// Another plan is in place, which suits better what was measured since.
    Replaced,
    /// There is none, or none was found.
    Unchanged,
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
        self.bell.ring();
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
    /// Whoever listens to this bell hears of new work.
    pub(crate) fn ring_at(&mut self, bell: &Arc<Bell>) {
        self.bell = Arc::clone(bell);
    }
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SchemaState {
    /// Refines the plan that has waited longest, on the calling thread; `None` if none waits.
    pub fn refine_next(&self) -> Option<Refined> {
        let refinement = &self.refinement;
        let fuel = refinement.limits?.fuel;
        let (slot, job) = loop {
            let job = refinement.waiting().pop_front()?;
            if let Some(slot) = job.slot.upgrade() {
                break (slot, job);
            }
        };
        let epoch = self.feedback.epoch();
        let options = options_with(self, &job.labels, &epoch);
        let plan = || ogive_planner::refine(&self.supergraph, &job.operation, &options, fuel);
        // A bug costs a better plan, not the thread.
        let planned = catch_unwind(AssertUnwindSafe(plan));
        let refined = match planned {
            Ok(Ok(planned)) => self.settle_refined(&slot, planned, epoch.number),
            Ok(Err(PlanError { code, message })) => {
                let message = &*bounded(&message, MESSAGE_BYTES_MAX);
                tracing::warn!(code, message, "a plan could not be refined");
                Refined::Unchanged
            }
            Err(_) => Refined::Unchanged,
        };
        refinement.refined.fetch_add(1, Ordering::Relaxed);
        if refined == Refined::Improved {
            refinement.improved.fetch_add(1, Ordering::Relaxed);
        }
        Some(refined)
    }

    fn settle_refined(&self, slot: &Arc<PlanSlot>, planned: Planned, epoch: u64) -> Refined {
        let Planned { mut plan, quality } = planned;
        let before = slot.current();
        let better = before.quality.is_none_or(|old| quality.cost < old.cost);
        let other = better || before.epoch != epoch && plan != *before.plan;
        tracing::debug!(
            before = before.plan.fetches.len(),
            after = plan.fetches.len(),
            better,
            proven = quality.settled,
            "a plan was refined"
        );
        let plan = match other {
            true => {
                plan.shrink_to_fit();
                Arc::new(plan)
            }
            // What was learnt about the old one stays true.
            false => Arc::clone(&before.plan),
        };
        self.plans.replace(
            slot,
            SharedPlan {
                plan,
                parts: before.parts.clone(),
                tier: Tier::Refined,
                quality: Some(quality),
                epoch,
                bytes: OnceLock::new(),
            },
        );
        match (better, other) {
            (true, _) => Refined::Improved,
            (false, true) => Refined::Replaced,
            (false, false) => Refined::Unchanged,
        }
    }
}

impl Gateway {
    /// Refines the plan that has waited longest, on the calling thread, and counts it; `None` if none waits.
    pub fn refine_next(&self) -> Option<Refined> {
        let state = self.state();
        let refined = state.refine_next();
        if let Some(metrics) = &self.telemetry().metrics {
            let dropped = state.refinement.dropped.load(Ordering::Relaxed);
            let told = &state.refinement.dropped_told;
            let told = told.swap(dropped, Ordering::Relaxed);
            for _ in told..dropped {
                metrics.count(Event::RefinementDropped);
            }
            if refined.is_some() {
                metrics.count(Event::PlanRefined);
            }
            if refined == Some(Refined::Improved) {
                metrics.count(Event::PlanImproved);
            }
        }
        refined
    }
}

/// Tells the thread that there is work, and everybody else when there is none left.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    ringing: Mutex<Ringing>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ringing {
    /// There may be work.
    work: bool,
    /// It is being done.
    busy: bool,
    /// The thread is to end, or has ended.
    stop: bool,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.change(|ringing| ringing.work = true);
    }
    fn change(&self, change: impl FnOnce(&mut Ringing)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
    fn lock(&self) -> MutexGuard<'_, Ringing> {
        self.ringing.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wait_while(&self, condition: impl Fn(&Ringing) -> bool) -> MutexGuard<'_, Ringing> {
        let wait = self.changed.wait_while(self.lock(), |r| condition(r));
        wait.unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for work; false if the thread is to end.
    fn work(&self) -> bool {
        self.change(|ringing| ringing.busy = false);
        let mut ringing = self.wait_while(|r| !r.work && !r.stop);
        ringing.work = false;
        ringing.busy = !ringing.stop;
        !ringing.stop
    }
}

/// The thread that refines plans. Dropping it ends it after the plan it is at.
#[derive(Debug)]
pub struct Refiner {
    thread: Option<std::thread::JoinHandle<()>>,
    bell: Arc<Bell>,
}

impl Refiner {
    /// Starts the thread; it works whenever a plan waits. The error is for the operator.
    pub fn start(gateway: Arc<Gateway>) -> Result<Self, String> {
        let bell = Arc::clone(gateway.bell());
        let rung = Arc::clone(&bell);
        let run = move || {
            // Requests go first wherever cores are short. Without the right to say so, it works all the same.
            let _ = rustix::process::nice(LOWEST_PRIORITY);
            while rung.work() {
                while !rung.lock().stop && gateway.refine_next().is_some() {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("ogive-refine".to_owned())
            .spawn(run)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Refiner {
            thread: Some(thread),
            bell,
        })
    }
    /// Returns when no plan waits and none is being refined.
    pub fn settle(&self) {
        drop(self.bell.wait_while(|r| (r.work || r.busy) && !r.stop));
    }
}

impl Drop for Refiner {
    fn drop(&mut self) {
        self.bell.change(|ringing| ringing.stop = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Added to the priority of the thread, on Linux to that of the thread alone.
const LOWEST_PRIORITY: i32 = 19;
