//! Telling representations apart by the values they are made of, before they are written.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_base::FastMap;
use ogive_plan::{Representation, RuntimeType};

use crate::store::{RecordId, Store, Value};

/// Representations by what they are made of, and what is known of each.
pub(super) struct Distinct<'s, T> {
    /// The hash is seeded anew for every process and only finds candidates; bytes decide.
    hasher: RandomState,
    table: HashTable<(u64, u32)>,
    rows: Vec<(Made, T)>,
    /// The values of all of them, one after another, and behind them those of the one that is looked for.
    values: Vec<Option<&'s [u8]>>,
    /// How many of `values` are of those in the table.
    kept: usize,
    /// Whether there may be so many that a table is worth it; otherwise all are compared.
    hashed: bool,
    /// Those of the values that are long, once there is one: room for it would be moved with every execution.
    long: Option<Box<Long<'s>>>,
}

/// Values that many records share may be as long as an answer, and looking at all bytes for each record would take as
/// long as if each had bytes of its own. So of long values each is looked at once, wherever it stands.
#[derive(Default)]
struct Long<'s> {
    /// By where they stand, the one among equal ones that speaks for them.
    known: FastMap<(usize, usize), &'s [u8]>,
    /// Those that do, by their bytes.
    by_bytes: FastMap<&'s [u8], ()>,
}

/// Longer values are long, in bytes.
const LONG: usize = 1 << 10;

impl<'s> Long<'s> {
    /// The value that speaks for all that are equal to this one: where it stands decides.
    #[cold]
    fn one(&mut self, value: &'s [u8]) -> &'s [u8] {
        let place = (value.as_ptr() as usize, value.len());
        if let Some(known) = self.known.get(&place) {
            return known;
        }
        let one = match self.by_bytes.get_key_value(value) {
            Some((known, ())) => *known,
            None => {
                self.by_bytes.insert(value, ());
                value
            }
        };
        self.known.insert(place, one);
        one
    }
}

/// Up to so many are compared one by one.
const COMPARED_MAX: usize = 4;
impl<T> Default for Distinct<'_, T> {
    fn default() -> Self {
        Distinct {
            hasher: RandomState::default(),
            table: HashTable::new(),
            rows: Vec::new(),
            values: Vec::new(),
            kept: 0,
            hashed: true,
            long: None,
        }
    }
}

/// What a representation is made of.
#[derive(Clone, Copy)]
struct Made {
    /// Only those of one class can be equal.
    class: u64,
    ty: Option<RuntimeType>,
    /// Where its values begin in the list of all.
    values: usize,
}

/// A representation that was looked for.
pub(super) enum Found<T> {
    Known(T),
    New(New),
}

/// A representation that nothing is known of; to be inserted at once or not at all.
pub(super) struct New {
    hash: u64,
    made: Made,
}

impl<'s, T: Copy> Distinct<'s, T> {
    /// Forgets everything; those of at most `n_records` records will be looked for.
    pub(super) fn begin(&mut self, n_records: usize) {
        self.table.clear();
        self.rows.clear();
        self.values.clear();
        self.kept = 0;
        self.hashed = n_records > COMPARED_MAX;
    }
    /// Finds the representation of a record among those of a class; `None` if it has none. The second word says whether
    /// the type of the record shows in it.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        store: &'s Store<'_>,
        representation: &Representation,
        record: RecordId,
        (class, by_type): (u64, bool),
    ) -> Option<Found<T>> {
        let start = self.kept;
        self.values.truncate(start);
        if !read_values(store, representation, record, &mut self.values) {
            return None;
        }
        let ty = if by_type {
            store.known_type(record)
        } else {
            None
        };
        let mut hash = self.hasher.build_hasher();
        if self.hashed {
            hash.write_u64(class);
            for value in &mut self.values[start..] {
                match value {
                    Some(value) => write_hash(&mut hash, value, &mut self.long),
                    None => hash.write_u8(0),
                }
            }
        }
        let mine = &self.values[start..];
        let is_same = |other: &Made| {
            let theirs = self.values.get(other.values..other.values + mine.len());
            other.class == class
                && other.ty == ty
                && theirs.is_some_and(|theirs| theirs.iter().zip(mine).all(are_equal))
        };
        let made = Made {
            class,
            ty,
            values: start,
        };
        if !self.hashed {
            let same = self.rows.iter().find(|(other, _)| is_same(other));
            return Some(match same {
                Some((_, known)) => Found::Known(*known),
                None => Found::New(New { hash: 0, made }),
            });
        }
        let hash = hash.finish();
        let same = self.table.find(hash, |(known, at)| {
            *known == hash && is_same(&self.rows[*at as usize].0)
        });
        Some(match same {
            Some((_, at)) => Found::Known(self.rows[*at as usize].1),
            None => Found::New(New { hash, made }),
        })
    }
    /// Remembers what is known of the representation that was looked for last.
    pub(super) fn insert(&mut self, new: New, known: T) {
        let at = self.rows.len() as u32;
        self.rows.push((new.made, known));
        self.kept = self.values.len();
        if self.hashed {
            self.table
                .insert_unique(new.hash, (new.hash, at), |(hash, _)| *hash);
        }
    }
}

/// Whether two records of a layout have the same values where a representation that has only leaves shows them.
#[inline(always)]
pub(super) fn shown_alike(
    store: &Store<'_>,
    made: &Representation,
    one: RecordId,
    other: RecordId,
) -> bool {
    let (ours, theirs) = (store.slots(one), store.slots(other));
    let alike = |slot| store.get(ours, slot) == store.get(theirs, slot);
    store.layout(one) == store.layout(other)
        && store.type_state(one) == store.type_state(other)
        && made.members.iter().filter_map(|m| m.slot).all(alike)
}

/// Most keys are so short that all of their bytes are one number.
#[inline(always)]
fn write_hash<'s>(hash: &mut impl Hasher, value: &mut &'s [u8], long: &mut Option<Box<Long<'s>>>) {
    match (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        (Some(first), Some(last)) if value.len() <= 8 => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            hash.write_u64(u64::from(first) << 32 | u64::from(last));
        }
        _ if value.len() < 4 => {
            let bytes = value.iter().map(|byte| u64::from(*byte));
            hash.write_u64(bytes.fold(0, |all, byte| all << 8 | byte));
        }
        _ if value.len() > LONG => {
            *value = long.get_or_insert_default().one(value);
            hash.write_usize(value.as_ptr() as usize);
            hash.write_usize(value.len());
        }
        _ => hash.write(value),
    }
}

/// Whether two values are written alike. Mostly they are the very same bytes.
#[inline(always)]
fn are_equal((one, other): (&Option<&[u8]>, &Option<&[u8]>)) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.len() == other.len() && (one.as_ptr() == other.as_ptr() || one == other)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Appends the value of every member that has a slot, none where it is left out; false if a key has none.
#[inline(always)]
fn read_values<'s>(
    store: &'s Store<'_>,
    representation: &Representation,
    record: RecordId,
    values: &mut Vec<Option<&'s [u8]>>,
) -> bool {
    let ty = store.known_type(record);
    if representation.typename.is_none() && ty.is_none() {
        return false;
    }
    let slots = store.slots(record);
    for member in &representation.members {
        if let Some(types) = &member.types
            && !ty.is_some_and(|ty| types.contains(ty.0))
        {
            values.push(None);
            continue;
        }
        let Some(slot) = member.slot else {
            // The name of the type.
            if ty.is_none() && member.key {
                return false;
            }
            values.push(None);
            continue;
        };
        values.push(match store.get(slots, slot) {
            Value::Raw(range) => Some(store.raw(range)),
            // What has no members cannot be shown as an object; such a plan is not correct.
            _ if member.key => return false,
            Value::Null => Some(b"null"),
            _ => None,
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_looked_at_once_wherever_they_stand() {
        let (one, same) = (vec![b'x'; 5_000], vec![b'x'; 5_000]);
        let mut long = Long::default();
        for _ in 0..100 {
            assert_eq!(long.one(&one).as_ptr(), one.as_ptr());
            assert_eq!(long.one(&same).as_ptr(), one.as_ptr());
            // A part of it is another value.
            assert_eq!(long.one(&one[..4_000]).as_ptr(), one.as_ptr());
            assert_eq!(long.one(&one[1..]).as_ptr(), one[1..].as_ptr());
        }
        assert_eq!((long.known.len(), long.by_bytes.len()), (4, 3));
    }

    #[test]
    fn equal_long_values_are_hashed_alike_and_others_are_not() {
        let hasher = RandomState::default();
        let mut long = None;
        let (one, same, other) = (vec![b'x'; 5_000], vec![b'x'; 5_000], vec![b'y'; 5_000]);
        let mut hash = |mut value: &'static [u8]| {
            let mut hash = hasher.build_hasher();
            write_hash(&mut hash, &mut value, &mut long);
            hash.finish()
        };
        let (one, same, other) = (one.leak(), same.leak(), other.leak());
        assert_eq!(hash(one), hash(same));
        assert_ne!(hash(one), hash(other));
        // One begins where the other does, and is shorter.
        assert_ne!(hash(one), hash(&one[..4_000]));
    }
}
