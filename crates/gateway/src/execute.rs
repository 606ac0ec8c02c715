//! Stop 4 of 5: execute. Comes from [`plan`](crate::plan), goes to [`respond`](crate::respond).
//!
//! Lends the worker's connections, the client's headers and the deadline to [`ogive_execute::execute`], which does
//! the work, and computes the fields that no subgraph answers (introspection).

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::{ExecuteInput, ExecuteOptions, ExecuteOutput};
use ogive_plan::Plan;
use ogive_transport::{Client, RequestTransport};
use tokio::time::Instant;

use crate::{prepare::Prepared, state::SchemaState};

/// Runs a plan.
pub async fn execute(
    state: &SchemaState,
    prepared: &Prepared,
    plan: &Plan,
    headers: &HeaderMap,
    client: &Client,
    trace: bool,
) -> ExecuteOutput {
    let deadline = Instant::now() + state.options.request_timeout;
    let transport = RequestTransport::new(client, &state.endpoints, headers, Some(deadline));
    let locals = locals(state, prepared, plan);
    let input = ExecuteInput {
        variables: &prepared.variables.values,
        locals: &locals,
        limits: state.options.execute,
        options: ExecuteOptions {
            trace,
            ..state.options.tell
        },
    };
    ogive_execute::execute(plan, input, &transport).await
}

/// The values of introspection fields, in the order in which the plan numbers them.
fn locals(state: &SchemaState, prepared: &Prepared, plan: &Plan) -> Vec<Bytes> {
    if plan.locals == 0 {
        return Vec::new();
    }
    crate::introspect::answer_locals(
        &state.supergraph.api,
        &prepared.operation.operation,
        &prepared.variables,
    )
    .into_iter()
    .map(Bytes::from)
    .collect()
}
