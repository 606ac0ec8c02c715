//! Representation programs: which members of which slots make up an `_Any` value.

use ogive_federation::FieldSetId;
use ogive_operation::ArgValue;
use ogive_plan::{Member, Representation};

use crate::{
    assign::VisitId,
    emit::{Emitter, print},
    tree::{FactId, NodeId},
};

impl Emitter<'_> {
    /// How to represent the objects of an entry that brings these facts: a key, and what their `@requires` need.
    /// The node is the entered one, or one that it unites.
    fn representation(
        &mut self,
        (id, node): (VisitId, NodeId),
        key: usize,
        facts: &[FactId],
    ) -> Representation {
        let (tree, schedule) = (self.tree, self.schedule);
        let visit = &schedule.visits[id];
        let alternative = &tree.nodes[visit.node].keys[key];
        let mut members = Vec::new();
        if let Some(fields) = alternative.fields {
            self.members(node, fields, true, &mut members);
        }
        for fact in facts {
            let requires = tree.facts[*fact].requires.iter();
            for requirement in requires.filter(|r| r.subgraph.0 == visit.subgraph) {
                if let Some(set) = requirement.fields {
                    self.members(node, set, false, &mut members);
                }
            }
        }
        let typename = alternative.by_interface;
        Representation {
            typename: typename.map(|ty| self.tree.schema().type_name(ty).into()),
            members,
        }
    }

    /// One representation per key the entry may use.
    pub(super) fn representations(&mut self, id: VisitId, facts: &[FactId]) -> Vec<Representation> {
        let visit = &self.schedule.visits[id];
        let node = visit.node;
        let mut nodes: &[NodeId] = &self.tree.nodes[node].unites;
        if nodes.is_empty() {
            nodes = std::slice::from_ref(&node);
        }
        let mut out: Vec<Representation> = Vec::with_capacity(1 + visit.spare_keys.len());
        for key in visit.keys() {
            for node in nodes {
                let representation = self.representation((id, *node), key, facts);
                if !out.contains(&representation) {
                    out.push(representation);
                }
            }
        }
        out
    }

    /// The facts of an entry in groups that can share a representation: two `@requires` that want one field with
    /// different arguments cannot, and make two look-ups.
    pub(crate) fn representable_groups(
        &mut self,
        id: VisitId,
    ) -> Vec<(Vec<FactId>, Vec<Representation>)> {
        let facts = self.facts_of(id).to_vec();
        let whole = self.representations(id, &facts);
        if !whole.iter().any(|r| has_rivals(&r.members)) {
            return vec![(facts, whole)];
        }
        let mut groups: Vec<Vec<FactId>> = Vec::new();
        for fact in facts {
            let mut home = None;
            for (i, group) in groups.iter_mut().enumerate() {
                group.push(fact);
                let all = self.representations(id, group);
                if !all.iter().any(|r| has_rivals(&r.members)) {
                    home = Some(i);
                    break;
                }
                group.pop();
            }
            if home.is_none() {
                groups.push(vec![fact]);
            }
        }
        groups
            .into_iter()
            .map(|group| {
                let representations = self.representations(id, &group);
                (group, representations)
            })
            .collect()
    }

    /// Adds the members of a field set at a node; members with the same slot merge.
    pub(super) fn members(
        &mut self,
        node: NodeId,
        set: FieldSetId,
        key: bool,
        out: &mut Vec<Member>,
    ) {
        let tree = self.tree;
        let ty = tree.nodes[node].ty;
        for item in &tree.graph().field_sets[set].items {
            if !item.types.contains(ty.0) {
                continue;
            }
            let Some(row) = item.field else { continue };
            let name = tree.schema().fields[row].name;
            let Some(fact) = self.fact_of(node, name, &item.args) else {
                continue;
            };
            let fact = match item.selection.filter(|_| !tree.own.is_empty()) {
                Some(_) => tree.own.get(&fact).copied().unwrap_or(fact),
                None => fact,
            };
            let fact = &tree.facts[fact];
            let at = match out.iter().position(|m| m.slot == Some(fact.slot)) {
                Some(at) => at,
                None => {
                    out.push(Member {
                        key_json: print::key_json(tree.schema().name(name)),
                        slot: Some(fact.slot),
                        types: None,
                        key,
                        members: Vec::new(),
                    });
                    out.len() - 1
                }
            };
            out[at].key |= key;
            if let (Some(sub), Some(place)) = (item.selection, fact.child) {
                let mut members = std::mem::take(&mut out[at].members);
                let nodes = &tree.places[place].nodes;
                let n_nodes = nodes.len();
                let is_abstract = tree.schema().types[tree.places[place].ty]
                    .kind
                    .is_abstract();
                let asks_typename = tree.graph().field_sets[sub]
                    .items
                    .iter()
                    .any(|i| i.field.is_none());
                if (is_abstract || asks_typename) && members.is_empty() {
                    members.push(Member {
                        key_json: print::key_json("__typename"),
                        slot: None,
                        types: None,
                        key: false,
                        members: Vec::new(),
                    });
                }
                let nodes = nodes.iter().filter(|n| tree.nodes[**n].unites.is_empty());
                for child in nodes {
                    let mut of_type = Vec::new();
                    self.members(*child, sub, key, &mut of_type);
                    let guard = (n_nodes > 1).then(|| self.runtime_set(&tree.nodes[*child].types));
                    for mut member in of_type {
                        // A slot shared by several concrete types is one member for all of them.
                        let same = members
                            .iter_mut()
                            .find(|m| m.slot == member.slot && m.slot.is_some());
                        match (same, &guard) {
                            (Some(same), Some(guard)) => {
                                let types: &ogive_base::BitSet = guard;
                                if let Some(have) = &mut same.types {
                                    have.union_with(types);
                                }
                                merge(&mut same.members, member.members);
                            }
                            (Some(same), None) => merge(&mut same.members, member.members),
                            (None, _) => {
                                member.types.clone_from(&guard);
                                members.push(member);
                            }
                        }
                    }
                }
                if tree.may_be_untold(place) {
                    // What all types have does not wait for the type.
                    let all = self.runtime_set(&self.possible[place].clone());
                    for member in &mut members {
                        if member.types.as_ref().is_some_and(|t| all.is_subset(t)) {
                            member.types = None;
                        }
                    }
                }
                out[at].members = members;
            }
        }
    }

    /// The fact of a field with these static arguments at a node.
    fn fact_of(
        &self,
        node: NodeId,
        name: ogive_base::Symbol,
        args: &[(Box<str>, ogive_schema::ConstValue)],
    ) -> Option<FactId> {
        self.tree.nodes[node].facts.iter().copied().find(|f| {
            let fact = &self.tree.facts[*f];
            !fact.is_type
                && self.tree.schema().fields[fact.field].name == name
                && fact.args.len() == args.len()
                && args.iter().all(|(n, v)| {
                    fact.args
                        .iter()
                        .any(|a| a.name == *n && a.value == ArgValue::Const(v.clone()))
                })
        })
    }
}

/// Whether two members would write one name for the same object.
fn has_rivals(members: &[Member]) -> bool {
    members.iter().enumerate().any(|(i, a)| {
        has_rivals(&a.members)
            || members[..i].iter().any(|b| {
                a.key_json == b.key_json
                    && match (&a.types, &b.types) {
                        (Some(x), Some(y)) => x.intersects(y),
                        _ => true,
                    }
            })
    })
}

/// Adds members that are not there yet; the depth is that of schema text.
fn merge(into: &mut Vec<Member>, members: Vec<Member>) {
    for member in members {
        match into
            .iter_mut()
            .find(|m| m.slot == member.slot && m.key_json == member.key_json)
        {
            Some(same) => merge(&mut same.members, member.members),
            None => into.push(member),
        }
    }
}
