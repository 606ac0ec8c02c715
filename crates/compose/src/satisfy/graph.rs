//! What the subgraphs can resolve, as nodes and edges.
//!
//! A node is a composite type of one subgraph, or a copy of it under a `@provides`, where some external fields are
//! available. Edges are its fields. Nodes are made when first reached. Hops between nodes of one merged type go by
//! keys; keys that ask for the same fields form one group, so a hundred subgraphs with the same key cost one check.

use ogive_base::{FastMap, IdVec, Symbol, define_id};
use ogive_schema::{FieldId, OperationKind, TypeId};

use crate::{
    fields::Item,
    merge::{MTypeId, Merged},
    subgraph::Subgraph,
};

define_id! {
    /// A node.
    pub struct NodeId;
}

/// A field set over merged names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Want {
    /// A field and what to select of it; `None` is `__typename`.
    Field(Option<Symbol>, Vec<Want>),
    /// Only on values of a type.
    On(MTypeId, Vec<Want>),
}

/// A type in a subgraph.
#[derive(Clone, Debug)]
pub struct Node {
    /// The subgraph.
    pub sub: u32,
    /// Its type.
    pub ty: TypeId,
    /// The merged type.
    pub merged: MTypeId,
    /// Index of what is provided here; 0 is nothing.
    pub provided: u32,
    /// Declared `@interfaceObject`.
    pub interface_object: bool,
    /// Fields by merged name, sorted.
    pub edges: Vec<(Symbol, FieldId)>,
    /// Whether keys lead away or requirements are to be met here.
    pub active: bool,
}

/// Keys that ask for the same fields.
#[derive(Clone, Debug)]
pub struct KeyGroup {
    /// The fields.
    pub wants: Vec<Want>,
    /// Where they lead.
    pub targets: Vec<NodeId>,
}

/// The graph, for one choice of progressive overrides.
pub struct Graph<'a> {
    /// The merged types.
    pub merged: &'a Merged,
    /// The subgraphs.
    pub subs: &'a [Subgraph],
    /// Nodes.
    pub nodes: IdVec<NodeId, Node>,
    by_type: FastMap<(u32, TypeId, u32), NodeId>,
    provisions: Vec<Vec<Item>>,
    /// Key groups per merged type.
    pub groups: Vec<KeyGroup>,
    /// Groups that lead on from a merged type.
    pub groups_of: Vec<Vec<u32>>,
    /// Labels of progressive overrides that are on.
    pub labels_on: Vec<Box<str>>,
    /// Requirements per subgraph field, over merged names.
    pub requires: FastMap<(u32, FieldId), Vec<Want>>,
}

/// A graph without what it is a graph of, to be kept between compositions.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    nodes: IdVec<NodeId, Node>,
    by_type: FastMap<(u32, TypeId, u32), NodeId>,
    provisions: Vec<Vec<Item>>,
    groups: Vec<KeyGroup>,
    groups_of: Vec<Vec<u32>>,
    requires: FastMap<(u32, FieldId), Vec<Want>>,
}

/// A field set over merged names.
pub(super) fn wants(merged: &Merged, subs: &[Subgraph], sub: u32, items: &[Item]) -> Vec<Want> {
    let name = |field: &FieldId| {
        let local = subs[sub as usize].schema.fields[*field].name;
        merged.sub_names[sub as usize][local.0 as usize]
    };
    let below = |items: &[Item]| wants(merged, subs, sub, items);
    let want = |item: &Item| match item {
        Item::Field {
            field, sub: inner, ..
        } => Some(Want::Field(field.as_ref().map(name), below(inner))),
        Item::On { ty, sub: inner } => Some(Want::On(merged.of(sub, *ty)?, below(inner))),
    };
    items.iter().filter_map(want).collect()
}

impl<'a> Graph<'a> {
    /// What can be kept.
    pub(super) fn into_parts(self) -> Parts {
        Parts {
            nodes: self.nodes,
            by_type: self.by_type,
            provisions: self.provisions,
            groups: self.groups,
            groups_of: self.groups_of,
            requires: self.requires,
        }
    }

    /// The graph again after some subgraphs were replaced by others of the same shape: nodes, keys and their ids stay,
    /// edges and requirements are theirs anew. `None` if they provide anything.
    pub(super) fn again(
        parts: Parts,
        merged: &'a Merged,
        subs: &'a [Subgraph],
        changed: &[u32],
    ) -> Option<Self> {
        let provides = |s: &u32| {
            let fields = &subs[*s as usize].fields;
            fields.iter().any(|(_, f)| f.provides.is_some())
        };
        let provided = |node: &Node| node.provided != 0 && changed.contains(&node.sub);
        if changed.iter().any(provides) || parts.nodes.iter().any(|(_, n)| provided(n)) {
            return None;
        }
        let mut graph = Graph {
            merged,
            subs,
            nodes: parts.nodes,
            by_type: parts.by_type,
            provisions: parts.provisions,
            groups: parts.groups,
            groups_of: parts.groups_of,
            labels_on: Vec::new(),
            requires: parts.requires,
        };
        graph.by_type.retain(|(s, ..), _| !changed.contains(s));
        graph.requires.retain(|(s, _), _| !changed.contains(s));
        for node in graph.nodes.ids() {
            let row = &graph.nodes[node];
            let sub = row.sub;
            if !changed.contains(&sub) {
                continue;
            }
            let sources = &merged.types[row.merged].sources;
            let ty = sources.iter().find(|(s, _)| *s == sub)?.1;
            let edges = graph.edges(sub, ty);
            let active = graph.is_active(sub, &edges, graph.nodes[node].merged);
            let row = &mut graph.nodes[node];
            (row.ty, row.edges, row.active) = (ty, edges, active);
            graph.by_type.insert((sub, ty, 0), node);
        }
        for sub in changed {
            graph.read_requires(*sub);
        }
        Some(graph)
    }

    fn read_requires(&mut self, s: u32) {
        for (field, info) in self.subs[s as usize].fields.iter() {
            if let Some(set) = &info.requires {
                let wants = self.wants(s, &set.items);
                self.requires.insert((s, field), wants);
            }
        }
    }

    /// A type's fields by merged name, sorted.
    fn edges(&self, sub: u32, ty: TypeId) -> Vec<(Symbol, FieldId)> {
        let s = &self.subs[sub as usize];
        let names = &self.merged.sub_names[sub as usize];
        let mut edges: Vec<(Symbol, FieldId)> = s.schema.types[ty]
            .fields
            .iter()
            .map(|f| (names[s.schema.fields[*f].name.0 as usize], *f))
            .collect();
        edges.sort_unstable();
        edges
    }

    fn is_active(&self, sub: u32, edges: &[(Symbol, FieldId)], merged: MTypeId) -> bool {
        let fields = &self.subs[sub as usize].fields;
        edges.iter().any(|(_, f)| fields[*f].requires.is_some())
            || !self.groups_of[merged.0 as usize].is_empty()
    }

    /// The graph of all subgraphs.
    pub fn new(merged: &'a Merged, subs: &'a [Subgraph], labels_on: Vec<Box<str>>) -> Self {
        let mut graph = Graph {
            merged,
            subs,
            nodes: IdVec::new(),
            by_type: FastMap::default(),
            provisions: vec![Vec::new()],
            groups: Vec::new(),
            groups_of: vec![Vec::new(); merged.types.len()],
            labels_on,
            requires: FastMap::default(),
        };
        graph.find_keys();
        for s in 0..subs.len() {
            graph.read_requires(s as u32);
        }
        graph
    }

    /// A field set over merged names.
    pub fn wants(&self, sub: u32, items: &[Item]) -> Vec<Want> {
        wants(self.merged, self.subs, sub, items)
    }

    fn find_keys(&mut self) {
        let merged = self.merged;
        let query = merged.root(OperationKind::Query);
        let mut known: FastMap<(MTypeId, bool, Vec<Want>), u32> = FastMap::default();
        for (id, row) in merged.types.iter() {
            if !row.kind.is_composite() {
                continue;
            }
            for (sub, ty) in &row.sources {
                let info = &self.subs[*sub as usize].types[*ty];
                let root = (Some(id) == query).then(Vec::new);
                let keys: Vec<Vec<Want>> = info
                    .keys
                    .iter()
                    .filter(|k| k.resolvable)
                    .map(|k| self.wants(*sub, &k.items))
                    .collect();
                for wants in keys.into_iter().chain(root) {
                    let target = self.node(*sub, *ty, 0);
                    let key = (id, info.interface_object, wants);
                    let group = match known.get(&key) {
                        Some(group) => *group,
                        None => {
                            let group = self.groups.len() as u32;
                            self.groups.push(KeyGroup {
                                wants: key.2.clone(),
                                targets: Vec::new(),
                            });
                            self.groups_of[id.0 as usize].push(group);
                            if info.interface_object {
                                // An interface object answers for every implementation.
                                for object in row.possible.iter() {
                                    self.groups_of[object as usize].push(group);
                                }
                            }
                            known.insert(key, group);
                            group
                        }
                    };
                    let targets = &mut self.groups[group as usize].targets;
                    if !targets.contains(&target) {
                        targets.push(target);
                    }
                }
            }
        }
        for group in &mut self.groups {
            group.targets.sort_unstable();
        }
        for (_, node) in self.nodes.iter_mut() {
            node.active = true;
        }
    }

    /// The node of a subgraph's type.
    pub fn node(&mut self, sub: u32, ty: TypeId, provided: u32) -> NodeId {
        if let Some(known) = self.by_type.get(&(sub, ty, provided)) {
            return *known;
        }
        let s = &self.subs[sub as usize];
        let merged = self.merged.of(sub, ty).unwrap_or(MTypeId(0));
        let edges = self.edges(sub, ty);
        let active = self.is_active(sub, &edges, merged);
        let id = self.nodes.push(Node {
            sub,
            ty,
            merged,
            provided,
            interface_object: s.types[ty].interface_object,
            edges,
            active,
        });
        self.by_type.insert((sub, ty, provided), id);
        id
    }

    /// The field of that name at a node.
    pub fn edge(&self, node: NodeId, name: Symbol) -> Option<FieldId> {
        let edges = &self.nodes[node].edges;
        edges
            .binary_search_by_key(&name, |e| e.0)
            .ok()
            .map(|i| edges[i].1)
    }

    /// Whether a node can resolve a field, requirements and contexts aside.
    pub fn is_available(&self, node: NodeId, field: FieldId) -> bool {
        let row = &self.nodes[node];
        let info = &self.subs[row.sub as usize].fields[field];
        if info.overridden.is_some() {
            return false;
        }
        if info
            .override_label
            .as_ref()
            .is_some_and(|l| self.labels_on.contains(l))
        {
            return false;
        }
        if let Some(label) = info.overrides.as_ref().and_then(|o| o.label.as_ref())
            && !self.labels_on.contains(label)
            && self.is_contested(row.sub, field)
        {
            return false;
        }
        !info.external || self.is_provided(row, field)
    }

    /// Whether a progressive override has a subgraph to take the field from.
    fn is_contested(&self, sub: u32, field: FieldId) -> bool {
        let Some(over) = &self.subs[sub as usize].fields[field].overrides else {
            return false;
        };
        let Some(id) = self.merged.sub_fields[sub as usize]
            .get(field.0 as usize)
            .copied()
        else {
            return false;
        };
        if id == crate::merge::NONE {
            return false;
        }
        self.merged.fields[crate::merge::MFieldId(id)]
            .sources
            .iter()
            .any(|(s, f)| {
                *self.subs[*s as usize].name == *over.from
                    && self.subs[*s as usize].fields[*f].override_label.is_some()
            })
    }

    fn is_provided(&self, node: &Node, field: FieldId) -> bool {
        if node.provided == 0 {
            return false;
        }
        let schema = &self.subs[node.sub as usize].schema;
        let name = schema.fields[field].name;
        self.provisions[node.provided as usize].iter().any(|item| matches!(item, Item::Field { field: Some(f), .. } if schema.fields[*f].name == name))
    }

    /// The node a composite field leads to.
    pub fn target(&mut self, node: NodeId, field: FieldId) -> Option<NodeId> {
        let (sub, provided) = (self.nodes[node].sub, self.nodes[node].provided);
        let s = &self.subs[sub as usize];
        let ty = s.schema.fields[field].ty.id;
        if !s.schema.types[ty].kind.is_composite() {
            return None;
        }
        let mut items: Vec<Item> = s.fields[field]
            .provides
            .as_ref()
            .map(|p| p.items.clone())
            .unwrap_or_default();
        if provided != 0 {
            let name = s.schema.fields[field].name;
            for item in &self.provisions[provided as usize] {
                if let Item::Field {
                    field: Some(f),
                    sub: inner,
                    ..
                } = item
                    && s.schema.fields[*f].name == name
                {
                    items.extend(inner.iter().cloned());
                }
            }
        }
        let provided = self.provision(items);
        Some(self.node(sub, ty, provided))
    }

    fn provision(&mut self, items: Vec<Item>) -> u32 {
        if items.is_empty() {
            return 0;
        }
        if let Some(known) = self.provisions.iter().position(|p| *p == items) {
            return known as u32;
        }
        self.provisions.push(items);
        self.provisions.len() as u32 - 1
    }

    /// The node of an abstract node's values of object type `object`, if its subgraph has such values.
    pub fn downcast(&mut self, node: NodeId, object: MTypeId) -> Option<NodeId> {
        let row = &self.nodes[node];
        if row.merged == object {
            return Some(node);
        }
        if row.interface_object {
            return None;
        }
        let (sub, ty, provided) = (row.sub, row.ty, row.provided);
        let s = &self.subs[sub as usize];
        let local = self.merged.types[object]
            .sources
            .iter()
            .find(|(o, _)| *o == sub)
            .map(|(_, t)| *t)?;
        if !s.schema.types[ty].possible.contains(local.0) {
            return None;
        }
        let mut items = Vec::new();
        for item in &self.provisions[provided as usize] {
            match item {
                Item::Field { .. } => items.push(item.clone()),
                Item::On { ty, sub: inner } if s.schema.types[*ty].possible.contains(local.0) => {
                    items.extend(inner.iter().cloned())
                }
                Item::On { .. } => {}
            }
        }
        let provided = self.provision(items);
        Some(self.node(sub, local, provided))
    }
}
