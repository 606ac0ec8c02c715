//! Stop 3 of 5: plan. A normalised operation and a supergraph become a [`Plan`].
//!
//! The object to minimise is the *(wave, subgraph) request*: one HTTP request that carries every root field and every
//! entity look-up of one subgraph in one wave. Planning is delete-free (asking for more never makes anything
//! impossible), so whether a set of requests suffices, and when each value is known, is one linear pass.
//!
//! The pipeline is [`plan`]; its passes, in order:
//!
//! 0. [`restrict()`]: what only some callers may see is put under conditions.
//! 1. [`tree`]: every object-valued place, the values wanted there, and the key and `@requires` values that could help.
//! 2. [`closure`]: from a set of requests to what is known when.
//! 3. [`search`]: the fewest requests at the fewest waves that still suffice.
//! 4. [`assign`]: which request brings which value, and by which key each object is entered.
//!    With deferred fragments, [`mod@defer`] then gives requests of their own to what only those need.
//! 5. [`emit`]: requests, shapes, representations and output as one [`Plan`].
//!
//! [`refine`] is the same with more fuel, for when there is time.
//!
//! Pure and deterministic: no clock, no threads; effort is bounded by fuel that counts rule firings.

pub mod assign;
mod classes;
pub mod closure;
pub mod defer;
pub mod describe;
pub mod emit;
pub mod load;
pub mod measured;
mod observe;
mod parts;
mod probe;
pub mod quality;
mod restrict;
pub mod search;
pub mod tree;

use std::sync::Arc;

use ogive_base::BitSet;
use ogive_failure::ErrorCode;
use ogive_federation::Supergraph;
use ogive_operation::Operation;
use ogive_plan::Plan;

pub use measured::Measured;
pub use observe::Observer;
pub use quality::{Fuel, Planned, Quality, refine};
pub use restrict::restrict;

/// The version of the planner. The number after the dash grows whenever plans change in form or in what makes them
/// correct, so that plans made ahead of time by another planner are not used.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-10");

/// Limits and choices of one planning run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Most object-valued places times concrete types; default 50,000.
    pub nodes_max: u32,
    /// Most waves; default 64.
    pub waves_max: u32,
    /// Rule firings up to which the search goes on after its first complete plan; default 60,000, which is about a third
    /// of a millisecond.
    pub fuel: u64,
    /// Searches in vain before the best set of requests so far is good enough; default 6, with which a plan is rarely
    /// more than one request above the best.
    pub patience: u32,
    /// Rule firings that may be spent on proving that there is nothing better, or finding it; default 0: no proof.
    pub exact_fuel: u64,
    /// What to minimise.
    pub profile: Profile,
    /// Override labels that are on, by index into
    /// [`QueryGraph::override_labels`](ogive_federation::QueryGraph::override_labels); default none.
    pub labels: BitSet,
    /// What may share one request, by subgraph; default: everything.
    pub batching: Vec<Batching>,
    /// What was measured; default nothing.
    pub measured: Option<Arc<Measured>>,
}

/// What may share one request to a subgraph (planner.md d6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// Nothing: every place that is looked up makes a request of its own, and so do the root fields.
    Off,
    /// Places that are looked up in the same way.
    Paths,
    /// Everything of one wave, in requests of at most so many look-ups.
    All(u32),
}

impl Default for Batching {
    fn default() -> Self {
        Batching::All(u32::MAX)
    }
}

/// What the search minimises first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Fewest waves, then fewest requests: the shortest answer time.
    #[default]
    CriticalPath,
    /// Fewest requests, then fewest waves.
    FewestRequests,
    /// The least work for subgraphs, as estimated ([`load`]).
    LeastLoad,
}

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions {
            nodes_max: 50_000,
            waves_max: 64,
            fuel: 60_000,
            patience: 6,
            exact_fuel: 0,
            profile: Profile::CriticalPath,
            labels: BitSet::new(),
            batching: Vec::new(),
            measured: None,
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// `QUERY_PLANNING_FAILED` or `QUERY_PLAN_TOO_LARGE`.
    pub code: ErrorCode,
    /// One sentence; names only what clients may see.
    pub message: String,
}

impl PlanError {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        PlanError {
            code: ErrorCode::QUERY_PLANNING_FAILED,
            message: message.into(),
        }
    }
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        PlanError {
            code: ErrorCode::QUERY_PLAN_TOO_LARGE,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for PlanError {}

/// Plans one operation. Polynomial; the same input gives the same plan.
pub fn plan(
    supergraph: &Supergraph,
    operation: &Operation,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    plan_judged(supergraph, operation, options).map(|planned| planned.plan)
}

/// [`plan`], and how good the plan is.
pub fn plan_judged(
    supergraph: &Supergraph,
    operation: &Operation,
    options: &PlanOptions,
) -> Result<Planned, PlanError> {
    plan_observed(supergraph, operation, options, Fuel::OfOptions, &mut ())
}

/// The tree of an operation, and the requests chosen for each scope.
type Searched<'a> = (tree::Tree<'a>, Vec<(tree::Scope, search::Found)>);

/// Grows the tree and searches it. Where something cannot be had and the tree left keys or `@requires` out, it grows a
/// level deeper, until it leaves nothing out or all further trees together have as many nodes as one may have.
fn search_deep<'a>(
    supergraph: &'a Supergraph,
    operation: &'a Operation,
    options: &PlanOptions,
    fuel: Fuel,
    observer: &mut impl Observer,
) -> Result<Searched<'a>, PlanError> {
    let mut tree = tree::grow(supergraph, operation, options)?;
    observer.tree(&tree);
    let search = |tree: &tree::Tree<'_>| load::choose(tree, &fuel.options(tree, options));
    let error = match search(&tree) {
        Ok(scopes) => return Ok((tree, scopes)),
        Err(error) => error,
    };
    let mut rest = options.clone();
    for depth in tree::DEPTH + 1..=u16::MAX {
        if !tree.is_cut || error.code != ErrorCode::QUERY_PLANNING_FAILED {
            break;
        }
        let Ok(deeper) = tree::grow_to(supergraph, operation, &rest, depth) else {
            break;
        };
        rest.nodes_max -= deeper.nodes.len() as u32;
        tree = deeper;
        if let Ok(scopes) = search(&tree) {
            observer.tree(&tree);
            return Ok((tree, scopes));
        }
    }
    Err(error)
}

/// [`plan_judged`] and [`refine`], watched: this is where the passes and their order are.
pub fn plan_observed(
    supergraph: &Supergraph,
    operation: &Operation,
    options: &PlanOptions,
    fuel: Fuel,
    observer: &mut impl Observer,
) -> Result<Planned, PlanError> {
    let operation = &*restrict(supergraph, operation)?;
    let (tree, scopes) = search_deep(supergraph, operation, options, fuel, observer)?;
    let tree = &tree;
    observer.search(tree, &scopes);
    let mut schedule = assign::Schedule::default();
    let mut quality = Quality::NOTHING;
    // What was found is gone before the plan is made.
    for (scope, found) in scopes {
        assign::assign(tree, &scope, &found, &mut schedule)?;
        quality.add(&found);
    }
    let together = (!operation.deferral.fields.is_empty()).then(|| schedule.clone());
    defer::split(tree, &mut schedule);
    observer.assign(tree, &schedule);
    let mut plan = emit::emit(tree, &schedule);
    // Splitting knows few shapes of graphs in which one part rests on another; those are told by the plan.
    if let Some(together) = together
        && ogive_plan::verify(&plan).is_err()
    {
        schedule = together;
        defer::keep_together(tree, &mut schedule);
        observer.assign(tree, &schedule);
        plan = emit::emit(tree, &schedule);
    }
    observer.emit(&plan);
    quality.cost = quality::cost(tree, &schedule, &plan, options.profile);
    Ok(Planned { plan, quality })
}
