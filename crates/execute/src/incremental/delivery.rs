//! What is written when.
//!
//! What is written at one time of one object is a *unit*: its entries of one key. Writing one brings to light what else
//! its objects have, which are units of their own. A *fragment* is a group at one object; it has the units that are
//! written with its group, and is complete when all of them are. It is announced (`pending`) when the fragment around it
//! is complete; one that has nothing of its own is never announced, and those in it are in its place.
//!
//! A *slice* is what is done at one time: so many steps, then others on the thread have their turn.
//!
//! A *stream* is what is left of a list at one object: it is announced with what is written of the list, and every item of
//! it is written by itself (`items`).

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_failure::codes;

use crate::{
    graphql_error::GraphqlError,
    incremental::{
        CompletedGroup, GroupData, GroupValues, IncrementalForm, InitialData, Payload,
        PendingGroup,
        errors::{ErrorPlaces, Piece, push},
        filter::KeyFilter,
        groups::{FIRST, Groups},
        part::{Fragment, OpenStream, Outcome, Part, PieceOutput, Unit, json},
        pending::{Announced, PendingParts},
        streams::Streams,
    },
    limits::ExecuteLimits,
    respond::{
        Counted, CountedFields, Filter, Item, ObjectOutcome, Respond, forget_paths, write_item,
        write_object,
    },
    run::Run,
    store::{RecordId, Store},
};

/// See the module documentation.
pub(crate) struct Delivery<'p> {
    pub(crate) groups: Groups<'p>,
    pub(crate) streams: Streams<'p>,
    pub(super) groups_max: usize,
    /// Bytes of items that leave together, about.
    pub(super) chunk_bytes: usize,
    pub(super) fragments: Vec<Fragment>,
    /// Fragments by group and object.
    pub(super) known: FastMap<(u32, RecordId), usize>,
    pub(super) units: Vec<Unit>,
    pub(super) open: Vec<OpenStream>,
    /// What was announced and is not complete.
    pending: PendingParts,
    /// What to announce, unless it has nothing of its own.
    pub(super) candidates: Vec<Part>,
    next_id: u32,
    placed: ErrorPlaces,
    /// Whether nothing has come since errors lost the paths that lead to values.
    is_current: bool,
    stage: Stage,
    /// Parts, pieces, groups and errors that were looked at...
    pub(crate) steps: u64,
    /// ... and how many at the end of this slice.
    slice_end: u64,
    /// Whether there were too many fragments and streams.
    pub(super) is_full: bool,
    /// Whether what an object is will only be told by what is asked still.
    pub(super) is_untold: bool,
    /// What was sent costs so much, if somebody counts it.
    pub(crate) cost: u64,
    /// Whether what was fetched and counted is not sent.
    pub(crate) cost_is_partial: bool,
    /// Fields that were counted, where some are sent several times.
    counted: Option<CountedFields>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Initial,
    Groups,
    Over,
}

/// What is to be done.
pub(crate) enum Step {
    /// A payload is to be sent.
    Payload(Payload),
    /// There is more to do, but it was long enough.
    Pause,
    /// There is nothing to send yet.
    Wait,
}

/// What became of a part.
pub(super) enum Progress {
    /// Nothing more comes of it.
    Over,
    /// More comes.
    More,
    /// It has to wait until nothing is asked any more.
    Wait,
}

/// Steps of a slice: a millisecond's work, about.
const SLICE_STEPS: u64 = 2_048;

impl<'p> Delivery<'p> {
    pub(crate) fn new(groups: Groups<'p>, streams: Streams<'p>, limits: &ExecuteLimits) -> Self {
        let repeats = groups.form() == IncrementalForm::Repeated;
        Delivery {
            cost: 0,
            cost_is_partial: false,
            counted: repeats.then(CountedFields::default),
            groups,
            streams,
            groups_max: limits.deferred_groups_max,
            chunk_bytes: limits.stream_chunk_bytes,
            open: Vec::new(),
            fragments: Vec::new(),
            known: FastMap::default(),
            units: Vec::new(),
            pending: PendingParts::default(),
            candidates: Vec::new(),
            next_id: 0,
            placed: ErrorPlaces::default(),
            is_current: false,
            stage: Stage::Initial,
            steps: 0,
            slice_end: 0,
            is_full: false,
            is_untold: false,
        }
    }
    /// Nobody takes anything any more.
    pub(crate) fn stop(&mut self) {
        self.stage = Stage::Over;
    }
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Takes note of what came: parts that waited for it may be ready.
    pub(crate) fn refresh(&mut self, run: &Run<'_>) {
        self.is_current = false;
        let reached = self.groups.take_reached();
        let parts = if self.groups.is_idle() {
            self.pending.take_all_waiting()
        } else {
            let waiting = reached.into_iter();
            let waiting = waiting.flat_map(|target| self.pending.take_waiting(target));
            waiting.collect()
        };
        for part in parts {
            self.wait(part, run);
        }
    }
    /// Whether there is more to send now.
    pub(crate) fn has_more(&self) -> bool {
        self.stage == Stage::Groups && self.pending.has_ready()
    }
    /// Whether it is time to let others have their turn.
    pub(super) fn is_sliced(&self) -> bool {
        self.steps >= self.slice_end
    }

    /// What is to be done with what is there.
    pub(crate) fn step(&mut self, run: &mut Run<'_>) -> Step {
        self.slice_end = self.steps + SLICE_STEPS;
        let mut payload = Payload::default();
        match self.stage {
            Stage::Over => return Step::Wait,
            Stage::Initial if !self.groups.is_ready(0, None) => return Step::Wait,
            Stage::Initial => {
                let Some(initial) = self.initial(run) else {
                    return Step::Wait;
                };
                payload.initial = Some(initial);
                self.announce(&mut payload, run);
                self.stage = Stage::Groups;
            }
            Stage::Groups => {
                let waits = self.write_ready(&mut payload, run);
                if payload.completed.is_empty() && payload.incremental.is_empty() {
                    let is_paused = !waits && self.pending.has_ready();
                    return if is_paused { Step::Pause } else { Step::Wait };
                }
            }
        }
        payload.has_next = !self.pending.is_empty();
        if !payload.has_next {
            self.stage = Stage::Over;
        }
        Step::Payload(payload)
    }

    /// Writes parts that are ready until a payload is large enough or the slice over. Whether all have to wait until nothing
    /// is asked any more.
    fn write_ready(&mut self, payload: &mut Payload, run: &mut Run<'_>) -> bool {
        let (mut bytes, mut counted) = (0, 0);
        while bytes < self.chunk_bytes && !self.is_sliced() {
            if self.is_untold && !self.groups.is_complete() {
                return true;
            }
            let Some((id, part)) = self.pending.take_ready() else {
                break;
            };
            self.steps += 1;
            let progress = match part {
                Part::Fragment(fragment) => self.complete(fragment, payload, run),
                Part::Stream(stream) => self.advance(stream, bytes, payload, run),
            };
            match progress {
                Progress::Over => {}
                Progress::More => self.wait((id, part), run),
                Progress::Wait => self.pending.add((id, part), None),
            }
            self.announce(payload, run);
            bytes += payload.bytes(counted);
            counted = payload.incremental.len();
        }
        false
    }

    /// Keeps a part until it can be written.
    fn wait(&mut self, (id, part): Announced, run: &Run<'_>) {
        self.steps += 1;
        let waits_for = match part {
            Part::Fragment(fragment) => {
                let fragment = &self.fragments[fragment];
                let pass = self.streams.pass_of(run.store(), fragment.record);
                self.groups.waits_for(pass, Some(fragment.group))
            }
            Part::Stream(stream) => self.next_waits_for(&self.open[stream], run),
        };
        self.pending.add((id, part), waits_for);
    }

    /// The initial response; `None` if it has to wait for everything, since too much would be deferred, or since what an
    /// object is will be told with a deferred part.
    fn initial(&mut self, run: &mut Run<'_>) -> Option<InitialData> {
        let root = Piece::of(FIRST, Store::ROOT);
        let written = self.write(run, root);
        self.discover(run, (root, None), None, &written.records);
        for stream in self.open_streams(run, &written.lists, (FIRST, None)) {
            self.candidates.push(Part::Stream(stream));
        }
        if self.is_full || self.is_untold {
            (self.is_full, self.is_untold) = (false, false);
            self.groups.defer_nothing();
            self.streams.stream_nothing();
            self.fragments.clear();
            self.known.clear();
            self.units.clear();
            self.open.clear();
            self.candidates.clear();
            self.placed = ErrorPlaces::default();
            self.counted = self.counted.as_ref().map(|_| CountedFields::default());
            if !self.groups.is_ready(0, None) {
                return None;
            }
            return self.initial(run);
        }
        self.cost = self.cost.saturating_add(written.cost);
        Some(InitialData {
            data: written.body,
            errors: written.errors,
        })
    }

    /// Writes what an object has of one key: its values, its errors, and the objects and lists of which more is to come.
    pub(super) fn write(&mut self, run: &mut Run<'_>, piece: Piece) -> PieceOutput {
        self.write_with(run, piece, None)
    }
    /// Writes an item of a list.
    pub(super) fn write_one(
        &mut self,
        run: &mut Run<'_>,
        piece: Piece,
        item: Item<'_>,
    ) -> PieceOutput {
        self.write_with(run, piece, Some(item))
    }
    fn write_with(
        &mut self,
        run: &mut Run<'_>,
        piece: Piece,
        item: Option<Item<'_>>,
    ) -> PieceOutput {
        let costs = run.costs();
        let counted = &mut self.counted;
        let (groups, streams) = (&self.groups, &self.streams);
        let base = if piece.item.is_some() { 2 } else { 0 };
        let (mut own, mut cost, mut is_partial) = (0, 0, false);
        let is_current = std::mem::replace(&mut self.is_current, true);
        if !is_current {
            self.placed.forget();
        }
        let mut written = run.write(|mut input| {
            if !is_current {
                forget_paths(&mut input);
            }
            own = input.errors.listed();
            let filter = KeyFilter::new(groups, streams, piece.shown, base);
            let Some(costs) = costs else {
                return put(input, piece, item, filter);
            };
            let mut filter = Counted::new(filter, costs, 0).once(counted.take());
            if let Some(item) = piece.item {
                filter = filter.of_item(input.store, piece.record, item);
            }
            let outcome = put(input, piece, item, filter);
            let is_told = !outcome.filter.inner.is_untold || groups.is_complete();
            is_partial = is_told && (outcome.body.is_none() || outcome.filter.is_partial());
            let (filter, once);
            (cost, filter, once) = outcome.filter.end(outcome.body.is_some() && is_told);
            *counted = once;
            ObjectOutcome {
                body: outcome.body,
                too_long: outcome.too_long,
                filter,
            }
        });
        self.cost_is_partial |= is_partial;
        let mut out = PieceOutput {
            body: None,
            errors: None,
            records: Vec::new(),
            lists: Vec::new(),
            cost,
        };
        if written.filter.is_untold && !self.groups.is_complete() {
            self.is_untold = true;
            return out;
        }
        if written.body.is_some() {
            out.records = std::mem::take(&mut written.filter.written);
            out.lists = std::mem::take(&mut written.filter.lists);
        }
        let (store, errors) = run.writing();
        let placed = self
            .placed
            .of_piece((store, groups, streams), errors, piece, own);
        self.steps += 4 + placed.looked_at;
        let mut list = placed.list;
        if written.too_long || written.body.is_none() && list.is_empty() {
            let error = if written.too_long {
                let message = "The limit response_bytes_max was reached.";
                GraphqlError::new(codes::EXECUTION_LIMIT_EXCEEDED, message)
            } else {
                let message = "Null was answered where none may be.";
                GraphqlError::new(codes::NON_NULL_VIOLATION, message)
            };
            add(&error, &mut list);
        }
        out.errors = (!list.is_empty()).then(|| Bytes::from(list));
        out.body = written.body;
        out
    }

    /// Announces the candidates that have something to come; of others, those in them.
    fn announce(&mut self, payload: &mut Payload, run: &mut Run<'_>) {
        let mut at = 0;
        while let Some(part) = self.candidates.get(at).copied() {
            at += 1;
            self.steps += 1;
            let id = self.next_id;
            let (path, label) = match part {
                Part::Fragment(fragment) => {
                    let units = &self.units;
                    let is_to_come = |unit: &usize| !matches!(units[*unit].outcome, Outcome::Sent);
                    let one = &mut self.fragments[fragment];
                    if !one.units.iter().any(is_to_come) {
                        let children = std::mem::take(&mut one.children).into_iter();
                        self.candidates.extend(children.map(Part::Fragment));
                        continue;
                    }
                    one.id = Some(id);
                    let path = json(&run.store().path(one.record));
                    (path, self.groups.label(one.group))
                }
                Part::Stream(stream) => {
                    let one = &mut self.open[stream];
                    one.id = id;
                    let label = self.streams.row(one.row).label.map(Box::from);
                    (json(&one.path(&self.streams, run, None)), label)
                }
            };
            payload.pending.push(PendingGroup { id, path, label });
            self.next_id += 1;
            self.wait((id, part), run);
        }
        self.candidates.clear();
    }

    /// Writes what is missing of a fragment, then sends it; as much as there is time for.
    fn complete(&mut self, fragment: usize, payload: &mut Payload, run: &mut Run<'_>) -> Progress {
        let Some(id) = self.fragments[fragment].id else {
            return Progress::Over;
        };
        // Units come to light while others are written.
        while let Some(unit) = self.fragments[fragment].next_unwritten() {
            if self.is_sliced() {
                return Progress::More;
            }
            if let Outcome::Waiting = self.units[unit].outcome {
                self.units[unit].outcome = self.outcome(unit, fragment, run);
            }
            match &self.units[unit].outcome {
                Outcome::Waiting => return Progress::Wait,
                Outcome::Failed(errors) => {
                    let errors = errors.clone();
                    self.fail(fragment, id, errors, payload, run);
                    self.fragments[fragment].id = None;
                    return Progress::Over;
                }
                Outcome::Written(..) | Outcome::Sent => {}
            }
            self.fragments[fragment].written += 1;
        }
        while let Some(unit) = self.fragments[fragment].next_unsent() {
            if self.is_sliced() {
                return Progress::More;
            }
            self.send(unit, fragment, payload, run);
            self.fragments[fragment].sent += 1;
        }
        payload.completed.push(CompletedGroup { id, errors: None });
        let children = std::mem::take(&mut self.fragments[fragment].children);
        let children = children.into_iter().map(Part::Fragment);
        self.candidates.extend(children);
        self.fragments[fragment].id = None;
        Progress::Over
    }

    fn outcome(&mut self, unit: usize, fragment: usize, run: &mut Run<'_>) -> Outcome {
        let piece = self.units[unit].piece;
        let was_complete = self.groups.is_complete();
        let written = self.write(run, piece);
        if self.is_untold && !was_complete {
            return Outcome::Waiting;
        }
        let Some(data) = written.body else {
            return Outcome::Failed(written.errors.unwrap_or_default());
        };
        let group = self.fragments[fragment].group;
        let around = Some((group, Some(fragment)));
        self.discover(run, (piece, Some(piece.record)), around, &written.records);
        let streams = self.open_streams(run, &written.lists, (piece.shown.key, Some(group)));
        self.units[unit].streams = streams;
        match self.too_many() {
            Some(errors) => Outcome::Failed(errors),
            None => Outcome::Written(data, written.errors, written.cost),
        }
    }

    /// The errors of what had too many parts, if it had.
    pub(super) fn too_many(&mut self) -> Option<Bytes> {
        std::mem::take(&mut self.is_full).then(|| {
            self.cost_is_partial = true;
            let message = "The limit deferred_groups_max was reached.";
            let mut list = Vec::new();
            let error = GraphqlError::new(codes::EXECUTION_LIMIT_EXCEEDED, message);
            add(&error, &mut list);
            Bytes::from(list)
        })
    }

    fn fail(
        &mut self,
        fragment: usize,
        id: u32,
        errors: Bytes,
        payload: &mut Payload,
        run: &mut Run<'_>,
    ) {
        let one = &self.fragments[fragment];
        if self.groups.form() == IncrementalForm::Repeated {
            let (store, _) = run.writing();
            payload.incremental.push(GroupData {
                id,
                label: self.groups.label(one.group),
                path: json(&store.path(one.record)),
                sub_path: None,
                data: GroupValues::NoObject,
                errors: Some(errors.clone()),
            });
        }
        payload.completed.push(CompletedGroup {
            id,
            errors: Some(errors),
        });
    }

    /// Sends a unit, unless it was sent.
    fn send(&mut self, unit: usize, fragment: usize, payload: &mut Payload, run: &mut Run<'_>) {
        let one = &mut self.units[unit];
        let outcome = std::mem::replace(&mut one.outcome, Outcome::Sent);
        let Outcome::Written(data, errors, cost) = outcome else {
            return;
        };
        self.cost = self.cost.saturating_add(cost);
        self.steps += 2;
        let (store, _) = run.writing();
        let path = store.path(one.piece.record);
        // Of its fragments that wait, the one that is nearest.
        let mut nearest = (fragment, store.path(self.fragments[fragment].record).len());
        for other in &one.fragments {
            self.steps += 1;
            let fragment = &self.fragments[*other];
            let len = store.path(fragment.record).len();
            if fragment.id.is_some() && len > nearest.1 {
                nearest = (*other, len);
            }
        }
        let sub_path = path.get(nearest.1..).filter(|rest| !rest.is_empty());
        payload.incremental.push(GroupData {
            id: self.fragments[nearest.0].id.unwrap_or_default(),
            label: self.groups.label(self.fragments[nearest.0].group),
            path: json(&path),
            sub_path: sub_path.map(json),
            data: GroupValues::Object(data),
            errors,
        });
        let streams = std::mem::take(&mut self.units[unit].streams);
        self.candidates
            .extend(streams.into_iter().map(Part::Stream));
    }
}

/// Writes an object, or an item of a list.
fn put<V: Filter>(
    input: Respond<'_, '_>,
    piece: Piece,
    item: Option<Item<'_>>,
    filter: V,
) -> ObjectOutcome<V> {
    let Some(item) = item else {
        return write_object(input, piece.record, filter);
    };
    let (entry, index) = piece.item.unwrap_or_default();
    write_item(input, (piece.record, entry, index), item, filter)
}

/// Adds an error to a list that may be complete.
fn add(error: &GraphqlError<'_>, list: &mut Vec<u8>) {
    if list.last() == Some(&b']') {
        list.pop();
    }
    push(error, list);
    list.push(b']');
}
