//! To which part an error belongs: to the one that has its place. One without a place belongs to the first part that is
//! written after it.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::fast::RandomState;
use ogive_base::{FastMap, FastSet, id::Id as _};
use ogive_plan::{OutField, OutSource};

use crate::{
    errors::{Errors, Stage},
    graphql_error::{GraphqlError, PathStep},
    incremental::{
        groups::{FIRST, Groups, Shown},
        streams::Streams,
    },
    store::{RecordId, Source, Store, Value},
};

/// Errors of fetches that were found so far, by where they belong.
#[derive(Default)]
pub(crate) struct ErrorPlaces {
    /// Errors without a place that were told, by their number.
    told: FastSet<usize>,
    /// The others of those.
    unplaced: Vec<usize>,
    /// Numbers of errors by the hash of every place that they are at or below, in order.
    below: FastMap<u64, Vec<usize>>,
    hasher: RandomState,
    /// How many errors were looked at.
    indexed: usize,
}

/// What of the errors belongs to a piece.
#[derive(Default)]
pub(crate) struct PlacedErrors {
    /// A JSON list; nothing if there are none.
    pub(crate) list: Vec<u8>,
    /// How many were looked at.
    pub(crate) looked_at: u64,
}

/// An object of which the entries of one key are written; or an item of a list that an entry of its output is.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) shown: Shown,
    pub(crate) record: RecordId,
    pub(crate) item: Option<(usize, u32)>,
}

impl Piece {
    pub(crate) fn of(key: u32, record: RecordId) -> Self {
        Piece {
            shown: Shown::of(key),
            record,
            item: None,
        }
    }
}

impl ErrorPlaces {
    /// Forgets where errors are, but not which of them were told.
    pub(crate) fn forget(&mut self) {
        self.indexed = 0;
        self.unplaced.clear();
        self.below.clear();
    }
    fn index(&mut self, errors: &Errors<'_>) {
        for (number, (stage, error)) in errors.list().enumerate().skip(self.indexed) {
            if matches!(stage, Stage::Respond) {
                continue;
            }
            let Some(path) = &error.path else {
                if !self.told.contains(&number) {
                    self.unplaced.push(number);
                }
                continue;
            };
            let mut hasher = self.hasher.build_hasher();
            self.below.entry(hasher.finish()).or_default().push(number);
            for step in path {
                step.hash(&mut hasher);
                self.below.entry(hasher.finish()).or_default().push(number);
            }
        }
        self.indexed = errors.listed();
    }
    /// Numbers of the errors of fetches that may belong to an object, in order.
    fn candidates(&self, at: &[PathStep<'_>]) -> Vec<usize> {
        let mut hasher = self.hasher.build_hasher();
        at.iter().for_each(|step| step.hash(&mut hasher));
        let below = self.below.get(&hasher.finish());
        let mut numbers = self.unplaced.clone();
        numbers.extend(below.into_iter().flatten());
        numbers.sort_unstable();
        numbers
    }

    /// The errors of what was written; those from number `own` on came up while it was.
    pub(crate) fn of_piece(
        &mut self,
        (store, groups, streams): (&Store<'_>, &Groups<'_>, &Streams<'_>),
        errors: &Errors<'_>,
        piece: Piece,
        own: usize,
    ) -> PlacedErrors {
        let mut placed = PlacedErrors::default();
        if errors.len() == 0 {
            return placed;
        }
        self.index(errors);
        let at = store.path(piece.record);
        let n_fetches = store.plan().fetches.len();
        let fetch_of = |rank: u32| {
            let id = Source::of_rank(rank).fetch();
            // Those that are prefetched come after the fetches.
            match id.index().checked_sub(n_fetches) {
                Some(at) => (store.plan().reusable().prefetches.get(at)).map_or(id, |p| p.fetch),
                None => id,
            }
        };
        let numbers = self.candidates(&at).into_iter();
        for number in numbers.chain(own..errors.listed()) {
            placed.looked_at += 1;
            let Some((stage, error)) = errors.get(number) else {
                continue;
            };
            let is_of = match (stage, &error.path) {
                (Stage::Respond, _) => number >= own,
                (Stage::Fetch(rank), None) => {
                    let fetch = fetch_of(rank);
                    let is_first = piece.shown.key == FIRST && piece.item.is_none();
                    let is_early = is_first && !groups.may_have(FIRST, fetch);
                    !is_early && self.told.insert(number)
                }
                (Stage::Fetch(rank), Some(path)) => {
                    let fetch = fetch_of(rank);
                    let rest = path.strip_prefix(at.as_slice());
                    let key = piece.shown.key;
                    let of_fetch = piece.item.is_some() || groups.may_have(key, fetch);
                    of_fetch
                        && rest.is_some_and(|rest| {
                            // What is missing of an object is told of the object.
                            (!rest.is_empty() || key != FIRST && !groups.may_have(FIRST, fetch))
                                && shows((store, groups, streams), piece, rest)
                        })
                }
            };
            if is_of {
                push(error, &mut placed.list);
            }
        }
        if !placed.list.is_empty() {
            placed.list.push(b']');
        }
        let told = &self.told;
        self.unplaced.retain(|number| !told.contains(number));
        placed
    }
}

/// Appends an error to a list that is still open.
pub(crate) fn push(error: &GraphqlError<'_>, out: &mut Vec<u8>) {
    out.push(if out.is_empty() { b'[' } else { b',' });
    error.write(out);
}

/// Whether a place is written with a piece, or is inside of one that is null and is written with it, given the way to it
/// from the object.
fn shows(
    (store, groups, streams): (&Store<'_>, &Groups<'_>, &Streams<'_>),
    piece: Piece,
    path: &[PathStep<'_>],
) -> bool {
    let Some((mut value, path)) = start(store, piece, path) else {
        return false;
    };
    // How many items of the list that is next are written.
    let mut initial = None;
    for step in path {
        value = match (step, value) {
            (PathStep::Index(index), Value::List(_) | Value::Raw(_))
                if initial.take().is_some_and(|n: u32| *index >= n) =>
            {
                return false;
            }
            (PathStep::Key(name), Value::Record(record)) => {
                let layout = store.layout(record);
                let mut entries = store.plan().layouts[layout].output.iter().enumerate();
                let is_it = |(at, entry): &(usize, &OutField)| {
                    *entry.key == **name && groups.shows(piece.shown, groups.key(layout, *at))
                };
                let Some((at, entry)) = entries.find(is_it) else {
                    return false;
                };
                let row = streams.get(layout, at);
                initial = row.and_then(|row| streams.row(row).initial);
                match entry.source {
                    OutSource::Leaf(slot, _) | OutSource::Object(slot) => store.value(record, slot),
                    OutSource::Typename | OutSource::Local(_) | OutSource::Null => Value::Null,
                }
            }
            (PathStep::Index(index), Value::List(list)) => store.item(list, *index),
            // Nothing is there, or something that passes as it stands.
            _ => return true,
        };
    }
    true
}

/// What a piece begins with, and the rest of a way that leads there from the object.
fn start<'s>(
    store: &Store<'_>,
    piece: Piece,
    path: &'s [PathStep<'s>],
) -> Option<(Value, &'s [PathStep<'s>])> {
    let Some((entry, index)) = piece.item else {
        return Some((Value::Record(piece.record), path));
    };
    let layout = store.layout(piece.record);
    let field = store.plan().layouts[layout].output.get(entry)?;
    match path {
        [PathStep::Key(key), PathStep::Index(at), rest @ ..]
            if **key == *field.key && *at == index =>
        {
            let value = match field.source {
                OutSource::Object(slot) => match store.value(piece.record, slot) {
                    Value::List(list) => store.item(list, index),
                    _ => Value::Null,
                },
                _ => Value::Null,
            };
            Some((value, rest))
        }
        _ => None,
    }
}
