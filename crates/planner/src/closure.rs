//! Pass 2: what a set of requests brings, and when.
//!
//! A [`Requests`] says which subgraphs may be asked in which wave. The closure runs wave by wave, parents before
//! children: an object is *open* in subgraph S at wave w if S answers it in that request, either by *entry* (the root,
//! or a key that was known in earlier waves) or by *descent* (its parent is open and S resolves the field that leads
//! here). A value is *known* from the first wave in which some open subgraph resolves it. Everything is monotone, so
//! one pass is enough: O(waves x (facts + nodes)) set operations.

use ogive_base::{BitSet, IdVec, id::Id as _};

use crate::tree::{Fact, FactId, NodeId, Scope, Tree};

/// Subgraphs (by index) that may be asked, per wave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// One set per wave, first wave first.
    pub waves: Vec<BitSet>,
}

impl Requests {
    /// Number of (wave, subgraph) requests.
    pub fn count(&self) -> usize {
        self.waves.iter().map(BitSet::len).sum()
    }
}

/// A value that is never known.
pub const NEVER: u32 = u32::MAX;

/// What is open and known under some requests. Reusable: [`Closure::run`] overwrites.
#[derive(Debug, Default)]
pub struct Closure {
    waves: usize,
    open: Vec<BitSet>,
    entry: Vec<BitSet>,
    descent: Vec<BitSet>,
    chain: Vec<BitSet>,
    known: IdVec<FactId, u32>,
    /// Rule firings of all runs so far: the unit of fuel.
    pub firings: u64,
}

impl Closure {
    /// Computes the closure of `requests` over `scope`.
    pub fn run(&mut self, tree: &Tree<'_>, scope: &Scope, requests: &Requests) {
        self.waves = requests.waves.len();
        let cells = tree.nodes.len() * self.waves;
        for table in [
            &mut self.open,
            &mut self.entry,
            &mut self.descent,
            &mut self.chain,
        ] {
            table.clear();
            table.resize(cells, BitSet::new());
        }
        self.known = IdVec::from_vec(vec![NEVER; tree.facts.len()]);
        for wave in 0..self.waves {
            for node in &scope.nodes {
                self.step(tree, scope, requests, *node, wave);
            }
        }
    }

    fn step(
        &mut self,
        tree: &Tree<'_>,
        scope: &Scope,
        requests: &Requests,
        node: NodeId,
        wave: usize,
    ) {
        let allowed = &requests.waves[wave];
        let here = &tree.nodes[node];
        let mut entry = BitSet::new();
        let mut descent = BitSet::new();
        let mut chain = BitSet::new();
        self.firings += 1;
        match tree.places[here.place].edge {
            None => {
                if !scope.serial || wave == 0 {
                    entry = allowed.intersection(&here.types_known);
                    if let Some(only) = &scope.entered_by {
                        entry.intersect_with(only);
                    }
                }
            }
            Some(edge) => {
                for key in &here.keys {
                    let s = key.subgraph.0;
                    if allowed.contains(s)
                        && !entry.contains(s)
                        && self.all_known_before(&key.facts, wave)
                        && self.all_known_before(&[edge], wave)
                    {
                        entry.insert(s);
                    }
                    self.firings += 1;
                }
                let parent = tree.facts[edge].node;
                descent = self.resolving(&tree.facts[edge], parent, wave);
                descent.intersect_with(&here.types_known);
                if !descent.is_empty() {
                    chain = here
                        .provides_through
                        .intersection(&self.chain[self.cell(parent, wave)]);
                    chain.union_with(&here.provides_start);
                    chain.intersect_with(&descent);
                }
            }
        }
        if entry.is_empty() && descent.is_empty() {
            return;
        }
        let cell = self.cell(node, wave);
        self.open[cell] = entry.union(&descent);
        self.entry[cell] = entry;
        self.descent[cell] = descent;
        self.chain[cell] = chain;
        let facts = if node == Tree::ROOT {
            &scope.root_facts
        } else {
            &here.facts
        };
        for fact in facts {
            self.firings += 1;
            if self.known[*fact] == NEVER
                && !self.resolving(&tree.facts[*fact], node, wave).is_empty()
            {
                self.known[*fact] = wave as u32;
            }
        }
    }

    fn cell(&self, node: NodeId, wave: usize) -> usize {
        node.index() * self.waves + wave
    }

    /// Whether every fact is known in an earlier wave.
    pub fn all_known_before(&self, facts: &[FactId], wave: usize) -> bool {
        facts
            .iter()
            .all(|f| (self.known[*f] as usize) < wave && self.known[*f] != NEVER)
    }

    /// Subgraphs whose request in `wave` brings `fact` of `node`.
    pub fn resolving(&self, fact: &Fact, node: NodeId, wave: usize) -> BitSet {
        let cell = self.cell(node, wave);
        let mut out = fact.plain.intersection(&self.open[cell]);
        if !fact.provided.is_empty() {
            out.union_with(&fact.provided.intersection(&self.chain[cell]));
        }
        for requirement in &fact.requires {
            let s = requirement.subgraph.0;
            if self.entry[cell].contains(s) && self.all_known_before(&requirement.facts, wave) {
                out.insert(s);
            }
        }
        out
    }

    /// First wave in which the fact is known, or [`NEVER`].
    pub fn known(&self, fact: FactId) -> u32 {
        self.known[fact]
    }
    /// Subgraphs that hold the object in `wave`.
    pub fn open(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.open[self.cell(node, wave)]
    }
    /// Subgraphs that can be entered at the object in `wave`.
    pub fn entry(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.entry[self.cell(node, wave)]
    }
    /// Subgraphs that reach the object from its parent in `wave`.
    pub fn descent(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.descent[self.cell(node, wave)]
    }
    /// Subgraphs that reach the object in `wave` along a `@provides`.
    pub fn chain(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.chain[self.cell(node, wave)]
    }
    /// Number of waves of the last run.
    pub fn waves(&self) -> usize {
        self.waves
    }
}
