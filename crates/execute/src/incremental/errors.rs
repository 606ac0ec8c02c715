//! To which part an error belongs: to the one that has its place. One without a place belongs to the first part that is
//! written after it.

use ogive_base::{FastSet, id::Id as _};
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

/// Errors without a place that were told, by their number.
#[derive(Default)]
pub(crate) struct ErrorPlaces(FastSet<usize>);

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
    /// The errors of what was written, as a JSON list; those from number `own` on came up while it was. `None`: there are
    /// none.
    pub(crate) fn of_piece(
        &mut self,
        (store, groups, streams): (&Store<'_>, &Groups<'_>, &Streams<'_>),
        errors: &Errors<'_>,
        piece: Piece,
        own: usize,
    ) -> Option<Vec<u8>> {
        if errors.len() == 0 {
            return None;
        }
        let at = store.path(piece.record);
        let mut out = Vec::new();
        let n_fetches = store.plan().fetches.len();
        let fetch_of = |rank: u32| {
            let id = Source::of_rank(rank).fetch();
            // Those that are prefetched come after the fetches.
            match id.index().checked_sub(n_fetches) {
                Some(at) => (store.plan().reusable().prefetches.get(at)).map_or(id, |p| p.fetch),
                None => id,
            }
        };
        for (number, (stage, error)) in errors.list().enumerate() {
            let is_of = match (stage, &error.path) {
                (Stage::Respond, _) => number >= own,
                (Stage::Fetch(rank), None) => {
                    let fetch = fetch_of(rank);
                    let is_first = piece.shown.key == FIRST && piece.item.is_none();
                    let is_early = is_first && !groups.may_have(FIRST, fetch);
                    !is_early && self.0.insert(number)
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
                push(error, &mut out);
            }
        }
        (!out.is_empty()).then(|| {
            out.push(b']');
            out
        })
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
