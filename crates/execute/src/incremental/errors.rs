//! To which part an error belongs: to the one that has its place. One without a place belongs to the first part that is
//! written after it.

use ogive_base::{FastSet, id::Id as _};
use ogive_plan::{OutField, OutSource};

use crate::{
    errors::{Errors, Stage},
    graphql_error::{GraphqlError, PathStep},
    incremental::groups::{FIRST, Groups},
    store::{RecordId, Source, Store, Value},
};

/// Errors without a place that were told, by their number.
#[derive(Default)]
pub(crate) struct ErrorPlaces(FastSet<usize>);

/// An object of which the entries of one key are written.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) key: u32,
    pub(crate) record: RecordId,
}

impl ErrorPlaces {
    /// The errors of what was written, as a JSON list; those from number `own` on came up while it was. `None`: there are
    /// none.
    pub(crate) fn of_piece(
        &mut self,
        (store, groups): (&Store<'_>, &Groups<'_>),
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
                    let is_early = piece.key == FIRST && !groups.may_have(FIRST, fetch);
                    !is_early && self.0.insert(number)
                }
                (Stage::Fetch(rank), Some(path)) => {
                    let fetch = fetch_of(rank);
                    let rest = path.strip_prefix(at.as_slice());
                    let of_fetch = groups.may_have(piece.key, fetch);
                    of_fetch
                        && rest.is_some_and(|rest| {
                            // What is missing of an object is told of the object.
                            (!rest.is_empty()
                                || piece.key != FIRST && !groups.may_have(FIRST, fetch))
                                && shows(store, groups, piece.key, piece.record, rest)
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

/// Whether a place is written with a key, or is inside of one that is null and is written with it, given the way to it
/// from an object.
fn shows(
    store: &Store<'_>,
    groups: &Groups<'_>,
    key: u32,
    record: RecordId,
    path: &[PathStep<'_>],
) -> bool {
    let mut value = Value::Record(record);
    for step in path {
        value = match (step, value) {
            (PathStep::Key(name), Value::Record(record)) => {
                let layout = store.layout(record);
                let mut entries = store.plan().layouts[layout].output.iter().enumerate();
                let is_it = |(at, entry): &(usize, &OutField)| {
                    *entry.key == **name && groups.key(layout, *at) == key
                };
                match entries.find(is_it) {
                    Some((_, entry)) => match entry.source {
                        OutSource::Leaf(slot, _) | OutSource::Object(slot) => {
                            store.value(record, slot)
                        }
                        OutSource::Typename | OutSource::Local(_) | OutSource::Null => Value::Null,
                    },
                    None => return false,
                }
            }
            (PathStep::Index(index), Value::List(list)) => store.item(list, *index),
            // Nothing is there, or something that passes as it stands.
            _ => return true,
        };
    }
    true
}
