//! Pass 3: the fewest requests at the fewest waves.
//!
//! 1. With every request allowed, the closure gives the earliest wave of every wanted value: the minimal number of
//!    waves, and the exact reason if something cannot be had at all.
//!    (`fewest-requests` also looks at a few waves more.)
//! 2. From all useful requests at that number of waves, requests are deleted one by one as long as everything wanted
//!    stays known (reverse delete). Several deterministic orders are tried while fuel lasts; the smallest set wins, the
//!    first found among equals. A set as small as the lower bound ends the search: no plan does with fewer requests
//!    than waves, than subgraphs that alone have something, or than stretches of waves that need a subgraph.
//!    Root fields that share no subgraph are searched one by one ([`crate::parts`]).
//! 3. With fuel for it, all smaller counts are excluded, or the best one found, by deciding wave by wave.

use std::cmp::Reverse;

use ogive_base::BitSet;

use crate::{
    PlanError, PlanOptions, Profile,
    closure::{Closure, NEVER, Requests},
    parts::{owners, parts},
    probe::{OutOfFuel, Probe, WAVES_MAX},
    tree::{FactId, NodeId, Scope, Tree},
};

/// The chosen requests of one scope and what they bring.
#[derive(Debug)]
pub struct Found {
    /// The requests.
    pub requests: Requests,
    /// Their closure.
    pub closure: Closure,
    /// Client facts to bring; those of concrete types that no subgraph can answer are left out.
    pub wanted: Vec<FactId>,
    /// No plan of this scope has fewer requests.
    pub lower_bound: usize,
    /// No set of requests with as many waves is smaller.
    pub proven: bool,
    /// More fuel would find nothing better for the profile.
    pub settled: bool,
    /// Of the requests, those that are to bring all they can; empty: whichever is cheapest there.
    pub preferred: Requests,
    /// Rule firings it took: the fuel used.
    pub firings: u64,
}

/// Finds the requests of all scopes of an operation, in the order in which they must run.
///
/// Root fields of a mutation that follow each other share a scope, and so a request, if one subgraph answers them and
/// none but the last has anything to follow it (planner rule 51).
pub fn search_all(
    tree: &Tree<'_>,
    options: &PlanOptions,
) -> Result<Vec<(Scope, Found)>, PlanError> {
    let mut out: Vec<(Scope, Found)> = Vec::new();
    // How many of the last scopes run in one request each, all of them in the same subgraph.
    let mut alone = 0;
    for mut scope in tree.scopes() {
        let found = if scope.serial {
            search_serial(tree, &mut scope, options)?
        } else {
            search(tree, &scope, options)?
        };
        let key = |scope: &Scope| {
            let client = tree.facts[*scope.root_facts.first()?].client?;
            Some(tree.op.fields[client].key)
        };
        let run = &out[out.len() - alone..];
        // One field under exclusive conditions is two calls of which one happens, each in its turn.
        let joins = run
            .iter()
            .all(|(before, _)| before.entered_by == scope.entered_by && key(before) != key(&scope));
        if !joins {
            join_last(tree, &mut out, alone, options)?;
            alone = 0;
        }
        let is_alone = found.requests.count() == 1;
        out.push((scope, found));
        alone += 1;
        if !is_alone {
            join_last(tree, &mut out, alone, options)?;
            alone = 0;
        }
    }
    join_last(tree, &mut out, alone, options)?;
    Ok(out)
}

/// Makes one scope of the last `count` ones.
fn join_last(
    tree: &Tree<'_>,
    scopes: &mut Vec<(Scope, Found)>,
    count: usize,
    options: &PlanOptions,
) -> Result<(), PlanError> {
    if count < 2 {
        return Ok(());
    }
    let members = scopes.split_off(scopes.len() - count);
    let mut members = members.into_iter().map(|(scope, _)| scope);
    let Some(mut joined) = members.next() else {
        return Ok(());
    };
    for member in members {
        joined.root_facts.extend(member.root_facts);
        joined.nodes.extend(member.nodes);
    }
    joined.nodes.sort_unstable();
    joined.nodes.dedup();
    joined.number(tree);
    let found = search(tree, &joined, options)?;
    scopes.push((joined, found));
    Ok(())
}

/// Finds the requests of a scope whose root fields are asked once, of one subgraph: one that leads to the best plan
/// (planner rules 52 and 53).
fn search_serial(
    tree: &Tree<'_>,
    scope: &mut Scope,
    options: &PlanOptions,
) -> Result<Found, PlanError> {
    let mut candidates: Option<BitSet> = None;
    for fact in &scope.root_facts {
        let plain = &tree.facts[*fact].plain;
        match &mut candidates {
            Some(all) => all.intersect_with(plain),
            None => candidates = Some(plain.clone()),
        }
    }
    let mut best: Option<(Found, BitSet)> = None;
    let mut refused = None;
    for candidate in candidates.iter().flat_map(BitSet::iter) {
        let only: BitSet = [candidate].into_iter().collect();
        scope.entered_by = Some(only.clone());
        let found = match search(tree, scope, options) {
            Ok(found) => found,
            Err(error) => {
                refused.get_or_insert(error);
                continue;
            }
        };
        let better = |best: &(Found, BitSet)| cost(&found, options) < cost(&best.0, options);
        if best.as_ref().is_none_or(better) {
            best = Some((found, only));
        }
    }
    match (best, refused) {
        (Some((found, only)), _) => {
            scope.entered_by = Some(only);
            Ok(found)
        }
        (None, Some(error)) => Err(error),
        // Nobody resolves it, or there is nothing to resolve.
        (None, None) => search(tree, scope, options),
    }
}

fn cost(found: &Found, options: &PlanOptions) -> (usize, usize) {
    let (waves, requests) = (found.requests.waves.len(), found.requests.count());
    match options.profile {
        // The least load is looked for around the plans of the others.
        Profile::CriticalPath | Profile::LeastLoad => (waves, requests),
        Profile::FewestRequests => (requests, waves),
    }
}

/// Finds the requests of one scope.
pub fn search(tree: &Tree<'_>, scope: &Scope, options: &PlanOptions) -> Result<Found, PlanError> {
    let mut closure = Closure::default();
    let (waves, wanted) = everything(tree, scope, options, &mut closure)?;
    // A wave without a request could be left out, so no plan has fewer requests than the fewest waves.
    let mut lower_bound = owners(tree, &wanted).max(waves);
    let slack = match options.profile {
        Profile::CriticalPath | Profile::LeastLoad => 0,
        Profile::FewestRequests => SLACK_WAVES,
    };
    let mut best: Option<Fewest> = None;
    let mut firings = 0;
    let mut settled = true;
    for waves in waves..=waves + slack {
        let all = useful(tree, scope, waves, &mut closure);
        let found = by_parts(tree, scope, &wanted, &all, lower_bound, options, &closure);
        lower_bound = lower_bound.max(found.lower_bound);
        firings += found.firings;
        settled &= found.proven;
        if best
            .as_ref()
            .is_none_or(|b| found.requests.count() < b.requests.count())
        {
            best = Some(found);
        }
        if best
            .as_ref()
            .is_some_and(|b| b.requests.count() <= lower_bound)
        {
            break;
        }
    }
    let best = best.unwrap_or_default();
    closure.run(tree, scope, &best.requests);
    let is_least = best.requests.count() <= lower_bound;
    let (proven, settled) = (best.proven || is_least, settled || is_least);
    Ok(Found {
        requests: best.requests,
        firings: firings + closure.firings,
        closure,
        wanted,
        lower_bound,
        proven,
        settled,
        preferred: Requests::default(),
    })
}

/// Waves above the minimum that `fewest-requests` considers.
const SLACK_WAVES: usize = 2;

/// The best set of requests at one number of waves.
#[derive(Default)]
struct Fewest {
    requests: Requests,
    /// No set of this many waves has fewer.
    proven: bool,
    /// No set of any number of waves has fewer.
    lower_bound: usize,
    firings: u64,
    /// How many of them went into the proof.
    exact: u64,
}

/// Parts that have nothing to do with each other are searched one after another. All together have the fuel of one: a
/// part that needs less than its share leaves the rest to those that come later, and the hardest comes last.
fn by_parts(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    all: &Requests,
    lower_bound: usize,
    options: &PlanOptions,
    closure: &Closure,
) -> Fewest {
    let parts = if all.count() <= lower_bound {
        Vec::new()
    } else {
        parts(tree, scope, wanted, all, closure)
    };
    if parts.is_empty() {
        return fewest_of(tree, scope, wanted, all, lower_bound, options);
    }
    let mut whole = Fewest {
        requests: Requests {
            waves: vec![BitSet::new(); all.waves.len()],
        },
        proven: true,
        ..Fewest::default()
    };
    let mut own = options.clone();
    let (mut fuel, mut exact_fuel) = (options.fuel, options.exact_fuel);
    for (part, left) in parts.iter().zip((1..=parts.len() as u64).rev()) {
        (own.fuel, own.exact_fuel) = (fuel / left, exact_fuel / left);
        let needed = part.wanted.iter().map(|f| closure.known(*f) as usize + 1);
        let least = part.lower_bound.max(needed.max().unwrap_or(0));
        let found = fewest_of(tree, &part.scope, &part.wanted, &part.all, least, &own);
        fuel = fuel.saturating_sub(found.firings - found.exact);
        exact_fuel = exact_fuel.saturating_sub(found.exact);
        for (set, chosen) in whole.requests.waves.iter_mut().zip(&found.requests.waves) {
            set.union_with(chosen);
        }
        whole.proven &= found.proven;
        whole.lower_bound += least;
        whole.firings += found.firings;
        whole.exact += found.exact;
    }
    whole
}

fn fewest_of(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    all: &Requests,
    lower_bound: usize,
    options: &PlanOptions,
) -> Fewest {
    match tree.supergraph.subgraphs.len() {
        0..=64 => fewest::<1>(tree, scope, wanted, all, lower_bound, options),
        65..=256 => fewest::<4>(tree, scope, wanted, all, lower_bound, options),
        257..=2048 => fewest::<32>(tree, scope, wanted, all, lower_bound, options),
        _ => Fewest {
            requests: all.clone(),
            ..Fewest::default()
        },
    }
}

fn fewest<const N: usize>(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    all: &Requests,
    lower_bound: usize,
    options: &PlanOptions,
) -> Fewest {
    let mut best = Fewest {
        requests: all.clone(),
        proven: all.count() <= lower_bound,
        ..Fewest::default()
    };
    if best.proven || all.waves.len() > WAVES_MAX {
        return best;
    }
    let mut probe = Probe::<N>::new(tree, scope, wanted);
    let mut lower_bound = lower_bound;
    let mut stale = 0;
    let mut dearest = 0;
    for order in 0..ORDERS {
        let before = probe.firings;
        // Not begun if it could not be finished.
        let spent = order > 0 && (before + dearest > options.fuel || stale >= options.patience);
        if best.requests.count() <= lower_bound || spent || !probe.accept(all) {
            break;
        }
        lower_bound = lower_bound.max(probe.forced());
        let candidate = reverse_delete(tree, all, order, &mut probe);
        dearest = dearest.max(probe.firings - before);
        stale += 1;
        if candidate.count() < best.requests.count() {
            best.requests = candidate;
            stale = 0;
        }
        // Worth its price where several more orders would be tried.
        let count = best.requests.count();
        if order == 0 && count > lower_bound && probe.firings < options.fuel / 3 {
            lower_bound = lower_bound.max(needed(all, &mut probe));
        }
    }
    let before = probe.firings;
    let fuel_end = before.saturating_add(options.exact_fuel);
    best.proven = true;
    for count in lower_bound..best.requests.count() {
        match probe.exactly(all, count, fuel_end) {
            Err(OutOfFuel) => best.proven = false,
            Ok(None) => continue,
            Ok(Some(requests)) => best.requests = requests,
        }
        break;
    }
    best.firings = probe.firings;
    best.exact = probe.firings - before;
    best
}

/// A number of requests that every sufficient subset of `all` has: for each subgraph, how many stretches of waves one
/// after another need a request of it, since without all of those in the stretch something is missing.
fn needed<const N: usize>(all: &Requests, probe: &mut Probe<N>) -> usize {
    if !probe.accept(all) {
        return 0;
    }
    let mut subgraphs = BitSet::new();
    for wave in &all.waves {
        subgraphs.union_with(wave);
    }
    let end = all.waves.len();
    let mut count = 0;
    for s in subgraphs.iter() {
        let mut start = 0;
        while start < end && !probe.suffices_without(start..end, s) {
            // The rest needs one: now the shortest stretch that does.
            let short = (start..end - 1).find(|last| {
                all.waves[*last].contains(s) && !probe.suffices_without(start..last + 1, s)
            });
            count += 1;
            start = short.map_or(end, |last| last + 1);
        }
    }
    count
}

/// Most deletion orders tried: late waves first, early waves first, then seeded shuffles.
const ORDERS: u64 = 1_000;

/// The minimal number of waves, and the facts that can and must be brought.
fn everything(
    tree: &Tree<'_>,
    scope: &Scope,
    options: &PlanOptions,
    closure: &mut Closure,
) -> Result<(usize, Vec<FactId>), PlanError> {
    let subgraphs = BitSet::all(tree.supergraph.subgraphs.len());
    let candidates: Vec<FactId> = scope
        .nodes
        .iter()
        .flat_map(|n| {
            if *n == Tree::ROOT {
                &scope.root_facts
            } else {
                &tree.nodes[*n].facts
            }
        })
        .copied()
        .filter(|f| tree.facts[*f].is_wanted())
        .collect();
    // Whether more might be known in later waves than are allowed.
    let is_cut = !closure.run_to_end(tree, scope, &subgraphs, options.waves_max.max(1) as usize);
    let mut wanted = Vec::new();
    for fact in candidates {
        if closure.known(fact) != NEVER {
            wanted.push(fact);
            continue;
        }
        if is_cut {
            let most = options.waves_max;
            return Err(PlanError::too_large(format!(
                "the operation needs more than {most} requests one after another"
            )));
        }
        let node = tree.facts[fact].node;
        if tree.facts[fact].is_type && told_elsewhere(tree, closure, node) {
            continue;
        }
        let reachable = (0..closure.waves()).any(|w| !closure.open(node, w).is_empty());
        if reachable || node == Tree::ROOT {
            let coordinate = tree.schema().field_coordinate(tree.facts[fact].field);
            return Err(PlanError::failed(if tree.facts[fact].is_type {
                format!("no subgraph tells the concrete types of `{coordinate}`")
            } else {
                format!("no subgraph can resolve `{coordinate}` at this place")
            }));
        }
    }
    let needed = wanted
        .iter()
        .map(|f| closure.known(*f) as usize + 1)
        .max()
        .unwrap_or(0);
    Ok((needed, wanted))
}

/// Whether some other type of a place is told. Then a type that nobody tells does not occur there.
pub(crate) fn told_elsewhere(tree: &Tree<'_>, closure: &Closure, node: NodeId) -> bool {
    let nodes = &tree.places[tree.nodes[node].place].nodes;
    let mut told_by = nodes.iter().filter_map(|n| tree.nodes[*n].told_by);
    told_by.any(|fact| closure.known(fact) != NEVER)
}

/// All requests of `waves` waves in which some object is open.
pub(crate) fn useful(
    tree: &Tree<'_>,
    scope: &Scope,
    waves: usize,
    closure: &mut Closure,
) -> Requests {
    if closure.waves() < waves {
        let subgraphs = BitSet::all(tree.supergraph.subgraphs.len());
        closure.run(
            tree,
            scope,
            &Requests {
                waves: vec![subgraphs; waves],
            },
        );
    }
    let mut requests = Requests {
        waves: vec![BitSet::new(); waves],
    };
    for (wave, set) in requests.waves.iter_mut().enumerate() {
        for node in &scope.nodes {
            set.union_with(closure.open(*node, wave));
        }
    }
    requests
}

fn reverse_delete<const N: usize>(
    tree: &Tree<'_>,
    all: &Requests,
    order: u64,
    probe: &mut Probe<N>,
) -> Requests {
    let mut requests = all.clone();
    let mut candidates: Vec<(usize, u32)> = all
        .waves
        .iter()
        .enumerate()
        .flat_map(|(w, set)| set.iter().map(move |s| (w, s)))
        .collect();
    match order {
        0 => {
            // Of one wave, slow subgraphs are done without first.
            if let Some(measured) = &tree.measured {
                let slow = |s: &u32| Reverse(measured.slowness_of(*s));
                candidates.sort_by_key(|(wave, s)| (*wave, slow(s)));
            }
        }
        1 => candidates.reverse(),
        seed => shuffle(&mut candidates, seed),
    }
    for (wave, subgraph) in candidates {
        if probe.try_remove(wave, subgraph) {
            requests.waves[wave].remove(subgraph);
        }
    }
    requests
}

/// Fisher-Yates over a fixed multiplicative generator (splitmix64): the same order on every machine.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for i in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        items.swap(i, (z % (i as u64 + 1)) as usize);
    }
}
