//! The accounts of an operation that are settled when its answer is complete: its cost, its charges to rates, its usage.

use ogive_execute::incremental::IncrementalOutput;
use ogive_telemetry::Telemetry;

use crate::{
    admit::{operation::TakenRates, rates::Admission},
    charge::OperationCost,
    usage::UsedOperation,
};

/// The accounts of an answer that is not complete yet. Boxed: keeps the common future small.
pub(crate) struct PendingCost {
    pub(crate) cost: Option<OperationCost>,
    pub(crate) taken: TakenRates,
    pub(crate) used: Option<Box<UsedOperation>>,
}

impl PendingCost {
    /// `None` if nothing is counted.
    pub(crate) fn of(
        cost: Option<OperationCost>,
        taken: Option<TakenRates>,
        used: Option<Box<UsedOperation>>,
    ) -> Option<Box<PendingCost>> {
        let is_none = cost.is_none() && taken.is_none() && used.is_none();
        let taken = taken.unwrap_or_default();
        (!is_none).then(|| Box::new(PendingCost { cost, taken, used }))
    }
    /// Settles an answer in parts after its last part was sent.
    pub(crate) fn settle(
        self,
        telemetry: &Telemetry,
        admission: Option<&Admission>,
        output: &IncrementalOutput,
    ) {
        let counted = self.cost.zip(output.cost);
        let unused = counted.map_or(0, |(cost, actual)| cost.settle_sent(telemetry, actual));
        let is_whole = !output.cost_is_partial && output.errors_total == 0;
        let unused = if is_whole { unused } else { 0 };
        if let Some(admission) = admission {
            self.taken.settle(unused, admission);
        }
        UsedOperation::finish(self.used, output.errors_total, unused);
    }
}
