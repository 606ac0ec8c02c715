//! Stop 3 of 5: plan. Comes from [`prepare`](crate::prepare), goes to [`execute`](crate::execute).
//!
//! A prepared operation brings its plan along if it was planned before (L0). Otherwise it is brought into canonical form
//! ([`crate::schema::canonical`]), under which the plan may be known already: from a bundle, or from an equivalent document
//! ([`crate::schema::plan_cache`], L1). Else the planner runs, once per form; a plan that might be better waits to be refined
//! ([`crate::schema::refine`]). An operation that progressive overrides can touch
//! ([`crate::schema::labels`]) has a plan for every set of labels that are on.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use ogive_base::{BitSet, Reservation, bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_edge::error::RequestError;
use ogive_operation::Operation;
use ogive_planner::Planned;
use ogive_server::offload::{LIGHT_OPERATION, Offload, PlanPermit, Share};

use crate::{
    prepare::Means,
    schema::{
        canonical::{Binding, Canonical, canonical},
        fingerprint::rests_on,
        operation::{PlannedOperation, PreparedOperation},
        plan_cache::{PlanSlot, PlanSource, SharedPlan, Tier},
        state::SchemaState,
    },
    shared::{
        observe_options::ObserveOptions,
        operation_values::{OperationValues, RequestValues},
        stage::Stage,
    },
};

/// Finds or makes the plan of an operation.
#[derive(Debug)]
pub(crate) struct PlanOperation {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) offload: Arc<Offload>,
}

impl Stage for PlanOperation {
    const NAME: &'static str = "plan";
    const DOES: &'static str = "find or make the plan: which subgraphs are asked for what";
}

impl PlanOperation {
    /// See [`plan_fairly`].
    pub(crate) fn run<'a>(
        &'a self,
        asked: &'a OperationValues<'_>,
        share: &'a Share,
        memory: &'a Reservation,
        permit: Option<PlanPermit>,
    ) -> impl Future<Output = Result<Found, RequestError>> + 'a {
        let means = Means::of(&self.offload, share, memory);
        plan_fairly(&self.state, asked, means, permit)
    }
}

/// A plan, and where it came from.
type Found = (Arc<PlannedOperation>, PlanSource);

/// The plan of an operation for a request. What may take long is done on other threads, with the permit of the operation
/// if it has one.
pub(crate) async fn plan_fairly(
    state: &Arc<SchemaState>,
    asked: &OperationValues<'_>,
    means: Means<'_>,
    permit: Option<PlanPermit>,
) -> Result<Found, RequestError> {
    let entry = asked.operation;
    let on = if entry.labels.is_empty() {
        BitSet::new()
    } else {
        state.labels.on(&entry.labels, asked.context.headers, asked)
    };
    match Planning::new(state, entry, &on).known() {
        Some(known) => Ok(known),
        // Boxed: keeps the common future small.
        None => Box::pin(plan_unknown(state, entry, on, means, permit)).await,
    }
}

/// The plan of an operation for a request with these headers, of whose caller nothing is known: headers may decide about
/// override labels. A plan that is not known is made on other threads.
pub async fn plan_for(
    state: &Arc<SchemaState>,
    entry: &Arc<PreparedOperation>,
    headers: &HeaderMap,
    offload: &Offload,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let asked = RequestValues {
        headers,
        caller: None,
        client: None,
        observe: &ObserveOptions::default(),
    };
    let on = state.labels.on(&entry.labels, headers, &asked);
    match Planning::new(state, entry, &on).known() {
        Some(known) => Ok(known),
        None => plan_elsewhere(state, entry, on, offload).await,
    }
}

/// The plan of an operation without any override label on. Waits for nobody: for commands, and for warming up.
pub fn plan_now(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let on = BitSet::new();
    let planning = Planning::new(state, entry, &on);
    planning.known().map_or_else(|| planning.run(true), Ok)
}

async fn plan_unknown(
    state: &Arc<SchemaState>,
    entry: &Arc<PreparedOperation>,
    on: BitSet,
    means: Means<'_>,
    permit: Option<PlanPermit>,
) -> Result<Found, RequestError> {
    if permit.is_none() {
        let light = || Planning::new(state, entry, &on).run(false);
        if let Some(planned) = means.spend(is_light(&entry.operation), light) {
            return planned;
        }
    }
    let _permit = means.permit(permit).await?;
    // The canonical form is another operation, and a search looks at several plans.
    let searched = entry.heap_bytes() * SEARCHED;
    means.memory.grow(searched)?;
    let planned = plan_elsewhere(state, entry, on, means.offload).await;
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

/// Plans on other threads. While one request makes a plan, others that need it wait.
async fn plan_elsewhere(
    state: &Arc<SchemaState>,
    entry: &Arc<PreparedOperation>,
    on: BitSet,
    offload: &Offload,
) -> Result<Found, RequestError> {
    let shared = (Arc::clone(state), Arc::clone(entry), on);
    let (form, on) = offload
        .run(move || {
            let (state, entry, on) = shared;
            (Planning::new(&state, &entry, &on).form(), on)
        })
        .await;
    let Canonical {
        key,
        operation,
        binding,
    } = form;
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
    Ok(Planning::new(state, entry, &on).keep(slot, source, binding, operation))
}

/// An operation for which a plan is wanted, and the override labels that are on.
struct Planning<'a> {
    state: &'a SchemaState,
    entry: &'a PreparedOperation,
    on: &'a BitSet,
}

impl<'a> Planning<'a> {
    fn new(state: &'a SchemaState, entry: &'a PreparedOperation, on: &'a BitSet) -> Self {
        Planning { state, entry, on }
    }
    /// The plan, if the operation brings it along.
    fn known(&self) -> Option<Found> {
        let Planning { state, entry, on } = *self;
        let mut planned = entry.known(on)?;
        if !planned.slot.holds(&planned.shared) {
            planned = entry.keep(on, planned.renewed());
        }
        let epoch = state.feedback.number();
        if planned.shared.epoch != epoch && state.refinement.wants(&planned.slot, epoch) {
            let form = self.form();
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
    /// Plans on the calling thread. Others that make the plan are not waited for. `keep`: even if it comes for the first
    /// time.
    fn run(&self, keep: bool) -> Result<Found, RequestError> {
        let Planning { state, on, .. } = *self;
        let Canonical {
            key,
            operation,
            binding,
        } = self.form();
        let make = || make(state, &operation, on);
        let (slot, source) = state.plans.get_or_make_now(key, keep, make)?;
        Ok(self.keep(slot, source, binding, Some(operation)))
    }
    /// The canonical form, with a key under these labels.
    fn form(&self) -> Canonical {
        let Planning { state, entry, on } = *self;
        let form = canonical(&state.supergraph, &state.compared, &entry.operation);
        Canonical {
            key: state.labels.write_key(on, form.key),
            ..form
        }
    }
    /// Keeps a plan with its operation, and has a new one looked at again if it is kept and that is wanted: only now, so that
    /// the first request has the first plan.
    fn keep(
        &self,
        slot: Arc<PlanSlot>,
        source: PlanSource,
        binding: Binding,
        operation: Option<Operation>,
    ) -> Found {
        let Planning { state, entry, on } = *self;
        state.plans.count(source);
        let planned = entry.keep(on, PlannedOperation::new(Arc::clone(&slot), binding));
        tracing::debug!(
            plan.source = source.as_str(),
            fetches = planned.plan.fetches.len(),
            "planned"
        );
        if let Some(operation) = operation.filter(|_| state.plans.holds(&slot)) {
            let epoch = state.feedback.number();
            state.refinement.offer(&slot, operation, on, epoch);
        }
        (planned, source)
    }
}

/// Whether planning takes no longer than handing it over would.
fn is_light(operation: &Operation) -> bool {
    let sets = operation.selection_sets.as_slice().iter();
    let weights = sets.map(|set| set.fields.len() * set.possible.len().max(1));
    weights.sum::<usize>() <= LIGHT_OPERATION
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
