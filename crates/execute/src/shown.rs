//! What clients see of the store.

use std::cell::Cell;

use ogive_plan::{OutField, OutSource, SlotIndex, Wrapping};

use crate::{
    condition::Conditions,
    graphql_error::PathStep,
    store::{RecordId, Store, TypeState, Value},
};

/// Whether a value is null in the response.
pub(crate) fn is_null(value: Value) -> bool {
    matches!(value, Value::Absent | Value::Null | Value::Failed)
}

/// Whether the response certainly has a value at a path: what failed was needed for it, but it came all the same, or
/// another request brought it. Looks at so many values at most, which it counts down.
pub(crate) fn has_value(
    store: &Store<'_>,
    conditions: &Conditions,
    path: &[PathStep<'_>],
    left_of_all: &Cell<u32>,
) -> bool {
    let mut value = Value::Record(Store::ROOT);
    let (mut wrapping, mut layer) = (Wrapping::NULLABLE, 0);
    for step in path {
        value = match (step, value) {
            (PathStep::Key(key), Value::Record(record)) => {
                let mut fields = shown_fields(store, conditions, record);
                let field = fields.find(|field| *field.key == **key);
                let Some((field, slot)) = field.and_then(|f| Some((f, slot_of(f)?))) else {
                    return false;
                };
                (wrapping, layer) = (field.wrapping, field.wrapping.lists());
                store.value(record, slot)
            }
            (PathStep::Index(index), Value::List(list)) if layer > 0 => {
                layer -= 1;
                store.item(list, *index)
            }
            _ => return false,
        };
    }
    // Null for what must not be null is null for what it is part of.
    let mut open = vec![(value, wrapping, layer)];
    let mut left = LOOKED_AT_MAX.min(left_of_all.get());
    while let Some((value, wrapping, layer)) = open.pop() {
        match value {
            Value::Raw(_) => {}
            Value::List(list) if layer > 0 => {
                if wrapping.layer_is_non_null(layer - 1) {
                    let items = (0..list.len.min(left)).map(|at| store.item(list, at));
                    open.extend(items.map(|item| (item, wrapping, layer - 1)));
                }
            }
            Value::Record(record) if layer == 0 => {
                let layout = &store.plan().layouts[store.layout(record)];
                if !layout.restricted.is_empty() || lacks_type(store, conditions, record) {
                    return false;
                }
                for field in shown_fields(store, conditions, record) {
                    if let (Some(slot), true) = (slot_of(field), field.wrapping.is_non_null()) {
                        let lists = field.wrapping.lists();
                        open.push((store.value(record, slot), field.wrapping, lists));
                    }
                }
            }
            _ => return false,
        }
        left = left.saturating_sub(1);
        left_of_all.set(left_of_all.get().saturating_sub(1));
        if left == 0 {
            return false;
        }
    }
    true
}

/// Whether an object is null because nobody said what it is: it is of no possible type, or the client wants something that
/// depends on the type. What is switched off needs no type, so nobody may have been asked for it.
pub(crate) fn lacks_type(store: &Store<'_>, conditions: &Conditions, record: RecordId) -> bool {
    let depends_on_type = |field: &OutField| {
        let by_type = field.types.is_some() || matches!(field.source, OutSource::Typename);
        by_type && conditions.hold(field.cond)
    };
    match store.type_state(record) {
        TypeState::Known(_) => false,
        TypeState::Rejected => true,
        TypeState::Unknown | TypeState::Failed => {
            let layout = &store.plan().layouts[store.layout(record)];
            layout.output.iter().any(depends_on_type)
        }
    }
}

/// Most values of one place that are looked at...
const LOOKED_AT_MAX: u32 = 10_000;
/// ... and of all places of a response.
pub(crate) const LOOKED_AT_ALL_MAX: u32 = 100 * LOOKED_AT_MAX;

/// The client's fields of a record.
fn shown_fields<'p>(
    store: &Store<'p>,
    conditions: &Conditions,
    record: RecordId,
) -> impl Iterator<Item = &'p OutField> {
    let ty = store.known_type(record);
    let output = store.plan().layouts[store.layout(record)].output.iter();
    output.filter(move |field| {
        let of_type = match (&field.types, ty) {
            (Some(types), Some(ty)) => types.contains(ty.0),
            (types, _) => types.is_none(),
        };
        of_type && conditions.hold(field.cond) && conditions.hold(field.granted)
    })
}

/// The slot that has a field's value.
pub(crate) fn slot_of(field: &OutField) -> Option<SlotIndex> {
    match field.source {
        OutSource::Leaf(slot, _) | OutSource::Object(slot) => Some(slot),
        OutSource::Typename | OutSource::Local(_) | OutSource::Null => None,
    }
}
