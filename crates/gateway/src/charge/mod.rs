//! What an operation is estimated to cost, and whether it may. Comes after [`prepare`](crate::prepare), which has compiled
//! the cost program, and before anything is planned or asked; [`by_plan`] judges once more when the plan is known, and
//! [`OperationCost::settle`] when there is an answer.

mod by_plan;
mod options;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::{bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_cost::{Estimate, report};
use ogive_execute::ExecuteOutput;
use ogive_operation::Variables;
use ogive_plan::OperationKind;
use ogive_telemetry::{Metrics, Telemetry, codes, names::COST_OK};

pub use options::{ChargeOptions, PlanLimits};

pub(crate) use by_plan::charge_plan;

use crate::{
    gateway::Gateway,
    operation::OperationRun,
    prepare::Prepared,
    schema::operation::{PlannedOperation, PreparedOperation},
    schema::state::SchemaState,
    shared::{context::OperationContext, error::RequestError, worker::WorkerState},
};

/// The headers that tell clients what costs what.
const ESTIMATED: HeaderName = HeaderName::from_static("x-cost-estimated");
const ACTUAL: HeaderName = HeaderName::from_static("x-cost-actual");
const MAX: HeaderName = HeaderName::from_static("x-cost-max");

/// What is known of the cost of an operation before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OperationEstimate {
    /// What it is estimated to cost.
    pub(crate) estimated: u64,
    /// The code of what is exceeded, and only measured.
    pub(crate) exceeded: Option<&'static str>,
}

impl Gateway {
    /// Refuses an operation that costs too much, or says what it costs; `None` if nobody asks.
    pub(crate) fn charge(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
    ) -> Result<Option<OperationEstimate>, RequestError> {
        let Some(options) = &run.serving.options.demand_control else {
            return Ok(None);
        };
        let state = &run.serving.state;
        let estimate = charge(options, state, prepared, run.worker, run.context)?;
        self.exceeded(estimate.iter().flat_map(|estimate| &estimate.exceeded));
        Ok(estimate)
    }
    /// The same once it is known how it is planned.
    pub(crate) fn charge_plan(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
        planned: &PlannedOperation,
    ) -> Result<(), RequestError> {
        if let Some(options) = &run.serving.options.demand_control {
            let state = &run.serving.state;
            let operation = (prepared, planned);
            let exceeded = charge_plan(options, state, operation, run.worker, run.context)?;
            self.exceeded(exceeded.iter());
        }
        Ok(())
    }
}

/// Refuses an operation that costs too much, or says what it costs; `None` if nobody knows.
pub(crate) fn charge(
    options: &ChargeOptions,
    state: &SchemaState,
    prepared: &Prepared,
    worker: &WorkerState,
    context: &OperationContext<'_>,
) -> Result<Option<OperationEstimate>, RequestError> {
    let Some(program) = &prepared.operation.cost else {
        return Ok(None);
    };
    let supergraph = &state.supergraph;
    let (schema, costs) = (&supergraph.schema, &supergraph.graph.costs);
    let scratch = &mut worker.scratch.borrow_mut();
    let estimate = program.evaluate(schema, costs, &prepared.variables, scratch);
    context.note("charge", || {
        let (cost, max) = (estimate.cost, options.max);
        format!("estimated cost: {cost}, of at most {max}")
    });
    if options.is_exposed {
        let mut headers = HeaderMap::new();
        headers.insert(ESTIMATED, HeaderValue::from(estimate.cost));
        headers.insert(MAX, HeaderValue::from(options.max));
        context.add(headers);
    }
    let exceeded = excess(options, &estimate);
    if let Some(metrics) = metrics(context.telemetry()) {
        metrics.cost_estimated(exceeded.unwrap_or(COST_OK), estimate.cost);
    }
    match exceeded.filter(|_| options.is_enforced) {
        Some(_) => Err(refusal(options, &prepared.operation, &estimate)),
        None => Ok(Some(OperationEstimate {
            estimated: estimate.cost,
            exceeded,
        })),
    }
}

/// What is kept of an operation until it is known what it did cost.
pub(crate) struct OperationCost {
    operation: Arc<PreparedOperation>,
    variables: Variables,
    charged: OperationEstimate,
}

impl OperationCost {
    /// That of an operation, if it is to be counted what it did cost.
    pub(crate) fn open(
        run: &OperationRun<'_>,
        prepared: &Prepared,
        charged: Option<OperationEstimate>,
    ) -> Option<OperationCost> {
        let options = run.serving.options.demand_control.as_ref();
        options.filter(|options| options.counts_actual)?;
        Some(OperationCost {
            operation: Arc::clone(&prepared.operation),
            variables: prepared.variables.clone(),
            charged: charged?,
        })
    }

    /// What an answer did cost: more than it may refuses a query its answer. What a mutation has done is told in any case.
    /// Gives how much more was estimated.
    pub(crate) fn settle(
        cost: Option<Self>,
        run: &OperationRun<'_>,
        output: &ExecuteOutput,
    ) -> Result<u64, RequestError> {
        let (serving, worker, context) = (run.serving, run.worker, run.context);
        let state = &serving.state;
        let (Some(cost), Some(options)) = (cost, &serving.options.demand_control) else {
            return Ok(0);
        };
        let Some(program) = &cost.operation.cost else {
            return Ok(0);
        };
        let supergraph = &state.supergraph;
        let of = (&supergraph.schema, &supergraph.graph.costs);
        let body = output.body.clone().into_bytes();
        let actual = {
            let scratch = &mut worker.scratch.borrow_mut();
            let answer_costs = cost.operation.answer_costs();
            answer_costs.cost(program, of, &cost.variables, scratch, &body)
        };
        if options.is_exposed {
            let mut headers = HeaderMap::new();
            headers.insert(ACTUAL, HeaderValue::from(actual));
            context.add(headers);
        }
        let charged = cost.charged;
        let unused = charged.estimated.saturating_sub(actual);
        let is_new = actual > options.max && charged.exceeded.is_none();
        let new = is_new.then_some(codes::COST_ACTUAL_TOO_EXPENSIVE.as_str());
        let is_query = cost.operation.definition.kind == OperationKind::Query;
        let is_refused = is_new && options.is_enforced && is_query;
        if let Some(metrics) = metrics(context.telemetry()) {
            metrics.cost_actual(charged.exceeded.or(new).unwrap_or(COST_OK), actual, unused);
            if let Some(code) = new.filter(|_| !is_refused) {
                metrics.exceeded(code);
            }
        }
        if !is_refused {
            return Ok(unused);
        }
        let max = options.max;
        let message = format!("the answer costs {actual}, and may cost no more than {max}");
        let error = RequestError::graphql(codes::COST_ACTUAL_TOO_EXPENSIVE, message);
        let numbers = vec![("cost.actual", actual), ("cost.max", max)];
        Err(with_numbers(error, numbers))
    }
}

fn metrics(telemetry: Option<&Telemetry>) -> Option<&Metrics> {
    telemetry?.metrics.as_ref()
}

/// The code of what an estimate exceeds.
fn excess(options: &ChargeOptions, estimate: &Estimate) -> Option<&'static str> {
    if estimate.unsized_field.is_some() {
        return Some(codes::COST_QUERY_PARSE_FAILURE.as_str());
    }
    (estimate.cost > options.max).then_some(codes::COST_ESTIMATED_TOO_EXPENSIVE.as_str())
}

/// What is told of it.
#[cold]
fn refusal(
    options: &ChargeOptions,
    operation: &PreparedOperation,
    estimate: &Estimate,
) -> RequestError {
    if let Some(field) = estimate.unsized_field {
        let path = report::path(&operation.operation, field);
        let path = bounded(&path, MESSAGE_BYTES_MAX / 2).into_owned();
        return RequestError::graphql(
            codes::COST_QUERY_PARSE_FAILURE,
            format!("the field `{path}` needs exactly one of its slicing arguments"),
        );
    }
    let (cost, max) = (estimate.cost, options.max);
    let message =
        format!("the operation is estimated to cost {cost}, and may cost no more than {max}");
    let error = RequestError::graphql(codes::COST_ESTIMATED_TOO_EXPENSIVE, message);
    with_numbers(error, vec![("cost.estimated", cost), ("cost.max", max)])
}

fn with_numbers(mut error: RequestError, numbers: Vec<(&'static str, u64)>) -> RequestError {
    for error in &mut error.errors {
        error.numbers.clone_from(&numbers);
    }
    error
}
