//! What a subgraph is asked: the body of one request.
//!
//! First all representations of a fetch are gathered, because they decide which pieces of text are sent. Equal
//! representations of one look-up are sent once, in the order in which they first occur; an index table remembers
//! which records wait for which.

use std::{hash::BuildHasher, ops::Range};

use bytes::Bytes;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_base::id::Id;
use ogive_plan::{
    Donor, EarlyPart, Fetch, FetchId, Member, Plan, Representation, RuntimeType, Target,
};

use crate::{
    condition::Conditions,
    few::Few,
    keys::{Found, Scratch, Seen, gather_leaves, shown_alike},
    limits::ExecuteLimits,
    reuse::{Entities, Key, Known, Reuse},
    store::{LimitReached, ListRange, RawRange, RecordId, Source, Store, TypeState, Value},
};

/// The representations of one fetch, by look-up.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Whether the fetch's root fields are asked.
    pub(crate) root: bool,
    pub(crate) lookups: Vec<GatheredLookup>,
    /// The representations of all look-ups: of each, JSON objects separated by commas.
    pub(crate) text: Vec<u8>,
    /// Variables whose values come from objects above those that are looked up, as JSON members each behind a comma.
    /// Shared by all parts of a request.
    pub(crate) context: Bytes,
    /// Whether it is what is left of a request that failed as a whole.
    pub(crate) is_retry: bool,
}

/// The representations of one look-up.
#[derive(Debug, Default)]
pub(crate) struct GatheredLookup {
    /// Where its representations stand in [`Gathered::text`]...
    pub(crate) text: Range<usize>,
    /// ... and each of them.
    pub(crate) ranges: Few<(usize, usize), 4>,
    /// Number of them.
    pub(crate) n_representations: u32,
    /// Who waits for which answer, sorted by representation.
    pub(crate) instances: Few<Instance, 4>,
    /// By representation, the ticket by which others can reuse its answer; empty if nobody could.
    pub(crate) tickets: Vec<Option<u32>>,
    /// By representation, the group of values from above it goes with; empty if the look-up needs none.
    pub(crate) groups: Vec<u32>,
    /// The groups: variables as JSON members each behind a comma.
    pub(crate) contexts: Vec<Bytes>,
    /// Who gets an entity that an earlier fetch was answered.
    pub(crate) reused: Vec<(Source, RawRange, Instance)>,
    /// Who gets the values of an object of another place.
    pub(crate) held: Vec<(RecordId, Instance)>,
}

impl GatheredLookup {
    /// The records that wait for the answer to one representation.
    pub(crate) fn waiting_for(&self, representation: u32) -> &[Instance] {
        let all = &self.instances;
        let start = all.partition_point(|i| i.representation < representation);
        let len = all[start..].partition_point(|i| i.representation == representation);
        &all[start..start + len]
    }
}

/// A record that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Index of its representation.
    pub(crate) representation: u32,
    /// Index into [`Lookup::targets`].
    pub(crate) target: u16,
    pub(crate) record: RecordId,
}

impl Gathered {
    /// Whether look-up `lookup` has something to send.
    pub(crate) fn is_live(&self, lookup: u16) -> bool {
        self.lookups
            .get(usize::from(lookup))
            .is_some_and(|lookup| lookup.n_representations > 0)
    }
    /// Whether an earlier answer has something for this fetch.
    pub(crate) fn has_reused(&self) -> bool {
        let has = |l: &GatheredLookup| !l.reused.is_empty() || !l.held.is_empty();
        self.lookups.iter().any(has)
    }
    /// How many objects get something of an earlier answer.
    pub(crate) fn n_reused(&self) -> u64 {
        let n = |l: &GatheredLookup| (l.reused.len() + l.held.len()) as u64;
        self.lookups.iter().map(n).sum()
    }
    /// After they got it.
    pub(crate) fn forget_reused(&mut self) {
        for lookup in &mut self.lookups {
            lookup.reused = Vec::new();
            lookup.held = Vec::new();
        }
    }
    /// Number of representations to send.
    pub(crate) fn n_representations(&self) -> u64 {
        let counts = self.lookups.iter().map(|l| u64::from(l.n_representations));
        counts.sum()
    }
}

/// What is gathered from, and with.
pub(crate) struct Gather<'a, 'p> {
    pub(crate) store: &'a Store<'p>,
    pub(crate) conditions: &'a Conditions,
    /// The fetch of the plan.
    pub(crate) id: FetchId,
    pub(crate) fetch: &'p Fetch,
    /// What the request is known by: the fetch, or a part of it.
    pub(crate) sent_as: FetchId,
    /// The part of the fetch that is sent early, and whether this is it or the rest.
    pub(crate) part: Option<(&'p EarlyPart, bool)>,
    /// What may be reused.
    pub(crate) reuse: Reuse,
    /// What was sent before, unless nothing may be reused.
    pub(crate) entities: Option<&'a mut Entities>,
    /// Bytes of representations that may still be written for the look-up to find out what is known...
    pub(crate) unsent_left: u64,
    /// ... and of those that objects of other places offer.
    pub(crate) offers_left: u64,
}

impl Gather<'_, '_> {
    /// Counts bytes of a representation that is not sent as it was written. Values that many objects share are written for
    /// each of them.
    pub(crate) fn count_unsent(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let left = self.unsent_left.checked_sub(bytes as u64);
        self.unsent_left = left.ok_or(LimitReached("rescanned_bytes_max"))?;
        Ok(())
    }
}

/// Gathers the representations of all look-ups of a fetch. None if all of them are under way already in other fetches:
/// then it is better to wait.
pub(crate) fn gather(mut from: Gather<'_, '_>) -> Result<Option<Gathered>, LimitReached> {
    let root = from.fetch.root.as_ref();
    let root = root.is_some_and(|root| from.conditions.hold(root.cond));
    let mut fresh = root;
    let n_lookups = from.fetch.lookups.len();
    let mut lookups = Vec::with_capacity(n_lookups);
    lookups.resize_with(n_lookups, GatheredLookup::default);
    let mut text = Vec::new();
    let mut scratch = Scratch::default();
    let mut groups_left = Source::CONTEXTS_MAX;
    for (at, gathered) in lookups.iter_mut().enumerate() {
        gathered.text = text.len()..text.len();
        from.unsent_left = from.store.limits().rescanned_bytes_max;
        from.offers_left = from.unsent_left;
        let out = (&mut *gathered, &mut text);
        gather_lookup(
            &mut from,
            at,
            &mut fresh,
            &mut scratch,
            &mut groups_left,
            out,
        )?;
        gathered.text.end = text.len();
    }
    drop(scratch);
    let gathered = Gathered {
        root,
        lookups,
        text,
        context: Bytes::new(),
        is_retry: false,
    };
    if !fresh && gathered.n_representations() > 0 {
        return Ok(None);
    }
    if let Some(entities) = from.entities {
        let asked_twice = &from.store.plan().derived().asked_twice;
        let mut gathered = gathered;
        let text = &gathered.text;
        for (at, lookup) in gathered.lookups.iter_mut().enumerate() {
            let targets = &from.fetch.lookups[at].targets;
            lookup.announce(
                text,
                entities,
                (from.sent_as, from.fetch.subgraph),
                targets,
                |target| from.part.is_some() || asked_twice[from.id.index()][at][target],
            );
        }
        return Ok(Some(gathered));
    }
    Ok(Some(gathered))
}

impl GatheredLookup {
    /// Tells the others what is about to be sent.
    fn announce(
        &mut self,
        text: &[u8],
        entities: &mut Entities,
        (id, subgraph): (FetchId, u32),
        targets: &[Target],
        asked_twice: impl Fn(usize) -> bool,
    ) {
        if !(0..targets.len()).any(&asked_twice) {
            return;
        }
        self.tickets.resize(self.ranges.len(), None);
        for instance in self.instances.iter() {
            let target = usize::from(instance.target);
            let at = instance.representation as usize;
            if self.tickets[at].is_none() && asked_twice(target) {
                let (start, end) = self.ranges[at];
                let key = Key {
                    subgraph,
                    selection: targets[target].selection,
                    representation: &text[start..end],
                };
                self.tickets[at] = entities.send(key, id);
            }
        }
    }
}

fn gather_lookup<'a>(
    from: &mut Gather<'a, '_>,
    lookup_index: usize,
    fresh: &mut bool,
    scratch: &mut Scratch<'a>,
    groups_left: &mut usize,
    (gathered, out): (&mut GatheredLookup, &mut Vec<u8>),
) -> Result<(), LimitReached> {
    let (store, conditions, fetch) = (from.store, from.conditions, from.fetch);
    let lookup = &fetch.lookups[lookup_index];
    let facts = &store.plan().derived().lookups[from.id][lookup_index];
    if let Some(programs) = &facts.programs {
        return gather_leaves(
            from,
            lookup_index,
            programs,
            fresh,
            scratch,
            (gathered, out),
        );
    }
    // The hash is seeded anew for every process and only finds candidates; bytes decide.
    let hasher = RandomState::default();
    let mut seen: HashTable<u32> = HashTable::new();
    let mut ranges: Few<(usize, usize), 4> = Few::Empty;
    let mut known_groups: HashTable<u32> = HashTable::new();
    for (target_index, target) in lookup.targets.iter().enumerate() {
        let Some(Asking { donors, looks_up }) = ask(from, lookup_index, target_index) else {
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
            from.count_unsent(out.len() - start)?;
            let mut group = None;
            if !target.contexts.is_empty() {
                let Some(context) = context(store, conditions, target, record) else {
                    out.truncate(end);
                    continue;
                };
                from.count_unsent(context.len())?;
                let groups = &mut gathered.contexts;
                let hash = hasher.hash_one(&*context);
                let known = known_groups.find(hash, |at| *groups[*at as usize] == *context);
                group = Some(match known {
                    Some(at) => *at,
                    None => {
                        // Each is a request; a context with so many values would be a key.
                        let left = groups_left.checked_sub(1);
                        *groups_left = left.ok_or(LimitReached("parts_max"))?;
                        let at = groups.len() as u32;
                        groups.push(Bytes::from(context));
                        let of = |at: &u32| hasher.hash_one(&*groups[*at as usize]);
                        known_groups.insert_unique(hash, at, of);
                        at
                    }
                });
            }
            let bytes = |range: (usize, usize)| &out[range.0..range.1];
            let new = (start, out.len());
            let known = from.entities.as_deref().filter(|_| looks_up);
            let known = known.map_or(Known::No, |known| {
                known.get(Key {
                    subgraph: fetch.subgraph,
                    selection: target.selection,
                    representation: bytes(new),
                })
            });
            let mut instance = Instance {
                representation: 0,
                target: target_index as u16,
                record,
            };
            match known {
                Known::No => *fresh = true,
                Known::UnderWay(_) => {}
                Known::Answered(answered, range) => {
                    out.truncate(end);
                    gathered.reused.push((answered, range, instance));
                    continue;
                }
                Known::Held(held) => {
                    if donors.iter().any(|d| d.layout == store.layout(held)) {
                        out.truncate(end);
                        gathered.held.push((held, instance));
                        continue;
                    }
                    *fresh = true;
                }
            }
            let hash = hasher.hash_one(bytes(new));
            let same = seen.find(hash, |at| {
                let at = *at as usize;
                bytes(ranges[at]) == bytes(new) && gathered.groups.get(at).copied() == group
            });
            let representation = match same {
                Some(at) => {
                    let at = *at;
                    out.truncate(end);
                    at
                }
                None => {
                    let at = ranges.len() as u32;
                    if out.len() - gathered.text.start > store.limits().request_bytes_max {
                        return Err(LimitReached("request_bytes_max"));
                    }
                    ranges.push(new);
                    gathered.groups.extend(group);
                    seen.insert_unique(hash, at, |at| {
                        hasher.hash_one(&out[ranges[*at as usize].0..ranges[*at as usize].1])
                    });
                    at
                }
            };
            instance.representation = representation;
            gathered.instances.push(instance);
        }
    }
    gathered.n_representations = ranges.len() as u32;
    gathered.ranges = ranges;
    gathered
        .instances
        .sort_by_key(|instance| instance.representation);
    Ok(())
}

/// Who may answer a target's representations but its subgraph.
pub(crate) struct Asking<'p> {
    pub(crate) donors: &'p [Donor],
    /// Whether what was sent before is to be looked at.
    pub(crate) looks_up: bool,
}

/// Makes ready to gather a target's representations; `None` if it is not asked now.
pub(crate) fn ask<'p>(
    from: &mut Gather<'_, 'p>,
    lookup: usize,
    target_index: usize,
) -> Option<Asking<'p>> {
    let (store, fetch) = (from.store, from.fetch);
    let target = &fetch.lookups[lookup].targets[target_index];
    let in_part = from
        .part
        .is_none_or(|(part, is_early)| part.targets[lookup][target_index] == is_early);
    if !from.conditions.hold(target.cond) || !in_part {
        return None;
    }
    let plan = store.plan();
    let donors = match from.reuse {
        Reuse::All => plan.reusable().donors.of(from.id, lookup, target_index),
        Reuse::Off | Reuse::Entities => &[],
    };
    let Some(entities) = from.entities.as_deref_mut() else {
        return Some(Asking {
            donors,
            looks_up: false,
        });
    };
    let question = (fetch.subgraph, target.selection);
    for donor in donors {
        offer(store, entities, donor, question, &mut from.offers_left);
    }
    Some(Asking {
        donors,
        looks_up: !donors.is_empty()
            || from.part.is_some()
            || plan.derived().asked_twice[from.id.index()][lookup][target_index],
    })
}

/// So many of the objects that were offered are remembered by themselves.
const OFFERED_MAX: usize = 16;

/// Lets the objects of a place answer look-ups of the same entities, as far as `left` bytes of representations are enough
/// to say which they are. What is not offered is asked.
fn offer(
    store: &Store<'_>,
    entities: &mut Entities,
    donor: &Donor,
    (subgraph, selection): (u32, u32),
    left: &mut u64,
) {
    if !donor.fetches.iter().all(|fetch| entities.is_clean(*fetch)) {
        return;
    }
    let mut representation = Vec::new();
    // Many records of a place are the same entity; the first that holds everything speaks for all.
    let is_plain = donor.representation.is_plain();
    let by_type = donor.representation.shows_type();
    let mut seen = Seen::default();
    seen.begin(store.of_layout(donor.layout).len());
    let mut offered: Vec<RecordId> = Vec::new();
    for &record in store.of_layout(donor.layout) {
        if let Some(twin) = store.twin(record).filter(|twin| *twin != record)
            && offered.contains(&twin)
            && shown_alike(store, &donor.representation, record, twin)
        {
            continue;
        }
        let key = match is_plain {
            true => seen.find(store, &donor.representation, record, (0, by_type)),
            false => None,
        };
        if matches!(key, Some(Found::Known(()))) {
            continue;
        }
        let holds = |slot| matches!(store.value(record, slot), Value::Raw(_));
        if store.known_type(record).is_none() || !donor.values.iter().all(|(slot, _)| holds(*slot))
        {
            continue;
        }
        representation.clear();
        let written =
            write_representation(store, &donor.representation, record, &mut representation);
        // Values that many objects share are written for each of them.
        let Some(rest) = left.checked_sub(representation.len() as u64) else {
            return;
        };
        *left = rest;
        if written {
            if let Some(Found::New(new)) = key {
                seen.insert(new, ());
                if offered.len() < OFFERED_MAX {
                    offered.push(record);
                }
            }
            let key = Key {
                subgraph,
                selection,
                representation: &representation,
            };
            entities.hold(key, record);
        }
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

/// Whether a target looks up records of such a type.
pub(crate) fn is_wanted(store: &Store<'_>, target: &Target, record: RecordId) -> bool {
    let ty = match store.type_state(record) {
        TypeState::Rejected => return false,
        TypeState::Known(ty) => Some(ty),
        TypeState::Unknown | TypeState::Failed => None,
    };
    match (&target.types, ty) {
        (Some(types), Some(ty)) => types.contains(ty.0),
        (Some(_), None) => target.untyped,
        (None, _) => true,
    }
}

/// Appends the representation of a record; false (and anything appended) if there is none.
pub(crate) fn represent(
    store: &Store<'_>,
    target: &Target,
    record: RecordId,
    out: &mut Vec<u8>,
) -> bool {
    if !is_wanted(store, target, record) {
        return false;
    }
    let start = out.len();
    target.representations.iter().any(|representation| {
        out.truncate(start);
        write_representation(store, representation, record, out)
    })
}

/// An object or list of a representation that is being written.
enum Open<'p> {
    Object {
        record: RecordId,
        members: &'p [Member],
        empty: bool,
    },
    List {
        list: ListRange,
        next: u32,
        member: &'p Member,
    },
}

pub(crate) fn write_representation(
    store: &Store<'_>,
    representation: &Representation,
    record: RecordId,
    out: &mut Vec<u8>,
) -> bool {
    let plan = store.plan();
    let ty = store.known_type(record);
    let Some(typename) = representation.typename.as_deref().or(type_name(plan, ty)) else {
        return false;
    };
    out.extend_from_slice(b"{\"__typename\":");
    write_name(out, typename);
    if representation.members.iter().all(|m| m.members.is_empty()) {
        return write_leaves(store, &representation.members, (record, ty), out);
    }
    let mut open = vec![Open::Object {
        record,
        members: &representation.members,
        empty: false,
    }];
    while let Some(innermost) = open.last_mut() {
        let (member, value) = match innermost {
            Open::Object {
                record,
                members,
                empty,
            } => {
                let Some((member, rest)) = members.split_first() else {
                    out.push(b'}');
                    open.pop();
                    continue;
                };
                *members = rest;
                let ty = store.known_type(*record);
                let applies = match &member.types {
                    Some(types) => ty.is_some_and(|ty| types.contains(ty.0)),
                    None => true,
                };
                if !applies {
                    continue;
                }
                let name = type_name(plan, ty);
                let value = match member.slot {
                    Some(slot) => store.value(*record, slot),
                    None if name.is_some() => Value::Null,
                    None => Value::Absent,
                };
                let missing = !value.is_some() && (member.slot.is_some() || name.is_none());
                if missing && member.key {
                    return false;
                }
                if value == Value::Absent || value == Value::Failed {
                    continue;
                }
                if !*empty {
                    out.push(b',');
                }
                *empty = false;
                out.extend_from_slice(&member.key_json);
                if member.slot.is_none() {
                    write_name(out, name.unwrap_or_default());
                    continue;
                }
                (member, value)
            }
            Open::List { list, next, member } => {
                if *next >= list.len {
                    out.push(b']');
                    open.pop();
                    continue;
                }
                if *next > 0 {
                    out.push(b',');
                }
                *next += 1;
                (*member, store.item(*list, *next - 1))
            }
        };
        match value {
            Value::Raw(range) => out.extend_from_slice(store.raw(range)),
            Value::Record(record) => {
                out.push(b'{');
                open.push(Open::Object {
                    record,
                    members: &member.members,
                    empty: true,
                });
            }
            Value::List(list) => {
                out.push(b'[');
                open.push(Open::List {
                    list,
                    next: 0,
                    member,
                });
            }
            Value::Absent | Value::Null | Value::Failed => out.extend_from_slice(b"null"),
        }
    }
    true
}

/// The members of a representation that has no objects in it, and the closing bracket.
fn write_leaves(
    store: &Store<'_>,
    members: &[Member],
    (record, ty): (RecordId, Option<RuntimeType>),
    out: &mut Vec<u8>,
) -> bool {
    for member in members {
        if let Some(types) = &member.types
            && !ty.is_some_and(|ty| types.contains(ty.0))
        {
            continue;
        }
        let Some(slot) = member.slot else {
            match type_name(store.plan(), ty) {
                Some(name) => {
                    out.push(b',');
                    out.extend_from_slice(&member.key_json);
                    write_name(out, name);
                }
                None if member.key => return false,
                None => {}
            }
            continue;
        };
        let raw = match store.value(record, slot) {
            Value::Raw(range) => store.raw(range),
            // What has no members cannot be shown as an object; such a plan is not correct.
            _ if member.key => return false,
            Value::Null => b"null",
            _ => continue,
        };
        out.push(b',');
        out.extend_from_slice(&member.key_json);
        out.extend_from_slice(raw);
    }
    out.push(b'}');
    true
}

/// Writes a name of the schema, which needs no escapes, as a JSON string.
fn write_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

fn type_name(plan: &Plan, ty: Option<RuntimeType>) -> Option<&str> {
    plan.types.get(ty?).map(|name| &**name)
}

/// What is set aside for the parts of a body that are neither text of the plan nor representations.
const BODY_FRAME_BYTES: usize = 128;

/// Builds the body of a request; `None` if there is nothing to ask.
pub(crate) fn body(
    (id, fetch): (FetchId, &Fetch),
    gathered: &Gathered,
    conditions: &Conditions,
    variables: &[Option<Box<str>>],
    plan: &Plan,
    limits: &ExecuteLimits,
) -> Result<Option<Bytes>, LimitReached> {
    if !gathered.root && gathered.n_representations() == 0 {
        return Ok(None);
    }
    let live = |lookup| gathered.is_live(lookup);
    let texts = fetch.segments.iter().map(|segment| segment.text.len());
    let facts = &plan.derived().lookups[id];
    let variables_of_lookups = facts.iter().map(|facts| facts.variable.len() + 3);
    let likely = texts.sum::<usize>() + gathered.text.len() + gathered.context.len();
    let likely = likely + variables_of_lookups.sum::<usize>();
    let mut out = Vec::with_capacity(likely + BODY_FRAME_BYTES);
    out.extend_from_slice(b"{\"query\":\"");
    for segment in &fetch.segments {
        if conditions.open(&segment.gates, live) {
            out.extend_from_slice(segment.text.as_bytes());
        }
    }
    out.push(b'"');
    let mut empty = true;
    let mut begin = |out: &mut Vec<u8>| {
        out.extend_from_slice(if empty { b",\"variables\":{" } else { b"," });
        empty = false;
    };
    for variable in &fetch.variables {
        let index = variable.variable as usize;
        let value = variables.get(index).and_then(Option::as_deref);
        if let (Some(value), Some(name)) = (value, plan.variables.get(index))
            && conditions.open(&variable.gates, live)
        {
            begin(&mut out);
            ogive_json::write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    let lookups = fetch.lookups.iter().zip(facts);
    for ((lookup, facts), asked) in lookups.zip(&gathered.lookups) {
        if asked.n_representations > 0 && !lookup.is_reentry() {
            begin(&mut out);
            out.extend_from_slice(&facts.variable);
            out.push(b'[');
            out.extend_from_slice(&gathered.text[asked.text.clone()]);
            out.push(b']');
        }
    }
    if !gathered.context.is_empty() {
        // Behind the representations there is always something to put a comma behind.
        out.extend_from_slice(&gathered.context);
    }
    out.extend_from_slice(if empty { b"}" } else { b"}}" });
    if out.len() > limits.request_bytes_max {
        return Err(LimitReached("request_bytes_max"));
    }
    Ok(Some(Bytes::from(out)))
}
