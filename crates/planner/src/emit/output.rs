//! Layouts: the slots of each place, and what the client sees of it.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
};

use ogive_base::{BitSet, FastMap, IdVec, Symbol, id::Id as _};
use ogive_operation::{CondId, FieldNodeId, FieldRef};
use ogive_plan::{
    Deferral, DeferredOutput, EnumId, Layout, LayoutId, LeafKind, OutField, OutSource,
    RestrictedTypes, Shared, Slot, SlotIndex, StreamOutput, Wrapping,
};
use ogive_schema::{FieldId, TypeId, TypeKind};

use crate::{
    emit::{Emitter, plan_cond, print},
    tree::{FactId, PlaceId, Tree},
};

/// Places are layouts, row by row.
pub(crate) fn layout_id(place: PlaceId) -> LayoutId {
    LayoutId::from_usize(place.index())
}

/// Numbers for fields with their arguments ([`Slot::value`]).
#[derive(Default)]
struct Values {
    /// By field: its first fact, and the one after it with other arguments, and so on.
    first: FastMap<FieldId, FactId>,
    next: FastMap<FactId, FactId>,
}

impl Values {
    /// Most different arguments of one field that are compared; beyond, numbers are never shared.
    const ARGUMENTS_MAX: usize = 8;

    fn of(&mut self, tree: &Tree<'_>, id: FactId) -> u32 {
        let fact = &tree.facts[id];
        let mut known = *self.first.entry(fact.field).or_insert(id);
        for _ in 0..Self::ARGUMENTS_MAX {
            if known == id || tree.facts[known].has_args(&fact.args) {
                return known.0 + 1;
            }
            known = *self.next.entry(known).or_insert(id);
        }
        id.0 + 1
    }
}

impl Emitter<'_> {
    pub(crate) fn layouts(&mut self) -> IdVec<LayoutId, Layout> {
        let tree = self.tree;
        let mut out = IdVec::new();
        let mut values = Values::default();
        for (id, place) in tree.places.iter() {
            let parent = place.edge.map(|e| {
                let edge = &tree.facts[e];
                (layout_id(tree.nodes[edge.node].place), edge.slot)
            });
            let types = self.runtime_set(&self.possible[id].clone());
            let slots = self.slots(id, &mut values);
            let output = self.output(id);
            let restricted = self.restricted(id);
            out.push(Layout {
                parent,
                types,
                slots,
                output,
                restricted,
            });
        }
        out
    }

    fn slots(&mut self, place: PlaceId, values: &mut Values) -> Shared<Slot> {
        let tree = self.tree;
        let mut keys = std::mem::take(&mut self.slot_keys);
        keys.clear();
        keys.resize(tree.places[place].slots as usize, SlotKey::default());
        for node in &tree.places[place].nodes {
            for id in &tree.nodes[*node].facts {
                let fact = &tree.facts[*id];
                if fact.is_type {
                    continue;
                }
                let client_key = fact.client.map(|c| tree.op.fields[c].key);
                let key = &mut keys[fact.slot as usize];
                let value = fact.child.map_or_else(|| values.of(tree, *id), |_| 0);
                *key = SlotKey {
                    field: Some(fact.field),
                    // A leaf of several types may be the client's for some of them only.
                    client_key: client_key.or(key.client_key),
                    child: fact.child,
                    // Types that differ in what the slot holds have nothing to share.
                    value: match key.field {
                        Some(_) if key.value != value => 0,
                        _ => value,
                    },
                };
            }
        }
        let make = || {
            let slots = keys.iter().map(|key| Slot {
                name: key.field.map_or("", |f| tree.schema().field_name(f)).into(),
                client_key: key.client_key.map(|key| tree.op.keys[key].into()),
                lists: (key.field).map_or(0, |f| tree.schema().fields[f].ty.wrapping.lists()),
                child: key.child.map(layout_id),
                value: key.value,
            });
            slots.collect()
        };
        let slots = self.lists.slots.get_or_make(&keys, make);
        self.slot_keys = keys;
        slots
    }

    fn output(&mut self, place: PlaceId) -> Shared<OutField> {
        let tree = self.tree;
        let Some(selection) = tree.places[place].selection else {
            return Shared::default();
        };
        let set = &tree.op.selection_sets[selection];
        let sources = sources(tree, place, std::mem::take(&mut self.sources));
        let mut is_repeated = false;
        let mut rows: Vec<OutRow> = std::mem::take(&mut self.out_rows);
        rows.clear();
        rows.reserve(set.order.len());
        for occurrence in &set.order {
            let node = &tree.op.fields[occurrence.field];
            let mut push = |this: &mut Self, source: OutSource, types: &BitSet| {
                let possible = &this.possible[place];
                let everywhere = possible.is_subset(types) && possible.is_subset(&occurrence.types);
                let types = (!everywhere).then(|| {
                    let types = types.intersection(&occurrence.types);
                    types.intersection(possible)
                });
                if possible.is_empty() || types.as_ref().is_some_and(BitSet::is_empty) {
                    return;
                }
                let seen = &mut this.keys_seen[node.key.index()];
                is_repeated |= std::mem::replace(seen, place.0 + 1) == place.0 + 1;
                rows.push(OutRow {
                    key: node.key,
                    field: node.field,
                    of: set.ty,
                    source,
                    types: types.map(|types| this.runtime_set(&types)),
                    cond: occurrence.cond,
                    granted: node.granted,
                    repeated: false,
                    wrapping: node.ty.wrapping,
                });
                let groups = tree.op.deferral.fields.get(&occurrence.field);
                let parts = &this.schedule.parts;
                let part = groups.and_then(|groups| parts.binary_search(groups).ok());
                if part.is_some() || occurrence.defer.is_some() {
                    this.deferred.push(DeferredOutput {
                        layout: layout_id(place),
                        entry: rows.len() as u32 - 1,
                        part: part.map_or(Deferral::PRIMARY, |part| part as u32),
                        group: occurrence.defer.map(|group| group.0),
                    });
                }
                if let Some(stream) = tree.op.deferral.streams.get(&occurrence.field) {
                    this.streamed.push(StreamOutput {
                        layout: layout_id(place),
                        entry: rows.len() as u32 - 1,
                        label: stream.label.clone(),
                        initial_count: stream.initial_count,
                        initial_variable: stream.initial_variable,
                        variable: stream.variable,
                    });
                }
            };
            match node.field {
                FieldRef::Typename => push(self, OutSource::Typename, &node.types),
                FieldRef::Schema | FieldRef::Type => {
                    let is_it = |l: &FieldNodeId| *l == occurrence.field;
                    let local = tree.locals.iter().position(is_it).unwrap_or(0);
                    push(self, OutSource::Local(local as u32), &node.types);
                }
                FieldRef::Field(_) => {
                    for (_, slot, types) in sources.of(occurrence.field) {
                        let source = if *slot == SlotIndex::MAX {
                            OutSource::Null
                        } else if node.selection_set.is_some() {
                            OutSource::Object(*slot)
                        } else {
                            OutSource::Leaf(*slot, self.leaf_kind(node.ty.id))
                        };
                        push(self, source, types);
                    }
                }
            }
        }
        if is_repeated {
            mark_repeated(&mut rows);
        }
        let coordinates = &mut self.coordinates;
        let make = || {
            rows.iter()
                .map(|row| row.field(tree, coordinates))
                .collect()
        };
        let output = self.lists.output.get_or_make(&rows, make);
        (self.out_rows, self.sources) = (rows, sources.0);
        output
    }

    fn restricted(&mut self, place: PlaceId) -> Vec<RestrictedTypes> {
        let tree = self.tree;
        let Some(selection) = tree.places[place].selection else {
            return Vec::new();
        };
        let rows = tree.op.selection_sets[selection].restricted.iter();
        let possible =
            rows.map(|(types, granted)| (types.intersection(&self.possible[place]), granted));
        let possible: Vec<_> = possible.filter(|(types, _)| !types.is_empty()).collect();
        let restricted = possible
            .into_iter()
            .map(|(types, granted)| RestrictedTypes {
                types: self.runtime_set(&types),
                granted: plan_cond(*granted),
            });
        restricted.collect()
    }

    fn leaf_kind(&mut self, ty: TypeId) -> LeafKind {
        let api = &self.tree.supergraph.api;
        match (api.types[ty].kind, api.type_name(ty)) {
            (TypeKind::Enum, _) => LeafKind::Enum(self.enum_id(ty)),
            (_, "Int") => LeafKind::Int,
            (_, "Float") => LeafKind::Float,
            (_, "String") => LeafKind::String,
            (_, "Boolean") => LeafKind::Boolean,
            (_, "ID") => LeafKind::Id,
            _ => LeafKind::Any,
        }
    }

    fn enum_id(&mut self, ty: TypeId) -> EnumId {
        if let Some(found) = self.enum_ids.get(&ty) {
            return *found;
        }
        let api = &self.tree.supergraph.api;
        let mut values: Vec<Box<str>> = api.types[ty]
            .enum_values
            .iter()
            .map(|v| api.name(api.enum_values[*v].name).into())
            .collect();
        values.sort();
        let id = self.enums.push(values);
        self.enum_ids.insert(ty, id);
        id
    }
}

/// Slots that hold the client's fields, with the concrete types each serves, the last one for those that are null;
/// `rows` is room for them.
fn sources<'a>(tree: &'a Tree<'_>, place: PlaceId, mut rows: Vec<Source<'a>>) -> Sources<'a> {
    let nodes = &tree.places[place].nodes;
    let facts = nodes.iter().map(|node| tree.nodes[*node].facts.len()).sum();
    rows.clear();
    rows.reserve(facts);
    for node in nodes {
        let node = &tree.nodes[*node];
        for fact in &node.facts {
            let fact = &tree.facts[*fact];
            if let Some(client) = fact.client {
                let slot = if fact.is_uncertain {
                    SlotIndex::MAX
                } else {
                    fact.slot
                };
                rows.push((client, slot, Cow::Borrowed(&node.types)));
            }
        }
    }
    if nodes.len() > 1 {
        // Stable: classes that share the slot of a leaf come one after another.
        rows.sort_by_key(|(field, _, _)| *field);
        rows.dedup_by(|next, row| {
            let is_same = (row.0, row.1) == (next.0, next.1);
            if is_same {
                row.2.to_mut().union_with(&next.2);
            }
            is_same
        });
    }
    debug_assert!(rows.is_sorted_by_key(|(field, _, _)| *field));
    Sources(rows)
}

/// What a slot is made of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SlotKey {
    field: Option<FieldId>,
    client_key: Option<Symbol>,
    child: Option<PlaceId>,
    /// [`Slot::value`].
    value: u32,
}

impl Hash for SlotKey {
    /// One word: the slots of every place are hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let field = self.field.map_or(0, |f| u64::from(f.0) + 1);
        let key = self.client_key.map_or(0, |k| u64::from(k.0) + 1);
        let child = self.child.map_or(0, |c| u64::from(c.0) + 1);
        state.write_u64(field << 44 ^ key << 24 ^ child);
    }
}

impl Hash for OutRow {
    /// One word of what mostly differs: the output of every place is hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let source = match self.source {
            OutSource::Leaf(slot, _) => u64::from(slot) << 1,
            OutSource::Object(slot) => u64::from(slot) << 1 | 1,
            OutSource::Typename => 1 << 20,
            OutSource::Local(local) => 1 << 21 ^ u64::from(local),
            OutSource::Null => 1 << 22,
        };
        state.write_u64(u64::from(self.key.0) << 32 ^ source);
    }
}

/// What an output field is made of.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OutRow {
    key: Symbol,
    field: FieldRef,
    /// Type of the selection set.
    of: TypeId,
    source: OutSource,
    types: Option<BitSet>,
    cond: CondId,
    granted: CondId,
    repeated: bool,
    wrapping: Wrapping,
}

impl OutRow {
    fn field(&self, tree: &Tree<'_>, known: &mut FastMap<FieldId, Box<str>>) -> OutField {
        let key = &tree.op.keys[self.key];
        let coordinate = match self.field {
            FieldRef::Typename => format!("{}.__typename", tree.schema().type_name(self.of)).into(),
            FieldRef::Schema => "Query.__schema".into(),
            FieldRef::Type => "Query.__type".into(),
            FieldRef::Field(row) => known
                .entry(row)
                .or_insert_with(|| tree.schema().field_coordinate(row).into())
                .clone(),
        };
        OutField {
            key_json: print::key_json(key),
            key: key.into(),
            source: self.source.clone(),
            types: self.types.clone(),
            cond: plan_cond(self.cond),
            granted: plan_cond(self.granted),
            repeated: self.repeated,
            wrapping: self.wrapping,
            coordinate,
        }
    }
}

/// A client's field, a slot that holds it, and the concrete types it serves there.
pub(crate) type Source<'a> = (FieldNodeId, SlotIndex, Cow<'a, BitSet>);

/// Sorted by client field, then in order of classes.
struct Sources<'a>(Vec<Source<'a>>);

impl<'a> Sources<'a> {
    fn of(&self, field: FieldNodeId) -> &[Source<'a>] {
        let start = self.0.partition_point(|(of, _, _)| *of < field);
        let rest = &self.0[start..];
        let end = rest.partition_point(|(of, _, _)| *of == field);
        &rest[..end]
    }
}

/// Marks entries that share their key with another entry some object can have both of.
fn mark_repeated(fields: &mut [OutRow]) {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_unstable_by_key(|i| (fields[*i].key, *i));
    let mut repeated: Vec<usize> = Vec::new();
    for rivals in order.chunk_by(|a, b| fields[*a].key == fields[*b].key) {
        if rivals.len() < 2 {
            continue;
        }
        // Types that one entry has, and types that several have.
        let (mut once, mut twice) = (BitSet::new(), BitSet::new());
        let mut everywhere = 0;
        for i in rivals {
            match &fields[*i].types {
                Some(types) => {
                    twice.union_with(&once.intersection(types));
                    once.union_with(types);
                }
                None => everywhere += 1,
            }
        }
        repeated.extend(rivals.iter().filter(|i| match &fields[**i].types {
            Some(types) => everywhere > 0 || types.intersects(&twice),
            None => true,
        }));
    }
    for i in repeated {
        fields[i].repeated = true;
    }
}
