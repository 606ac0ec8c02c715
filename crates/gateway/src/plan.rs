//! Stop 3 of 5: plan. Comes from [`prepare`](crate::prepare), goes to [`execute`](crate::execute).
//!
//! A prepared operation brings its plan along if it was planned before (L0). Otherwise it is brought into canonical form
//! ([`crate::schema::canonical`]), under which the plan may be known already: from a bundle, or from an equivalent document
//! ([`crate::schema::plan_cache`], L1). Else the planner runs, once per form; a plan that might be better waits to be refined
//! ([`crate::schema::refine`]). An operation that progressive overrides can touch
//! ([`crate::schema::labels`]) has a plan for every set of labels that are on.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use ogive_base::{BitSet, bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_operation::Operation;
use ogive_planner::Planned;

use crate::{
    prepare::Means,
    schema::canonical::{Binding, Canonical, canonical},
    schema::fingerprint::rests_on,
    schema::operation::{PlannedOperation, PreparedOperation},
    schema::plan_cache::{PlanSlot, PlanSource, SharedPlan, Tier},
    schema::state::SchemaState,
    shared::error::{RequestError, queue_full},
    shared::observe_options::ObserveOptions,
    shared::offload::{LIGHT_OPERATION, Offload, PlanPermit, QueueFull},
    shared::operation_values::{OperationValues, RequestValues},
};

/// The plan of a prepared operation without any override label on, and where it came from.
pub async fn plan(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    plan_with(state, entry, BitSet::new()).await
}

/// The plan of a prepared operation for a request with these headers: they may decide about override labels.
pub async fn plan_for(
    state: &SchemaState,
    entry: &PreparedOperation,
    headers: &HeaderMap,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let on = if entry.labels.is_empty() {
        BitSet::new()
    } else {
        let asked = RequestValues {
            headers,
            caller: None,
            client: None,
            observe: &ObserveOptions::default(),
        };
        state.labels.on(&entry.labels, headers, &asked)
    };
    plan_with(state, entry, on).await
}

/// The same, where whatever may take long is done on other threads, with the permit of the operation if it has one.
pub(crate) async fn plan_fairly(
    state: &Arc<SchemaState>,
    asked: &OperationValues<'_>,
    means: Means<'_>,
    permit: Option<PlanPermit>,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let entry = asked.operation;
    let on = if entry.labels.is_empty() {
        BitSet::new()
    } else {
        state.labels.on(&entry.labels, asked.context.headers, asked)
    };
    match known(state, entry, &on) {
        Some(known) => Ok(known),
        // In a box, because it takes much room, and room is moved with every request.
        None => Box::pin(plan_anew(state, entry, on, means, permit)).await,
    }
}

async fn plan_anew(
    state: &Arc<SchemaState>,
    entry: &Arc<PreparedOperation>,
    on: BitSet,
    means: Means<'_>,
    permit: Option<PlanPermit>,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    if permit.is_none() && is_light(&entry.operation) {
        let light = || plan_light(state, entry, &on, false);
        if let Some(planned) = means.share.spend(light) {
            return planned;
        }
    }
    let offload = means.offload;
    let _permit = match permit {
        Some(permit) => permit,
        None => offload
            .plan_permit()
            .await
            .map_err(|QueueFull| queue_full())?,
    };
    // The canonical form is another operation, and a search looks at several plans.
    let searched = entry.heap_bytes() * SEARCHED;
    means.memory.grow(searched)?;
    let planned = plan_elsewhere(state, entry, on, offload).await;
    means.memory.shrink(searched);
    let (planned, source) = planned?;
    if source == PlanSource::Planner {
        // Whoever keeps it has a limit of its own; this counts what nobody keeps.
        means.memory.grow(planned.shared.heap_bytes())?;
    }
    Ok((planned, source))
}

/// How many times as much as an operation the search for its plan takes, about.
const SEARCHED: usize = 4;

/// An operation on the calling thread. Others that make the same plan are not waited for. `keep`: even if it comes for the
/// first time.
fn plan_light(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: &BitSet,
    keep: bool,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let form = canonical(&state.supergraph, &state.compared, &entry.operation);
    let key = state.labels.write_key(on, form.key);
    let make = || make(state, &form.operation, on);
    let (slot, source) = state.plans.get_or_make_now(key, keep, make)?;
    let planned = settle(state, entry, on, Arc::clone(&slot), form.binding, source);
    offer(state, &slot, form.operation, on);
    Ok((planned, source))
}

async fn plan_elsewhere(
    state: &Arc<SchemaState>,
    entry: &Arc<PreparedOperation>,
    on: BitSet,
    offload: &Offload,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let (shared_state, shared_entry) = (Arc::clone(state), Arc::clone(entry));
    let form = offload.run(move || {
        let state = &*shared_state;
        canonical(&state.supergraph, &state.compared, &shared_entry.operation)
    });
    let Canonical {
        key,
        operation,
        binding,
    } = form.await;
    let key = state.labels.write_key(&on, key);
    // Goes to the other thread and comes back.
    let mut operation = Some(operation);
    let make = async || {
        let (state, on, moved) = (Arc::clone(state), on.clone(), operation.take());
        let moved = moved.expect("a plan is made at most once");
        let (made, moved) = offload
            .run(move || (make(&state, &moved, &on), moved))
            .await;
        operation = Some(moved);
        made
    };
    let (slot, source) = state.plans.get_or_make(key, make).await?;
    let planned = settle(state, entry, &on, Arc::clone(&slot), binding, source);
    if let Some(operation) = operation {
        offer(state, &slot, operation, &on);
    }
    Ok((planned, source))
}

/// Has a new plan looked at again, if it is kept and that is wanted.
fn offer(state: &SchemaState, slot: &Arc<PlanSlot>, operation: Operation, on: &BitSet) {
    if state.plans.holds(slot) {
        let epoch = state.feedback.number();
        state.refinement.offer(slot, operation, on, epoch);
    }
}

/// Whether planning takes no longer than handing it over would.
fn is_light(operation: &Operation) -> bool {
    let sets = operation.selection_sets.as_slice().iter();
    let weights = sets.map(|set| set.fields.len() * set.possible.len().max(1));
    weights.sum::<usize>() <= LIGHT_OPERATION
}

/// The plan with some override labels on.
async fn plan_with(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: BitSet,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    if let Some(known) = known(state, entry, &on) {
        return Ok(known);
    }
    let form = canonical(&state.supergraph, &state.compared, &entry.operation);
    let Canonical {
        key,
        operation,
        binding,
    } = form;
    let key = state.labels.write_key(&on, key);
    let make = async || make(state, &operation, &on);
    let (slot, source) = state.plans.get_or_make(key, make).await?;
    let planned = settle(state, entry, &on, Arc::clone(&slot), binding, source);
    // Only now, so that the first request has the first plan.
    offer(state, &slot, operation, &on);
    Ok((planned, source))
}

/// [`plan`] without waiting for anybody, for commands and for warming up.
pub fn plan_now(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let on = BitSet::new();
    match known(state, entry, &on) {
        Some(known) => Ok(known),
        None => plan_light(state, entry, &on, true),
    }
}

fn known(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: &BitSet,
) -> Option<(Arc<PlannedOperation>, PlanSource)> {
    let mut planned = entry.known(on)?;
    if !planned.slot.holds(&planned.shared) {
        planned = entry.keep(on, planned.renewed());
    }
    let epoch = state.feedback.number();
    if planned.shared.epoch != epoch && state.refinement.wants(&planned.slot, epoch) {
        let form = canonical(&state.supergraph, &state.compared, &entry.operation);
        let refinement = &state.refinement;
        refinement.offer(&planned.slot, form.operation, on, epoch);
    }
    let source = match planned.shared.tier {
        Tier::Bundle => PlanSource::Bundle,
        _ => PlanSource::Cache,
    };
    state.plans.count(source);
    Some((planned, source))
}

/// Runs the planner on a canonical operation.
fn make(
    state: &SchemaState,
    operation: &Operation,
    on: &BitSet,
) -> Result<SharedPlan, RequestError> {
    let epoch = state.feedback.epoch();
    let options = state.planning_with(on, &epoch);
    let planned = ogive_planner::plan_judged(&state.supergraph, operation, &options);
    let Planned { mut plan, quality } = planned.map_err(|error| {
        tracing::warn!(
            code = error.code.as_str(),
            message = &*bounded(&error.message, MESSAGE_BYTES_MAX),
            "an operation could not be planned"
        );
        RequestError::graphql(error.code, error.message)
    })?;
    plan.shrink_to_fit();
    let shared = SharedPlan {
        plan: Arc::new(plan),
        parts: rests_on(&state.supergraph, operation),
        tier: if quality.settled {
            Tier::Exact
        } else {
            Tier::Greedy
        },
        quality: Some(quality),
        epoch: epoch.number,
        bytes: OnceLock::new(),
    };
    // Here, because this may be a thread that keeps nobody waiting.
    shared.heap_bytes();
    Ok(shared)
}

fn settle(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: &BitSet,
    slot: Arc<PlanSlot>,
    binding: Binding,
    source: PlanSource,
) -> Arc<PlannedOperation> {
    state.plans.count(source);
    let planned = entry.keep(on, PlannedOperation::new(slot, binding));
    tracing::debug!(
        plan.source = source.as_str(),
        fetches = planned.plan.fetches.len(),
        "planned"
    );
    planned
}
