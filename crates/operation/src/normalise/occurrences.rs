//! The order in which a selection set names its fields: each where it first appears.

use ogive_base::{BitSet, FastMap};

use crate::ir::*;

/// Appearances of the fields of one selection set while it is filled.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) order: Vec<Occurrence>,
    /// Where each stands in the flattened selection set.
    places: Vec<usize>,
}

impl Entries {
    pub(super) fn push(&mut self, place: usize, entry: Occurrence) {
        self.places.push(place);
        self.order.push(entry);
    }
}

pub(super) fn appearance(
    field: FieldNodeId,
    types: BitSet,
    cond: CondId,
    defer: Option<DeferId>,
) -> Occurrence {
    Occurrence {
        field,
        types,
        cond,
        defer,
    }
}

/// Entries in order of appearance, without those that an earlier entry of the same node and deferred fragment covers.
pub(super) fn first_appearances(entries: Entries) -> Vec<Occurrence> {
    let mut sorted: Vec<(usize, Occurrence)> =
        entries.places.into_iter().zip(entries.order).collect();
    sorted.sort_by_key(|(i, _)| *i);
    let mut order: Vec<Occurrence> = Vec::with_capacity(sorted.len());
    // By node and condition: the types of earlier entries.
    let mut earlier: FastMap<(FieldNodeId, CondId), Vec<usize>> = FastMap::default();
    for (_, entry) in sorted {
        let covers = |cond| {
            let of_cond = earlier.get(&(entry.field, cond)).into_iter().flatten();
            of_cond
                .map(|i: &usize| &order[*i])
                .any(|e| entry.types.is_subset(&e.types) && entry.defer == e.defer)
        };
        if !covers(CondId::TRUE) && (entry.cond == CondId::TRUE || !covers(entry.cond)) {
            let key = (entry.field, entry.cond);
            earlier.entry(key).or_default().push(order.len());
            order.push(entry);
        }
    }
    order
}
