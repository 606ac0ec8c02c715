//! What a subgraph is asked: the body of one request.
//!
//! First all representations of a fetch are gathered, because they decide which pieces of text are sent. Equal
//! representations of one look-up are sent once, in the order in which they first occur; an index table remembers
//! which records wait for which.

use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_plan::{Fetch, Lookup, Member, Plan, Representation, RuntimeType, Target};

use crate::{
    condition::Conditions,
    limits::ExecuteLimits,
    store::{LimitReached, ListRange, RecordId, Store, TypeState, Value},
};

/// The representations of one fetch, by look-up.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) lookups: Vec<GatheredLookup>,
}

/// The representations of one look-up.
#[derive(Debug, Default)]
pub(crate) struct GatheredLookup {
    /// JSON objects, separated by commas.
    representations: Vec<u8>,
    /// Number of them.
    pub(crate) n_representations: u32,
    /// Who waits for which answer, sorted by representation.
    pub(crate) instances: Vec<Instance>,
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
    /// Number of representations to send.
    pub(crate) fn n_representations(&self) -> u64 {
        let counts = self.lookups.iter().map(|l| u64::from(l.n_representations));
        counts.sum()
    }
}

/// Gathers the representations of all look-ups of `fetch`.
pub(crate) fn gather(
    store: &Store<'_>,
    conditions: &Conditions,
    fetch: &Fetch,
) -> Result<Gathered, LimitReached> {
    let lookups = fetch
        .lookups
        .iter()
        .map(|lookup| gather_lookup(store, conditions, lookup));
    Ok(Gathered {
        lookups: lookups.collect::<Result<_, _>>()?,
    })
}

fn gather_lookup(
    store: &Store<'_>,
    conditions: &Conditions,
    lookup: &Lookup,
) -> Result<GatheredLookup, LimitReached> {
    let mut gathered = GatheredLookup::default();
    // The hash is seeded anew for every process and only finds candidates; bytes decide.
    let hasher = RandomState::default();
    let mut seen: HashTable<u32> = HashTable::new();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (target_index, target) in lookup.targets.iter().enumerate() {
        if !conditions.hold(target.cond) {
            continue;
        }
        for &record in store.of_layout(target.layout) {
            let out = &mut gathered.representations;
            let end = out.len();
            if end > 0 {
                out.push(b',');
            }
            let start = out.len();
            if !represent(store, target, record, out) {
                out.truncate(end);
                continue;
            }
            let bytes = |range: (usize, usize)| &out[range.0..range.1];
            let new = (start, out.len());
            let hash = hasher.hash_one(bytes(new));
            let same = seen.find(hash, |at| bytes(ranges[*at as usize]) == bytes(new));
            let representation = match same {
                Some(at) => {
                    let at = *at;
                    out.truncate(end);
                    at
                }
                None => {
                    let at = ranges.len() as u32;
                    if out.len() > store.limits().request_bytes_max {
                        return Err(LimitReached("request_bytes_max"));
                    }
                    ranges.push(new);
                    seen.insert_unique(hash, at, |at| {
                        hasher.hash_one(&out[ranges[*at as usize].0..ranges[*at as usize].1])
                    });
                    at
                }
            };
            gathered.instances.push(Instance {
                representation,
                target: target_index as u16,
                record,
            });
        }
    }
    gathered.n_representations = ranges.len() as u32;
    gathered
        .instances
        .sort_by_key(|instance| instance.representation);
    Ok(gathered)
}

/// Appends the representation of a record; false (and anything appended) if there is none.
fn represent(store: &Store<'_>, target: &Target, record: RecordId, out: &mut Vec<u8>) -> bool {
    if store.type_state(record) == TypeState::Rejected {
        return false;
    }
    let ty = store.known_type(record);
    if let Some(types) = &target.types
        && !ty.is_some_and(|ty| types.contains(ty.0))
    {
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

fn write_representation(
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

/// Builds the body of a request; `None` if there is nothing to ask.
pub(crate) fn body(
    fetch: &Fetch,
    gathered: &Gathered,
    conditions: &Conditions,
    variables: &[Option<Box<str>>],
    plan: &Plan,
    limits: &ExecuteLimits,
) -> Result<Option<Bytes>, LimitReached> {
    let root = fetch
        .root
        .as_ref()
        .is_some_and(|root| conditions.hold(root.cond));
    if !root && gathered.n_representations() == 0 {
        return Ok(None);
    }
    let live = |lookup| gathered.is_live(lookup);
    let mut out = b"{\"query\":\"".to_vec();
    for segment in &fetch.segments {
        if conditions.open(&segment.gates, live) {
            out.extend_from_slice(segment.text.as_bytes());
        }
    }
    out.push(b'"');
    let mut empty = true;
    let mut begin = |out: &mut Vec<u8>, name: &str| {
        out.extend_from_slice(if empty { b",\"variables\":{" } else { b"," });
        empty = false;
        ogive_json::write_string(out, name);
        out.push(b':');
    };
    for variable in &fetch.variables {
        let index = variable.variable as usize;
        let value = variables.get(index).and_then(Option::as_deref);
        if let (Some(value), Some(name)) = (value, plan.variables.get(index))
            && conditions.open(&variable.gates, live)
        {
            begin(&mut out, name);
            out.extend_from_slice(value.as_bytes());
        }
    }
    for (lookup, gathered) in fetch.lookups.iter().zip(&gathered.lookups) {
        if gathered.n_representations > 0 {
            begin(&mut out, &lookup.variable);
            out.push(b'[');
            out.extend_from_slice(&gathered.representations);
            out.push(b']');
        }
    }
    out.extend_from_slice(if empty { b"}" } else { b"}}" });
    if out.len() > limits.request_bytes_max {
        return Err(LimitReached("request_bytes_max"));
    }
    Ok(Some(Bytes::from(out)))
}
