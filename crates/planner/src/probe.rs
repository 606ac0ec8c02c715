//! The closure as a yes-or-no question, fast: does a set of requests still bring everything wanted?
//!
//! The search asks this thousands of times, each time with one request less. A [`Probe`] is the planning tree of one
//! scope flattened for that: nodes and facts renumbered densely, values with equal providers merged, subgraph sets as
//! fixed arrays of words. Only the wave being computed has open sets; what was known before each wave of the accepted
//! requests is kept, so a trial that removes a request of wave `w` starts at `w`.
//!
//! Same rules as [`crate::closure`], which stays the readable reference; `agrees_with_the_reference` compares them.

mod build;
mod deadlines;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ogive_base::BitSet;

use build::Builder;

use crate::{
    closure::Requests,
    tree::{FactId, Scope, Tree},
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
        words.flat_map(|(i, mut word)| {
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros();
                    word &= word - 1;
                    i as u32 * 64 + bit
                })
            })
        })
    }
    fn is_subset(self, other: Self) -> bool {
        (0..N).all(|i| self.0[i] & !other.0[i] == 0)
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

/// Requests to start from again, and what holds for them.
struct First<const N: usize> {
    requests: Vec<Bits<N>>,
    state: Vec<State>,
    resolvers: Vec<Bits<N>>,
    deadlines: Vec<u8>,
    forced: Vec<Bits<N>>,
}

/// Waves from which on a trial costs more than finding deadlines again, which settles later ones.
const LONG_WAVES: usize = 5;

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
    /// By fact: for the accepted requests, the subgraphs that bring it in the wave in which it is first known.
    resolvers: Vec<Bits<N>>,
    /// The same for requests that are being tried.
    trial_resolvers: Vec<Bits<N>>,
    /// By wave: the accepted requests that bring some fact first known in that wave.
    bringing: Vec<Bits<N>>,
    /// By fact: the last wave in which it must become known, whatever subset is accepted of the first requests or, once
    /// some of many waves are removed, of what is left.
    deadlines: Vec<u8>,
    /// By wave: requests that every such subset has.
    forced: Vec<Bits<N>>,
    /// What holds before each wave of the first requests accepted, to start again from them.
    first: Option<First<N>>,
    /// Rule firings so far: the unit of fuel.
    pub(crate) firings: u64,
}

impl<const N: usize> Probe<N> {
    /// Flattens a scope whose wanted facts are `wanted`.
    pub(crate) fn new(tree: &Tree<'_>, scope: &Scope, wanted: &[FactId]) -> Self {
        Builder::build(tree, scope, wanted)
    }

    /// Starts from these requests; says whether they suffice.
    pub(crate) fn accept(&mut self, requests: &Requests) -> bool {
        self.accepted = requests.waves.iter().map(Bits::of).collect();
        if let Some(first) = &self.first
            && first.requests == self.accepted
        {
            self.state.clone_from(&first.state);
            self.resolvers.clone_from(&first.resolvers);
            self.deadlines.clone_from(&first.deadlines);
            self.forced.clone_from(&first.forced);
            self.find_bringing();
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
        self.resolvers = vec![Bits::EMPTY; self.facts.len()];
        let suffices = self.run(0, usize::MAX) == Outcome::Suffices;
        self.keep(0, waves);
        let bounded = self.first.as_ref().is_some_and(|first| {
            let pairs = || self.accepted.iter().zip(&first.requests);
            self.accepted.len() == first.requests.len() && pairs().all(|(a, b)| a.is_subset(*b))
        });
        if suffices && !bounded {
            self.find_deadlines();
            self.first = Some(First {
                requests: self.accepted.clone(),
                state: self.state.clone(),
                resolvers: self.resolvers.clone(),
                deadlines: self.deadlines.clone(),
                forced: self.forced.clone(),
            });
        } else if let Some(first) = &self.first {
            self.deadlines.clone_from(&first.deadlines);
            self.forced.clone_from(&first.forced);
        }
        suffices
    }

    /// Removes a request if what is left still suffices; says whether it did.
    pub(crate) fn try_remove(&mut self, wave: usize, subgraph: u32) -> bool {
        match self.loses(wave, subgraph) {
            Loss::Nothing => {
                self.accepted[wave].remove(subgraph);
                return true;
            }
            Loss::TooMuch => return false,
            Loss::Something => {}
        }
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
        if self.accepted.len() >= LONG_WAVES {
            self.tighten_deadlines();
        }
        true
    }

    /// Finds deadlines again: with fewer requests there are fewer ways.
    fn tighten_deadlines(&mut self) {
        let deadlines = std::mem::take(&mut self.deadlines);
        let forced = std::mem::take(&mut self.forced);
        self.find_deadlines();
        for (new, old) in self.deadlines.iter_mut().zip(deadlines) {
            *new = old.min(*new);
        }
        for (new, old) in self.forced.iter_mut().zip(forced) {
            *new = old.or(*new);
        }
    }

    /// Number of requests that every sufficient subset of the first requests has.
    pub(crate) fn forced(&self) -> usize {
        self.forced.iter().map(|set| set.bits().count()).sum()
    }

    /// What goes with a request. In one wave subgraphs do not depend on each other: without one of them, exactly those
    /// facts are no longer known after the wave that no other brought in it.
    fn loses(&mut self, wave: usize, subgraph: u32) -> Loss {
        if self.forced[wave].contains(subgraph) {
            return Loss::TooMuch;
        }
        if !self.bringing[wave].contains(subgraph) {
            return Loss::Nothing;
        }
        let last = self.accepted.len() - 1;
        let mut alone = Bits::EMPTY;
        alone.insert(subgraph);
        let known = &self.state[wave + 1].known;
        self.firings += known.len() as u64 / 8;
        let mut loss = Loss::Nothing;
        let deadlines = &self.deadlines;
        for (f, resolvers) in self.resolvers.iter().enumerate() {
            if *resolvers == alone && known[f] as usize == wave {
                // Those of the last wave are wanted.
                if wave == last || deadlines.get(f).is_some_and(|d| usize::from(*d) <= wave) {
                    return Loss::TooMuch;
                }
                loss = Loss::Something;
            }
        }
        if loss == Loss::Nothing {
            for (resolvers, known) in self.resolvers.iter_mut().zip(known) {
                if *known as usize == wave {
                    resolvers.remove(subgraph);
                }
            }
            self.bringing[wave].remove(subgraph);
        }
        loss
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
        let forced = self.forced.get(wave).copied().unwrap_or(Bits::EMPTY);
        let members: Vec<u32> = all[wave].bits().filter(|s| !forced.contains(*s)).collect();
        let n_forced = forced.bits().count();
        let later = self.forced.iter().skip(wave + 1);
        let n_later: usize = later.map(|set| set.bits().count()).sum();
        let Some(free) = left.checked_sub(n_forced + n_later) else {
            return Ok(false);
        };
        let last = wave + 1 == all.len();
        for size in (0..=free.min(members.len())).rev() {
            if last && size != free {
                continue;
            }
            let left = left - n_forced;
            let mut pick: Vec<usize> = (0..size).collect();
            loop {
                if self.firings >= fuel_end {
                    return Err(OutOfFuel);
                }
                let mut set = forced;
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
        self.trial_resolvers.clone_from(&self.resolvers);
        for wave in from..self.accepted.len() {
            let mut next = std::mem::take(&mut self.trial[wave + 1]);
            let before = if wave == from {
                &mut self.state[wave]
            } else {
                &mut self.trial[wave]
            };
            next.known.clone_from(&before.known);
            let live = std::mem::take(&mut before.live);
            let is_complete = self.wave(wave, &live, &mut next.known, wave == last);
            if wave < last {
                self.still_live(&live, &mut next, wave + 1 == last);
            }
            if wave == from {
                self.state[wave].live = live
            } else {
                self.trial[wave].live = live
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
        if from <= last && !self.accepted.is_empty() {
            Outcome::Suffices
        } else {
            if self.nodes.iter().any(|n| n.facts.start < n.wanted_end) {
                Outcome::Misses
            } else {
                Outcome::Suffices
            }
        }
    }

    /// Makes the trial states after wave `from`, up to that before wave `to`, those of the accepted requests.
    fn keep(&mut self, from: usize, to: usize) {
        std::mem::swap(&mut self.resolvers, &mut self.trial_resolvers);
        for wave in from + 1..=to {
            std::mem::swap(&mut self.state[wave], &mut self.trial[wave]);
        }
        self.find_bringing();
    }

    fn find_bringing(&mut self) {
        self.bringing.clear();
        self.bringing.resize(self.accepted.len(), Bits::EMPTY);
        let Some(state) = self.state.last() else {
            return;
        };
        for (resolvers, known) in self.resolvers.iter().zip(&state.known) {
            if let Some(of_wave) = self.bringing.get_mut(usize::from(*known)) {
                *of_wave = of_wave.or(*resolvers);
            }
        }
    }

    /// Rows of `live` that still have something unknown in their subtree; before the last wave, something wanted.
    fn still_live(&mut self, live: &[u32], next: &mut State, only_wanted: bool) {
        next.live.clear();
        for row in live.iter().rev() {
            let node = &self.nodes[*row as usize];
            let end = if only_wanted {
                node.wanted_end
            } else {
                node.facts.end
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
        let mut step = Step {
            facts: &self.facts,
            keys: &self.keys,
            requirements: &self.requirements,
            members: &self.members,
            wave,
            allowed,
            root_is_open: !self.serial || wave == 0,
            firings: 0,
        };
        let mut is_complete = true;
        for row in live.iter().map(|r| *r as usize) {
            let node = &self.nodes[row];
            let cell = step.open(node, &self.cells, known);
            self.cells[row] = cell;
            let end = if is_last {
                node.wanted_end
            } else {
                node.facts.end
            };
            let of_node = node.facts.start as usize..end as usize;
            if cell.open.is_empty() {
                if is_last && known[of_node].contains(&UNKNOWN) {
                    is_complete = false;
                    break;
                }
                continue;
            }
            let missing = step.bring(&cell, of_node, known, &mut self.trial_resolvers, is_last);
            if missing {
                is_complete = false;
                break;
            }
        }
        self.firings += step.firings;
        is_complete
    }
}

/// What the rules of one wave read.
struct Step<'a, const N: usize> {
    facts: &'a [ProbeFact<N>],
    keys: &'a [ProbeKey<N>],
    requirements: &'a [ProbeRequirement],
    members: &'a [u32],
    wave: usize,
    /// Subgraphs that may be asked in this wave.
    allowed: Bits<N>,
    /// Whether the root may be asked in this wave.
    root_is_open: bool,
    /// Rules fired.
    firings: u64,
}

impl<const N: usize> Step<'_, N> {
    /// Whether all of these were known before this wave.
    #[inline(always)]
    fn all_before(&self, range: &Range<u32>, known: &[u8]) -> bool {
        self.members[range.start as usize..range.end as usize]
            .iter()
            .all(|f| (known[*f as usize] as usize) < self.wave)
    }

    /// Which subgraphs are open at a node: entered there, or reached from its parent.
    #[inline(always)]
    fn open(&mut self, node: &ProbeNode<N>, cells: &[Cell<N>], known: &[u8]) -> Cell<N> {
        self.firings += 2;
        let mut cell = Cell::EMPTY;
        if node.is_root {
            if self.root_is_open {
                cell.entry = self.allowed.and(node.types_known);
            }
            cell.open = cell.entry;
            return cell;
        }
        for key in &self.keys[node.keys.start as usize..node.keys.end as usize] {
            let more = key.subgraphs.and(self.allowed);
            self.firings += 1;
            if !more.is_empty() && self.all_before(&key.facts, known) {
                cell.entry = cell.entry.or(more);
            }
        }
        let parent = &cells[node.parent as usize];
        if !parent.open.is_empty() {
            let edge = &node.edge;
            let mut open = edge
                .plain
                .and(parent.open)
                .or(edge.provided.and(parent.chain));
            for requirement in
                &self.requirements[edge.requires.start as usize..edge.requires.end as usize]
            {
                self.firings += 1;
                if parent.entry.contains(requirement.subgraph)
                    && self.all_before(&requirement.facts, known)
                {
                    open.insert(requirement.subgraph);
                }
            }
            open = open.and(node.types_known);
            if !open.is_empty() {
                let through = node.provides_through.and(parent.chain);
                cell.chain = through.or(node.provides_start).and(open);
            }
            cell.open = open;
        }
        cell.open = cell.open.or(cell.entry);
        cell
    }

    /// Notes which facts of an open node become known; true if one does not although it `must`.
    #[inline(always)]
    fn bring(
        &mut self,
        cell: &Cell<N>,
        facts: Range<usize>,
        known: &mut [u8],
        brought_by: &mut [Bits<N>],
        must: bool,
    ) -> bool {
        self.firings += facts.len() as u64;
        for f in facts {
            if known[f] != UNKNOWN {
                continue;
            }
            let providers = &self.facts[f].providers;
            let mut resolvers = providers.plain.and(cell.open);
            resolvers = resolvers.or(providers.provided.and(cell.chain));
            let range = providers.requires.start as usize..providers.requires.end as usize;
            self.firings += range.len() as u64;
            for r in &self.requirements[range] {
                if cell.entry.contains(r.subgraph) && self.all_before(&r.facts, known) {
                    resolvers.insert(r.subgraph);
                }
            }
            if !resolvers.is_empty() {
                known[f] = self.wave as u8;
                brought_by[f] = resolvers;
            } else if must {
                return true;
            }
        }
        false
    }
}

/// What is no longer known after a wave without one of its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// All is known that was.
    Nothing,
    /// Something that later requests might bring.
    Something,
    /// Something that is needed.
    TooMuch,
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
