//! Stop 3 of 5: plan. Comes from [`prepare`](crate::prepare), goes to [`execute`](crate::execute).
//!
//! A prepared operation brings its plan along if it was planned before (L0). Otherwise it is brought into canonical form
//! ([`crate::canonical`]), under which the plan may be known already: from a bundle, or from an equivalent document
//! ([`crate::plans`], L1). Else the planner runs, once per form.

use std::sync::Arc;

use ogive_plan::Plan;

use crate::{
    cache::PreparedOperation,
    canonical::{Binding, Canonical, canonical},
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
    /// Whether the plan came out of a bundle.
    bundled: bool,
}

/// The plan of a prepared operation, and where it came from.
pub async fn plan(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    if let Some(known) = known(state, entry) {
        return Ok(known);
    }
    let form = canonical(&state.supergraph, &state.compared, &entry.operation);
    let Canonical {
        key,
        operation,
        binding,
    } = form;
    let make = || make(state, &operation);
    let (shared, source) = state.plans.get_or_make(key, make).await?;
    Ok(settle(state, entry, &shared, binding, source))
}

/// The same without waiting for anybody, for commands and for warming up.
pub fn plan_now(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<PlannedOperation>, PlanSource), RequestError> {
    if let Some(known) = known(state, entry) {
        return Ok(known);
    }
    let form = canonical(&state.supergraph, &state.compared, &entry.operation);
    let make = || make(state, &form.operation);
    let (shared, source) = state.plans.get_or_make_now(form.key, make)?;
    Ok(settle(state, entry, &shared, form.binding, source))
}

fn known(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Option<(Arc<PlannedOperation>, PlanSource)> {
    let planned = entry.planned.get()?;
    let source = match planned.bundled {
        true => PlanSource::Bundle,
        false => PlanSource::Cache,
    };
    state.plans.count(source);
    Some((Arc::clone(planned), source))
}

/// Runs the planner on a canonical operation.
fn make(
    state: &SchemaState,
    operation: &ogive_operation::Operation,
) -> Result<SharedPlan, RequestError> {
    let planned = ogive_planner::plan(&state.supergraph, operation, &state.options.plan);
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
    let planned = entry.planned.get_or_init(|| {
        Arc::new(PlannedOperation {
            plan: Arc::clone(&shared.plan),
            binding,
            bundled: shared.bundled,
        })
    });
    (Arc::clone(planned), source)
}
