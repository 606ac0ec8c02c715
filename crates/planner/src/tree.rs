//! Pass 1: the planning tree.
//!
//! A [`Place`] is one object-valued place of the response (later a record layout). Its [`Node`]s are its concrete
//! types, in classes that need not be told apart ([`crate::classes`]). A [`Fact`] is one field value at a node: wanted by the client, or possibly useful as a member of a key or of
//! a `@requires` selection. Facts know who can bring them; nodes know by which keys they can be entered.
//!
//! Where a subgraph answers an interface as `@interfaceObject`, see [`interface_objects`]; where field sets go through objects
//! that the client selects too, [`own`].
//!
//! Invariants: ids grow from parents to children; facts of one node have distinct (field, arguments, response key);
//! a gateway-only fact reuses a client's fact with the same field and arguments, unless [`Tree::own`] keeps them apart.

mod interface_objects;
mod own;
mod serving;

use std::{rc::Rc, sync::Arc};

use ogive_base::{BitSet, FastMap, IdVec, define_id};
use ogive_federation::{FieldSetId, FieldSource, QueryGraph, SubgraphId, Supergraph};
use ogive_operation::{Arg, ArgValue, CondId, FieldNodeId, FieldRef, Operation, SelectionSetId};
use ogive_plan::{OperationKind, SlotIndex};
use ogive_schema::{FieldId, Schema, Type, TypeId};

use crate::{Batching, Measured, PlanError, PlanOptions, classes::Classes};
use own::Choices;

define_id! {
    /// An object-valued place.
    pub struct PlaceId;
}
define_id! {
    /// One concrete type at a place.
    pub struct NodeId;
}
define_id! {
    /// One field value at a node.
    pub struct FactId;
}

/// The planning tree of one operation.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The supergraph.
    pub supergraph: &'a Supergraph,
    /// The operation.
    pub op: &'a Operation,
    /// Object-valued places, parents first; row 0 is the root.
    pub places: IdVec<PlaceId, Place>,
    /// Nodes, parents first; row 0 is the root.
    pub nodes: IdVec<NodeId, Node>,
    /// Facts.
    pub facts: IdVec<FactId, Fact>,
    /// What may share one request, by subgraph.
    pub batching: Vec<Batching>,
    /// What was measured.
    pub measured: Option<Arc<Measured>>,
    /// Facts by which field sets go through objects that the client selects, by the client's first fact with the same
    /// field and arguments; none where it is that fact itself.
    pub own: FastMap<FactId, FactId>,
    /// Introspection fields, which the gateway answers itself, in order of locals.
    pub locals: Vec<FieldNodeId>,
}

/// One object-valued place.
#[derive(Debug)]
pub struct Place {
    /// The fact whose value it is; `None` for the root.
    pub edge: Option<FactId>,
    /// Declared type in the supergraph.
    pub ty: TypeId,
    /// Concrete types (`TypeId.0`) its objects can have.
    pub possible: BitSet,
    /// The client's selection here, if any.
    pub selection: Option<SelectionSetId>,
    /// One node per class of concrete types.
    pub nodes: Vec<NodeId>,
    /// Number of slots taken.
    pub slots: SlotIndex,
    /// Levels of gateway-only places above and including this one.
    pub internal_depth: u8,
    /// Objects come from `@interfaceObject`s, and no subgraph can tell what they are.
    is_never_told: bool,
    /// `@provides` selections in force for objects that come from each subgraph along this very path.
    provides: Vec<(SubgraphId, FieldSetId)>,
}

/// One class of concrete types at a place.
#[derive(Debug)]
pub struct Node {
    /// The place.
    pub place: PlaceId,
    /// Its first concrete type, which stands for all; of a node that unites others the interface.
    pub ty: TypeId,
    /// Its concrete types (`TypeId.0`): one class that every subgraph treats alike.
    pub types: BitSet,
    /// The value that says its concrete type, where not every answer does.
    pub told_by: Option<FactId>,
    /// Nodes it unites: what an `@interfaceObject` brings for all of them. Empty for all others.
    pub unites: Vec<NodeId>,
    /// Values wanted or useful here.
    pub facts: Vec<FactId>,
    /// How the object can be entered through `_entities`.
    pub keys: Vec<KeyAlternative>,
    /// Subgraphs whose answers can hold this concrete type when reached by descent.
    pub types_known: BitSet,
    /// Subgraphs that bring the object under one of their `@provides` from here on.
    pub provides_start: BitSet,
    /// Subgraphs whose `@provides` continues through this node.
    pub provides_through: BitSet,
}

/// One way into a subgraph.
#[derive(Debug)]
pub struct KeyAlternative {
    /// Where it leads.
    pub subgraph: SubgraphId,
    /// The interface by whose name it is entered; `None` for the concrete type's own.
    pub by_interface: Option<TypeId>,
    /// The key; none where the object is a root again, which is entered without one as soon as it is known to exist.
    pub fields: Option<FieldSetId>,
    /// Facts that make up its representation, nested ones included; shared by keys with the same members.
    pub facts: Rc<[FactId]>,
}

/// One field value at a node.
#[derive(Debug)]
pub struct Fact {
    /// Where.
    pub node: NodeId,
    /// The concrete type, no field's value: `field` is the one that leads to the object, `slot` means nothing.
    pub is_type: bool,
    /// The field of the concrete type.
    pub field: FieldId,
    /// Arguments.
    pub args: Vec<Arg>,
    /// The client's field, if it asked for the value.
    pub client: Option<FieldNodeId>,
    /// The client's condition relative to its parent object; `None` if only the gateway may want it.
    pub cond: Option<CondId>,
    /// Objects of a composite field.
    pub child: Option<PlaceId>,
    /// Its slot in the place's record.
    pub slot: SlotIndex,
    /// Type in the supergraph.
    pub ty: Type,
    /// Subgraphs that resolve it on any object they hold.
    pub plain: BitSet,
    /// Subgraphs that resolve it only along this path, by `@provides`.
    pub provided: BitSet,
    /// Subgraphs that resolve it only on entry, given these facts.
    pub requires: Vec<Requirement>,
    /// Belongs to a member that not every subgraph knows which may serve the object: null, and nobody is asked
    /// ([`serving`]).
    pub is_uncertain: bool,
}

/// What a subgraph needs to resolve a field with `@requires`.
#[derive(Debug)]
pub struct Requirement {
    /// The subgraph.
    pub subgraph: SubgraphId,
    /// The selection; `None` if it only needs the concrete type.
    pub fields: Option<FieldSetId>,
    /// Facts that make it up, nested ones included; those of contexts, too.
    pub facts: Vec<FactId>,
    /// Arguments that are filled from objects above.
    pub contexts: Vec<Context>,
}

/// Where the value of an argument comes from (`@fromContext`, planner rule 29).
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Index into [`FieldSource::context_args`](ogive_federation::FieldSource::context_args).
    pub arg: usize,
    /// The nearest object above that sets the context.
    pub node: NodeId,
    /// What is selected there.
    pub fields: FieldSetId,
}

/// A part of the operation that is planned on its own: all of a query, or one root field of a mutation.
#[derive(Debug)]
pub struct Scope {
    /// Nodes of the scope, parents first.
    pub nodes: Vec<NodeId>,
    /// Root facts that belong to it.
    pub root_facts: Vec<FactId>,
    /// Whether the root may be entered in the first wave only, and only after all earlier scopes are complete.
    pub serial: bool,
    /// The only subgraphs that may be asked for root fields, if not all may.
    pub entered_by: Option<BitSet>,
    /// Number of facts of the scope.
    pub facts: usize,
    /// Rows of its nodes and facts; `None` if the scope is the whole tree and rows are ids.
    pub rows: Option<Arc<Rows>>,
}

/// Where the tables of a scope hold each node and fact, so that working on all scopes takes time in proportion to the
/// tree, however many there are.
#[derive(Debug, Default)]
pub struct Rows {
    nodes: FastMap<NodeId, u32>,
    facts: FastMap<FactId, u32>,
}

impl Rows {
    /// The position of a node in the nodes of the scope.
    pub fn node(&self, node: NodeId) -> usize {
        self.nodes
            .get(&node)
            .map_or(usize::MAX, |row| *row as usize)
    }
    /// A number below [`Scope::facts`]; a larger one outside the scope.
    pub fn fact(&self, fact: FactId) -> usize {
        self.facts
            .get(&fact)
            .map_or(usize::MAX, |row| *row as usize)
    }
}

impl Scope {
    /// Facts of the scope at one of its nodes.
    pub fn facts_at<'a>(&'a self, tree: &'a Tree<'_>, node: NodeId) -> &'a [FactId] {
        match node {
            Tree::ROOT => &self.root_facts,
            node => &tree.nodes[node].facts,
        }
    }
    /// Numbers the nodes and facts of a scope that is a part of the tree.
    pub(crate) fn number(&mut self, tree: &Tree<'_>) {
        let mut rows = Rows::default();
        for (row, node) in self.nodes.iter().enumerate() {
            rows.nodes.insert(*node, row as u32);
            for fact in self.facts_at(tree, *node) {
                let row = rows.facts.len() as u32;
                rows.facts.insert(*fact, row);
            }
        }
        self.facts = rows.facts.len();
        self.rows = Some(Arc::new(rows));
    }
}

impl Fact {
    /// Whether the client's answer needs it.
    pub fn is_wanted(&self) -> bool {
        self.client.is_some() && !self.is_uncertain || self.is_type && self.cond.is_some()
    }
}

impl Tree<'_> {
    /// The root node.
    pub const ROOT: NodeId = NodeId(0);

    /// The compiled query graph.
    pub fn graph(&self) -> &QueryGraph {
        &self.supergraph.graph
    }
    /// The supergraph schema.
    pub fn schema(&self) -> &Schema {
        &self.supergraph.schema
    }
    /// The parent node of a place; `None` for the root.
    pub fn parent(&self, place: PlaceId) -> Option<NodeId> {
        self.places[place].edge.map(|e| self.facts[e].node)
    }
    /// Root facts in order of execution, which is order of appearance and not that of the facts.
    pub fn root_order(&self) -> Vec<FactId> {
        let by_field: FastMap<FieldNodeId, FactId> = self.nodes[Self::ROOT]
            .facts
            .iter()
            .filter_map(|fact| Some((self.facts[*fact].client?, *fact)))
            .collect();
        let mut ordered: Vec<FactId> = Vec::new();
        let mut seen = BitSet::new();
        for occurrence in &self.op.selection_sets[self.op.root].order {
            if let Some(fact) = by_field.get(&occurrence.field)
                && seen.insert(fact.0)
            {
                ordered.push(*fact);
            }
        }
        ordered
    }
    /// The scopes in the order in which they must run.
    pub fn scopes(&self) -> Vec<Scope> {
        if self.op.kind != OperationKind::Mutation {
            return vec![Scope {
                nodes: self.nodes.ids().collect(),
                root_facts: self.nodes[Self::ROOT].facts.clone(),
                serial: self.op.kind == OperationKind::Subscription,
                entered_by: None,
                facts: self.facts.len(),
                rows: None,
            }];
        }
        // Row by row: which root fact a node hangs below.
        let mut below: IdVec<NodeId, Option<FactId>> = IdVec::new();
        for (_, node) in self.nodes.iter() {
            let owner = self.places[node.place].edge.and_then(|edge| {
                let parent = self.facts[edge].node;
                if parent == Self::ROOT {
                    Some(edge)
                } else {
                    below[parent]
                }
            });
            below.push(owner);
        }
        let mut nodes_of: FastMap<FactId, Vec<NodeId>> = FastMap::default();
        for (node, owner) in below.iter() {
            if let Some(owner) = owner {
                nodes_of.entry(*owner).or_default().push(node);
            }
        }
        let scope = |fact: FactId| {
            let mut nodes = vec![Self::ROOT];
            nodes.append(&mut nodes_of.remove(&fact).unwrap_or_default());
            let mut scope = Scope {
                nodes,
                root_facts: vec![fact],
                serial: true,
                entered_by: None,
                facts: 0,
                rows: None,
            };
            scope.number(self);
            scope
        };
        self.root_order().into_iter().map(scope).collect()
    }
}

/// Deepest nesting of places that only the gateway needs (keys inside keys); deeper ones add no composite members.
const INTERNAL_DEPTH_MAX: u8 = 3;

/// Grows the tree. Fails on the node limit, and on an operation that did not come from [`restrict`](crate::restrict())
/// where something is restricted.
pub fn grow<'a>(
    supergraph: &'a Supergraph,
    op: &'a Operation,
    options: &PlanOptions,
) -> Result<Tree<'a>, PlanError> {
    if !op.is_restricted && !supergraph.restrictions.is_empty() {
        return Err(PlanError::failed(
            "the supergraph's restrictions were not applied to the operation",
        ));
    }
    let mut choices = Choices::default();
    loop {
        let tree = grow_with(supergraph, op, options, &mut choices)?;
        if !choices.start_again() {
            return Ok(tree);
        }
    }
}

/// One attempt: field sets go through what was chosen so far.
fn grow_with<'a>(
    supergraph: &'a Supergraph,
    op: &'a Operation,
    options: &PlanOptions,
    choices: &mut Choices,
) -> Result<Tree<'a>, PlanError> {
    let mut grower = Grower {
        options,
        wide: FastMap::default(),
        leaf_slots: FastMap::default(),
        classes: None,
        types_known: FastMap::default(),
        choices,
        tree: Tree {
            supergraph,
            op,
            places: IdVec::from_vec(Vec::with_capacity(op.selection_sets.len() + 4)),
            nodes: IdVec::from_vec(Vec::with_capacity(op.selection_sets.len() + 4)),
            facts: IdVec::from_vec(Vec::with_capacity(op.fields.len() * 3 / 2 + 4)),
            batching: options.batching.clone(),
            measured: options.measured.clone(),
            own: FastMap::default(),
            locals: ogive_operation::local_fields(op).collect(),
        },
    };
    let root = &op.selection_sets[op.root];
    grower.place(
        None,
        root.ty,
        root.possible.clone(),
        Some(op.root),
        0,
        Vec::new(),
    )?;
    // Places are filled in order of creation: client facts first, everywhere, so that keys find them.
    let mut next = 0;
    while next < grower.tree.places.len() {
        grower.client_facts(PlaceId(next as u32))?;
        next += 1;
    }
    let mut next = 0;
    while next < grower.tree.nodes.len() {
        grower.helper_facts(NodeId(next as u32))?;
        next += 1;
    }
    let mut tree = grower.tree;
    serving::settle(&mut tree, options)?;
    Ok(tree)
}

/// Facts of a node that are looked through one by one.
const SCANNED_MAX: usize = 16;

struct Grower<'a, 'o> {
    options: &'o PlanOptions,
    tree: Tree<'a>,
    /// Facts by node and field, any arguments, of nodes with more than [`SCANNED_MAX`] facts.
    wide: FastMap<(NodeId, FieldId), Vec<FactId>>,
    /// Slots shared by all concrete types: client leaves by field node.
    leaf_slots: FastMap<(PlaceId, FieldNodeId), SlotIndex>,
    /// Made when the first place with several concrete types is met.
    classes: Option<Classes<'a>>,
    /// What [`Grower::types_known`] found, by field that leads to the place.
    types_known: FastMap<(FieldId, TypeId), BitSet>,
    /// What field sets go through.
    choices: &'o mut Choices,
}

impl<'a> Grower<'a, '_> {
    fn place(
        &mut self,
        edge: Option<FactId>,
        ty: TypeId,
        possible: BitSet,
        selection: Option<SelectionSetId>,
        internal_depth: u8,
        provides: Vec<(SubgraphId, FieldSetId)>,
    ) -> Result<PlaceId, PlanError> {
        let id = self.tree.places.push(Place {
            edge,
            ty,
            possible,
            selection,
            nodes: Vec::new(),
            slots: 0,
            internal_depth,
            is_never_told: false,
            provides,
        });
        let possible = &self.tree.places[id].possible;
        if possible.len() == 1 {
            let only = possible.clone();
            self.node(id, only)?;
        } else {
            for class in self.classes_of(id) {
                self.node(id, class)?;
            }
        }
        self.untold_types(id)?;
        Ok(id)
    }

    /// Places that only the gateway needs have one node per type, since field sets may tell types apart.
    fn classes_of(&mut self, place: PlaceId) -> Vec<BitSet> {
        let here = &self.tree.places[place];
        let possible = here.possible.clone();
        match here.selection {
            Some(selection) if possible.len() > 1 => {
                let mut classes = self.classes.take();
                let known = |ty| self.look_types_known(place, ty);
                let out = classes
                    .get_or_insert_with(|| Classes::new(self.tree.supergraph))
                    .partition(self.tree.op, selection, &possible, known);
                self.classes = classes;
                out
            }
            _ => possible.iter().map(|t| [t].into_iter().collect()).collect(),
        }
    }

    /// Subgraphs whose answers can hold a concrete type at a place when reached by descent.
    fn types_known(&mut self, place: PlaceId, ty: TypeId) -> BitSet {
        let Some(edge) = self.tree.places[place].edge else {
            return self.look_types_known(place, ty);
        };
        let key = (self.tree.facts[edge].field, ty);
        if let Some(known) = self.types_known.get(&key) {
            return known.clone();
        }
        let known = self.look_types_known(place, ty);
        self.types_known.insert(key, known.clone());
        known
    }

    fn look_types_known(&self, place: PlaceId, ty: TypeId) -> BitSet {
        let graph = &self.tree.supergraph.graph;
        let here = &self.tree.places[place];
        let Some(edge) = here.edge else {
            return graph.types[ty].subgraphs.clone();
        };
        let sources = &graph.fields[self.tree.facts[edge].field].sources;
        let knows = |source: &&FieldSource| {
            let local = source.ty.map_or(here.ty, |t| t.id);
            graph
                .type_source(local, source.subgraph)
                .is_some_and(|s| s.possible.contains(ty.0) || (local == ty && !s.interface_object))
        };
        sources.iter().filter(knows).map(|s| s.subgraph.0).collect()
    }

    fn node(&mut self, place: PlaceId, types: BitSet) -> Result<NodeId, PlanError> {
        if self.tree.nodes.len() as u32 >= self.options.nodes_max {
            let most = self.options.nodes_max;
            return Err(PlanError::too_large(format!(
                "the operation has more than {most} objects and concrete types to plan"
            )));
        }
        let Some(ty) = types.first().map(TypeId) else {
            return Err(PlanError::failed("a place without concrete types"));
        };
        let types_known = self.types_known(place, ty);
        let graph = &self.tree.supergraph.graph;
        let here = &self.tree.places[place];
        let id = self.tree.nodes.push(Node {
            place,
            ty,
            types,
            told_by: None,
            unites: Vec::new(),
            facts: Vec::new(),
            keys: Vec::new(),
            types_known,
            provides_start: BitSet::new(),
            provides_through: here.provides.iter().map(|(s, _)| s.0).collect(),
        });
        if let Some(edge) = here.edge {
            let field = self.tree.facts[edge].field;
            let start = graph.fields[field]
                .sources
                .iter()
                .filter(|s| s.provides.is_some())
                .map(|s| s.subgraph.0);
            self.tree.nodes[id].provides_start = start.collect();
        }
        self.tree.places[place].nodes.push(id);
        Ok(id)
    }

    fn client_facts(&mut self, place: PlaceId) -> Result<(), PlanError> {
        let Some(selection) = self.tree.places[place].selection else {
            return Ok(());
        };
        let op = self.tree.op;
        let fields = &op.selection_sets[selection].fields;
        for at in 0..self.tree.places[place].nodes.len() {
            let node = self.tree.places[place].nodes[at];
            // A key is likely to be added.
            self.tree.nodes[node].facts.reserve(fields.len() + 1);
        }
        for field in fields {
            let node_of = &op.fields[*field];
            match node_of.field {
                FieldRef::Typename | FieldRef::Schema | FieldRef::Type => continue,
                FieldRef::Field(_) => {}
            }
            let united = self.unite(place, *field)?;
            for at in 0..self.tree.places[place].nodes.len() {
                let node = self.tree.places[place].nodes[at];
                let ty = self.tree.nodes[node].ty;
                if !node_of.types.contains(ty.0) || united.contains(&node) {
                    continue;
                }
                let FieldRef::Field(row) = node_of.field else {
                    continue;
                };
                let name = self.tree.schema().fields[row].name;
                let Some(row) = self.tree.schema().fields_by_name.get(&(ty, name)).copied() else {
                    continue;
                };
                self.fact(node, row, node_of.args.clone(), Some(*field))?;
            }
        }
        Ok(())
    }

    /// Makes a fact with its slot, child place and providers.
    fn fact(
        &mut self,
        node: NodeId,
        field: FieldId,
        args: Vec<Arg>,
        client: Option<FieldNodeId>,
    ) -> Result<FactId, PlanError> {
        let place = self.tree.nodes[node].place;
        let graph = &self.tree.supergraph.graph;
        let schema = &self.tree.supergraph.schema;
        let ty = schema.fields[field].ty;
        let composite = schema.types[ty.id].kind.is_composite();
        let provided = self.provided(place, self.tree.nodes[node].ty, field);
        let several = self.tree.places[place].nodes.len() > 1;
        let shared_slot = match client {
            _ if composite => None,
            Some(c) if several => self.leaf_slots.get(&(place, c)).copied(),
            Some(_) => None,
            None => self.slot_of_any_type(node, field, &args),
        };
        let slot = match shared_slot {
            Some(slot) => slot,
            None => {
                let slot = self.tree.places[place].slots;
                self.tree.places[place].slots = slot.checked_add(1).ok_or_else(|| {
                    PlanError::too_large("one object has more than 65,535 values")
                })?;
                if let Some(c) = client.filter(|_| several && !composite) {
                    self.leaf_slots.insert((place, c), slot);
                }
                slot
            }
        };
        let id = self.tree.facts.push(Fact {
            node,
            is_type: false,
            field,
            args,
            client,
            cond: client.map(|c| self.tree.op.fields[c].cond),
            child: None,
            slot,
            ty,
            plain: graph.fields[field].resolvers_with(&self.options.labels),
            provided: provided.iter().map(|(s, _)| s.0).collect(),
            requires: Vec::new(),
            is_uncertain: false,
        });
        if self.tree.nodes[node].told_by.is_some() || !self.tree.nodes[node].unites.is_empty() {
            self.only_of_told_types(id);
        }
        self.tree.nodes[node].facts.push(id);
        self.index(node, id);
        if composite {
            let mut provides: Vec<(SubgraphId, FieldSetId)> = provided
                .into_iter()
                .filter_map(|(s, sub)| Some((s, sub?)))
                .collect();
            for source in &graph.fields[field].sources {
                if let Some(set) = source.provides {
                    provides.push((source.subgraph, set));
                }
            }
            let selection = client.and_then(|c| self.tree.op.fields[c].selection_set);
            let possible = match selection {
                Some(s) => self.tree.op.selection_sets[s].possible.clone(),
                None => schema.types[ty.id].possible.clone(),
            };
            let depth = self.tree.places[place].internal_depth + u8::from(client.is_none());
            let child = self.place(Some(id), ty.id, possible, selection, depth, provides)?;
            self.tree.facts[id].child = Some(child);
        }
        Ok(id)
    }

    /// Subgraphs that provide `field` at this place by a `@provides` further up, with the nested selection.
    fn provided(
        &self,
        place: PlaceId,
        ty: TypeId,
        field: FieldId,
    ) -> Vec<(SubgraphId, Option<FieldSetId>)> {
        let schema = &self.tree.supergraph.schema;
        let name = schema.fields[field].name;
        let mut out = Vec::new();
        for (subgraph, set) in &self.tree.places[place].provides {
            for item in &self.tree.supergraph.graph.field_sets[*set].items {
                let same = item.field.is_some_and(|f| schema.fields[f].name == name);
                if same && item.types.contains(ty.0) {
                    out.push((*subgraph, item.selection));
                }
            }
        }
        out
    }

    /// Adds what could help: keys of the node, and `@requires` of its facts.
    fn helper_facts(&mut self, node: NodeId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let ty = self.tree.nodes[node].ty;
        if !self.tree.nodes[node].unites.is_empty() {
            self.keys_of_united(node);
            return Ok(());
        }
        // Requirements first: they may add facts to this node, which have requirements themselves.
        let mut next = 0;
        while next < self.tree.nodes[node].facts.len() {
            let fact = self.tree.nodes[node].facts[next];
            self.requirements(node, fact)?;
            next += 1;
        }
        if node == Tree::ROOT {
            return Ok(());
        }
        if Some(ty) == self.tree.supergraph.schema.roots[0] {
            self.reentries(node);
            return Ok(());
        }
        let sources = &graph.types[ty].sources;
        self.tree.nodes[node].keys.reserve(sources.len());
        // Most keys are those of the subgraph before.
        let mut last: Option<(FieldSetId, Rc<[FactId]>)> = None;
        for source in sources {
            for key in source.keys.iter().filter(|k| k.resolvable) {
                if let Some((set, facts)) = &last
                    && graph.field_sets[*set] == graph.field_sets[key.fields]
                {
                    let facts = Rc::clone(facts);
                    self.tree.nodes[node].keys.push(KeyAlternative {
                        subgraph: source.subgraph,
                        by_interface: None,
                        fields: Some(key.fields),
                        facts,
                    });
                    continue;
                }
                let place = self.tree.nodes[node].place;
                let composite = graph.field_sets[key.fields]
                    .items
                    .iter()
                    .any(|i| i.selection.is_some());
                if composite && self.tree.places[place].internal_depth >= INTERNAL_DEPTH_MAX {
                    continue;
                }
                let before = self.tree.nodes[node].facts.len();
                let mut facts = self.field_set(node, key.fields, true)?;
                // The members of other keys come from a subgraph that knows the type; a name comes from nowhere.
                if facts.is_empty() && self.tree.nodes[node].told_by.is_none() {
                    let (telling, all) = self.telling(node);
                    if !all {
                        for fact in self.tokens(node, &telling)? {
                            self.tree.nodes[node].keys.push(KeyAlternative {
                                subgraph: source.subgraph,
                                by_interface: None,
                                fields: Some(key.fields),
                                facts: Rc::new([fact]),
                            });
                        }
                        continue;
                    }
                }
                facts.extend(self.tree.nodes[node].told_by);
                let facts: Rc<[FactId]> = facts.into();
                last = Some((key.fields, Rc::clone(&facts)));
                self.tree.nodes[node].keys.push(KeyAlternative {
                    subgraph: source.subgraph,
                    by_interface: None,
                    fields: Some(key.fields),
                    facts,
                });
                self.key_members(node, before)?;
            }
        }
        self.interface_keys(node)
    }

    /// Key members (the node's facts from `first` on) are rarely computed, but may be.
    fn key_members(&mut self, node: NodeId, first: usize) -> Result<(), PlanError> {
        for i in first..self.tree.nodes[node].facts.len() {
            self.requirements(node, self.tree.nodes[node].facts[i])?;
        }
        Ok(())
    }

    /// A query root in the middle of the response: whoever resolves something of it can be asked (planner rule 54).
    fn reentries(&mut self, node: NodeId) {
        let mut subgraphs = BitSet::new();
        for fact in &self.tree.nodes[node].facts {
            subgraphs.union_with(&self.tree.facts[*fact].plain);
        }
        let keys = subgraphs.iter().map(|subgraph| KeyAlternative {
            subgraph: SubgraphId(subgraph),
            by_interface: None,
            fields: None,
            facts: Rc::new([]),
        });
        self.tree.nodes[node].keys = keys.collect();
    }

    /// Notes what the subgraphs with `@requires` on a fact need; a subgraph that an override label switches off, or has
    /// taken the field from, resolves nothing.
    fn requirements(&mut self, node: NodeId, fact: FactId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        if self.tree.facts[fact].is_type {
            return Ok(());
        }
        let row = &graph.fields[self.tree.facts[fact].field];
        for source in &row.sources {
            let is_plain = source.requires.is_none() && source.context_args.is_empty();
            if is_plain || !row.is_active(source, &self.options.labels) {
                continue;
            }
            let mut facts = match source.requires {
                Some(fields) => self.field_set(node, fields, false)?,
                None => Vec::new(),
            };
            let Some(contexts) = self.contexts(node, source, &mut facts)? else {
                continue;
            };
            if self.needs_told_type(fact, source.subgraph) {
                facts.extend(self.tree.nodes[node].told_by);
            }
            let requirement = Requirement {
                subgraph: source.subgraph,
                fields: source.requires,
                facts,
                contexts,
            };
            self.tree.facts[fact].requires.push(requirement);
        }
        Ok(())
    }

    /// The objects above a node that fill a field's arguments; `None` if one of them is not there.
    fn contexts(
        &mut self,
        node: NodeId,
        source: &FieldSource,
        facts: &mut Vec<FactId>,
    ) -> Result<Option<Vec<Context>>, PlanError> {
        let mut out = Vec::new();
        // What an interface object adds is asked for all types together, which have no one object above.
        if !source.context_args.is_empty() && source.via_interface_object.is_some() {
            return Ok(None);
        }
        for (arg, argument) in source.context_args.iter().enumerate() {
            let sets = |node: NodeId| {
                let ty = self.tree.nodes[node].ty;
                let types = &self.tree.schema().types;
                let mut selections = argument.selections.iter();
                selections.find(|(setter, _)| types[*setter].possible.contains(ty.0))
            };
            let mut above = self.tree.parent(self.tree.nodes[node].place);
            let found = loop {
                let Some(at) = above else { return Ok(None) };
                if let Some((_, fields)) = sets(at) {
                    break (at, *fields);
                }
                above = self.tree.parent(self.tree.nodes[at].place);
            };
            let (node, fields) = found;
            let before = self.tree.nodes[node].facts.len();
            facts.extend(self.field_set(node, fields, false)?);
            self.key_members(node, before)?;
            out.push(Context { arg, node, fields });
        }
        Ok(Some(out))
    }

    /// Subgraphs that can lead to this type from the parent, and whether all that lead to the place do.
    fn telling(&self, node: NodeId) -> (BitSet, bool) {
        let here = &self.tree.nodes[node];
        let Some(edge) = self.tree.places[here.place].edge else {
            return (BitSet::new(), true);
        };
        let fact = &self.tree.facts[edge];
        let parent = &self.tree.nodes[fact.node];
        let holds = |s: u32| {
            parent.types_known.contains(s) || parent.keys.iter().any(|k| k.subgraph.0 == s)
        };
        let leads = |s: u32| {
            fact.plain.contains(s)
                || fact.provided.contains(s)
                || fact.requires.iter().any(|r| r.subgraph.0 == s)
        };
        let leading: BitSet = (0..self.tree.supergraph.subgraphs.len() as u32)
            .filter(|s| holds(*s) && leads(*s))
            .collect();
        let telling = leading.intersection(&here.types_known);
        let all = !telling.is_empty() && telling == leading;
        (telling, all)
    }

    /// For each of these subgraphs a value whose arrival shows that the object is of the node's type.
    fn tokens(&mut self, node: NodeId, subgraphs: &BitSet) -> Result<Vec<FactId>, PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let schema: &'a Schema = &self.tree.supergraph.schema;
        let fields = &schema.types[self.tree.nodes[node].ty].fields;
        let place = self.tree.nodes[node].place;
        let mut out = Vec::new();
        // Subgraphs that can name the type and nothing else.
        let mut nameless = BitSet::new();
        for subgraph in subgraphs.iter() {
            let token = fields
                .iter()
                .copied()
                .filter(|f| {
                    let args = &schema.fields[*f].args;
                    graph.fields[*f].resolvers.contains(subgraph)
                        && !args.iter().any(|a| schema.inputs[*a].is_required())
                })
                .min_by_key(|f| schema.types[schema.fields[*f].ty.id].kind.is_composite());
            let Some(token) = token else {
                nameless.insert(subgraph);
                continue;
            };
            let fact = match self.find(node, token, &[]) {
                Some(fact) => fact,
                // An object may hold another of its type, and so on.
                None if schema.types[schema.fields[token].ty.id].kind.is_composite()
                    && self.tree.places[place].internal_depth >= INTERNAL_DEPTH_MAX =>
                {
                    continue;
                }
                None => self.fact(node, token, Vec::new(), None)?,
            };
            if !out.contains(&fact) {
                out.push(fact);
            }
        }
        let edge = self.tree.places[place].edge;
        if let (Some(edge), false) = (edge, nameless.is_empty()) {
            let field = self.tree.facts[edge].field;
            out.push(self.type_fact(node, field, nameless, None));
        }
        Ok(out)
    }

    /// All facts a field set stands for at a node, made where missing. Nesting is that of schema text, not of requests.
    fn field_set(
        &mut self,
        node: NodeId,
        set: FieldSetId,
        is_key: bool,
    ) -> Result<Vec<FactId>, PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let schema: &'a Schema = &self.tree.supergraph.schema;
        let ty = self.tree.nodes[node].ty;
        let mut out = Vec::new();
        for item in &graph.field_sets[set].items {
            let Some(row) = item.field else { continue };
            if !item.types.contains(ty.0) {
                continue;
            }
            let Some(row) = schema
                .fields_by_name
                .get(&(ty, schema.fields[row].name))
                .copied()
            else {
                continue;
            };
            let fact = match (self.find(node, row, &item.args), item.selection) {
                (Some(fact), Some(set)) if self.tree.facts[fact].client.is_some() => {
                    self.through(fact, set, is_key)?
                }
                (Some(fact), _) => fact,
                (None, _) => {
                    let args = item
                        .args
                        .iter()
                        .map(|(name, value)| Arg {
                            input: schema
                                .arg_by_name(&schema.fields[row].args, name)
                                .unwrap_or(ogive_schema::InputId(u32::MAX)),
                            name: name.clone(),
                            value: ArgValue::Const(value.clone()),
                        })
                        .collect();
                    self.fact(node, row, args, None)?
                }
            };
            if !out.contains(&fact) {
                out.push(fact);
            }
            if let (Some(sub), Some(child)) = (item.selection, self.tree.facts[fact].child) {
                for child_node in self.tree.places[child].nodes.clone() {
                    if !self.tree.nodes[child_node].unites.is_empty() {
                        continue;
                    }
                    for f in self.field_set(child_node, sub, is_key)? {
                        if !out.contains(&f) {
                            out.push(f);
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    fn find(
        &self,
        node: NodeId,
        field: FieldId,
        args: &[(Box<str>, ogive_schema::ConstValue)],
    ) -> Option<FactId> {
        let of_node = &self.tree.nodes[node].facts;
        let candidates = match of_node.len() > SCANNED_MAX {
            true => self.wide.get(&(node, field))?,
            false => of_node,
        };
        candidates.iter().copied().find(|f| {
            let fact = &self.tree.facts[*f];
            let have = &fact.args;
            fact.field == field
                && !fact.is_type
                && have.len() == args.len()
                && args.iter().all(|(name, value)| {
                    have.iter().any(|a| {
                        a.name == *name && matches!(&a.value, ArgValue::Const(c) if c == value)
                    })
                })
        })
    }

    /// Makes the fact, which its node has already, be found.
    fn index(&mut self, node: NodeId, id: FactId) {
        let of_node = &self.tree.nodes[node].facts;
        let fresh = match of_node.len() {
            0..=SCANNED_MAX => return,
            n if n == SCANNED_MAX + 1 => of_node.as_slice(),
            _ => &[id],
        };
        for fact in fresh {
            let field = self.tree.facts[*fact].field;
            if !self.tree.facts[*fact].is_type {
                self.wide.entry((node, field)).or_default().push(*fact);
            }
        }
    }
}
