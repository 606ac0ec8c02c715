//! Warming up a new schema with what the one before it knew.
//!
//! Plans that rest on unchanged types and fields are taken over. Then every operation that was kept is prepared again,
//! which finds its plan unless something below it changed; only those are planned anew. All of it happens before the swap, away from
//! the requests.

use std::sync::{Arc, OnceLock};

use crate::{
    GatewayOptions,
    gateway::Gateway,
    plan::plan_now,
    prepare::prepare_operation_for,
    schema::fingerprint::{Part, renumbered},
    schema::plan_cache::{PlanSource, SharedPlan, Tier},
    schema::state::SchemaState,
};

/// What a new schema took over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WarmUp {
    /// Plans taken over.
    pub kept: usize,
    /// Plans that rest on what changed.
    pub dropped: usize,
    /// Operations planned anew.
    pub planned: usize,
    /// Operations that are not valid any more, or have no plan.
    pub refused: usize,
}

impl Gateway {
    /// Warms a new schema up, then serves new requests with it. Takes as long as planning what changed: call it from a
    /// thread that serves no requests.
    pub fn reload(&self, mut state: SchemaState) -> WarmUp {
        let done = state.warm_up(&self.state());
        self.replace(state);
        done
    }
    /// Like [`Gateway::reload`], with other options too; both are swapped as one.
    pub fn reload_all(&self, mut state: SchemaState, options: GatewayOptions) -> WarmUp {
        let done = state.warm_up(&self.state());
        self.replace_all(state, options);
        done
    }
}

impl SchemaState {
    /// Takes over from `before` what still holds. Call it before the new state serves.
    pub fn warm_up(&mut self, before: &SchemaState) -> WarmUp {
        let mut done = WarmUp::default();
        self.feedback.go_on(&before.feedback);
        if self.options.plan == before.options.plan {
            for (key, shared) in before.plans.all() {
                match self.taken_over(before, &shared) {
                    Some(shared) => {
                        done.kept += 1;
                        let shared = Arc::new(shared);
                        if shared.tier == Tier::Bundle {
                            self.plans.insert_bundled(key, shared);
                        } else {
                            self.plans.insert(key, shared);
                        }
                    }
                    None => done.dropped += 1,
                }
            }
        }
        for (name, entry) in before.operations.all() {
            let (text, name) = (entry.document.source(), name.as_deref());
            let Ok(operation) = prepare_operation_for(self, text, name, entry.delivery) else {
                done.refused += 1;
                continue;
            };
            match plan_now(self, &operation) {
                Ok((_, PlanSource::Planner)) => done.planned += 1,
                Ok(_) => {}
                Err(_) => {
                    done.refused += 1;
                    continue;
                }
            }
            self.operations.insert(name, Arc::new(operation));
        }
        done
    }

    fn taken_over(&self, before: &SchemaState, shared: &SharedPlan) -> Option<SharedPlan> {
        let same = |old: &Part| {
            let name = old.name(&before.supergraph.schema);
            let new = Part::find(&self.supergraph.schema, &name)?;
            (self.fingerprints.of(new) == before.fingerprints.of(*old)).then_some(new)
        };
        let parts: Option<Box<[Part]>> = shared.parts.iter().map(same).collect();
        Some(SharedPlan {
            parts: parts?,
            plan: Arc::new(renumbered(&shared.plan, &self.supergraph)?),
            tier: shared.tier,
            quality: shared.quality,
            epoch: shared.epoch,
            bytes: OnceLock::new(),
        })
    }
}
