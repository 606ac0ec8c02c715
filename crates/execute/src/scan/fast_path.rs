//! The fast lane of reading: objects that become records, as long as they look exactly as expected.
//!
//! Most answers of an honest subgraph have no white space, and the members the request asked for, in its order. So the
//! next key is compared with the expected one in one step, a leaf is checked where it stands and its range put into
//! its slot, and the next object is opened, all in one loop that is compiled for the vector instructions there are
//! ([`ogive_json::lanes`]). Nothing is allocated per object but its record.
//!
//! At the first byte that is not as expected the lane stops and leaves reader and scanner as [`Reader`] has them
//! between two steps: before a key, an item or a value, with all open objects and lists on its stack. The reader takes
//! the one step that could not be taken here, and the lane goes on behind it. So what is read, and into what, is decided
//! by the same rules; `tests/it/passing.rs` compares both.

use ogive_json::{
    Cursor, Pattern, PatternScalar, PatternValue, Scanner,
    lanes::{Job, Lanes},
};
use ogive_plan::{ObjectShape, ReadStep, ShapeField, ShapeId, StringStep};

use super::{
    CompositeValue, FastPathEnd, Frame, Reader, applies,
    duplicates::{DuplicateMatch, Entry, NOWHERE},
    entities::{FastPathState, Lookups},
};
use crate::{
    stop::{LimitReached, Stop},
    store::{RawRange, RecordId, Slots, Source, Store, TypeState, Value},
};

/// Reads on from where a member or an item begins.
pub(crate) struct FastPath<'r, 's, 'p, 't, 'l> {
    reader: &'r mut Reader<'s, 'p>,
    scanner: &'r mut Scanner<'t>,
    lookups: Option<&'r mut Lookups<'l>>,
}

impl<'r, 's, 'p, 't, 'l> FastPath<'r, 's, 'p, 't, 'l> {
    /// Up to the end of the outermost object that is open.
    pub(crate) fn new(reader: &'r mut Reader<'s, 'p>, scanner: &'r mut Scanner<'t>) -> Self {
        FastPath {
            reader,
            scanner,
            lookups: None,
        }
    }
    /// From the key of a look-up on, as far as all entities are as expected.
    pub(crate) fn of_lookups(
        reader: &'r mut Reader<'s, 'p>,
        scanner: &'r mut Scanner<'t>,
        lookups: &'r mut Lookups<'l>,
    ) -> Self {
        FastPath {
            reader,
            scanner,
            lookups: Some(lookups),
        }
    }
}

/// How far reading the members of an object went. It holds nothing, since it is looked at after every member that has
/// objects in it.
#[derive(Clone, Copy)]
enum Reached {
    /// What is not read here.
    Other,
    /// The first member of another object.
    Opened,
    /// The value of a member that has objects in it.
    Composite,
    /// The end of the object.
    End,
}

/// What became of the beginning of a value.
enum Begun {
    /// It is complete.
    Value(Value),
    /// Its first member or item comes next.
    Opened,
    /// It is not as expected; nothing was read.
    Slow,
}

impl Job for FastPath<'_, '_, '_, '_, '_> {
    type Output = Result<FastPathEnd, Stop>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Result<FastPathEnd, Stop> {
        let FastPath {
            reader,
            scanner,
            mut lookups,
        } = self;
        let (mut depth, depth_max) = scanner.depth();
        let mut cursor = Cursor {
            text: scanner.text(),
            at: scanner.position(),
            lanes,
        };
        let mut coming = CompositeValue {
            owner: Store::ROOT,
            slot: 0,
            child: ShapeId(0),
            lists: 0,
            verbatim: None,
            existing: Value::Absent,
        };
        loop {
            let mut here = FastPathState {
                cursor: &mut cursor,
                depth: &mut depth,
                depth_max,
            };
            // A member or item begins here.
            let (reached, record) = match reader.frames.last() {
                None => {
                    if let Some(lookups) = &mut lookups
                        && lookups.enter_next(reader, &mut here)
                    {
                        continue;
                    }
                    scanner.resume(cursor.at, depth);
                    return Ok(FastPathEnd::Nothing);
                }
                Some(Frame::List {
                    owner,
                    slot,
                    child,
                    lists,
                    verbatim,
                    index,
                    existing,
                    ..
                }) => {
                    coming = CompositeValue {
                        owner: *owner,
                        slot: *slot,
                        child: *child,
                        lists: *lists,
                        verbatim: *verbatim,
                        existing: match existing {
                            Some(list) => reader.store.item(*list, *index),
                            None => Value::Absent,
                        },
                    };
                    (Reached::Composite, *owner)
                }
                Some(Frame::Object {
                    id,
                    shape,
                    record,
                    slots,
                    field,
                    expected,
                    ..
                }) => {
                    let (record, at) = (*record, (*field as usize, *expected as usize));
                    let object = Object {
                        id: *id,
                        shape,
                        record,
                        slots: *slots,
                    };
                    let reached = members(reader, scanner, &mut here, &object, at, &mut coming)?;
                    (reached, record)
                }
            };
            let value = match reached {
                Reached::Opened => continue,
                Reached::Other => {
                    scanner.resume(cursor.at, depth);
                    return Ok(FastPathEnd::Step);
                }
                Reached::End => Value::Record(record),
                Reached::Composite => match begin(reader, scanner, &mut here, &coming)? {
                    Begun::Value(value) => value,
                    Begun::Opened => continue,
                    Begun::Slow => {
                        scanner.resume(cursor.at, depth);
                        return Ok(FastPathEnd::Value(coming));
                    }
                },
            };
            deliver(reader, scanner, &mut here, value)?;
        }
    }
}

/// An object whose members are read.
struct Object<'p> {
    id: ShapeId,
    shape: &'p ObjectShape,
    record: RecordId,
    slots: Slots,
}

/// Reads members from a key on, up to one that has objects in it or the end of the object. `field` was read last, and
/// `expected` comes next.
#[inline(always)]
fn members<'p, L: Lanes>(
    reader: &mut Reader<'_, 'p>,
    scanner: &mut Scanner<'_>,
    here: &mut FastPathState<'_, '_, L>,
    object: &Object<'p>,
    (mut field, mut expected): (usize, usize),
    coming: &mut CompositeValue,
) -> Result<Reached, Stop> {
    let derived = reader.derived;
    let (id, record) = (object.id, object.record);
    let steps = &*derived.reads[id].fields;
    let taped = reader.taping && reader.frames.len() == 1;
    loop {
        // A key begins here.
        let mut found = expected;
        let step = loop {
            match steps.get(found) {
                Some(step)
                    if step.by_type && !is_of_type(reader, &object.shape.fields, found, record) =>
                {
                    found += 1;
                }
                step => break step,
            }
        };
        let Some(step) = step.filter(|step| here.cursor.key(&derived.keys[step.key as usize]))
        else {
            remember(reader, field, expected);
            return Ok(Reached::Other);
        };
        field = found;
        expected = reader.next_expected(id, found);
        if let Some(child) = step.child {
            remember(reader, field, expected);
            let existing = reader.store.get(object.slots, step.slot);
            if open_member(reader, here, step, (record, existing))? {
                return Ok(Reached::Opened);
            }
            *coming = CompositeValue {
                owner: record,
                slot: step.slot,
                child,
                lists: step.lists,
                verbatim: step.verbatim,
                existing,
            };
            return Ok(Reached::Composite);
        }
        put_leaf(reader, scanner, here, step, (object.slots, taped, field))?;
        match here.cursor.text.get(here.cursor.at) {
            Some(b',') => here.cursor.at += 1,
            Some(b'}') => {
                here.cursor.at += 1;
                *here.depth -= 1;
                close_object(reader, here.cursor.at);
                return Ok(Reached::End);
            }
            _ => {
                scanner.resume(here.cursor.at, *here.depth);
                let more = scanner.next_member()?;
                (here.cursor.at, *here.depth) = (scanner.position(), scanner.depth().0);
                if !more {
                    close_object(reader, here.cursor.at);
                    return Ok(Reached::End);
                }
            }
        }
    }
}

/// Reads a leaf and puts it where it belongs.
#[inline(always)]
fn put_leaf<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    scanner: &mut Scanner<'_>,
    here: &mut FastPathState<'_, '_, L>,
    step: &ReadStep,
    (slots, taped, field): (Slots, bool, usize),
) -> Result<(), Stop> {
    let start = here.cursor.at;
    let is_short = step.string != StringStep::LookAt && short_string(here.cursor);
    let end = here.cursor.at;
    let short = |source| {
        let is_verbatim = step.string == StringStep::Verbatim;
        RawRange::new(source, start..end, is_verbatim)
    };
    if is_short && !taped {
        // Most are, and what is known of a value makes it cheaper to put.
        let range = short(reader.source);
        reader.store.put_raw(slots, step.slot, range);
        return Ok(());
    }
    let read = if is_short {
        Some(Leaf::Range(short(reader.source)))
    } else {
        leaf(here.cursor, &reader.derived.pattern, step, reader.source)
    };
    let value = match read {
        Some(Leaf::Range(range)) => Value::Raw(range),
        Some(Leaf::Null) => Value::Null,
        None => {
            scanner.resume(start, *here.depth);
            let value = reader.leaf(scanner, step.verbatim)?;
            here.cursor.at = scanner.position();
            value
        }
    };
    if taped {
        reader.tape.push((field, value));
    }
    reader.store.put(slots, step.slot, value);
    Ok(())
}

/// Puts a value into the object or list it is part of, which it may complete.
#[inline(always)]
fn deliver<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    scanner: &mut Scanner<'_>,
    here: &mut FastPathState<'_, '_, L>,
    mut value: Value,
) -> Result<(), Stop> {
    loop {
        let close = match reader.frames.last_mut() {
            None => return Ok(()),
            Some(Frame::Object {
                shape,
                record,
                slots,
                field,
                ..
            }) => {
                let (record, slots, field) = (*record, *slots, *field as usize);
                let slot = shape.fields[field].slot;
                if reader.taping && reader.frames.len() == 1 {
                    reader.tape.push((field, value));
                }
                reader.store.put(slots, slot, value);
                value = Value::Record(record);
                b'}'
            }
            Some(Frame::List { index, .. }) => {
                *index += 1;
                if reader.scratch.len() >= reader.store.limits().values_max as usize {
                    return Err(Stop::Limit(LimitReached("values_max")));
                }
                reader.scratch.push(value);
                b']'
            }
        };
        let more = match here.cursor.text.get(here.cursor.at) {
            Some(b',') => {
                here.cursor.at += 1;
                true
            }
            Some(byte) if *byte == close => {
                here.cursor.at += 1;
                *here.depth -= 1;
                false
            }
            _ => {
                scanner.resume(here.cursor.at, *here.depth);
                let more = match close {
                    b'}' => scanner.next_member()?,
                    _ => scanner.next_item()?,
                };
                (here.cursor.at, *here.depth) = (scanner.position(), scanner.depth().0);
                more
            }
        };
        if more {
            return Ok(());
        }
        if close == b'}' {
            close_object(reader, here.cursor.at);
        } else {
            value = reader.close_list()?;
        }
    }
}

/// Whether a field that only some types have is one of a record's.
#[inline(never)]
fn is_of_type(
    reader: &Reader<'_, '_>,
    fields: &[ShapeField],
    field: usize,
    record: RecordId,
) -> bool {
    let ty = reader.store.known_type(record);
    fields.get(field).is_some_and(|field| applies(field, ty))
}

/// Closes the innermost object, which ends before `end`.
#[inline(always)]
fn close_object(reader: &mut Reader<'_, '_>, end: usize) {
    if let Some(Frame::Object {
        duplicate, record, ..
    }) = reader.frames.pop()
        && duplicate != NOWHERE
    {
        let now = (reader.store.extent(), reader.untouched());
        reader.duplicates.complete(duplicate, record.0, end, now);
    }
}

/// Notes where the innermost object is.
#[inline(always)]
fn remember(reader: &mut Reader<'_, '_>, at: usize, next: usize) {
    if let Some(Frame::Object {
        field, expected, ..
    }) = reader.frames.last_mut()
    {
        (*field, *expected) = (at as u32, next as u32);
    }
}

/// Reads a string that ends within a block and is ASCII without escapes, as most are; otherwise reads nothing.
#[inline(always)]
fn short_string<L: Lanes>(cursor: &mut Cursor<'_, L>) -> bool {
    let (text, inside) = (cursor.text, cursor.at + 1);
    if text.get(cursor.at) != Some(&b'"') {
        return false;
    }
    let Some(masks) = cursor.lanes.string_masks(text, inside) else {
        return false;
    };
    // Up to the first byte that could end it.
    let before = masks.stop ^ masks.stop.wrapping_sub(1);
    if masks.stop == 0 || masks.high & before != 0 {
        return false;
    }
    let end = inside + masks.stop.trailing_zeros() as usize;
    let is_whole = text.get(end) == Some(&b'"');
    if is_whole {
        cursor.at = end + 1;
    }
    is_whole
}

/// A leaf that is as expected.
enum Leaf {
    Null,
    Range(RawRange),
}

/// The leaf that begins here, if it is as expected; otherwise anything may have been read.
#[inline(always)]
fn leaf<L: Lanes>(
    cursor: &mut Cursor<'_, L>,
    pattern: &Pattern,
    step: &ReadStep,
    source: Source,
) -> Option<Leaf> {
    let start = cursor.at;
    let byte = *cursor.text.get(start)?;
    let Some(verbatim) = step.verbatim else {
        // Only the gateway wants it, or it has to be looked at once more.
        match byte {
            b'"' => {
                cursor.at += 1;
                cursor.string_rest().ok()?;
            }
            b'-' | b'0'..=b'9' => {
                cursor.number().ok()?;
            }
            _ => return None,
        }
        return Some(Leaf::Range(RawRange::unchecked(source, start..cursor.at)));
    };
    let (scalar, non_null) = PatternValue::as_scalar(verbatim)?;
    if byte == b'n' && !non_null {
        cursor.literal(b"null").ok()?;
        return Some(Leaf::Null);
    }
    if scalar == PatternScalar::Any {
        return None;
    }
    pattern.scalar(cursor, scalar, byte, 0)?;
    Some(Leaf::Range(RawRange::verbatim(source, start..cursor.at)))
}

/// Opens the object of a member if nothing of it needs a second look, as with most: it is not in a list, its type is
/// known without being told, it cannot have a duplicate, and either there is a record for it or it cannot stay as it is.
/// Otherwise reads nothing.
#[inline(always)]
fn open_member<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    here: &mut FastPathState<'_, '_, L>,
    step: &ReadStep,
    (owner, existing): (RecordId, Value),
) -> Result<bool, Stop> {
    let Some(child) = step.child else {
        return Ok(false);
    };
    let steps = &reader.derived.reads[child];
    let Some(ty) = steps.known_type else {
        return Ok(false);
    };
    let at = here.cursor.at;
    let begins = here.cursor.text.get(at..at + 2) == Some(b"{\"");
    if !begins || step.lists > 0 || *here.depth >= here.depth_max {
        return Ok(false);
    }
    let (record, slots) = match existing {
        Value::Record(record) if reader.store.known_type(record) == Some(ty) => {
            reader.duplicates.stop();
            (record, reader.store.slots(record))
        }
        Value::Absent | Value::Null | Value::Failed
            if step.verbatim.is_none() && reader.is_single && !steps.in_list =>
        {
            let layout = (steps.layout, steps.n_slots);
            reader.store.create_in(layout, (owner, step.slot), ty)?
        }
        _ => return Ok(false),
    };
    here.cursor.at = at + 1;
    *here.depth += 1;
    reader.open_at(child, record, slots);
    Ok(true)
}

/// Begins a composite value.
#[inline(always)]
fn begin<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    scanner: &mut Scanner<'_>,
    here: &mut FastPathState<'_, '_, L>,
    coming: &CompositeValue,
) -> Result<Begun, Stop> {
    match coming.existing {
        Value::Raw(_) | Value::List(_) => return Ok(Begun::Slow),
        Value::Record(record) => return Ok(begin_again(reader, here, coming, record)),
        Value::Absent | Value::Null | Value::Failed => {}
    }
    if coming.verbatim.is_some() {
        scanner.resume(here.cursor.at, *here.depth);
        if let Some(value) = reader.pass(scanner, coming) {
            here.cursor.at = scanner.position();
            return Ok(Begun::Value(value));
        }
    }
    let (text, at) = (here.cursor.text, here.cursor.at);
    let inside = text.get(at + 1).copied().unwrap_or_default();
    Ok(match text.get(at) {
        // Not `literal`, which reads on as far as it agrees.
        Some(b'n') if text[at..].starts_with(b"null") => {
            here.cursor.at += b"null".len();
            Begun::Value(Value::Null)
        }
        Some(b'[') if coming.lists > 0 && *here.depth < here.depth_max => match inside {
            b'{' | b'[' | b'n' => {
                here.cursor.at += 1;
                *here.depth += 1;
                reader.open_list(coming, None);
                Begun::Opened
            }
            b']' => {
                here.cursor.at += 2;
                reader.open_list(coming, None);
                Begun::Value(reader.close_list()?)
            }
            _ => Begun::Slow,
        },
        Some(b'{') if coming.lists == 0 && *here.depth < here.depth_max && inside == b'"' => {
            return begin_object(reader, here, coming);
        }
        _ => Begun::Slow,
    })
}

/// Begins an object that there is no record for yet.
#[inline(always)]
fn begin_object<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    here: &mut FastPathState<'_, '_, L>,
    coming: &CompositeValue,
) -> Result<Begun, Stop> {
    let (text, at) = (here.cursor.text, here.cursor.at);
    let start = here.cursor.at;
    let steps = &reader.derived.reads[coming.child];
    // What can be there once only has no duplicate.
    let look = if reader.is_single && !steps.in_list {
        DuplicateMatch::Off
    } else {
        let place = (coming.child, *here.depth);
        reader
            .duplicates
            .look(text, at, place, steps.typename.is_some())
    };
    let duplicate = match look {
        DuplicateMatch::Same(entry) => {
            if let Some(record) = reader.copy(coming, &entry) {
                here.cursor.at += entry.len as usize;
                return Ok(Begun::Value(Value::Record(record)));
            }
            NOWHERE
        }
        DuplicateMatch::New(duplicate) => duplicate,
        DuplicateMatch::Off => NOWHERE,
    };
    here.cursor.at += 1;
    let state = match steps.known_type {
        Some(ty) => Some(TypeState::Known(ty)),
        None => steps
            .typename
            .and_then(|key| typename(reader, here.cursor, coming, key)),
    };
    let Some(state @ TypeState::Known(_)) = state else {
        here.cursor.at = start;
        return Ok(Begun::Slow);
    };
    let from = reader.store.extent();
    let record = reader.create(coming, state)?;
    reader.open(coming.child, record);
    if duplicate != NOWHERE
        && let Some(Frame::Object {
            duplicate: slot, ..
        }) = reader.frames.last_mut()
    {
        *slot = duplicate;
        let entry = Entry {
            shape: coming.child,
            depth: *here.depth,
            start: start as u32,
            len: 0,
            from,
            to: from,
            untouched: reader.untouched(),
        };
        reader.duplicates.begin(duplicate, entry);
    }
    *here.depth += 1;
    Ok(Begun::Opened)
}

/// Begins an object that there is a record for already, because another provider has brought a part of it. Its type needs
/// no looking at only if there is no other and nobody has said otherwise.
#[inline(always)]
fn begin_again<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    here: &mut FastPathState<'_, '_, L>,
    coming: &CompositeValue,
    record: RecordId,
) -> Begun {
    reader.duplicates.stop();
    let known = reader.derived.reads[coming.child].known_type;
    let begins = here.cursor.text.get(here.cursor.at..here.cursor.at + 2) == Some(b"{\"");
    if !begins
        || coming.lists > 0
        || *here.depth >= here.depth_max
        || known.is_none()
        || reader.store.known_type(record) != known
    {
        return Begun::Slow;
    }
    here.cursor.at += 1;
    *here.depth += 1;
    reader.open(coming.child, record);
    Begun::Opened
}

/// The type of an object, if its name comes first and another member follows.
#[inline(always)]
fn typename<L: Lanes>(
    reader: &mut Reader<'_, '_>,
    cursor: &mut Cursor<'_, L>,
    coming: &CompositeValue,
    key: u32,
) -> Option<TypeState> {
    if !cursor.key(&reader.derived.keys[key as usize]) || cursor.text.get(cursor.at) != Some(&b'"')
    {
        return None;
    }
    cursor.at += 1;
    let start = cursor.at;
    if cursor.string_rest().ok()? || cursor.text.get(cursor.at) != Some(&b',') {
        return None;
    }
    let name = cursor.text.get(start..cursor.at - 1)?;
    cursor.at += 1;
    let shape = &reader.store.plan().shapes[coming.child];
    Some(reader.type_named(shape, name))
}
