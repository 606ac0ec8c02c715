//! Stop 3 of 5: plan. Comes from [`prepare`](crate::prepare), goes to [`execute`](crate::execute).
//!
//! A prepared operation brings its plan along if it was planned before (L0). Otherwise it is brought into canonical form
//! ([`crate::canonical`]), under which the plan may be known already: from a bundle, or from an equivalent document
//! ([`crate::plans`], L1). Else the planner runs, once per form. An operation that progressive overrides can touch
//! ([`crate::labels`]) has a plan for every set of labels that are on.

use std::sync::Arc;

use http::HeaderMap;
use ogive_base::BitSet;
use ogive_plan::Plan;
use ogive_planner::PlanOptions;

use crate::{
    cache::PreparedOperation,
    canonical::{Binding, Canonical, canonical},
    early::Early,
    error::RequestError,
    fingerprint::rests_on,
    plans::{PlanSource, SharedPlan},
    state::SchemaState,
};

/// The plan of one document's operation.
#[derive(Debug)]
pub struct PlannedOperation {
    /// The plan, shared with equivalent documents.
    pub plan: Arc<Plan>,
    /// Values of the plan's variables, from the client's.
    pub binding: Binding,
    /// Whether to send parts of fetches early.
    pub early: Early,
    /// Whether the plan came out of a bundle.
    bundled: bool,
}

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
    let on = match entry.labels.is_empty() {
        true => BitSet::new(),
        false => state.labels.on(&entry.labels, headers),
    };
    plan_with(state, entry, on).await
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
    let make = || make(state, &operation, &on);
    let (shared, source) = state.plans.get_or_make(key, make).await?;
    Ok(settle(state, entry, &on, &shared, binding, source))
}

/// [`plan`] without waiting for anybody, for commands and for warming up.
pub fn plan_now(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    let on = BitSet::new();
    if let Some(known) = known(state, entry, &on) {
        return Ok(known);
    }
    let form = canonical(&state.supergraph, &state.compared, &entry.operation);
    let make = || make(state, &form.operation, &on);
    let (shared, source) = state.plans.get_or_make_now(form.key, make)?;
    Ok(settle(state, entry, &on, &shared, form.binding, source))
}

fn known(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: &BitSet,
) -> Option<(Arc<PlannedOperation>, PlanSource)> {
    let planned = entry.known(on)?;
    let source = match planned.bundled {
        true => PlanSource::Bundle,
        false => PlanSource::Cache,
    };
    state.plans.count(source);
    Some((planned, source))
}

/// Runs the planner on a canonical operation.
fn make(
    state: &SchemaState,
    operation: &ogive_operation::Operation,
    on: &BitSet,
) -> Result<SharedPlan, RequestError> {
    let options = &state.options.plan;
    let planned = match on.is_empty() {
        true => ogive_planner::plan(&state.supergraph, operation, options),
        false => {
            let labels = options.labels.union(on);
            let options = PlanOptions {
                labels,
                ..options.clone()
            };
            ogive_planner::plan(&state.supergraph, operation, &options)
        }
    };
    let mut plan = planned.map_err(|error| {
        tracing::warn!(
            code = error.code,
            message = error.message,
            "an operation could not be planned"
        );
        RequestError::graphql(error.code, error.message)
    })?;
    plan.shrink_to_fit();
    Ok(SharedPlan {
        plan: Arc::new(plan),
        parts: rests_on(&state.supergraph, operation),
        bundled: false,
    })
}

fn settle(
    state: &SchemaState,
    entry: &PreparedOperation,
    on: &BitSet,
    shared: &SharedPlan,
    binding: Binding,
    source: PlanSource,
) -> (Arc<PlannedOperation>, PlanSource) {
    state.plans.count(source);
    tracing::debug!(
        plan.source = source.as_str(),
        fetches = shared.plan.fetches.len(),
        "planned"
    );
    let planned = entry.keep(on, || PlannedOperation {
        plan: Arc::clone(&shared.plan),
        binding,
        early: Early::default(),
        bundled: shared.bundled,
    });
    (planned, source)
}
