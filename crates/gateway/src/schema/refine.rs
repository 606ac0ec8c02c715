//! Better plans in the background: a first plan is made at once, within the planner's fuel; one that is not known to be
//! the best is planned again with more, beside the requests, and replaced where it is kept.
//!
//! Both plans give the same answers. A request that runs keeps the plan it has; the next one takes the better one. The
//! result depends on the schema, the operation, the planning options and the snapshot of what was measured
//! ([`crate::schema::feedback`]) alone, never on how busy the machine is. With a new snapshot, plans are looked at again.
//!
//! One thread of the lowest priority works for the whole gateway ([`Refiner`]). What waits belongs to a schema
//! ([`crate::schema::refinement`]) and goes with it. A full queue forgets: the plan stays as it is until another document needs it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock, atomic::Ordering},
};

use ogive_base::{bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_planner::{PlanError, Planned};
use ogive_telemetry::metrics::Event;

use crate::{
    Gateway,
    schema::plan_cache::{PlanSlot, SharedPlan, Tier},
    schema::refinement::Wakeup,
    schema::state::SchemaState,
};

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
        let options = self.planning_with(&job.labels, &epoch);
        let plan = || ogive_planner::refine(&self.supergraph, &job.operation, &options, fuel);
        // A bug costs a better plan, not the thread.
        let planned = catch_unwind(AssertUnwindSafe(plan));
        let refined = match planned {
            Ok(Ok(planned)) => self.settle_refined(&slot, planned, epoch.number),
            Ok(Err(PlanError { code, message })) => {
                let message = &*bounded(&message, MESSAGE_BYTES_MAX);
                let code = code.as_str();
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
        let plan = if other {
            plan.shrink_to_fit();
            Arc::new(plan)
        } else {
            // What was learnt about the old one stays true.
            Arc::clone(&before.plan)
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

/// The thread that refines plans. Dropping it ends it after the plan it is at.
#[derive(Debug)]
pub struct Refiner {
    thread: Option<std::thread::JoinHandle<()>>,
    wakeup: Arc<Wakeup>,
}

impl Refiner {
    /// Starts the thread; it works whenever a plan waits. The error is for the operator.
    pub fn start(gateway: Arc<Gateway>) -> Result<Self, String> {
        let wakeup = Arc::clone(gateway.wakeup());
        let shared = Arc::clone(&wakeup);
        let run = move || {
            // Requests go first wherever cores are short. Without the right to say so, it works all the same.
            let _ = rustix::process::nice(LOWEST_PRIORITY);
            while shared.work() {
                while !shared.lock().stop && gateway.refine_next().is_some() {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("ogive-refine".to_owned())
            .spawn(run)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Refiner {
            thread: Some(thread),
            wakeup,
        })
    }
    /// Returns when no plan waits and none is being refined.
    pub fn settle(&self) {
        drop(self.wakeup.wait_while(|r| (r.work || r.busy) && !r.stop));
    }
}

impl Drop for Refiner {
    fn drop(&mut self) {
        self.wakeup.change(|state| state.stop = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Added to the priority of the thread, on Linux to that of the thread alone.
const LOWEST_PRIORITY: i32 = 19;
