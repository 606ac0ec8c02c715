//! What every execution has, whether its answer leaves whole, in parts ([`crate::execute`]) or as an event of a
//! subscription ([`crate::subscribe::run`]): a planned operation with the values of one request ([`BoundOperation`]), and
//! the subgraphs as that operation may ask them ([`Execution`]).

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use ogive_edge::error::RequestError;
use ogive_execute::{ExecuteInput, ExecuteOptions, OperationNames};
use ogive_operation::answer_locals;
use ogive_plan::{Granted, OutputCosts};
use ogive_schema::{Schema, introspection::OUTPUT_BYTES_MAX};
use ogive_telemetry::codes;
use ogive_transport::{FetchAdmission, FetchHook, Files, Observer, Reporter, RequestTransport};
use tokio::time::Instant;

use crate::{
    charge::output_costs,
    prepare::Prepared,
    schema::{
        operation::{PlannedOperation, PreparedOperation},
        state::SchemaState,
    },
    shared::{
        context::OperationContext, failures::Telling, operation_values::OperationCaller,
        worker::WorkerState,
    },
};

/// A planned operation with the values of one request.
pub(crate) struct BoundOperation<'p> {
    pub(crate) operation: Arc<PreparedOperation>,
    /// Values of the plan's variables. The plan has others than the client: literals have become variables.
    pub(crate) variables: Vec<Option<Box<str>>>,
    /// What the caller may see.
    pub(crate) granted: Granted,
    /// Values of the introspection fields, in the order in which the plan numbers them.
    pub(crate) locals: Vec<Bytes>,
    /// What the fields of the answer cost; `None` if answers are not charged.
    costs: Option<Cow<'p, OutputCosts>>,
}

impl<'p> BoundOperation<'p> {
    /// Binds a plan to what one request asks and its caller may see. Fails if introspection alone would fill a whole
    /// response, or if an operation is rejected that asks for what its caller may not see.
    pub(crate) fn new(
        state: &SchemaState,
        prepared: Prepared,
        planned: &'p PlannedOperation,
        context: &OperationContext<'_>,
        worker: &WorkerState,
    ) -> Result<Self, RequestError> {
        let mut bound = Self::ungranted(state, prepared, planned, context.view(), worker)?;
        let authorization = &state.options.authorization;
        bound.granted = authorization.granted(&planned.plan, &bound.variables, context.claims())?;
        Ok(bound)
    }
    /// Binds a plan for a caller who may see nothing that is restricted.
    pub(crate) fn ungranted(
        state: &SchemaState,
        prepared: Prepared,
        planned: &'p PlannedOperation,
        view: Option<&Schema>,
        worker: &WorkerState,
    ) -> Result<Self, RequestError> {
        let locals = locals(state, view, &prepared, planned)?;
        let costs = (&*prepared.operation, &prepared.variables);
        let costs = output_costs(state, costs, planned, worker);
        Ok(BoundOperation {
            variables: planned.binding.apply(prepared.variables.values),
            operation: prepared.operation,
            granted: Granted::default(),
            locals,
            costs,
        })
    }
    /// Keeps it for longer than its plan is borrowed.
    pub(crate) fn into_owned(self) -> BoundOperation<'static> {
        BoundOperation {
            operation: self.operation,
            variables: self.variables,
            granted: self.granted,
            locals: self.locals,
            costs: self.costs.map(|costs| Cow::Owned(costs.into_owned())),
        }
    }
    /// What the executor needs besides the plan. `traces`: whether it gives the fetches with their bodies.
    pub(crate) fn input<'a>(
        &'a self,
        state: &'a SchemaState,
        traces: bool,
        prefetches: bool,
    ) -> ExecuteInput<'a> {
        ExecuteInput {
            variables: &self.variables,
            granted: &self.granted,
            locals: &self.locals,
            limits: state.options.execute,
            options: ExecuteOptions {
                trace: traces,
                prefetch: prefetches,
                ..state.options.tell
            },
            error_extensions: &state.options.error_extensions,
            operation_names: self.names(state),
            costs: self.costs.as_deref(),
        }
    }
    /// What subgraphs are told of the name of the operation.
    pub(crate) fn names<'a>(&'a self, state: &'a SchemaState) -> Option<OperationNames<'a>> {
        let subgraphs = state.options.named_subgraphs.as_ref()?;
        Some(OperationNames::new(self.operation.name()?, subgraphs))
    }
}

/// One operation while it asks subgraphs.
pub(crate) struct Execution<'a> {
    state: &'a SchemaState,
    context: &'a OperationContext<'a>,
    worker: &'a WorkerState,
    caller: OperationCaller<'a>,
    reporter: Option<Telling<'a>>,
    /// When it ends, whatever has not answered.
    pub(crate) deadline: Instant,
}

impl<'a> Execution<'a> {
    /// Begins an execution; its time runs from now on.
    pub(crate) fn new(
        state: &'a SchemaState,
        operation: &'a PreparedOperation,
        context: &'a OperationContext<'a>,
        worker: &'a WorkerState,
    ) -> Self {
        let uploads = context.uploads();
        let time = uploads.map_or(state.options.request_timeout, |entry| entry.time());
        Execution {
            state,
            context,
            worker,
            caller: OperationCaller::new(context, operation),
            reporter: context.telemetry().map(|telemetry| Telling {
                telemetry,
                observer: context.observer(),
                operation: operation.name(),
            }),
            deadline: Instant::now() + time,
        }
    }
    /// The subgraphs as this operation may ask them. `held`: bytes that it holds already, of those that it may.
    pub(crate) fn transport(
        &'a self,
        observer: Option<&'a dyn Observer>,
        admission: Option<&'a dyn FetchAdmission>,
        held: usize,
    ) -> RequestTransport<'a> {
        let (state, context) = (self.state, self.context);
        let (client, headers) = (&self.worker.client, context.headers_to_send());
        let files = context.uploads().map(|entry| entry.uploads as &dyn Files);
        let reporter = self.reporter.as_ref();
        RequestTransport::new(client, &state.endpoints, headers, Some(self.deadline))
            .asked_by(Some(&self.caller))
            .rewritten_by(state.options.error_rules())
            .hooked_by(hook(context))
            .admitted_by(admission)
            .kept_in(state.cache())
            .observed_by(observer)
            .within(state.options.request_memory.ceiling)
            .counted_in(context.memory(), held)
            .with_files(files)
            .reporting_to(reporter.map(|reporter| reporter as &dyn Reporter))
    }
}

/// What looks at requests to subgraphs.
pub(crate) fn hook<'a>(context: &OperationContext<'a>) -> Option<&'a dyn FetchHook> {
    let told = context.hooks()?;
    let looks = told.run.looks_at_fetches();
    looks.then_some(told as &dyn FetchHook)
}

fn locals(
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
