//! Pass 1: the planning tree.
//!
//! A [`Place`] is one object-valued place of the response (later a record layout). Its [`Node`]s are its concrete
//! types, in classes that need not be told apart ([`crate::classes`]). A [`Fact`] is one field value at a node: wanted by
//! the client, or possibly useful as a member of a key or of a `@requires` selection. Facts know who can bring them; nodes know by which keys they can be entered.
//!
//! Invariants: ids grow from parents to children; facts of one node have distinct (field, arguments, response key);
//! a gateway-only fact reuses a client's fact with the same field and arguments, unless [`Tree::own`] keeps them apart.

mod build;

use std::{rc::Rc, sync::Arc};

use ogive_base::{BitSet, FastMap, IdVec, define_id};
use ogive_federation::{FieldSetId, QueryGraph, SubgraphId, Supergraph};
use ogive_operation::{Arg, CondId, FieldNodeId, Operation, SelectionSetId};
use ogive_plan::{OperationKind, SlotIndex};
use ogive_schema::{FieldId, Schema, Type, TypeId};

use crate::{Batching, Measured};

pub use build::grow;
pub(crate) use build::{DEPTH, grow_to};

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
    /// Whether keys and `@requires` were left out because places are nested too deep for them.
    pub is_cut: bool,
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
    pub internal_depth: u16,
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
    /// (`build/serving.rs`).
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
    /// Whether its arguments are these. Most fields have none, so that nothing is compared.
    #[inline]
    pub fn has_args(&self, args: &[Arg]) -> bool {
        self.args.len() == args.len() && (args.is_empty() || self.args == args)
    }
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
