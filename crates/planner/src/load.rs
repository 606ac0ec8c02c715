//! How much work a plan is estimated to make for subgraphs: what the profile `least-load` minimises (planner.md d5).
//!
//! A request costs as much as a hundred entities, an entity as much as twenty fields. A list is as long as was measured,
//! else as its `@listSize` says, else ten; `@cost` multiplies a field's share. These are guesses in part, so a plan
//! never rests on more than their sum.
//!
//! [`choose`] begins with the better one of the other profiles' plans. Then it tries every request that they left out:
//! one more request may save a thousand entities.

use ogive_base::{BitSet, FastSet, IdVec};
use ogive_federation::ListSize;
use ogive_operation::ArgValue;
use ogive_schema::{ConstValue, InputId};

use crate::{
    PlanError, PlanOptions, Profile,
    assign::{Schedule, Via, assign},
    closure::{Closure, NEVER, Requests},
    search::{Found, search_all, useful},
    tree::{Fact, FactId, PlaceId, Scope, Tree},
};

const FIELD: u64 = 1;
const ENTITY: u64 = 20;
const REQUEST: u64 = 2_000;
/// Items of a list of which nothing is known.
const LIST_ITEMS: u64 = 10;
/// Most objects of a place.
const OBJECTS_MAX: u64 = 1_000_000;
/// Most sets of requests that are tried for one scope beyond those of the other profiles.
const TRIALS_MAX: usize = 200;

/// Finds the requests of all scopes under any profile. Searches twice if it is [`Profile::LeastLoad`], and tries at most
/// 200 sets more.
pub fn choose(tree: &Tree<'_>, options: &PlanOptions) -> Result<Vec<(Scope, Found)>, PlanError> {
    if options.profile != Profile::LeastLoad {
        return search_all(tree, options);
    }
    let objects = objects(tree);
    let with = |profile| {
        let options = PlanOptions {
            profile,
            ..options.clone()
        };
        search_all(tree, &options)
    };
    let load = |scopes: &[(Scope, Found)]| -> Result<u64, PlanError> {
        let mut schedule = Schedule::default();
        for (scope, found) in scopes {
            assign(tree, scope, found, &mut schedule)?;
        }
        Ok(load_of(tree, &schedule, &objects))
    };
    let (fast, few) = (with(Profile::CriticalPath)?, with(Profile::FewestRequests)?);
    // Of equals the faster.
    let mut scopes = if load(&few)? < load(&fast)? {
        few
    } else {
        fast
    };
    for (scope, found) in &mut scopes {
        improve(tree, scope, found, &objects)?;
    }
    Ok(scopes)
}

/// Adds requests that save more than they cost, and leaves those out that are no longer needed.
fn improve(
    tree: &Tree<'_>,
    scope: &Scope,
    found: &mut Found,
    objects: &Objects,
) -> Result<(), PlanError> {
    let judge = |found: &Found| -> Result<(u64, Requests), PlanError> {
        let mut schedule = Schedule::default();
        assign(tree, scope, found, &mut schedule)?;
        Ok((load_of(tree, &schedule, objects), used(found, &schedule)))
    };
    let mut best = judge(found)?.0;
    let mut closure = Closure::default();
    let waves = found.requests.waves.len();
    let all = useful(tree, scope, waves, &mut closure);
    found.firings += closure.firings;
    if all.count() <= found.requests.count() {
        return Ok(());
    }
    // There may always be a better one.
    (found.proven, found.settled) = (false, false);
    let candidates = all.waves.iter().enumerate();
    let candidates = candidates.flat_map(|(w, set)| set.iter().map(move |s| (w, s)));
    let mut trials = 0;
    for (wave, subgraph) in candidates {
        if trials >= TRIALS_MAX {
            break;
        }
        if found.requests.waves[wave].contains(subgraph) {
            continue;
        }
        let mut more = found.requests.clone();
        more.waves[wave].insert(subgraph);
        trials += 1;
        let mut trial = again(tree, scope, found, more);
        trial.preferred = found.preferred.clone();
        trial.preferred.waves.resize(waves, BitSet::new());
        trial.preferred.waves[wave].insert(subgraph);
        let (load, mut kept) = judge(&trial)?;
        let mut load = load;
        // What the new one brings, another one may no longer have to.
        let others = kept.waves.iter().enumerate();
        let others: Vec<(usize, u32)> = others
            .flat_map(|(w, set)| set.iter().map(move |s| (w, s)))
            .filter(|other| *other != (wave, subgraph))
            .collect();
        for (w, s) in others {
            if trials >= TRIALS_MAX || !kept.waves[wave].contains(subgraph) {
                break;
            }
            let mut less = kept.clone();
            less.waves[w].remove(s);
            trials += 1;
            let next = again(tree, scope, &trial, less);
            let suffices = |f: &FactId| next.closure.known(*f) != NEVER;
            if !next.wanted.iter().all(suffices) {
                trial.firings = next.firings;
                continue;
            }
            let (lighter, still) = judge(&next)?;
            if lighter < load {
                (load, kept, trial) = (lighter, still, next);
            }
        }
        if load < best {
            best = load;
            *found = again(tree, scope, &trial, kept);
        } else {
            found.firings = trial.firings
        }
    }
    Ok(())
}

/// The same search with other requests.
fn again(tree: &Tree<'_>, scope: &Scope, found: &Found, requests: Requests) -> Found {
    let mut closure = Closure::default();
    closure.run(tree, scope, &requests);
    Found {
        requests,
        wanted: found.wanted.clone(),
        lower_bound: found.lower_bound,
        proven: false,
        settled: found.settled,
        preferred: found.preferred.clone(),
        firings: found.firings + closure.firings,
        closure,
    }
}

/// The requests that bring something.
fn used(found: &Found, schedule: &Schedule) -> Requests {
    let mut used = Requests {
        waves: vec![BitSet::new(); found.requests.waves.len()],
    };
    for (_, visit) in schedule.visits.iter().filter(|(_, visit)| visit.live) {
        if let Some(set) = used.waves.get_mut(visit.wave as usize) {
            set.insert(visit.subgraph);
        }
    }
    used
}

/// How many objects every place is estimated to have.
pub type Objects = IdVec<PlaceId, u64>;

/// Estimates the objects of every place. Linear in the tree.
pub fn objects(tree: &Tree<'_>) -> Objects {
    let mut objects = Objects::new();
    for (_, place) in tree.places.iter() {
        let n = match place.edge {
            None => 1,
            Some(edge) => {
                let fact = &tree.facts[edge];
                // Places come after their parents.
                let above = objects.get(tree.nodes[fact.node].place);
                let lists = u32::from(fact.ty.wrapping.lists());
                let items = match lists {
                    0 => 1,
                    lists => items(tree, fact).saturating_pow(lists),
                };
                above.copied().unwrap_or(1).saturating_mul(items)
            }
        };
        objects.push(n.min(OBJECTS_MAX));
    }
    objects
}

/// The length of a list.
fn items(tree: &Tree<'_>, fact: &Fact) -> u64 {
    let (schema, sizes) = (tree.schema(), &tree.graph().costs.list_sizes);
    if let Some(measured) = tree
        .measured
        .as_ref()
        .and_then(|m| m.items.get(&fact.field))
    {
        return u64::from(*measured);
    }
    let name = schema.fields[fact.field].name;
    let of_field = |field| sizes.get(&field).into_iter().flatten();
    let mut own = of_field(fact.field).filter(|size| size.sized.is_empty());
    if let Some(own) = own.next() {
        return said(tree, own, fact).unwrap_or(LIST_ITEMS);
    }
    // The field above may say it.
    let above = tree.places[tree.nodes[fact.node].place].edge;
    let above = above.map(|edge| &tree.facts[edge]);
    let said = above.and_then(|above| {
        let mut sizes =
            of_field(above.field).filter(|size| size.sized.iter().any(|p| **p == [name]));
        said(tree, sizes.next()?, above)
    });
    said.unwrap_or(LIST_ITEMS)
}

/// What a `@listSize` says of a field with these arguments: the largest that the operation or a default fixes, else
/// what it assumes. Values of variables are not known to a plan.
fn said(tree: &Tree<'_>, size: &ListSize, fact: &Fact) -> Option<u64> {
    let number = |value: &ConstValue| match value {
        ConstValue::Int(text) => text.parse().ok(),
        _ => None,
    };
    let default = |input: &InputId| number(tree.schema().inputs[*input].default.as_ref()?);
    let slicing = || size.slicing.iter().filter(|one| one.path.is_empty());
    let slicing = || slicing().map(|one| &one.input);
    let fixed =
        slicing().filter_map(
            |input| match fact.args.iter().find(|arg| arg.input == *input) {
                Some(arg) => match &arg.value {
                    ArgValue::Const(value) => number(value),
                    _ => None,
                },
                None => default(input),
            },
        );
    let assumed = size.assumed.map(u64::from);
    let defaults = slicing().filter_map(default);
    fixed.max().or(assumed).or(defaults.max())
}

/// The load of a schedule. Linear in its size and the tree's.
pub fn estimate(tree: &Tree<'_>, schedule: &Schedule) -> u64 {
    load_of(tree, schedule, &objects(tree))
}

fn load_of(tree: &Tree<'_>, schedule: &Schedule, objects: &Objects) -> u64 {
    let at = |place: PlaceId| objects.get(place).copied().unwrap_or(1);
    let costs = &tree.graph().costs;
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
    for (id, fact) in tree.facts.iter() {
        if schedule.provider.get(&id).is_some() {
            let weight = costs.of_field(tree.schema(), fact.field);
            let weight = weight.map_or(FIELD, u64::from);
            load = load.saturating_add(weight.saturating_mul(at(tree.nodes[fact.node].place)));
        }
    }
    load
}
