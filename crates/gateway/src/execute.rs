//! Stop 4 of 5: execute. Comes from [`plan`](crate::plan), goes to [`respond`](crate::respond).
//!
//! Lends the worker's connections, the client's headers and the deadline to [`ogive_execute::execute`], which does
//! the work unless an equal request is being answered ([`crate::shared::worker`]), and computes the fields that no subgraph
//! answers (introspection).

use std::{
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
};

use bytes::Bytes;
use http::HeaderMap;
use ogive_config::Limit;
use ogive_execute::Transport as _;
use ogive_execute::incremental::{
    IncrementalForm, IncrementalOutput, Payload, execute_incrementally,
};
use ogive_execute::{ExecuteInput, ExecuteOptions, ExecuteOutput, OperationNames};
use ogive_operation::answer_locals;
use ogive_schema::{Schema, introspection::OUTPUT_BYTES_MAX};
use ogive_telemetry::codes;
use ogive_transport::{
    Coalesced, FetchAdmission, FetchHook, Files, Observer, Reporter, RequestTransport, SharingScope,
};
use tokio::time::Instant;

use crate::{
    authorize::EnforceOptions,
    charge::output_costs,
    prepare::Prepared,
    schema::feedback::Timed,
    schema::operation::{PlannedOperation, PreparedOperation},
    schema::state::SchemaState,
    shared::context::OperationContext,
    shared::cost_transport::sender,
    shared::error::RequestError,
    shared::failures::Telling,
    shared::measured::{code, note},
    shared::operation_values::OperationCaller,
    shared::stage_observer::StageObserver,
    shared::worker::{Executed, OperationKey, WorkerState},
};

/// Runs a plan. Fails only if introspection alone would fill a whole response, or if files cannot be passed on and no
/// subgraph has answered anything; everything that goes wrong with a subgraph is part of the output.
pub async fn execute(
    state: &SchemaState,
    prepared: Prepared,
    planned: &PlannedOperation,
    context: &OperationContext<'_>,
    (worker, admission): (&WorkerState, Option<&dyn FetchAdmission>),
) -> Result<ExecuteOutput, RequestError> {
    let uploads = context.uploads();
    let time = uploads.map_or(state.options.request_timeout, |entry| entry.time());
    let deadline = Instant::now() + time;
    let watch = context.observer().and_then(StageObserver::requests);
    let trace = context.observer().is_some_and(StageObserver::wants_fetches);
    let timed = Timed::new(&state.feedback, watch);
    let observer = if state.feedback.is_on() {
        Some(&timed as &dyn Observer)
    } else {
        watch
    };
    let telling = telling(context, &prepared.operation);
    let (client, headers) = (&worker.client, context.headers_to_send());
    let caller = OperationCaller::new(context, &prepared.operation);
    let transport = RequestTransport::new(client, &state.endpoints, headers, Some(deadline))
        .asked_by(Some(&caller))
        .rewritten_by(state.options.error_rules())
        .hooked_by(hook(context))
        .admitted_by(admission)
        .observed_by(observer)
        .within(state.options.request_memory.ceiling)
        .counted_in(context.memory(), held(&prepared))
        .with_files(uploads.map(|entry| entry.uploads as &dyn Files))
        .reporting_to(telling.as_ref().map(|telling| telling as &dyn Reporter));
    let locals = locals(state, context.view(), &prepared, planned)?;
    let costs = (&*prepared.operation, &prepared.variables);
    let costs = output_costs(state, costs, planned, worker);
    // The plan's variables are not the client's: literals have become variables.
    let variables = planned.binding.apply(prepared.variables.values);
    let authorization = &state.options.authorization;
    let granted = authorization.granted(&planned.plan, &variables, context.claims())?;
    if let Some(entry) = uploads {
        entry.plan(&planned.plan, &variables);
    }
    let input = ExecuteInput {
        variables: &variables,
        granted: &granted,
        locals: &locals,
        limits: state.options.execute,
        options: ExecuteOptions {
            trace,
            prefetch: planned.prefetch.try_it(),
            ..state.options.tell
        },
        error_extensions: &state.options.error_extensions,
        operation_names: operation_names(state, &prepared.operation),
        costs: costs.as_deref(),
    };
    // The same for all clients.
    let asked = (std::ptr::from_ref(&*planned.plan) as usize, &variables);
    let is_shared =
        state.options.share_operations && !trace && uploads.is_none() && hook(context).is_none();
    let key = (is_shared && !worker.personal.knows(asked))
        .then(|| OperationKey::new(&planned.plan, &input, &transport))
        .flatten();
    let by_caller = depends_on_caller(planned, context, authorization);
    let limited = context.limited(&transport);
    let sender = sender(&limited, &transport);
    let execution = || async {
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
            let lead = || -> Pin<Box<dyn Future<Output = Executed> + '_>> { Box::pin(execution()) };
            let operations = &worker.operations;
            let shared = operations.join_until(deadline, Rc::new(key), lead, |e| e.scope);
            match Box::pin(shared).await {
                Coalesced::Led(executed) => executed,
                Coalesced::Joined(executed) => of_another(executed),
                // In the latter case it says what did not come in time, and asks nobody.
                Coalesced::Alone | Coalesced::TooLate => pin!(execution()).await,
            }
        }
        None => pin!(execution()).await,
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
    let deadline = Instant::now() + state.options.request_timeout;
    let telling = telling(context, &prepared.operation);
    let held = held(&prepared);
    let caller = OperationCaller::new(context, &prepared.operation);
    let transport = RequestTransport::new(
        &worker.client,
        &state.endpoints,
        context.headers_to_send(),
        Some(deadline),
    )
    .asked_by(Some(&caller))
    .rewritten_by(state.options.error_rules())
    .hooked_by(hook(context))
    .admitted_by(admission)
    .within(state.options.request_memory.ceiling)
    .counted_in(context.memory(), held)
    .reporting_to(telling.as_ref().map(|telling| telling as &dyn Reporter));
    let locals = locals(state, context.view(), &prepared, planned)?;
    let costs = (&*prepared.operation, &prepared.variables);
    let costs = output_costs(state, costs, planned, worker);
    let variables = planned.binding.apply(prepared.variables.values);
    let authorization = &state.options.authorization;
    let granted = authorization.granted(&planned.plan, &variables, context.claims())?;
    let input = ExecuteInput {
        variables: &variables,
        granted: &granted,
        locals: &locals,
        limits: state.options.execute,
        options: ExecuteOptions {
            trace: context.observer().is_some_and(StageObserver::wants_fetches),
            prefetch: planned.prefetch.try_it(),
            ..state.options.tell
        },
        error_extensions: &state.options.error_extensions,
        operation_names: operation_names(state, &prepared.operation),
        costs: costs.as_deref(),
    };
    let by_caller = depends_on_caller(planned, context, authorization);
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

/// What subgraphs are told of the name of an operation.
pub(crate) fn operation_names<'a>(
    state: &'a SchemaState,
    operation: &'a PreparedOperation,
) -> Option<OperationNames<'a>> {
    let subgraphs = state.options.named_subgraphs.as_ref()?;
    let name = operation.document.name(operation.definition.name?);
    Some(OperationNames::new(name, subgraphs))
}

/// Whether the answer depends on who asks.
fn depends_on_caller(
    planned: &PlannedOperation,
    context: &OperationContext<'_>,
    authorization: &EnforceOptions,
) -> bool {
    !planned.plan.requirements.is_empty()
        || context.view().is_some()
        || authorization.needs_caller_of(&planned.plan)
        // What it changes may be of the caller.
        || context.coprocessor().is_some()
}

/// Who looks at requests to subgraphs.
fn hook<'a>(context: &OperationContext<'a>) -> Option<&'a dyn FetchHook> {
    let told = context.coprocessor()?;
    let looks = told.run.looks_at_fetches();
    looks.then_some(told as &dyn FetchHook)
}

/// Who tells operators what goes wrong.
fn telling<'a>(
    context: &OperationContext<'a>,
    operation: &'a PreparedOperation,
) -> Option<Telling<'a>> {
    let telemetry = context.telemetry()?;
    Some(Telling {
        telemetry,
        observer: context.observer(),
        operation: operation.name(),
    })
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

/// The values of introspection fields, in the order in which the plan numbers them.
pub(crate) fn locals(
    state: &SchemaState,
    view: Option<&Schema>,
    prepared: &Prepared,
    planned: &PlannedOperation,
) -> Result<Vec<Bytes>, RequestError> {
    if planned.plan.locals == 0 {
        return Ok(Vec::new());
    }
    let answers = answer_locals(
        view.unwrap_or(&state.supergraph.api),
        &prepared.operation.operation,
        &prepared.variables,
        // The limit is for all of them together.
        OUTPUT_BYTES_MAX / planned.plan.locals as usize,
    );
    let answers = answers.map_err(|error| {
        RequestError::graphql(codes::EXECUTION_LIMIT_EXCEEDED, error.to_string())
    })?;
    Ok(answers.into_iter().map(Bytes::from).collect())
}
