//! Errors of one execution, and how they are written.
//!
//! Errors are collected while fetches complete in any order, and written in the order of the plan's fetches, so that
//! the response does not depend on timing. Each of them is noted for operators, too ([`crate::failure_report`]).

use std::cell::Cell;

use ogive_base::{FastSet, id::Id as _};
use ogive_failure::{ErrorCode, codes};
use ogive_plan::{Plan, ShapeId};

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

/// The errors so far, at most as many as the limit allows.
#[derive(Debug)]
pub(crate) struct Errors<'p> {
    list: Vec<(Stage, GraphqlError<'p>)>,
    max: usize,
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
}

impl<'p> Errors<'p> {
    pub(crate) fn new(limits: &ExecuteLimits) -> Self {
        Errors {
            list: Vec::new(),
            max: limits.errors_max,
            left_out: 0,
            reported: None,
            news: Vec::new(),
            of_objects: Vec::new(),
            looked_at: Cell::new(0),
            rules: None,
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

    /// What there is now, to go back to.
    pub(crate) fn mark(&self) -> ErrorMark {
        ErrorMark {
            listed: self.list.len(),
            left_out: self.left_out,
            news: self.news.len(),
            of_objects: self.of_objects.len(),
        }
    }
    /// Forgets the errors since `mark`. Not after the first question whether something is explained.
    pub(crate) fn roll_back(&mut self, mark: ErrorMark) {
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

    pub(crate) fn push(&mut self, stage: Stage, mut error: GraphqlError<'p>) {
        self.note(&error, 1);
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        if let Some((rules, plan)) = self.rules {
            rewrite(rules, plan, stage, &mut error);
        }
        if let (Some(reported), Some(path)) = (&mut self.reported, &error.path) {
            add_prefixes(reported, path);
        }
        self.list.push((stage, error));
    }

    /// Whether an error lies at or below `path`.
    pub(crate) fn explains(&mut self, path: &Path<'p>) -> bool {
        let list = &self.list;
        self.reported
            .get_or_insert_with(|| {
                let mut reported = FastSet::default();
                for path in list.iter().filter_map(|(_, error)| error.path.as_ref()) {
                    add_prefixes(&mut reported, path);
                }
                reported
            })
            .contains(path)
    }

    /// All errors in the order in which they came.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Stage, &GraphqlError<'p>)> {
        self.list.iter().map(|(stage, error)| (*stage, error))
    }

    /// Takes the paths of errors away that lead to a value after all; but for those of a list that stays without some of
    /// what is in it.
    pub(crate) fn forget_paths(&mut self, has_value: impl Fn(&[PathStep<'p>]) -> bool) {
        self.reported = None;
        for (_, error) in &mut self.list {
            let is_mismatch = |code: &str| code == codes::SUBREQUEST_LIST_MISMATCH.as_str();
            // A rule may have given it another code.
            let stays =
                is_mismatch(&error.code) || error.own_code.as_deref().is_some_and(is_mismatch);
            if !stays && error.path.as_deref().is_some_and(&has_value) {
                error.path = None;
            }
        }
    }

    /// Appends the `errors` array.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) {
        self.list.sort_by_key(|(stage, _)| *stage);
        if self.left_out > 0 {
            let message = format!("{} further errors are left out.", self.left_out);
            self.list.push((
                Stage::Respond,
                GraphqlError::new(codes::ERRORS_TRUNCATED, message),
            ));
        }
        out.push(b'[');
        for (i, (_, error)) in self.list.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            error.write(out);
        }
        out.push(b']');
    }
}

/// Lets rules say what clients are told of an error.
fn rewrite(rules: &dyn ErrorRules, plan: &Plan, stage: Stage, error: &mut GraphqlError<'_>) {
    let fetch = match stage {
        Stage::Fetch(rank) => Some(Source::of_rank(rank).fetch()),
        Stage::Respond => None,
    };
    // Those that are prefetched come after the fetches.
    let whole = fetch.and_then(|id| match id.index().checked_sub(plan.fetches.len()) {
        Some(at) => plan.reusable().prefetches.get(at).map(|part| part.fetch),
        None => Some(id),
    });
    let asked = whole.and_then(|id| plan.fetches.get(id));
    let subgraph = error.subgraph.or(asked.map(|fetch| fetch.subgraph));
    let subgraph = subgraph.and_then(|at| plan.subgraphs.get(at as usize));
    let path = error.path.as_deref().unwrap_or_default();
    let keys = path.iter().filter_map(|step| match step {
        PathStep::Key(key) => Some(*key),
        PathStep::Index(_) => None,
    });
    let keys: Vec<&str> = keys.collect();
    let own_code = error.code.clone();
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
    if error.own_code.is_none() && own_code != error.code {
        error.own_code = Some(own_code);
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
