//! Pass 2: what a set of requests brings, and when.
//!
//! A [`Requests`] says which subgraphs may be asked in which wave. The closure runs wave by wave, parents before
//! children: an object is *open* in subgraph S at wave w if S answers it in that request, either by *entry* (the root,
//! or a key that was known in earlier waves) or by *descent* (its parent is open and S resolves the field that leads
//! here). A value is *known* from the first wave in which some open subgraph resolves it. Everything is monotone, so
//! one pass is enough, and in it a wave looks only at what each object still [waits](Waiting) for: at most
//! O(waves x (facts + nodes)) set operations.

use std::{ops::Range, sync::Arc};

use ogive_base::{BitSet, id::Id as _};

use crate::tree::{Fact, FactId, KeyAlternative, Node, NodeId, Rows, Scope, Tree};

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
    /// By row of the node in its scope.
    waiting: Vec<Waiting>,
    /// Facts that are not known yet, by node.
    facts: Vec<FactId>,
    /// Keys (by index at their node) with members that are not known yet, by node.
    keys: Vec<u32>,
    /// Rows of nodes and facts, if the scope is not the whole tree.
    rows: Option<Arc<Rows>>,
    /// Rule firings of all runs so far: the unit of fuel.
    pub firings: u64,
}

/// What may still come of one object. What has come stays, so no wave looks at it again.
#[derive(Debug, Default)]
struct Waiting {
    /// In [`Closure::facts`].
    facts: Range<u32>,
    /// In [`Closure::keys`].
    keys: Range<u32>,
    /// Subgraphs with a key whose members are all known.
    keyed: BitSet,
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
        self.start(tree, scope);
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
        self.start(tree, scope);
        while self.waves < waves_max {
            if self.add_wave(tree, scope, subgraphs) == 0 {
                return true;
            }
        }
        false
    }

    fn start(&mut self, tree: &Tree<'_>, scope: &Scope) {
        self.waves = 0;
        self.width = scope.nodes.len();
        self.cells.clear();
        self.known.clear();
        self.known.resize(scope.facts, NEVER);
        self.rows.clone_from(&scope.rows);
        self.waiting.clear();
        self.facts.clear();
        self.keys.clear();
        self.waiting.reserve(self.width);
        self.facts.reserve(scope.facts);
        for node in &scope.nodes {
            let (fact, key) = (self.facts.len() as u32, self.keys.len() as u32);
            self.facts.extend_from_slice(scope.facts_at(tree, *node));
            self.keys.extend(0..tree.nodes[*node].keys.len() as u32);
            self.waiting.push(Waiting {
                facts: fact..self.facts.len() as u32,
                keys: key..self.keys.len() as u32,
                keyed: BitSet::new(),
            });
        }
    }

    /// Appends a wave; says how many facts are first known in it.
    fn add_wave(&mut self, tree: &Tree<'_>, scope: &Scope, allowed: &BitSet) -> usize {
        let wave = self.waves;
        self.waves += 1;
        self.cells
            .resize_with(self.width * self.waves, Cell::default);
        let mut news = 0;
        for (row, node) in scope.nodes.iter().enumerate() {
            news += self.step(tree, scope, allowed, (*node, row), wave);
        }
        news
    }

    fn step(
        &mut self,
        tree: &Tree<'_>,
        scope: &Scope,
        allowed: &BitSet,
        (node, row): (NodeId, usize),
        wave: usize,
    ) -> usize {
        debug_assert_eq!(self.cell(node, wave), wave * self.width + row);
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
                    self.firings += here.keys.len() as u64;
                    self.find_keyed(here, row, wave);
                    entry = allowed.intersection(&self.waiting[row].keyed);
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
        self.firings += scope.facts_at(tree, node).len() as u64;
        let all = self.waiting[row].facts.clone();
        let mut end = all.start;
        for at in all.start..all.end {
            let fact = self.facts[at as usize];
            if self.is_resolved(&tree.facts[fact], cell, wave) {
                let row = self.row_of_fact(fact);
                self.known[row] = wave as u32;
            } else {
                self.facts[end as usize] = fact;
                end += 1;
            }
        }
        self.waiting[row].facts.end = end;
        (all.end - end) as usize
    }

    /// Notes subgraphs with keys whose members have become known.
    fn find_keyed(&mut self, here: &Node, row: usize, wave: usize) {
        let all = self.waiting[row].keys.clone();
        let mut end = all.start;
        // Many keys have the same members.
        let mut last: Option<(&[FactId], bool)> = None;
        for at in all.start..all.end {
            let key = self.keys[at as usize];
            let KeyAlternative {
                subgraph, facts, ..
            } = &here.keys[key as usize];
            let known = self.waiting[row].keyed.contains(subgraph.0)
                || match last {
                    Some((of_last, known)) if *of_last == **facts => known,
                    _ => {
                        let known = self.all_known_before(facts, wave);
                        last = Some((facts, known));
                        known
                    }
                };
            if known {
                self.waiting[row].keyed.insert(subgraph.0);
            } else {
                self.keys[end as usize] = key;
                end += 1;
            }
        }
        self.waiting[row].keys.end = end;
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
