//! From which node one gets to which others by keys, and which requirements can be met where: a least fixpoint.
//!
//! A fact once proved stays proved, so rounds over the nodes run until a round proves nothing; facts never need the
//! thing they prove. No recursion but over field sets, whose depth is bounded.

use ogive_base::{FastSet, IdVec, Symbol};
use ogive_schema::FieldId;

use super::graph::{Graph, NodeId, Want};
use crate::merge::MTypeId;

/// What is known about nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Closure {
    /// Nodes one gets to from each node, itself included, sorted.
    reach: IdVec<NodeId, Vec<NodeId>>,
    /// Key groups at hand at each node or on the way from it, sorted; `reach` is what they lead to.
    held: IdVec<NodeId, Vec<u32>>,
    met: FastSet<(NodeId, FieldId)>,
    /// Nodes whose facts have settled.
    settled: usize,
}

impl Closure {
    /// Proves everything there is to prove about the nodes made since the last time. What was settled before stays
    /// so: nodes it depends on were made then.
    pub(super) fn settle(&mut self, graph: &mut Graph<'_>) {
        let first = self.settled;
        loop {
            let before = graph.nodes.len();
            let mut grew = false;
            let mut at = first;
            while at < graph.nodes.len() {
                let node = NodeId(at as u32);
                self.know(graph, node);
                if graph.nodes[node].active {
                    grew |= self.advance(graph, node);
                }
                at += 1;
            }
            if !grew && graph.nodes.len() == before {
                self.settled = graph.nodes.len();
                return;
            }
        }
    }

    /// Forgets what is known about some nodes and proves it again; says whether they lead to the same nodes as
    /// before. What is known about others must not depend on them.
    pub(super) fn prove_again(&mut self, graph: &mut Graph<'_>, nodes: &[NodeId]) -> bool {
        let mut before = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.know(graph, *node);
            before.push(std::mem::replace(&mut self.reach[*node], vec![*node]));
            self.held[*node].clear();
        }
        self.met
            .retain(|(node, _)| nodes.binary_search(node).is_err());
        loop {
            let mut grew = false;
            for node in nodes {
                if graph.nodes[*node].active {
                    grew |= self.advance(graph, *node);
                }
            }
            self.refresh(graph);
            if !grew {
                break;
            }
        }
        nodes
            .iter()
            .zip(&before)
            .all(|(node, before)| self.reach[*node] == *before)
    }

    /// Settles if nodes were made since.
    pub(super) fn refresh(&mut self, graph: &mut Graph<'_>) {
        if self.settled < graph.nodes.len() {
            self.settle(graph);
        }
    }

    fn know(&mut self, _graph: &Graph<'_>, node: NodeId) {
        while self.reach.len() <= node.0 as usize {
            let next = self.reach.next_id();
            self.reach.push(vec![next]);
            self.held.push(Vec::new());
        }
    }

    fn advance(&mut self, graph: &mut Graph<'_>, node: NodeId) -> bool {
        let mut grew = false;
        // Where others lead from here. PERF: groups are few where nodes are many (a hundred subgraphs, one key).
        let mut i = 0;
        while i < self.reach[node].len() {
            let via = self.reach[node][i];
            i += 1;
            if via == node {
                continue;
            }
            self.know(graph, via);
            let fresh: Vec<u32> = self.held[via]
                .iter()
                .copied()
                .filter(|g| self.held[node].binary_search(g).is_err())
                .collect();
            for group in fresh {
                self.hold(graph, node, group);
                grew = true;
            }
        }
        for i in 0..graph.groups_of[graph.nodes[node].merged.0 as usize].len() {
            let group = graph.groups_of[graph.nodes[node].merged.0 as usize][i];
            if self.has_key(node, group) {
                continue;
            }
            let wants = std::mem::take(&mut graph.groups[group as usize].wants);
            let start = self.reach[node].clone();
            let holds = self.holds(graph, &wants, &start);
            graph.groups[group as usize].wants = wants;
            if holds {
                self.hold(graph, node, group);
                grew = true;
            }
        }
        let sub = graph.nodes[node].sub;
        for i in 0..graph.nodes[node].edges.len() {
            let field = graph.nodes[node].edges[i].1;
            if self.met.contains(&(node, field)) {
                continue;
            }
            let Some(wants) = graph.requires.get(&(sub, field)).cloned() else {
                continue;
            };
            let start = self.reach[node].clone();
            if self.holds(graph, &wants, &start) && self.can_return(graph, node, &wants) {
                self.met.insert((node, field));
                grew = true;
            }
        }
        grew
    }

    fn hold(&mut self, graph: &Graph<'_>, node: NodeId, group: u32) {
        let held = &mut self.held[node];
        if let Err(at) = held.binary_search(&group) {
            held.insert(at, group);
        }
        merge(&mut self.reach[node], &graph.groups[group as usize].targets);
    }

    /// What was fetched elsewhere is brought back by a key of the node's own subgraph.
    fn can_return(&self, graph: &Graph<'_>, node: NodeId, _wants: &[Want]) -> bool {
        let row = &graph.nodes[node];
        let info = &graph.subs[row.sub as usize].types[row.ty];
        info.keys.iter().any(|k| k.resolvable)
            || graph.subs[row.sub as usize].root_kind(row.ty).is_some()
    }

    /// Whether everything wanted can be had from a set of nodes.
    pub(super) fn holds(&mut self, graph: &mut Graph<'_>, wants: &[Want], from: &[NodeId]) -> bool {
        wants.iter().all(|want| match want {
            Want::Field(None, _) => from.iter().any(|n| !graph.nodes[*n].interface_object),
            Want::Field(Some(name), inner) => {
                self.field_holds(graph, *name, inner, from)
                    // A field of an interface that only implementations have.
                    .unwrap_or_else(|| self.on_each_object(graph, *name, inner, from))
            }
            Want::On(ty, inner) => {
                let possible = graph.merged.types[*ty].possible.clone();
                let is_part = |node: &NodeId| {
                    let row = &graph.merged.types[graph.nodes[*node].merged];
                    row.kind.is_abstract() && row.possible.is_subset(&possible)
                };
                // Objects that are of the type anyway need not be told apart.
                if from.iter().all(is_part) {
                    let closed = self.close(graph, from);
                    return self.holds(graph, inner, &closed);
                }
                possible.iter().all(|object| {
                    let narrow = |node: &NodeId| graph.downcast(*node, MTypeId(object));
                    let narrowed: Vec<NodeId> = from.iter().filter_map(narrow).collect();
                    let closed = self.close(graph, &narrowed);
                    narrowed.is_empty() || self.holds(graph, inner, &closed)
                })
            }
        })
    }

    /// Whether everything wanted of a field can be had from nodes that have it; `None` if none of them resolves it.
    fn field_holds(
        &mut self,
        graph: &mut Graph<'_>,
        name: Symbol,
        inner: &[Want],
        from: &[NodeId],
    ) -> Option<bool> {
        let mut found = false;
        let mut next: Vec<NodeId> = Vec::new();
        for node in from {
            let Some(field) = graph.edge(*node, name) else {
                continue;
            };
            if !self.resolves(graph, *node, field) {
                continue;
            }
            found = true;
            if inner.is_empty() {
                return Some(true);
            }
            if let Some(target) = graph.target(*node, field) {
                self.know(graph, target);
                let theirs = std::mem::take(&mut self.reach[target]);
                merge(&mut next, &theirs);
                self.reach[target] = theirs;
            }
        }
        found.then(|| self.holds(graph, inner, &next))
    }

    /// Whether each object that some abstract node stands for has the field. Abstract nodes that an object leads to by its
    /// keys stand for the same objects once more, so nothing is asked of theirs.
    fn on_each_object(
        &mut self,
        graph: &mut Graph<'_>,
        name: Symbol,
        inner: &[Want],
        from: &[NodeId],
    ) -> bool {
        let mut any = false;
        for node in from {
            let row = &graph.nodes[*node];
            let def = &graph.merged.types[row.merged];
            if !def.kind.is_abstract() || row.interface_object {
                continue;
            }
            let mut all = true;
            for object in def.possible.clone().iter() {
                let Some(narrowed) = graph.downcast(*node, MTypeId(object)) else {
                    continue;
                };
                let closed = self.close(graph, &[narrowed]);
                all &= self.field_holds(graph, name, inner, &closed) == Some(true);
                any = true;
            }
            if any && all {
                return true;
            }
        }
        false
    }

    /// Whether a node resolves a field, requirements included; contexts are the walk's business.
    pub(super) fn resolves(&self, graph: &Graph<'_>, node: NodeId, field: FieldId) -> bool {
        if !graph.is_available(node, field) {
            return false;
        }
        let sub = graph.nodes[node].sub;
        graph.subs[sub as usize].fields[field].requires.is_none()
            || self.met.contains(&(node, field))
    }

    /// Whether keys of a group are at hand at a node.
    pub(super) fn has_key(&self, node: NodeId, group: u32) -> bool {
        self.held[node].binary_search(&group).is_ok()
    }

    /// A set of nodes with everything they lead to, sorted.
    pub(super) fn close(&mut self, graph: &Graph<'_>, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.know(graph, *node);
            merge(&mut out, &self.reach[*node]);
        }
        out
    }
}

/// Adds sorted `from` to sorted `into`; says whether anything was new.
fn merge(into: &mut Vec<NodeId>, from: &[NodeId]) -> bool {
    if into.is_empty() {
        into.extend_from_slice(from);
        return !from.is_empty();
    }
    let missing = from
        .iter()
        .filter(|n| into.binary_search(n).is_err())
        .count();
    if missing == 0 {
        return false;
    }
    let mut out = Vec::with_capacity(into.len() + missing);
    let (mut a, mut b) = (into.iter().peekable(), from.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                b.next();
                a.next()
            }
            (Some(x), Some(y)) if x < y => a.next(),
            (Some(_), Some(_)) | (None, Some(_)) => b.next(),
            (Some(_), None) => a.next(),
            (None, None) => break,
        };
        out.extend(next.copied());
    }
    *into = out;
    true
}
