//! The response store: what subgraphs answered so far, as records with slots.
//!
//! Leaves stay byte ranges of the answers they came in; objects are records of a layout; lists of objects are ranges
//! of one arena. Everything lies in flat vectors and is named by `u32` ids. A record knows its parent, slot and list
//! indexes, so client paths are found by walking up.
//!
//! Invariants: ids handed out stay valid; a slot never goes from a value back to null or nothing; of two values for
//! one leaf the one from the earlier fetch in plan order wins, whichever came first. Tests: `scan` cases in `tests/it`.

use std::ops::Range;

use bytes::Bytes;
use ogive_base::{FastMap, define_id, id::Id};
use ogive_plan::{FetchId, LayoutId, Plan, RuntimeType, ShapeId, SlotIndex};

use crate::{
    graphql_error::{Path, PathStep},
    inline_list::InlineList,
    limits::ExecuteLimits,
    stop::LimitReached,
    value_costs::{CountedValues, ValueCost},
};

define_id! {
    /// One object of the response.
    pub(crate) struct RecordId;
}

/// What a slot or list item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing was answered.
    Absent,
    /// Null was answered.
    Null,
    /// Null, and an error says why.
    Failed,
    /// JSON bytes of an answer: a leaf, a list of leaves, or anything that passes to the client as it stands.
    Raw(RawRange),
    /// An object.
    Record(RecordId),
    /// A list of objects, or of lists of them.
    List(ListRange),
}

/// One answer: a fetch is answered in one part, unless it was sent as several requests. Ordered as plans are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Source(u32);

impl Source {
    const PART_BITS: u32 = 11;
    /// Most requests that one fetch may be sent as. (Fetches are less than 2²⁰, as many as a plan has waves times
    /// subgraphs at most.)
    pub(crate) const PARTS_MAX: usize = 1 << Self::PART_BITS;

    /// Most of them that a fetch is sent as because of values from above: one number in two is left for parts that have
    /// to be sent again.
    pub(crate) const CONTEXTS_MAX: usize = Self::PARTS_MAX / 2;

    pub(crate) fn new(fetch: FetchId, part: u32) -> Self {
        Source(fetch.0 << Self::PART_BITS | part & (Self::PARTS_MAX as u32 - 1))
    }
    pub(crate) fn fetch(self) -> FetchId {
        FetchId(self.0 >> Self::PART_BITS)
    }
    pub(crate) fn part(self) -> u32 {
        self.0 & (Self::PARTS_MAX as u32 - 1)
    }
    /// The answer at such a place.
    pub(crate) fn of_rank(rank: u32) -> Self {
        Source(rank)
    }
    /// Its place among all answers.
    pub(crate) fn rank(self) -> u32 {
        self.0
    }
}

/// Bytes of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRange {
    /// Twice the answer; one more if the bytes are what the client sees.
    source: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl RawRange {
    /// A value that is known to be what the client may see, or one that is still to be checked.
    #[inline(always)]
    pub(crate) fn new(source: Source, range: Range<usize>, is_verbatim: bool) -> Self {
        RawRange {
            source: source.0 << 1 | u32::from(is_verbatim),
            start: range.start as u32,
            // No range ends before it begins, so what `len` would look at first needs no look.
            len: range.end.wrapping_sub(range.start) as u32,
        }
    }
    /// A value that is still to be checked.
    pub(crate) fn unchecked(source: Source, range: Range<usize>) -> Self {
        Self::new(source, range, false)
    }
    /// A value that is known to be what the client may see.
    pub(crate) fn verbatim(source: Source, range: Range<usize>) -> Self {
        Self::new(source, range, true)
    }
    /// Whether it is known to be what the client may see.
    pub(crate) fn is_verbatim(self) -> bool {
        self.source & 1 != 0
    }
    fn source(self) -> Source {
        Source(self.source >> 1)
    }
    /// Its answer, and where it begins there.
    pub(crate) fn place(self) -> (u32, u32) {
        (self.source >> 1, self.start)
    }
    /// Whether both are ranges of the same answer.
    pub(crate) fn is_of_answer(self, other: RawRange) -> bool {
        self.source >> 1 == other.source >> 1
    }
}

/// Records of one layout.
pub(crate) type RecordList = InlineList<RecordId, 3>;

/// Neighbouring list items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListRange {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Value {
    /// Whether it is more than nothing or null.
    pub(crate) fn is_some(self) -> bool {
        matches!(self, Value::Raw(_) | Value::Record(_) | Value::List(_))
    }

    /// What becomes of a place that holds `self` when `other` arrives (planner rule 63).
    fn merged_with(self, other: Value) -> Value {
        match (self, other) {
            (Value::Raw(ours), Value::Raw(theirs)) if theirs.source() < ours.source() => other,
            (Value::Null | Value::Failed, _) if other.is_some() => other,
            (Value::Null, Value::Failed) | (Value::Absent, _) => other,
            _ => self,
        }
    }
}

/// What is known of a record's concrete type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeState {
    Known(RuntimeType),
    /// No answer named it yet.
    Unknown,
    /// The fetch that would have named it failed, and an error says so.
    Failed,
    /// Not one of the layout's types: the object counts as null, and an error says so.
    Rejected,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    layout: LayoutId,
    state: TypeState,
    parent: RecordId,
    slot: SlotIndex,
    /// Number of list indexes between the parent's slot and this record.
    lists: u8,
    /// First list index.
    indexes: u32,
    /// First slot.
    values: u32,
}

/// One value is expected in so many bytes of an answer...
const BYTES_PER_VALUE: usize = 24;
/// ... but room is made for so many at a time at most: big answers mostly pass as they stand.
const VALUES_RESERVED_MAX: usize = 4096;
/// Room is made for as many values as the last execution of the plan had, up to so many: a mebibyte.
const LEARNED_MAX: usize = 1 << 16;

/// Up to so many slots of a record are made one by one.
const SLOTS_AT_ONCE: usize = 4;
/// More are copied from here.
const ABSENT: [Value; 64] = [Value::Absent; 64];

/// Where a new record hangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) parent: RecordId,
    pub(crate) slot: SlotIndex,
    pub(crate) indexes: &'a [u32],
}

/// The slots of one record, found once for many values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    /// Where they begin.
    base: u32,
    /// Whether what they held must be kept track of.
    undoable: bool,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) records: u32,
    values: u32,
    items: u32,
    indexes: u32,
}

/// All values of one execution.
#[derive(Debug)]
pub(crate) struct Store<'p> {
    plan: &'p Plan,
    limits: &'p ExecuteLimits,
    /// Bytes of answers that were read more than once.
    rescanned: u64,
    /// Answers by fetch.
    answers: Vec<Bytes>,
    /// Of fetches that were sent as several requests: all answers but the first.
    further: FastMap<Source, Bytes>,
    records: Vec<Record>,
    values: Vec<Value>,
    /// How many of them there will be, as far as the answers tell.
    likely: usize,
    items: Vec<Value>,
    indexes: Vec<u32>,
    by_layout: Vec<RecordList>,
    /// By record, the one it was copied from ([`Store::duplicate`]); may be shorter than there are records.
    duplicates: Vec<RecordId>,
    /// What was overwritten since [`Store::begin`], oldest first.
    undo: Vec<Undo>,
    /// The latest mark: what was made after it need not be kept track of.
    mark: Option<Mark>,
    /// What values cost that are used as they stand, if somebody counts that.
    pub(crate) counted: Option<Box<CountedValues<'p>>>,
    /// Records, and what a request that failed was to put into them: others may still put objects there, of which the
    /// request was to bring a part.
    without_objects: Vec<(ShapeId, RecordId)>,
}

/// The state of a store, to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    records: usize,
    values: usize,
    items: usize,
    indexes: usize,
    undo: usize,
    without_objects: usize,
}

/// What something was before.
#[derive(Clone, Copy, Debug)]
enum Undo {
    Value(u32, Value),
    Item(u32, Value),
    State(RecordId, TypeState),
}

impl<'p> Store<'p> {
    /// The record of the response's root.
    pub(crate) const ROOT: RecordId = RecordId(0);
    const NO_DUPLICATE: RecordId = RecordId(u32::MAX);

    pub(crate) fn new(plan: &'p Plan, limits: &'p ExecuteLimits) -> Self {
        // As much as the last execution took, within bounds, or a little.
        let (records, values) = plan.derived().sizes.get();
        let mut store = Store {
            plan,
            limits,
            rescanned: 0,
            answers: vec![Bytes::new(); plan.fetches.len()],
            further: FastMap::default(),
            records: Vec::with_capacity(records.clamp(32, LEARNED_MAX / 4)),
            values: Vec::with_capacity(values.clamp(128, LEARNED_MAX)),
            likely: 0,
            items: Vec::new(),
            indexes: Vec::new(),
            by_layout: vec![InlineList::Empty; plan.layouts.len()],
            duplicates: Vec::new(),
            undo: Vec::new(),
            mark: None,
            counted: None,
            without_objects: Vec::new(),
        };
        let place = Place {
            parent: Self::ROOT,
            slot: 0,
            indexes: &[],
        };
        let state = match plan
            .layouts
            .get(Plan::ROOT)
            .and_then(|root| root.only_type())
        {
            Some(ty) => TypeState::Known(ty),
            None => TypeState::Unknown,
        };
        let slots = plan.layouts.get(Plan::ROOT).map_or(0, |l| l.slots.len());
        store.push_record((Plan::ROOT, slots), place, state);
        store
    }

    /// Bytes of objects and values; answers not counted.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.values.capacity() + self.items.capacity()) * size_of::<Value>()
            + self.records.capacity() * size_of::<Record>()
            + self.undo.capacity() * size_of::<Undo>()
    }
    pub(crate) fn plan(&self) -> &'p Plan {
        self.plan
    }
    pub(crate) fn limits(&self) -> &'p ExecuteLimits {
        self.limits
    }
    /// Counts bytes of an answer that are read again.
    pub(crate) fn rescan(&mut self, bytes: u64) -> Result<(), LimitReached> {
        self.rescanned = self.rescanned.saturating_add(bytes);
        if self.rescanned > self.limits.rescanned_bytes_max {
            return Err(LimitReached("rescanned_bytes_max"));
        }
        Ok(())
    }

    /// Keeps an answer, so that ranges of it may be stored.
    pub(crate) fn keep_answer(&mut self, source: Source, body: Bytes) {
        if source.part() > 0 {
            self.further.insert(source, body);
            return;
        }
        // Parts of fetches that are prefetched are numbered after the fetches.
        let at = source.fetch().index();
        // Room for what is likely in it, so that little is moved later; made when the first of many records is, because
        // an answer that passes as it stands needs none.
        let likely = (body.len() / BYTES_PER_VALUE).min(VALUES_RESERVED_MAX);
        self.likely = self.values.len() + likely;
        if self.answers.len() <= at {
            self.answers.resize(at + 1, Bytes::new());
        }
        self.answers[at] = body;
    }
    #[inline(always)]
    fn find_answer(&self, source: Source) -> Option<&Bytes> {
        match source.part() {
            0 => self.answers.get(source.fetch().index()),
            _ => self.further.get(&source),
        }
    }
    /// Number of bytes that a response may have, as far as the number of values tells, and the size of the answers.
    pub(crate) fn likely_bytes(&self) -> usize {
        let all = self.answers.iter().chain(self.further.values());
        let answers: usize = all.map(Bytes::len).sum();
        (2 * answers).min(BYTES_PER_VALUE * (self.values.len() + self.items.len()))
    }
    /// All bytes of an answer.
    pub(crate) fn answer(&self, source: Source) -> Bytes {
        self.find_answer(source).cloned().unwrap_or_default()
    }
    /// All bytes of the answer that a range is part of.
    pub(crate) fn answer_of(&self, range: RawRange) -> &[u8] {
        self.find_answer(range.source())
            .map_or(&[], |answer| answer)
    }
    /// What a value costs that was counted when it was read.
    pub(crate) fn counted(&self, range: RawRange, layout: LayoutId) -> Option<ValueCost> {
        self.counted.as_ref()?.get(range.place(), layout)
    }
    /// The bytes of a leaf.
    #[inline(always)]
    pub(crate) fn raw(&self, range: RawRange) -> &[u8] {
        let start = range.start as usize;
        self.find_answer(range.source())
            .and_then(|answer| answer.get(start..start + range.len as usize))
            .unwrap_or_default()
    }
    /// The bytes of a value, shared with the answer they are part of.
    pub(crate) fn shared(&self, range: RawRange) -> Bytes {
        let start = range.start as usize;
        let end = start + range.len as usize;
        match self.find_answer(range.source()) {
            Some(answer) if end <= answer.len() => answer.slice(start..end),
            _ => Bytes::new(),
        }
    }

    /// From now on everything can be taken back, until [`Store::commit`].
    pub(crate) fn begin(&mut self) -> Mark {
        self.undo.clear();
        self.mark()
    }
    /// The state now; only between [`Store::begin`] and [`Store::commit`].
    pub(crate) fn mark(&mut self) -> Mark {
        let mark = Mark {
            records: self.records.len(),
            values: self.values.len(),
            items: self.items.len(),
            indexes: self.indexes.len(),
            undo: self.undo.len(),
            without_objects: self.without_objects.len(),
        };
        self.mark = Some(mark);
        mark
    }
    /// Everything stays as it is.
    pub(crate) fn commit(&mut self) {
        self.undo.clear();
        self.mark = None;
    }
    /// Takes everything since `mark` back.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        for undo in self.undo.drain(mark.undo.min(self.undo.len())..).rev() {
            match undo {
                Undo::Value(at, value) => self.values[at as usize] = value,
                Undo::Item(at, value) => self.items[at as usize] = value,
                Undo::State(record, state) => self.records[record.index()].state = state,
            }
        }
        for record in self.records.drain(mark.records..).rev() {
            if let Some(records) = self.by_layout.get_mut(record.layout.index()) {
                records.pop();
            }
        }
        self.duplicates.truncate(mark.records);
        self.values.truncate(mark.values);
        self.items.truncate(mark.items);
        self.indexes.truncate(mark.indexes);
        self.without_objects.truncate(mark.without_objects);
    }

    /// Notes that a request failed which was to put what a shape says into a record, objects among it that others may bring.
    pub(crate) fn expect_objects(&mut self, shape: ShapeId, record: RecordId) {
        self.without_objects.push((shape, record));
    }
    /// What was noted so, to be looked at once more.
    pub(crate) fn take_expected(&mut self) -> Vec<(ShapeId, RecordId)> {
        std::mem::take(&mut self.without_objects)
    }

    /// Notes how much room everything took, for later executions of the plan.
    pub(crate) fn learn_sizes(&self) {
        let sizes = &self.plan.derived().sizes;
        sizes.learn(self.records.len(), self.values.len());
    }
    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
    /// Makes a record with empty slots.
    #[inline]
    pub(crate) fn create(
        &mut self,
        layout: LayoutId,
        place: Place<'_>,
        state: TypeState,
    ) -> Result<RecordId, LimitReached> {
        if self.records.len() >= self.limits.records_max as usize {
            return Err(LimitReached("records_max"));
        }
        let slots = self.plan.layouts[layout].slots.len();
        self.reserve_values(slots)?;
        Ok(self.push_record((layout, slots), place, state))
    }
    /// Makes a record of a layout with so many slots in a slot of an object.
    #[inline(always)]
    pub(crate) fn create_in(
        &mut self,
        (layout, slots): (LayoutId, SlotIndex),
        (parent, slot): (RecordId, SlotIndex),
        ty: RuntimeType,
    ) -> Result<(RecordId, Slots), LimitReached> {
        if self.records.len() >= self.limits.records_max as usize {
            return Err(LimitReached("records_max"));
        }
        let slots = usize::from(slots);
        self.reserve_values(slots)?;
        let place = Place {
            parent,
            slot,
            indexes: &[],
        };
        // It is newer than any mark.
        let at = Slots {
            base: self.values.len() as u32,
            undoable: false,
        };
        let record = self.push_record((layout, slots), place, TypeState::Known(ty));
        Ok((record, at))
    }
    #[inline(always)]
    fn push_record(
        &mut self,
        (layout, slots): (LayoutId, usize),
        place: Place<'_>,
        state: TypeState,
    ) -> RecordId {
        let id = RecordId::from_usize(self.records.len());
        self.records.push(Record {
            layout,
            state,
            parent: place.parent,
            slot: place.slot,
            lists: place.indexes.len() as u8,
            indexes: self.indexes.len() as u32,
            values: self.values.len() as u32,
        });
        if !place.indexes.is_empty() {
            self.indexes.extend_from_slice(place.indexes);
        }
        if self.values.len() + slots > self.values.capacity() {
            self.make_room(slots);
        }
        self.push_absent(slots);
        if let Some(records) = self.by_layout.get_mut(layout.index()) {
            records.push(id);
        }
        id
    }
    /// Appends empty slots. Few are put there one by one: whether `extend_from_slice` is a call is up to the compiler.
    #[inline(always)]
    fn push_absent(&mut self, mut slots: usize) {
        while slots > SLOTS_AT_ONCE {
            let n = slots.min(ABSENT.len());
            self.values.extend_from_slice(&ABSENT[..n]);
            slots -= n;
        }
        for _ in 0..slots {
            self.values.push(Value::Absent);
        }
    }
    /// How much there is now.
    #[inline]
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            records: self.records.len() as u32,
            values: self.values.len() as u32,
            items: self.items.len() as u32,
            indexes: self.indexes.len() as u32,
        }
    }
    /// Copies an object with everything in it, which was read between two extents, to a place. `None` if there is too
    /// much of anything; then nothing is copied.
    pub(crate) fn copy(
        &mut self,
        (from, to): (&Extent, &Extent),
        place: Place<'_>,
    ) -> Option<RecordId> {
        let (values, items) = (from.values..to.values, from.items..to.items);
        if self.records.len() + (from.records..to.records).len() > self.limits.records_max as usize
            || self.reserve_values(values.len() + items.len()).is_err()
        {
            return None;
        }
        let before = self.extent();
        let root = RecordId(before.records);
        let original = *self.records.get(from.records as usize)?;
        // The first list indexes are those of the object itself, the others are of the objects in it.
        let inner = from.indexes + u32::from(original.lists);
        self.indexes.extend_from_slice(place.indexes);
        let indexes = self.indexes.len() as u32;
        self.indexes
            .extend_from_within(inner as usize..to.indexes as usize);
        let n_before = before.records;
        for at in from.records..to.records {
            let record = self.records[at as usize];
            let id = RecordId(n_before + (at - from.records));
            // Of the object itself these are set below.
            let (parent, inside) = (record.parent.0, record.indexes);
            self.records.push(Record {
                parent: RecordId(n_before.wrapping_add(parent.wrapping_sub(from.records))),
                indexes: indexes.wrapping_add(inside.wrapping_sub(inner)),
                values: before.values + (record.values - from.values),
                ..record
            });
            if let Some(records) = self.by_layout.get_mut(record.layout.index()) {
                records.push(id);
            }
        }
        let copy = &mut self.records[root.index()];
        copy.parent = place.parent;
        copy.slot = place.slot;
        copy.lists = place.indexes.len() as u8;
        copy.indexes = before.indexes;
        let moved = |value: &Value| match *value {
            Value::Record(record) => {
                Value::Record(RecordId(before.records + (record.0 - from.records)))
            }
            Value::List(list) => Value::List(ListRange {
                start: before.items + (list.start - from.items),
                ..list
            }),
            value => value,
        };
        copy_within(&mut self.values, values, moved);
        copy_within(&mut self.items, items, moved);
        // Whatever was copied is its own duplicate, unless it was a copy itself.
        self.duplicates.resize(root.index(), Self::NO_DUPLICATE);
        for at in from.records..to.records {
            let mut duplicate = self.duplicates[at as usize];
            if duplicate == Self::NO_DUPLICATE {
                duplicate = RecordId(at);
                self.duplicates[at as usize] = duplicate;
            }
            self.duplicates.push(duplicate);
        }
        Some(root)
    }
    /// The record whose object had the same bytes in the same answer, if there is one; the first of them is the duplicate of
    /// itself. What other fetches have brought may differ.
    #[inline]
    pub(crate) fn duplicate(&self, record: RecordId) -> Option<RecordId> {
        let duplicate = self.duplicates.get(record.index()).copied();
        duplicate.filter(|duplicate| *duplicate != Self::NO_DUPLICATE)
    }
    /// Whether two records of one layout have the same in their slots, and so on in all objects below them. `open` is
    /// room to work in.
    pub(crate) fn are_alike(
        &self,
        (one, other): (RecordId, RecordId),
        open: &mut Vec<(RecordId, RecordId)>,
    ) -> bool {
        open.clear();
        open.push((one, other));
        while let Some((one, other)) = open.pop() {
            let (a, b) = (&self.records[one.index()], &self.records[other.index()]);
            let n = self.plan.layouts.get(a.layout).map_or(0, |l| l.slots.len());
            if a.layout != b.layout || a.state != b.state {
                return false;
            }
            let (a, b) = (a.values as usize, b.values as usize);
            let values = self.values[a..a + n].iter().zip(&self.values[b..b + n]);
            if !values_alike(&self.items, values, open) {
                return false;
            }
        }
        true
    }
    /// There are more records than a few, so the answer is read object by object.
    #[cold]
    fn make_room(&mut self, slots: usize) {
        let more = self.likely.saturating_sub(self.values.len());
        let more = more.max(slots);
        self.values.reserve(more);
        self.records.reserve(more / 4);
    }
    #[inline(always)]
    fn reserve_values(&self, more: usize) -> Result<(), LimitReached> {
        if self.values.len() + self.items.len() + more > self.limits.values_max as usize {
            return Err(LimitReached("values_max"));
        }
        Ok(())
    }

    /// All records of a layout, in order of creation.
    #[inline]
    pub(crate) fn of_layout(&self, layout: LayoutId) -> &[RecordId] {
        self.by_layout
            .get(layout.index())
            .map_or(&[], |records| records)
    }
    #[inline(always)]
    pub(crate) fn layout(&self, record: RecordId) -> LayoutId {
        self.records[record.index()].layout
    }
    /// The object a record is part of; `None` for the root.
    pub(crate) fn parent(&self, record: RecordId) -> Option<RecordId> {
        (record != Self::ROOT).then(|| self.records[record.index()].parent)
    }
    /// The object and slot that a record is in, and where in the outermost list of that slot; `None` for the root.
    pub(crate) fn place(&self, record: RecordId) -> Option<(RecordId, SlotIndex, Option<u32>)> {
        let own = &self.records[record.index()];
        let index = (own.lists > 0).then(|| self.indexes[own.indexes as usize]);
        (record != Self::ROOT).then_some((own.parent, own.slot, index))
    }
    /// Exchanges what [`of_layout`](Store::of_layout) tells of a layout.
    pub(crate) fn exchange(&mut self, layout: LayoutId, records: &mut RecordList) {
        if let Some(all) = self.by_layout.get_mut(layout.index()) {
            std::mem::swap(all, records);
        }
    }
    #[inline(always)]
    pub(crate) fn type_state(&self, record: RecordId) -> TypeState {
        self.records[record.index()].state
    }
    pub(crate) fn set_type_state(&mut self, record: RecordId, state: TypeState) {
        let held = &mut self.records[record.index()].state;
        if self.mark.is_some_and(|mark| record.index() < mark.records) {
            self.undo.push(Undo::State(record, *held));
        }
        *held = state;
    }
    /// The record's concrete type, if it is known.
    #[inline(always)]
    pub(crate) fn known_type(&self, record: RecordId) -> Option<RuntimeType> {
        match self.type_state(record) {
            TypeState::Known(ty) => Some(ty),
            _ => None,
        }
    }

    /// What a slot holds.
    #[inline(always)]
    pub(crate) fn value(&self, record: RecordId, slot: SlotIndex) -> Value {
        let at = self.records[record.index()].values as usize + usize::from(slot);
        self.values.get(at).copied().unwrap_or(Value::Absent)
    }
    /// Puts a value into a slot, unless what it holds wins.
    pub(crate) fn merge(&mut self, record: RecordId, slot: SlotIndex, value: Value) {
        let at = self.records[record.index()].values as usize + usize::from(slot);
        if let Some(held) = self.values.get_mut(at) {
            if self.mark.is_some_and(|mark| at < mark.values) {
                self.undo.push(Undo::Value(at as u32, *held));
            }
            *held = held.merged_with(value);
        }
    }

    /// Where the values of a record are.
    #[inline(always)]
    pub(crate) fn slots(&self, record: RecordId) -> Slots {
        let base = self.records[record.index()].values;
        Slots {
            base,
            undoable: self.mark.is_some_and(|mark| (base as usize) < mark.values),
        }
    }
    /// [`Store::value`] of a record whose slots are known.
    #[inline(always)]
    pub(crate) fn get(&self, slots: Slots, slot: SlotIndex) -> Value {
        let at = slots.base as usize + usize::from(slot);
        self.values.get(at).copied().unwrap_or(Value::Absent)
    }
    /// [`Store::merge`] into a record whose slots are known.
    #[inline(always)]
    pub(crate) fn put(&mut self, slots: Slots, slot: SlotIndex, value: Value) {
        let at = slots.base as usize + usize::from(slot);
        let Some(held) = self.values.get_mut(at) else {
            return;
        };
        if slots.undoable {
            self.undo.push(Undo::Value(at as u32, *held));
        }
        *held = match *held {
            Value::Absent => value,
            held => held.merged_with(value),
        };
    }
    /// [`Store::put`] of bytes of an answer, which go from registers straight into the slot.
    #[inline(always)]
    pub(crate) fn put_raw(&mut self, slots: Slots, slot: SlotIndex, range: RawRange) {
        let at = slots.base as usize + usize::from(slot);
        let Some(held) = self.values.get_mut(at) else {
            return;
        };
        if slots.undoable {
            self.undo.push(Undo::Value(at as u32, *held));
        }
        match held {
            Value::Absent => *held = Value::Raw(range),
            held => put_over(held, range),
        }
    }
    /// All values from the first slot of a record on; those of later records follow.
    #[inline(always)]
    pub(crate) fn values_from(&self, slots: Slots) -> &[Value] {
        self.values.get(slots.base as usize..).unwrap_or_default()
    }

    /// A new list of `items`.
    pub(crate) fn push_list(&mut self, items: &[Value]) -> Result<ListRange, LimitReached> {
        self.reserve_values(items.len())?;
        let range = ListRange {
            start: self.items.len() as u32,
            len: items.len() as u32,
        };
        self.items.extend_from_slice(items);
        Ok(range)
    }
    /// Puts values into an existing list of the same length, unless what it holds wins.
    pub(crate) fn merge_list(&mut self, list: ListRange, items: &[Value]) {
        let held = &mut self.items[list.start as usize..(list.start + list.len) as usize];
        let undoable = self
            .mark
            .is_some_and(|mark| (list.start as usize) < mark.items);
        for (at, (held, item)) in (list.start..).zip(held.iter_mut().zip(items)) {
            if undoable {
                self.undo.push(Undo::Item(at, *held));
            }
            *held = held.merged_with(*item);
        }
    }
    /// Item `index` of a list.
    pub(crate) fn item(&self, list: ListRange, index: u32) -> Value {
        if index >= list.len {
            return Value::Absent;
        }
        self.items[(list.start + index) as usize]
    }

    /// The client path of a record, if clients see it.
    pub(crate) fn visible_path(&self, record: RecordId) -> Option<Path<'p>> {
        let mut at = record;
        while at != Self::ROOT {
            let record = &self.records[at.index()];
            let layout = self.records[record.parent.index()].layout;
            let slot = &self.plan.layouts[layout].slots[usize::from(record.slot)];
            slot.client_key.as_ref()?;
            at = record.parent;
        }
        Some(self.path(record))
    }

    /// The client path of a record. It ends where a slot that clients do not see begins.
    pub(crate) fn path(&self, record: RecordId) -> Path<'p> {
        let mut chain = Vec::new();
        let mut at = record;
        while at != Self::ROOT {
            chain.push(at);
            at = self.records[at.index()].parent;
        }
        let mut path = Vec::with_capacity(2 * chain.len());
        for id in chain.into_iter().rev() {
            let record = &self.records[id.index()];
            let layout = self.records[record.parent.index()].layout;
            let slot = &self.plan.layouts[layout].slots[usize::from(record.slot)];
            let Some(key) = slot.client_key.as_deref() else {
                break;
            };
            path.push(PathStep::Key(key));
            let indexes =
                record.indexes as usize..record.indexes as usize + usize::from(record.lists);
            path.extend(self.indexes[indexes].iter().copied().map(PathStep::Index));
        }
        path
    }
}

/// Puts bytes of an answer where there is something.
#[inline(never)]
fn put_over(held: &mut Value, range: RawRange) {
    *held = held.merged_with(Value::Raw(range));
}

/// Appends what some of the values become elsewhere.
fn copy_within(values: &mut Vec<Value>, range: Range<u32>, moved: impl Fn(&Value) -> Value) {
    values.reserve(range.len());
    for at in range {
        let value = moved(&values[at as usize]);
        values.push(value);
    }
}

/// Whether values are equal; of objects that `open` knows what is still to be compared.
#[inline(always)]
fn values_alike<'v>(
    items: &'v [Value],
    values: impl Iterator<Item = (&'v Value, &'v Value)>,
    open: &mut Vec<(RecordId, RecordId)>,
) -> bool {
    for pair in values {
        match pair {
            (Value::Record(one), Value::Record(other)) => open.push((*one, *other)),
            (Value::List(one), Value::List(other)) => {
                let slice = |list: &ListRange| {
                    items.get(list.start as usize..(list.start + list.len) as usize)
                };
                let (Some(ones), Some(others)) = (slice(one), slice(other)) else {
                    return false;
                };
                if ones.len() != others.len() {
                    return false;
                }
                for pair in ones.iter().zip(others) {
                    match pair {
                        (Value::Record(one), Value::Record(other)) => open.push((*one, *other)),
                        // Lists of lists are not worth it.
                        (one, other) if one == other && !matches!(one, Value::List(_)) => {}
                        _ => return false,
                    }
                }
            }
            (one, other) if one == other => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use ogive_base::IdVec;
    use ogive_plan::{DerivedCell, Layout, OperationKind, Slot};

    use super::*;

    #[test]
    fn values_stay_small() {
        assert_eq!(size_of::<Value>(), 16);
        assert!(size_of::<Record>() <= 28);
    }

    #[test]
    fn of_two_leaves_the_earlier_fetch_wins_in_any_order() {
        let raw = |fetch| Value::Raw(RawRange::verbatim(Source::new(FetchId(fetch), 0), 0..1));
        assert_eq!(raw(1).merged_with(raw(2)), raw(1));
        assert_eq!(raw(2).merged_with(raw(1)), raw(1));
        for empty in [Value::Absent, Value::Null, Value::Failed] {
            assert_eq!(raw(2).merged_with(empty), raw(2));
            assert_eq!(empty.merged_with(raw(2)), raw(2));
        }
        assert_eq!(Value::Absent.merged_with(Value::Null), Value::Null);
        assert_eq!(Value::Null.merged_with(Value::Absent), Value::Null);
        assert_eq!(Value::Null.merged_with(Value::Failed), Value::Failed);
        assert_eq!(Value::Failed.merged_with(Value::Null), Value::Failed);
    }

    #[test]
    fn everything_can_be_taken_back() {
        let slot = |child| Slot {
            name: "x".into(),
            client_key: None,
            lists: 0,
            child,
            value: 0,
        };
        let layout = |parent, slots| Layout {
            parent,
            types: ogive_base::BitSet::all(1),
            slots,
            output: Default::default(),
            restricted: Vec::new(),
        };
        let child = LayoutId(1);
        let plan = Plan {
            kind: OperationKind::Query,
            subgraphs: Vec::new(),
            types: IdVec::from_vec(vec!["T".into()]),
            enums: IdVec::new(),
            conditions: IdVec::from_vec(vec![vec![vec![]]]),
            variables: Vec::new(),
            requirements: Vec::new(),
            deferral: None,
            layouts: IdVec::from_vec(vec![
                layout(None, vec![slot(Some(child)), slot(None)].into()),
                layout(Some((Plan::ROOT, 0)), vec![slot(None)].into()),
            ]),
            shapes: IdVec::new(),
            fetches: IdVec::new(),
            locals: 0,
            derived: DerivedCell::default(),
        };
        let limits = ExecuteLimits::default();
        let mut store = Store::new(&plan, &limits);
        let list = store.push_list(&[Value::Absent]).unwrap();
        let seen = |s: &Store<'_>| {
            format!(
                "{:?}",
                (&s.records, &s.values, &s.items, &s.indexes, &s.by_layout)
            )
        };
        let empty = seen(&store);
        let outer = store.begin();
        store.merge(Store::ROOT, 1, Value::Null);
        let before = seen(&store);
        let inner = store.mark();
        let place = Place {
            parent: Store::ROOT,
            slot: 0,
            indexes: &[3],
        };
        let record = store.create(child, place, TypeState::Unknown).unwrap();
        store.merge(Store::ROOT, 0, Value::Record(record));
        store.merge(record, 0, Value::Failed);
        store.merge_list(list, &[Value::Null]);
        store.set_type_state(Store::ROOT, TypeState::Rejected);
        store.push_list(&[Value::Null]).unwrap();
        store.roll_back(inner);
        assert_eq!(seen(&store), before);
        store.roll_back(outer);
        store.commit();
        assert_eq!(seen(&store), empty);
    }
}
