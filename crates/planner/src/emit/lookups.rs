//! Which look-ups of a request share an `_entities` field.
//!
//! Places with the same type and selection share representations; other types join the list if their response names
//! agree; the same type with another selection needs a list of its own. [`Batching`] can ask for more lists than that.
//! An interface counts as all its types: a fragment on any of them would ask more of its objects.
//! All places of a list need the same variables of objects above them: a request defines the variables of every list
//! that it asks, so each of its objects must have values for all of them.

use ogive_base::{BitSet, FastMap, Symbol};
use ogive_operation::CondId;
use ogive_plan::Target;
use ogive_schema::TypeId;

use crate::{
    Batching,
    emit::{names::Taken, selection::SelectionId},
};

/// What is asked of a concrete type, and the condition under which anything is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) cond: CondId,
    pub(crate) selection: SelectionId,
}

/// Look-ups of one `_entities` field while it is put together: each concrete type has one selection.
#[derive(Default)]
pub(crate) struct LookupList {
    pub(crate) selections: Vec<(TypeId, Question)>,
    by_type: FastMap<u32, Question>,
    /// Response names of all selections.
    names: FastMap<Symbol, Taken>,
    pub(crate) targets: Vec<Target>,
}

impl LookupList {
    fn takes(&self, types: &BitSet, question: Question, names: &[Taken], target: &Target) -> bool {
        if !self
            .targets
            .first()
            .is_none_or(|other| other.has_contexts_of(target))
        {
            return false;
        }
        let mut is_new = false;
        for t in types.iter() {
            match self.by_type.get(&t) {
                Some(other) if *other != question => return false,
                Some(_) => {}
                None => is_new = true,
            }
        }
        let agrees = |taken: &Taken| {
            let other = self.names.get(&taken.name);
            other.is_none_or(|other| taken.agrees_with(other))
        };
        !is_new || names.iter().all(agrees)
    }

    fn add(&mut self, types: Types<'_>, question: Question, names: &[Taken], target: Target) {
        let mut is_new = false;
        for t in types.covered.iter() {
            if self.by_type.insert(t, question).is_none() {
                is_new = true;
                if types.written.contains(t) {
                    self.selections.push((TypeId(t), question));
                }
            }
        }
        if is_new {
            // Otherwise the same selection has brought them.
            self.names.extend(names.iter().map(|n| (n.name, *n)));
        }
        self.targets.push(target);
    }
}

/// What is looked up.
#[derive(Clone, Copy)]
pub(crate) struct Types<'a> {
    /// Types (`TypeId.0`) on which the question is written.
    pub(crate) written: &'a BitSet,
    /// All types of which an object may answer it, those included.
    pub(crate) covered: &'a BitSet,
}

impl<'a> Types<'a> {
    /// Concrete types.
    pub(crate) fn concrete(types: &'a BitSet) -> Self {
        Types {
            written: types,
            covered: types,
        }
    }
}

/// The lists of one request.
#[derive(Default)]
pub(crate) struct LookupLists {
    rows: Vec<LookupList>,
    /// Lists that have a type with a question.
    having: FastMap<(u32, Question), Vec<usize>>,
    /// Number of lists that have a type.
    counts: FastMap<u32, usize>,
    /// What may share a list.
    batching: Batching,
}

impl LookupLists {
    pub(crate) fn new(batching: Batching) -> Self {
        LookupLists {
            batching,
            ..LookupLists::default()
        }
    }

    /// Adds a place to the first list that can take it.
    pub(crate) fn add(
        &mut self,
        types: Types<'_>,
        question: Question,
        names: &[Taken],
        target: Target,
    ) {
        let at = self
            .first(types, question, names, &target)
            .unwrap_or(self.rows.len());
        if at == self.rows.len() {
            self.rows.push(LookupList::default());
        }
        for t in types.covered.iter() {
            if !self.rows[at].by_type.contains_key(&t) {
                *self.counts.entry(t).or_default() += 1;
                self.having.entry((t, question)).or_default().push(at);
            }
        }
        self.rows[at].add(types, question, names, target);
    }

    fn first(
        &self,
        types: Types<'_>,
        question: Question,
        names: &[Taken],
        target: &Target,
    ) -> Option<usize> {
        let Types { written, covered } = types;
        let types = covered;
        let takes = |at: &usize| self.rows[*at].takes(types, question, names, target);
        match self.batching {
            Batching::All(_) => {}
            Batching::Off => return None,
            Batching::Paths => {
                let having = self.having.get(&(types.first()?, question));
                let asks = |at: &usize| {
                    let list = &self.rows[*at];
                    list.selections.len() == written.len()
                        && types
                            .iter()
                            .all(|t| list.by_type.get(&t) == Some(&question))
                };
                return having.into_iter().flatten().copied().find(asks);
            }
        }
        // If every list has the type, only those that ask the same of it can do: not to be looked for one by one.
        let everywhere = |t: &u32| self.counts.get(t) == Some(&self.rows.len());
        match types.iter().find(everywhere) {
            Some(t) => {
                let having = self.having.get(&(t, question));
                having.into_iter().flatten().copied().find(takes)
            }
            None => (0..self.rows.len()).find(takes),
        }
    }

    /// The lists in order.
    pub(crate) fn into_lists(self) -> impl Iterator<Item = LookupList> {
        self.rows.into_iter()
    }
}
