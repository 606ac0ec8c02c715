//! Fetches a part of which could be sent sooner.
//!
//! The planner lets a look-up wait for later ones to the same subgraph, because one request is better than two. If the
//! later places turn out to hold the same entities as the early ones, which is common (the products that reviews lead
//! back to), there was nothing to wait for. So a part of a fetch may be sent as soon as its own inputs are there, if
//! everything that would have to wait asks a question that the part asks too: then the rest is likely to have nothing
//! left to ask. Whether it does is found at run time.

use ogive_base::FastSet;

use crate::{
    derived::Prefetch,
    ids::*,
    ir::*,
    representation::Member,
    reuse_sources::{TYPE, Writers},
};

/// The parts of all fetches, at most one of each.
pub(crate) fn prefetches(plan: &Plan, writers: &Writers) -> Vec<Prefetch> {
    if plan.kind != OperationKind::Query {
        return Vec::new();
    }
    let fetches = plan.fetches.iter();
    fetches
        .filter_map(|(id, fetch)| prefetch(plan, writers, id, fetch))
        .collect()
}

fn prefetch(plan: &Plan, writers: &Writers, id: FetchId, fetch: &Fetch) -> Option<Prefetch> {
    let mut targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
    if fetch.root.is_some() || fetch.wave < 3 || targets.any(|t| !t.contexts.is_empty()) {
        return None;
    }
    let mut dependencies: FastSet<FetchId> = FastSet::default();
    let mut questions: FastSet<u32> = FastSet::default();
    let mut late: Vec<u32> = Vec::new();
    let mut targets = Vec::with_capacity(fetch.lookups.len());
    for lookup in &fetch.lookups {
        let mut of_lookup = Vec::with_capacity(lookup.targets.len());
        for target in &lookup.targets {
            let needed = needed(plan, writers, target);
            // A fetch never waits for itself; what it reads of its own answer it cannot read here.
            let wave = needed.iter().map(|f| plan.fetches[*f].wave).max();
            let early = !needed.contains(&id) && wave.unwrap_or(0) + 1 < fetch.wave;
            of_lookup.push(early);
            if early {
                questions.insert(target.selection);
                dependencies.extend(needed);
            } else {
                late.push(target.selection);
            }
        }
        targets.push(of_lookup);
    }
    if questions.is_empty() || late.is_empty() || late.iter().any(|q| !questions.contains(q)) {
        return None;
    }
    let mut dependencies: Vec<FetchId> = dependencies.into_iter().collect();
    dependencies.sort_unstable_by_key(|fetch| fetch.0);
    Some(Prefetch {
        fetch: id,
        dependencies,
        targets,
    })
}

/// The fetches that bring a target's records and everything their representations may consist of.
fn needed(plan: &Plan, writers: &Writers, target: &Target) -> FastSet<FetchId> {
    let mut needed = FastSet::default();
    let mut add = |layout: LayoutId, slot: SlotIndex| {
        needed.extend(writers.get(&(layout, slot)).into_iter().flatten().copied());
    };
    let mut place = target.layout;
    while let Some((parent, slot)) = plan.layouts[place].parent {
        add(parent, slot);
        place = parent;
    }
    // Objects of interface objects learn their type later than they come.
    if target.types.is_some() && !target.untyped {
        add(target.layout, TYPE);
    }
    let members = target.representations.iter().map(|r| &*r.members);
    let mut open: Vec<(LayoutId, &[Member])> = members.map(|m| (target.layout, m)).collect();
    while let Some((layout, members)) = open.pop() {
        for member in members {
            let Some(slot) = member.slot else { continue };
            add(layout, slot);
            let child = plan.layouts[layout].slots.get(usize::from(slot));
            if let Some(child) = child.and_then(|slot| slot.child) {
                open.push((child, &member.members));
            }
        }
    }
    needed
}
