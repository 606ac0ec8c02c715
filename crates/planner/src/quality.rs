//! How good a plan is, and looking for a better one with more fuel.
//!
//! The first plan of an operation has to be there at once, so its search ends when its fuel does. [`refine`] is the same
//! pipeline with fuel for many more orders of deletion and for a proof; a gateway runs it beside the requests.

use std::borrow::Cow;

use ogive_federation::Supergraph;
use ogive_operation::Operation;
use ogive_plan::Plan;

use crate::{
    PlanError, PlanOptions, Profile, assign::Schedule, load, plan_observed, search::Found,
    tree::Tree,
};

/// A plan and how good it is.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// How good it is.
    pub quality: Quality,
}

/// What the search for a plan found out about it; sums over the parts of an operation that run one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    /// Requests that were chosen.
    pub requests: u32,
    /// Waves they are in.
    pub waves: u32,
    /// No plan has fewer requests.
    pub lower_bound: u32,
    /// Whether more fuel would find nothing better.
    pub settled: bool,
    /// Rule firings it took.
    pub firings: u64,
    /// What the profile makes small first and second, of the finished plan. A plan of which it is smaller is better.
    pub cost: (u64, u64),
}

impl Quality {
    /// The quality of an operation of which nothing is planned yet.
    pub const NOTHING: Quality = Quality {
        requests: 0,
        waves: 0,
        lower_bound: 0,
        settled: true,
        firings: 0,
        cost: (0, 0),
    };

    /// Adds a part.
    pub(crate) fn add(&mut self, found: &Found) {
        self.requests += found.requests.count() as u32;
        self.waves += found.requests.waves.len() as u32;
        self.lower_bound += found.lower_bound as u32;
        self.settled &= found.settled;
        self.firings += found.firings;
    }
}

/// What a profile makes small first and second.
pub(crate) fn cost(
    tree: &Tree<'_>,
    schedule: &Schedule,
    plan: &Plan,
    profile: Profile,
) -> (u64, u64) {
    let requests = plan.fetches.len() as u64;
    let waves = plan.fetches.iter().map(|(_, fetch)| fetch.wave).max();
    let waves = u64::from(waves.unwrap_or(0));
    match profile {
        Profile::CriticalPath => (waves, requests),
        Profile::FewestRequests => (requests, waves),
        Profile::LeastLoad => (load::estimate(tree, schedule), waves),
    }
}

/// Searches in vain before a refining search gives up.
const PATIENCE: u32 = 50;

/// How long to look for a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fuel {
    /// Until the fuel of the options is spent.
    OfOptions,
    /// With about so many rule firings, most of them for a proof that nothing is better; 1,000,000 are about 6 ms.
    Refined(u64),
}

impl Fuel {
    /// The options for one operation.
    pub(crate) fn options<'o>(
        self,
        tree: &Tree<'_>,
        options: &'o PlanOptions,
    ) -> Cow<'o, PlanOptions> {
        let Fuel::Refined(fuel) = self else {
            return Cow::Borrowed(options);
        };
        // Each part has fuel of its own.
        let fuel = fuel / tree.scopes().len().max(1) as u64;
        Cow::Owned(PlanOptions {
            fuel: options.fuel.max(fuel / 4),
            patience: options.patience.max(PATIENCE),
            exact_fuel: options.exact_fuel.max(fuel - fuel / 4),
            ..options.clone()
        })
    }
}

/// Plans with about `fuel` rule firings ([`Fuel::Refined`]).
///
/// The result is as deterministic as that of [`crate::plan`].
pub fn refine(
    supergraph: &Supergraph,
    operation: &Operation,
    options: &PlanOptions,
    fuel: u64,
) -> Result<Planned, PlanError> {
    let fuel = Fuel::Refined(fuel);
    plan_observed(supergraph, operation, options, fuel, &mut ())
}
