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
    tree::{FactId, NodeId, Rows, Scope, Tree},
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
    fn remove(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut((bit / 64) as usize) {
            *word &= !(1 << (bit % 64));
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
    /// Wanted facts first.
    facts: Range<u32>,
    /// End of the wanted ones.
    wanted_end: u32,
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
    /// Nothing but its providers tells it from others.
    mergeable: bool,
}

const UNKNOWN: u8 = u8::MAX;

/// Most waves a probe can tell apart.
pub(crate) const WAVES_MAX: usize = 250;

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
    /// Rows with something unknown in their subtree; before the last wave, with something wanted.
    live: Vec<u32>,
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
    /// What holds before each wave of the accepted requests.
    state: Vec<State>,
    /// The same for requests that are being tried.
    trial: Vec<State>,
    cells: Vec<Cell<N>>,
    accepted: Vec<Bits<N>>,
    /// What holds before each wave of the first requests accepted, to start again from them.
    first: Option<(Vec<Bits<N>>, Vec<State>)>,
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
                state: Vec::new(),
                trial: Vec::new(),
                cells: Vec::new(),
                accepted: Vec::new(),
                first: None,
                firings: 0,
            },
            row_of: vec![u32::MAX; scope.nodes.len()],
            fact_of: vec![u32::MAX; scope.facts],
            rows: scope.rows.as_deref(),
            wanted_ends: Vec::with_capacity(scope.nodes.len()),
        };
        builder.facts(tree, scope, wanted);
        builder.nodes(tree, scope);
        builder.probe
    }

    /// Starts from these requests; says whether they suffice.
    pub(crate) fn accept(&mut self, requests: &Requests) -> bool {
        self.accepted = requests.waves.iter().map(Bits::of).collect();
        if let Some((first, state)) = &self.first
            && *first == self.accepted
        {
            self.state.clone_from(state);
            return true;
        }
        let waves = self.accepted.len();
        self.state = vec![State::default(); waves + 1];
        self.trial = vec![State::default(); waves + 1];
        self.state[0] = State {
            known: vec![UNKNOWN; self.facts.len()],
            live: (0..self.nodes.len() as u32).collect(),
        };
        self.cells = vec![Cell::EMPTY; self.nodes.len()];
        let suffices = self.run(0, usize::MAX) == Outcome::Suffices;
        self.keep(0, waves);
        if suffices && self.first.is_none() {
            self.first = Some((self.accepted.clone(), self.state.clone()));
        }
        suffices
    }

    /// Removes a request if what is left still suffices; says whether it did.
    pub(crate) fn try_remove(&mut self, wave: usize, subgraph: u32) -> bool {
        let whole = self.accepted[wave];
        self.accepted[wave].remove(subgraph);
        match self.run(wave, wave) {
            Outcome::Suffices => self.keep(wave, self.accepted.len()),
            Outcome::SameFrom(same) => self.keep(wave, same),
            Outcome::Misses => {
                self.accepted[wave] = whole;
                return false;
            }
        }
        true
    }

    /// Whether the accepted requests still suffice without those of one subgraph in some waves.
    pub(crate) fn suffices_without(&mut self, waves: Range<usize>, subgraph: u32) -> bool {
        let whole = self.accepted.clone();
        for wave in waves.clone() {
            self.accepted[wave].remove(subgraph);
        }
        let outcome = self.run(waves.start, waves.end.saturating_sub(1));
        self.accepted = whole;
        outcome != Outcome::Misses
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
                if self.run(wave, usize::MAX) == Outcome::Suffices {
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

    /// Computes the waves from `from` on into the trial states. From wave `same` on the requests are those accepted
    /// before, which suffice: it stops where everything else would be as for them too.
    fn run(&mut self, from: usize, same: usize) -> Outcome {
        let last = self.accepted.len().saturating_sub(1);
        for wave in from..self.accepted.len() {
            let mut next = std::mem::take(&mut self.trial[wave + 1]);
            let before = match wave == from {
                true => &mut self.state[wave],
                false => &mut self.trial[wave],
            };
            next.known.clone_from(&before.known);
            let live = std::mem::take(&mut before.live);
            let is_complete = self.wave(wave, &live, &mut next.known, wave == last);
            if wave < last {
                self.still_live(&live, &mut next, wave + 1 == last);
            }
            match wave == from {
                true => self.state[wave].live = live,
                false => self.trial[wave].live = live,
            }
            self.trial[wave + 1] = next;
            if !is_complete {
                return Outcome::Misses;
            }
            if wave >= same
                && wave < last
                && self.trial[wave + 1].known == self.state[wave + 1].known
            {
                return Outcome::SameFrom(wave);
            }
        }
        match from <= last && !self.accepted.is_empty() {
            true => Outcome::Suffices,
            // No wave at all: enough if nothing is wanted.
            false => match self.nodes.iter().any(|n| n.facts.start < n.wanted_end) {
                true => Outcome::Misses,
                false => Outcome::Suffices,
            },
        }
    }

    /// Makes the trial states after wave `from`, up to that before wave `to`, those of the accepted requests.
    fn keep(&mut self, from: usize, to: usize) {
        for wave in from + 1..=to {
            std::mem::swap(&mut self.state[wave], &mut self.trial[wave]);
        }
    }

    /// Rows of `live` that still have something unknown in their subtree; before the last wave, something wanted.
    fn still_live(&mut self, live: &[u32], next: &mut State, only_wanted: bool) {
        next.live.clear();
        for row in live.iter().rev() {
            let node = &self.nodes[*row as usize];
            let end = match only_wanted {
                true => node.wanted_end,
                false => node.facts.end,
            };
            let facts = node.facts.start as usize..end as usize;
            let alive = &mut self.cells[*row as usize].alive;
            if *alive || next.known[facts].contains(&UNKNOWN) {
                *alive = false;
                self.cells[node.parent as usize].alive = !node.is_root;
                next.live.push(*row);
            }
        }
        next.live.reverse();
    }

    /// One wave over some rows. In the last wave only wanted facts count: false as soon as one of them stays unknown.
    fn wave(&mut self, wave: usize, live: &[u32], known: &mut [u8], is_last: bool) -> bool {
        let allowed = self.accepted[wave];
        if allowed.is_empty() && !is_last {
            return true;
        }
        let mut work = 0;
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
        let mut is_complete = true;
        for row in live.iter().map(|r| *r as usize) {
            let node = &nodes[row];
            let mut entry = Bits::EMPTY;
            let mut open;
            let mut chain = Bits::EMPTY;
            work += 2;
            if node.is_root {
                if !self.serial || wave == 0 {
                    entry = allowed.and(node.types_known);
                }
                open = entry;
            } else {
                for key in &keys[node.keys.start as usize..node.keys.end as usize] {
                    let more = key.subgraphs.and(allowed);
                    work += 1;
                    if !more.is_empty() && all_before(&key.facts, known) {
                        entry = entry.or(more);
                    }
                }
                let parent = &cells[node.parent as usize];
                open = Bits::EMPTY;
                if !parent.open.is_empty() {
                    open = node
                        .edge
                        .plain
                        .and(parent.open)
                        .or(node.edge.provided.and(parent.chain));
                    for requirement in &requirements
                        [node.edge.requires.start as usize..node.edge.requires.end as usize]
                    {
                        work += 1;
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
                }
                open = open.or(entry);
            }
            cells[row] = Cell {
                open,
                entry,
                chain,
                alive: false,
            };
            let end = match is_last {
                true => node.wanted_end,
                false => node.facts.end,
            };
            let of_node = node.facts.start as usize..end as usize;
            if open.is_empty() {
                if is_last && known[of_node].contains(&UNKNOWN) {
                    is_complete = false;
                    break;
                }
                continue;
            }
            work += of_node.len() as u64;
            for f in of_node {
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
                    work += range.len() as u64;
                    resolves = requirements[range]
                        .iter()
                        .any(|r| entry.contains(r.subgraph) && all_before(&r.facts, known));
                }
                if resolves {
                    known[f] = wave as u8;
                } else if is_last {
                    is_complete = false;
                    break;
                }
            }
            if !is_complete {
                break;
            }
        }
        self.firings += work;
        is_complete
    }
}

/// What trying some requests showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Everything wanted is known.
    Suffices,
    /// After this wave everything is as for the accepted requests.
    SameFrom(usize),
    /// Something wanted stays unknown.
    Misses,
}

struct Builder<'a, const N: usize> {
    probe: Probe<N>,
    /// By row of the node in the scope: its row here.
    row_of: Vec<u32>,
    /// By row of the fact in the scope: its row here.
    fact_of: Vec<u32>,
    rows: Option<&'a Rows>,
    /// By node of the scope: end of its wanted facts.
    wanted_ends: Vec<u32>,
}

impl<const N: usize> Builder<'_, N> {
    fn node_row(&self, node: NodeId) -> usize {
        self.rows
            .map_or(node.index(), |rows| rows.node(node))
    }
    fn fact_row(&self, fact: FactId) -> usize {
        self.rows
            .map_or(fact.index(), |rows| rows.fact(fact))
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
        let mut inputs: Vec<FactId> = Vec::new();
        let mut members: Vec<u32> = Vec::new();
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
                        let of_node = &self.probe.keys[start..];
                        let same = |k: &ProbeKey<N>| {
                            let range = k.facts.start as usize..k.facts.end as usize;
                            self.probe.members[range] == members
                        };
                        let found = of_node.iter().position(same);
                        found.map(|at| start + at).unwrap_or_else(|| {
                            let facts = self.list(&members);
                            self.probe.keys.push(ProbeKey {
                                subgraphs: Bits::EMPTY,
                                facts,
                            });
                            self.probe.keys.len() - 1
                        })
                    })
                }
            };
            last = Some((&key.facts, at));
            if let Some(at) = at {
                self.probe.keys[at].subgraphs.insert(key.subgraph.0);
            }
        }
        start as u32..self.probe.keys.len() as u32
    }

    fn requirements(&mut self, tree: &Tree<'_>, fact: FactId) -> Range<u32> {
        let start = self.probe.requirements.len() as u32;
        let mut members = Vec::new();
        for requirement in &tree.facts[fact].requires {
            if self.rows(&requirement.facts, &mut members) {
                let facts = self.list(&members);
                self.probe.requirements.push(ProbeRequirement {
                    subgraph: requirement.subgraph.0,
                    facts,
                });
            }
        }
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

#[cfg(test)]
mod tests;
