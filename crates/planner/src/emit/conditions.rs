//! Under which condition each value must be fetched.
//!
//! A client's value has its own condition. A value only the gateway needs inherits the conditions of the visits that
//! need it: visits are taken from the last wave back, children before parents, so that every demand is known when a
//! visit is reached. Conditions are relative to the object: if its parent is off, the object does not exist.

use ogive_base::{FastSet, IdVec, id::Id as _};
use ogive_operation::{Clause, CondId, Conditions};
use ogive_plan::Cond;

use crate::{
    assign::{Schedule, Via, VisitId},
    tree::{FactId, PlaceId, Tree},
};

/// Conditions of facts, and the table they are rows of.
pub(crate) struct Conditional {
    table: Conditions,
    facts: IdVec<FactId, Option<CondId>>,
}

/// The conjunction of two conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Both {
    /// It is this condition.
    Cond(CondId),
    /// They exclude each other.
    Never,
    /// It has more clauses than a condition may have.
    TooLarge,
}

impl Conditional {
    pub(crate) fn new(tree: &Tree<'_>, schedule: &Schedule) -> Self {
        let mut out = Conditional {
            table: tree.op.conditions.clone(),
            facts: tree.facts.iter().map(|(_, f)| f.cond).collect(),
        };
        if out.table.len() == 1 {
            // Everything is unconditional.
            return out;
        }
        for (fact, row) in tree
            .facts
            .iter()
            .filter(|(_, f)| f.is_type && f.cond.is_some())
        {
            out.facts[fact] = out.of_types(tree, tree.nodes[row.node].place);
        }
        out.narrow(tree, schedule);
        let mut brings: IdVec<VisitId, Vec<FactId>> =
            IdVec::from_vec(vec![Vec::new(); schedule.visits.len()]);
        for fact in tree.facts.ids() {
            if let Some(visit) = schedule.provider.get(&fact) {
                brings[*visit].push(fact);
            }
        }
        let mut edges: FastSet<(VisitId, FactId)> = FastSet::default();
        for (_, visit) in schedule.visits.iter().filter(|(_, v)| v.live) {
            if let (Via::Parent(parent), Some(edge)) =
                (visit.via, tree.places[tree.nodes[visit.node].place].edge)
                && schedule.provider.get(&edge) != Some(&parent)
                && edges.insert((parent, edge))
            {
                brings[parent].push(edge);
            }
        }
        let mut order: Vec<VisitId> = schedule
            .visits
            .ids()
            .filter(|v| schedule.visits[*v].live)
            .collect();
        order.sort_by_key(|v| {
            std::cmp::Reverse((schedule.visits[*v].wave, schedule.visits[*v].node.index()))
        });
        for id in order {
            let visit = &schedule.visits[id];
            let mut cond = None;
            for fact in &brings[id] {
                let of_fact = out.facts[*fact].unwrap_or(CondId::TRUE);
                out.facts[*fact] = Some(of_fact);
                cond = Some(cond.map_or(of_fact, |c| out.table.or(c, of_fact)));
            }
            let cond = cond.unwrap_or(CondId::TRUE);
            for key in visit.keys() {
                out.demand(
                    tree,
                    visit.node,
                    &tree.nodes[visit.node].keys[key].facts,
                    cond,
                );
            }
            for fact in &brings[id] {
                let of_fact = out.facts[*fact].unwrap_or(CondId::TRUE);
                for requirement in &tree.facts[*fact].requires {
                    if requirement.subgraph.0 == visit.subgraph {
                        // The type decides whether the object is sent at all.
                        for required in &requirement.facts {
                            let of_visit = tree.facts[*required].is_type;
                            let wanted = if of_visit { cond } else { of_fact };
                            out.demand(tree, visit.node, &[*required], wanted);
                        }
                    }
                }
            }
        }
        out
    }

    /// Where an object is a key's or a requirement's, it may exist although the client has switched it off: then the
    /// client's values in it need its condition too.
    fn narrow(&mut self, tree: &Tree<'_>, schedule: &Schedule) {
        let mut needed: FastSet<FactId> = FastSet::default();
        for (_, visit) in schedule.visits.iter().filter(|(_, v)| v.live) {
            for key in visit.keys() {
                needed.extend(tree.nodes[visit.node].keys[key].facts.iter());
            }
        }
        for (fact, row) in tree.facts.iter() {
            let by = schedule.provider.get(&fact);
            for requirement in by.iter().flat_map(|_| &row.requires) {
                needed.extend(&requirement.facts);
            }
        }
        // Parents come before their children, so that conditions add up on the way down.
        for (_, place) in tree.places.iter() {
            let Some(edge) = place.edge.filter(|edge| needed.contains(edge)) else {
                continue;
            };
            let Some(of_object) = self.facts[edge].filter(|cond| *cond != CondId::TRUE) else {
                continue;
            };
            for fact in place.nodes.iter().flat_map(|node| &tree.nodes[*node].facts) {
                if let Some(own) = self.facts[*fact]
                    && let Both::Cond(both) = self.and(of_object, own)
                {
                    self.facts[*fact] = Some(both);
                }
            }
        }
    }

    /// Holds if the client's answer depends on the concrete type of a place's objects.
    fn of_types(&mut self, tree: &Tree<'_>, place: PlaceId) -> Option<CondId> {
        let place = &tree.places[place];
        let set = &tree.op.selection_sets[place.selection?];
        let all = &tree.schema().types[place.ty].possible;
        if !all.is_subset(&place.possible) {
            return Some(CondId::TRUE);
        }
        let mut any = None;
        for occurrence in &set.order {
            if tree.shows_type(occurrence, &place.possible) {
                any = Some(any.map_or(occurrence.cond, |c| self.table.or(c, occurrence.cond)));
            }
        }
        any
    }

    fn demand(
        &mut self,
        tree: &Tree<'_>,
        node: crate::tree::NodeId,
        facts: &[FactId],
        cond: CondId,
    ) {
        for fact in facts {
            let place = |node: crate::tree::NodeId| tree.nodes[node].place;
            let wanted = if place(tree.facts[*fact].node) == place(node) {
                cond
            } else {
                CondId::TRUE
            };
            self.facts[*fact] = Some(match self.facts[*fact] {
                Some(have) => self.table.or(have, wanted),
                None => wanted,
            });
        }
    }

    /// Must hold for the fact to be fetched, given its object.
    pub(crate) fn of_fact(&self, fact: FactId) -> CondId {
        self.facts[fact].unwrap_or(CondId::TRUE)
    }
    /// Either holds.
    pub(crate) fn or(&mut self, a: CondId, b: CondId) -> CondId {
        self.table.or(a, b)
    }
    /// Both hold.
    pub(crate) fn and(&mut self, a: CondId, b: CondId) -> Both {
        if a == CondId::TRUE || a == b {
            return Both::Cond(b);
        }
        if b == CondId::TRUE {
            return Both::Cond(a);
        }
        let mut clauses: Vec<Clause> = Vec::new();
        for x in self.table.clauses(a) {
            for y in self.table.clauses(b) {
                let mut clause = x.clone();
                let mut possible = true;
                for literal in y {
                    if clause.contains(&(literal.0, !literal.1)) {
                        possible = false;
                    }
                    if let Err(at) = clause.binary_search(literal) {
                        clause.insert(at, *literal);
                    }
                }
                if possible {
                    clauses.push(clause);
                }
            }
        }
        if clauses.len() > Conditions::CLAUSES_MAX {
            return Both::TooLarge;
        }
        self.table.of(clauses).map_or(Both::Never, Both::Cond)
    }
    /// The table as a plan holds it.
    pub(crate) fn table(&self) -> IdVec<Cond, Vec<Vec<(u32, bool)>>> {
        (0..self.table.len())
            .map(|i| self.table.clauses(CondId::from_usize(i)).to_vec())
            .collect()
    }
}
