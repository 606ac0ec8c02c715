//! Stop 3 of 5: plan. Comes from [`prepare`](crate::prepare), goes to [`execute`](crate::execute).
//!
//! A prepared operation brings its plan along if it was planned before; otherwise the planner runs, once per cached
//! operation save for requests that race for it, and the result stays with the operation.

use std::sync::Arc;

use ogive_plan::Plan;
use ogive_planner::PlanOptions;

use crate::{cache::PreparedOperation, error::RequestError, state::SchemaState};

/// The plan of a prepared operation, and whether it was there already.
pub fn plan(
    state: &SchemaState,
    entry: &PreparedOperation,
) -> Result<(Arc<Plan>, bool), RequestError> {
    if let Some(plan) = entry.plan.get() {
        return Ok((Arc::clone(plan), true));
    }
    let planned = ogive_planner::plan(&state.supergraph, &entry.operation, &PlanOptions::default());
    let plan = planned.map_err(|error| {
        tracing::warn!(
            code = error.code,
            message = error.message,
            "an operation could not be planned"
        );
        RequestError::graphql(error.code, error.message)
    })?;
    // In tests a plan that breaks an invariant must fail whatever asked for it.
    debug_assert_eq!(ogive_plan::verify(&plan), Ok(()));
    Ok((Arc::clone(entry.plan.get_or_init(|| Arc::new(plan))), false))
}
