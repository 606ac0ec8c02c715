//! Which look-ups could be answered from what other places of the response hold.
//!
//! A subgraph that has answered `user(id: 1) { id name }` need not be asked for the name of user 1 again, wherever that
//! user turns up. A *reuse source* of a look-up's target is another place of the same concrete type where the same subgraph
//! brings all the values the target asks for, and where everything a representation consists of is known too. Whether
//! a record of the reuse source is the same entity is found at run time: its representation is the same bytes.
//!
//! Only leaves are taken over, of the same field with the same arguments ([`Slot::value`](crate::Slot::value)). A value
//! that more than one subgraph brings to the reuse source is left out, because only one of them is asked by the target.

use ogive_base::{FastMap, FastSet, IdVec, id::Id};

use crate::{
    derived::{ReuseSource, ReuseSources},
    ids::*,
    ir::*,
    representation::{Member, Representation},
};

/// Most reuse sources of one target.
const DONORS_MAX: usize = 8;
/// Most places that are looked at to find the reuse sources of one target.
const CANDIDATES_MAX: usize = 64;

/// Finds all reuse_sources. Takes time in proportion to the plan, places of one type counted [`CANDIDATES_MAX`] times at most.
pub(crate) fn reuse_sources(plan: &Plan, writers: &Writers) -> ReuseSources {
    let mut reuse_sources = ReuseSources::default();
    if plan.kind != OperationKind::Query {
        return reuse_sources;
    }
    let mut places: FastMap<RuntimeType, Vec<LayoutId>> = FastMap::default();
    for (id, layout) in plan.layouts.iter() {
        if let Some(ty) = layout.only_type() {
            places.entry(ty).or_default().push(id);
        }
    }
    for (id, fetch) in plan.fetches.iter() {
        for (at, lookup) in fetch.lookups.iter().enumerate() {
            for (n, target) in lookup.targets.iter().enumerate() {
                if !target.contexts.is_empty() {
                    continue;
                }
                let ty = plan.layouts[target.layout].only_type();
                let Some(places) = ty.and_then(|ty| places.get(&ty)) else {
                    continue;
                };
                let others = places.iter().filter(|place| **place != target.layout);
                let found: Vec<ReuseSource> = others
                    .take(CANDIDATES_MAX)
                    .filter_map(|place| reuse_source(plan, writers, id, target, *place))
                    .take(DONORS_MAX)
                    .collect();
                if !found.is_empty() {
                    if reuse_sources.targets.is_empty() {
                        reuse_sources.targets = nothing(plan);
                    }
                    reuse_sources.targets[id][at][n] = found;
                }
            }
        }
    }
    reuse_sources
}

/// No reuse sources, for every target.
fn nothing(plan: &Plan) -> IdVec<FetchId, Vec<Vec<Vec<ReuseSource>>>> {
    let of_lookup = |lookup: &Lookup| lookup.targets.iter().map(|_| Vec::new()).collect();
    let fetches = plan.fetches.iter();
    fetches
        .map(|(_, fetch)| fetch.lookups.iter().map(of_lookup).collect())
        .collect()
}

/// Stands for the concrete type among the slots of a layout.
pub(crate) const TYPE: SlotIndex = SlotIndex::MAX;

/// By layout and slot: the fetches that bring a value; of [`TYPE`] those that tell the concrete type.
pub(crate) type Writers = FastMap<(LayoutId, SlotIndex), Vec<FetchId>>;

pub(crate) fn writers(plan: &Plan) -> Writers {
    let mut writers = Writers::default();
    let mut seen: FastSet<(FetchId, ShapeId)> = FastSet::default();
    for (id, fetch) in plan.fetches.iter() {
        let roots = fetch.root.iter().map(|root| root.shape);
        let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
        let mut open: Vec<ShapeId> = roots.chain(targets.map(|target| target.shape)).collect();
        while let Some(shape) = open.pop() {
            if !seen.insert((id, shape)) {
                continue;
            }
            let shape = &plan.shapes[shape];
            if shape.typename_key.is_some() {
                writers.entry((shape.layout, TYPE)).or_default().push(id);
            }
            for field in &shape.fields {
                let known = writers.entry((shape.layout, field.slot)).or_default();
                if known.last() != Some(&id) {
                    known.push(id);
                }
                open.extend(field.shape);
            }
        }
    }
    writers
}

fn reuse_source(
    plan: &Plan,
    writers: &Writers,
    asker: FetchId,
    target: &Target,
    place: LayoutId,
) -> Option<ReuseSource> {
    let (here, there) = (&plan.layouts[place], &plan.layouts[target.layout]);
    let same = |slot: SlotIndex| {
        let value = there.slots.get(usize::from(slot))?.value;
        let found = here
            .slots
            .iter()
            .position(|s| value != 0 && s.value == value)?;
        Some(found as SlotIndex)
    };
    if plan.shapes[target.shape].typename_key.is_some() {
        return None;
    }
    let mut fetches: Vec<FetchId> = Vec::new();
    let mut values = Vec::new();
    for field in &plan.shapes[target.shape].fields {
        let slot = same(field.slot)?;
        let brought = writers.get(&(place, slot))?;
        let subgraph = plan.fetches[asker].subgraph;
        if field.shape.is_some()
            || brought
                .iter()
                .any(|f| *f == asker || plan.fetches[*f].subgraph != subgraph)
        {
            return None;
        }
        fetches.extend(brought);
        values.push((slot, field.slot));
    }
    fetches.sort_unstable_by_key(|fetch| fetch.index());
    fetches.dedup();
    let representation = target.representations.first()?;
    let members = representation.members.iter().map(|member| {
        let plain = member.members.is_empty() && member.types.is_none();
        let slot = match member.slot {
            Some(slot) => Some(same(slot)?),
            None => None,
        };
        plain.then(|| Member {
            slot,
            ..member.clone()
        })
    });
    let members: Option<Vec<Member>> = members.collect();
    (!values.is_empty()).then_some(ReuseSource {
        layout: place,
        fetches,
        representation: Representation {
            typename: representation.typename.clone(),
            members: members?,
        },
        values,
    })
}
