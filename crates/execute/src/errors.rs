//! Errors of one execution, and how they are written.
//!
//! Errors are collected while fetches complete in any order, and written in the order of the plan's fetches, so that
//! the response does not depend on timing. Each of them is noted for operators, too ([`crate::failure_report`]).

use std::{cell::Cell, cmp::Reverse};

use ogive_base::{FastSet, id::Id as _};
use ogive_failure::{ErrorCode, codes};
use ogive_plan::{FetchId, Plan, ShapeId, SlotIndex};

use crate::{
    error_rules::{ErrorRules, ShownError},
    failure_report::FailureRecord,
    graphql_error::{GraphqlError, Path, PathStep},
    limits::ExecuteLimits,
    store::{RecordId, Source},
};

/// How many errors there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ErrorMark {
    listed: usize,
    left_out: usize,
    news: usize,
    of_objects: usize,
}

impl ErrorMark {
    /// A number that grows with every error.
    #[inline]
    pub(crate) fn sum(self) -> usize {
        self.listed + self.left_out + self.of_objects
    }
}

/// An error that concerns an object which may stay all the same: where it belongs is known when all is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectError {
    pub(crate) code: ErrorCode,
    pub(crate) message: &'static str,
    pub(crate) shape: ShapeId,
    pub(crate) record: RecordId,
}

/// When an error belongs: by fetch in plan order, then errors of the response itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    Fetch(u32),
    Respond,
}

/// An error that the response will have.
#[derive(Debug)]
struct Listed<'p> {
    stage: Stage,
    error: GraphqlError<'p>,
    /// The error before rules rewrote it; `None` if there are no rules.
    original: Option<Box<GraphqlError<'p>>>,
    /// Whether it had a place, which turned out to have a value.
    lost_place: bool,
}

impl Listed<'_> {
    /// Whether it says that two subgraphs do not agree about a list.
    fn is_mismatch(&self) -> bool {
        // A rule may have given it another code.
        let own = self.original.as_deref().unwrap_or(&self.error);
        own.code == codes::SUBREQUEST_LIST_MISMATCH.as_str()
    }
}

/// Why a place may be null.
pub(crate) struct FailureOrigin<'a, 'p> {
    pub(crate) plan: &'p Plan,
    /// How near each fetch is: 0 for those that were to bring the value, 1 for those that they waited for, and so on; `None`
    /// for all others.
    pub(crate) fetches: &'a [Option<u32>],
    /// Whether only an error without a known place can be why.
    pub(crate) only_unplaced: bool,
    /// Whether an error that has no path may get one, as it was not sent yet.
    pub(crate) may_move: bool,
}

/// The errors so far, at most as many as the limit allows.
#[derive(Debug)]
pub(crate) struct Errors<'p> {
    list: Vec<Listed<'p>>,
    max: usize,
    /// Places at which one failure is told.
    places_max: usize,
    left_out: usize,
    /// Every path of the list and every prefix of one; built when first asked for.
    reported: Option<FastSet<Path<'p>>>,
    /// What operators were not told of yet.
    news: Vec<FailureRecord>,
    /// Errors of objects that are still to be placed.
    of_objects: Vec<ObjectError>,
    /// Objects that were looked at to find the places of errors.
    looked_at: Cell<u64>,
    /// What clients are told instead.
    rules: Option<(&'p dyn ErrorRules, &'p Plan)>,
    /// Slots that are null because of an error of a subgraph, which says so.
    null_slots: FastSet<(RecordId, SlotIndex)>,
}

impl<'p> Errors<'p> {
    pub(crate) fn new(limits: &ExecuteLimits) -> Self {
        Errors {
            list: Vec::new(),
            max: limits.errors_max,
            places_max: limits.failure_paths_max,
            left_out: 0,
            reported: None,
            news: Vec::new(),
            of_objects: Vec::new(),
            looked_at: Cell::new(0),
            rules: None,
            null_slots: FastSet::default(),
        }
    }
    /// The same by rules for what clients are told.
    pub(crate) fn ruled(self, rules: Option<&'p dyn ErrorRules>, plan: &'p Plan) -> Self {
        Errors {
            rules: rules.map(|rules| (rules, plan)),
            ..self
        }
    }

    /// Objects that were looked at to find the places of errors.
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }
    /// Counts another one.
    pub(crate) fn look(&self) {
        self.looked_at.set(self.looked_at.get() + 1);
    }

    /// Notes that an error says why a slot is null.
    pub(crate) fn note_null(&mut self, record: RecordId, slot: SlotIndex) {
        self.null_slots.insert((record, slot));
    }
    /// The slots of which that was noted; nothing if there is no error at all.
    pub(crate) fn null_slots(&self) -> Option<&FastSet<(RecordId, SlotIndex)>> {
        (self.total() > 0).then_some(&self.null_slots)
    }

    /// What there is now, to go back to.
    pub(crate) fn mark(&self) -> ErrorMark {
        ErrorMark {
            listed: self.list.len(),
            left_out: self.left_out,
            news: self.news.len(),
            of_objects: self.of_objects.len(),
        }
    }
    /// Forgets the errors since `mark`.
    pub(crate) fn roll_back(&mut self, mark: ErrorMark) {
        if mark.listed < self.list.len() {
            self.reported = None;
        }
        self.list.truncate(mark.listed);
        self.left_out = mark.left_out;
        self.news.truncate(mark.news);
        self.of_objects.truncate(mark.of_objects);
    }

    /// Whether the next error will be left out, so that its details need not be worked out.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= self.max
    }
    /// Number of errors that will be written.
    pub(crate) fn len(&self) -> usize {
        self.list.len() + usize::from(self.left_out > 0)
    }
    /// Number of errors, those that are left out included.
    pub(crate) fn total(&self) -> usize {
        self.list.len() + self.left_out
    }
    /// Counts errors that nobody looked at, because there was no room for them.
    pub(crate) fn leave_out(&mut self, n: usize) {
        self.left_out += n;
    }

    /// Whether there is something that operators were not told of.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
    /// What operators were not told of yet.
    pub(crate) fn take_news(&mut self) -> Vec<FailureRecord> {
        std::mem::take(&mut self.news)
    }
    /// Keeps an error of an object until all is read.
    pub(crate) fn keep(&mut self, error: ObjectError) {
        self.of_objects.push(error);
    }
    /// The errors of objects that are still to be placed.
    pub(crate) fn take_kept(&mut self) -> Vec<ObjectError> {
        std::mem::take(&mut self.of_objects)
    }
    /// Notes what clients do not see, in so many places.
    pub(crate) fn note(&mut self, error: &GraphqlError<'p>, places: u32) {
        FailureRecord::note(&mut self.news, error, places);
    }

    pub(crate) fn push(&mut self, stage: Stage, error: GraphqlError<'p>) {
        self.note(&error, 1);
        self.add(stage, error);
    }

    /// Adds an error that operators know.
    fn add(&mut self, stage: Stage, error: GraphqlError<'p>) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        let listed = self.ruled_by(stage, error);
        if let (Some(reported), Some(path)) = (&mut self.reported, &listed.error.path) {
            add_prefixes(reported, path);
        }
        self.list.push(listed);
    }
    /// An error as rules for what clients are told rewrite it.
    fn ruled_by(&self, stage: Stage, mut error: GraphqlError<'p>) -> Listed<'p> {
        let original = self.rules.map(|(rules, plan)| {
            let original = Box::new(error.clone());
            rewrite(rules, plan, stage, &mut error);
            original
        });
        Listed {
            stage,
            error,
            original,
            lost_place: false,
        }
    }

    /// Whether an error lies at or below `path`.
    pub(crate) fn explains(&mut self, path: &Path<'p>) -> bool {
        let list = &self.list;
        self.reported
            .get_or_insert_with(|| {
                let mut reported = FastSet::default();
                for path in list.iter().filter_map(|listed| listed.error.path.as_ref()) {
                    add_prefixes(&mut reported, path);
                }
                reported
            })
            .contains(path)
    }

    /// Sees to it that an error tells why a place is null, given the fetches that were to bring it and those that they
    /// waited for: the likeliest error of the nearest of them is told there, too. Says whether there is one.
    pub(crate) fn explain(&mut self, path: Path<'p>, origin: &FailureOrigin<'_, 'p>) -> bool {
        if self.explains(&path) {
            return true;
        }
        let likely = self.list.iter().enumerate().filter_map(|(at, listed)| {
            if origin.only_unplaced && !listed.error.is_unplaced {
                return None;
            }
            let nearness = origin
                .fetches
                .get(fetch_of(origin.plan, listed.stage)?.index())?;
            let theirs = listed.error.path.as_deref().unwrap_or_default();
            let shared = theirs.iter().zip(&path).take_while(|(a, b)| a == b);
            Some(((*nearness)?, Reverse(shared.count()), listed.stage, at))
        });
        let Some((.., at)) = likely.min() else {
            return false;
        };
        // A list that stays without some of what is in it is explained as a whole.
        let told = self.list[at].error.path.as_deref();
        if self.list[at].is_mismatch() && told.is_some_and(|told| path.starts_with(told)) {
            return true;
        }
        if origin.may_move && self.list[at].error.path.is_none() {
            // It says nothing of a place yet.
            let listed = self.list.remove(at);
            let original = listed.original.map_or(listed.error, |original| *original);
            let listed = self.ruled_by(listed.stage, original.at(path));
            if let (Some(reported), Some(path)) = (&mut self.reported, &listed.error.path) {
                add_prefixes(reported, path);
            }
            self.list.insert(at, listed);
            return true;
        }
        let Listed {
            stage,
            error,
            original,
            ..
        } = &self.list[at];
        let alike = |other: &&Listed<'p>| other.error.is_alike(error);
        if self.is_full() || self.list.iter().filter(alike).count() >= self.places_max {
            // That is told once, as there is no more room for it than for the error.
            self.left_out = self.left_out.max(1);
            return true;
        }
        let mut again = original.as_deref().unwrap_or(error).clone();
        let fetch = fetch_of(origin.plan, *stage);
        let asked = fetch.and_then(|id| origin.plan.fetches.get(id));
        again.subgraph = again.subgraph.or(asked.map(|fetch| fetch.subgraph));
        self.add(Stage::Respond, again.at(path));
        true
    }

    /// Number of errors in the list.
    pub(crate) fn listed(&self) -> usize {
        self.list.len()
    }
    /// The error of a number, in the order in which they came.
    pub(crate) fn get(&self, number: usize) -> Option<(Stage, &GraphqlError<'p>)> {
        let listed = self.list.get(number)?;
        Some((listed.stage, &listed.error))
    }
    /// All errors in the order in which they came.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Stage, &GraphqlError<'p>)> {
        self.list.iter().map(|listed| (listed.stage, &listed.error))
    }

    /// Takes the paths of errors away that lead to a value after all; but for those of a list that stays without some of
    /// what is in it.
    pub(crate) fn forget_paths(&mut self, has_value: impl Fn(&[PathStep<'p>]) -> bool) {
        self.reported = None;
        for listed in &mut self.list {
            if !listed.is_mismatch() && listed.error.path.as_deref().is_some_and(&has_value) {
                listed.error.path = None;
                listed.lost_place = true;
            }
        }
    }
    /// Takes errors away that have lost their place, where others say the same.
    pub(crate) fn drop_repeated(&mut self) {
        for at in (0..self.list.len()).rev() {
            let error = &self.list[at].error;
            let mut others = self.list.iter().enumerate();
            if self.list[at].lost_place
                && others.any(|(other, listed)| other != at && listed.error.is_alike(error))
            {
                self.list.remove(at);
            }
        }
    }

    /// Appends the `errors` array.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) {
        self.list.sort_by_key(|listed| listed.stage);
        if self.left_out > 0 {
            let message = format!("{} further errors are left out.", self.left_out);
            self.list.push(Listed {
                stage: Stage::Respond,
                error: GraphqlError::new(codes::ERRORS_TRUNCATED, message),
                original: None,
                lost_place: false,
            });
        }
        out.push(b'[');
        for (i, listed) in self.list.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            listed.error.write(out);
        }
        out.push(b']');
    }
}

/// The fetch of the plan that an error is of.
fn fetch_of(plan: &Plan, stage: Stage) -> Option<FetchId> {
    let Stage::Fetch(rank) = stage else {
        return None;
    };
    let id = Source::of_rank(rank).fetch();
    // Those that are prefetched come after the fetches.
    match id.index().checked_sub(plan.fetches.len()) {
        Some(at) => plan.reusable().prefetches.get(at).map(|part| part.fetch),
        None => Some(id),
    }
}

/// Lets rules say what clients are told of an error.
fn rewrite(rules: &dyn ErrorRules, plan: &Plan, stage: Stage, error: &mut GraphqlError<'_>) {
    let asked = fetch_of(plan, stage).and_then(|id| plan.fetches.get(id));
    let subgraph = error.subgraph.or(asked.map(|fetch| fetch.subgraph));
    let subgraph = subgraph.and_then(|at| plan.subgraphs.get(at as usize));
    let path = error.path.as_deref().unwrap_or_default();
    let keys = path.iter().filter_map(|step| match step {
        PathStep::Key(key) => Some(*key),
        PathStep::Index(_) => None,
    });
    let keys: Vec<&str> = keys.collect();
    let mut shown = ShownError {
        subgraph: subgraph.map(|name| &**name),
        path: &keys,
        code: &mut error.code,
        message: &mut error.message,
        extensions: &mut error.extensions,
        names_service: true,
    };
    rules.rewrite(&mut shown);
    if !shown.names_service {
        error.service = None;
    }
}

fn add_prefixes<'p>(reported: &mut FastSet<Path<'p>>, path: &Path<'p>) {
    // Longest first: once a prefix is known, all shorter ones are.
    for len in (1..=path.len()).rev() {
        if !reported.insert(path[..len].to_vec()) {
            break;
        }
    }
}
