//! Layouts: the slots of each place, and what the client sees of it.

use ogive_base::{BitSet, FastMap, IdVec, id::Id as _};
use ogive_operation::{FieldNodeId, FieldRef};
use ogive_plan::{EnumId, Layout, LayoutId, LeafKind, OutField, OutSource, Slot, SlotIndex};
use ogive_schema::{TypeId, TypeKind};

use crate::{
    emit::{Emitter, plan_cond, print},
    tree::{FactId, PlaceId},
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
        let mut out: Vec<OutField> = Vec::new();
        for occurrence in &set.order {
            let node = &tree.op.fields[occurrence.field];
            let key = &tree.op.keys[node.key];
            let mut push =
                |this: &mut Self, source: OutSource, types: &BitSet, coordinate: Box<str>| {
                    let types = types
                        .intersection(&occurrence.types)
                        .intersection(&this.possible[place]);
                    if types.is_empty() {
                        return;
                    }
                    let everywhere = this.possible[place].is_subset(&types);
                    out.push(OutField {
                        key_json: print::key_json(key),
                        key: key.into(),
                        source,
                        types: (!everywhere).then(|| this.runtime_set(&types)),
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
                    for (slot, types) in self.sources(place, occurrence.field) {
                        let source = if node.selection_set.is_some() {
                            OutSource::Object(slot)
                        } else {
                            OutSource::Leaf(slot, self.leaf_kind(node.ty.id))
                        };
                        push(self, source, &types, coordinate.clone());
                    }
                }
            }
        }
        mark_repeated(&mut out);
        out
    }

    /// Slots that hold a client's field, with the concrete types each serves.
    fn sources(&self, place: PlaceId, field: FieldNodeId) -> Vec<(SlotIndex, BitSet)> {
        let tree = self.tree;
        let mut out: Vec<(SlotIndex, BitSet)> = Vec::new();
        for node in &tree.places[place].nodes {
            let of_field = |f: &&FactId| tree.facts[**f].client == Some(field);
            if let Some(fact) = tree.nodes[*node].facts.iter().find(of_field) {
                let slot = tree.facts[*fact].slot;
                let of_node = &tree.nodes[*node].types;
                match out.iter_mut().find(|(s, _)| *s == slot) {
                    Some((_, types)) => {
                        types.union_with(of_node);
                    }
                    None => out.push((slot, of_node.clone())),
                }
            }
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

/// Entries that share their key with another entry some object can have both of.
fn mark_repeated(fields: &mut [OutField]) {
    let mut by_key: FastMap<Box<str>, Vec<usize>> = FastMap::default();
    for (i, field) in fields.iter().enumerate() {
        by_key.entry(field.key.clone()).or_default().push(i);
    }
    for i in 0..fields.len() {
        let rivals = by_key.get(&fields[i].key).map_or(&[][..], Vec::as_slice);
        fields[i].repeated = rivals.iter().any(|j| {
            i != *j
                && match (&fields[i].types, &fields[*j].types) {
                    (Some(a), Some(b)) => a.intersects(b),
                    _ => true,
                }
        });
    }
}
