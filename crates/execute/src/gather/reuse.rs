//! What need not be asked because it is known: an identical look-up was sent before, or an object of another place holds
//! what would be answered ([`crate::reuse`]).

use ogive_base::id::Id;
use ogive_plan::ReuseSource;

use super::{
    Gather, Limits,
    distinct::{Distinct, Found, shown_alike},
    representation::write_representation,
};
use crate::{
    limits::Reuse,
    reuse::{Entities, Key, ReuseState},
    store::{RecordId, Store, Value},
};

/// What answers a target's representations but its subgraph.
pub(super) struct TargetReuse<'p> {
    sources: &'p [ReuseSource],
    /// Whether what was sent before is to be looked at.
    pub(super) looks_up: bool,
    subgraph: u32,
    selection: u32,
}

impl TargetReuse<'_> {
    /// What became of a representation.
    #[inline(always)]
    pub(super) fn known(
        &self,
        store: &Store<'_>,
        entities: Option<&Entities>,
        representation: &[u8],
    ) -> ReuseState {
        let Some(entities) = entities.filter(|_| self.looks_up) else {
            return ReuseState::No;
        };
        let key = Key {
            subgraph: self.subgraph,
            selection: self.selection,
            representation,
        };
        match entities.get(key) {
            ReuseState::Held(held)
                if self.sources.iter().all(|d| d.layout != store.layout(held)) =>
            {
                ReuseState::No
            }
            known => known,
        }
    }
}

/// Makes ready to gather a target's representations; `None` if it is not asked now.
#[inline(always)]
pub(super) fn begin_target<'p>(
    from: &mut Gather<'_, 'p>,
    lookup: usize,
    target_index: usize,
    limits: &mut Limits,
) -> Option<TargetReuse<'p>> {
    let (store, fetch) = (from.store, from.fetch);
    let target = &fetch.lookups[lookup].targets[target_index];
    if !from.conditions.hold(target.cond) || !from.part.has(lookup, target_index) {
        return None;
    }
    let plan = store.plan();
    let sources = match from.reuse {
        Reuse::All => plan.reusable().sources.of(from.id, lookup, target_index),
        Reuse::Off | Reuse::Entities => &[],
    };
    let (subgraph, selection) = (fetch.subgraph, target.selection);
    let mut looks_up = false;
    if let Some(entities) = from.entities.as_deref_mut() {
        for reuse_source in sources {
            let question = (subgraph, selection);
            offer(store, entities, reuse_source, question, &mut limits.offered);
        }
        looks_up = !sources.is_empty()
            || !from.part.is_whole()
            || plan.derived().asked_twice[from.id.index()][lookup][target_index];
    }
    Some(TargetReuse {
        sources,
        looks_up,
        subgraph,
        selection,
    })
}

/// So many of the objects that were offered are remembered by themselves.
const OFFERED_MAX: usize = 16;

/// Lets the objects of a place answer look-ups of the same entities, as far as `left` bytes of representations are enough
/// to say which they are. What is not offered is asked.
fn offer(
    store: &Store<'_>,
    entities: &mut Entities,
    reuse_source: &ReuseSource,
    (subgraph, selection): (u32, u32),
    left: &mut u64,
) {
    if !reuse_source
        .fetches
        .iter()
        .all(|fetch| entities.is_clean(*fetch))
    {
        return;
    }
    let mut representation = Vec::new();
    // Many records of a place are the same entity; the first that holds everything speaks for all.
    let is_plain = reuse_source.representation.is_plain();
    let by_type = reuse_source.representation.shows_type();
    let mut seen = Distinct::default();
    seen.begin(store.of_layout(reuse_source.layout).len());
    let mut offered: Vec<RecordId> = Vec::new();
    for &record in store.of_layout(reuse_source.layout) {
        if let Some(duplicate) = store
            .duplicate(record)
            .filter(|duplicate| *duplicate != record)
            && offered.contains(&duplicate)
            && shown_alike(store, &reuse_source.representation, record, duplicate)
        {
            continue;
        }
        let key = if is_plain {
            seen.find(store, &reuse_source.representation, record, (0, by_type))
        } else {
            None
        };
        if matches!(key, Some(Found::Known(()))) {
            continue;
        }
        let holds = |slot| matches!(store.value(record, slot), Value::Raw(_));
        if store.known_type(record).is_none()
            || !reuse_source.values.iter().all(|(slot, _)| holds(*slot))
        {
            continue;
        }
        representation.clear();
        let written = write_representation(
            store,
            &reuse_source.representation,
            record,
            &mut representation,
        );
        // Values that many objects share are written for each of them.
        let Some(rest) = left.checked_sub(representation.len() as u64) else {
            return;
        };
        *left = rest;
        if written {
            if let Some(Found::New(new)) = key {
                seen.insert(new, ());
                if offered.len() < OFFERED_MAX {
                    offered.push(record);
                }
            }
            let key = Key {
                subgraph,
                selection,
                representation: &representation,
            };
            entities.hold(key, record);
        }
    }
}
