//! Parts of an operation that have nothing to do with each other: root fields whose objects no subgraph could serve
//! together. No request can be shared between them, so each is searched alone, and the best of the whole is the sum.
//!
//! What deciding everything at once would multiply (the choices of one part for each of another) is thus added up.

use ogive_base::{BitSet, FastMap};

use crate::{
    closure::{Closure, Requests},
    tree::{FactId, NodeId, Scope, Tree},
};

/// One part of a scope.
pub(crate) struct Part {
    pub(crate) scope: Scope,
    /// Its share of the wanted facts.
    pub(crate) wanted: Vec<FactId>,
    /// Its share of the requests to choose from.
    pub(crate) all: Requests,
    /// No set of its requests is smaller.
    pub(crate) lower_bound: usize,
}

/// The parts of a scope, those with the fewest requests to choose from first; empty if it is only one.
///
/// `closure` is that of every request allowed, in at least as many waves as `all` has.
pub(crate) fn parts(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    all: &Requests,
    closure: &Closure,
) -> Vec<Part> {
    if scope.root_facts.len() < 2 || scope.serial || scope.rows.is_some() {
        return Vec::new();
    }
    let at: FastMap<FactId, usize> = scope.root_facts.iter().copied().zip(0..).collect();
    // By root fact: the subgraphs that could bring something of it.
    let mut serving: Vec<BitSet> = Vec::with_capacity(scope.root_facts.len());
    for fact in &scope.root_facts {
        let fact = &tree.facts[*fact];
        let mut any = fact.plain.union(&fact.provided);
        for requirement in &fact.requires {
            any.insert(requirement.subgraph.0);
        }
        serving.push(any);
    }
    let mut groups = Groups((0..serving.len()).collect());
    // Which root fact each node hangs below; parents come first.
    let mut below: FastMap<NodeId, usize> = FastMap::default();
    for node in scope.nodes.iter().filter(|n| **n != Tree::ROOT) {
        let Some(edge) = tree.places[tree.nodes[*node].place].edge else {
            continue;
        };
        let parent = tree.facts[edge].node;
        let Some(root) = (match parent {
            Tree::ROOT => at.get(&edge),
            parent => below.get(&parent),
        }) else {
            continue;
        };
        let root = *root;
        below.insert(*node, root);
        for wave in 0..all.waves.len() {
            serving[root].union_with(closure.open(*node, wave));
        }
        // What is needed of the root object itself, or of objects below other root fields.
        let here = &tree.nodes[*node];
        let keys = here.keys.iter().flat_map(|key| key.facts.iter());
        let requirements = here.facts.iter().flat_map(|f| &tree.facts[*f].requires);
        let needed = keys.chain(requirements.flat_map(|r| &r.facts));
        for fact in needed {
            let other = match tree.facts[*fact].node {
                Tree::ROOT => at.get(fact),
                node => below.get(&node),
            };
            // A fact of the same place comes later than its node, and hangs below the same root fact.
            if let Some(other) = other {
                groups.join(root, *other);
            }
        }
    }
    let mut owner: FastMap<u32, usize> = FastMap::default();
    for (root, subgraphs) in serving.iter().enumerate() {
        for subgraph in subgraphs.iter() {
            let first = *owner.entry(subgraph).or_insert(root);
            groups.join(first, root);
        }
    }
    let first = groups.of(0);
    if (0..serving.len()).all(|root| groups.of(root) == first) {
        return Vec::new();
    }
    gather(
        tree,
        scope,
        wanted,
        all,
        (&serving, &below, &at),
        &mut groups,
    )
}

type Tables<'a> = (
    &'a [BitSet],
    &'a FastMap<NodeId, usize>,
    &'a FastMap<FactId, usize>,
);

fn gather(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    all: &Requests,
    (serving, below, at): Tables<'_>,
    groups: &mut Groups,
) -> Vec<Part> {
    let mut number: FastMap<usize, usize> = FastMap::default();
    let mut parts: Vec<Part> = Vec::new();
    let mut subgraphs: Vec<BitSet> = Vec::new();
    for (root, fact) in scope.root_facts.iter().enumerate() {
        let next = parts.len();
        let part = *number.entry(groups.of(root)).or_insert(next);
        if part == next {
            subgraphs.push(BitSet::new());
            parts.push(Part {
                scope: Scope {
                    nodes: vec![Tree::ROOT],
                    root_facts: Vec::new(),
                    serial: scope.serial,
                    entered_by: scope.entered_by.clone(),
                    facts: 0,
                    rows: None,
                },
                wanted: Vec::new(),
                all: Requests::default(),
                lower_bound: 0,
            });
        }
        parts[part].scope.root_facts.push(*fact);
        subgraphs[part].union_with(&serving[root]);
    }
    let mut part_of = |root: usize| number.get(&groups.of(root)).copied();
    for node in &scope.nodes {
        if let Some(part) = below.get(node).and_then(|root| part_of(*root)) {
            parts[part].scope.nodes.push(*node);
        }
    }
    for fact in wanted {
        let root = match tree.facts[*fact].node {
            Tree::ROOT => at.get(fact),
            node => below.get(&node),
        };
        if let Some(part) = root.and_then(|root| part_of(*root)) {
            parts[part].wanted.push(*fact);
        }
    }
    for (part, subgraphs) in parts.iter_mut().zip(&subgraphs) {
        part.scope.number(tree);
        let waves = all.waves.iter().map(|set| set.intersection(subgraphs));
        part.all.waves = waves.collect();
        part.lower_bound = owners(tree, &part.wanted);
    }
    parts.sort_by_key(|part| part.all.count());
    parts
}

/// Subgraphs that are the only ones to resolve some wanted value: each costs a request.
pub(crate) fn owners(tree: &Tree<'_>, wanted: &[FactId]) -> usize {
    let mut owners = BitSet::new();
    for fact in wanted {
        let fact = &tree.facts[*fact];
        let mut any = fact.plain.union(&fact.provided);
        for requirement in &fact.requires {
            any.insert(requirement.subgraph.0);
        }
        if any.len() == 1 {
            owners.union_with(&any);
        }
    }
    owners.len()
}

/// Disjoint sets of root facts.
struct Groups(Vec<usize>);

impl Groups {
    fn of(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}
