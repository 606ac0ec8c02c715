//! Writing the representation of an object: what a subgraph knows an entity by.

use ogive_plan::{Member, Plan, Representation, RuntimeType, Target};

use crate::store::{ListRange, RecordId, Store, TypeState, Value};

/// Whether a target looks up records of such a type.
pub(super) fn is_wanted(store: &Store<'_>, target: &Target, record: RecordId) -> bool {
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
pub(super) fn represent(
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

pub(super) fn write_representation(
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
        begin_value(store, (member, value), &mut open, out);
    }
    true
}

/// Appends a value, or opens it.
fn begin_value<'p>(
    store: &Store<'_>,
    (member, value): (&'p Member, Value),
    open: &mut Vec<Open<'p>>,
    out: &mut Vec<u8>,
) {
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
