//! Reading subgraph objects into the store, led by their shapes.
//!
//! A shape lists the response keys in the order in which the subgraph must answer them, so the next key is compared
//! with the expected one first and searched for only if it differs; what follows what is learned, for this answer and
//! later ones to the same plan ([`ogive_plan::order`]). Unknown keys are skipped. A value that only the client wants, and
//! that looks as the client must see it ([`ogive_plan::derived`]), is read in one step and kept as a byte range, however
//! big it is. Everything else is walked with an explicit stack: objects become records; leaves that are not quite as they
//! should be are kept as byte ranges and dealt with on their way out.
//!
//! What a subgraph gets wrong costs the value concerned and one error, never more: an object of another type than
//! possible, a list where an object belongs, lists of two providers that do not match.
//!
//! Invariants: all text is validated here, once; a record exists only for objects whose type is possible; on duplicate
//! keys the first non-null value wins (of objects that pass as they stand: the first).

pub(crate) mod duplicates;
pub(crate) mod entities;
mod failed;
mod fast_path;
pub(crate) mod lookups;
pub(crate) mod partial;

pub(crate) use self::failed::fail_fields;

use std::borrow::Cow;

use ogive_base::{FastSet, id::Id};
use ogive_failure::{ErrorCode, codes};
use ogive_json::{Conditions, Kind, Open, PatternValue, ScanError, Scanner, lanes};
use ogive_plan::{
    Derived, MemberOrder, ObjectShape, RuntimeType, ShapeField, ShapeId, SlotIndex, Wrapping,
};

use self::{
    duplicates::{Duplicates, Entry, NOWHERE},
    fast_path::FastPath,
    partial::{Expected, Hints, Passing},
};
use crate::{
    errors::{Errors, ObjectError, Stage},
    graphql_error::{GraphqlError, Path, PathStep},
    stop::{KeyComparisons, LimitReached, Stop},
    store::{ListRange, Place, RawRange, RecordId, Slots, Source, Store, TypeState, Value},
};

/// What the lane leaves to the reader.
pub(crate) enum FastPathEnd {
    /// Nothing: everything is read.
    Nothing,
    /// The end of the innermost object or list, which has been read over.
    Close,
    /// A member or item that begins here.
    Step,
    /// A composite value that begins here.
    Value(CompositeValue),
}

/// Reads objects of one fetch's answer.
pub(crate) struct Reader<'s, 'p> {
    pub(crate) store: &'s mut Store<'p>,
    pub(crate) errors: &'s mut Errors<'p>,
    /// The answer that is read for a fetch...
    pub(crate) target: Source,
    /// ... which is another one if it is reused.
    pub(crate) source: Source,
    pub(crate) service: Option<&'p str>,
    pub(crate) conditions: &'s Conditions,
    pub(crate) derived: &'p Derived,
    /// What was put into the outermost object, by field, if asked to remember it.
    pub(crate) tape: Vec<(usize, Value)>,
    /// Whether to.
    pub(crate) taping: bool,
    /// By shape, how often in a row its objects did not look as they should; empty until it happens.
    surprises: Vec<u8>,
    /// Which field follows which, if any is known to be followed by another than the next one.
    order: Option<MemberOrder<'p>>,
    /// Items of open lists.
    pub(crate) scratch: Vec<Value>,
    pub(crate) frames: Vec<Frame<'p>>,
    /// Room for values that are compared with what is expected.
    open: Open<'p>,
    /// The type found last, tried first.
    last_type: Option<RuntimeType>,
    /// Lists that were found to differ from another provider's, by start and shape of their objects. InlineList
    /// answers have any, and a set with a seed of its own costs something.
    failed_lists: Option<FastSet<(u32, ShapeId)>>,
    /// Objects that were read before.
    pub(crate) duplicates: Duplicates,
    /// Whether no more than one root or entity is read in the text.
    pub(crate) is_single: bool,
    /// Steps that were not taken in the fast lane.
    pub(crate) steps: u32,
    /// What is known of the text, or is to be found out.
    pub(crate) known: Hints<'s, 'p>,
    /// What was looked for in vain.
    pub(crate) in_vain: KeyComparisons,
}

/// An open object or list.
pub(crate) enum Frame<'p> {
    Object {
        id: ShapeId,
        shape: &'p ObjectShape,
        record: RecordId,
        /// Where its values are.
        slots: Slots,
        /// The field whose value is being read, or was last; past the end before the first.
        field: u32,
        /// The field to expect next.
        expected: u32,
        /// Where it is remembered.
        duplicate: u8,
    },
    List {
        owner: RecordId,
        slot: SlotIndex,
        child: ShapeId,
        /// Lists below this one.
        lists: u8,
        /// How items look that can stay as they are.
        verbatim: Option<PatternValue>,
        index: u32,
        /// Where its items start in `scratch`.
        base: usize,
        /// The list another provider put here.
        existing: Option<ListRange>,
    },
}

/// A composite value about to be read.
#[derive(Clone, Copy)]
pub(crate) struct CompositeValue {
    pub(crate) owner: RecordId,
    pub(crate) slot: SlotIndex,
    pub(crate) child: ShapeId,
    /// Lists around the objects.
    pub(crate) lists: u8,
    /// How it looks if it can stay as it is.
    pub(crate) verbatim: Option<PatternValue>,
    /// What its place holds already.
    pub(crate) existing: Value,
}

impl<'s, 'p> Reader<'s, 'p> {
    pub(crate) fn new(
        store: &'s mut Store<'p>,
        errors: &'s mut Errors<'p>,
        source: Source,
        service: Option<&'p str>,
        conditions: &'s Conditions,
    ) -> Self {
        let derived = store.plan().derived();
        let in_vain = KeyComparisons::new(store.limits());
        Reader {
            derived,
            store,
            errors,
            target: source,
            source,
            service,
            conditions,
            tape: Vec::new(),
            taping: false,
            surprises: Vec::new(),
            order: derived.order.get(),
            scratch: Vec::new(),
            frames: Vec::new(),
            open: Open::default(),
            last_type: None,
            failed_lists: None,
            duplicates: Duplicates::default(),
            is_single: false,
            steps: 0,
            known: Hints::Nothing,
            in_vain,
        }
    }

    /// Reads the object the scanner stands before into an existing record. False if it was refused (with an error).
    pub(crate) fn read_into(
        &mut self,
        scanner: &mut Scanner<'_>,
        shape: ShapeId,
        record: RecordId,
    ) -> Result<bool, Stop> {
        self.frames.clear();
        self.scratch.clear();
        if self.enter_as_expected(scanner, shape, record) {
            self.walk(scanner, true)?;
            return Ok(true);
        }
        if scanner.peek()? != Kind::Object {
            self.errors.keep(ObjectError {
                code: codes::SUBREQUEST_INVALID_VALUE,
                message: NOT_AN_OBJECT,
                shape,
                record,
            });
            return Ok(false);
        }
        if !self.agree_on_type(scanner, shape, record)? {
            return Ok(false);
        }
        let more = self.enter(scanner, shape, record)?;
        self.walk(scanner, more)?;
        Ok(true)
    }

    /// Enters an object that needs no second look: one of a type that is known without being told, with a member right
    /// behind its bracket. Otherwise does nothing.
    fn enter_as_expected(
        &mut self,
        scanner: &mut Scanner<'_>,
        shape: ShapeId,
        record: RecordId,
    ) -> bool {
        let known = self.derived.reads[shape].known_type;
        let (at, (depth, depth_max)) = (scanner.position(), scanner.depth());
        let is_expected = known.is_some()
            && self.store.known_type(record) == known
            && depth < depth_max
            && scanner.text().get(at..at + 2) == Some(b"{\"");
        if is_expected {
            self.open(shape, record);
            scanner.resume(at + 1, depth + 1);
        }
        is_expected
    }

    /// Forgets what it knows of objects and lists: some of them are taken back.
    pub(crate) fn forget(&mut self) {
        self.duplicates.forget();
        if let Some(lists) = &mut self.failed_lists {
            lists.clear();
        }
    }

    /// Reads what the open objects and lists still hold: quickly as long as everything is as expected, step by step
    /// where it is not.
    fn walk(&mut self, scanner: &mut Scanner<'_>, mut more: bool) -> Result<(), Stop> {
        while !self.frames.is_empty() {
            let left = if more {
                lanes::run(FastPath::new(self, scanner))?
            } else {
                FastPathEnd::Close
            };
            if matches!(left, FastPathEnd::Nothing) {
                break;
            }
            more = self.step_over(scanner, left)?;
        }
        Ok(())
    }
    /// Reads what the lane has left over, and what the open objects and lists still hold.
    pub(crate) fn walk_on(
        &mut self,
        scanner: &mut Scanner<'_>,
        left: FastPathEnd,
    ) -> Result<(), Stop> {
        let more = self.step_over(scanner, left)?;
        self.walk(scanner, more)
    }
    /// Takes the step that could not be taken in the lane; says whether something follows.
    fn step_over(&mut self, scanner: &mut Scanner<'_>, left: FastPathEnd) -> Result<bool, Stop> {
        self.steps += 1;
        match left {
            FastPathEnd::Nothing => Ok(true),
            FastPathEnd::Close => self.step(scanner, false),
            FastPathEnd::Step => self.step(scanner, true),
            FastPathEnd::Value(coming) => self.begin(scanner, coming),
        }
    }

    /// Reads a member or item, or its beginning, or closes what has no more of them; says whether something follows.
    fn step(&mut self, scanner: &mut Scanner<'_>, more: bool) -> Result<bool, Stop> {
        let plan = self.store.plan();
        let Some(frame) = self.frames.last_mut() else {
            return Ok(false);
        };
        match frame {
            Frame::Object { record, .. } if !more => {
                let value = Value::Record(*record);
                self.frames.pop();
                self.deliver(scanner, value)
            }
            Frame::List { .. } if !more => {
                let value = self.close_list()?;
                self.deliver(scanner, value)
            }
            Frame::Object {
                id,
                shape,
                record,
                field,
                expected,
                ..
            } => {
                let ty = self.store.known_type(*record);
                let Some(found) = find_field(scanner, shape, ty, *expected as usize)? else {
                    self.in_vain.count(shape.fields.len())?;
                    scanner.skip_value()?;
                    return Ok(scanner.next_member()?);
                };
                if found != *expected as usize {
                    // InlineList objects have so many fields that it matters in which order they come.
                    let fields = shape.fields.len();
                    let passed = (found + fields - *expected as usize % fields) % fields;
                    if passed > NEAR {
                        self.in_vain.count(passed)?;
                    }
                    let order = &self.derived.order;
                    self.order = Some(order.learn(plan, *id, *field as usize, found));
                }
                *field = found as u32;
                *expected = self
                    .order
                    .map_or(found + 1, |order| order.after(*id, found))
                    as u32;
                let facts = self.derived.shapes[*id].fields[found];
                let ShapeField { slot, shape, .. } = shape.fields[found];
                let owner = *record;
                let Some(child) = shape else {
                    let value = self.leaf(scanner, facts.verbatim)?;
                    return self.deliver(scanner, value);
                };
                let layout = &plan.layouts[self.store.layout(owner)];
                let lists = layout.slots.get(usize::from(slot)).map_or(0, |s| s.lists);
                let existing = self.store.value(owner, slot);
                let coming = CompositeValue {
                    owner,
                    slot,
                    child,
                    lists,
                    verbatim: facts.verbatim,
                    existing,
                };
                self.begin(scanner, coming)
            }
            Frame::List {
                owner,
                slot,
                child,
                lists,
                verbatim,
                index,
                existing,
                ..
            } => {
                let coming = CompositeValue {
                    owner: *owner,
                    slot: *slot,
                    child: *child,
                    lists: *lists,
                    verbatim: *verbatim,
                    existing: match existing {
                        Some(list) => self.store.item(*list, *index),
                        None => Value::Absent,
                    },
                };
                self.begin(scanner, coming)
            }
        }
    }

    /// Hands a finished value to the innermost open object or list; says whether something follows in there.
    fn deliver(&mut self, scanner: &mut Scanner<'_>, value: Value) -> Result<bool, Stop> {
        let outermost = self.frames.len() == 1;
        match self.frames.last_mut() {
            None => Ok(false),
            Some(Frame::Object {
                shape,
                record,
                field,
                ..
            }) => {
                let field = *field as usize;
                if outermost && self.taping {
                    self.tape.push((field, value));
                }
                self.store.merge(*record, shape.fields[field].slot, value);
                Ok(scanner.next_member()?)
            }
            Some(Frame::List { index, .. }) => {
                *index += 1;
                if self.scratch.len() >= self.store.limits().values_max as usize {
                    return Err(Stop::Limit(LimitReached("values_max")));
                }
                self.scratch.push(value);
                Ok(scanner.next_item()?)
            }
        }
    }

    pub(crate) fn leaf(
        &mut self,
        scanner: &mut Scanner<'_>,
        verbatim: Option<PatternValue>,
    ) -> Result<Value, Stop> {
        if let Some(value) = verbatim.and_then(|verbatim| self.as_it_stands(scanner, verbatim)) {
            return Ok(value);
        }
        if scanner.peek()? == Kind::Null {
            scanner.null()?;
            return Ok(Value::Null);
        }
        let range = scanner.skip_value()?;
        Ok(Value::Raw(RawRange::unchecked(self.source, range)))
    }

    /// The coming value, if it is exactly what the client may see.
    fn as_it_stands(&mut self, scanner: &mut Scanner<'_>, verbatim: PatternValue) -> Option<Value> {
        let (open, pattern) = (&mut self.open, &self.derived.pattern);
        let range = scanner.try_pattern_with(open, pattern, verbatim, self.conditions)?;
        Some(if scanner.text().get(range.start) == Some(&b'n') {
            Value::Null
        } else {
            Value::Raw(RawRange::verbatim(self.source, range))
        })
    }

    /// The same of a value of which something may be known, or can be found out while it arrives.
    #[cold]
    fn as_known(&mut self, scanner: &mut Scanner<'_>, verbatim: PatternValue) -> Option<Value> {
        let expected = Expected {
            start: scanner.position(),
            value: verbatim,
            depth: scanner.depth(),
        };
        let (text, depth) = (scanner.text(), expected.depth.0);
        let (plan, conditions) = (self.store.plan(), self.conditions);
        let Hints::Known(known) = &mut self.known else {
            return None;
        };
        let end = match known.pass(expected, text, plan, conditions) {
            Passing::End(end) => end,
            Passing::No => return None,
            Passing::PartialAnswer => {
                // What was to be found out is: nothing follows here.
                scanner.resume(text.len(), depth);
                return Some(Value::Null);
            }
        };
        scanner.resume(end, depth);
        Some(if text.get(expected.start) == Some(&b'n') {
            Value::Null
        } else {
            Value::Raw(RawRange::verbatim(self.source, expected.start..end))
        })
    }

    /// The same of objects; it is counted what they cost.
    #[cold]
    fn as_counted(
        &mut self,
        scanner: &mut Scanner<'_>,
        verbatim: PatternValue,
        shape: ShapeId,
    ) -> Option<Value> {
        let layout = self.store.plan().shapes[shape].layout;
        let Some(counted) = &mut self.store.counted else {
            return self.as_it_stands(scanner, verbatim);
        };
        let (start, depth) = (scanner.position(), scanner.depth());
        let mut tally = counted.tally(layout);
        let means = (&mut self.open, &mut tally);
        let (text, pattern) = (scanner.text(), &self.derived.pattern);
        let end = pattern.tally(means, text, start, verbatim, self.conditions, depth)?;
        let is_null = text.get(start) == Some(&b'n');
        let range = RawRange::verbatim(self.source, start..end);
        if !is_null {
            counted.keep(range.place(), &tally);
        }
        scanner.resume(end, depth.0);
        Some(if is_null {
            Value::Null
        } else {
            Value::Raw(range)
        })
    }

    /// The coming objects, if they are exactly what the client may see. Not tried again and again in vain.
    pub(crate) fn pass(
        &mut self,
        scanner: &mut Scanner<'_>,
        coming: &CompositeValue,
    ) -> Option<Value> {
        let verbatim = coming.verbatim?;
        let at = coming.child.index();
        if self.surprises.get(at).is_some_and(|n| *n >= SURPRISES_MAX) {
            return None;
        }
        let value = match self.known {
            Hints::Nothing => self.as_it_stands(scanner, verbatim),
            Hints::Known(_) => self.as_known(scanner, verbatim),
            Hints::Counted => self.as_counted(scanner, verbatim, coming.child),
        };
        if value.is_none() {
            if self.surprises.is_empty() {
                self.surprises.resize(self.store.plan().shapes.len(), 0);
            }
            self.surprises[at] += 1;
        } else if let Some(surprises) = self.surprises.get_mut(at) {
            *surprises = 0;
        }
        value
    }

    /// Starts a composite value: opens a frame for it, or delivers it at once if it has no members or is refused.
    fn begin(&mut self, scanner: &mut Scanner<'_>, coming: CompositeValue) -> Result<bool, Stop> {
        match coming.existing {
            Value::Raw(_) => {
                scanner.skip_value()?;
                return self.deliver(scanner, coming.existing);
            }
            Value::Record(_) | Value::List(_) => self.duplicates.stop(),
            Value::Absent | Value::Null | Value::Failed => {
                if let Some(value) = self.pass(scanner, &coming) {
                    return self.deliver(scanner, value);
                }
            }
        }
        let kind = scanner.peek()?;
        match kind {
            Kind::Null => {
                scanner.null()?;
                self.deliver(scanner, Value::Null)
            }
            Kind::Array if coming.lists > 0 => self.begin_list(scanner, coming),
            Kind::Object if coming.lists == 0 => self.begin_object(scanner, coming),
            _ => {
                scanner.skip_value()?;
                let message = if coming.lists > 0 {
                    NOT_A_LIST
                } else {
                    NOT_AN_OBJECT
                };
                self.fail_here(codes::SUBREQUEST_INVALID_VALUE, message);
                self.deliver(scanner, Value::Failed)
            }
        }
    }

    fn begin_list(
        &mut self,
        scanner: &mut Scanner<'_>,
        coming: CompositeValue,
    ) -> Result<bool, Stop> {
        let existing = match coming.existing {
            Value::List(list) => Some(list),
            _ => None,
        };
        if let Some(list) = existing {
            let mut ahead = scanner.clone();
            let count = count_items(&mut ahead)?;
            // It is read again, and so is every list in it.
            let bytes = ahead.position() - scanner.position();
            self.store.rescan(bytes as u64)?;
            if count != list.len {
                scanner.skip_value()?;
                self.fail_here(codes::SUBREQUEST_LIST_MISMATCH, LIST_MISMATCH);
                self.fail_list(list, coming.lists, coming.child);
                return self.deliver(scanner, Value::List(list));
            }
        }
        self.open_list(&coming, existing);
        Ok(scanner.begin_array()?)
    }

    /// Opens the frame of a list.
    #[inline]
    pub(crate) fn open_list(&mut self, coming: &CompositeValue, existing: Option<ListRange>) {
        self.frames.push(Frame::List {
            owner: coming.owner,
            slot: coming.slot,
            child: coming.child,
            lists: coming.lists - 1,
            verbatim: coming.verbatim.map(PatternValue::item),
            index: 0,
            base: self.scratch.len(),
            existing,
        });
    }

    pub(crate) fn close_list(&mut self) -> Result<Value, Stop> {
        let Some(Frame::List { base, existing, .. }) = self.frames.pop() else {
            return Ok(Value::Absent);
        };
        let items = &self.scratch[base..];
        let list = match existing {
            Some(list) => {
                self.store.merge_list(list, items);
                list
            }
            None => self.store.push_list(items)?,
        };
        self.scratch.truncate(base);
        Ok(Value::List(list))
    }

    fn begin_object(
        &mut self,
        scanner: &mut Scanner<'_>,
        coming: CompositeValue,
    ) -> Result<bool, Stop> {
        let plan = self.store.plan();
        let shape = &plan.shapes[coming.child];
        if let Value::Record(record) = coming.existing {
            if self.agree_on_type(scanner, coming.child, record)? {
                return self.enter(scanner, coming.child, record);
            }
            scanner.skip_value()?;
            return self.deliver(scanner, coming.existing);
        }
        let state = match self.type_of(scanner, shape)? {
            TypeState::Rejected => {
                scanner.skip_value()?;
                self.fail_here(codes::SUBREQUEST_UNEXPECTED_TYPE, UNEXPECTED_TYPE);
                return self.deliver(scanner, Value::Failed);
            }
            state => state,
        };
        let record = self.create(&coming, state)?;
        self.enter(scanner, coming.child, record)
    }

    /// Makes the record for a coming object.
    #[inline(always)]
    pub(crate) fn create(
        &mut self,
        coming: &CompositeValue,
        state: TypeState,
    ) -> Result<RecordId, Stop> {
        let layout = self.store.plan().shapes[coming.child].layout;
        self.place(coming, |store, place| {
            Ok(store.create(layout, place, state)?)
        })
    }
    /// Makes the records for a coming object that is the same as one that was read before.
    pub(crate) fn copy(&mut self, coming: &CompositeValue, entry: &Entry) -> Option<RecordId> {
        if self.scratch.len() + entry.len as usize >= self.store.limits().values_max as usize {
            return None;
        }
        self.place(coming, |store, place| {
            store.copy((&entry.from, &entry.to), place)
        })
    }
    /// What must not change while an object is read that is to be copied later.
    pub(crate) fn untouched(&self) -> (usize, u32) {
        (self.errors.mark().sum(), self.steps)
    }
    /// Says where a coming object hangs.
    #[inline(always)]
    fn place<T>(
        &mut self,
        coming: &CompositeValue,
        make: impl FnOnce(&mut Store<'p>, Place<'_>) -> T,
    ) -> T {
        if !matches!(self.frames.last(), Some(Frame::List { .. })) {
            let place = Place {
                parent: coming.owner,
                slot: coming.slot,
                indexes: &[],
            };
            return make(self.store, place);
        }
        let mut buffer = [0; Wrapping::LISTS_MAX as usize];
        let mut first = buffer.len();
        for frame in self.frames.iter().rev() {
            let (Frame::List { index, .. }, true) = (frame, first > 0) else {
                break;
            };
            first -= 1;
            buffer[first] = *index;
        }
        let place = Place {
            parent: coming.owner,
            slot: coming.slot,
            indexes: &buffer[first..],
        };
        make(self.store, place)
    }

    fn enter(
        &mut self,
        scanner: &mut Scanner<'_>,
        id: ShapeId,
        record: RecordId,
    ) -> Result<bool, Stop> {
        self.open(id, record);
        Ok(scanner.begin_object()?)
    }
    /// Opens the frame of an object.
    #[inline(always)]
    pub(crate) fn open(&mut self, id: ShapeId, record: RecordId) {
        let slots = self.store.slots(record);
        self.open_at(id, record, slots);
    }
    /// The same if it is known where its values are.
    #[inline(always)]
    pub(crate) fn open_at(&mut self, id: ShapeId, record: RecordId, slots: Slots) {
        let shape = &self.store.plan().shapes[id];
        let fields = shape.fields.len();
        self.frames.push(Frame::Object {
            id,
            shape,
            record,
            slots,
            field: fields as u32,
            expected: self.order.map_or(0, |order| order.after(id, fields)) as u32,
            duplicate: NOWHERE,
        });
    }
    /// The field to expect after `found`.
    #[inline]
    pub(crate) fn next_expected(&self, id: ShapeId, found: usize) -> usize {
        self.order.map_or(found + 1, |order| order.after(id, found))
    }

    /// Compares the type of the coming object with what is known of the record; learns it if nothing was known.
    /// On a contradiction reports an error, skips nothing and returns false.
    pub(crate) fn agree_on_type(
        &mut self,
        scanner: &Scanner<'_>,
        id: ShapeId,
        record: RecordId,
    ) -> Result<bool, Stop> {
        let known = self.derived.reads[id].known_type;
        if known.is_some() && self.store.known_type(record) == known {
            return Ok(true);
        }
        let shape = &self.store.plan().shapes[id];
        let found = self.type_of(scanner, shape)?;
        match (self.store.type_state(record), found) {
            (TypeState::Rejected, _) => Ok(false),
            (TypeState::Known(known), TypeState::Known(found)) if known == found => Ok(true),
            (_, TypeState::Unknown | TypeState::Failed) => Ok(true),
            (TypeState::Unknown | TypeState::Failed, found) => {
                self.store.set_type_state(record, found);
                if found == TypeState::Rejected {
                    self.fail(codes::SUBREQUEST_UNEXPECTED_TYPE, UNEXPECTED_TYPE, record);
                }
                Ok(found != TypeState::Rejected)
            }
            (TypeState::Known(known), found) => {
                // It was only known because nothing else is possible, and now somebody says that it is something else.
                let told = self.derived.only_type[shape.layout] != Some(known);
                if found == TypeState::Rejected && !told {
                    self.store.set_type_state(record, found);
                }
                self.errors.keep(ObjectError {
                    code: codes::SUBREQUEST_UNEXPECTED_TYPE,
                    message: UNEXPECTED_TYPE,
                    shape: id,
                    record,
                });
                Ok(false)
            }
        }
    }

    /// The type of the object the scanner stands before. The name usually comes first, but may come anywhere.
    fn type_of(
        &mut self,
        scanner: &Scanner<'_>,
        shape: &'p ObjectShape,
    ) -> Result<TypeState, Stop> {
        let plan = self.store.plan();
        let layout = &plan.layouts[shape.layout];
        let Some(key) = shape.typename_key.as_deref() else {
            return Ok(match self.derived.only_type[shape.layout] {
                Some(ty) => TypeState::Known(ty),
                None if layout.types.is_empty() => TypeState::Rejected,
                None => TypeState::Unknown,
            });
        };
        let mut ahead = scanner.clone();
        let (name, is_first) = find_string(&mut ahead, key)?;
        if !is_first {
            // What stands before it is read again, and so is what objects in there read already.
            let bytes = ahead.position() - scanner.position();
            self.store.rescan(bytes as u64)?;
        }
        let Some(name) = name else {
            return Ok(TypeState::Rejected);
        };
        let found = self.type_named(shape, name.as_bytes());
        if found == TypeState::Rejected {
            self.in_vain.count(layout.types.len())?;
        }
        Ok(found)
    }
    /// The type of an object that says its type is called `name`.
    pub(crate) fn type_named(&mut self, shape: &'p ObjectShape, name: &[u8]) -> TypeState {
        let plan = self.store.plan();
        let layout = &plan.layouts[shape.layout];
        let is = |ty: RuntimeType| {
            plan.types
                .get(ty)
                .is_some_and(|known| known.as_bytes() == name)
        };
        if let Some(last) = self.last_type
            && layout.types.contains(last.0)
            && is(last)
        {
            return TypeState::Known(last);
        }
        let found = layout.types.iter().map(RuntimeType).find(|ty| is(*ty));
        self.last_type = found.or(self.last_type);
        match found {
            Some(ty) => TypeState::Known(ty),
            // Another fetch will tell.
            None if shape.interface_objects.iter().any(|n| n.as_bytes() == name) => {
                TypeState::Unknown
            }
            None => TypeState::Rejected,
        }
    }

    /// Marks what this provider would have put into the objects of a list as failed.
    fn fail_list(&mut self, list: ListRange, lists: u8, child: ShapeId) {
        // Once is enough, however often a subgraph repeats a key. (An empty list begins where the next one does.)
        if list.len == 0
            || !self
                .failed_lists
                .get_or_insert_default()
                .insert((list.start, child))
        {
            return;
        }
        let mut open = vec![(list, lists)];
        while let Some((list, lists)) = open.pop() {
            for index in 0..list.len {
                match self.store.item(list, index) {
                    Value::List(inner) if lists > 1 => open.push((inner, lists - 1)),
                    Value::Record(record) => fail_fields(self.store, child, record),
                    _ => {}
                }
            }
        }
    }

    /// List indexes from the innermost open object to the value being read.
    fn open_indexes(&self) -> Vec<u32> {
        let mut indexes: Vec<u32> = self
            .frames
            .iter()
            .rev()
            .map_while(|frame| match frame {
                Frame::List { index, .. } => Some(*index),
                Frame::Object { .. } => None,
            })
            .collect();
        indexes.reverse();
        indexes
    }
    /// Client path of the value being read; empty if clients do not see it.
    fn path_here(&self) -> Path<'p> {
        let innermost = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Object {
                shape,
                record,
                field,
                ..
            } => Some((*record, shape.fields.get(*field as usize)?.slot)),
            Frame::List { .. } => None,
        });
        let Some((record, slot)) = innermost else {
            return Vec::new();
        };
        let layout = &self.store.plan().layouts[self.store.layout(record)];
        let key = layout.slots[usize::from(slot)].client_key.as_deref();
        let (Some(mut path), Some(key)) = (self.store.visible_path(record), key) else {
            return Vec::new();
        };
        path.push(PathStep::Key(key));
        path.extend(self.open_indexes().into_iter().map(PathStep::Index));
        path
    }
    fn fail_here(&mut self, code: ErrorCode, message: &'static str) {
        // Told even if there is no room for it in the response.
        let path = if self.errors.is_full() {
            Path::new()
        } else {
            self.path_here()
        };
        self.push(GraphqlError::new(code, message).at(path));
    }
    /// Reports an error at a record.
    pub(crate) fn fail(&mut self, code: ErrorCode, message: &'static str, record: RecordId) {
        let path = if self.errors.is_full() {
            Path::new()
        } else {
            self.store.visible_path(record).unwrap_or_default()
        };
        self.push(GraphqlError::new(code, message).at(path));
    }
    fn push(&mut self, mut error: GraphqlError<'p>) {
        error.service = self.service;
        self.errors.push(Stage::Fetch(self.target.rank()), error);
    }
}

/// A key that comes instead of another one may be so many fields away from it before it counts how many were compared.
const NEAR: usize = 64;

/// How often in a row objects of a shape may look different before it is no longer tried to take them as they stand.
const SURPRISES_MAX: u8 = 8;

const NOT_AN_OBJECT: &str = "The subgraph did not answer an object.";
const NOT_A_LIST: &str = "The subgraph did not answer a list.";
const UNEXPECTED_TYPE: &str = "The subgraph answered an object of an unexpected type.";
const LIST_MISMATCH: &str = "Two subgraphs answered this list with different lengths.";

/// Whether a key means this field for objects of type `ty`.
pub(crate) fn applies(field: &ShapeField, ty: Option<RuntimeType>) -> bool {
    match (&field.types, ty) {
        (None, _) => true,
        (Some(types), Some(ty)) => types.contains(ty.0),
        (Some(_), None) => field.untyped,
    }
}

/// Reads a key and says which field it means; the one at `expected` or soon after is tried first.
fn find_field(
    scanner: &mut Scanner<'_>,
    shape: &ObjectShape,
    ty: Option<RuntimeType>,
    expected: usize,
) -> Result<Option<usize>, ScanError> {
    let fields = &shape.fields;
    let next = (expected..fields.len())
        .find(|at| applies(&fields[*at], ty))
        .unwrap_or(0);
    if fields
        .get(next)
        .is_some_and(|field| applies(field, ty) && scanner.try_key(&field.key))
    {
        return Ok(Some(next));
    }
    let key = scanner.key()?;
    let text = if key.has_escapes() {
        Cow::Owned(key.unescape().into_owned().into_bytes())
    } else {
        Cow::Borrowed(key.raw())
    };
    Ok((next..fields.len())
        .chain(0..next)
        .find(|at| *fields[*at].key.as_bytes() == *text && applies(&fields[*at], ty)))
}

/// The string member `key` of the object the scanner stands before, and whether no other one stands before it.
fn find_string<'a>(
    scanner: &mut Scanner<'a>,
    key: &str,
) -> Result<(Option<Cow<'a, str>>, bool), ScanError> {
    let (mut more, mut is_first) = (scanner.begin_object()?, true);
    while more {
        if scanner.try_key(key) || scanner.key()?.is(key) {
            let name = match scanner.peek()? {
                Kind::String => Some(scanner.string()?.unescape()),
                _ => None,
            };
            return Ok((name, is_first));
        }
        is_first = false;
        scanner.skip_value()?;
        more = scanner.next_member()?;
    }
    Ok((None, is_first))
}

/// Number of items of the array the scanner stands before.
fn count_items(scanner: &mut Scanner<'_>) -> Result<u32, ScanError> {
    let mut count = 0;
    let mut more = scanner.begin_array()?;
    while more {
        scanner.skip_value()?;
        count += 1;
        more = scanner.next_item()?;
    }
    Ok(count)
}
