//! The closure as a yes-or-no question, fast: does a set of requests still bring everything wanted?
//!
//! The search asks this thousands of times, each time with one request less. A [`Probe`] is the planning tree of one
//! scope flattened for that: nodes and facts renumbered densely, values with equal providers merged, subgraph sets as
//! fixed arrays of words. Only the wave being computed has open sets; what was known before each wave of the accepted
//! requests is kept, so a trial that removes a request of wave `w` starts at `w`.
//!
//! Same rules as [`crate::closure`], which stays the readable reference; `agrees_with_the_reference` compares them.

use std::ops::Range;

use ogive_base::{BitSet, FastMap, id::Id as _};

use crate::{
    closure::Requests,
    tree::{FactId, NodeId, Scope, Tree},
};

/// A set of subgraphs of fixed capacity `64 * N`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Bits<const N: usize>([u64; N]);

impl<const N: usize> Bits<N> {
    const EMPTY: Self = Bits([0; N]);

    fn of(set: &BitSet) -> Self {
        let mut out = Self::EMPTY;
        for bit in set.iter() {
            out.insert(bit);
        }
        out
    }
    fn insert(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }
    fn is_empty(self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }
    fn and(self, other: Self) -> Self {
        Bits(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
    fn or(self, other: Self) -> Self {
        Bits(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
    fn bits(self) -> impl Iterator<Item = u32> {
        let words = self.0.into_iter().enumerate();
        words.flat_map(|(i, word)| {
            (0..64)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| i as u32 * 64 + bit)
        })
    }
    fn contains(self, bit: u32) -> bool {
        self.0[(bit / 64) as usize] & (1 << (bit % 64)) != 0
    }
}

/// The fuel is spent and the question still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfFuel;

/// The next combination of `pick.len()` out of `n` in lexicographic order; false after the last.
fn next_pick(pick: &mut [usize], n: usize) -> bool {
    let k = pick.len();
    for i in (0..k).rev() {
        if pick[i] < n - (k - i) {
            pick[i] += 1;
            for j in i + 1..k {
                pick[j] = pick[j - 1] + 1;
            }
            return true;
        }
    }
    false
}

struct ProbeNode<const N: usize> {
    /// Row of the parent; the root's own row for the root.
    parent: u32,
    /// Fact that leads here, if it is one of the probe's.
    edge: Providers<N>,
    is_root: bool,
    types_known: Bits<N>,
    provides_start: Bits<N>,
    provides_through: Bits<N>,
    keys: Range<u32>,
    facts: Range<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Providers<const N: usize> {
    plain: Bits<N>,
    provided: Bits<N>,
    requires: Range<u32>,
}

struct ProbeKey<const N: usize> {
    subgraphs: Bits<N>,
    facts: Range<u32>,
}

struct ProbeRequirement {
    subgraph: u32,
    facts: Range<u32>,
}

struct ProbeFact<const N: usize> {
    providers: Providers<N>,
    wanted: bool,
}

const UNKNOWN: u8 = u8::MAX;

/// Open sets of one node in the wave being computed.
#[derive(Clone, Copy)]
struct Cell<const N: usize> {
    open: Bits<N>,
    entry: Bits<N>,
    chain: Bits<N>,
    /// Scratch of [`Probe::still_live`]: a child has something unknown.
    alive: bool,
}

impl<const N: usize> Cell<N> {
    const EMPTY: Self = Cell {
        open: Bits::EMPTY,
        entry: Bits::EMPTY,
        chain: Bits::EMPTY,
        alive: false,
    };
}

/// What holds before one wave.
#[derive(Clone, Default)]
struct State {
    /// Wave of each fact.
    known: Vec<u8>,
    /// Rows with something unknown in their subtree.
    live: Vec<u32>,
    /// Wanted facts that are unknown.
    missing: u32,
}

/// One scope, flattened. `64 * N` subgraphs at most.
pub(crate) struct Probe<const N: usize> {
    nodes: Vec<ProbeNode<N>>,
    facts: Vec<ProbeFact<N>>,
    keys: Vec<ProbeKey<N>>,
    requirements: Vec<ProbeRequirement>,
    /// Members of keys and requirements.
    members: Vec<u32>,
    serial: bool,
    wanted: u32,
    /// What holds before each wave of the accepted requests.
    state: Vec<State>,
    /// The same for requests that are being tried.
    trial: Vec<State>,
    cells: Vec<Cell<N>>,
    accepted: Vec<Bits<N>>,
    /// Rule firings so far: the unit of fuel.
    pub(crate) firings: u64,
}

impl<const N: usize> Probe<N> {
    /// Flattens a scope whose wanted facts are `wanted`.
    pub(crate) fn new(tree: &Tree<'_>, scope: &Scope, wanted: &[FactId]) -> Self {
        let mut builder = Builder {
            probe: Probe {
                nodes: Vec::with_capacity(scope.nodes.len()),
                facts: Vec::new(),
                keys: Vec::new(),
                requirements: Vec::new(),
                members: Vec::new(),
                serial: scope.serial,
                wanted: 0,
                state: Vec::new(),
                trial: Vec::new(),
                cells: Vec::new(),
                accepted: Vec::new(),
                firings: 0,
            },
            row_of: FastMap::default(),
            fact_of: vec![u32::MAX; tree.facts.len()],
        };
        builder.facts(tree, scope, wanted);
        builder.nodes(tree, scope);
        builder.probe
    }

    /// Starts from these requests; says whether they suffice.
    pub(crate) fn accept(&mut self, requests: &Requests) -> bool {
        self.accepted = requests.waves.iter().map(Bits::of).collect();
        let waves = self.accepted.len();
        self.state = vec![State::default(); waves + 1];
        self.trial = vec![State::default(); waves + 1];
        self.state[0] = State {
            known: vec![UNKNOWN; self.facts.len()],
            live: (0..self.nodes.len() as u32).collect(),
            missing: self.wanted,
        };
        self.cells = vec![Cell::EMPTY; self.nodes.len()];
        let suffices = self.run(0);
        self.keep(0);
        suffices
    }

    /// Removes a request if what is left still suffices; says whether it did.
    pub(crate) fn try_remove(&mut self, wave: usize, subgraph: u32) -> bool {
        let whole = self.accepted[wave];
        let mut less = whole;
        less.0[(subgraph / 64) as usize] &= !(1 << (subgraph % 64));
        self.accepted[wave] = less;
        if self.run(wave) {
            self.keep(wave);
            return true;
        }
        self.accepted[wave] = whole;
        false
    }

    /// Looks for a set of exactly `count` requests out of `all` that suffices, deciding wave by wave; a prefix is given up
    /// when even everything allowed after it would not do. `None` in the answer means there is no such set;
    /// `Err` that fuel ran out first.
    pub(crate) fn exactly(
        &mut self,
        all: &Requests,
        count: usize,
        fuel_end: u64,
    ) -> Result<Option<Requests>, OutOfFuel> {
        self.accept(all);
        let whole = self.accepted.clone();
        let done = self.decide(&whole, 0, count, fuel_end)?;
        Ok(done.then(|| Requests {
            waves: self.accepted.iter().map(|b| b.bits().collect()).collect(),
        }))
    }

    /// Decides the subgraphs of `wave` and later. Recursion is as deep as there are waves.
    fn decide(
        &mut self,
        all: &[Bits<N>],
        wave: usize,
        left: usize,
        fuel_end: u64,
    ) -> Result<bool, OutOfFuel> {
        if wave == all.len() {
            return Ok(false);
        }
        let members: Vec<u32> = all[wave].bits().collect();
        let last = wave + 1 == all.len();
        for size in (0..=left.min(members.len())).rev() {
            if last && size != left {
                continue;
            }
            let mut pick: Vec<usize> = (0..size).collect();
            loop {
                if self.firings >= fuel_end {
                    return Err(OutOfFuel);
                }
                let mut set = Bits::EMPTY;
                for i in &pick {
                    set.insert(members[*i]);
                }
                self.accepted[wave] = set;
                for (later, whole) in all.iter().enumerate().skip(wave + 1) {
                    // Nothing left to spend: later waves must stay empty.
                    self.accepted[later] = if size == left { Bits::EMPTY } else { *whole };
                }
                if self.run(wave) {
                    if size == left {
                        return Ok(true);
                    }
                    std::mem::swap(&mut self.state[wave + 1], &mut self.trial[wave + 1]);
                    if self.decide(all, wave + 1, left - size, fuel_end)? {
                        return Ok(true);
                    }
                }
                if !next_pick(&mut pick, members.len()) {
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Computes the waves from `from` on into the trial states; says whether nothing is missing at the end.
    fn run(&mut self, from: usize) -> bool {
        for wave in from..self.accepted.len() {
            let mut next = std::mem::take(&mut self.trial[wave + 1]);
            let before = if wave == from {
                &self.state[wave]
            } else {
                &self.trial[wave]
            };
            next.known.clone_from(&before.known);
            next.missing = before.missing;
            let live = if wave == from {
                std::mem::take(&mut self.state[wave].live)
            } else {
                std::mem::take(&mut self.trial[wave].live)
            };
            next.missing -= self.wave(wave, &live, &mut next.known);
            self.still_live(&live, &mut next);
            if wave == from {
                self.state[wave].live = live;
            } else {
                self.trial[wave].live = live;
            }
            self.trial[wave + 1] = next;
        }
        self.trial[self.accepted.len()].missing == 0
            || self.accepted.len() == from && self.wanted == 0
    }

    /// Makes the trial states after wave `from` those of the accepted requests.
    fn keep(&mut self, from: usize) {
        for wave in from + 1..=self.accepted.len() {
            std::mem::swap(&mut self.state[wave], &mut self.trial[wave]);
        }
    }

    /// Rows of `live` that still have something unknown in their subtree.
    fn still_live(&mut self, live: &[u32], next: &mut State) {
        next.live.clear();
        for row in live.iter().rev() {
            let node = &self.nodes[*row as usize];
            let facts = node.facts.start as usize..node.facts.end as usize;
            let alive = &mut self.cells[*row as usize].alive;
            if *alive || next.known[facts].contains(&UNKNOWN) {
                *alive = false;
                self.cells[node.parent as usize].alive = !node.is_root;
                next.live.push(*row);
            }
        }
        next.live.reverse();
    }

    /// One wave over some rows; the number of wanted facts that became known.
    fn wave(&mut self, wave: usize, live: &[u32], known: &mut [u8]) -> u32 {
        let allowed = self.accepted[wave];
        if allowed.is_empty() {
            return 0;
        }
        let mut news = 0;
        self.firings += 3 * live.len() as u64;
        let (nodes, facts, keys, requirements, members, cells) = (
            &self.nodes,
            &self.facts,
            &self.keys,
            &self.requirements,
            &self.members,
            &mut self.cells,
        );
        let all_before = |range: &Range<u32>, known: &[u8]| {
            members[range.start as usize..range.end as usize]
                .iter()
                .all(|f| (known[*f as usize] as usize) < wave)
        };
        for row in live.iter().map(|r| *r as usize) {
            let node = &nodes[row];
            let mut entry = Bits::EMPTY;
            let mut open;
            let mut chain = Bits::EMPTY;
            if node.is_root {
                if !self.serial || wave == 0 {
                    entry = allowed.and(node.types_known);
                }
                open = entry;
            } else {
                for key in &keys[node.keys.start as usize..node.keys.end as usize] {
                    let more = key.subgraphs.and(allowed);
                    if !more.is_empty() && all_before(&key.facts, known) {
                        entry = entry.or(more);
                    }
                }
                let parent = cells[node.parent as usize];
                open = node
                    .edge
                    .plain
                    .and(parent.open)
                    .or(node.edge.provided.and(parent.chain));
                for requirement in &requirements
                    [node.edge.requires.start as usize..node.edge.requires.end as usize]
                {
                    if parent.entry.contains(requirement.subgraph)
                        && all_before(&requirement.facts, known)
                    {
                        open.insert(requirement.subgraph);
                    }
                }
                open = open.and(node.types_known);
                if !open.is_empty() {
                    chain = node
                        .provides_through
                        .and(parent.chain)
                        .or(node.provides_start)
                        .and(open);
                }
                open = open.or(entry);
            }
            cells[row] = Cell {
                open,
                entry,
                chain,
                alive: false,
            };
            if open.is_empty() {
                continue;
            }
            for f in node.facts.start as usize..node.facts.end as usize {
                if known[f] != UNKNOWN {
                    continue;
                }
                let providers = &facts[f].providers;
                let mut resolves = !providers
                    .plain
                    .and(open)
                    .or(providers.provided.and(chain))
                    .is_empty();
                if !resolves {
                    let range = providers.requires.start as usize..providers.requires.end as usize;
                    resolves = requirements[range]
                        .iter()
                        .any(|r| entry.contains(r.subgraph) && all_before(&r.facts, known));
                }
                if resolves {
                    known[f] = wave as u8;
                    news += u32::from(facts[f].wanted);
                }
            }
        }
        news
    }
}

struct Builder<const N: usize> {
    probe: Probe<N>,
    row_of: FastMap<NodeId, u32>,
    /// Probe fact of each tree fact.
    fact_of: Vec<u32>,
}

impl<const N: usize> Builder<N> {
    /// Facts get rows node by node; leaves of one node with equal providers share one.
    fn facts(&mut self, tree: &Tree<'_>, scope: &Scope, wanted: &[FactId]) {
        let mut is_wanted = vec![false; tree.facts.len()];
        for fact in wanted {
            is_wanted[fact.index()] = true;
        }
        for node in &scope.nodes {
            let mut merged: FastMap<(Bits<N>, Bits<N>), u32> = FastMap::default();
            for fact_id in facts_at(tree, scope, *node) {
                let fact = &tree.facts[*fact_id];
                let (plain, provided) = (Bits::of(&fact.plain), Bits::of(&fact.provided));
                let mergeable = fact.requires.is_empty();
                let found = mergeable
                    .then(|| merged.get(&(plain, provided)).copied())
                    .flatten();
                let row = found.unwrap_or_else(|| {
                    let providers = Providers {
                        plain,
                        provided,
                        requires: 0..0,
                    };
                    self.probe.facts.push(ProbeFact {
                        providers,
                        wanted: false,
                    });
                    let row = self.probe.facts.len() as u32 - 1;
                    if mergeable {
                        merged.insert((plain, provided), row);
                    }
                    row
                });
                self.fact_of[fact_id.index()] = row;
                if is_wanted[fact_id.index()] && !self.probe.facts[row as usize].wanted {
                    self.probe.facts[row as usize].wanted = true;
                    self.probe.wanted += 1;
                }
            }
        }
        for node in &scope.nodes {
            for fact_id in facts_at(tree, scope, *node) {
                let requires = self.requirements(tree, *fact_id);
                let row = self.fact_of[fact_id.index()] as usize;
                if !requires.is_empty() {
                    self.probe.facts[row].providers.requires = requires;
                }
            }
        }
    }

    fn nodes(&mut self, tree: &Tree<'_>, scope: &Scope) {
        for node_id in &scope.nodes {
            let node = &tree.nodes[*node_id];
            let row = self.probe.nodes.len() as u32;
            self.row_of.insert(*node_id, row);
            let (parent, edge) = match tree.places[node.place].edge {
                Some(edge) => {
                    let fact = &tree.facts[edge];
                    let parent = self.row_of.get(&fact.node).copied().unwrap_or(row);
                    let requires = match self.fact_of[edge.index()] {
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
            let rows: Vec<u32> = facts_at(tree, scope, *node_id)
                .iter()
                .map(|f| self.fact_of[f.index()])
                .collect();
            let facts = match (rows.iter().min(), rows.iter().max()) {
                (Some(first), Some(last)) => *first..last + 1,
                _ => 0..0,
            };
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
            });
        }
    }

    /// Keys with the same members lead to several subgraphs at once.
    fn keys(&mut self, tree: &Tree<'_>, node: NodeId) -> Range<u32> {
        let start = self.probe.keys.len();
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for key in &tree.nodes[node].keys {
            let mut inputs = key.facts.clone();
            // A key without members needs the object itself.
            inputs.extend(tree.places[tree.nodes[node].place].edge);
            let Some(members) = self.rows(&inputs) else {
                continue;
            };
            match lists.iter().position(|l| *l == members) {
                Some(at) => self.probe.keys[start + at].subgraphs.insert(key.subgraph.0),
                None => {
                    let mut subgraphs = Bits::EMPTY;
                    subgraphs.insert(key.subgraph.0);
                    let facts = self.list(&members);
                    self.probe.keys.push(ProbeKey { subgraphs, facts });
                    lists.push(members);
                }
            }
        }
        start as u32..self.probe.keys.len() as u32
    }

    fn requirements(&mut self, tree: &Tree<'_>, fact: FactId) -> Range<u32> {
        let start = self.probe.requirements.len() as u32;
        for requirement in &tree.facts[fact].requires {
            if let Some(members) = self.rows(&requirement.facts) {
                let facts = self.list(&members);
                self.probe.requirements.push(ProbeRequirement {
                    subgraph: requirement.subgraph.0,
                    facts,
                });
            }
        }
        start..self.probe.requirements.len() as u32
    }

    /// Rows of facts, without repetitions; `None` if one is outside the scope.
    fn rows(&self, facts: &[FactId]) -> Option<Vec<u32>> {
        let mut rows: Vec<u32> = facts.iter().map(|f| self.fact_of[f.index()]).collect();
        rows.sort_unstable();
        rows.dedup();
        (rows.last() != Some(&u32::MAX)).then_some(rows)
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

#[cfg(test)]
mod tests;
