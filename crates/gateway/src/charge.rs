//! What an operation is estimated to cost, and whether it may. Comes after [`prepare`](crate::prepare), which has compiled
//! the cost program, and before anything is planned or asked.

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::{bounded, foreign::MESSAGE_BYTES_MAX};
use ogive_config::{Config, DemandControlMode};
use ogive_cost::{Estimate, report};
use ogive_telemetry::codes;

use crate::{
    prepare::Prepared,
    schema::state::SchemaState,
    shared::{context::OperationContext, error::RequestError, worker::WorkerState},
};

/// The headers that tell clients what costs what.
const ESTIMATED: HeaderName = HeaderName::from_static("x-cost-estimated");
const MAX: HeaderName = HeaderName::from_static("x-cost-max");

/// What operations may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChargeOptions {
    /// Most that an operation may cost.
    pub max: u64,
    /// Whether those that cost more are refused.
    pub is_enforced: bool,
    /// Whether responses say what is estimated.
    pub is_exposed: bool,
}

impl ChargeOptions {
    /// The options that a configuration asks for; `None` if nothing is estimated.
    pub fn new(config: &Config) -> Option<Self> {
        let control = &config.demand_control;
        control.enabled.then(|| ChargeOptions {
            max: control.strategy.static_estimated.max.get() as u64,
            is_enforced: control.mode == DemandControlMode::Enforce,
            is_exposed: control.expose_headers,
        })
    }
}

/// Refuses an operation that costs too much, or gives the code of what is only measured.
pub(crate) fn charge(
    options: &ChargeOptions,
    state: &SchemaState,
    prepared: &Prepared,
    worker: &WorkerState,
    context: &OperationContext<'_>,
) -> Result<Option<&'static str>, RequestError> {
    let Some(program) = &prepared.operation.cost else {
        return Ok(None);
    };
    let supergraph = &state.supergraph;
    let (schema, costs) = (&supergraph.schema, &supergraph.graph.costs);
    let scratch = &mut worker.scratch.borrow_mut();
    let estimate = program.evaluate(schema, costs, &prepared.variables, scratch);
    if options.is_exposed {
        let mut headers = HeaderMap::new();
        headers.insert(ESTIMATED, HeaderValue::from(estimate.cost));
        headers.insert(MAX, HeaderValue::from(options.max));
        context.add(headers);
    }
    match excess(options, prepared, &estimate) {
        None => Ok(None),
        Some(error) if options.is_enforced => Err(error),
        Some(error) => Ok(error.errors.first().map(|error| error.code)),
    }
}

fn excess(
    options: &ChargeOptions,
    prepared: &Prepared,
    estimate: &Estimate,
) -> Option<RequestError> {
    if let Some(field) = estimate.unsized_field {
        let path = report::path(&prepared.operation.operation, field);
        let path = bounded(&path, MESSAGE_BYTES_MAX / 2).into_owned();
        return Some(RequestError::graphql(
            codes::COST_QUERY_PARSE_FAILURE,
            format!("the field `{path}` needs exactly one of its slicing arguments"),
        ));
    }
    if estimate.cost <= options.max {
        return None;
    }
    let (cost, max) = (estimate.cost, options.max);
    let message =
        format!("the operation is estimated to cost {cost}, and may cost no more than {max}");
    let mut error = RequestError::graphql(codes::COST_ESTIMATED_TOO_EXPENSIVE, message);
    for error in &mut error.errors {
        error.numbers = vec![("cost.estimated", cost), ("cost.max", max)];
    }
    Some(error)
}
