//! What an operation is estimated to cost, and whether it may. Comes after [`prepare`](crate::prepare), which has compiled
//! the cost program, and before anything is planned or asked; [`by_plan`] judges once more when the plan is known, and
//! [`OperationCost::settle`] when there is an answer.

mod by_answer;
mod by_plan;
mod options;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::{bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_cost::{Estimate, report};
use ogive_edge::error::RequestError;
use ogive_telemetry::{Metrics, Telemetry, codes, names::COST_OK};

pub use options::{ChargeOptions, PlanLimits};

pub(crate) use by_answer::{OperationCost, output_costs};

use crate::{
    options::GatewayOptions,
    prepare::Prepared,
    schema::{operation::PreparedOperation, state::SchemaState},
    shared::{
        context::OperationContext, stage::Stage, stage_observer::StageEvent, worker::WorkerState,
    },
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

/// Rejects an operation that is estimated to cost too much.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) control: ChargeOptions,
    pub(crate) state: Arc<SchemaState>,
}

impl Stage for Charge {
    const NAME: &'static str = "charge";
    const DOES: &'static str = "estimate what the operation costs, reject one that costs too much";
    const OPTION: Option<&'static str> = Some("demand_control");
}

impl Charge {
    /// Whether requests pass it.
    pub(crate) fn is_on(options: &GatewayOptions) -> bool {
        options.demand_control.is_some()
    }
    /// Gives what the operation is estimated to cost; `None` if it has no cost program.
    pub(crate) fn run(
        &self,
        context: &OperationContext<'_>,
        worker: &WorkerState,
        prepared: &Prepared,
    ) -> Result<Option<OperationEstimate>, RequestError> {
        let (options, supergraph) = (&self.control, &self.state.supergraph);
        let Some(program) = &prepared.operation.cost else {
            return Ok(None);
        };
        let (schema, costs) = (&supergraph.schema, &supergraph.graph.costs);
        let scratch = &mut worker.scratch.borrow_mut();
        let estimate = program.evaluate(schema, costs, &prepared.variables, scratch);
        context.note("charge", || {
            let (cost, max) = (estimate.cost, options.max);
            let told = match excess(options, &estimate) {
                None => "",
                Some(_) if options.is_enforced => ": refused",
                Some(_) => ": too much, which is only measured (`demand_control.mode`)",
            };
            format!("estimated cost: {cost}, of at most {max}{told}")
        });
        if options.is_exposed {
            let mut headers = HeaderMap::new();
            headers.insert(ESTIMATED, HeaderValue::from(estimate.cost));
            headers.insert(MAX, HeaderValue::from(options.max));
            context.add(headers);
        }
        let exceeded = excess(options, &estimate);
        if let Some(hooks) = context.hooks() {
            hooks.note_estimated_cost(estimate.cost, exceeded.unwrap_or(COST_OK));
        }
        if let Some(metrics) = metrics(context.telemetry()) {
            metrics.cost_estimated(exceeded.unwrap_or(COST_OK), estimate.cost);
        }
        if exceeded.is_some() && options.is_enforced {
            return Err(refusal(options, &prepared.operation, &estimate));
        }
        let estimated = estimate.cost;
        context.count_exceeded(&exceeded);
        context.passed(|| StageEvent::Charge(estimated));
        Ok(Some(OperationEstimate {
            estimated,
            exceeded,
        }))
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
