//! What a plan costs, kept with it.

use ogive_cost::{OutputProgram, Program};
use ogive_plan::OutputCosts;

/// What one plan costs, as functions of the variables.
#[derive(Debug)]
pub(crate) struct PlanCosts {
    /// Index of the subgraph, what it may cost, and what it does.
    pub(crate) subgraphs: Box<[(u32, u64, Program)]>,
    /// Entities that are looked up.
    pub(crate) entities: Option<Program>,
}

/// What the answers to an operation cost, at the places of its plan.
#[derive(Debug)]
pub(crate) struct PlanOutputCosts {
    pub(crate) program: OutputProgram,
    /// The same for all variables, if it does not depend on them.
    pub(crate) fixed: Option<OutputCosts>,
}
