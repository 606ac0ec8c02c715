//! What the executor wants to know of a plan beyond its data: tables that are worked out from it once
//! ([`derive`](crate::derive)).
//!
//! Derived data is never compared, printed or encoded: it says nothing the plan does not say. The exceptions are
//! [`Derived::order`] and [`Derived::sizes`], which are learned from answers, and hints only.

use std::{fmt, sync::OnceLock};

use ogive_base::IdVec;
use ogive_json::{Key, Pattern, PatternValue};

use crate::{ids::*, order::LearnedOrder, representation::Representation, sizes::LearnedSizes};

/// A [`Derived`] that is worked out when first asked for.
#[derive(Default)]
pub struct DerivedCell(pub(crate) OnceLock<Box<Derived>>);

impl DerivedCell {
    /// What was worked out already.
    pub(crate) fn known(&self) -> Option<&Derived> {
        self.0.get().map(|derived| &**derived)
    }
}

impl Derived {
    /// What was worked out already.
    pub(crate) fn known_reuse(&self) -> Option<&Reusable> {
        self.reuse.get()
    }
}

impl Clone for DerivedCell {
    /// Empty: a copy may be changed.
    fn clone(&self) -> Self {
        DerivedCell::default()
    }
}
impl PartialEq for DerivedCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl fmt::Debug for DerivedCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Derived {
    /// What values that are used as they stand look like.
    pub pattern: Pattern,
    /// By shape.
    pub shapes: IdVec<ShapeId, ShapeFacts>,
    /// By fetch, look-up and target: whether another fetch has a target that asks the same.
    pub asked_twice: Vec<Vec<Vec<bool>>>,
    /// Whether there is any such.
    pub asks_twice: bool,
    /// By layout: the only concrete type, if there is only one.
    pub only_type: IdVec<LayoutId, Option<RuntimeType>>,
    /// By layout: for every output entry the entry before it with the same key; empty where no key is repeated.
    pub earlier: IdVec<LayoutId, Vec<Option<u32>>>,
    /// Keys that are compared or written, each once.
    pub keys: Vec<Key>,
    /// By shape: what is read, step by step.
    pub reads: IdVec<ShapeId, ShapeSteps>,
    /// By layout and output entry: what is written.
    pub outputs: IdVec<LayoutId, Box<[OutStep]>>,
    /// By fetch and look-up.
    pub lookups: IdVec<FetchId, Box<[LookupFacts]>>,
    /// In which order members really come.
    pub order: LearnedOrder,
    /// How much room executions take.
    pub sizes: LearnedSizes,
    /// Worked out when first asked for.
    pub(crate) reuse: OnceLock<Reusable>,
}

/// What could be reused within one execution.
#[derive(Debug)]
pub struct Reusable {
    /// Which look-ups could be answered from what other places hold.
    pub sources: ReuseSources,
    /// Which fetches could be sent in two parts.
    pub prefetches: Vec<Prefetch>,
}

/// What is known of a shape.
#[derive(Debug, Default)]
pub struct ShapeFacts {
    /// By field.
    pub fields: Vec<FieldFacts>,
    /// Equal for shapes whose objects are read alike: same keys, same values, no difference by type. An entity that
    /// several places ask for is read once for all shapes of a class.
    pub class: u32,
    /// Whether no field depends on the concrete type.
    pub untyped: bool,
}

/// What is known of a field of a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldFacts {
    /// How the value looks if it can be used as it stands, lists and nulls included; `None` if it never can.
    pub verbatim: Option<PatternValue>,
    /// Whether the value has objects in it.
    pub composite: bool,
}

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

/// What is known of a look-up.
#[derive(Debug)]
pub struct LookupFacts {
    /// The key of its value in an answer; `None` if it has none of its own.
    pub key: Option<Key>,
    /// Its variable as it stands in a request: `"name":`.
    pub variable: Box<[u8]>,
    /// How its representations are told apart, if all of them have nothing but leaves and nothing else depends on what
    /// they write.
    pub programs: Option<Programs>,
}

/// The alternatives of all targets of a look-up. Those that write the same members have the same number.
#[derive(Debug, Default)]
pub struct Programs {
    /// By target and alternative.
    pub numbers: Box<[Box<[u32]>]>,
    /// By number: whether the type of the record shows.
    pub by_type: Box<[bool]>,
    /// By target: what stands before the only value there is, if its representations have one member that is written for
    /// records of all types, and only one type name.
    pub prefixes: Box<[Option<Prefix>]>,
}

/// A representation of one leaf.
#[derive(Debug)]
pub struct Prefix {
    /// `{"__typename":"Type","name":`.
    pub text: Key,
    /// Where the value is.
    pub slot: SlotIndex,
    /// The type a record must be known to have; `None` for any, and none.
    pub ty: Option<RuntimeType>,
}

/// A place whose records may hold what a look-up would ask.
#[derive(Clone, Debug, PartialEq)]
pub struct ReuseSource {
    /// The place.
    pub layout: LayoutId,
    /// The fetches that bring the values, in order. All must have answered, and without errors.
    pub fetches: Vec<FetchId>,
    /// How its records would be represented if they were looked up.
    pub representation: Representation,
    /// Slots of the values: here, and in the target's layout.
    pub values: Vec<(SlotIndex, SlotIndex)>,
}

/// The reuse sources of all targets.
#[derive(Debug, Default)]
pub struct ReuseSources {
    /// By fetch, look-up and target; empty if there is none.
    pub(crate) targets: IdVec<FetchId, Vec<Vec<Vec<ReuseSource>>>>,
}

impl ReuseSources {
    /// All of them, by fetch, look-up and target.
    pub(crate) fn table(&self) -> &IdVec<FetchId, Vec<Vec<Vec<ReuseSource>>>> {
        &self.targets
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
    /// The reuse sources of one target, by fetch, index of the look-up and index of the target.
    pub fn of(&self, fetch: FetchId, lookup: usize, target: usize) -> &[ReuseSource] {
        let lookups = self.targets.get(fetch);
        let targets = lookups.and_then(|lookups| lookups.get(lookup));
        let reuse_sources = targets.and_then(|targets| targets.get(target));
        reuse_sources.map_or(&[], Vec::as_slice)
    }
}

/// A part of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// The fetch.
    pub fetch: FetchId,
    /// What must be complete before the part can be sent.
    pub dependencies: Vec<FetchId>,
    /// By look-up and target: whether it belongs to the part.
    pub targets: Vec<Vec<bool>>,
}
