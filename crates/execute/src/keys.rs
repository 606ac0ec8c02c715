//! Gathering representations that have nothing but leaves in them: most of all, and most of them repeat.
//!
//! Two such representations are equal if they have the same type name, the same members and the same bytes in each. So
//! they are compared before they are written: values are byte ranges of answers, and often the very same range, because
//! records share what was read once. Only new ones are written, by the same code as all others.
//!
//! Used only where nothing else depends on a representation's bytes: no values from above, no reuse of what other
//! look-ups were answered. Everything else goes the general way (`gather_lookup` in `request`).

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_base::id::Id;
use ogive_plan::{Representation, RuntimeType};

use crate::{
    request::{Gather, GatheredLookup, Instance, is_wanted, write_representation},
    reuse::Reuse,
    store::{LimitReached, RecordId, Store, Value},
};

/// The alternatives of all targets of a look-up. Those that write the same members have the same number.
pub(crate) struct Programs {
    /// By target and alternative.
    numbers: Vec<Vec<u32>>,
    /// By number: whether the type of the record shows.
    by_type: Vec<bool>,
}

/// The programs of a look-up, if all of them have nothing but leaves and nothing else depends on what they write.
pub(crate) fn leaf_programs(from: &Gather<'_, '_>, lookup: usize) -> Option<Programs> {
    let targets = &from.fetch.lookups[lookup].targets;
    if from.reuse == Reuse::All || from.part.is_some() {
        return None;
    }
    let asked_twice = &from.store.plan().derived().asked_twice[from.id.index()][lookup];
    let is_plain = |at: usize| {
        let target = &targets[at];
        let representations = target.representations.iter();
        let mut members = representations.flat_map(|r| &r.members);
        let shared = asked_twice[at] && from.entities.is_some();
        target.contexts.is_empty() && !shared && members.all(|member| member.members.is_empty())
    };
    if !(0..targets.len()).all(is_plain) {
        return None;
    }
    let mut distinct: Vec<&Representation> = Vec::new();
    let mut number = |representation| {
        let known = distinct
            .iter()
            .position(|other| write_alike(other, representation));
        known.unwrap_or_else(|| {
            distinct.push(representation);
            distinct.len() - 1
        }) as u32
    };
    let numbers = targets.iter().map(|target| {
        let representations = target.representations.iter();
        representations.map(&mut number).collect()
    });
    let numbers = numbers.collect();
    let by_type = distinct.iter().map(|representation| {
        let mut members = representation.members.iter();
        representation.typename.is_none()
            || members.any(|member| member.slot.is_none() || member.types.is_some())
    });
    Some(Programs {
        numbers,
        by_type: by_type.collect(),
    })
}

/// Whether two representations of records of one type with the same values are the same text.
fn write_alike(one: &Representation, other: &Representation) -> bool {
    one.typename == other.typename
        && one.members.len() == other.members.len()
        && one.members.iter().zip(&other.members).all(|(one, other)| {
            one.key_json == other.key_json
                && one.slot.is_some() == other.slot.is_some()
                && one.types == other.types
        })
}

/// A representation that is sent.
struct Sent {
    program: u32,
    ty: Option<RuntimeType>,
    /// Where its values begin in the list of all.
    values: usize,
}

/// Gathers the representations of a look-up whose programs are known.
pub(crate) fn gather_leaves(
    from: &Gather<'_, '_>,
    lookup: usize,
    programs: &Programs,
    fresh: &mut bool,
) -> Result<GatheredLookup, LimitReached> {
    let (store, fetch) = (from.store, from.fetch);
    let mut gathered = GatheredLookup::default();
    // The hash is seeded anew for every process and only finds candidates; bytes decide.
    let hasher = RandomState::default();
    let mut seen: HashTable<(u64, u32)> = HashTable::new();
    let mut sent: Vec<Sent> = Vec::new();
    let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(64);
    let mut in_order = true;
    for (target_index, target) in fetch.lookups[lookup].targets.iter().enumerate() {
        if !from.conditions.hold(target.cond) {
            continue;
        }
        let records = store.of_layout(target.layout);
        gathered.instances.reserve(records.len());
        let numbers = &programs.numbers[target_index];
        for &record in records {
            if !is_wanted(store, target, record) {
                continue;
            }
            let start = values.len();
            let mut chosen = None;
            for (representation, number) in target.representations.iter().zip(numbers) {
                values.truncate(start);
                if read_values(store, representation, record, &mut values) {
                    chosen = Some((representation, *number));
                    break;
                }
            }
            let Some((representation, program)) = chosen else {
                values.truncate(start);
                continue;
            };
            let ty = match programs.by_type[program as usize] {
                true => store.known_type(record),
                false => None,
            };
            let mine = &values[start..];
            let mut hash = hasher.build_hasher();
            hash.write_u32(program);
            for value in mine {
                match value {
                    Some(value) => write_hash(&mut hash, value),
                    None => hash.write_u8(0),
                }
            }
            let hash = hash.finish();
            let same = seen.find(hash, |(_, at)| {
                let other = &sent[*at as usize];
                let theirs = values.get(other.values..other.values + mine.len());
                other.program == program
                    && other.ty == ty
                    && theirs.is_some_and(|theirs| theirs.iter().zip(mine).all(are_equal))
            });
            let at = match same {
                Some((_, at)) => {
                    values.truncate(start);
                    *at
                }
                None => {
                    let at = sent.len() as u32;
                    let out = &mut gathered.representations;
                    if at > 0 {
                        out.push(b',');
                    }
                    let begin = out.len();
                    if !write_representation(store, representation, record, out) {
                        // The type has no name; such a plan is not correct.
                        out.truncate(begin - usize::from(at > 0));
                        values.truncate(start);
                        continue;
                    }
                    if out.len() > store.limits().request_bytes_max {
                        return Err(LimitReached("request_bytes_max"));
                    }
                    gathered.ranges.push((begin, out.len()));
                    sent.push(Sent {
                        program,
                        ty,
                        values: start,
                    });
                    seen.insert_unique(hash, (hash, at), |(hash, _)| *hash);
                    at
                }
            };
            *fresh = true;
            let before = gathered.instances.last();
            in_order &= before.is_none_or(|before| before.representation <= at);
            gathered.instances.push(Instance {
                representation: at,
                target: target_index as u16,
                record,
            });
        }
    }
    gathered.n_representations = sent.len() as u32;
    if !in_order {
        gathered
            .instances
            .sort_by_key(|instance| instance.representation);
    }
    Ok(gathered)
}

/// Most keys are so short that all of their bytes are one number.
#[inline(always)]
fn write_hash(hash: &mut impl Hasher, value: &[u8]) {
    match (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        (Some(first), Some(last)) if value.len() <= 8 => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            hash.write_u64(u64::from(first) << 32 | u64::from(last));
        }
        _ if value.len() < 4 => {
            let bytes = value.iter().map(|byte| u64::from(*byte));
            hash.write_u64(bytes.fold(0, |all, byte| all << 8 | byte));
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
