//! The options of `demand_control`: what operations may cost. Apollo Router's words.

use std::num::NonZeroUsize;

use crate::{DemandControlMode, decode::section, scalars::nonzero};

section! {
    /// `demand_control`
    pub struct DemandControlOptions {
        /// Whether it is counted what operations cost, before any subgraph is asked. How that is done: docs/demand-control.md.
        pub enabled: bool = false,
        /// What becomes of operations that cost more than `max`: `measure` only counts them, in
        /// `ogive.limits.exceeded`, `enforce` refuses them with `COST_ESTIMATED_TOO_EXPENSIVE`.
        pub mode: DemandControlMode = DemandControlMode::Measure,
        /// How costs are counted.
        pub strategy: DemandControlStrategyOptions = DemandControlStrategyOptions::default(),
        /// Whether responses say what the operation was estimated to cost and may cost, in `x-cost-estimated` and
        /// `x-cost-max`.
        pub expose_headers: bool = false,
    }

    /// `demand_control.strategy`
    pub struct DemandControlStrategyOptions {
        /// From the operation, its variables, and `@cost` and `@listSize` of the schema.
        pub static_estimated: StaticEstimatedOptions = StaticEstimatedOptions::default(),
    }

    /// `demand_control.strategy.static_estimated`
    pub struct StaticEstimatedOptions {
        /// Items of lists of which neither schema nor operation say the size; default 10.
        pub list_size: NonZeroUsize = nonzero(10),
        /// Most that an operation may cost; default 1000.
        pub max: NonZeroUsize = nonzero(1_000),
    }
}
