//! Stop 4 of 5: execute. Comes from [`plan`](crate::plan), goes to [`respond`](crate::respond).
//!
//! Lends the worker's connections, the client's headers and the deadline to [`ogive_execute::execute`], which does
//! the work unless an equal request is being answered ([`crate::shared::worker`]), and computes the fields that no subgraph
//! answers (introspection).

use std::{
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
};

use http::HeaderMap;
use ogive_edge::{
    error::RequestError,
    measured::{code, note},
};
use ogive_execute::{
    ExecuteOutput, Transport as _,
    incremental::{IncrementalForm, IncrementalOutput, Payload, execute_incrementally},
};
use ogive_limits::Limit;
use ogive_telemetry::{spans, stop_span};
use ogive_transport::{Coalesced, FetchAdmission, Observer, RequestTransport, SharingScope};
use tokio::time::Instant;
use tracing::Instrument;

use crate::{
    admit::{operation::RateSources, rates::Admission, subgraph_rates::FetchRates},
    charge::OperationCost,
    execution::{BoundOperation, Execution, hook},
    options::GatewayOptions,
    pending_cost::PendingCost,
    prepare::Prepared,
    schema::{feedback::Timed, operation::PlannedOperation, state::SchemaState},
    shared::{
        context::OperationContext,
        cost_transport::sender,
        shared_state::SharedState,
        stage::Stage,
        stage_observer::StageObserver,
        worker::{Executed, OperationKey, WorkerState},
    },
    usage::UsedOperation,
};

/// Runs the plan of an operation, and settles what it did cost.
#[derive(Debug)]
pub(crate) struct Execute {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) options: Arc<GatewayOptions>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) shared: Option<Arc<SharedState>>,
}

impl Stage for Execute {
    const NAME: &'static str = "execute";
    const DOES: &'static str =
        "ask the subgraphs, hide what the caller may not see, write the answer";
}

impl Execute {
    pub(crate) async fn run(
        &self,
        context: &OperationContext<'_>,
        worker: &WorkerState,
        (prepared, planned): (Prepared, &PlannedOperation),
        pending: Option<Box<PendingCost>>,
    ) -> Result<ExecuteOutput, RequestError> {
        let has_rates = self.options.subgraph_rates.is_some();
        let operation = has_rates.then(|| Arc::clone(&prepared.operation));
        let sources = RateSources {
            admission: &self.admission,
            shared: self.shared.as_deref(),
        };
        let rates = operation
            .as_ref()
            .and_then(|operation| FetchRates::of(sources, &self.options, context, operation));
        let rates = rates.map(Box::new);
        let admission = rates.as_deref().map(|rates| rates as &dyn FetchAdmission);
        let means = (worker, admission);
        let output = pin!(execute(&self.state, prepared, planned, context, means))
            .instrument(stop_span!(spans::EXECUTE))
            .await;
        context.count_exceeded(context.exceeded().iter());
        let output = output?;
        if let Some(pending) = pending {
            let unused = OperationCost::settle(pending.cost, context, &output)?;
            let unused = pending.taken.settle(unused, &self.admission);
            UsedOperation::finish(pending.used, output.errors, unused);
        }
        Ok(output)
    }
}

/// Runs a plan. Fails only if introspection alone would fill a whole response, or if files cannot be passed on and no
/// subgraph has answered anything; everything that goes wrong with a subgraph is part of the output.
async fn execute(
    state: &SchemaState,
    prepared: Prepared,
    planned: &PlannedOperation,
    context: &OperationContext<'_>,
    (worker, admission): (&WorkerState, Option<&dyn FetchAdmission>),
) -> Result<ExecuteOutput, RequestError> {
    let watch = context.observer().and_then(StageObserver::requests);
    let trace = context.observer().is_some_and(StageObserver::wants_fetches);
    let timed = Timed::new(&state.feedback, watch);
    let observer = if state.feedback.is_on() {
        Some(&timed as &dyn Observer)
    } else {
        watch
    };
    let held = held(&prepared);
    let bound = BoundOperation::new(state, prepared, planned, context, worker)?;
    let execution = Execution::new(state, &bound.operation, context, worker);
    let transport = execution.transport(observer, admission, held);
    let deadline = execution.deadline;
    let (variables, uploads) = (&bound.variables, context.uploads());
    if let Some(entry) = uploads {
        entry.plan(&planned.plan, variables);
    }
    let input = bound.input(state, trace, planned.prefetch.try_it());
    // The same for all clients.
    let asked = (std::ptr::from_ref(&*planned.plan) as usize, variables);
    let is_shared =
        state.options.share_operations && !trace && uploads.is_none() && hook(context).is_none();
    let key = (is_shared && !worker.personal.knows(asked))
        .then(|| OperationKey::new(&planned.plan, &input, &transport))
        .flatten();
    let by_caller = depends_on_caller(state, planned, context);
    let limited = context.limited(&transport);
    let sender = sender(&limited, &transport);
    let run = || async {
        let output = pin!(ogive_execute::execute(&planned.plan, input, sender)).await;
        // The response shares memory with the answers, not with the objects.
        transport.holds(0);
        planned.prefetch.learn(&output.stats);
        let scope = sharing_scope(&output, &transport, deadline);
        if is_shared && scope == SharingScope::Personal {
            worker.personal.note(asked);
        }
        let (headers, headers_of_others) = transport.response_headers(output.errors > 0, by_caller);
        Executed {
            output,
            headers,
            headers_of_others,
            scope,
        }
    };
    let executed = match key {
        Some(key) => {
            let lead = || -> Pin<Box<dyn Future<Output = Executed> + '_>> { Box::pin(run()) };
            let operations = &worker.operations;
            let shared = operations.join_until(deadline, Rc::new(key), lead, |e| e.scope);
            match Box::pin(shared).await {
                Coalesced::Led(executed) => executed,
                Coalesced::Joined(executed) => of_another(executed),
                // In the latter case it says what did not come in time, and asks nobody.
                Coalesced::Alone | Coalesced::TooLate => pin!(run()).await,
            }
        }
        None => pin!(run()).await,
    };
    note_exceeded(state, context, &transport);
    answered(executed, context)
}

/// What was executed, unless files were refused.
fn answered(
    executed: Executed,
    context: &OperationContext<'_>,
) -> Result<ExecuteOutput, RequestError> {
    let output = executed.output;
    context.add(executed.headers);
    let uploads = context.uploads();
    let refused = uploads.and_then(|entry| entry.uploads.refused());
    match refused.filter(|_| output.errors > 0) {
        Some(error) => Err(error),
        None => Ok(output),
    }
}

/// Runs a plan in parts, which are handed to `send`, the first with the headers that subgraphs' answers add to the response.
/// Fails as [`execute`] does, before the first part.
pub(crate) async fn execute_in_parts(
    state: &SchemaState,
    prepared: Prepared,
    planned: &PlannedOperation,
    context: &OperationContext<'_>,
    (worker, admission): (&WorkerState, Option<&dyn FetchAdmission>),
    form: IncrementalForm,
    mut send: impl AsyncFnMut(Payload, Option<HeaderMap>) -> bool,
) -> Result<IncrementalOutput, RequestError> {
    let traces = context.observer().is_some_and(StageObserver::wants_fetches);
    let held = held(&prepared);
    let bound = BoundOperation::new(state, prepared, planned, context, worker)?;
    let execution = Execution::new(state, &bound.operation, context, worker);
    let transport = execution.transport(None, admission, held);
    let input = bound.input(state, traces, planned.prefetch.try_it());
    let by_caller = depends_on_caller(state, planned, context);
    let send = async |payload: Payload| {
        let headers = payload.initial.as_ref().map(|initial| {
            let has_errors = initial.errors.is_some();
            transport.response_headers(has_errors, by_caller).0
        });
        send(payload, headers).await
    };
    let limited = context.limited(&transport);
    let sender = sender(&limited, &transport);
    let output = execute_incrementally(&planned.plan, input, form, sender, send).await;
    transport.holds(0);
    planned.prefetch.learn(&output.stats);
    Ok(output)
}

/// Bytes of the variables.
fn held(prepared: &Prepared) -> usize {
    let values = prepared.variables.values.iter().flatten();
    values.map(|value| value.len()).sum()
}

/// Whether the answer depends on who asks.
fn depends_on_caller(
    state: &SchemaState,
    planned: &PlannedOperation,
    context: &OperationContext<'_>,
) -> bool {
    !planned.plan.requirements.is_empty()
        || context.view().is_some()
        || state.options.authorization.needs_caller_of(&planned.plan)
        // What it changes may be of the caller.
        || context.hooks().is_some()
}

/// Whom a response is for: others who ask for the same may have more time than whoever asked.
fn sharing_scope(
    output: &ExecuteOutput,
    transport: &RequestTransport<'_>,
    deadline: Instant,
) -> SharingScope {
    let was_late = output.errors > 0 && Instant::now() >= deadline;
    let is_own = was_late || transport.is_limited();
    match (transport.is_personal(), is_own) {
        (true, _) => SharingScope::Personal,
        (false, true) => SharingScope::OwnAffair,
        (false, false) => SharingScope::Everybody,
    }
}

/// What somebody else has executed, with the headers that are not theirs alone.
fn of_another(mut executed: Executed) -> Executed {
    if let Some(headers) = executed.headers_of_others.take() {
        executed.headers = headers;
    }
    executed
}

/// Notes limits of the execution that are exceeded and only measured.
fn note_exceeded(
    state: &SchemaState,
    context: &OperationContext<'_>,
    transport: &RequestTransport<'_>,
) {
    let mut exceeded = context.exceeded();
    let held = transport.held_most();
    note(&state.options.request_memory, &held, &mut exceeded);
    if transport.had_large_answer() {
        exceeded.push(code(Limit::Response));
    }
}
