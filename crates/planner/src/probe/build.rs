//! Making a [`Probe`]: nodes, facts, keys and requirements of a scope get dense rows.

use std::ops::Range;

use ogive_base::{FastMap, id::Id as _};

use super::{Bits, Probe, ProbeFact, ProbeKey, ProbeNode, ProbeRequirement, Providers};
use crate::tree::{FactId, NodeId, Rows, Scope, Tree};

pub(super) struct Builder<'a, const N: usize> {
    pub(super) probe: Probe<N>,
    /// By row of the node in the scope: its row here.
    row_of: Vec<u32>,
    /// By row of the fact in the scope: its row here.
    fact_of: Vec<u32>,
    rows: Option<&'a Rows>,
    /// By node of the scope: end of its wanted facts.
    wanted_ends: Vec<u32>,
    /// Room for the members of one key.
    inputs: Vec<FactId>,
    members: Vec<u32>,
    /// Keys of an object with many, by their members.
    known_keys: FastMap<Box<[u32]>, usize>,
}

/// Keys of an object that are looked through one by one.
const SCANNED_MAX: usize = 16;

impl<'a, const N: usize> Builder<'a, N> {
    /// Flattens a scope whose wanted facts are `wanted`.
    pub(super) fn build(tree: &Tree<'_>, scope: &'a Scope, wanted: &[FactId]) -> Probe<N> {
        let mut builder = Builder {
            probe: Probe {
                nodes: Vec::with_capacity(scope.nodes.len()),
                facts: Vec::with_capacity(scope.facts),
                keys: Vec::new(),
                requirements: Vec::new(),
                members: Vec::new(),
                serial: scope.serial,
                state: Vec::new(),
                trial: Vec::new(),
                cells: Vec::new(),
                accepted: Vec::new(),
                resolvers: Vec::new(),
                trial_resolvers: Vec::new(),
                bringing: Vec::new(),
                deadlines: Vec::new(),
                forced: Vec::new(),
                first: None,
                firings: 0,
            },
            row_of: vec![u32::MAX; scope.nodes.len()],
            fact_of: vec![u32::MAX; scope.facts],
            rows: scope.rows.as_deref(),
            wanted_ends: Vec::with_capacity(scope.nodes.len()),
            inputs: Vec::new(),
            members: Vec::new(),
            known_keys: FastMap::default(),
        };
        builder.facts(tree, scope, wanted);
        builder.nodes(tree, scope);
        builder.probe
    }

    fn node_row(&self, node: NodeId) -> usize {
        self.rows.map_or(node.index(), |rows| rows.node(node))
    }
    fn fact_row(&self, fact: FactId) -> usize {
        self.rows.map_or(fact.index(), |rows| rows.fact(fact))
    }
    /// The row of a fact here; `u32::MAX` outside the scope.
    fn fact(&self, fact: FactId) -> u32 {
        let row = self.fact_of.get(self.fact_row(fact));
        row.copied().unwrap_or(u32::MAX)
    }

    /// Facts get rows node by node, wanted ones first; leaves of one node with equal providers share one.
    fn facts(&mut self, tree: &Tree<'_>, scope: &Scope, wanted: &[FactId]) {
        let mut is_wanted = vec![false; scope.facts];
        for fact in wanted {
            let row = self.fact_row(*fact);
            if let Some(wanted) = is_wanted.get_mut(row) {
                *wanted = true;
            }
        }
        let mut merged: FastMap<(Bits<N>, Bits<N>), u32> = FastMap::default();
        for node in &scope.nodes {
            let facts = facts_at(tree, scope, *node);
            // A map for many, a scan for few.
            let is_large = facts.len() > 16;
            merged.clear();
            let start = self.probe.facts.len();
            for of_wanted in [true, false] {
                for fact_id in facts {
                    let at = self.fact_row(*fact_id);
                    if is_wanted[at] != of_wanted {
                        continue;
                    }
                    let fact = &tree.facts[*fact_id];
                    let (plain, provided) = (Bits::of(&fact.plain), Bits::of(&fact.provided));
                    let mergeable = fact.requires.is_empty();
                    let same = |f: &ProbeFact<N>| {
                        f.mergeable
                            && f.providers.plain == plain
                            && f.providers.provided == provided
                    };
                    let found = match (mergeable, is_large) {
                        (false, _) => None,
                        (true, true) => merged.get(&(plain, provided)).copied(),
                        (true, false) => {
                            let found = self.probe.facts[start..].iter().position(same);
                            found.map(|at| (start + at) as u32)
                        }
                    };
                    self.fact_of[at] = found.unwrap_or_else(|| {
                        let row = self.probe.facts.len() as u32;
                        self.probe.facts.push(ProbeFact {
                            providers: Providers {
                                plain,
                                provided,
                                requires: 0..0,
                            },
                            mergeable,
                        });
                        if mergeable && is_large {
                            merged.insert((plain, provided), row);
                        }
                        row
                    });
                }
                if of_wanted {
                    self.wanted_ends.push(self.probe.facts.len() as u32);
                }
            }
        }
        for node in &scope.nodes {
            for fact_id in facts_at(tree, scope, *node) {
                if tree.facts[*fact_id].requires.is_empty() {
                    continue;
                }
                let requires = self.requirements(tree, *fact_id);
                let row = self.fact(*fact_id) as usize;
                self.probe.facts[row].providers.requires = requires;
            }
        }
    }

    fn nodes(&mut self, tree: &Tree<'_>, scope: &Scope) {
        let mut start = 0;
        for (at, node_id) in scope.nodes.iter().enumerate() {
            let node = &tree.nodes[*node_id];
            let row = self.probe.nodes.len() as u32;
            let in_scope = self.node_row(*node_id);
            self.row_of[in_scope] = row;
            let (parent, edge) = match tree.places[node.place].edge {
                Some(edge) => {
                    let fact = &tree.facts[edge];
                    let parent = self.row_of[self.node_row(fact.node)];
                    let requires = match self.fact(edge) {
                        u32::MAX => 0..0,
                        row => self.probe.facts[row as usize].providers.requires.clone(),
                    };
                    let (plain, provided) = (Bits::of(&fact.plain), Bits::of(&fact.provided));
                    (
                        parent,
                        Providers {
                            plain,
                            provided,
                            requires,
                        },
                    )
                }
                None => (
                    row,
                    Providers {
                        plain: Bits::EMPTY,
                        provided: Bits::EMPTY,
                        requires: 0..0,
                    },
                ),
            };
            let keys = self.keys(tree, *node_id);
            let of_node = facts_at(tree, scope, *node_id).iter();
            let end = of_node.map(|f| self.fact(*f) + 1).max().unwrap_or(start);
            let facts = start..end;
            start = end;
            let mut types_known = Bits::of(&node.types_known);
            if let (Tree::ROOT, Some(only)) = (*node_id, &scope.entered_by) {
                types_known = types_known.and(Bits::of(only));
            }
            self.probe.nodes.push(ProbeNode {
                parent,
                edge,
                is_root: *node_id == Tree::ROOT,
                types_known,
                provides_start: Bits::of(&node.provides_start),
                provides_through: Bits::of(&node.provides_through),
                keys,
                facts,
                wanted_end: self.wanted_ends[at],
            });
        }
    }

    /// Keys with the same members lead to several subgraphs at once.
    fn keys(&mut self, tree: &Tree<'_>, node: NodeId) -> Range<u32> {
        let start = self.probe.keys.len();
        let mut inputs = std::mem::take(&mut self.inputs);
        let mut members = std::mem::take(&mut self.members);
        let is_large = tree.nodes[node].keys.len() > SCANNED_MAX;
        self.known_keys.clear();
        // The key before, and where it went.
        let mut last: Option<(&[FactId], Option<usize>)> = None;
        for key in &tree.nodes[node].keys {
            let at = match last {
                Some((facts, at)) if *facts == *key.facts => at,
                _ => {
                    inputs.clear();
                    inputs.extend_from_slice(&key.facts);
                    // A key without members needs the object itself.
                    inputs.extend(tree.places[tree.nodes[node].place].edge);
                    self.rows(&inputs, &mut members).then(|| {
                        let same = |k: &ProbeKey<N>| {
                            let range = k.facts.start as usize..k.facts.end as usize;
                            self.probe.members[range] == members
                        };
                        let found = if is_large {
                            self.known_keys.get(members.as_slice()).copied()
                        } else {
                            let mut of_node = self.probe.keys[start..].iter();
                            of_node.position(same).map(|at| start + at)
                        };
                        found.unwrap_or_else(|| {
                            let at = self.probe.keys.len();
                            let facts = self.list(&members);
                            self.probe.keys.push(ProbeKey {
                                subgraphs: Bits::EMPTY,
                                facts,
                            });
                            if is_large {
                                self.known_keys.insert(members.as_slice().into(), at);
                            }
                            at
                        })
                    })
                }
            };
            last = Some((&key.facts, at));
            if let Some(at) = at {
                self.probe.keys[at].subgraphs.insert(key.subgraph.0);
            }
        }
        (self.inputs, self.members) = (inputs, members);
        start as u32..self.probe.keys.len() as u32
    }

    fn requirements(&mut self, tree: &Tree<'_>, fact: FactId) -> Range<u32> {
        let start = self.probe.requirements.len() as u32;
        let mut members = std::mem::take(&mut self.members);
        for requirement in &tree.facts[fact].requires {
            if self.rows(&requirement.facts, &mut members) {
                let facts = self.list(&members);
                self.probe.requirements.push(ProbeRequirement {
                    subgraph: requirement.subgraph.0,
                    facts,
                });
            }
        }
        self.members = members;
        start..self.probe.requirements.len() as u32
    }

    /// Rows of facts, without repetitions; false if one is outside the scope.
    fn rows(&self, facts: &[FactId], rows: &mut Vec<u32>) -> bool {
        rows.clear();
        rows.extend(facts.iter().map(|f| self.fact(*f)));
        rows.sort_unstable();
        rows.dedup();
        rows.last() != Some(&u32::MAX)
    }

    fn list(&mut self, rows: &[u32]) -> Range<u32> {
        let start = self.probe.members.len() as u32;
        self.probe.members.extend_from_slice(rows);
        start..self.probe.members.len() as u32
    }
}

fn facts_at<'a>(tree: &'a Tree<'_>, scope: &'a Scope, node: NodeId) -> &'a [FactId] {
    if node == Tree::ROOT {
        &scope.root_facts
    } else {
        &tree.nodes[node].facts
    }
}
