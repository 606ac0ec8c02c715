//! Lists that are written in parts: the first items, and single ones after them.

use std::{borrow::Cow, ops::Range};

use ogive_failure::codes;
use ogive_json::Scanner;
use ogive_plan::{LeafKind, OutField, OutSource};

use super::{Cut, Emit, Filter, Frame, Null, ObjectOutcome, Respond};
use crate::{
    output::Output,
    store::{ListRange, RecordId, Value},
};

/// An item that is written by itself.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    /// An object, or a list of them.
    Composite(Value),
    /// A leaf, or a list of them, as it was answered.
    Leaf(LeafKind, &'a [u8]),
}

/// Writes an item of a list: that of an entry of an object's output. Nothing if it is null and may not be.
pub(crate) fn write_item<V: Filter>(
    input: Respond<'_, '_>,
    (record, entry, index): (RecordId, usize, u32),
    item: Item<'_>,
    filter: V,
) -> ObjectOutcome<V> {
    let layout = &input.store.plan().layouts[input.store.layout(record)];
    let out = Output::unreserved(input.store);
    let mut emit = Emit::new(input, out, filter);
    let Some(field) = layout.output.get(entry) else {
        return ObjectOutcome {
            body: None,
            too_long: false,
            filter: emit.filter,
        };
    };
    let (start, lists) = (emit.out.position(), field.wrapping.lists());
    emit.frames.push(Frame::Object {
        record,
        slots: emit.store.slots(record),
        layout,
        steps: &[],
        next: entry + 1,
        empty: false,
        start,
    });
    emit.frames.push(Frame::List {
        field,
        list: ListRange { start: 0, len: 0 },
        next: index + 1,
        layer: lists,
        start,
    });
    match item {
        Item::Composite(value) => emit.put_composite(field, lists.saturating_sub(1), value),
        Item::Leaf(kind, raw) => {
            if let Err(null) = emit.put_leaf_item(field, kind, raw) {
                emit.put_null(null);
            }
        }
    }
    emit.walk();
    let too_long = emit.out.is_too_long();
    let is_there = !emit.is_null && !too_long;
    ObjectOutcome {
        body: is_there.then(|| emit.out.finish()),
        too_long,
        filter: emit.filter,
    }
}

/// Most items of a list of leaves that are sent one after the other: what is noted of them is not counted as memory of the
/// request. Longer lists are answered whole.
const LEAVES_MAX: usize = 1 << 16;

/// Where the items of a list of leaves stand; `None` if it is none, or too long.
pub(crate) fn leaf_items(raw: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut scanner = Scanner::with_depth_max(raw, Scanner::DEPTH_MAX);
    if raw.first() != Some(&b'[') {
        return None;
    }
    let mut items = Vec::new();
    let mut is_next = scanner.begin_array().ok()?;
    while is_next {
        if items.len() == LEAVES_MAX {
            return None;
        }
        items.push(scanner.skip_value().ok()?);
        is_next = scanner.next_item().ok()?;
    }
    Some(items)
}

impl<'p, V: Filter> Emit<'_, 'p, V> {
    /// Writes the first items of a list, behind its key.
    pub(super) fn put_cut(
        &mut self,
        field: &'p OutField,
        (record, entry): (RecordId, usize),
        cut: Cut,
    ) {
        let Some(initial) = cut else {
            let message =
                || Cow::Borrowed("The argument initialCount of @stream is negative or null.");
            self.push_error(codes::INVALID_INITIAL_COUNT, message, &[], None);
            return self.put_null(Null::Reported);
        };
        match field.source {
            OutSource::Object(slot) => {
                let value = self.store.value(record, slot);
                let lists = field.wrapping.lists();
                let Value::List(list) = value else {
                    return self.put_composite(field, lists, value);
                };
                let len = list.len.min(initial);
                self.put_composite(field, lists, Value::List(ListRange { len, ..list }));
                if len < list.len {
                    self.filter.streams(record, entry);
                }
            }
            OutSource::Leaf(slot, kind) => {
                let value = self.store.value(record, slot);
                if let Err(null) =
                    self.put_first_leaves(field, kind, value, (record, entry), initial)
                {
                    self.put_null(null);
                }
            }
            OutSource::Typename | OutSource::Local(_) | OutSource::Null => {
                self.put_null(Null::Answered);
            }
        }
    }

    fn put_first_leaves(
        &mut self,
        field: &'p OutField,
        kind: LeafKind,
        value: Value,
        (record, entry): (RecordId, usize),
        initial: u32,
    ) -> Result<(), Null> {
        let Value::Raw(range) = value else {
            return self.put_leaf(field, kind, value);
        };
        let raw = self.store.raw(range);
        let items = leaf_items(raw).unwrap_or_default();
        let initial = initial as usize;
        if items.len() <= initial {
            return self.put_leaf(field, kind, value);
        }
        let mut first = vec![b'['];
        if let (Some(from), Some(to)) = (items.first(), initial.checked_sub(1)) {
            first.extend_from_slice(&raw[from.start..items[to].end]);
        }
        first.push(b']');
        let before = self.filter.mark();
        let written = self.put_leaves(field, kind, &first);
        if let Err(null) = written.unwrap_or(Err(Null::Answered)) {
            self.filter.reset(before);
            return Err(null);
        }
        self.filter.streams(record, entry);
        Ok(())
    }

    fn put_leaf_item(&mut self, field: &OutField, kind: LeafKind, raw: &[u8]) -> Result<(), Null> {
        let item = field.wrapping.nullable().item().unwrap_or(field.wrapping);
        if item.is_list() {
            let field = OutField {
                wrapping: item,
                ..field.clone()
            };
            let before = self.filter.mark();
            let written = self.put_leaves(&field, kind, raw);
            let written = written.unwrap_or(Err(Null::Answered));
            if written.is_err() {
                self.filter.reset(before);
            }
            return written;
        }
        if raw == b"null" {
            return Err(Null::Answered);
        }
        self.put_scalar(kind, raw, &[])
    }
}
