//! Shapes and output lists as the executor steps through them: what it needs of a field in one row, keys compiled.
//!
//! Part of what is [derived](crate::derived) from a plan; says nothing the plan does not say.

use ogive_base::IdVec;
use ogive_json::{PatternScalar, PatternValue};

use crate::{
    derived::{FieldFacts, OutStep, ReadStep, ShapeSteps, StringStep},
    ids::*,
    ir::*,
    keys::{KeyTable, needs_no_escapes},
};

/// The steps of a shape whose fields' facts are known.
pub(crate) fn shape_steps(
    plan: &Plan,
    shape: &ObjectShape,
    facts: &[FieldFacts],
    only_type: &IdVec<LayoutId, Option<RuntimeType>>,
    keys: &mut KeyTable,
) -> ShapeSteps {
    let layout = plan.layouts.get(shape.layout);
    let lists = |slot: SlotIndex| {
        let slot = layout.and_then(|layout| layout.slots.get(usize::from(slot)));
        slot.map_or(0, |slot| slot.lists)
    };
    let no_escapes = shape
        .fields
        .iter()
        .all(|field| needs_no_escapes(&field.key));
    if layout.is_none() || !no_escapes || facts.len() != shape.fields.len() {
        // Without steps everything is read the slow way.
        return ShapeSteps {
            fields: Box::default(),
            layout: shape.layout,
            n_slots: 0,
            typename: None,
            known_type: None,
            in_list: false,
        };
    }
    let n_slots = layout.map_or(0, |layout| layout.slots.len() as SlotIndex);
    let fields = shape
        .fields
        .iter()
        .zip(facts)
        .map(|(field, facts)| ReadStep {
            key: keys.of_name(&field.key),
            slot: field.slot,
            lists: lists(field.slot),
            by_type: field.types.is_some(),
            child: field.shape,
            verbatim: facts.verbatim,
            string: string_step(field, facts),
        });
    let fields = fields.collect();
    let is_free = |key: &&str| shape.fields.iter().all(|field| *field.key != **key);
    let typename = shape.typename_key.as_deref();
    ShapeSteps {
        fields,
        layout: shape.layout,
        n_slots,
        typename: typename
            .filter(is_free)
            .filter(|key| needs_no_escapes(key))
            .map(|key| keys.of_name(key)),
        known_type: match typename {
            Some(_) => None,
            None => only_type.get(shape.layout).copied().flatten(),
        },
        in_list: false,
    }
}

fn string_step(field: &ShapeField, facts: &FieldFacts) -> StringStep {
    let scalar = facts.verbatim.map(PatternValue::as_scalar);
    match (field.shape, scalar) {
        (None, None) => StringStep::Keep,
        (None, Some(Some((PatternScalar::String | PatternScalar::StringOrInteger, _)))) => {
            StringStep::Verbatim
        }
        _ => StringStep::LookAt,
    }
}

/// Notes which shapes have a list above them. `parents_first` are all shapes, none before one that contains it.
pub(crate) fn note_lists(
    plan: &Plan,
    reads: &mut IdVec<ShapeId, ShapeSteps>,
    parents_first: impl Iterator<Item = ShapeId>,
) {
    for id in parents_first {
        let in_list = reads[id].in_list;
        for at in 0..reads[id].fields.len() {
            let step = reads[id].fields[at];
            if let Some(child) = step.child
                && plan.shapes.get(child).is_some()
            {
                reads[child].in_list |= in_list || step.lists > 0;
            }
        }
    }
}

/// The steps of a layout's output list.
pub(crate) fn out_steps(layout: &Layout, keys: &mut KeyTable) -> Box<[OutStep]> {
    let steps = layout.output.iter().map(|field| {
        let always = field.cond == Cond::TRUE
            && field.granted == Cond::TRUE
            && field.types.is_none()
            && !field.repeated;
        OutStep {
            key: keys.of(&field.key_json),
            leaf: match field.source {
                OutSource::Leaf(slot, _) if always => Some(slot),
                _ => None,
            },
            object: match field.source {
                OutSource::Object(slot) if always && !field.wrapping.is_list() => Some(slot),
                _ => None,
            },
        }
    });
    steps.collect()
}
