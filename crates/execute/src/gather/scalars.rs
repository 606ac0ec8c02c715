//! Gathering representations that have nothing but leaves in them: most of all, and most of them repeat.
//!
//! Two such representations are equal if they have the same type name, the same members and the same bytes in each. So
//! they are compared before they are written: values are byte ranges of answers, and often the very same range, because
//! records share what was read once. Only new ones are written, by the same code as all others, and only for new ones it
//! is looked up whether anybody knows the answer ([`crate::reuse`]).
//!
//! Used only where nothing else depends on a representation's bytes: no values from above. Everything else goes the
//! general way.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_plan::{Prefix, Programs, Representation, Target};

use super::{
    Gather, Output,
    distinct::{Distinct, Found, shown_alike},
    gathered::{GatheredLookup, Instance},
    representation::{is_wanted, represent, write_representation},
    reuse::begin_target,
};
use crate::{
    reuse::ReuseState,
    stop::LimitReached,
    store::{RawRange, RecordId, Source, Store, Value},
};

/// The representations of up to so many records are written, and compared as they were written.
const WRITTEN_MAX: usize = 16;

/// What answers a representation.
#[derive(Clone, Copy)]
pub(super) enum AnsweredBy {
    /// The request, as which of its representations.
    Request(u32),
    /// An earlier answer has it.
    Answer(Source, RawRange),
    /// An object of another place has what would be answered.
    Object(RecordId),
}

/// Room is made for so many representations of so many bytes.
const RESERVED_MAX: usize = 32;
const REPRESENTATION_BYTES: usize = 48;

/// Room to gather in, for all look-ups of a fetch.
#[derive(Default)]
pub(super) struct Scratch<'s> {
    seen: Distinct<'s, AnsweredBy>,
    /// Those that are sent, by their bytes: only if the same could be sent for targets of which not the same is known.
    sent: SentBytes,
}

/// Gathers the representations of a look-up whose programs are known.
pub(super) fn gather_scalars<'a>(
    from: &mut Gather<'a, '_>,
    lookup: usize,
    programs: &Programs,
    mut into: Output<'_>,
    scratch: &mut Option<Scratch<'a>>,
) -> Result<(), LimitReached> {
    let (store, fetch) = (from.store, from.fetch);
    let places = fetch.lookups[lookup].targets.iter();
    let n_records: usize = places
        .map(|target| store.of_layout(target.layout).len())
        .sum();
    if into.out.capacity() == 0 {
        // Mostly every look-up of a fetch has a record at least.
        let n_likely = n_records.max(fetch.lookups.len()).min(RESERVED_MAX);
        into.out.reserve(n_likely * REPRESENTATION_BYTES);
    }
    let in_order = if n_records <= WRITTEN_MAX {
        gather_few(from, lookup, programs, &mut into)?
    } else {
        let scratch = scratch.get_or_insert_default();
        scratch.seen.begin(n_records);
        scratch.sent.begin();
        gather_many(from, lookup, programs, &mut into, scratch)?
    };
    let gathered = into.gathered;
    gathered.n_representations = gathered.ranges.len() as u32;
    if !in_order {
        gathered
            .instances
            .sort_by_key(|instance| instance.representation);
    }
    Ok(())
}

/// The representations of few records: each is written, and compared with the others as it was written. Says whether those
/// who wait are in the order of the representations.
#[inline(always)]
fn gather_few(
    from: &mut Gather<'_, '_>,
    lookup: usize,
    programs: &Programs,
    into: &mut Output<'_>,
) -> Result<bool, LimitReached> {
    let store = from.store;
    let mut in_order = true;
    for (target_index, target) in from.fetch.lookups[lookup].targets.iter().enumerate() {
        let Some(reuse) = begin_target(from, lookup, target_index, into.left) else {
            continue;
        };
        let entities = from.entities.as_deref();
        let records = store.of_layout(target.layout);
        into.gathered.instances.reserve(records.len());
        let known_of = |representation: &[u8]| reuse.known(store, entities, representation);
        let prefix = programs.prefixes[target_index].as_ref();
        for &record in records {
            let asked = (target, prefix, record);
            if let Some(by) = into.add(store, asked, known_of)? {
                let instance = Instance::new(target_index, record);
                into.gathered.give(by, instance, &mut in_order);
            }
        }
    }
    Ok(in_order)
}

/// The representations of many records: they are told apart by their values, and new ones are written.
fn gather_many<'a>(
    from: &mut Gather<'a, '_>,
    lookup: usize,
    programs: &Programs,
    into: &mut Output<'_>,
    scratch: &mut Scratch<'a>,
) -> Result<bool, LimitReached> {
    let store = from.store;
    let Scratch { seen, sent } = scratch;
    let mut in_order = true;
    for (target_index, target) in from.fetch.lookups[lookup].targets.iter().enumerate() {
        let Some(reuse) = begin_target(from, lookup, target_index, into.left) else {
            continue;
        };
        let entities = from.entities.as_deref().filter(|_| reuse.looks_up);
        let records = store.of_layout(target.layout);
        into.gathered.instances.reserve(records.len());
        let known_of = |representation: &[u8]| reuse.known(store, entities, representation);
        // What is known of a representation is known for one target; without any such knowledge all are alike.
        let of_target = entities.map_or(0, |_| target_index as u64 + 1);
        sent.used |= entities.is_some();
        let mut duplicates = DuplicateAnswers::default();
        let numbers = &programs.numbers[target_index];
        let only = target.representations.first();
        let only = only.filter(|_| target.representations.len() == 1);
        for &record in records {
            if !is_wanted(store, target, record) {
                continue;
            }
            let instance = Instance::new(target_index, record);
            if let Some(by) = only.and_then(|only| duplicates.of(store, only, record)) {
                into.gathered.give(by, instance, &mut in_order);
                continue;
            }
            let mut found = None;
            for (representation, number) in target.representations.iter().zip(numbers) {
                let class = of_target << 32 | u64::from(*number);
                let by_type = programs.by_type[*number as usize];
                found = seen
                    .find(store, representation, record, (class, by_type))
                    .map(|found| (representation, found));
                if found.is_some() {
                    break;
                }
            }
            let Some((representation, found)) = found else {
                continue;
            };
            let by = match found {
                Found::Known(by) => by,
                Found::New(new) => {
                    let Some(by) = into.add_new(store, (representation, record), sent, known_of)?
                    else {
                        continue;
                    };
                    seen.insert(new, by);
                    by
                }
            };
            duplicates.note(store, record, by);
            into.gathered.give(by, instance, &mut in_order);
        }
    }
    Ok(in_order)
}

impl Output<'_> {
    /// What becomes of the representation of one of few records; `None` if it has none. What is written is compared with
    /// the others.
    #[inline(always)]
    fn add(
        &mut self,
        store: &Store<'_>,
        (target, prefix, record): (&Target, Option<&Prefix>, RecordId),
        known_of: impl Fn(&[u8]) -> ReuseState,
    ) -> Result<Option<AnsweredBy>, LimitReached> {
        let Output {
            gathered,
            out,
            fresh,
            ..
        } = self;
        let end = out.len();
        if end > gathered.text.start {
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
            ReuseState::Answered(answered, range) => {
                out.truncate(end);
                return Ok(Some(AnsweredBy::Answer(answered, range)));
            }
            ReuseState::Held(held) => {
                out.truncate(end);
                return Ok(Some(AnsweredBy::Object(held)));
            }
            known => **fresh |= !matches!(known, ReuseState::UnderWay(_)),
        }
        let same = |(from, to): &(usize, usize)| out[*from..*to] == out[begin..];
        if let Some(at) = gathered.ranges.iter().position(same) {
            out.truncate(end);
            return Ok(Some(AnsweredBy::Request(at as u32)));
        }
        if out.len() - gathered.text.start > store.limits().request_bytes_max {
            return Err(LimitReached("request_bytes_max"));
        }
        gathered.ranges.push((begin, out.len()));
        Ok(Some(AnsweredBy::Request(gathered.ranges.len() as u32 - 1)))
    }

    /// The same for a representation that is known to be new: `sent` tells whether the same is sent for another target.
    #[inline(always)]
    fn add_new(
        &mut self,
        store: &Store<'_>,
        (representation, record): (&Representation, RecordId),
        sent: &mut SentBytes,
        known_of: impl Fn(&[u8]) -> ReuseState,
    ) -> Result<Option<AnsweredBy>, LimitReached> {
        let Output { gathered, out, .. } = self;
        let end = out.len();
        if end > gathered.text.start {
            out.push(b',');
        }
        let begin = out.len();
        if !write_representation(store, representation, record, out) {
            // The type has no name; such a plan is not correct.
            out.truncate(end);
            return Ok(None);
        }
        let by = match known_of(&out[begin..]) {
            ReuseState::Answered(answered, range) => AnsweredBy::Answer(answered, range),
            ReuseState::Held(held) => AnsweredBy::Object(held),
            known => {
                *self.fresh |= !matches!(known, ReuseState::UnderWay(_));
                let new = (begin, out.len());
                if let Some(at) = sent.find(out, &gathered.ranges, new) {
                    out.truncate(end);
                    return Ok(Some(AnsweredBy::Request(at)));
                }
                if out.len() - gathered.text.start > store.limits().request_bytes_max {
                    return Err(LimitReached("request_bytes_max"));
                }
                gathered.ranges.push(new);
                return Ok(Some(AnsweredBy::Request(gathered.ranges.len() as u32 - 1)));
            }
        };
        self.left.count_unsent(out.len() - begin)?;
        out.truncate(end);
        Ok(Some(by))
    }
}

impl GatheredLookup {
    /// Notes what becomes of the representation of a record.
    #[inline(always)]
    fn give(&mut self, by: AnsweredBy, mut instance: Instance, in_order: &mut bool) {
        match by {
            AnsweredBy::Request(at) => {
                let before = self.instances.last();
                *in_order &= before.is_none_or(|before| before.representation <= at);
                instance.representation = at;
                self.instances.push(instance);
            }
            AnsweredBy::Answer(answered, range) => {
                self.reused.push((answered, range, instance));
            }
            AnsweredBy::Object(held) => self.held.push((held, instance)),
        }
    }
}

/// What becomes of records that have duplicates ([`Store::duplicate`]).
#[derive(Default)]
struct DuplicateAnswers {
    known: Vec<(RecordId, AnsweredBy)>,
}

/// So many of them are remembered.
const DUPLICATES_MAX: usize = 16;

impl DuplicateAnswers {
    /// What becomes of a record whose duplicate has the same values.
    #[inline(always)]
    fn of(&self, store: &Store<'_>, made: &Representation, record: RecordId) -> Option<AnsweredBy> {
        let duplicate = store.duplicate(record)?;
        let (_, by) = self.known.iter().find(|(other, _)| *other == duplicate)?;
        shown_alike(store, made, record, duplicate).then_some(*by)
    }
    #[inline(always)]
    fn note(&mut self, store: &Store<'_>, record: RecordId, by: AnsweredBy) {
        if self.known.len() < DUPLICATES_MAX && store.duplicate(record) == Some(record) {
            self.known.push((record, by));
        }
    }
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
