//! What operations may cost, as a configuration asks for it.

use std::collections::BTreeMap;

use ogive_config::{Config, SubgraphCostOptions};

/// What operations may cost.
#[derive(Clone, PartialEq, Debug)]
pub struct ChargeOptions {
    /// Most that an operation may cost.
    pub max: u64,
    /// Whether those that cost more are refused.
    pub is_enforced: bool,
    /// Whether responses say what is estimated.
    pub is_exposed: bool,
    /// Whether it is counted what operations did cost.
    pub counts_actual: bool,
    /// What is limited by the plan; `None` if nothing is.
    pub plan: Option<Box<PlanLimits>>,
}

/// What the plan of an operation may cost.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanLimits {
    /// Most requests to subgraphs.
    pub requests: Option<u64>,
    /// Most entities that are looked up.
    pub entities: Option<u64>,
    /// Items of lists of unknown size.
    pub list_size: u32,
    all: SubgraphCostOptions,
    subgraphs: BTreeMap<String, SubgraphCostOptions>,
}

impl ChargeOptions {
    /// The options that a configuration asks for; `None` if nothing is estimated.
    pub fn new(config: &Config) -> Option<Self> {
        let control = &config.demand_control;
        let strategy = &control.strategy.static_estimated;
        let number = |size: Option<std::num::NonZeroUsize>| size.map(|size| size.get() as u64);
        let limits = PlanLimits {
            requests: number(strategy.max_subgraph_requests),
            entities: number(strategy.max_entities),
            list_size: u32::try_from(strategy.list_size.get()).unwrap_or(u32::MAX),
            all: strategy.subgraph.all.clone(),
            subgraphs: strategy.subgraph.subgraphs.clone(),
        };
        control.enabled.then(|| ChargeOptions {
            max: strategy.max.get() as u64,
            is_enforced: control.is_enforced(),
            is_exposed: control.expose_headers,
            counts_actual: strategy.actual_cost_mode.is_some(),
            plan: limits.limits_anything().then(|| Box::new(limits)),
        })
    }
}

impl PlanLimits {
    fn limits_anything(&self) -> bool {
        let mut subgraphs = self.subgraphs.values();
        self.requests.is_some()
            || self.entities.is_some()
            || self.all.max.is_some()
            || subgraphs.any(|subgraph| subgraph.max.is_some())
    }
    /// Most that what is asked of a subgraph may cost, and the size of its lists of unknown size.
    pub(crate) fn of(&self, subgraph: &str) -> Option<(u64, u32)> {
        let own = self.subgraphs.get(subgraph).unwrap_or(&self.all);
        let max = own.max.or(self.all.max)?;
        let size = own.list_size.or(self.all.list_size);
        let size = size.map(|size| u32::try_from(size.get()).unwrap_or(u32::MAX));
        Some((max.get() as u64, size.unwrap_or(self.list_size)))
    }
}
