//! The options of `demand_control`: what operations may cost. Apollo Router's words.

use std::{collections::BTreeMap, num::NonZeroUsize};

use crate::{ActualCostMode, DemandControlMode, decode::section, scalars::nonzero};

section! {
    /// `demand_control`
    pub struct DemandControlOptions {
        /// Whether it is counted what operations cost, before any subgraph is asked. How that is done: docs/demand-control.md.
        pub enabled: bool = false,
        /// What becomes of operations that cost more than `max`: `measure` only counts them, in
        /// `ogive.limits.exceeded`, `enforce` refuses them with `COST_ESTIMATED_TOO_EXPENSIVE`. Default `measure`, which a
        /// warning says at the start.
        pub mode: Option<DemandControlMode> = None,
        /// How costs are counted.
        pub strategy: DemandControlStrategyOptions = DemandControlStrategyOptions::default(),
        /// Whether responses say what the operation was estimated to cost and may cost, in `x-cost-estimated` and
        /// `x-cost-max`, and what it did cost, if that is counted, in `x-cost-actual`.
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
        /// How it is counted what an operation did cost, once it is answered: `by_response_shape` from the lists of the
        /// answer. Whoever did cost more than `max` is refused the answer, unless it is a mutation's. Default not at all.
        pub actual_cost_mode: Option<ActualCostMode> = None,
        /// Most requests to subgraphs that an operation may take, by its plan; default no limit.
        pub max_subgraph_requests: Option<NonZeroUsize> = None,
        /// Most entities that an operation may look up in subgraphs, as far as the sizes of lists tell; default no limit.
        pub max_entities: Option<NonZeroUsize> = None,
        /// What an operation may ask of one subgraph.
        pub subgraph: SubgraphCostsOptions = SubgraphCostsOptions::default(),
    }

    /// `demand_control.strategy.static_estimated.subgraph`
    pub struct SubgraphCostsOptions {
        /// Every subgraph.
        pub all: SubgraphCostOptions = SubgraphCostOptions::default(),
        /// By subgraph name; what is not set here is taken from `all`.
        pub subgraphs: BTreeMap<String, SubgraphCostOptions> = BTreeMap::new(),
    }

    /// `demand_control.strategy.static_estimated.subgraph.all` and
    /// `demand_control.strategy.static_estimated.subgraph.subgraphs.<name>`
    pub struct SubgraphCostOptions {
        /// Most that what an operation asks of the subgraph may cost; beyond it the subgraph is not asked, and its fields
        /// are null with `SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE`. Default no limit.
        pub max: Option<NonZeroUsize> = None,
        /// Items of lists of unknown size in what the subgraph answers; default that of the operation.
        pub list_size: Option<NonZeroUsize> = None,
    }
}

impl DemandControlOptions {
    /// Whether operations that cost too much are refused.
    pub fn is_enforced(&self) -> bool {
        self.enabled && self.mode == Some(DemandControlMode::Enforce)
    }
}
