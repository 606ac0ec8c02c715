//! Which objects are not looked up because of a failure: something that their representations, or the values from above
//! them, consist of was to come and did not.

use ogive_base::FastSet;
use ogive_plan::{LayoutId, Member, ShapeId, SlotIndex, Target};

use super::{Gather, Gathered, gathered::Instance};
use crate::store::{RecordId, Store, TypeState, Value};

/// The records that are not asked for because of a failure, and what each of them was to get. `null_by_error` are slots
/// that are null because of an error of a subgraph.
pub(crate) fn unasked(
    from: &Gather<'_, '_>,
    gathered: &Gathered,
    null_by_error: &FastSet<(RecordId, SlotIndex)>,
) -> Vec<(ShapeId, RecordId)> {
    let (store, fetch) = (from.store, from.fetch);
    let mut out = Vec::new();
    for (at, (lookup, asked)) in fetch.lookups.iter().zip(&gathered.lookups).enumerate() {
        let known = asked.instances.iter().chain(asked.known());
        let known: FastSet<(usize, RecordId)> = known.map(place).collect();
        for (target_index, target) in lookup.targets.iter().enumerate() {
            if !from.conditions.hold(target.cond) || !from.part.has(at, target_index) {
                continue;
            }
            let needed = Needed {
                store,
                target,
                null_by_error,
            };
            let records = store.of_layout(target.layout).iter();
            let unknown = records.filter(|record| !known.contains(&(target_index, **record)));
            let lost = unknown.filter(|record| needed.failed(**record));
            out.extend(lost.map(|record| (target.shape, *record)));
        }
    }
    out
}

fn place(instance: &Instance) -> (usize, RecordId) {
    (usize::from(instance.target), instance.record)
}

/// What is needed to look up the records of a target.
struct Needed<'a, 'p> {
    store: &'a Store<'p>,
    target: &'a Target,
    null_by_error: &'a FastSet<(RecordId, SlotIndex)>,
}

impl Needed<'_, '_> {
    /// Whether something of it failed for a record.
    fn failed(&self, record: RecordId) -> bool {
        let (store, target) = (self.store, self.target);
        match (store.type_state(record), &target.types) {
            (TypeState::Rejected, _) => return false,
            (TypeState::Known(ty), Some(types)) if !types.contains(ty.0) => return false,
            (TypeState::Unknown, Some(_)) if !target.untyped => return false,
            (TypeState::Failed, Some(_)) if !target.untyped => return true,
            (TypeState::Failed, None)
                if target.representations.iter().any(|r| r.typename.is_none()) =>
            {
                return true;
            }
            _ => {}
        }
        let representations = target.representations.iter();
        let keys = representations.map(|representation| &*representation.members);
        let mut keys = keys.map(|members| (record, members));
        let contexts = target.contexts.iter().filter(|context| context.required);
        let mut contexts = contexts
            .filter_map(|context| Some((self.above(record, context.layout)?, &*context.members)));
        keys.any(|(record, members)| self.fails_in(record, members, true))
            || contexts.any(|(record, members)| self.fails_in(record, members, false))
    }

    /// The object above a record that has this place.
    fn above(&self, record: RecordId, layout: LayoutId) -> Option<RecordId> {
        let mut at = record;
        while self.store.layout(at) != layout {
            at = self.store.parent(at)?;
        }
        Some(at)
    }

    /// Whether one of these members failed, or one below; of a representation those of keys.
    fn fails_in(&self, record: RecordId, members: &[Member], only_keys: bool) -> bool {
        let store = self.store;
        let mut open = vec![(Value::Record(record), members)];
        while let Some((value, members)) = open.pop() {
            let record = match value {
                Value::Record(record) => record,
                Value::List(list) => {
                    open.extend((0..list.len).map(|at| (store.item(list, at), members)));
                    continue;
                }
                _ => continue,
            };
            let ty = store.known_type(record);
            for member in members {
                let applies = match &member.types {
                    Some(types) => ty.is_some_and(|ty| types.contains(ty.0)),
                    None => true,
                };
                let Some(slot) = member.slot.filter(|_| applies) else {
                    continue;
                };
                let value = store.value(record, slot);
                let failed = value == Value::Failed
                    || !value.is_some() && self.null_by_error.contains(&(record, slot));
                if failed && (member.key || !only_keys) {
                    return true;
                }
                open.push((value, &member.members));
            }
        }
        false
    }
}
