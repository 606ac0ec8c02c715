//! How the tree grows: places and nodes from the top, clients' values first, then what could help ([`requirement`]).
//!
//! Where a subgraph answers an interface as `@interfaceObject`, see [`interface_objects`]; where field sets go through
//! objects that the client selects too, [`own`].

mod interface_objects;
mod own;
mod requirement;
mod serving;

use ogive_base::{BitSet, FastMap, IdVec};
use ogive_federation::{FieldSetId, FieldSource, SubgraphId, Supergraph};
use ogive_operation::{Arg, ArgValue, FieldNodeId, FieldRef, Operation, SelectionSetId};
use ogive_plan::SlotIndex;
use ogive_schema::{FieldId, TypeId};

use crate::{
    PlanError, PlanOptions,
    classes::Classes,
    tree::{Fact, FactId, Node, NodeId, Place, PlaceId, Tree},
};
use own::Choices;

/// How deep places that only the gateway needs are nested at first: keys inside keys, and what `@requires` goes
/// through. Hardly any plan needs more.
pub(crate) const DEPTH: u16 = 3;

/// Grows the tree as deep as most plans need it. Fails on the node limit, and on an operation that did not come from
/// [`restrict`](crate::restrict()) where something is restricted.
pub fn grow<'a>(
    supergraph: &'a Supergraph,
    op: &'a Operation,
    options: &PlanOptions,
) -> Result<Tree<'a>, PlanError> {
    grow_to(supergraph, op, options, DEPTH)
}

/// As [`grow`], places that only the gateway needs being nested up to `depth` before they add no further ones.
pub(crate) fn grow_to<'a>(
    supergraph: &'a Supergraph,
    op: &'a Operation,
    options: &PlanOptions,
    depth: u16,
) -> Result<Tree<'a>, PlanError> {
    if !op.is_restricted && !supergraph.restrictions.is_empty() {
        return Err(PlanError::failed(
            "the supergraph's restrictions were not applied to the operation",
        ));
    }
    let mut choices = Choices::default();
    loop {
        let tree = grow_with(supergraph, op, options, depth, &mut choices)?;
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
    depth: u16,
    choices: &mut Choices,
) -> Result<Tree<'a>, PlanError> {
    let mut grower = Grower {
        options,
        depth,
        wide: FastMap::default(),
        leaf_slots: FastMap::default(),
        visiting: Tree::ROOT,
        is_noted: BitSet::new(),
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
            is_cut: false,
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
        grower.visiting = NodeId(next as u32);
        grower.helper_facts(grower.visiting)?;
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
    /// Deepest nesting of places that only the gateway needs and that add further ones.
    depth: u16,
    tree: Tree<'a>,
    /// Facts by node and field, any arguments, of nodes with more than [`SCANNED_MAX`] facts.
    wide: FastMap<(NodeId, FieldId), Vec<FactId>>,
    /// Slots shared by all concrete types: client leaves by field node.
    leaf_slots: FastMap<(PlaceId, FieldNodeId), SlotIndex>,
    /// The node that gets its helper facts; those before it have them.
    visiting: NodeId,
    /// Facts (`FactId.0`) whose requirements are noted.
    is_noted: BitSet,
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
        internal_depth: u16,
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
            let depth = self.tree.places[place].internal_depth;
            let depth = depth.saturating_add(u16::from(client.is_none()));
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

    fn find(
        &self,
        node: NodeId,
        field: FieldId,
        args: &[(Box<str>, ogive_schema::ConstValue)],
    ) -> Option<FactId> {
        let of_node = &self.tree.nodes[node].facts;
        let candidates = if of_node.len() > SCANNED_MAX {
            self.wide.get(&(node, field))?
        } else {
            of_node
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
