//! Pass 4b: what only deferred fragments need gets requests of its own (planner rule 55).
//!
//! The requests were chosen for the whole operation. Here every value learns who needs it: the primary part, or a set of
//! deferred groups. Then every visit is split by these sets:
//!
//! - A value that others are found by (a key, an input of a `@requires`) is brought where its object is brought, so that
//!   nobody asks for an object twice to get at its key.
//! - An object that only a deferred part wants is reached in requests of that part.
//! - A value of an object that an earlier part has is asked for by a key of the object in the same subgraph. Where there
//!   is none, as in value types of lists, it stays in the request that brings the object.
//!
//! Parts never share a request: they count as different waves.

use ogive_base::{FastMap, IdVec, id::Id as _};
use ogive_operation::{DeferId, Deferral};
use ogive_schema::OperationKind;

use crate::{
    assign::{Schedule, Via, Visit, VisitId},
    tree::{FactId, Tree},
};

/// Splits the visits of an operation with deferred fragments; leaves all others alone.
pub fn split(tree: &Tree<'_>, schedule: &mut Schedule) {
    let deferral = &tree.op.deferral;
    if deferral.fields.is_empty() {
        return;
    }
    let mut splitter = Splitter::new(tree, schedule);
    splitter.wants();
    splitter.note_primary();
    if splitter.place_all().is_none() {
        return keep_together(tree, schedule);
    }
    let mut parts: Vec<Vec<DeferId>> = vec![Vec::new()];
    parts.extend(deferral.fields.values().cloned());
    parts.extend(splitter.copies.iter().map(|(_, copy)| copy.part.clone()));
    parts.sort();
    parts.dedup();
    let rows = parts.len() as u32;
    let number = |part: &Vec<DeferId>| parts.binary_search(part).unwrap_or(0) as u32;
    let wave = |wave: u32, part: &Vec<DeferId>| wave * rows + number(part);
    let mut visits = IdVec::new();
    for (_, visit) in schedule.visits.iter() {
        visits.push(Visit {
            wave: wave(2 * visit.wave, &Vec::new()),
            live: false,
            ..visit.clone()
        });
    }
    for (_, copy) in splitter.copies.iter() {
        visits.push(Visit {
            wave: wave(copy.visit.wave, &copy.part),
            live: false,
            ..copy.visit.clone()
        });
    }
    let providers = std::mem::take(&mut splitter.placed);
    for (fact, visit) in providers.iter() {
        let Some(visit) = visit else { continue };
        schedule.provider.set(fact, *visit);
        let mut at = *visit;
        while !visits[at].live {
            visits[at].live = true;
            match visits[at].via {
                Via::Parent(parent) => at = parent,
                _ => break,
            }
        }
    }
    schedule.visits = visits;
    schedule.parts = parts;
}

/// Keeps everything in the primary part, which is always right.
pub fn keep_together(tree: &Tree<'_>, schedule: &mut Schedule) {
    let mut parts: Vec<Vec<DeferId>> = vec![Vec::new()];
    parts.extend(tree.op.deferral.fields.values().cloned());
    parts.sort();
    parts.dedup();
    for (_, visit) in schedule.visits.iter_mut() {
        visit.wave *= parts.len() as u32;
    }
    schedule.parts = parts;
}

/// A visit of a deferred part; its number is that of the visits so far and its own.
struct Copy {
    visit: Visit,
    part: Vec<DeferId>,
}

ogive_base::define_id! {
    struct CopyId;
}

struct Splitter<'a> {
    tree: &'a Tree<'a>,
    deferral: &'a Deferral,
    schedule: &'a Schedule,
    /// Who needs each fact: a set of groups, none for the primary part; `None`: nobody.
    needs: IdVec<FactId, Option<Vec<DeferId>>>,
    /// Whether an object is found by it, or a `@requires` takes it.
    is_input: IdVec<FactId, bool>,
    /// Visits that bring something by a `@provides` here or below.
    by_provides: IdVec<VisitId, bool>,
    copies: IdVec<CopyId, Copy>,
    known: FastMap<(VisitId, Vec<DeferId>), VisitId>,
    /// Visits that the primary part makes.
    primary: IdVec<VisitId, bool>,
    /// Who brings each fact in the end.
    placed: IdVec<FactId, Option<VisitId>>,
}

impl<'a> Splitter<'a> {
    fn new(tree: &'a Tree<'a>, schedule: &'a Schedule) -> Self {
        let facts = tree.facts.len();
        Splitter {
            tree,
            deferral: &tree.op.deferral,
            schedule,
            needs: IdVec::from_vec(vec![None; facts]),
            is_input: IdVec::from_vec(vec![false; facts]),
            by_provides: IdVec::from_vec(vec![false; schedule.visits.len()]),
            copies: IdVec::new(),
            known: FastMap::default(),
            primary: IdVec::from_vec(vec![false; schedule.visits.len()]),
            placed: IdVec::from_vec(vec![None; facts]),
        }
    }

    fn edge(&self, visit: VisitId) -> Option<FactId> {
        let node = self.schedule.visits[visit].node;
        self.tree.places[self.tree.nodes[node].place].edge
    }

    /// Adds to who needs a fact; whether that was news.
    fn need(&mut self, fact: FactId, who: &[DeferId]) -> bool {
        let deferral = self.deferral;
        let before = &mut self.needs[fact];
        let now = match before {
            Some(groups) if groups.is_empty() => return false,
            Some(groups) if !who.is_empty() => {
                let mut all = groups.clone();
                all.extend(who);
                deferral.reduce(&mut all);
                all
            }
            _ => who.to_vec(),
        };
        let is_news = before.as_ref() != Some(&now);
        *before = Some(now);
        is_news
    }

    /// Who needs what: what the client asks for, then whatever that rests on.
    fn wants(&mut self) {
        let tree = self.tree;
        let mut open: Vec<FactId> = Vec::new();
        for (id, fact) in tree.facts.iter().filter(|(_, fact)| fact.is_wanted()) {
            let above = tree.places[tree.nodes[fact.node].place].edge;
            let field = fact
                .client
                .or_else(|| above.and_then(|edge| tree.facts[edge].client));
            let is_turn = fact.node == Tree::ROOT && tree.op.kind != OperationKind::Query;
            let who = match field {
                Some(field) if !is_turn => self.deferral.of(field).to_vec(),
                _ => Vec::new(),
            };
            if self.need(id, &who) {
                open.push(id);
            }
        }
        while let Some(fact) = open.pop() {
            let Some(first) = self.schedule.provider.get(&fact).copied() else {
                continue;
            };
            let Some(who) = self.needs[fact].clone() else {
                continue;
            };
            let mut inputs: Vec<FactId> = Vec::new();
            let mut through = fact;
            let mut at = first;
            loop {
                let visit = &self.schedule.visits[at];
                if !visit.via.is_descent() {
                    let requires = tree.facts[through].requires.iter();
                    let own = requires.filter(|r| r.subgraph.0 == visit.subgraph);
                    inputs.extend(own.flat_map(|r| &r.facts));
                }
                let keys = &tree.nodes[visit.node].keys;
                inputs.extend(visit.keys().flat_map(|key| keys[key].facts.iter()));
                let here = &tree.facts[through];
                self.by_provides[at] |=
                    here.provided.contains(visit.subgraph) && !here.plain.contains(visit.subgraph);
                let Some(edge) = self.edge(at) else { break };
                if self.need(edge, &who) {
                    open.push(edge);
                }
                let Via::Parent(parent) = visit.via else {
                    break;
                };
                self.by_provides[parent] |= self.by_provides[at];
                (through, at) = (edge, parent);
            }
            for input in inputs {
                self.is_input[input] = true;
                if self.need(input, &who) {
                    open.push(input);
                }
            }
        }
    }

    /// Visits that bring what the primary part needs, and those above them.
    fn note_primary(&mut self) {
        for (fact, who) in self.needs.iter() {
            let mut at = self.schedule.provider.get(&fact).copied();
            if !who.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            while let Some(visit) = at.filter(|visit| !self.primary[*visit]) {
                self.primary[visit] = true;
                at = match self.schedule.visits[visit].via {
                    Via::Parent(parent) => Some(parent),
                    _ => None,
                };
            }
        }
    }

    /// Whether a part may rest on another.
    fn follows(&self, part: &[DeferId], earlier: &[DeferId]) -> bool {
        let within = |group: &DeferId| {
            let mut others = earlier.iter();
            others.any(|other| self.deferral.is_within(*group, *other))
        };
        earlier.is_empty() || !part.is_empty() && part.iter().all(within)
    }

    /// Finds a visit for every fact; `None` if some fact cannot be told apart from the rest.
    fn place_all(&mut self) -> Option<()> {
        let mut order: Vec<(u32, u32, FactId)> = Vec::new();
        for (id, fact) in self.tree.facts.iter() {
            if self.needs[id].is_some()
                && let Some(visit) = self.schedule.provider.get(&id)
            {
                let place = self.tree.nodes[fact.node].place;
                order.push((self.schedule.visits[*visit].wave, place.0, id));
            }
        }
        // Objects before what they hold.
        order.sort_unstable();
        for (_, _, fact) in order {
            if self.placed[fact].is_none() {
                self.place(fact)?;
            }
        }
        Some(())
    }

    fn place(&mut self, id: FactId) -> Option<()> {
        let visit = *self.schedule.provider.get(&id)?;
        let who = self.needs[id].clone()?;
        let around = self.around(visit);
        if who != around
            && self.is_input[id]
            && self.is_plain(id, visit)
            && self.follows(&who, &around)
        {
            // With its object, if the part that brings the object is in this request.
            if let Some(there) = self.host(visit, &around) {
                self.put(id, there, around);
                return Some(());
            }
        }
        if let Some(copy) = self.copy(visit, &who, &[id]) {
            self.put(id, copy, who);
            return Some(());
        }
        let there = self.host(visit, &around)?;
        self.put(id, there, around);
        Some(())
    }

    /// The visit of a part that brings the object, if it makes this visit or can at no cost.
    fn host(&mut self, visit: VisitId, around: &[DeferId]) -> Option<VisitId> {
        let known = if around.is_empty() {
            self.primary[visit].then_some(visit)
        } else {
            self.known.get(&(visit, around.to_vec())).copied()
        };
        if known.is_some() {
            return known;
        }
        let edge = self.edge(visit)?;
        let Via::Parent(parent) = self.schedule.visits[visit].via else {
            return None;
        };
        let above = if around.is_empty() {
            parent
        } else {
            *self.known.get(&(parent, around.to_vec()))?
        };
        if self.placed[edge] != Some(above) {
            return None;
        }
        if around.is_empty() {
            self.primary[visit] = true;
        }
        self.copy(visit, around, &[])
    }

    fn put(&mut self, fact: FactId, visit: VisitId, who: Vec<DeferId>) {
        self.placed[fact] = Some(visit);
        self.needs[fact] = Some(who);
    }

    fn is_plain(&self, fact: FactId, visit: VisitId) -> bool {
        let subgraph = self.schedule.visits[visit].subgraph;
        self.tree.facts[fact].plain.contains(subgraph)
    }

    /// The part that brings the object of a visit.
    fn around(&self, visit: VisitId) -> Vec<DeferId> {
        let edge = self.edge(visit);
        edge.and_then(|edge| self.needs[edge].clone())
            .unwrap_or_default()
    }

    /// The visit that a part makes in place of another; `wanted` are facts it is made for, which can be no part of the
    /// key. Nesting is bounded by the operation's depth limit.
    fn copy(&mut self, visit: VisitId, part: &[DeferId], wanted: &[FactId]) -> Option<VisitId> {
        if part.is_empty() {
            return Some(visit);
        }
        let key = (visit, part.to_vec());
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let original = self.schedule.visits[visit].clone();
        let copied = match original.via {
            Via::Root => (self.tree.op.kind == OperationKind::Query).then_some((Via::Root, None)),
            Via::Key(key) => Some((Via::Key(key), None)),
            Via::Parent(parent) => self.descend(visit, parent, part, wanted),
        };
        copied.map(|(via, wave)| {
            let wave = wave.unwrap_or(2 * original.wave);
            let spare_keys = if via == original.via {
                original.spare_keys.clone()
            } else {
                Vec::new()
            };
            let id = self.copies.push(Copy {
                visit: Visit {
                    wave,
                    via,
                    spare_keys,
                    ..original
                },
                part: part.to_vec(),
            });
            let id = VisitId(self.schedule.visits.len() as u32 + id.0);
            self.known.insert(key, id);
            id
        })
    }

    /// How a part comes by an object that the whole reaches from its parent; and the wave, in halves.
    fn descend(
        &mut self,
        visit: VisitId,
        parent: VisitId,
        part: &[DeferId],
        wanted: &[FactId],
    ) -> Option<(Via, Option<u32>)> {
        let edge = self.edge(visit)?;
        if self.needs[edge].as_deref() == Some(part) {
            let above = self.copy(parent, part, &[])?;
            return Some((Via::Parent(above), Some(self.wave(above))));
        }
        // A request that the object's part has no use for goes to whom it serves.
        let around = self.around(visit);
        let is_shared = if around.is_empty() {
            self.primary[parent]
        } else {
            self.known.contains_key(&(parent, around))
        };
        if !is_shared && let Some(above) = self.copy(parent, part, &[edge]) {
            return Some((Via::Parent(above), Some(self.wave(above))));
        }
        if self.by_provides[visit] {
            return None;
        }
        if let Some(key) = self.key(visit, part, wanted) {
            let wave = self.schedule.visits[visit].wave;
            return Some((Via::Key(key), Some(2 * wave + 1)));
        }
        let fact = &self.tree.facts[edge];
        let is_root = matches!(self.schedule.visits[parent].via, Via::Root);
        if is_root || fact.ty.wrapping.is_list() || !self.is_plain(edge, parent) {
            return None;
        }
        let above = self.copy(parent, part, &[edge])?;
        Some((Via::Parent(above), Some(self.wave(above))))
    }

    fn wave(&self, visit: VisitId) -> u32 {
        match visit.index().checked_sub(self.schedule.visits.len()) {
            Some(copy) => self.copies[CopyId(copy as u32)].visit.wave,
            None => 2 * self.schedule.visits[visit].wave,
        }
    }

    /// A key by which the object of a visit can be asked for again: never null, and brought by earlier parts.
    fn key(&mut self, id: VisitId, part: &[DeferId], wanted: &[FactId]) -> Option<usize> {
        let tree = self.tree;
        let visit = self.schedule.visits[id].clone();
        let node = &tree.nodes[visit.node];
        if !node.unites.is_empty()
            || tree.may_be_untold(node.place)
            || tree.is_untold(node.ty, visit.subgraph)
        {
            return None;
        }
        let around = self.around(id);
        (0..node.keys.len()).find(|at| {
            let key = &node.keys[*at];
            let is_own = key.subgraph.0 == visit.subgraph
                && key.by_interface.is_none()
                && key.fields.is_some();
            is_own
                && !key.facts.iter().any(|fact| wanted.contains(fact))
                && self.bring(id, &key.facts, (part, &around), visit.wave)
        })
    }

    /// Whether earlier parts bring all facts; has them bring what is at hand.
    fn bring(
        &mut self,
        visit: VisitId,
        facts: &[FactId],
        (part, around): (&[DeferId], &[DeferId]),
        wave: u32,
    ) -> bool {
        let tree = self.tree;
        let mut missing = Vec::new();
        for id in facts {
            let fact = &tree.facts[*id];
            if !fact.ty.wrapping.is_non_null() && !fact.is_type {
                return false;
            }
            let brought = self.schedule.provider.get(id);
            let in_time = brought.is_none_or(|v| self.schedule.visits[*v].wave <= wave);
            match (self.placed[*id], &self.needs[*id]) {
                (Some(_), Some(who)) if in_time && self.follows(part, who) => {}
                (Some(_), _) => return false,
                (None, _) => {
                    let same = fact.node == self.schedule.visits[visit].node;
                    let plain = self.is_plain(*id, visit);
                    // Somebody else brings it, maybe too late.
                    let other = brought.is_some_and(|other| *other != visit);
                    if !same || !plain || other || fact.is_type || fact.child.is_some() {
                        return false;
                    }
                    missing.push(*id);
                }
            }
        }
        if missing.is_empty() {
            return true;
        }
        if !self.follows(part, around) {
            return false;
        }
        let Some(there) = self.host(visit, around) else {
            return false;
        };
        for fact in missing {
            self.put(fact, there, around.to_vec());
        }
        true
    }
}
