//! Which facts must be known by which wave, whatever requests are left out.
//!
//! A wanted fact must be known after the last wave. Where every request is allowed and a fact is first known in its last
//! possible wave, brought by one subgraph that can reach the object in one way only, then what that way takes must be
//! known a wave earlier; and so on back through keys and `@requires`. With fewer requests there are fewer ways, so this
//! holds for all subsets.

use std::ops::Range;

use super::{Bits, Probe};

impl<const N: usize> Probe<N> {
    /// Finds the deadlines for subsets of the first requests. Linear in the facts times the depth of the operation.
    pub(super) fn find_deadlines(&mut self) {
        let Some(last) = self.accepted.len().checked_sub(1) else {
            return;
        };
        self.deadlines = vec![u8::MAX; self.facts.len()];
        let mut open: Vec<u32> = Vec::new();
        let mut row_of = vec![0; self.facts.len()];
        for (row, node) in self.nodes.iter().enumerate() {
            for f in node.facts.clone() {
                row_of[f as usize] = row;
            }
            for f in node.facts.start..node.wanted_end {
                self.deadlines[f as usize] = last as u8;
                open.push(f);
            }
        }
        // What one subgraph takes to bring something of one object in one wave is looked at once.
        let mut before: Option<(usize, u32, usize)> = None;
        while let Some(f) = open.pop() {
            let f = f as usize;
            let wave = self.state[last + 1].known[f].min(self.state[last].known[f]) as usize;
            if wave != usize::from(self.deadlines[f]) || wave == 0 {
                continue;
            }
            let Some(s) = only(self.resolvers[f]) else {
                continue;
            };
            self.firings += 1;
            let providers = &self.facts[f].providers;
            if !providers.plain.contains(s) && !providers.provided.contains(s) {
                let requires = providers.requires.clone();
                self.tighten_required(requires, s, wave, &mut open);
            }
            if before != Some((row_of[f], s, wave)) {
                before = Some((row_of[f], s, wave));
                self.tighten_way(row_of[f], s, wave, &mut open);
            }
        }
        self.find_forced();
    }

    /// Requests that every sufficient subset of the first requests has.
    fn find_forced(&mut self) {
        self.forced = vec![Bits::EMPTY; self.accepted.len()];
        for (f, deadline) in self.deadlines.iter().enumerate() {
            let wave = usize::from(*deadline);
            if wave < self.accepted.len()
                && usize::from(self.state[wave + 1].known[f]) == wave
                && let Some(s) = only(self.resolvers[f])
            {
                self.forced[wave].insert(s);
            }
        }
    }

    /// Follows the only way in which an object can be open in a subgraph in a wave, as far as there is only one.
    fn tighten_way(&mut self, mut row: usize, s: u32, wave: usize, open: &mut Vec<u32>) {
        while !self.nodes[row].is_root {
            self.firings += 1;
            let node = &self.nodes[row];
            let keys = node.keys.start as usize..node.keys.end as usize;
            let mut entries = self.keys[keys]
                .iter()
                .filter(|k| k.subgraphs.contains(s) && self.all_before(&k.facts, wave));
            let parent = node.parent as usize;
            match (entries.next(), entries.next()) {
                (None, _) => {
                    // By descent.
                    if !node.edge.plain.contains(s) && !node.edge.provided.contains(s) {
                        let requires = node.edge.requires.clone();
                        self.tighten_required(requires, s, wave, open);
                    }
                    row = parent;
                }
                (Some(key), None) => {
                    let facts = key.facts.clone();
                    if !self.may_descend(row, s, wave) {
                        self.tighten(facts, wave, open);
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether an object might be reached from its parent; too often yes.
    fn may_descend(&self, mut row: usize, s: u32, wave: usize) -> bool {
        loop {
            let node = &self.nodes[row];
            if node.is_root {
                return node.types_known.contains(s) && (!self.serial || wave == 0);
            }
            let requires = node.edge.requires.start as usize..node.edge.requires.end as usize;
            let resolves = node.edge.plain.contains(s)
                || node.edge.provided.contains(s)
                || self.requirements[requires].iter().any(|r| r.subgraph == s);
            if !resolves || !node.types_known.contains(s) {
                return false;
            }
            row = node.parent as usize;
            let parent = &self.nodes[row];
            let keys = parent.keys.start as usize..parent.keys.end as usize;
            let is_entered = self.keys[keys]
                .iter()
                .any(|k| k.subgraphs.contains(s) && self.all_before(&k.facts, wave));
            if is_entered {
                return true;
            }
        }
    }

    fn tighten_required(&mut self, requires: Range<u32>, s: u32, wave: usize, open: &mut Vec<u32>) {
        let rows = requires.start as usize..requires.end as usize;
        let mut of_subgraph = self.requirements[rows].iter().filter(|r| r.subgraph == s);
        if let (Some(requirement), None) = (of_subgraph.next(), of_subgraph.next()) {
            let facts = requirement.facts.clone();
            self.tighten(facts, wave, open);
        }
    }

    /// These facts must be known before a wave.
    fn tighten(&mut self, facts: Range<u32>, wave: usize, open: &mut Vec<u32>) {
        for at in facts {
            let f = self.members[at as usize];
            let deadline = &mut self.deadlines[f as usize];
            if usize::from(*deadline) >= wave {
                *deadline = wave as u8 - 1;
                open.push(f);
            }
        }
    }

    /// Whether facts are known before a wave with the first requests.
    fn all_before(&self, facts: &Range<u32>, wave: usize) -> bool {
        let known = &self.state[wave].known;
        let members = &self.members[facts.start as usize..facts.end as usize];
        members.iter().all(|f| (known[*f as usize] as usize) < wave)
    }
}

/// The only member.
fn only<const N: usize>(set: Bits<N>) -> Option<u32> {
    let first = set.bits().next()?;
    let count: u32 = set.0.iter().map(|w| w.count_ones()).sum();
    (count == 1).then_some(first)
}
