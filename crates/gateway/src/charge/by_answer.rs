//! What an answer did cost: prices for the executor, which counts while it writes, and what follows from the number.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};
use ogive_cost::OutputProgram;
use ogive_edge::error::RequestError;
use ogive_execute::ExecuteOutput;
use ogive_operation::Variables;
use ogive_plan::{OperationKind, OutputCosts};
use ogive_telemetry::{Telemetry, codes, names::COST_OK};

use crate::{
    charge::{ACTUAL, ChargeOptions, OperationEstimate, metrics, with_numbers},
    prepare::Prepared,
    schema::{
        operation::{PlannedOperation, PreparedOperation},
        plan_costs::PlanOutputCosts,
        state::SchemaState,
    },
    shared::{context::OperationContext, worker::WorkerState},
};

/// What the fields of an answer cost; `None` if nobody asks.
pub(crate) fn output_costs<'p>(
    state: &SchemaState,
    (operation, variables): (&PreparedOperation, &Variables),
    planned: &'p PlannedOperation,
    worker: &WorkerState,
) -> Option<Cow<'p, OutputCosts>> {
    let program = operation.cost.as_deref()?;
    if !program.has_fields() {
        return None;
    }
    let of = (&state.supergraph.schema, &state.supergraph.graph.costs);
    let scratch = &mut worker.scratch.borrow_mut();
    let costs = planned.output_costs.get_or_init(|| {
        let (normal, plan) = (&operation.operation, &planned.plan);
        let output = OutputProgram::compile(of.0, normal, program, plan);
        let fixed = program.variants_are_fixed();
        let fixed = fixed.then(|| output.evaluate(program, of, variables, scratch));
        Box::new(PlanOutputCosts {
            program: output,
            fixed,
        })
    });
    Some(match &costs.fixed {
        Some(fixed) => Cow::Borrowed(fixed),
        None => Cow::Owned(costs.program.evaluate(program, of, variables, scratch)),
    })
}

/// What is kept of an operation until it is known what it did cost.
#[derive(Clone, Copy)]
pub(crate) struct OperationCost {
    charged: OperationEstimate,
    is_query: bool,
    is_exposed: bool,
    /// Most that it may cost, and whether more is refused.
    max: u64,
    is_enforced: bool,
}

impl OperationCost {
    /// That of an operation, if it is to be counted what it did cost.
    pub(crate) fn open(
        options: Option<&ChargeOptions>,
        prepared: &Prepared,
        charged: Option<OperationEstimate>,
    ) -> Option<OperationCost> {
        let options = options.filter(|options| options.counts_actual)?;
        Some(OperationCost {
            charged: charged?,
            is_query: prepared.operation.definition.kind == OperationKind::Query,
            is_exposed: options.is_exposed,
            max: options.max,
            is_enforced: options.is_enforced,
        })
    }

    /// What an answer did cost: more than it may refuses a query its answer. What a mutation has done is told in any case.
    /// Gives how much more was estimated, which is nothing where the answer leaves out what was fetched: what subgraphs were asked
    /// for is paid for.
    pub(crate) fn settle(
        cost: Option<Self>,
        context: &OperationContext<'_>,
        output: &ExecuteOutput,
    ) -> Result<u64, RequestError> {
        let Some((cost, actual)) = cost.zip(output.cost) else {
            return Ok(0);
        };
        if cost.is_exposed {
            let mut headers = HeaderMap::new();
            headers.insert(ACTUAL, HeaderValue::from(actual));
            context.add(headers);
        }
        let is_refused = cost.excess(actual).is_some() && cost.is_enforced && cost.is_query;
        if let Some(hooks) = context.hooks() {
            hooks.note_actual_cost(actual, cost.result(actual));
        }
        let measured = cost.count(context.telemetry(), actual, is_refused);
        if let (Some(code), Some(record)) = (measured, context.record()) {
            record.exceeded(code);
        }
        if !is_refused {
            let is_whole = !output.cost_is_partial && output.errors_total == 0;
            return Ok(if is_whole { cost.unused(actual) } else { 0 });
        }
        let max = cost.max;
        let message = format!("the answer costs {actual}, and may cost no more than {max}");
        let error = RequestError::graphql(codes::COST_ACTUAL_TOO_EXPENSIVE, message);
        let numbers = vec![("cost.actual", actual), ("cost.max", max)];
        Err(with_numbers(error, numbers))
    }

    /// The same of what has left already, in parts or as an event: it is only counted.
    pub(crate) fn settle_sent(self, telemetry: &Telemetry, actual: u64) -> u64 {
        self.count(Some(telemetry), actual, false);
        self.unused(actual)
    }

    fn unused(&self, actual: u64) -> u64 {
        self.charged.estimated.saturating_sub(actual)
    }

    /// A word for what an estimate or an answer exceeds, or that it is neither.
    fn result(&self, actual: u64) -> &'static str {
        let exceeded = self.charged.exceeded.or_else(|| self.excess(actual));
        exceeded.unwrap_or(COST_OK)
    }

    /// The code of what an answer exceeds, unless the estimate does already.
    fn excess(&self, actual: u64) -> Option<&'static str> {
        let is_beyond = actual > self.max && self.charged.exceeded.is_none();
        is_beyond.then_some(codes::COST_ACTUAL_TOO_EXPENSIVE.as_str())
    }

    /// Gives the code of what is exceeded and only measured.
    fn count(
        &self,
        telemetry: Option<&Telemetry>,
        actual: u64,
        is_refused: bool,
    ) -> Option<&'static str> {
        let measured = self.excess(actual).filter(|_| !is_refused);
        if let Some(metrics) = metrics(telemetry) {
            metrics.cost_actual(self.result(actual), actual, self.unused(actual));
            if let Some(code) = measured {
                metrics.exceeded(code);
            }
        }
        measured
    }
}
