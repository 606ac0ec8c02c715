//! Shapes and output lists as the executor steps through them: what it needs of a field in one row, keys compiled.
//!
//! Part of what is [derived](crate::derived) from a plan; says nothing the plan does not say.

use ogive_base::{FastMap, IdVec};
use ogive_json::{Key, PatternScalar, PatternValue};

use crate::{
    derived::{FieldFacts, needs_no_escapes},
    ir::*,
};

/// How objects of a shape are read.
#[derive(Debug)]
pub struct ShapeSteps {
    /// By field.
    pub fields: Box<[ReadStep]>,
    /// Layout of its records...
    pub layout: LayoutId,
    /// ... and how many slots they have.
    pub n_slots: SlotIndex,
    /// Index of the key that tells the type; `None` if no key does, or a field has the same one.
    pub typename: Option<u32>,
    /// The type of all objects, if no key tells it and there is only one.
    pub known_type: Option<RuntimeType>,
    /// Whether there is a list above its objects, so that a root or an entity can have several of them.
    pub in_list: bool,
}

/// How a member is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadStep {
    /// Index into [`Derived::keys`](crate::Derived::keys).
    pub key: u32,
    /// Where it lands.
    pub slot: SlotIndex,
    /// Lists around its objects.
    pub lists: u8,
    /// Whether only objects of some types have it.
    pub by_type: bool,
    /// Shape of its objects; `None` for a leaf.
    pub child: Option<ShapeId>,
    /// How the value looks if it can be used as it stands.
    pub verbatim: Option<PatternValue>,
    /// What is done with a string, whichever.
    pub string: StringStep,
}

/// What is done with a string that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringStep {
    /// It depends on what it says, or it is no leaf.
    LookAt,
    /// It can be used as it stands.
    Verbatim,
    /// It is kept; nobody but the gateway wants it, or it is looked at on its way out.
    Keep,
}

/// How an entry of an output list is written.
#[derive(Clone, Copy, Debug)]
pub struct OutStep {
    /// Index into [`Derived::keys`](crate::Derived::keys).
    pub key: u32,
    /// The leaf that every object has there and everybody may see, whatever its type and whichever conditions hold;
    /// `None` for anything else.
    pub leaf: Option<SlotIndex>,
    /// The same for objects without lists around them.
    pub object: Option<SlotIndex>,
}

/// Keys, each once.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    keys: Vec<Key>,
    known: FastMap<Box<[u8]>, u32>,
}

impl KeyTable {
    /// The key of a member that begins with `json`, which is `"key":`.
    fn of(&mut self, json: &[u8]) -> u32 {
        if let Some(key) = self.known.get(json) {
            return *key;
        }
        let key = self.keys.len() as u32;
        self.keys.push(Key::from_json(json));
        self.known.insert(json.into(), key);
        key
    }
    fn of_name(&mut self, name: &str) -> u32 {
        self.of(&[b"\"", name.as_bytes(), b"\":"].concat())
    }
    pub(crate) fn finish(mut self) -> Vec<Key> {
        self.keys.shrink_to_fit();
        self.keys
    }
}

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
