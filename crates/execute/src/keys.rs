//! Gathering representations that have nothing but leaves in them: most of all, and most of them repeat.
//!
//! Two such representations are equal if they have the same type name, the same members and the same bytes in each. So
//! they are compared before they are written: values are byte ranges of answers, and often the very same range, because
//! records share what was read once. Only new ones are written, by the same code as all others, and only for new ones it
//! is looked up whether anybody knows the answer ([`crate::reuse`]).
//!
//! Used only where nothing else depends on a representation's bytes: no values from above. Everything else goes the
//! general way (`gather_lookup` in `request`).

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_base::FastMap;
use ogive_plan::{Prefix, Programs, Representation, RuntimeType, Target};

use crate::{
    request::{
        Asking, Gather, GatheredLookup, Instance, ask, is_wanted, represent, write_representation,
    },
    reuse::{Key, Known},
    store::{LimitReached, RawRange, RecordId, Source, Store, Value},
};

/// Representations by what they are made of, and what is known of each.
pub(crate) struct Seen<'s, T> {
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
/// The representations of up to so many records are written, and compared as they were written.
const WRITTEN_MAX: usize = 16;

impl<T> Default for Seen<'_, T> {
    fn default() -> Self {
        Seen {
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
pub(crate) enum Found<T> {
    Known(T),
    New(New),
}

/// A representation that nothing is known of; to be inserted at once or not at all.
pub(crate) struct New {
    hash: u64,
    made: Made,
}

impl<'s, T: Copy> Seen<'s, T> {
    /// Forgets everything; those of at most `n_records` records will be looked for.
    pub(crate) fn begin(&mut self, n_records: usize) {
        self.table.clear();
        self.rows.clear();
        self.values.clear();
        self.kept = 0;
        self.hashed = n_records > COMPARED_MAX;
    }
    /// Finds the representation of a record among those of a class; `None` if it has none. The second word says whether
    /// the type of the record shows in it.
    #[inline(always)]
    pub(crate) fn find(
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
        let ty = match by_type {
            true => store.known_type(record),
            false => None,
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
    pub(crate) fn insert(&mut self, new: New, known: T) {
        let at = self.rows.len() as u32;
        self.rows.push((new.made, known));
        self.kept = self.values.len();
        if self.hashed {
            self.table
                .insert_unique(new.hash, (new.hash, at), |(hash, _)| *hash);
        }
    }
}

/// What becomes of a representation.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It is sent, as which.
    Sent(u32),
    /// An earlier fetch was answered it.
    Answered(Source, RawRange),
    /// An object of another place has what would be answered.
    Held(RecordId),
}

/// Room is made for so many representations of so many bytes.
const RESERVED_MAX: usize = 32;
const REPRESENTATION_BYTES: usize = 48;

/// Room to gather in, for all look-ups of a fetch.
#[derive(Default)]
pub(crate) struct Scratch<'s> {
    seen: Seen<'s, Fate>,
    /// Those that are sent, by their bytes: only if the same could be sent for targets of which not the same is known.
    sent: SentBytes,
}

/// Gathers the representations of a look-up whose programs are known.
pub(crate) fn gather_leaves<'a>(
    from: &mut Gather<'a, '_>,
    lookup: usize,
    programs: &Programs,
    fresh: &mut bool,
    scratch: &mut Scratch<'a>,
    (gathered, out): (&mut GatheredLookup, &mut Vec<u8>),
) -> Result<(), LimitReached> {
    let (store, fetch) = (from.store, from.fetch);
    let Scratch { seen, sent } = scratch;
    let places = fetch.lookups[lookup].targets.iter();
    let n_records: usize = places
        .map(|target| store.of_layout(target.layout).len())
        .sum();
    if out.capacity() == 0 {
        // Mostly every look-up of a fetch has a record at least.
        let n_likely = n_records.max(fetch.lookups.len()).min(RESERVED_MAX);
        out.reserve(n_likely * REPRESENTATION_BYTES);
    }
    let few = n_records <= WRITTEN_MAX;
    if !few {
        seen.begin(n_records);
        sent.begin();
    }
    let mut in_order = true;
    // Bytes of representations whose answers are known.
    let mut unsent = 0_u64;
    for (target_index, target) in fetch.lookups[lookup].targets.iter().enumerate() {
        let Some(Asking { donors, looks_up }) = ask(from, lookup, target_index) else {
            continue;
        };
        let known = from.entities.as_deref().filter(|_| looks_up);
        let records = store.of_layout(target.layout);
        gathered.instances.reserve(records.len());
        let known_of = |representation: &[u8]| {
            let key = known.map(|known| {
                known.get(Key {
                    subgraph: fetch.subgraph,
                    selection: target.selection,
                    representation,
                })
            });
            match key.unwrap_or(Known::No) {
                Known::Held(held) if donors.iter().all(|d| d.layout != store.layout(held)) => {
                    Known::No
                }
                known => known,
            }
        };
        if few {
            let prefix = programs.prefixes[target_index].as_ref();
            for &record in records {
                let instance = Instance {
                    representation: 0,
                    target: target_index as u16,
                    record,
                };
                let asked = (target, prefix, record);
                if let Some(fate) = gathered.add(store, asked, out, fresh, known_of)? {
                    gathered.give(fate, instance, &mut in_order);
                }
            }
            continue;
        }
        // What is known of a representation is known for one target; without any such knowledge all are alike.
        let of_target = known.map_or(0, |_| target_index as u64 + 1);
        sent.used |= known.is_some();
        let mut fates = Fates::default();
        let numbers = &programs.numbers[target_index];
        for &record in records {
            if !is_wanted(store, target, record) {
                continue;
            }
            let instance = Instance {
                representation: 0,
                target: target_index as u16,
                record,
            };
            let only = target.representations.first();
            let only = only.filter(|_| target.representations.len() == 1);
            if let Some(fate) = only.and_then(|only| fates.of(store, only, record)) {
                gathered.give(fate, instance, &mut in_order);
                continue;
            }
            let representations = target.representations.iter().zip(numbers);
            let mut found = representations.filter_map(|(representation, number)| {
                let class = of_target << 32 | u64::from(*number);
                let by_type = programs.by_type[*number as usize];
                let found = seen.find(store, representation, record, (class, by_type));
                found.map(|found| (representation, found))
            });
            let Some((representation, found)) = found.next() else {
                continue;
            };
            let fate = match found {
                Found::Known(fate) => fate,
                Found::New(new) => {
                    let end = out.len();
                    if end > gathered.text.start {
                        out.push(b',');
                    }
                    let begin = out.len();
                    if !write_representation(store, representation, record, out) {
                        // The type has no name; such a plan is not correct.
                        out.truncate(end);
                        continue;
                    }
                    let fate = match known_of(&out[begin..]) {
                        Known::Answered(answered, range) => Fate::Answered(answered, range),
                        Known::Held(held) => Fate::Held(held),
                        known => {
                            *fresh |= !matches!(known, Known::UnderWay(_));
                            let new = (begin, out.len());
                            match sent.find(out, &gathered.ranges, new) {
                                Some(at) => {
                                    out.truncate(end);
                                    Fate::Sent(at)
                                }
                                None => {
                                    let bytes = out.len() - gathered.text.start;
                                    if bytes > store.limits().request_bytes_max {
                                        return Err(LimitReached("request_bytes_max"));
                                    }
                                    gathered.ranges.push(new);
                                    Fate::Sent(gathered.ranges.len() as u32 - 1)
                                }
                            }
                        }
                    };
                    if !matches!(fate, Fate::Sent(_)) {
                        unsent = unsent.saturating_add((out.len() - begin) as u64);
                        if unsent > store.limits().rescanned_bytes_max {
                            return Err(LimitReached("rescanned_bytes_max"));
                        }
                        out.truncate(end);
                    }
                    seen.insert(new, fate);
                    fate
                }
            };
            fates.note(store, record, fate);
            gathered.give(fate, instance, &mut in_order);
        }
    }
    gathered.n_representations = gathered.ranges.len() as u32;
    if !in_order {
        gathered
            .instances
            .sort_by_key(|instance| instance.representation);
    }
    Ok(())
}

impl GatheredLookup {
    /// What becomes of the representation of one of few records; `None` if it has none. What is written is compared with
    /// the others.
    #[inline(always)]
    fn add(
        &mut self,
        store: &Store<'_>,
        (target, prefix, record): (&Target, Option<&Prefix>, RecordId),
        out: &mut Vec<u8>,
        fresh: &mut bool,
        known_of: impl Fn(&[u8]) -> Known,
    ) -> Result<Option<Fate>, LimitReached> {
        let end = out.len();
        if end > self.text.start {
            out.push(b',');
        }
        let begin = out.len();
        let prefix = prefix.filter(|prefix| match prefix.ty {
            Some(_) => store.known_type(record) == prefix.ty,
            None => true,
        });
        let written = match prefix.map(|prefix| (prefix, store.value(record, prefix.slot))) {
            Some((prefix, Value::Raw(range))) => {
                is_wanted(store, target, record) && {
                    prefix.text.append(out, true);
                    out.extend_from_slice(store.raw(range));
                    out.push(b'}');
                    true
                }
            }
            _ => represent(store, target, record, out),
        };
        if !written {
            out.truncate(end);
            return Ok(None);
        }
        match known_of(&out[begin..]) {
            Known::Answered(answered, range) => {
                out.truncate(end);
                return Ok(Some(Fate::Answered(answered, range)));
            }
            Known::Held(held) => {
                out.truncate(end);
                return Ok(Some(Fate::Held(held)));
            }
            known => *fresh |= !matches!(known, Known::UnderWay(_)),
        }
        let same = |(from, to): &(usize, usize)| out[*from..*to] == out[begin..];
        if let Some(at) = self.ranges.iter().position(same) {
            out.truncate(end);
            return Ok(Some(Fate::Sent(at as u32)));
        }
        if out.len() - self.text.start > store.limits().request_bytes_max {
            return Err(LimitReached("request_bytes_max"));
        }
        self.ranges.push((begin, out.len()));
        Ok(Some(Fate::Sent(self.ranges.len() as u32 - 1)))
    }
    /// Notes what becomes of the representation of a record.
    #[inline(always)]
    fn give(&mut self, fate: Fate, mut instance: Instance, in_order: &mut bool) {
        match fate {
            Fate::Sent(at) => {
                let before = self.instances.last();
                *in_order &= before.is_none_or(|before| before.representation <= at);
                instance.representation = at;
                self.instances.push(instance);
            }
            Fate::Answered(answered, range) => {
                self.reused.push((answered, range, instance));
            }
            Fate::Held(held) => self.held.push((held, instance)),
        }
    }
}

/// What becomes of records that have twins ([`Store::twin`]).
#[derive(Default)]
struct Fates {
    known: Vec<(RecordId, Fate)>,
}

/// So many of them are remembered.
const FATES_MAX: usize = 16;

impl Fates {
    /// What becomes of a record whose twin has the same values.
    #[inline(always)]
    fn of(&self, store: &Store<'_>, made: &Representation, record: RecordId) -> Option<Fate> {
        let twin = store.twin(record)?;
        let (_, fate) = self.known.iter().find(|(other, _)| *other == twin)?;
        shown_alike(store, made, record, twin).then_some(*fate)
    }
    #[inline(always)]
    fn note(&mut self, store: &Store<'_>, record: RecordId, fate: Fate) {
        if self.known.len() < FATES_MAX && store.twin(record) == Some(record) {
            self.known.push((record, fate));
        }
    }
}

/// Whether two records of a layout have the same values where a representation that has only leaves shows them.
#[inline(always)]
pub(crate) fn shown_alike(
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

/// Representations that are sent, by their bytes.
#[derive(Default)]
struct SentBytes {
    used: bool,
    hasher: RandomState,
    table: HashTable<u32>,
    /// How many of those that are sent the table has.
    taken: usize,
}

impl SentBytes {
    /// Forgets everything.
    fn begin(&mut self) {
        self.used = false;
        self.table.clear();
        self.taken = 0;
    }
    /// The one of `ranges` that has the same bytes as a new one.
    fn find(&mut self, out: &[u8], ranges: &[(usize, usize)], new: (usize, usize)) -> Option<u32> {
        if !self.used {
            return None;
        }
        let bytes = |range: (usize, usize)| &out[range.0..range.1];
        let hasher = &self.hasher;
        for (at, range) in ranges.iter().enumerate().skip(self.taken) {
            let hash = hasher.hash_one(bytes(*range));
            self.table.insert_unique(hash, at as u32, |at| {
                hasher.hash_one(bytes(ranges[*at as usize]))
            });
        }
        self.taken = ranges.len();
        let same = |at: &u32| bytes(ranges[*at as usize]) == bytes(new);
        self.table.find(hasher.hash_one(bytes(new)), same).copied()
    }
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
