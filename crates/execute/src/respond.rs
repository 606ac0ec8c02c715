//! Stop 5, respond: from the store to the bytes of the response.
//!
//! The output lists of the layouts are walked in client order with an explicit stack, and the response is written as
//! it goes. Where null meets a non-null type (specification 6.4.4) what was written since the nearest nullable
//! ancestor began is taken back and replaced by null. An error is added unless one already lies at or below the
//! place, or the value was marked as failed.
//!
//! Start here for: [`respond`] (entry), `put_null` (null propagation), `put_leaves` (lists of leaves).

use std::{borrow::Cow, cell::Cell, ops::Range, rc::Rc};

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_failure::codes;
use ogive_json::{Kind, ScanError, Scanner, write_string};
use ogive_plan::{
    Derived, Layout, LayoutId, LeafKind, OutField, OutSource, OutStep, OutputCosts, Plan, SlotIndex,
};

use crate::{
    condition::Conditions,
    errors::{Errors, Stage},
    failure_report::FailureRecord,
    graphql_error::{GraphqlError, PathStep},
    leaf,
    output::{Output, Position, ResponseBody},
    shown::{LOOKED_AT_ALL_MAX, has_value, lacks_type},
    store::{ListRange, RecordId, Slots, Store, TypeState, Value},
};

/// What the response is made from.
pub(crate) struct Respond<'e, 'p> {
    pub(crate) store: &'e Store<'p>,
    pub(crate) conditions: &'e Conditions,
    pub(crate) locals: &'e [Bytes],
    pub(crate) errors: &'e mut Errors<'p>,
    /// Whether errors name the subgraph to blame, by its index.
    pub(crate) tells_service: &'e dyn Fn(u32) -> bool,
}

/// The response.
pub(crate) struct Responded {
    pub(crate) body: ResponseBody,
    /// Number of errors it carries...
    pub(crate) errors: usize,
    /// ... and of all there are.
    pub(crate) errors_total: usize,
    /// What operators were not told of yet.
    pub(crate) news: Vec<FailureRecord>,
    /// What it costs, if that was asked for.
    pub(crate) cost: Option<u64>,
    /// See [`ExecuteOutput::cost_is_partial`](crate::ExecuteOutput::cost_is_partial).
    pub(crate) cost_is_partial: bool,
}

/// What is written of one object.
pub(crate) struct ObjectOutcome<V> {
    /// The object; nothing if it is null for what is in it.
    pub(crate) body: Option<ResponseBody>,
    /// Whether it would have been too long.
    pub(crate) too_long: bool,
    pub(crate) filter: V,
}

/// Where an error was told, a value may have come since: takes the paths of such errors away.
pub(crate) fn forget_paths(input: &mut Respond<'_, '_>) {
    let (store, conditions) = (input.store, input.conditions);
    let left = Cell::new(LOOKED_AT_ALL_MAX);
    let has_value = |path: &[PathStep<'_>]| has_value(store, conditions, path, &left);
    input.errors.forget_paths(has_value);
}

/// Writes what a filter shows of an object, and adds errors of what is null for it.
pub(crate) fn write_object<V: Filter>(
    input: Respond<'_, '_>,
    record: RecordId,
    filter: V,
) -> ObjectOutcome<V> {
    let id = input.store.layout(record);
    let out = Output::unreserved(input.store);
    let mut emit = Emit::new(input, out, filter);
    emit.open_object(record, id);
    emit.walk();
    let too_long = emit.out.is_too_long();
    let is_there = !emit.is_null && !too_long;
    ObjectOutcome {
        body: is_there.then(|| emit.out.finish()),
        too_long,
        filter: emit.filter,
    }
}

mod counted;
mod errors;
mod filter;
mod items;
pub(crate) use counted::{Counted, CountedFields};
use filter::Whole;
pub(crate) use filter::{Cut, Filter};
pub(crate) use items::{Item, leaf_items, write_item};

/// Writes the response.
pub(crate) fn respond(input: Respond<'_, '_>) -> Responded {
    respond_with(input, Whole).0
}

/// Writes the response and counts what it costs.
pub(crate) fn respond_counted(input: Respond<'_, '_>, costs: &OutputCosts) -> Responded {
    let counted = Counted::new(Whole, costs, costs.base);
    let (responded, counted) = respond_with(input, counted);
    Responded {
        cost: Some(counted.as_ref().map_or(costs.base, Counted::cost)),
        cost_is_partial: counted.as_ref().is_none_or(Counted::is_partial),
        ..responded
    }
}

/// Also gives the filter, unless nothing that was written was of use.
#[inline(always)]
fn respond_with<V: Filter>(mut input: Respond<'_, '_>, filter: V) -> (Responded, Option<V>) {
    forget_paths(&mut input);
    input.errors.drop_repeated();
    let out = Output::new(input.store);
    let mut emit = Emit::new(input, out, filter);
    let mut is_whole = true;
    emit.out.literal(b"{\"data\":");
    emit.open_object(Store::ROOT, Plan::ROOT);
    emit.walk();
    if emit.out.is_too_long() {
        emit.out.restart();
        is_whole = false;
        emit.out.literal(b"{\"data\":null");
        let message = "The limit response_bytes_max was reached.";
        let error = GraphqlError::new(codes::EXECUTION_LIMIT_EXCEEDED, message);
        emit.errors.push(Stage::Respond, error);
    }
    let (n_errors, total) = (emit.errors.len(), emit.errors.total());
    let mut out = emit.out;
    let news = emit.errors.take_news();
    if n_errors > 0 {
        out.literal(b",\"errors\":");
        emit.errors.write(out.text());
    }
    out.byte(b'}');
    let responded = Responded {
        body: out.finish(),
        errors: n_errors,
        errors_total: total,
        news,
        cost: None,
        cost_is_partial: false,
    };
    (responded, is_whole.then_some(emit.filter))
}

struct Emit<'e, 'p, V> {
    plan: &'p Plan,
    store: &'e Store<'p>,
    conditions: &'e Conditions,
    locals: &'e [Bytes],
    errors: &'e mut Errors<'p>,
    out: Output<'e, 'p>,
    frames: Vec<Frame<'p>>,
    derived: &'p Derived,
    /// The text of objects that have duplicates ([`Store::duplicate`]), where no null had to be explained, and how often text had
    /// been taken back before: what is older may be gone.
    written: Option<FastMap<RecordId, (u32, Range<usize>)>>,
    /// Those of them that are open.
    being_written: Vec<Writing>,
    /// How often text was taken back for a null, or an error looked for or added. (Null where it may be is text as any.)
    nulls: u32,
    /// How often text was taken back. Emptying `written` each time would take as long as it has ever been.
    taken_back: u32,
    /// How often in a row duplicates differed.
    differences: u32,
    /// Room to compare them in.
    compared: Vec<(RecordId, RecordId)>,
    tells_service: &'e dyn Fn(u32) -> bool,
    /// Whether anything failed before this was written.
    has_failures: bool,
    /// Which fetches bring which slot, of those that were looked for.
    wanted: FastMap<(LayoutId, SlotIndex), Rc<[Option<u32>]>>,
    /// Which subgraph answers which slot, of those that were looked for.
    blamed: Vec<(LayoutId, SlotIndex, Option<u32>)>,
    filter: V,
    /// Whether nothing is left: the object that all is in is null.
    is_null: bool,
}

/// An object whose text is to be written again.
struct Writing {
    record: RecordId,
    /// Frames below it.
    frames: usize,
    /// Where it begins.
    start: Position,
    /// Nulls before it.
    nulls: u32,
}

/// How often in a row duplicates may differ before they are no longer compared.
const DIFFERENCES_MAX: u32 = 16;

/// So many items of a list are written before it is seen to that the response does not become too long. (What is between
/// them is at most as long as the operation and a few answers.)
const ITEMS_UNCHECKED: u32 = 64;

/// Objects and lists inside of each other that there is room for at first.
const FRAMES: usize = 4;

/// An object or list that is being written.
enum Frame<'p> {
    Object {
        record: RecordId,
        /// Where its values are.
        slots: Slots,
        layout: &'p Layout,
        steps: &'p [OutStep],
        /// Entry to look at next; the one before is being written.
        next: usize,
        empty: bool,
        /// Where it begins in the output.
        start: Position,
    },
    List {
        field: &'p OutField,
        list: ListRange,
        next: u32,
        /// Layer of the list within the field's wrapping.
        layer: u8,
        start: Position,
    },
}

/// A value that turned out to be null.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// It was answered so, or is so by the schema.
    Answered,
    /// Nothing was answered.
    Absent,
    /// A request that was to bring it failed.
    Failed,
    /// An object whose type would have been told by a request that failed, and its place.
    Untold(LayoutId),
    /// An error was added that says why.
    Reported,
}

impl Null {
    fn of(value: Value) -> Self {
        match value {
            Value::Failed => Null::Failed,
            Value::Absent => Null::Absent,
            _ => Null::Answered,
        }
    }
}

impl<'e, 'p, V: Filter> Emit<'e, 'p, V> {
    #[inline(always)]
    fn new(input: Respond<'e, 'p>, out: Output<'e, 'p>, filter: V) -> Self {
        let plan = input.store.plan();
        Emit {
            plan,
            store: input.store,
            conditions: input.conditions,
            locals: input.locals,
            has_failures: input.errors.total() > 0,
            errors: input.errors,
            out,
            // The object of the operation at least.
            frames: Vec::with_capacity(FRAMES),
            derived: plan.derived(),
            written: None,
            being_written: Vec::new(),
            nulls: 0,
            taken_back: 0,
            differences: 0,
            compared: Vec::new(),
            tells_service: input.tells_service,
            wanted: FastMap::default(),
            blamed: Vec::new(),
            filter,
            is_null: false,
        }
    }

    fn walk(&mut self) {
        while (V::WHOLE || self.frames.len() > self.filter.base())
            && let Some(frame) = self.frames.last_mut()
        {
            match frame {
                Frame::Object {
                    record,
                    slots,
                    layout,
                    steps,
                    next,
                    empty,
                    ..
                } => {
                    // Most entries are leaves that everybody has, as they must be seen.
                    let values = self.store.values_from(*slots);
                    let (mut at, mut first) = (*next, *empty);
                    while let Some(step) = steps.get(at)
                        && let Some(slot) = step.leaf
                        && let Some(Value::Raw(range)) = values.get(usize::from(slot))
                        && range.is_verbatim()
                    {
                        let key = &self.derived.keys[step.key as usize];
                        if V::COUNTS {
                            let lists = layout.output[at].wrapping.lists();
                            self.filter.member(at);
                            self.filter.leaf(self.store, *range, lists);
                        }
                        self.out.put_member(first, key, *range);
                        first = false;
                        at += 1;
                    }
                    (*next, *empty) = (at, first);
                    // Then come objects that everybody has.
                    if let Some(step) = steps.get(*next)
                        && let Some(slot) = step.object
                        && let Some(Value::Record(below)) = values.get(usize::from(slot))
                    {
                        if V::COUNTS {
                            self.filter.member(*next);
                        }
                        *next += 1;
                        let first = std::mem::replace(empty, false);
                        self.out
                            .put_key(first, &self.derived.keys[step.key as usize]);
                        self.put_object(*below);
                        continue;
                    }
                    if !V::WHOLE {
                        *next = self.filter.next(self.store.layout(*record), *next);
                    }
                    let Some(field) = layout.output.get(*next) else {
                        self.out.byte(b'}');
                        self.frames.pop();
                        self.filter.end();
                        if !self.being_written.is_empty() {
                            self.remember();
                        }
                        continue;
                    };
                    *next += 1;
                    self.put_field(field);
                }
                Frame::List {
                    field,
                    list,
                    next,
                    layer,
                    ..
                } => {
                    if *next >= list.len {
                        self.out.byte(b']');
                        self.frames.pop();
                        self.filter.end();
                        continue;
                    }
                    if *next % ITEMS_UNCHECKED == 0 && self.out.is_too_long() {
                        return;
                    }
                    let value = self.store.item(*list, *next);
                    let (field, layer) = (*field, *layer - 1);
                    if *next > 0 {
                        self.out.byte(b',');
                    }
                    *next += 1;
                    self.put_composite(field, layer, value);
                }
            }
        }
    }

    fn put_field(&mut self, field: &'p OutField) {
        let Some(Frame::Object {
            record,
            layout,
            next,
            empty,
            ..
        }) = self.frames.last_mut()
        else {
            return;
        };
        let (record, layout, at) = (*record, *layout, *next - 1);
        let ty = self.store.known_type(record);
        let (conditions, filter) = (self.conditions, &self.filter);
        let id = self.store.layout(record);
        let emitted = |at: usize, field: &OutField| {
            filter.shows(id, at)
                && conditions.hold(field.cond)
                && match &field.types {
                    Some(types) => ty.is_some_and(|ty| types.contains(ty.0)),
                    None => true,
                }
        };
        if !emitted(at, field) {
            return;
        }
        if field.repeated {
            let earlier = &self.derived.earlier[id];
            let mut before = earlier.get(at).copied().flatten();
            while let Some(entry) = before {
                // An entry that applies was emitted, or one before it was.
                if emitted(entry as usize, &layout.output[entry as usize]) {
                    return;
                }
                before = earlier[entry as usize];
            }
        }
        if V::COUNTS {
            self.filter.member(at);
        }
        let first = std::mem::replace(empty, false);
        let key = self.derived.outputs[id][at].key;
        let key = &self.derived.keys[key as usize];
        if !conditions.hold(field.granted) {
            self.out.put_key(first, key);
            return match conditions.mask(self.plan, field.granted) {
                Some(mask) => write_string(self.out.text(), mask),
                None => self.put_refused(),
            };
        }
        if !V::WHOLE
            && let Some(cut) = self.filter.cut(id, at)
        {
            self.out.put_key(first, key);
            return self.put_cut(field, (record, at), cut);
        }
        if let OutSource::Leaf(slot, _) = field.source
            && let Value::Raw(range) = self.store.value(record, slot)
            && range.is_verbatim()
        {
            if V::COUNTS {
                self.filter.leaf(self.store, range, field.wrapping.lists());
            }
            return self.out.put_member(first, key, range);
        }
        self.out.put_key(first, key);
        match field.source {
            OutSource::Object(slot) => {
                let value = self.store.value(record, slot);
                self.put_composite(field, field.wrapping.lists(), value);
            }
            OutSource::Leaf(slot, kind) => {
                let value = self.store.value(record, slot);
                if let Err(null) = self.put_leaf(field, kind, value) {
                    self.put_null(null);
                }
            }
            OutSource::Typename => match ty.and_then(|ty| self.plan.types.get(ty)) {
                Some(name) => write_string(self.out.text(), name),
                None => self.put_null(Null::Answered),
            },
            OutSource::Null => self.put_null(Null::Answered),
            OutSource::Local(index) => match self.locals.get(index as usize) {
                Some(value) if &**value != b"null" => self.out.literal(value),
                _ => self.put_null(Null::Answered),
            },
        }
    }

    /// Writes an object or list of objects at the current position, or opens it.
    fn put_composite(&mut self, field: &'p OutField, layer: u8, value: Value) {
        match value {
            Value::List(list) if layer > 0 => {
                self.filter.begin(None);
                self.frames.push(Frame::List {
                    field,
                    list,
                    next: 0,
                    layer,
                    start: self.out.position(),
                });
                self.out.byte(b'[');
            }
            Value::Record(record) if layer == 0 => self.put_object(record),
            // The whole value was found to be what the client may see.
            Value::Raw(range) if range.is_verbatim() => {
                if V::COUNTS {
                    self.filter.value(self.store, self.conditions, range, layer);
                }
                self.out.put(range);
            }
            value => self.put_null(Null::of(value)),
        }
    }

    /// Writes an object at the current position, or opens it.
    #[inline(always)]
    fn put_object(&mut self, record: RecordId) {
        let id = self.store.layout(record);
        let layout = &self.plan.layouts[id];
        let is_known = matches!(self.store.type_state(record), TypeState::Known(_));
        // Most are of a known type that everybody may see.
        if is_known && layout.restricted.is_empty() {
            return self.open_object(record, id);
        }
        self.put_other_object(record, id);
    }

    #[inline(never)]
    fn put_other_object(&mut self, record: RecordId, id: LayoutId) {
        let layout = &self.plan.layouts[id];
        let state = self.store.type_state(record);
        let is_refused = layout.restricted.iter().any(|restricted| {
            let may_be = match state {
                TypeState::Known(ty) => restricted.types.contains(ty.0),
                TypeState::Unknown => true,
                TypeState::Failed | TypeState::Rejected => false,
            };
            may_be && !self.conditions.hold(restricted.granted)
        });
        if is_refused {
            return self.put_refused();
        }
        let failed = match state {
            TypeState::Known(_) => return self.open_object(record, id),
            TypeState::Unknown => false,
            TypeState::Failed | TypeState::Rejected => true,
        };
        if !lacks_type(self.store, self.conditions, record) {
            return self.open_object(record, id);
        }
        if failed {
            return self.put_null(Null::Untold(id));
        }
        self.filter.untold();
        if self.only_counts() || !self.is_explained() {
            let message = || Cow::Borrowed("The object's concrete type is unknown.");
            self.push_error(codes::SUBREQUEST_UNEXPECTED_TYPE, message, &[], None);
        }
        self.put_null(Null::Reported);
    }

    /// Writes null for what the caller may not see.
    fn put_refused(&mut self) {
        self.nulls += 1;
        let message = || Cow::Borrowed("Unauthorized field or type");
        self.push_error(codes::UNAUTHORIZED_FIELD_OR_TYPE, message, &[], None);
        self.put_null(Null::Reported);
    }

    #[inline(always)]
    fn open_object(&mut self, record: RecordId, id: LayoutId) {
        if V::WHOLE
            && !V::COUNTS
            && let Some(duplicate) = self.store.duplicate(record)
            && self.open_duplicate(record, duplicate)
        {
            return;
        }
        if V::COUNTS {
            let ty = self.store.known_type(record);
            self.filter.enter(record, id, ty);
        }
        self.filter.begin(Some((record, id)));
        self.frames.push(Frame::Object {
            record,
            slots: self.store.slots(record),
            layout: &self.plan.layouts[id],
            // The steps know of no filter.
            steps: if V::WHOLE {
                &self.derived.outputs[id]
            } else {
                &[]
            },
            next: 0,
            empty: true,
            start: self.out.position(),
        });
        self.out.byte(b'{');
    }

    /// Writes the text of an object's duplicate, or notes that its own is to be written again.
    #[inline(never)]
    fn open_duplicate(&mut self, record: RecordId, duplicate: RecordId) -> bool {
        if self.put_again(record, duplicate) {
            return true;
        }
        if record == duplicate {
            self.being_written.push(Writing {
                record,
                frames: self.frames.len(),
                start: self.out.fresh(),
                nulls: self.nulls,
            });
        }
        false
    }

    /// Writes the text of an object's duplicate, if it was written and looks the same.
    fn put_again(&mut self, record: RecordId, duplicate: RecordId) -> bool {
        let written = self.written.as_ref().and_then(|all| all.get(&duplicate));
        let Some((_, text)) = written.filter(|(before, _)| *before == self.taken_back) else {
            return false;
        };
        if self.differences >= DIFFERENCES_MAX
            || !self
                .store
                .are_alike((record, duplicate), &mut self.compared)
        {
            self.differences += 1;
            return false;
        }
        self.differences = 0;
        self.out.again(text.clone());
        true
    }
    /// Notes that an object is written, if it was to be noted.
    #[inline(never)]
    fn remember(&mut self) {
        let depth = self.frames.len();
        // Some were taken back in the meantime.
        while self.being_written.last().is_some_and(|w| w.frames > depth) {
            self.being_written.pop();
        }
        if let Some(writing) = self.being_written.pop_if(|w| w.frames == depth)
            && writing.nulls == self.nulls
            && let Some(text) = self.out.text_since(writing.start)
        {
            let written = self.written.get_or_insert_default();
            written.insert(writing.record, (self.taken_back, text));
        }
    }

    /// Writes null at the current position, or, where that is not allowed, instead of the nearest ancestor where it
    /// is.
    fn put_null(&mut self, null: Null) {
        let mut explained = match null {
            Null::Reported => true,
            Null::Answered => false,
            Null::Absent if !self.may_be_null() => false,
            _ => self.has_failures && self.explain_failure(null),
        };
        loop {
            if !V::WHOLE && self.frames.len() < self.filter.base() {
                self.is_null = true;
                return;
            }
            let Some((field, layer)) = self.position() else {
                // Above the root.
                self.is_null = true;
                self.out.literal(b"null");
                return;
            };
            if !field.wrapping.layer_is_non_null(layer) {
                self.out.literal(b"null");
                return;
            }
            // What is written from here on depends on what is around it.
            self.nulls += 1;
            if !explained {
                self.explain_null(field, &[]);
                explained = true;
            }
            if let Some(Frame::Object { start, .. } | Frame::List { start, .. }) = self.frames.pop()
            {
                self.out.truncate(start);
                self.taken_back += 1;
                self.filter.take_back();
            }
        }
    }

    /// Whether null is a value of what is written.
    fn may_be_null(&self) -> bool {
        let position = self.position();
        position.is_none_or(|(field, layer)| !field.wrapping.layer_is_non_null(layer))
    }

    /// The field being written and the layer of its wrapping that the innermost frame is at.
    fn position(&self) -> Option<(&'p OutField, u8)> {
        match self.frames.last()? {
            Frame::Object { layout, next, .. } => {
                let field = layout.output.get(next.checked_sub(1)?)?;
                Some((field, field.wrapping.lists()))
            }
            Frame::List { field, layer, .. } => Some((field, layer - 1)),
        }
    }

    fn put_leaf(&mut self, field: &'p OutField, kind: LeafKind, value: Value) -> Result<(), Null> {
        let store = self.store;
        match value {
            Value::Raw(range) if range.is_verbatim() => {
                self.filter.leaf(store, range, field.wrapping.lists());
                self.out.put(range);
                Ok(())
            }
            Value::Raw(range) => {
                let raw = store.raw(range);
                if field.wrapping.is_list() {
                    // It is written item by item, in full.
                    if self.out.is_too_long() {
                        return Ok(());
                    }
                    let before = self.filter.mark();
                    let written = self
                        .put_leaves(field, kind, raw)
                        .unwrap_or(Err(Null::Answered));
                    if written.is_err() {
                        self.filter.reset(before);
                    }
                    return written;
                }
                if let Some(Cow::Borrowed(same)) = leaf::check(self.plan, kind, raw)
                    && same.len() == raw.len()
                {
                    self.filter.scalar();
                    self.out.put(range);
                    return Ok(());
                }
                self.put_scalar(kind, raw, &[])
            }
            value => Err(Null::of(value)),
        }
    }

    fn put_scalar(&mut self, kind: LeafKind, raw: &[u8], open: &[OpenList]) -> Result<(), Null> {
        if let Some(checked) = leaf::check(self.plan, kind, raw) {
            self.filter.scalar();
            self.out.literal(&checked);
            return Ok(());
        }
        let message = || {
            let ty = leaf::type_name(kind);
            Cow::Owned(format!("The subgraph's value is not of type {ty}."))
        };
        self.push_error(codes::SUBREQUEST_INVALID_VALUE, message, open, Some(raw));
        Err(Null::Reported)
    }

    /// Writes a list of leaves, nested as the field's wrapping says. The outer `Err` cannot happen, for the text was
    /// validated; the inner one says that the whole field is null.
    fn put_leaves(
        &mut self,
        field: &OutField,
        kind: LeafKind,
        raw: &[u8],
    ) -> Result<Result<(), Null>, ScanError> {
        let mut scanner = Scanner::with_depth_max(raw, Scanner::DEPTH_MAX);
        let wrapping = field.wrapping;
        let outermost = wrapping.lists();
        let mut open: Vec<OpenList> = Vec::with_capacity(usize::from(outermost));
        let mut marks: Vec<u64> = Vec::new();
        loop {
            // A value of layer `outermost - open.len()`.
            let layer = outermost - open.len() as u8;
            let kind_found = scanner.peek()?;
            let written = if kind_found == Kind::Null {
                scanner.null()?;
                Err(Null::Answered)
            } else if layer == 0 {
                let range = scanner.skip_value()?;
                self.put_scalar(kind, &raw[range], &open)
            } else if kind_found == Kind::Array {
                let start = self.out.position();
                self.out.byte(b'[');
                if scanner.begin_array()? {
                    if V::COUNTS {
                        marks.push(self.filter.mark());
                    }
                    open.push((start, 0));
                    continue;
                }
                self.out.byte(b']');
                Ok(())
            } else {
                let value = &raw[scanner.skip_value()?];
                let message = || Cow::Borrowed("The subgraph did not answer a list.");
                self.push_error(codes::SUBREQUEST_INVALID_VALUE, message, &open, Some(value));
                Err(Null::Reported)
            };
            if let Err(null) = written {
                let mut layer = layer;
                if wrapping.layer_is_non_null(layer) && null != Null::Reported {
                    self.explain_null(field, &open);
                }
                while wrapping.layer_is_non_null(layer) {
                    let Some((start, _)) = open.pop() else {
                        return Ok(Err(Null::Reported));
                    };
                    while scanner.next_item()? {
                        scanner.skip_value()?;
                    }
                    self.out.truncate(start);
                    if V::COUNTS
                        && let Some(mark) = marks.pop()
                    {
                        self.filter.reset(mark);
                    }
                    layer += 1;
                }
                if open.is_empty() && layer == outermost {
                    return Ok(Err(Null::Reported));
                }
                self.out.literal(b"null");
            }
            // A value is complete.
            loop {
                let Some((_, index)) = open.last_mut() else {
                    return Ok(Ok(()));
                };
                if scanner.next_item()? {
                    *index += 1;
                    self.out.byte(b',');
                    break;
                }
                self.out.byte(b']');
                open.pop();
                if V::COUNTS {
                    marks.pop();
                }
            }
        }
    }
}

/// An open list of leaves: where it begins in the output, and the index of the item that is being read.
type OpenList = (Position, u32);
