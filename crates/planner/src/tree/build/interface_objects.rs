//! Objects whose concrete type an answer does not tell.
//!
//! A subgraph that declares an interface as `@interfaceObject` answers objects of that interface without saying what
//! they are (planner rules 39 to 41). A place that such an answer can fill differs from others in four ways:
//!
//! 1. Every node has a fact that *is* the concrete type ([`Fact::is_type`]), known from any subgraph that defines the
//!    type itself. The client wants it where its answer depends on types; keys of the concrete type contain it, because
//!    their representations name the type.
//! 2. Nodes are entered by keys of their interfaces too: of an `@interfaceObject` (in all other places as well), and
//!    of subgraphs that define the interface with a key, which tell the type. Neither needs the type.
//! 3. A leaf has one slot for all nodes, so that it can be read before the type is known.
//! 4. Objects and lists of objects have a slot per node. They are taken from an `@interfaceObject` only on an entry
//!    after the type is known, unless nothing but `@interfaceObject`s brings them: then they belong to a node that
//!    *unites* all of the interface's ([`Node::unites`]), so that nothing waits for the type.
//! 5. What the client selects for some types only waits for the type as well: asked of the others, it could fail, and
//!    take the whole object with it. Members of the interface's keys are excepted.
//!
//! Without `@interfaceObject`s none of this is made.

use ogive_base::{BitSet, id::Id as _};
use ogive_federation::{FieldSource, QueryGraph, SubgraphId};
use ogive_operation::{Arg, CondId, FieldNodeId, FieldRef, Occurrence, SelectionSetId};
use ogive_plan::SlotIndex;
use ogive_schema::{FieldId, TypeId};

use super::Grower;
use crate::PlanError;
use crate::tree::{Fact, FactId, KeyAlternative, Node, NodeId, PlaceId, Requirement, Tree};

impl Tree<'_> {
    /// Whether a subgraph knows a concrete type only as part of an `@interfaceObject`.
    pub(crate) fn is_untold(&self, ty: TypeId, subgraph: u32) -> bool {
        !self.graph().types[ty].subgraphs.contains(subgraph)
    }
    /// The interface object that stands for objects of `ty` in a subgraph.
    pub(crate) fn interface_object_of(&self, ty: TypeId, subgraph: u32) -> Option<TypeId> {
        let mut interfaces = self.schema().types[ty].interfaces.iter().copied();
        interfaces.find(|i| self.is_interface_object(*i, subgraph))
    }
    /// Whether a subgraph declares an interface as `@interfaceObject`.
    pub(crate) fn is_interface_object(&self, ty: TypeId, subgraph: u32) -> bool {
        let source = self.graph().type_source(ty, SubgraphId(subgraph));
        source.is_some_and(|s| s.interface_object)
    }
    /// Whether a subgraph may answer objects of a node before their concrete type is known.
    pub(crate) fn reads_untold(&self, node: NodeId, subgraph: u32) -> bool {
        let node = &self.nodes[node];
        !node.unites.is_empty() || node.told_by.is_some() && self.is_untold(node.ty, subgraph)
    }
    /// Whether every answer that brings objects of a node from above tells their type.
    fn is_always_told(&self, node: &Node) -> bool {
        let told_by = if node.unites.is_empty() {
            &self.graph().types[node.ty].subgraphs
        } else {
            return true;
        };
        node.types_known.is_subset(told_by)
    }
    /// Whether a place can have objects of unknown type.
    pub(crate) fn may_be_untold(&self, place: PlaceId) -> bool {
        let first = self.places[place].nodes.first();
        first.is_some_and(|n| self.nodes[*n].told_by.is_some())
    }
    /// Whether the client's answer depends on the concrete type of objects with this selection.
    fn depends_on_type(&self, selection: SelectionSetId, possible: &BitSet) -> bool {
        let set = &self.op.selection_sets[selection];
        set.order.iter().any(|o| self.shows_type(o, possible))
    }
    /// Whether a field says the concrete type of its object, or is not there for all of them.
    pub(crate) fn shows_type(&self, occurrence: &Occurrence, possible: &BitSet) -> bool {
        let field = &self.op.fields[occurrence.field];
        field.field == FieldRef::Typename
            || !possible.is_subset(&field.types)
            || !possible.is_subset(&occurrence.types)
    }
}

impl<'a> Grower<'a, '_> {
    /// Gives the nodes of a place their types as facts where answers may not tell them, and unites them.
    pub(super) fn untold_types(&mut self, place: PlaceId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let here = &self.tree.places[place];
        let all = &self.tree.schema().types[here.ty].possible;
        let (Some(edge), false) = (here.edge, all.len() == 1) else {
            return self.nameless(place);
        };
        let mut rows = here.nodes.iter().map(|n| &self.tree.nodes[*n]);
        if rows.all(|n| self.tree.is_always_told(n)) {
            return Ok(());
        }
        // What clients may not see must be found out, whatever they ask.
        let hides = !all.is_subset(&here.possible);
        let wanted = here
            .selection
            .is_some_and(|s| hides || self.tree.depends_on_type(s, &here.possible));
        let nodes = here.nodes.clone();
        let edge_field = self.tree.facts[edge].field;
        for node in &nodes {
            let told_by = &graph.types[self.tree.nodes[*node].ty].subgraphs;
            let cond = wanted.then_some(CondId::TRUE);
            let fact = self.type_fact(*node, edge_field, told_by.clone(), cond);
            self.tree.nodes[*node].told_by = Some(fact);
        }
        if nodes.len() > 1 {
            self.tree.places[place].is_never_told =
                !nodes.iter().any(|node| self.can_be_told(*node));
            self.united_nodes(place, &nodes)?;
        }
        Ok(())
    }

    /// Whether some subgraph could tell that objects are of a node's type: by leading to them, or when entered by a key
    /// of an interface.
    fn can_be_told(&self, node: NodeId) -> bool {
        let graph = self.tree.graph();
        let node = &self.tree.nodes[node];
        let interfaces = self.tree.schema().types[node.ty].interfaces.iter();
        let mut sources = interfaces.flat_map(|interface| &graph.types[*interface].sources);
        node.types_known.intersects(&graph.types[node.ty].subgraphs)
            || sources.any(|source| {
                let tells = !source.interface_object && source.possible.contains(node.ty.0);
                tells && source.keys.iter().any(|key| key.resolvable)
            })
    }

    /// Refuses to tell the concrete type of an interface that nothing implements, and which thus stands for itself.
    fn nameless(&self, place: PlaceId) -> Result<(), PlanError> {
        let tree = &self.tree;
        let here = &tree.places[place];
        let (Some(edge), Some(selection)) = (here.edge, here.selection) else {
            return Ok(());
        };
        let is_alone =
            tree.schema().types[here.ty].kind.is_abstract() && here.possible.contains(here.ty.0);
        let mut fields = tree.op.selection_sets[selection].fields.iter();
        if is_alone && fields.any(|f| tree.op.fields[*f].field == FieldRef::Typename) {
            let coordinate = tree.schema().field_coordinate(tree.facts[edge].field);
            return Err(PlanError::failed(format!(
                "no subgraph tells the concrete types of `{coordinate}`"
            )));
        }
        Ok(())
    }

    /// A fact that is the concrete type, known from any of these subgraphs.
    pub(super) fn type_fact(
        &mut self,
        node: NodeId,
        field: FieldId,
        told_by: BitSet,
        cond: Option<CondId>,
    ) -> FactId {
        let fact = self.tree.facts.push(Fact {
            node,
            is_type: true,
            field,
            args: Vec::new(),
            client: None,
            cond,
            child: None,
            slot: SlotIndex::MAX,
            ty: ogive_schema::Type {
                id: ogive_schema::builtins::STRING,
                wrapping: ogive_schema::Wrapping::NON_NULL,
            },
            plain: told_by,
            provided: BitSet::new(),
            requires: Vec::new(),
            is_uncertain: false,
        });
        self.tree.nodes[node].facts.push(fact);
        self.index(node, fact);
        fact
    }

    /// One node per interface whose objects come here without a type.
    fn united_nodes(&mut self, place: PlaceId, nodes: &[NodeId]) -> Result<(), PlanError> {
        let schema = &self.tree.supergraph.schema;
        let mut interfaces: Vec<(TypeId, BitSet)> = Vec::new();
        for node in nodes {
            let node = &self.tree.nodes[*node];
            for subgraph in node.types_known.iter() {
                if !self.tree.is_untold(node.ty, subgraph) {
                    continue;
                }
                for interface in &schema.types[node.ty].interfaces {
                    if !self.tree.is_interface_object(*interface, subgraph) {
                        continue;
                    }
                    match interfaces.iter_mut().find(|(i, _)| i == interface) {
                        Some((_, known)) => {
                            known.insert(subgraph);
                        }
                        None => interfaces.push((*interface, [subgraph].into_iter().collect())),
                    }
                }
            }
        }
        for (interface, known) in interfaces {
            let of_interface = &schema.types[interface].possible;
            let unites: Vec<NodeId> = nodes
                .iter()
                .copied()
                .filter(|n| self.tree.nodes[*n].types.is_subset(of_interface))
                .collect();
            let types: BitSet = unites
                .iter()
                .flat_map(|n| self.tree.nodes[*n].types.iter())
                .collect();
            if unites.len() < 2 {
                continue;
            }
            let id = self.node(place, types)?;
            let node = &mut self.tree.nodes[id];
            node.ty = interface;
            node.types_known = known;
            node.provides_start = BitSet::new();
            node.provides_through = BitSet::new();
            node.unites = unites;
        }
        Ok(())
    }

    /// Gives a client's field to the nodes that unite others, if nothing but interface objects can bring it; says
    /// which other nodes it is done for.
    pub(super) fn unite(
        &mut self,
        place: PlaceId,
        field: FieldNodeId,
    ) -> Result<Vec<NodeId>, PlanError> {
        let op = self.tree.op;
        let node_of = &op.fields[field];
        let mut done: Vec<NodeId> = Vec::new();
        let FieldRef::Field(row) = node_of.field else {
            return Ok(done);
        };
        for at in 0..self.tree.places[place].nodes.len() {
            let id = self.tree.places[place].nodes[at];
            let node = &self.tree.nodes[id];
            if node.unites.is_empty() {
                continue;
            }
            // It has values of its own only.
            let unites = node.unites.clone();
            done.push(id);
            if !node.types.is_subset(&node_of.types) || unites.iter().any(|n| done.contains(n)) {
                continue;
            }
            if let Some(of_interface) = self.only_of_interface_objects(id, row) {
                self.fact(id, of_interface, node_of.args.clone(), Some(field))?;
                done.extend(unites);
            }
        }
        Ok(done)
    }

    /// The interface's field of that name, if it has objects and all its providers are interface objects that need
    /// nothing for it. Where nobody can tell the type, other providers are out of reach, and the interface objects that
    /// lead to the place are enough.
    fn only_of_interface_objects(&self, united: NodeId, field: FieldId) -> Option<FieldId> {
        let graph = &self.tree.supergraph.graph;
        let schema = &self.tree.supergraph.schema;
        let node = &self.tree.nodes[united];
        let name = schema.fields[field].name;
        let of_interface = *schema.fields_by_name.get(&(node.ty, name))?;
        let ty = schema.fields[of_interface].ty.id;
        let provided = !self.tree.places[node.place].provides.is_empty();
        if !schema.types[ty].kind.is_composite() || provided {
            return None;
        }
        let plain = |s: &FieldSource| {
            s.requires.is_none() && s.context_args.is_empty() && s.overrides.is_none()
        };
        let only = node.unites.iter().all(|member| {
            let ty = self.tree.nodes[*member].ty;
            let row = schema.fields_by_name.get(&(ty, name));
            row.is_some_and(|row| {
                let sources = &graph.fields[*row].sources;
                let via = |s: &FieldSource| s.via_interface_object == Some(node.ty) && plain(s);
                let leads = |s: &FieldSource| via(s) && node.types_known.contains(s.subgraph.0);
                let is_theirs = if self.tree.places[node.place].is_never_told {
                    sources.iter().any(leads)
                } else {
                    sources.iter().all(via)
                };
                is_theirs && schema.fields[*row].ty == schema.fields[of_interface].ty
            })
        });
        (only && !graph.fields[of_interface].resolvers.is_empty()).then_some(of_interface)
    }

    /// Takes a fact that waits for the type from interface objects only on entries after it is known, and the facts of a
    /// node that unites others from nobody else.
    pub(super) fn only_of_told_types(&mut self, fact: FactId) {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let Fact { node, field, .. } = self.tree.facts[fact];
        if !self.tree.nodes[node].unites.is_empty() {
            let ty = self.tree.nodes[node].ty;
            let plain = self.tree.facts[fact].plain.iter();
            let plain: BitSet = plain
                .filter(|s| self.tree.is_interface_object(ty, *s))
                .collect();
            self.tree.facts[fact].plain = plain;
            return;
        }
        let Some(told_by) = self.told_late(node).filter(|_| self.waits_for_type(fact)) else {
            return;
        };
        for source in &graph.fields[field].sources {
            let subgraph = source.subgraph;
            if source.via_interface_object.is_none() {
                continue;
            }
            let fact = &mut self.tree.facts[fact];
            fact.provided.remove(subgraph.0);
            if fact.plain.remove(subgraph.0) {
                fact.requires.push(Requirement {
                    subgraph,
                    fields: None,
                    facts: vec![told_by],
                    contexts: Vec::new(),
                });
            }
        }
    }

    /// Whether a subgraph resolves a fact only after the concrete type is known, besides what it requires: one that
    /// defines the type may require what the interface does not have.
    pub(super) fn needs_told_type(&self, fact: FactId, subgraph: SubgraphId) -> bool {
        let Fact { node, field, .. } = self.tree.facts[fact];
        let source = self.tree.graph().field_source(field, subgraph);
        if source.is_some_and(|s| s.via_interface_object.is_some()) {
            self.told_late(node).is_some() && self.waits_for_type(fact)
        } else {
            self.tree.nodes[node].told_by.is_some()
        }
    }

    /// Whether a fact of one of several nodes cannot be read before it is known which of them is meant.
    fn waits_for_type(&self, fact: FactId) -> bool {
        let tree = &self.tree;
        let Fact { node, field, .. } = tree.facts[fact];
        let schema = tree.schema();
        if schema.types[tree.facts[fact].ty.id].kind.is_composite() {
            return true;
        }
        let for_all = tree.facts[fact].client.is_some_and(|client| {
            let types = &tree.op.fields[client].types;
            let mut nodes = tree.places[tree.nodes[node].place].nodes.iter();
            nodes.all(|n| {
                let node = &tree.nodes[*n];
                tree.is_always_told(node) || node.types.is_subset(types)
            })
        });
        !for_all && !self.is_in_interface_key(tree.nodes[node].ty, field)
    }

    /// Whether a field is a member of a key of an interface of a type.
    fn is_in_interface_key(&self, ty: TypeId, field: FieldId) -> bool {
        let graph = self.tree.graph();
        let schema = self.tree.schema();
        let name = schema.fields[field].name;
        let interfaces = schema.types[ty].interfaces.iter();
        let mut keys = interfaces
            .flat_map(|i| &graph.types[*i].sources)
            .flat_map(|s| &s.keys);
        keys.any(|key| {
            let items = &graph.field_sets[key.fields].items;
            items
                .iter()
                .any(|i| i.field.is_some_and(|f| schema.fields[f].name == name))
        })
    }

    /// The fact that is the type of a node, if there are several nodes that could be meant before it is known.
    fn told_late(&self, node: NodeId) -> Option<FactId> {
        let node = &self.tree.nodes[node];
        let several = self.tree.places[node.place].nodes.len() > 1;
        node.told_by.filter(|_| several)
    }

    /// The slot of a leaf with the same arguments at any node of a place whose types may be unknown.
    pub(super) fn slot_of_any_type(
        &self,
        node: NodeId,
        field: FieldId,
        args: &[Arg],
    ) -> Option<SlotIndex> {
        let tree = &self.tree;
        tree.nodes[node].told_by?;
        let schema = tree.schema();
        let wanted = &schema.fields[field];
        let nodes = tree.places[tree.nodes[node].place].nodes.iter();
        let mut facts = nodes.flat_map(|n| &tree.nodes[*n].facts);
        let same = facts.find(|f| {
            let fact = &tree.facts[**f];
            !fact.is_type
                && fact.child.is_none()
                && schema.fields[fact.field].name == wanted.name
                && fact.ty.wrapping.lists() == wanted.ty.wrapping.lists()
                && fact.has_args(args)
        });
        same.map(|f| tree.facts[*f].slot)
    }

    /// Keys of the interfaces of a node's type: those of interface objects, and, where the type may be unknown, those
    /// of subgraphs that define the interface itself.
    pub(super) fn interface_keys(&mut self, node: NodeId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let schema = &self.tree.supergraph.schema;
        let ty = self.tree.nodes[node].ty;
        let may_be_unknown = self.tree.nodes[node].told_by.is_some();
        let place = self.tree.nodes[node].place;
        for interface in &schema.types[ty].interfaces {
            for source in &graph.types[*interface].sources {
                let useful =
                    source.interface_object || may_be_unknown && source.possible.contains(ty.0);
                for key in source.keys.iter().filter(|k| useful && k.resolvable) {
                    let composite = self.is_composite(key.fields);
                    if composite && self.is_too_deep(place) {
                        continue;
                    }
                    let first = self.tree.facts.len();
                    let mut facts = self.field_set(node, key.fields, true)?;
                    if composite && let Some(told_by) = self.told_late(node) {
                        facts.push(told_by);
                    }
                    self.tree.nodes[node].keys.push(KeyAlternative {
                        subgraph: source.subgraph,
                        by_interface: Some(*interface),
                        fields: Some(key.fields),
                        facts: facts.into(),
                    });
                    self.requirements_since(first)?;
                }
            }
        }
        Ok(())
    }

    /// A node that unites others is entered by the keys of its interface that are known for all of them.
    pub(super) fn keys_of_united(&mut self, united: NodeId) {
        let node = &self.tree.nodes[united];
        let interface = node.ty;
        let mut keys: Vec<KeyAlternative> = Vec::new();
        let Some((first, others)) = node.unites.split_first() else {
            return;
        };
        for key in &self.tree.nodes[*first].keys {
            let of_object = key.by_interface == Some(interface)
                && self.tree.is_interface_object(interface, key.subgraph.0);
            if !of_object {
                continue;
            }
            let mut facts = key.facts.to_vec();
            let everywhere = others.iter().all(|other| {
                let mut keys = self.tree.nodes[*other].keys.iter();
                let same = keys.find(|k| {
                    (k.subgraph, k.by_interface, k.fields)
                        == (key.subgraph, key.by_interface, key.fields)
                });
                facts.extend(same.iter().flat_map(|k| k.facts.iter()));
                same.is_some()
            });
            if everywhere {
                let facts = facts.into();
                keys.push(KeyAlternative { facts, ..*key });
            }
        }
        debug_assert!(united.index() < self.tree.nodes.len(), "a node of the tree");
        self.tree.nodes[united].keys = keys;
    }
}
