//! What a plan costs, kept with it.

use ogive_cost::Program;

/// What one plan costs, as functions of the variables.
#[derive(Debug)]
pub(crate) struct PlanCosts {
    /// Index of the subgraph, what it may cost, and what it does.
    pub(crate) subgraphs: Box<[(u32, u64, Program)]>,
    /// Entities that are looked up.
    pub(crate) entities: Option<Program>,
}
