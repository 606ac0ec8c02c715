//! Pass 5: from decisions to a [`Plan`].
//!
//! Reading order: [`mod@conditions`] (what must hold for each visit), [`object`] (what is asked of an object, and shapes), [`representation`]
//! (keys and required values), [`output`] (layouts and what the client sees), and [`emit`] which puts them together.

mod assemble;
mod by_interface;
pub mod conditions;
mod context;
mod group;
mod lookups;
mod names;
pub mod object;
pub mod output;
pub mod print;
pub mod representation;
mod selection;
mod tables;

use ogive_base::{BitSet, FastMap, FastSet, IdVec, Interner, Symbol, id::Id as _};
use ogive_operation::{CondId, SelectionSetId};
use ogive_plan::{
    Cond, Deferral, DeferredGroup, DeferredOutput, DerivedCell, EnumId, Fetch, FetchId, LayoutId,
    ObjectShape, OperationKind, OutField, Plan, Representation, Requirement, RuntimeType,
    ShapeField, ShapeId, Shared, Slot, StreamOutput,
};
use ogive_schema::{FieldId, TypeId};

use crate::{
    assign::{Schedule, Via, VisitId},
    emit::{
        conditions::Conditional,
        group::Group,
        object::{Pool, ShapeKey},
        output::{OutRow, SlotKey, Source},
        selection::{SelectionId, Selections},
        tables::{Grouped, ListCache},
    },
    tree::{FactId, PlaceId, Tree},
};

/// Places for which room is made at once.
const ROOM: usize = 28;

/// Turns a schedule into a plan. Takes time and memory in proportion to the plan.
pub fn emit(tree: &Tree<'_>, schedule: &Schedule) -> Plan {
    let index = Index::new(tree, schedule);
    // Large operations repeat themselves.
    let room = tree.places.len().min(ROOM);
    let mut emitter = Emitter {
        tree,
        schedule,
        conditional: Conditional::new(tree, schedule),
        index,
        runtime_types: FastMap::default(),
        types: IdVec::new(),
        enum_ids: FastMap::default(),
        enums: IdVec::new(),
        shapes: IdVec::new(),
        questions: FastMap::default(),
        possible: IdVec::new(),
        selections: Selections::with_capacity(room),
        names: tree.op.keys.clone(),
        schema_names: FastMap::default(),
        heads: FastMap::default(),
        coordinates: FastMap::default(),
        lists: Lists::default(),
        pool: Pool::default(),
        variables: tree.op.variables.iter().map(|v| &*v.name).collect(),
        context_types: FastMap::default(),
        text: String::new(),
        slot_keys: Vec::new(),
        out_rows: Vec::new(),
        sources: Vec::new(),
        keys_seen: vec![0; tree.op.keys.len()],
        deferred: Vec::new(),
        streamed: Vec::new(),
    };
    emitter.lists.shapes.reserve(room);
    emitter.lists.slots.reserve(room);
    emitter.lists.output.reserve(room);
    emitter.heads.reserve(2 * room);
    emitter.coordinates.reserve(2 * room);
    emitter.possible_types();
    emitter.plan()
}

/// Everything the parts of emission share.
pub(crate) struct Emitter<'a> {
    pub(crate) tree: &'a Tree<'a>,
    pub(crate) schedule: &'a Schedule,
    pub(crate) conditional: Conditional,
    index: Index,
    pub(crate) runtime_types: FastMap<TypeId, RuntimeType>,
    pub(crate) types: IdVec<RuntimeType, Box<str>>,
    pub(crate) enum_ids: FastMap<TypeId, EnumId>,
    pub(crate) enums: IdVec<EnumId, Vec<Box<str>>>,
    pub(crate) shapes: IdVec<ShapeId, ObjectShape>,
    /// What look-ups ask: subgraph, concrete types (`TypeId.0`), selection. Equal questions have one number.
    questions: FastMap<(u32, BitSet, SelectionId), u32>,
    /// Concrete types (`TypeId.0`) that the subgraphs asked for a place can answer there.
    pub(crate) possible: IdVec<PlaceId, BitSet>,
    pub(crate) selections: Selections,
    /// Response names: those of the operation, then others.
    pub(crate) names: Interner,
    /// Names of the schema among the response names.
    pub(crate) schema_names: FastMap<Symbol, Symbol>,
    /// Texts of fields without arguments: by field, response name and whether a brace follows.
    pub(crate) heads: FastMap<(FieldId, Symbol, bool), Symbol>,
    /// `Type.field` of fields that clients see.
    pub(crate) coordinates: FastMap<FieldId, Box<str>>,
    pub(crate) lists: Lists,
    pub(crate) pool: Pool,
    /// Types of variables that are filled from objects above, by name.
    context_types: FastMap<Box<str>, Box<str>>,
    /// Names of the client's variables.
    pub(crate) variables: FastSet<&'a str>,
    /// Room for text while it is written.
    pub(crate) text: String,
    /// Room for what one layout is made of.
    pub(crate) slot_keys: Vec<SlotKey>,
    pub(crate) out_rows: Vec<OutRow>,
    pub(crate) sources: Vec<Source<'a>>,
    /// By response key of the operation: 1 + the last place whose output has it.
    pub(crate) keys_seen: Vec<u32>,
    /// Entries of outputs that are not in the primary part, in order: place, index, part.
    pub(crate) deferred: Vec<DeferredOutput>,
    /// Entries of outputs that are streamed, in the same order.
    pub(crate) streamed: Vec<StreamOutput>,
}

/// Lists of the plan that several rows may share.
#[derive(Default)]
pub(crate) struct Lists {
    /// By response name, slot and shape of the objects.
    pub(crate) shapes: ListCache<ShapeKey, ShapeField>,
    /// By field, response key and child, in order of slots.
    pub(crate) slots: ListCache<SlotKey, Slot>,
    pub(crate) output: ListCache<OutRow, OutField>,
    /// By themselves.
    pub(crate) representations: FastSet<Shared<Representation>>,
}

impl Lists {
    /// The same list, held once.
    fn representations(&mut self, list: Vec<Representation>) -> Shared<Representation> {
        let list = Shared::from(list);
        self.representations
            .get_or_insert_with(&list, Shared::clone)
            .clone()
    }
}

/// What is found by visit or by node.
struct Index {
    /// By visit: the facts it brings, gateway-only ones first, edges of descents included.
    facts: Grouped<FactId>,
    /// By visit: descents from it into child places, in order of places.
    children: Grouped<(PlaceId, VisitId)>,
    /// By node: its live visits.
    visits: Grouped<VisitId>,
}

impl Index {
    fn new(tree: &Tree<'_>, schedule: &Schedule) -> Self {
        let mut facts: Vec<(u32, FactId)> = Vec::with_capacity(tree.facts.len());
        for fact in tree.facts.ids() {
            if let Some(visit) = schedule.provider.get(&fact)
                && schedule.visits[*visit].live
            {
                facts.push((visit.0, fact));
            }
        }
        let mut children = Vec::new();
        let mut visits = Vec::with_capacity(schedule.visits.len());
        // The edges of descents from visits that do not provide them; several classes of types share an edge.
        let mut edges: FastSet<(VisitId, FactId)> = FastSet::default();
        for (id, visit) in schedule.visits.iter().filter(|(_, v)| v.live) {
            visits.push((visit.node.0, id));
            let Via::Parent(parent) = visit.via else {
                continue;
            };
            let place = tree.nodes[visit.node].place;
            children.push((parent.0, (place, id)));
            if let Some(edge) = tree.places[place].edge
                && schedule.provider.get(&edge) != Some(&parent)
                && edges.insert((parent, edge))
            {
                facts.push((parent.0, edge));
            }
        }
        // Mutations are called in the client's order.
        let turns: FastMap<FactId, usize> = match tree.op.kind {
            OperationKind::Mutation => tree.root_order().into_iter().zip(0..).collect(),
            _ => FastMap::default(),
        };
        let n = schedule.visits.len();
        let mut out = Index {
            facts: Grouped::new(n, &facts),
            children: Grouped::new(n, &children),
            visits: Grouped::new(tree.nodes.len(), &visits),
        };
        for visit in 0..n {
            let of_visit = out.facts.of_mut(visit);
            of_visit.sort_unstable_by_key(|f| {
                (tree.facts[*f].client.is_some(), turns.get(f).copied(), *f)
            });
            out.children.of_mut(visit).sort_unstable();
        }
        out
    }
}

impl<'a> Emitter<'a> {
    /// The facts a visit brings, gateway-only ones first.
    pub(crate) fn facts_of(&self, visit: VisitId) -> &[FactId] {
        self.index.facts.of(visit.index())
    }

    /// Descents from a visit into a child place.
    fn children_of(&self, visit: VisitId, place: PlaceId) -> &[(PlaceId, VisitId)] {
        let all = self.index.children.of(visit.index());
        let start = all.partition_point(|(p, _)| *p < place);
        let end = start + all[start..].partition_point(|(p, _)| *p == place);
        &all[start..end]
    }

    /// Everything the descents from a visit into a child place bring.
    pub(crate) fn facts_below(&mut self, visit: VisitId, place: PlaceId) -> Vec<(VisitId, FactId)> {
        let mut out = self.pool.wanted.pop().unwrap_or_default();
        for (_, child) in self.children_of(visit, place) {
            out.extend(self.facts_of(*child).iter().map(|f| (*child, *f)));
        }
        out
    }

    /// A subgraph answers a place with the concrete types it knows there; others are impossible, whatever the client
    /// selects on them.
    fn possible_types(&mut self) {
        let tree = self.tree;
        for (id, place) in tree.places.iter() {
            let Some(edge) = place.edge else {
                self.possible.push(place.possible.clone());
                continue;
            };
            let mut asked = BitSet::new();
            if let Some(provider) = self.schedule.provider.get(&edge) {
                asked.insert(self.schedule.visits[*provider].subgraph);
            }
            for node in &place.nodes {
                for visit in self.index.visits.of(node.index()) {
                    if let Via::Parent(_) = self.schedule.visits[*visit].via {
                        asked.insert(self.schedule.visits[*visit].subgraph);
                    }
                }
            }
            let known = place.nodes.iter().map(|n| &tree.nodes[*n]);
            let possible = known
                .filter(|n| n.types_known.intersects(&asked))
                .flat_map(|n| n.types.iter())
                .collect();
            let made = self.possible.push(possible);
            debug_assert_eq!(made, id, "rows in order of places");
        }
    }

    /// The runtime type of an object type.
    pub(crate) fn runtime_type(&mut self, ty: TypeId) -> RuntimeType {
        if let Some(found) = self.runtime_types.get(&ty) {
            return *found;
        }
        let id = self.types.push(self.tree.schema().type_name(ty).into());
        self.runtime_types.insert(ty, id);
        id
    }

    /// Runtime types of a set of `TypeId.0`s.
    pub(crate) fn runtime_set(&mut self, types: &BitSet) -> BitSet {
        types
            .iter()
            .map(|t| self.runtime_type(TypeId(t)).0)
            .collect()
    }

    fn plan(mut self) -> Plan {
        let layouts = self.layouts();
        let groups = group::groups(self.schedule);
        let mut fetches: IdVec<FetchId, Fetch> = IdVec::from_vec(Vec::with_capacity(groups.len()));
        let mut further: Vec<(FetchId, Fetch)> = Vec::new();
        for group in &groups {
            let mut requests = self.requests(group, &groups).into_iter();
            if let Some(first) = requests.next() {
                let id = fetches.push(first);
                further.extend(requests.map(|fetch| (id, fetch)));
            }
        }
        self.serialise_scopes(&groups, &mut fetches);
        let fetches = with_further(fetches, further);
        // Until waves are numbered, the part is in their place.
        let parts: Vec<u32> = fetches.iter().map(|(_, fetch)| fetch.wave).collect();
        let (fetches, order) = order_by_wave(fetches);
        let parts = order.iter().map(|old| parts[old.index()]).collect();
        let deferral = self.deferral(parts);
        let conditions = self.conditional.table();
        let requirements = self.requirements();
        Plan {
            kind: self.tree.op.kind,
            subgraphs: self
                .tree
                .supergraph
                .subgraphs
                .iter()
                .map(|(_, s)| s.name.clone())
                .collect(),
            types: self.types,
            enums: self.enums,
            conditions,
            variables: self
                .tree
                .op
                .variables
                .iter()
                .map(|v| v.name.clone())
                .collect(),
            requirements,
            layouts,
            shapes: self.shapes,
            fetches,
            locals: self.tree.locals.len() as u32,
            deferral,
            derived: DerivedCell::default(),
        }
    }

    /// The deferred groups, if there are any, given the part of each fetch.
    fn deferral(&mut self, fetches: Vec<u32>) -> Option<Box<Deferral>> {
        let deferral = &self.tree.op.deferral;
        if deferral.is_empty() {
            return None;
        }
        let mut places: FastMap<SelectionSetId, PlaceId> = FastMap::default();
        for (id, place) in self.tree.places.iter() {
            places.extend(place.selection.map(|set| (set, id)));
        }
        let groups = deferral.groups.iter().map(|(_, group)| DeferredGroup {
            label: group.label.clone(),
            parent: group.parent.map(|parent| parent.0),
            layout: places.get(&group.place).map_or_else(
                || self.as_deep_as(group.place),
                |place| output::layout_id(*place),
            ),
            variable: group.variable,
            cond: plan_cond(group.cond),
        });
        let primary = [Vec::new()];
        let parts = match self.schedule.parts.as_slice() {
            [] => primary.iter(),
            parts => parts.iter(),
        };
        Some(Box::new(Deferral {
            groups: groups.collect(),
            parts: parts.map(|p| p.iter().map(|g| g.0).collect()).collect(),
            fetches,
            outputs: std::mem::take(&mut self.deferred),
            streams: std::mem::take(&mut self.streamed),
        }))
    }

    /// Any place as deep as a selection set that has none of its own, but copies.
    fn as_deep_as(&self, set: SelectionSetId) -> LayoutId {
        let sets = &self.tree.op.selection_sets;
        let is_as_deep = |other: SelectionSetId| sets[other].depth == sets[set].depth;
        let mut places = self.tree.places.iter();
        let found = places.find(|(_, place)| place.selection.is_some_and(is_as_deep));
        found.map_or(Plan::ROOT, |(id, _)| output::layout_id(id))
    }

    /// What callers must be, in order of the literals.
    fn requirements(&self) -> Vec<Requirement> {
        let known = &self.tree.supergraph.restrictions.requirements;
        let rows = self.tree.op.requirements.iter();
        let requirements = rows.map(|row| {
            let found = &known[*row as usize];
            Requirement {
                authenticated: found.authenticated,
                scopes: found.scopes.clone(),
                policies: found.policies.clone(),
                mask: found.mask.clone(),
            }
        });
        requirements.collect()
    }

    /// The number of what a look-up asks; equal for the same question.
    fn question(&mut self, subgraph: u32, types: &BitSet, selection: SelectionId) -> u32 {
        let next = self.questions.len() as u32;
        let key = (subgraph, types.clone(), selection);
        *self.questions.entry(key).or_insert(next)
    }

    /// Facts that must be in hand before a request with these entries can be written.
    fn inputs_of(&self, visits: &[VisitId]) -> Vec<FactId> {
        let mut out = Vec::new();
        let mut stack: Vec<VisitId> = visits.to_vec();
        while let Some(id) = stack.pop() {
            let visit = &self.schedule.visits[id];
            let children = self.index.children.of(id.index());
            stack.extend(children.iter().map(|(_, child)| *child));
            let keys = &self.tree.nodes[visit.node].keys;
            out.extend(visit.keys().flat_map(|k| keys[k].facts.iter()));
            if let Via::Key(_) = visit.via {
                out.extend(self.tree.places[self.tree.nodes[visit.node].place].edge);
                out.extend(self.required_facts(id));
            }
        }
        out
    }

    /// Facts that the `@requires` of what an entry brings need.
    pub(crate) fn required_facts(&self, id: VisitId) -> Vec<FactId> {
        let visit = &self.schedule.visits[id];
        self.facts_of(id)
            .iter()
            .flat_map(|f| &self.tree.facts[*f].requires)
            .filter(|r| r.subgraph.0 == visit.subgraph)
            .flat_map(|r| r.facts.iter().copied())
            .collect()
    }

    /// Mutation root fields run in order: the first request of each scope waits for all of the scope before.
    fn serialise_scopes(&self, groups: &[Group], fetches: &mut IdVec<FetchId, Fetch>) {
        if self.tree.op.kind != OperationKind::Mutation {
            return;
        }
        let mut previous: Vec<FetchId> = Vec::new();
        let mut at = 0;
        while at < groups.len() {
            let scope = groups[at].key.scope;
            let mut members = Vec::new();
            while at < groups.len() && groups[at].key.scope == scope {
                // What is deferred holds nobody up.
                if self.schedule.part_of(groups[at].key.wave) == Deferral::PRIMARY {
                    members.push(FetchId::from_usize(at));
                }
                at += 1;
            }
            for id in &members {
                if fetches[*id].dependencies.is_empty() {
                    fetches[*id].dependencies.clone_from(&previous);
                }
            }
            previous = members;
        }
    }
}

/// Puts every further request of a group (by the group's first) behind the first; whoever waits for a group waits for all
/// of them.
fn with_further(
    fetches: IdVec<FetchId, Fetch>,
    further: Vec<(FetchId, Fetch)>,
) -> IdVec<FetchId, Fetch> {
    if further.is_empty() {
        return fetches;
    }
    let mut further = further.into_iter().peekable();
    let mut out: IdVec<FetchId, Fetch> = IdVec::new();
    let mut members: IdVec<FetchId, Vec<FetchId>> = IdVec::new();
    for (group, first) in fetches.iter() {
        // Groups come after those they wait for.
        let waits = first.dependencies.iter();
        let dependencies: Vec<FetchId> = waits.flat_map(|d| members[*d].clone()).collect();
        let mut own = Vec::new();
        let mut put = |fetch: &Fetch| {
            own.push(out.push(Fetch {
                dependencies: dependencies.clone(),
                ..fetch.clone()
            }));
        };
        put(first);
        while let Some((_, fetch)) = further.next_if(|(of, _)| *of == group) {
            put(&fetch);
        }
        members.push(own);
    }
    out
}

/// Numbers waves by longest chain, fills successors, and orders fetches by wave, then subgraph.
/// Says too which row each was.
fn order_by_wave(mut fetches: IdVec<FetchId, Fetch>) -> (IdVec<FetchId, Fetch>, Vec<FetchId>) {
    // Dependencies point to earlier rows: groups are sorted by scope and wave.
    for id in fetches.ids() {
        let wave = fetches[id]
            .dependencies
            .iter()
            .map(|d| fetches[*d].wave)
            .max()
            .unwrap_or(0)
            + 1;
        fetches[id].wave = wave;
    }
    let mut order: Vec<FetchId> = fetches.ids().collect();
    order.sort_by_key(|id| (fetches[*id].wave, fetches[*id].subgraph, *id));
    let mut new_id: IdVec<FetchId, FetchId> = IdVec::from_vec(vec![FetchId(0); order.len()]);
    for (new, old) in order.iter().enumerate() {
        new_id[*old] = FetchId::from_usize(new);
    }
    let mut out: IdVec<FetchId, Fetch> = IdVec::from_vec(Vec::with_capacity(order.len()));
    for old in &order {
        let mut fetch = std::mem::replace(&mut fetches[*old], nothing());
        for dependency in &mut fetch.dependencies {
            *dependency = new_id[*dependency];
        }
        fetch.dependencies.sort();
        out.push(fetch);
    }
    for id in out.ids() {
        for dependency in out[id].dependencies.clone() {
            out[dependency].successors.push(id);
        }
    }
    (out, order)
}

/// A fetch in place of one that was taken out.
fn nothing() -> Fetch {
    Fetch {
        subgraph: 0,
        wave: 0,
        dependencies: Vec::new(),
        successors: Vec::new(),
        kind: OperationKind::Query,
        segments: Vec::new(),
        variables: Vec::new(),
        root: None,
        lookups: Vec::new(),
    }
}

/// A condition of the operation's table as one of the plan's: the tables have the same rows.
pub(crate) fn plan_cond(cond: CondId) -> Cond {
    Cond(cond.0)
}
