//! How much work a plan is estimated to make for subgraphs: what the profile `least-load` minimises.
//!
//! A request costs as much as a hundred entities, an entity as much as twenty fields; a list counts as ten objects.
//! (planner.md d5; until there are measurements these are guesses, so a plan never rests on more than their sum.)

use ogive_base::{FastMap, FastSet};

use crate::{
    PlanError, PlanOptions, Profile,
    assign::{Schedule, Via, assign},
    search::search_all,
    tree::{PlaceId, Tree},
};

const FIELD: u64 = 1;
const ENTITY: u64 = 20;
const REQUEST: u64 = 2_000;
/// Items of a list.
const LIST_ITEMS: u64 = 10;
/// Most objects of a place.
const OBJECTS_MAX: u64 = 1_000_000;

/// The options with a profile that a search can follow. Plans twice if the profile is [`Profile::LeastLoad`].
pub fn settle(tree: &Tree<'_>, options: &PlanOptions) -> Result<PlanOptions, PlanError> {
    let with = |profile| PlanOptions {
        profile,
        ..options.clone()
    };
    if options.profile != Profile::LeastLoad {
        return Ok(options.clone());
    }
    let load = |options: &PlanOptions| -> Result<u64, PlanError> {
        let mut schedule = Schedule::default();
        for (scope, found) in search_all(tree, options)? {
            assign(tree, &scope, &found, &mut schedule)?;
        }
        Ok(estimate(tree, &schedule))
    };
    let (fast, few) = (with(Profile::CriticalPath), with(Profile::FewestRequests));
    // Of equals the faster.
    Ok(match load(&few)? < load(&fast)? {
        true => few,
        false => fast,
    })
}

/// The load of a schedule. Linear in its size.
pub fn estimate(tree: &Tree<'_>, schedule: &Schedule) -> u64 {
    let mut objects: FastMap<PlaceId, u64> = FastMap::default();
    for (id, place) in tree.places.iter() {
        let n = match place.edge {
            None => 1,
            Some(edge) => {
                let fact = &tree.facts[edge];
                let above = tree.nodes[fact.node].place;
                let lists = u32::from(fact.ty.wrapping.lists());
                // Places come after their parents.
                let above = objects.get(&above).copied().unwrap_or(1);
                above.saturating_mul(LIST_ITEMS.saturating_pow(lists))
            }
        };
        objects.insert(id, n.min(OBJECTS_MAX));
    }
    let at = |place: PlaceId| objects.get(&place).copied().unwrap_or(1);
    let mut requests = FastSet::default();
    let mut load = 0_u64;
    for (_, visit) in schedule.visits.iter().filter(|(_, visit)| visit.live) {
        if requests.insert((visit.scope, visit.wave, visit.subgraph)) {
            load += REQUEST;
        }
        if let Via::Key(_) = visit.via {
            load = load.saturating_add(ENTITY * at(tree.nodes[visit.node].place));
        }
    }
    for fact in tree.facts.ids() {
        if schedule.provider.get(&fact).is_some() {
            let place = tree.nodes[tree.facts[fact].node].place;
            load = load.saturating_add(FIELD * at(place));
        }
    }
    load
}
