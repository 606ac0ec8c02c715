//! Requests by the name of an interface: to an `@interfaceObject`, or to a subgraph that tells concrete types.
//!
//! Objects of which only the interface is known are sent under its name, all of a place in one look-up, whatever
//! classes of types the planner thinks of. See [`crate::tree`] for what is known when.

use ogive_base::{BitSet, FastMap, FastSet};
use ogive_operation::CondId;
use ogive_plan::{Cond, Representation, Target};
use ogive_schema::TypeId;

use crate::{
    assign::{Via, VisitId},
    emit::{
        Emitter,
        lookups::{LookupLists, Question, Types},
        object::{Item, Selected},
        output::layout_id,
        tables::Positions,
    },
    tree::{FactId, PlaceId},
};

impl Emitter<'_> {
    /// The interface by whose name the object of an entry is sent.
    pub(crate) fn entered_by(&self, id: VisitId) -> Option<TypeId> {
        let visit = &self.schedule.visits[id];
        match visit.via {
            Via::Key(key) => self.tree.nodes[visit.node].keys[key].by_interface,
            _ => None,
        }
    }

    /// Adds the look-up of `first`, which is entered by `interface`, to a request. Entries of `visits` at the same place
    /// that need no concrete type either join it; all that is done is noted.
    pub(crate) fn look_up_by(
        &mut self,
        interface: TypeId,
        first: VisitId,
        visits: &[VisitId],
        done: &mut FastSet<VisitId>,
        lists: &mut LookupLists,
    ) {
        let tree = self.tree;
        let subgraph = self.schedule.visits[first].subgraph;
        let place = |id: VisitId| tree.nodes[self.schedule.visits[id].node].place;
        let here = place(first);
        let untyped = !self.waits_for_type(first);
        let mut together = vec![first];
        if untyped {
            together.extend(visits.iter().copied().filter(|other| {
                *other != first
                    && !done.contains(other)
                    && place(*other) == here
                    && self.entered_by(*other) == Some(interface)
                    && !self.waits_for_type(*other)
            }));
        }
        for (facts, representations) in self.groups_together(&mut together) {
            let mut types = BitSet::new();
            for id in &together {
                types.union_with(&tree.nodes[self.schedule.visits[*id].node].types);
            }
            types.intersect_with(&self.possible[here]);
            let declared = (!tree.is_interface_object(interface, subgraph)).then_some(interface);
            let Selected {
                selection,
                shape,
                names,
                cond,
            } = self.object(here, facts, subgraph, declared);
            let all = self.possible[here].is_subset(&types);
            let several = self.possible[here].len() > 1 || tree.may_be_untold(here);
            let sent: BitSet = [interface.0].into_iter().collect();
            let target = Target {
                layout: layout_id(here),
                types: (!all || !untyped && several).then(|| self.runtime_set(&types)),
                untyped: untyped && tree.may_be_untold(here),
                cond: Cond(cond.0),
                representations: representations.into(),
                shape,
                selection: self.question(subgraph, &sent, selection),
                contexts: Vec::new(),
            };
            let mut covered = sent.clone();
            if declared.is_some() {
                covered.union_with(&tree.schema().types[interface].possible);
            }
            let types = Types {
                written: &sent,
                covered: &covered,
            };
            lists.add(types, Question { cond, selection }, &names, target);
            self.pool.put_names(names);
        }
        done.extend(together);
    }

    /// Whether an entry is made only after the concrete type is known.
    fn waits_for_type(&self, id: VisitId) -> bool {
        let visit = &self.schedule.visits[id];
        let node = &self.tree.nodes[visit.node];
        if !self.tree.may_be_untold(node.place) {
            return true;
        }
        let by_key = visit.keys().flat_map(|k| node.keys[k].facts.iter());
        let of_place = |f: &FactId| {
            let fact = &self.tree.facts[*f];
            fact.is_type && self.tree.nodes[fact.node].place == node.place
        };
        by_key.copied().any(|f| of_place(&f)) || self.required_facts(id).iter().any(of_place)
    }

    /// What entries bring and how their objects are sent: all of them together if that can be the same for all, else
    /// only the first of them.
    #[expect(clippy::type_complexity, reason = "two lists")]
    fn groups_together(
        &mut self,
        together: &mut Vec<VisitId>,
    ) -> Vec<(Vec<(VisitId, FactId)>, Vec<Representation>)> {
        let mut merged: Option<(Vec<(VisitId, FactId)>, Vec<Representation>)> = None;
        for (at, id) in together.clone().into_iter().enumerate() {
            let of_visit = |facts: Vec<FactId>| facts.into_iter().map(|f| (id, f)).collect();
            let groups = self.representable_groups(id);
            let is_first = at == 0;
            let fits = match (&merged, groups.as_slice()) {
                (None, [_]) => true,
                (Some((_, have)), [(_, more)]) => {
                    let keys_only = |all: &[Representation]| {
                        all.iter().all(|r| r.members.iter().all(|m| m.key))
                    };
                    have == more || keys_only(have) && keys_only(more)
                }
                _ => false,
            };
            if is_first && !fits {
                together.truncate(1);
                let groups = groups.into_iter();
                return groups.map(|(facts, r)| (of_visit(facts), r)).collect();
            }
            if !fits {
                together.retain(|other| *other != id);
                continue;
            }
            for (facts, representations) in groups {
                let facts: Vec<(VisitId, FactId)> = of_visit(facts);
                match &mut merged {
                    None => merged = Some((facts, representations)),
                    Some((all, have)) => {
                        all.extend(facts);
                        for representation in representations {
                            if !have.contains(&representation) {
                                have.push(representation);
                            }
                        }
                    }
                }
            }
        }
        merged.into_iter().collect()
    }

    /// Takes the facts that are concrete types out; the condition under which one of them is wanted.
    pub(crate) fn without_types(&mut self, wanted: &mut Vec<(VisitId, FactId)>) -> Option<CondId> {
        let tree = self.tree;
        if !wanted.iter().any(|(_, f)| tree.facts[*f].is_type) {
            return None;
        }
        let mut any = None;
        for (_, fact) in wanted.iter().filter(|(_, f)| tree.facts[*f].is_type) {
            let cond = self.conditional.of_fact(*fact);
            any = Some(any.map_or(cond, |any| self.conditional.or(any, cond)));
        }
        wanted.retain(|(_, f)| !tree.facts[*f].is_type);
        any
    }

    /// Names of interface objects that a subgraph may answer at a place of another abstract type.
    pub(crate) fn interface_objects(&self, place: PlaceId, subgraph: u32) -> Vec<Box<str>> {
        let tree = self.tree;
        let mut out: Vec<Box<str>> = Vec::new();
        for node in &tree.places[place].nodes {
            let node = &tree.nodes[*node];
            if !node.unites.is_empty()
                || !node.types_known.contains(subgraph)
                || !tree.is_untold(node.ty, subgraph)
            {
                continue;
            }
            for ty in node.types.iter().map(TypeId) {
                if let Some(interface) = tree.interface_object_of(ty, subgraph) {
                    let name = tree.schema().type_name(interface);
                    if !out.iter().any(|known| **known == *name) {
                        out.push(name.into());
                    }
                }
            }
        }
        out
    }

    /// The fragments to write for concrete types: interface objects stand for all of theirs.
    pub(crate) fn fragment_types(
        &self,
        place: PlaceId,
        here: Vec<TypeId>,
        subgraph: u32,
    ) -> Vec<TypeId> {
        if !self.tree.may_be_untold(place) {
            return here;
        }
        let mut out: Vec<TypeId> = Vec::new();
        for ty in here {
            let written = self.fragment_type(ty, subgraph);
            if !out.contains(&written) {
                out.push(written);
            }
        }
        out
    }

    fn fragment_type(&self, ty: TypeId, subgraph: u32) -> TypeId {
        if self.tree.is_untold(ty, subgraph) {
            self.tree.interface_object_of(ty, subgraph).unwrap_or(ty)
        } else {
            ty
        }
    }

    /// Gives what is asked of concrete types to the interface objects that stand for them.
    pub(crate) fn by_interface_object(
        &mut self,
        here: &[TypeId],
        subgraph: u32,
        of_type: &mut FastMap<u32, Vec<Item>>,
    ) {
        for ty in here {
            let written = self.fragment_type(*ty, subgraph);
            if written != *ty
                && let Some(items) = of_type.remove(&ty.0)
            {
                of_type.entry(written.0).or_default().extend(items);
            }
        }
        for ty in self.fragment_types_of(here, subgraph) {
            if let Some(items) = of_type.remove(&ty.0) {
                let items = self.each_name_once(&items);
                of_type.insert(ty.0, items);
            }
        }
    }

    fn fragment_types_of(&self, here: &[TypeId], subgraph: u32) -> Vec<TypeId> {
        let written = here
            .iter()
            .map(|ty| (*ty, self.fragment_type(*ty, subgraph)));
        let mut out: Vec<TypeId> = written.filter(|(a, b)| a != b).map(|(_, b)| b).collect();
        out.dedup();
        out
    }

    /// Items of several classes that are asked for under one name, each once.
    pub(crate) fn each_name_once(&mut self, items: &[Item]) -> Vec<Item> {
        let mut at = Positions::default();
        let mut out: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            match at.find(item.name) {
                Some(found) => {
                    let first: &mut Item = &mut out[found];
                    first.cond = self.conditional.or(first.cond, item.cond);
                }
                None => {
                    at.push(item.name);
                    out.push(*item);
                }
            }
        }
        out
    }
}
