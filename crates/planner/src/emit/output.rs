//! Layouts: the slots of each place, and what the client sees of it.

use std::borrow::Cow;

use ogive_base::{BitSet, IdVec, Symbol, id::Id as _};
use ogive_operation::{FieldNodeId, FieldRef};
use ogive_plan::{EnumId, Layout, LayoutId, LeafKind, OutField, OutSource, Slot, SlotIndex};
use ogive_schema::{TypeId, TypeKind};

use crate::{
    emit::{Emitter, plan_cond, print, tables::Positions},
    tree::{PlaceId, Tree},
};

/// Places are layouts, row by row.
pub(crate) fn layout_id(place: PlaceId) -> LayoutId {
    LayoutId::from_usize(place.index())
}

impl Emitter<'_> {
    pub(crate) fn layouts(&mut self) -> IdVec<LayoutId, Layout> {
        let tree = self.tree;
        let mut out = IdVec::new();
        for (id, place) in tree.places.iter() {
            let parent = place.edge.map(|e| {
                let edge = &tree.facts[e];
                (layout_id(tree.nodes[edge.node].place), edge.slot)
            });
            let types = self.runtime_set(&self.possible[id].clone());
            let slots = self.slots(id);
            let output = self.output(id);
            out.push(Layout {
                parent,
                types,
                slots,
                output,
            });
        }
        out
    }

    fn slots(&self, place: PlaceId) -> Vec<Slot> {
        let tree = self.tree;
        let empty = Slot {
            name: "".into(),
            client_key: None,
            lists: 0,
            child: None,
        };
        let mut slots = vec![empty; tree.places[place].slots as usize];
        for node in &tree.places[place].nodes {
            for fact in &tree.nodes[*node].facts {
                let fact = &tree.facts[*fact];
                let client_key = fact
                    .client
                    .map(|c| tree.op.keys[tree.op.fields[c].key].into());
                slots[fact.slot as usize] = Slot {
                    name: tree.schema().field_name(fact.field).into(),
                    client_key,
                    lists: fact.ty.wrapping.lists(),
                    child: fact.child.map(layout_id),
                };
            }
        }
        slots
    }

    fn output(&mut self, place: PlaceId) -> Vec<OutField> {
        let tree = self.tree;
        let Some(selection) = tree.places[place].selection else {
            return Vec::new();
        };
        let set = &tree.op.selection_sets[selection];
        let sources = sources(tree, place);
        let mut keys: Positions<Symbol> = Positions::default();
        let mut is_repeated = false;
        let mut out: Vec<OutField> = Vec::with_capacity(set.order.len());
        for occurrence in &set.order {
            let node = &tree.op.fields[occurrence.field];
            let key = &tree.op.keys[node.key];
            let mut push =
                |this: &mut Self, source: OutSource, types: &BitSet, coordinate: Box<str>| {
                    let possible = &this.possible[place];
                    let everywhere =
                        possible.is_subset(types) && possible.is_subset(&occurrence.types);
                    let types = (!everywhere).then(|| {
                        let types = types.intersection(&occurrence.types);
                        types.intersection(possible)
                    });
                    if possible.is_empty() || types.as_ref().is_some_and(BitSet::is_empty) {
                        return;
                    }
                    match keys.find(node.key) {
                        Some(_) => is_repeated = true,
                        None => {
                            keys.push(node.key);
                        }
                    }
                    out.push(OutField {
                        key_json: print::key_json(key),
                        key: key.into(),
                        source,
                        types: types.map(|types| this.runtime_set(&types)),
                        cond: plan_cond(occurrence.cond),
                        repeated: false,
                        wrapping: node.ty.wrapping,
                        coordinate,
                    });
                };
            match node.field {
                FieldRef::Typename => {
                    let coordinate = format!("{}.__typename", tree.schema().type_name(set.ty));
                    push(self, OutSource::Typename, &node.types, coordinate.into());
                }
                FieldRef::Schema | FieldRef::Type => {
                    let local = tree
                        .locals
                        .iter()
                        .position(|l| *l == occurrence.field)
                        .unwrap_or(0);
                    let name = if node.field == FieldRef::Schema {
                        "Query.__schema"
                    } else {
                        "Query.__type"
                    };
                    push(
                        self,
                        OutSource::Local(local as u32),
                        &node.types,
                        name.into(),
                    );
                }
                FieldRef::Field(row) => {
                    let coordinate: Box<str> = tree.schema().field_coordinate(row).into();
                    for (slot, types) in sources.of(occurrence.field) {
                        let source = if node.selection_set.is_some() {
                            OutSource::Object(*slot)
                        } else {
                            OutSource::Leaf(*slot, self.leaf_kind(node.ty.id))
                        };
                        push(self, source, types, coordinate.clone());
                    }
                }
            }
        }
        if is_repeated {
            mark_repeated(&mut out);
        }
        out
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

/// Slots that hold the client's fields, with the concrete types each serves.
fn sources<'a>(tree: &'a Tree<'_>, place: PlaceId) -> Sources<'a> {
    let mut out = Sources::default();
    for node in &tree.places[place].nodes {
        let node = &tree.nodes[*node];
        for fact in &node.facts {
            let fact = &tree.facts[*fact];
            if let Some(client) = fact.client {
                out.add(client, fact.slot, &node.types);
            }
        }
    }
    out
}

/// By client field: slots and the concrete types each serves, in order of classes.
#[derive(Default)]
struct Sources<'a> {
    at: Positions<FieldNodeId>,
    rows: Vec<Vec<(SlotIndex, Cow<'a, BitSet>)>>,
}

impl<'a> Sources<'a> {
    /// Classes that share the slot of a leaf come one after another.
    fn add(&mut self, field: FieldNodeId, slot: SlotIndex, types: &'a BitSet) {
        let Some(at) = self.at.find(field) else {
            self.at.push(field);
            self.rows.push(vec![(slot, Cow::Borrowed(types))]);
            return;
        };
        match self.rows[at].last_mut() {
            Some((last, have)) if *last == slot => {
                have.to_mut().union_with(types);
            }
            _ => self.rows[at].push((slot, Cow::Borrowed(types))),
        }
    }
    fn of(&self, field: FieldNodeId) -> &[(SlotIndex, Cow<'a, BitSet>)] {
        self.at
            .find(field)
            .map_or(&[][..], |at| self.rows[at].as_slice())
    }
}

/// Marks entries that share their key with another entry some object can have both of.
fn mark_repeated(fields: &mut [OutField]) {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_unstable_by(|a, b| (&fields[*a].key, a).cmp(&(&fields[*b].key, b)));
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
