//! Streams: what is left of lists (`@stream`), written item by item as their look-ups finish.
//!
//! An item that is null and may not be ends its stream with the errors, and takes nothing else with it. Entries of groups that
//! begin above the list are written with the item; what is deferred inside of it is announced with it.

use std::rc::Rc;

use ogive_plan::OutSource;

use crate::{
    incremental::{
        CompletedGroup, GroupData, GroupValues, IncrementalForm, Payload,
        delivery::{Delivery, Progress},
        errors::Piece,
        groups::{FIRST, Shown, Target},
        part::{Items, OpenStream, Part, PieceOutput, json},
    },
    respond::{Item, leaf_items},
    run::Run,
    store::{RecordId, Value},
};

impl Delivery<'_> {
    /// The streams of lists of which more is to come, as part of a key and a group.
    pub(super) fn open_streams(
        &mut self,
        run: &Run<'_>,
        lists: &[(RecordId, usize)],
        (key, group): (u32, Option<u32>),
    ) -> Vec<usize> {
        let store = run.store();
        let mut out = Vec::new();
        for (record, entry) in lists.iter().copied() {
            let layout = store.layout(record);
            self.steps += 1;
            let Some(row) = self.streams.get(layout, entry) else {
                continue;
            };
            if self.fragments.len() + self.open.len() >= self.groups_max {
                self.is_full = true;
                return out;
            }
            let outputs = &store.plan().layouts[layout];
            let (mut shown, mut waits_for) = (Shown::of(key), Rc::default());
            let items = match outputs.output[entry].source {
                OutSource::Object(slot) => {
                    let child = outputs
                        .slots
                        .get(usize::from(slot))
                        .and_then(|slot| slot.child);
                    let distinct = self.groups.form() == IncrementalForm::Distinct;
                    if let Some(child) = child.filter(|_| distinct) {
                        shown.floor = Some(self.groups.depth(child));
                        waits_for = self.groups.around_items(store.plan(), child);
                    }
                    match store.value(record, slot) {
                        Value::List(list) => Items::Objects(list),
                        _ => continue,
                    }
                }
                OutSource::Leaf(slot, kind) => match store.value(record, slot) {
                    Value::Raw(range) => {
                        let items = leaf_items(store.raw(range)).unwrap_or_default();
                        Items::Leaves(kind, range, items)
                    }
                    _ => continue,
                },
                OutSource::Typename | OutSource::Local(_) | OutSource::Null => continue,
            };
            out.push(self.open.len());
            self.open.push(OpenStream {
                row,
                record,
                shown,
                group,
                waits_for,
                items,
                next: self.streams.row(row).initial.unwrap_or_default(),
                id: 0,
            });
        }
        out
    }

    /// What the next item of a stream waits for; `None` if it can be written.
    pub(super) fn next_waits_for(&self, stream: &OpenStream, run: &Run<'_>) -> Option<Target> {
        let store = run.store();
        let row = self.streams.row(stream.row);
        let layout = &store.plan().layouts[row.layout];
        let pass = match layout.output.get(row.entry).map(|entry| &entry.source) {
            Some(OutSource::Object(slot)) => {
                let place = (stream.record, *slot);
                self.streams.pass_of_item(store, place, stream.next)
            }
            _ => self.streams.pass_of(store, stream.record),
        };
        let mut groups = stream.waits_for.iter().chain(&stream.group);
        let of_groups = groups.find_map(|group| self.groups.waits_for(pass, Some(*group)));
        of_groups.or_else(|| self.groups.waits_for(pass, None))
    }

    /// Writes items of a stream that can be written, up to a number of bytes, given those `before`, and as many as there is time
    /// for.
    pub(super) fn advance(
        &mut self,
        stream: usize,
        before: usize,
        payload: &mut Payload,
        run: &mut Run<'_>,
    ) -> Progress {
        let first = self.open[stream].next;
        let (mut bodies, mut errors, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut failed = None;
        let mut waits = false;
        while self.open[stream].next < self.open[stream].items.len()
            && (bodies.is_empty() || before + bytes < self.chunk_bytes && !self.is_sliced())
            && self.next_waits_for(&self.open[stream], run).is_none()
        {
            let was_complete = self.groups.is_complete();
            let written = self.write_next(stream, run);
            if self.is_untold && !was_complete {
                waits = true;
                break;
            }
            let Some(body) = written.body else {
                failed = Some(written.errors.unwrap_or_default());
                break;
            };
            if let Some(too_many) = self.item_parts(stream, run, &written.records, &written.lists) {
                failed = Some(too_many);
                break;
            }
            self.cost = self.cost.saturating_add(written.cost);
            bytes += body.len() + 1;
            bodies.push(body);
            if let Some(more) = written.errors {
                join(&more, &mut errors);
            }
            self.open[stream].next += 1;
        }
        let one = &self.open[stream];
        let label: Option<Box<str>> = self.streams.row(one.row).label.map(Box::from);
        let of_2022 = self.groups.form() == IncrementalForm::Repeated;
        let mut send = |data: GroupValues, at: u32, errors| {
            let item = of_2022.then_some(at);
            payload.incremental.push(GroupData {
                id: one.id,
                label: label.clone(),
                path: json(&one.path(&self.streams, run, item)),
                sub_path: None,
                data,
                errors,
            });
        };
        if !bodies.is_empty() {
            let errors = (!errors.is_empty()).then(|| errors.into());
            send(GroupValues::Items(bodies), first, errors);
        }
        if let Some(errors) = &failed
            && of_2022
        {
            send(GroupValues::NoItems, one.next, Some(errors.clone()));
        }
        let is_over = failed.is_some() || one.next >= one.items.len();
        if is_over {
            let errors = failed;
            payload
                .completed
                .push(CompletedGroup { id: one.id, errors });
        }
        match is_over {
            true => Progress::Over,
            false if waits && one.next == first => Progress::Wait,
            false => Progress::More,
        }
    }

    fn write_next(&mut self, stream: usize, run: &mut Run<'_>) -> PieceOutput {
        let one = &self.open[stream];
        let entry = self.streams.row(one.row).entry;
        let piece = Piece {
            shown: one.shown,
            record: one.record,
            item: Some((entry, one.next)),
        };
        match &one.items {
            Items::Objects(list) => {
                let value = run.store().item(*list, one.next);
                self.write_one(run, piece, Item::Composite(value))
            }
            Items::Leaves(kind, range, items) => {
                let item = items.get(one.next as usize).cloned().unwrap_or_default();
                let (kind, raw) = (*kind, run.store().shared(*range).slice(item));
                self.write_one(run, piece, Item::Leaf(kind, &raw))
            }
        }
    }

    /// Finds what is to come of an item; the errors if that is too much.
    fn item_parts(
        &mut self,
        stream: usize,
        run: &mut Run<'_>,
        records: &[RecordId],
        lists: &[(RecordId, usize)],
    ) -> Option<bytes::Bytes> {
        let before = self.candidates.len();
        let one = &self.open[stream];
        let (shown, group) = (one.shown, one.group);
        let piece = Piece {
            shown,
            ..Piece::of(shown.key, one.record)
        };
        let around = group.map(|group| (group, None));
        self.discover(run, (piece, None), around, records);
        let inner = self.open_streams(run, lists, (shown.key, group));
        self.candidates.extend(inner.into_iter().map(Part::Stream));
        debug_assert!(shown.key == FIRST || group.is_some());
        let too_many = self.too_many();
        if too_many.is_some() {
            // The item is not sent, so nothing in it is.
            self.candidates.truncate(before);
        }
        too_many
    }
}

/// Appends a list of errors to another one.
fn join(more: &[u8], list: &mut Vec<u8>) {
    if list.last() == Some(&b']') {
        list.pop();
        list.push(b',');
        list.extend_from_slice(more.get(1..).unwrap_or_default());
    } else {
        list.extend_from_slice(more);
    }
}
