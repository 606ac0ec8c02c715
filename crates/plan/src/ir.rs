//! The data of a plan.
//!
//! A plan describes three things.
//!
//! 1. *Where values live.* Every object-valued place of the response has a [`Layout`]: a record with numbered slots.
//!    At run time each object is one record of its layout; a slot holds nothing yet, null, raw JSON bytes of a leaf,
//!    a record, or a list of those. Slots that only serve the gateway (keys, `@requires` inputs) sit beside the
//!    client's. Records know their parent record, slot and list indexes, so client paths are walked upwards.
//! 2. *Where values come from.* Every [`Fetch`] is one HTTP request: root fields and any number of entity
//!    [`Lookup`]s. An [`ObjectShape`] says which response key of a subgraph object lands in which slot.
//! 3. *What the client sees.* Every layout has an output list ([`OutField`]) in response order with null rules.
//!
//! Invariants (checked by `verify`): ids are in range; a fetch depends on every fetch that writes a slot its
//! representations read; the fetch graph is acyclic and waves grow along its edges; mutation root fetches form a chain;
//! layouts form a tree with [`Plan::ROOT`] at its root, children after parents.

use ogive_base::{BitSet, IdVec};
pub use ogive_syntax::ast::{OperationKind, Wrapping};

use crate::{
    deferral::Deferral,
    derived::DerivedCell,
    ids::*,
    representation::{Member, Representation},
    requirement::{Claims, Granted, Requirement},
    shared::Shared,
};

/// Everything needed to answer one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Query, mutation or subscription.
    pub kind: OperationKind,
    /// Names of the subgraphs, by index.
    pub subgraphs: Vec<Box<str>>,
    /// Names of concrete object types.
    pub types: IdVec<RuntimeType, Box<str>>,
    /// Visible values of enums that leaves are checked against, sorted.
    pub enums: IdVec<EnumId, Vec<Box<str>>>,
    /// Conditions in disjunctive normal form; row 0 is `[[]]`, always true. A literal is (operation variable index,
    /// wanted boolean); indexes beyond the variables stand for [`requirements`](Self::requirements).
    pub conditions: IdVec<Cond, Vec<Vec<(u32, bool)>>>,
    /// Names of the operation's variables, by index.
    pub variables: Vec<Box<str>>,
    /// What callers must be to see some of the values (planner rule 28). One plan serves all callers: whether a caller
    /// meets a requirement is a boolean of each request, as a variable is.
    pub requirements: Vec<Requirement>,
    /// Record layouts; row 0 is the root.
    pub layouts: IdVec<LayoutId, Layout>,
    /// Shapes of subgraph objects.
    pub shapes: IdVec<ShapeId, ObjectShape>,
    /// Requests in order of wave, then subgraph.
    pub fetches: IdVec<FetchId, Fetch>,
    /// Number of fields the gateway answers itself (introspection); values are handed to the executor by index.
    pub locals: u32,
    /// What may be answered later; `None` if the operation defers nothing.
    pub deferral: Option<Box<Deferral>>,
    /// What follows from all this ([`Plan::derived`]).
    pub derived: DerivedCell,
}

impl Plan {
    /// The root layout.
    pub const ROOT: LayoutId = LayoutId(0);
    /// Number of fields above a place.
    pub fn depth(&self, layout: LayoutId) -> u32 {
        let mut depth = 0;
        let mut at = self.layouts.get(layout).and_then(|l| l.parent);
        // Parents come before children; an end where they do not.
        while let Some((parent, _)) = at.filter(|_| (depth as usize) < self.layouts.len()) {
            depth += 1;
            at = self.layouts.get(parent).and_then(|l| l.parent);
        }
        depth
    }
    /// Which of the plan's requirements a caller meets.
    pub fn granted_to(&self, claims: &Claims) -> Granted {
        let rows = (0..).zip(&self.requirements);
        let met = rows.filter(|(_, requirement)| requirement.is_met_by(claims));
        met.map(|(number, _)| number).collect()
    }
    /// What a caller sees in place of the value of a field for which `granted` does not hold: the mask of the first requirement
    /// that is not met, if all that are not met have one.
    pub fn mask(&self, granted: Cond, met: &Granted) -> Option<&str> {
        let [asked] = self.conditions.get(granted)?.as_slice() else {
            return None;
        };
        let n_variables = self.variables.len() as u32;
        let mut mask = None;
        for (literal, _) in asked {
            let number = literal.checked_sub(n_variables)?;
            if !met.contains(number) {
                let row = self.requirements.get(number as usize)?;
                let of_row = row.mask.as_deref()?;
                mask.get_or_insert(of_row);
            }
        }
        mask
    }
}

impl Granted {
    /// Every requirement: nothing is kept from the caller.
    pub fn everything(plan: &Plan) -> Self {
        (0..plan.requirements.len() as u32).collect()
    }
}

/// The record of one object-valued place.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Layout and slot this hangs below; `None` for the root.
    pub parent: Option<(LayoutId, SlotIndex)>,
    /// Concrete types its objects can have; none if no subgraph can answer the place. An object of another type is
    /// treated as null with an error.
    pub types: BitSet,
    /// The values it can hold.
    pub slots: Shared<Slot>,
    /// What the client sees of it, in order of appearance.
    pub output: Shared<OutField>,
    /// Types whose objects only some callers may see, disjoint; for all others such an object is null with an error.
    pub restricted: Vec<RestrictedTypes>,
}

/// Concrete types whose objects only some callers may see.
#[derive(Clone, Debug, PartialEq)]
pub struct RestrictedTypes {
    /// The types.
    pub types: BitSet,
    /// Holds for callers that may see them.
    pub granted: Cond,
}

impl Layout {
    /// The only concrete type, if there is only one.
    pub fn only_type(&self) -> Option<RuntimeType> {
        let first = self.types.first()?;
        (self.types.len() == 1).then_some(RuntimeType(first))
    }
}

/// One value of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Field name, for plan text.
    pub name: Box<str>,
    /// The client's response key; `None` for a value only the gateway needs.
    pub client_key: Option<Box<str>>,
    /// Number of lists around the value.
    pub lists: u8,
    /// The layout of its objects, for composite fields.
    pub child: Option<LayoutId>,
    /// For leaves: equal only for slots of the same field of the same type with the same arguments, wherever they are.
    /// 0 says nothing.
    pub value: u32,
}

/// One appearance of a field in the response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutField {
    /// `"key":` as JSON bytes, escaped.
    pub key_json: Box<[u8]>,
    /// The response key.
    pub key: Box<str>,
    /// Where the value comes from.
    pub source: OutSource,
    /// Concrete types that have it; `None` for all types of the layout.
    pub types: Option<BitSet>,
    /// Emitted only if this holds.
    pub cond: Cond,
    /// Holds for callers that may see the value; for all others it is null with an error, whatever its slot holds.
    pub granted: Cond,
    /// Whether an object of this layout can have another entry with the same key, so that an emitted one must be
    /// remembered.
    pub repeated: bool,
    /// Lists and non-nulls of the client schema, for null propagation (specification 6.4.4).
    pub wrapping: Wrapping,
    /// `Type.field` of the client schema, for error messages.
    pub coordinate: Box<str>,
}

/// Where an output value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutSource {
    /// A leaf in a slot, checked against its kind.
    Leaf(SlotIndex, LeafKind),
    /// An object in a slot; its record's layout has the output list.
    Object(SlotIndex),
    /// The concrete type's name.
    Typename,
    /// A value the gateway computed (introspection), by index.
    Local(u32),
    /// Null, and nobody is asked: a field of concrete types that not every subgraph knows which may serve the object.
    Null,
}

/// How a leaf is checked on its way out (specification 3.5, result coercion).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafKind {
    /// 32-bit integer.
    Int,
    /// Any JSON number.
    Float,
    /// String.
    String,
    /// Boolean.
    Boolean,
    /// String or integer, passed through byte-exact.
    Id,
    /// One of the visible values.
    Enum(EnumId),
    /// Custom scalar: any JSON.
    Any,
}

/// One subgraph request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    /// Index into [`Plan::subgraphs`].
    pub subgraph: u32,
    /// 1 + the longest chain of fetches before it.
    pub wave: u32,
    /// Fetches that must be complete first.
    pub dependencies: Vec<FetchId>,
    /// Fetches that wait for this one.
    pub successors: Vec<FetchId>,
    /// What kind of operation the request is.
    pub kind: OperationKind,
    /// The GraphQL text of the request in pieces, each already escaped for a JSON string.
    pub segments: Vec<Segment>,
    /// Operation variables the text uses, each with its gates; sent only if a gate is open and the client gave a value.
    pub variables: Vec<VariableUse>,
    /// Root fields: shape of the `data` object itself, landing in the root record.
    pub root: Option<RootPart>,
    /// Entity look-ups.
    pub lookups: Vec<Lookup>,
}

/// Root fields of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct RootPart {
    /// Asked only if this holds.
    pub cond: Cond,
    /// Shape of `data`, of layout [`Plan::ROOT`].
    pub shape: ShapeId,
}

/// A piece of request text.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// JSON-escaped text.
    pub text: Box<str>,
    /// Written if any gate is open; always if there is none.
    pub gates: Vec<Gate>,
}

/// Open if the part of the request that it names is asked, and its condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Index into [`Fetch::lookups`], whose look-up must have representations to send, or [`Gate::ROOT`]; `None` if the
    /// text belongs to no part.
    pub lookup: Option<u16>,
    /// The condition.
    pub cond: Cond,
}

impl Gate {
    /// Stands for the root fields, which a request of several parts may be sent without.
    pub const ROOT: u16 = u16::MAX;
}

/// An operation variable used by a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableUse {
    /// Index into [`Plan::variables`].
    pub variable: u32,
    /// Sent if any gate is open; always if there is none.
    pub gates: Vec<Gate>,
}

/// One `_entities` field of a request: a list of representations gathered from any number of places.
/// Equal representations are sent once.
///
/// Or, with empty names, fields of the query root itself that are wanted in the middle of the response (*re-entry*,
/// planner rule 54): asked once if there is any object to fill, and the whole of `data` lands in each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// Response key of the `_entities` field; empty for a re-entry.
    pub response_key: Box<str>,
    /// Name of its representations variable; empty for a re-entry.
    pub variable: Box<str>,
    /// Where representations come from and answers go; those of a re-entry have no members.
    pub targets: Vec<Target>,
}

impl Lookup {
    /// Whether it asks fields of the query root, not `_entities`.
    pub fn is_reentry(&self) -> bool {
        self.variable.is_empty()
    }
}

/// One place whose records are looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// All records of this layout...
    pub layout: LayoutId,
    /// ... of these concrete types (`None`: all) ...
    pub types: Option<BitSet>,
    /// ... or of a type that is not known yet, because they come from an `@interfaceObject` ...
    pub untyped: bool,
    /// ... if this holds.
    pub cond: Cond,
    /// How to represent a record: the first alternative whose key members are all present and not null. A record for
    /// which there is none is not sent (planner rules 2 and 7).
    pub representations: Shared<Representation>,
    /// Where the answered object's values land, in the same record.
    pub shape: ShapeId,
    /// Equal for targets that ask one subgraph exactly the same of an entity, so that one answer serves both.
    pub selection: u32,
    /// Variables whose values come from objects above the record (`@fromContext`, planner rule 29). Records with
    /// different values are looked up by different requests.
    pub contexts: Vec<ContextValue>,
}

impl Target {
    /// Whether another target has values from above for the same variables, under the same conditions. All targets of a
    /// look-up do: its request defines the variables, so every object of the look-up needs values for them.
    pub fn has_contexts_of(&self, other: &Target) -> bool {
        let same = |(one, other): (&ContextValue, &ContextValue)| {
            one.variable == other.variable && one.cond == other.cond
        };
        let mut pairs = self.contexts.iter().zip(&other.contexts);
        self.contexts.len() == other.contexts.len() && pairs.all(same)
    }
}

/// A variable that is filled from an object above the one that is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextValue {
    /// Name of the variable.
    pub variable: Box<str>,
    /// The place of the object above.
    pub layout: LayoutId,
    /// The way to the value: on each level the first member whose types fit.
    pub members: Vec<Member>,
    /// Whether null is no value: a record without one is not looked up.
    pub required: bool,
    /// Used only if this holds.
    pub cond: Cond,
}

/// Where the values of one subgraph object land.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectShape {
    /// The record's layout.
    pub layout: LayoutId,
    /// Response key that carries the concrete type's name; `None` if the layout has only one type or, for a look-up,
    /// the record's type is known already.
    pub typename_key: Option<Box<str>>,
    /// Names of `@interfaceObject`s that the subgraph may answer there: they are no concrete types, so the record's
    /// type stays unknown.
    pub interface_objects: Shared<Box<str>>,
    /// Response keys, in the order in which the subgraph must answer them.
    pub fields: Shared<ShapeField>,
}

/// One response key of a subgraph object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeField {
    /// The response key in the subgraph's answer.
    pub key: Box<str>,
    /// Where it lands.
    pub slot: SlotIndex,
    /// Concrete types for which the key means this slot; `None` for all.
    pub types: Option<BitSet>,
    /// Whether objects whose concrete type is not known yet have it too.
    pub untyped: bool,
    /// Shape of its objects; `None` for a leaf.
    pub shape: Option<ShapeId>,
}
