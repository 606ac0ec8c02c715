//! Errors of values that are null, or cannot be used: where they are, and which subgraph is to blame.

use std::{borrow::Cow, rc::Rc};

use ogive_base::id::Id as _;
use ogive_failure::{ErrorCode, codes};
use ogive_plan::{Fetch, FetchId, LayoutId, OutField, Plan, ShapeId, SlotIndex};

use super::{Emit, Filter, Frame, Null, OpenList};
use crate::{
    errors::{FailureOrigin, Stage},
    graphql_error::{GraphqlError, Path, PathStep},
    shown::slot_of,
};

impl<'p, V: Filter> Emit<'_, 'p, V> {
    /// Client path of the position being written, with further list indexes.
    pub(super) fn path(&self, open: &[OpenList]) -> Path<'p> {
        let mut lists = Vec::new();
        let mut path = Vec::new();
        for frame in self.frames.iter().rev() {
            match frame {
                Frame::List { next, .. } => lists.push(next.saturating_sub(1)),
                Frame::Object {
                    record,
                    layout,
                    next,
                    ..
                } => {
                    path = self.store.path(*record);
                    if let Some(field) = layout.output.get(next.wrapping_sub(1)) {
                        path.push(PathStep::Key(&field.key));
                    }
                    break;
                }
            }
        }
        path.extend(lists.into_iter().rev().map(PathStep::Index));
        path.extend(open.iter().map(|(_, index)| PathStep::Index(*index)));
        path
    }
    /// Whether an error lies at or below the current position.
    pub(super) fn is_explained(&mut self) -> bool {
        self.nulls += 1;
        let path = self.path(&[]);
        self.errors.explains(&path)
    }
    /// Whether an error would neither be written nor is it worth finding out whether there is one already.
    pub(super) fn only_counts(&self) -> bool {
        self.errors.is_full() && self.nulls > NULLS_LOOKED_UP_MAX
    }
    /// Adds an error for null at a non-null position, unless there is one. Where there is no room for it, it is only
    /// counted.
    pub(super) fn explain_null(&mut self, field: &OutField, open: &[OpenList]) {
        self.nulls += 1;
        if self.only_counts() {
            return self.errors.leave_out(1);
        }
        let path = self.path(open);
        if self.errors.explains(&path) {
            return;
        }
        if self.errors.is_full() {
            self.errors.leave_out(1);
        } else {
            let message = format!(
                "Cannot return null for non-nullable field {}.",
                field.coordinate
            );
            let error = GraphqlError::new(codes::NON_NULL_VIOLATION, message).at(path);
            self.push_blaming(error);
        }
    }
    /// Sees to it that an error tells why the value that is written is null, if something failed that was to bring it. Says
    /// whether one does.
    #[cold]
    #[inline(never)]
    pub(super) fn explain_failure(&mut self, null: Null) -> bool {
        self.nulls += 1;
        let failed = null != Null::Absent;
        if self.only_counts() {
            return failed;
        }
        let path = self.path(&[]);
        let Some((place, slot)) = self.slot_of_value() else {
            return failed;
        };
        let (layout, slot) = match null {
            Null::Untold(layout) => (layout, TYPE),
            _ => (place, slot),
        };
        let plan = self.plan;
        let fetches = self.wanted.entry((layout, slot));
        let fetches = Rc::clone(fetches.or_insert_with(|| nearness(plan, layout, slot).into()));
        let origin = FailureOrigin {
            plan,
            fetches: &fetches,
            only_unplaced: !failed,
            may_move: V::WHOLE,
        };
        self.errors.explain(path, &origin) || failed
    }
    pub(super) fn push_error(
        &mut self,
        code: ErrorCode,
        message: impl FnOnce() -> Cow<'static, str>,
        open: &[OpenList],
        value: Option<&[u8]>,
    ) {
        self.nulls += 1;
        let mut error = GraphqlError::new(code, message());
        error.value = value.map(kind_of);
        if self.errors.is_full() {
            // Told, but not worth the work of finding out where.
            return self.push_blaming(error);
        }
        let error = error.at(self.path(open));
        self.push_blaming(error);
    }
    /// Adds an error of the subgraph that answers what is being written.
    fn push_blaming(&mut self, mut error: GraphqlError<'p>) {
        error.subgraph = self.subgraph();
        let told = error.subgraph.filter(|at| (self.tells_service)(*at));
        let name = told.and_then(|at| self.plan.subgraphs.get(at as usize));
        error.service = name.map(|name| &**name);
        self.errors.push(Stage::Respond, error);
    }
    /// The subgraph that answers the field being written, if there is only one.
    fn subgraph(&mut self) -> Option<u32> {
        let (layout, slot) = self.slot_of_value()?;
        let known = |(l, s, _): &&(LayoutId, SlotIndex, Option<u32>)| (*l, *s) == (layout, slot);
        if let Some((.., subgraph)) = self.blamed.iter().find(known) {
            return *subgraph;
        }
        let mut subgraphs = writers(self.plan, layout, slot).map(|fetch| fetch.subgraph);
        let first = subgraphs.next();
        let subgraph = first.filter(|first| subgraphs.all(|other| other == *first));
        self.blamed.push((layout, slot, subgraph));
        subgraph
    }
    /// The slot of the field being written, and the place of its object.
    fn slot_of_value(&self) -> Option<(LayoutId, SlotIndex)> {
        let object = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Object {
                record,
                layout,
                next,
                ..
            } => Some((*record, layout.output.get(next.wrapping_sub(1))?)),
            Frame::List { .. } => None,
        });
        let (record, field) = object?;
        Some((self.store.layout(record), slot_of(field)?))
    }
}

/// Stands for the concrete type of a layout's objects among its slots.
const TYPE: SlotIndex = SlotIndex::MAX;

/// The fetches that bring the values of a slot, or tell [`TYPE`].
fn writers(plan: &Plan, layout: LayoutId, slot: SlotIndex) -> impl Iterator<Item = &Fetch> {
    let fetches = plan.fetches.as_slice().iter();
    fetches.filter(move |fetch| {
        let roots = fetch.root.iter().map(|root| root.shape);
        let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
        let mut open: Vec<ShapeId> = roots.chain(targets.map(|target| target.shape)).collect();
        while let Some(id) = open.pop() {
            let shape = &plan.shapes[id];
            open.extend(shape.fields.iter().filter_map(|field| field.shape));
            let tells = slot == TYPE && shape.typename_key.is_some();
            let brings = || shape.fields.iter().any(|field| field.slot == slot);
            if shape.layout == layout && (tells || brings()) {
                return true;
            }
        }
        false
    })
}

/// By fetch: 0 if it brings the values of a slot, 1 if such a one waits for it, and so on; `None` for all others.
fn nearness(plan: &Plan, layout: LayoutId, slot: SlotIndex) -> Vec<Option<u32>> {
    let mut near = vec![None; plan.fetches.len()];
    let mut found: Vec<&Fetch> = writers(plan, layout, slot).collect();
    for (at, (_, fetch)) in plan.fetches.iter().enumerate() {
        if found.iter().any(|other| std::ptr::eq(*other, fetch)) {
            near[at] = Some(0);
        }
    }
    for steps in 1.. {
        let next: Vec<FetchId> = found
            .iter()
            .flat_map(|fetch| fetch.dependencies.iter().copied())
            .collect();
        found.clear();
        for id in next {
            if near[id.index()].is_none() {
                near[id.index()] = Some(steps);
                found.push(&plan.fetches[id]);
            }
        }
        if found.is_empty() {
            break;
        }
    }
    near
}

/// So many nulls are looked up among the errors there are, if there is no room for another one; those beyond are counted
/// as errors of their own, which some may not be.
const NULLS_LOOKED_UP_MAX: u32 = 10_000;

/// What kind of value a text is, which was validated.
fn kind_of(value: &[u8]) -> Box<str> {
    let bytes = value.len();
    match value.first() {
        Some(b'"') => format!("a string of {} bytes", bytes.saturating_sub(2)).into(),
        Some(b'{') => format!("an object of {bytes} bytes").into(),
        Some(b'[') => format!("a list of {bytes} bytes").into(),
        Some(b't' | b'f') => "a boolean".into(),
        Some(b'n') => "null".into(),
        _ => format!("a number of {bytes} bytes").into(),
    }
}
