//! Pass 2: what a set of requests brings, and when.
//!
//! A [`Requests`] says which subgraphs may be asked in which wave. The closure runs wave by wave, parents before
//! children: an object is *open* in subgraph S at wave w if S answers it in that request, either by *entry* (the root,
//! or a key that was known in earlier waves) or by *descent* (its parent is open and S resolves the field that leads
//! here). A value is *known* from the first wave in which some open subgraph resolves it. Everything is monotone, so
//! one pass is enough: O(waves x (facts + nodes)) set operations.

use std::sync::Arc;

use ogive_base::{BitSet, id::Id as _};

use crate::tree::{Fact, FactId, NodeId, Rows, Scope, Tree};

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
    /// Nodes of the scope.
    width: usize,
    /// By wave, then by row of the node in its scope.
    cells: Vec<Cell>,
    /// By row of the fact in its scope.
    known: Vec<u32>,
    /// Rows of nodes and facts, if the scope is not the whole tree.
    rows: Option<Arc<Rows>>,
    /// Rule firings of all runs so far: the unit of fuel.
    pub firings: u64,
}

/// One object in one wave: subgraphs that hold it, and how they came by it.
#[derive(Clone, Debug, Default)]
struct Cell {
    open: BitSet,
    entry: BitSet,
    descent: BitSet,
    chain: BitSet,
}

impl Closure {
    /// Computes the closure of `requests` over `scope`.
    pub fn run(&mut self, tree: &Tree<'_>, scope: &Scope, requests: &Requests) {
        self.start(scope);
        for allowed in &requests.waves {
            self.add_wave(tree, scope, allowed);
        }
    }

    /// Computes the closure with all of `subgraphs` allowed in every wave, until a wave brings nothing new: no later
    /// one would. Says whether that was within `waves_max` waves.
    pub fn run_to_end(
        &mut self,
        tree: &Tree<'_>,
        scope: &Scope,
        subgraphs: &BitSet,
        waves_max: usize,
    ) -> bool {
        self.start(scope);
        while self.waves < waves_max {
            if self.add_wave(tree, scope, subgraphs) == 0 {
                return true;
            }
        }
        false
    }

    fn start(&mut self, scope: &Scope) {
        self.waves = 0;
        self.width = scope.nodes.len();
        self.cells.clear();
        self.known.clear();
        self.known.resize(scope.facts, NEVER);
        self.rows.clone_from(&scope.rows);
    }

    /// Appends a wave; says how many facts are first known in it.
    fn add_wave(&mut self, tree: &Tree<'_>, scope: &Scope, allowed: &BitSet) -> usize {
        let wave = self.waves;
        self.waves += 1;
        self.cells
            .resize_with(self.width * self.waves, Cell::default);
        let mut news = 0;
        for node in &scope.nodes {
            news += self.step(tree, scope, allowed, *node, wave);
        }
        news
    }

    fn step(
        &mut self,
        tree: &Tree<'_>,
        scope: &Scope,
        allowed: &BitSet,
        node: NodeId,
        wave: usize,
    ) -> usize {
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
                if self.all_known_before(&[edge], wave) {
                    // Many keys have the same members.
                    let mut last: Option<(&[FactId], bool)> = None;
                    for key in &here.keys {
                        let s = key.subgraph.0;
                        if allowed.contains(s) && !entry.contains(s) {
                            let known = match last {
                                Some((facts, known)) if *facts == *key.facts => known,
                                _ => self.all_known_before(&key.facts, wave),
                            };
                            last = Some((&key.facts, known));
                            if known {
                                entry.insert(s);
                            }
                        }
                        self.firings += 1;
                    }
                }
                let parent = tree.facts[edge].node;
                descent = self.resolving(&tree.facts[edge], parent, wave);
                descent.intersect_with(&here.types_known);
                if !descent.is_empty() {
                    let above = &self.cells[self.cell(parent, wave)].chain;
                    chain = here.provides_through.intersection(above);
                    chain.union_with(&here.provides_start);
                    chain.intersect_with(&descent);
                }
            }
        }
        if entry.is_empty() && descent.is_empty() {
            return 0;
        }
        let cell = self.cell(node, wave);
        self.cells[cell] = Cell {
            open: entry.union(&descent),
            entry,
            descent,
            chain,
        };
        let facts = if node == Tree::ROOT {
            &scope.root_facts
        } else {
            &here.facts
        };
        let mut news = 0;
        for fact in facts {
            self.firings += 1;
            if self.known(*fact) == NEVER && self.is_resolved(&tree.facts[*fact], cell, wave) {
                let row = self.row_of_fact(*fact);
                self.known[row] = wave as u32;
                news += 1;
            }
        }
        news
    }

    /// Whether any request of the wave brings a fact of the cell's node.
    fn is_resolved(&self, fact: &Fact, cell: usize, wave: usize) -> bool {
        let cell = &self.cells[cell];
        fact.plain.intersects(&cell.open)
            || fact.provided.intersects(&cell.chain)
            || fact
                .requires
                .iter()
                .any(|r| cell.entry.contains(r.subgraph.0) && self.all_known_before(&r.facts, wave))
    }

    fn cell(&self, node: NodeId, wave: usize) -> usize {
        let row = match &self.rows {
            Some(rows) => rows.node(node),
            None => node.index(),
        };
        wave * self.width + row
    }

    fn row_of_fact(&self, fact: FactId) -> usize {
        match &self.rows {
            Some(rows) => rows.fact(fact),
            None => fact.index(),
        }
    }

    /// Whether every fact is known in an earlier wave.
    pub fn all_known_before(&self, facts: &[FactId], wave: usize) -> bool {
        facts.iter().all(|f| (self.known(*f) as usize) < wave)
    }

    /// Subgraphs whose request in `wave` brings `fact` of `node`.
    pub fn resolving(&self, fact: &Fact, node: NodeId, wave: usize) -> BitSet {
        let cell = &self.cells[self.cell(node, wave)];
        let mut out = fact.plain.intersection(&cell.open);
        if !fact.provided.is_empty() {
            out.union_with(&fact.provided.intersection(&cell.chain));
        }
        for requirement in &fact.requires {
            let s = requirement.subgraph.0;
            if cell.entry.contains(s) && self.all_known_before(&requirement.facts, wave) {
                out.insert(s);
            }
        }
        out
    }

    /// First wave in which the fact is known, or [`NEVER`].
    pub fn known(&self, fact: FactId) -> u32 {
        // A fact outside the scope is never known.
        let known = self.known.get(self.row_of_fact(fact));
        known.copied().unwrap_or(NEVER)
    }
    /// Subgraphs that hold the object in `wave`.
    pub fn open(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.cells[self.cell(node, wave)].open
    }
    /// Subgraphs that can be entered at the object in `wave`.
    pub fn entry(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.cells[self.cell(node, wave)].entry
    }
    /// Subgraphs that reach the object from its parent in `wave`.
    pub fn descent(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.cells[self.cell(node, wave)].descent
    }
    /// Subgraphs that reach the object in `wave` along a `@provides`.
    pub fn chain(&self, node: NodeId, wave: usize) -> &BitSet {
        &self.cells[self.cell(node, wave)].chain
    }
    /// Number of waves of the last run.
    pub fn waves(&self) -> usize {
        self.waves
    }
}
