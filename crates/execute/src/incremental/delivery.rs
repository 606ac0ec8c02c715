//! What is written when.
//!
//! What is written at one time of one object is a *unit*: its entries of one key. Writing one brings to light what else
//! its objects have, which are units of their own. A *fragment* is a group at one object; it has the units that are
//! written with its group, and is complete when all of them are. It is announced (`pending`) when the fragment around it
//! is complete; one that has nothing of its own is never announced, and those in it are in its place.

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_json::write_string;

use crate::{
    codes,
    graphql_error::{GraphqlError, PathStep},
    incremental::{
        CompletedGroup, GroupData, IncrementalForm, InitialData, Payload, PendingGroup,
        errors::{ErrorPlaces, Piece, push},
        filter::KeyFilter,
        groups::{FIRST, Groups},
    },
    limits::ExecuteLimits,
    output::ResponseBody,
    respond::{forget_paths, write_object},
    run::Run,
    store::{RecordId, Store},
};

/// See the module documentation.
pub(crate) struct Delivery<'p> {
    pub(crate) groups: Groups<'p>,
    groups_max: usize,
    fragments: Vec<Fragment>,
    /// Fragments by group and object.
    known: FastMap<(u32, RecordId), usize>,
    units: Vec<Unit>,
    /// Fragments that were announced and are not complete, in order.
    pending: Vec<usize>,
    /// Fragments to announce, unless they have nothing of their own.
    candidates: Vec<usize>,
    next_id: u32,
    placed: ErrorPlaces,
    stage: Stage,
    /// Whether there were too many fragments.
    is_full: bool,
    /// Whether what an object is will only be told by what is asked still.
    is_untold: bool,
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
    /// There is nothing to send yet.
    Wait,
}

struct Fragment {
    group: u32,
    record: RecordId,
    units: Vec<usize>,
    children: Vec<usize>,
    id: Option<u32>,
}

struct Unit {
    piece: Piece,
    fragments: Vec<usize>,
    outcome: Outcome,
}

enum Outcome {
    Waiting,
    Written(ResponseBody, Option<Bytes>),
    Failed(Bytes),
    Sent,
}

impl<'p> Delivery<'p> {
    pub(crate) fn new(groups: Groups<'p>, limits: &ExecuteLimits) -> Self {
        Delivery {
            groups,
            groups_max: limits.deferred_groups_max,
            fragments: Vec::new(),
            known: FastMap::default(),
            units: Vec::new(),
            pending: Vec::new(),
            candidates: Vec::new(),
            next_id: 0,
            placed: ErrorPlaces::default(),
            stage: Stage::Initial,
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

    /// What is to be done with what is there.
    pub(crate) fn step(&mut self, run: &mut Run<'_>) -> Step {
        let mut payload = Payload::default();
        match self.stage {
            Stage::Over => return Step::Wait,
            Stage::Initial if !self.groups.is_ready(None) => return Step::Wait,
            Stage::Initial => {
                let Some(initial) = self.initial(run) else {
                    return Step::Wait;
                };
                payload.initial = Some(initial);
                self.announce(&mut payload, run);
                self.stage = Stage::Groups;
            }
            Stage::Groups => {
                while let Some(at) = self.next_ready() {
                    let fragment = self.pending[at];
                    if !self.complete(fragment, &mut payload, run) {
                        break;
                    }
                    self.pending.remove(at);
                    self.announce(&mut payload, run);
                }
                if payload.completed.is_empty() {
                    return Step::Wait;
                }
            }
        }
        payload.has_next = !self.pending.is_empty();
        if !payload.has_next {
            self.stage = Stage::Over;
        }
        Step::Payload(payload)
    }

    fn next_ready(&self) -> Option<usize> {
        if self.is_untold && !self.groups.is_complete() {
            return None;
        }
        let is_ready = |at: &usize| self.groups.is_ready(Some(self.fragments[*at].group));
        self.pending.iter().position(is_ready)
    }

    /// The initial response; `None` if it has to wait for everything, since too much would be deferred, or since what an
    /// object is will be told with a deferred part.
    fn initial(&mut self, run: &mut Run<'_>) -> Option<InitialData> {
        let root = Piece {
            key: FIRST,
            record: Store::ROOT,
        };
        let (data, errors, written) = self.write(run, root);
        self.discover(run, root, None, &written);
        if self.is_full || self.is_untold {
            (self.is_full, self.is_untold) = (false, false);
            self.groups.defer_nothing();
            self.fragments.clear();
            self.known.clear();
            self.units.clear();
            self.candidates.clear();
            self.placed = ErrorPlaces::default();
            if !self.groups.is_ready(None) {
                return None;
            }
            return self.initial(run);
        }
        Some(InitialData { data, errors })
    }

    /// Writes what an object has of one key: its values, its errors, and the objects of which more is to come.
    fn write(
        &mut self,
        run: &mut Run<'_>,
        piece: Piece,
    ) -> (Option<ResponseBody>, Option<Bytes>, Vec<RecordId>) {
        let groups = &self.groups;
        let mut own = 0;
        let mut written = run.write(|mut input| {
            forget_paths(&mut input);
            own = input.errors.list().count();
            write_object(input, piece.record, KeyFilter::new(groups, piece.key))
        });
        if written.filter.is_untold && !self.groups.is_complete() {
            self.is_untold = true;
            return (None, None, Vec::new());
        }
        let records = match written.body {
            Some(_) => std::mem::take(&mut written.filter.written),
            None => Vec::new(),
        };
        let (store, errors) = run.writing();
        let mut list = self
            .placed
            .of_piece((store, groups), errors, piece, own)
            .unwrap_or_default();
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
        let errors = (!list.is_empty()).then(|| Bytes::from(list));
        (written.body, errors, records)
    }

    /// Finds the units of objects that were written, for a fragment if that was not the initial response.
    fn discover(
        &mut self,
        run: &mut Run<'_>,
        Piece { key, record: top }: Piece,
        fragment: Option<usize>,
        written: &[RecordId],
    ) {
        let mut keys: Vec<u32> = Vec::new();
        let is_distinct = self.groups.form() == IncrementalForm::Distinct;
        for record in written.iter().copied() {
            // All of the object itself came to light when it was written first.
            if is_distinct && fragment.is_some() && record == top {
                continue;
            }
            let (store, _) = run.writing();
            let layout = store.layout(record);
            let row = &store.plan().layouts[layout];
            keys.clear();
            for (entry, other) in row.output.iter().zip(self.groups.keys(layout)) {
                if *other != FIRST
                    && *other != key
                    && !keys.contains(other)
                    && run.applies(record, entry)
                {
                    keys.push(*other);
                }
            }
            for other in &keys {
                match self.groups.form() {
                    IncrementalForm::Distinct => self.add_unit(run, *other, record),
                    IncrementalForm::Repeated => {
                        let group = *other - 1;
                        let begins_here = self.groups.begins_at(group, layout);
                        if begins_here && self.is_inside(group, fragment, layout, &keys) {
                            let around = fragment.map(|fragment| self.fragments[fragment].group);
                            self.add_repeated(group, record, around.and(fragment));
                        }
                    }
                }
            }
        }
    }

    /// Whether a group that begins at a place is the next one inside of what is written there. Groups between them that
    /// have nothing of their own do not count.
    fn is_inside(
        &self,
        group: u32,
        fragment: Option<usize>,
        layout: ogive_plan::LayoutId,
        keys: &[u32],
    ) -> bool {
        let around = fragment.map(|fragment| self.fragments[fragment].group);
        let mut at = self.groups.parent(group);
        while at != around {
            let Some(between) = at else { return false };
            let has_own = keys.contains(&(between + 1));
            if has_own || !self.groups.begins_at(between, layout) {
                return false;
            }
            at = self.groups.parent(between);
        }
        true
    }

    /// Adds a unit to the fragments of its groups.
    fn add_unit(&mut self, run: &mut Run<'_>, key: u32, record: RecordId) {
        let unit = self.units.len();
        let mut fragments = Vec::new();
        for group in self.groups.of_key(key) {
            let fragment = self.fragment(run, group, record);
            fragments.extend(fragment);
        }
        for fragment in &fragments {
            self.fragments[*fragment].units.push(unit);
        }
        self.units.push(Unit {
            piece: Piece { key, record },
            fragments,
            outcome: Outcome::Waiting,
        });
    }
    /// The fragment of a group that an object is in, with those around it.
    fn fragment(&mut self, run: &mut Run<'_>, group: u32, inner: RecordId) -> Option<usize> {
        let (store, _) = run.writing();
        let mut record = inner;
        while !self.groups.begins_at(group, store.layout(record)) {
            record = store.parent(record)?;
        }
        if let Some(known) = self.known.get(&(group, record)) {
            return Some(*known);
        }
        // Nested no deeper than the operation is.
        let parent = match self.groups.parent(group) {
            Some(parent) => Some(self.fragment(run, parent, record)?),
            None => None,
        };
        self.add_fragment(group, record, parent)
    }
    fn add_fragment(
        &mut self,
        group: u32,
        record: RecordId,
        parent: Option<usize>,
    ) -> Option<usize> {
        if self.fragments.len() >= self.groups_max {
            self.is_full = true;
            return None;
        }
        let fragment = self.fragments.len();
        self.fragments.push(Fragment {
            group,
            record,
            units: Vec::new(),
            children: Vec::new(),
            id: None,
        });
        self.known.insert((group, record), fragment);
        match parent {
            Some(parent) => self.fragments[parent].children.push(fragment),
            None => self.candidates.push(fragment),
        }
        Some(fragment)
    }
    /// Adds a fragment that is written with all that it asks for.
    fn add_repeated(&mut self, group: u32, record: RecordId, parent: Option<usize>) {
        if let Some(fragment) = self.add_fragment(group, record, parent) {
            self.fragments[fragment].units.push(self.units.len());
            self.units.push(Unit {
                piece: Piece {
                    key: group + 1,
                    record,
                },
                fragments: vec![fragment],
                outcome: Outcome::Waiting,
            });
        }
    }

    /// Announces the candidates that have something to come; of others, those in them.
    fn announce(&mut self, payload: &mut Payload, run: &mut Run<'_>) {
        let mut at = 0;
        while let Some(fragment) = self.candidates.get(at).copied() {
            at += 1;
            let units = &self.units;
            let is_to_come = |unit: &usize| !matches!(units[*unit].outcome, Outcome::Sent);
            let one = &mut self.fragments[fragment];
            if !one.units.iter().any(is_to_come) {
                self.candidates.extend(std::mem::take(&mut one.children));
                continue;
            }
            one.id = Some(self.next_id);
            let (store, _) = run.writing();
            payload.pending.push(PendingGroup {
                id: self.next_id,
                path: json(&store.path(one.record)),
                label: self.groups.label(one.group),
            });
            self.next_id += 1;
            self.pending.push(fragment);
        }
        self.candidates.clear();
    }

    /// Writes what is missing of a fragment, and sends it. False if it has to wait for everything.
    fn complete(&mut self, fragment: usize, payload: &mut Payload, run: &mut Run<'_>) -> bool {
        let Some(id) = self.fragments[fragment].id else {
            return true;
        };
        let mut failed = None;
        let mut at = 0;
        // Units come to light while others are written.
        while let Some(unit) = self.fragments[fragment].units.get(at).copied() {
            at += 1;
            if let Outcome::Waiting = self.units[unit].outcome {
                self.units[unit].outcome = self.outcome(unit, fragment, run);
                if matches!(self.units[unit].outcome, Outcome::Waiting) {
                    return false;
                }
            }
            if let Outcome::Failed(errors) = &self.units[unit].outcome {
                failed = Some(errors.clone());
                break;
            }
        }
        if let Some(errors) = failed {
            self.fail(fragment, id, errors, payload, run);
        } else {
            for unit in self.fragments[fragment].units.clone() {
                self.send(unit, fragment, payload, run);
            }
            payload.completed.push(CompletedGroup { id, errors: None });
            let children = std::mem::take(&mut self.fragments[fragment].children);
            self.candidates.extend(children);
        }
        self.fragments[fragment].id = None;
        true
    }

    fn outcome(&mut self, unit: usize, fragment: usize, run: &mut Run<'_>) -> Outcome {
        let piece = self.units[unit].piece;
        let was_complete = self.groups.is_complete();
        let (data, errors, written) = self.write(run, piece);
        if self.is_untold && !was_complete {
            return Outcome::Waiting;
        }
        let Some(data) = data else {
            return Outcome::Failed(errors.unwrap_or_default());
        };
        self.discover(run, piece, Some(fragment), &written);
        if std::mem::take(&mut self.is_full) {
            let message = "The limit deferred_groups_max was reached.";
            let mut list = Vec::new();
            let error = GraphqlError::new(codes::EXECUTION_LIMIT_EXCEEDED, message);
            add(&error, &mut list);
            return Outcome::Failed(Bytes::from(list));
        }
        Outcome::Written(data, errors)
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
                data: None,
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
        let Outcome::Written(data, errors) = std::mem::replace(&mut one.outcome, Outcome::Sent)
        else {
            return;
        };
        let (store, _) = run.writing();
        let path = store.path(one.piece.record);
        // Of its fragments that wait, the one that is nearest.
        let mut nearest = (fragment, store.path(self.fragments[fragment].record).len());
        for other in &one.fragments {
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
            data: Some(data),
            errors,
        });
    }
}

/// Adds an error to a list that may be complete.
fn add(error: &GraphqlError<'_>, list: &mut Vec<u8>) {
    if list.last() == Some(&b']') {
        list.pop();
    }
    push(error, list);
    list.push(b']');
}

/// A path as a JSON list.
fn json(path: &[PathStep<'_>]) -> Bytes {
    let mut out = vec![b'['];
    for (at, step) in path.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match step {
            PathStep::Key(key) => write_string(&mut out, key),
            PathStep::Index(index) => out.extend_from_slice(index.to_string().as_bytes()),
        }
    }
    out.push(b']');
    Bytes::from(out)
}
