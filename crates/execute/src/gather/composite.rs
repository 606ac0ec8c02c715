//! Gathering representations of any kind: with objects in them, or with values from above the objects that are looked up.
//! Each is written, and compared with the others by its bytes.

use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_plan::{Member, Target};

use super::{Gather, Output, gathered::Instance, representation::represent, reuse::begin_target};
use crate::{
    condition::Conditions,
    inline_list::InlineList,
    reuse::ReuseState,
    stop::LimitReached,
    store::{RecordId, Store, Value},
};

/// Gathers the representations of a look-up.
pub(super) fn gather_composite(
    from: &mut Gather<'_, '_>,
    lookup: usize,
    into: Output<'_>,
) -> Result<(), LimitReached> {
    let Output {
        gathered,
        out,
        fresh,
        left,
    } = into;
    let (store, conditions) = (from.store, from.conditions);
    let mut sent = SentOnce::default();
    let mut groups = Groups::default();
    let targets = &from.fetch.lookups[lookup].targets;
    let has_contexts = targets.iter().any(|target| !target.contexts.is_empty());
    for (target_index, target) in targets.iter().enumerate() {
        let Some(reuse) = begin_target(from, lookup, target_index, left) else {
            continue;
        };
        for &record in store.of_layout(target.layout) {
            let end = out.len();
            if end > gathered.text.start {
                out.push(b',');
            }
            let start = out.len();
            if !represent(store, target, record, out) {
                out.truncate(end);
                continue;
            }
            left.count_unsent(out.len() - start)?;
            let mut group = None;
            if !target.contexts.is_empty() {
                let Some(context) = context(store, conditions, target, record) else {
                    out.truncate(end);
                    continue;
                };
                left.count_unsent(context.len())?;
                let all = (&mut gathered.contexts, &mut left.contexts);
                group = Some(groups.number_of(context, all)?);
            }
            let instance = Instance {
                representation: 0,
                target: target_index as u16,
                record,
            };
            match reuse.known(store, from.entities.as_deref(), &out[start..]) {
                ReuseState::Answered(answered, range) => {
                    out.truncate(end);
                    gathered.reused.push((answered, range, instance));
                    continue;
                }
                ReuseState::Held(held) => {
                    out.truncate(end);
                    gathered.held.push((held, instance));
                    continue;
                }
                known => *fresh |= known == ReuseState::No,
            }
            let representation = match sent.find(out, start, (group, &gathered.groups)) {
                Some(at) => {
                    out.truncate(end);
                    at
                }
                None => {
                    if out.len() - gathered.text.start > store.limits().request_bytes_max {
                        return Err(LimitReached("request_bytes_max"));
                    }
                    if has_contexts {
                        gathered.groups.push(group);
                    }
                    sent.insert(out, start)
                }
            };
            gathered.instances.push(Instance {
                representation,
                ..instance
            });
        }
    }
    gathered.n_representations = sent.ranges.len() as u32;
    gathered.ranges = sent.ranges;
    gathered
        .instances
        .sort_by_key(|instance| instance.representation);
    Ok(())
}

/// Representations that are sent, by their bytes.
#[derive(Default)]
struct SentOnce {
    /// The hash is seeded anew for every process and only finds candidates; bytes decide.
    hasher: RandomState,
    table: HashTable<u32>,
    ranges: InlineList<(usize, usize), 4>,
}

impl SentOnce {
    /// The one with the same bytes as what begins at `start`, and of the same group of values from above.
    fn find(
        &self,
        out: &[u8],
        start: usize,
        (group, groups): (Option<u32>, &[Option<u32>]),
    ) -> Option<u32> {
        let same = |at: &u32| {
            let at = *at as usize;
            let (from, to) = self.ranges[at];
            out[from..to] == out[start..] && groups.get(at).copied().flatten() == group
        };
        let hash = self.hasher.hash_one(&out[start..]);
        self.table.find(hash, same).copied()
    }
    /// One more; gives its number.
    fn insert(&mut self, out: &[u8], start: usize) -> u32 {
        let SentOnce {
            hasher,
            table,
            ranges,
        } = self;
        let at = ranges.len() as u32;
        ranges.push((start, out.len()));
        let of = |(from, to): (usize, usize)| hasher.hash_one(&out[from..to]);
        table.insert_unique(of((start, out.len())), at, |at| of(ranges[*at as usize]));
        at
    }
}

/// Groups of values from above, by their bytes.
#[derive(Default)]
struct Groups {
    hasher: RandomState,
    table: HashTable<u32>,
}

impl Groups {
    /// The number of a group among all; it is added if it is new.
    fn number_of(
        &mut self,
        context: Vec<u8>,
        (all, left): (&mut Vec<Bytes>, &mut usize),
    ) -> Result<u32, LimitReached> {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(&*context);
        let same = |at: &u32| *all[*at as usize] == *context;
        if let Some(at) = self.table.find(hash, same) {
            return Ok(*at);
        }
        // Each is a request; a context with so many values would be a key.
        *left = left.checked_sub(1).ok_or(LimitReached("parts_max"))?;
        let at = all.len() as u32;
        all.push(Bytes::from(context));
        let of = |at: &u32| hasher.hash_one(&*all[*at as usize]);
        self.table.insert_unique(hash, at, of);
        Ok(at)
    }
}

/// The values from above a record, as JSON members each behind a comma; `None` if one is missing that must be there.
fn context(
    store: &Store<'_>,
    conditions: &Conditions,
    target: &Target,
    record: RecordId,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let used = target.contexts.iter();
    for context in used.filter(|context| conditions.hold(context.cond)) {
        let mut at = record;
        while store.layout(at) != context.layout {
            at = store.parent(at)?;
        }
        let mut members = context.members.as_slice();
        let value = loop {
            let ty = store.known_type(at);
            let applies = |m: &&Member| match &m.types {
                Some(types) => ty.is_some_and(|ty| types.contains(ty.0)),
                None => true,
            };
            // A type's name is there for keys only.
            let mut values = members.iter().filter(|m| m.slot.is_some());
            let Some(member) = values.find(applies) else {
                break Value::Absent;
            };
            match member.slot.map(|slot| store.value(at, slot)) {
                Some(Value::Record(below)) => {
                    at = below;
                    members = &member.members;
                }
                value => break value.unwrap_or(Value::Absent),
            }
        };
        out.push(b',');
        ogive_json::write_string(&mut out, &context.variable);
        out.push(b':');
        match value {
            Value::Raw(range) => out.extend_from_slice(store.raw(range)),
            _ if context.required => return None,
            _ => out.extend_from_slice(b"null"),
        }
    }
    Some(out)
}
