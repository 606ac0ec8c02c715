//! Where an error belongs: from a subgraph's answer to places of the client's response.
//!
//! An error is told at places that are null because of it, or below one that is: never at a place that has a value.
//! What failed as a whole is told at every place that it was to bring, up to
//! [`failure_paths_max`](crate::ExecuteLimits::failure_paths_max) of them. Of an object that is null because non-null
//! fields of it failed the first of these is a place; of an object that stays, every field that failed is. A part that is
//! answered later stays or is null on its own.
//!
//! A subgraph chooses how many errors it reports and what they say of their places. So what one answer may make us look
//! at is bounded ([`LOOKS`]): errors beyond that are told without a place.

use ogive_plan::{Deferral, FetchId, LayoutId, OutField, OutSource, ShapeId};

use super::Absorb;
use crate::{
    envelope::Step,
    graphql_error::{Path, PathStep},
    scan::applies,
    shown::{is_null, lacks_type},
    store::{RecordId, Store, TypeState, Value},
};

/// For the places of the errors of one answer, so many objects are looked at for each object that it was to bring, and
/// for each error that the response has room for.
const LOOKS: usize = 16;

/// Some places, each once, and how many more there are.
#[derive(Debug)]
pub(crate) struct Places<'p> {
    pub(crate) list: Vec<Path<'p>>,
    pub(crate) beyond: usize,
    max: usize,
    /// Whether nobody wants to know how many more there are.
    ends: bool,
}

impl<'p> Places<'p> {
    pub(crate) fn new(max: usize) -> Self {
        Places {
            list: Vec::new(),
            beyond: 0,
            max,
            ends: false,
        }
    }
    /// The first one alone.
    pub(crate) fn one() -> Self {
        Places {
            ends: true,
            ..Places::new(1)
        }
    }
    pub(crate) fn add(&mut self, path: Path<'p>) {
        if self.list.len() >= self.max {
            self.beyond += usize::from(!self.ends);
        } else if !self.list.contains(&path) {
            self.list.push(path);
        }
    }
    /// Whether nothing is to be added.
    fn is_done(&self) -> bool {
        self.ends && self.list.len() >= self.max
    }
}

/// Adds the fields of an object that are null. If one of them must not be, the object is null: that field alone is told,
/// whatever became of the others. What is answered later is told apart from that (`part`: when a field is answered), as it
/// takes nothing of what is answered before with it.
fn add_null_fields<'p, I: Iterator<Item = &'p OutField>>(
    path: &Path<'p>,
    fields: impl Fn() -> I,
    part: impl Fn(&OutField) -> u32,
    places: &mut Places<'p>,
) {
    let add = |field: &'p OutField, places: &mut Places<'p>| {
        let mut path = path.clone();
        path.push(PathStep::Key(&field.key));
        places.add(path);
    };
    let takes_object = |field: &&OutField| {
        !path.is_empty() && field.wrapping.layer_is_non_null(field.wrapping.lists())
    };
    let is_first = |field: &&OutField| part(field) == Deferral::PRIMARY;
    if let Some(field) = fields().filter(is_first).find(takes_object) {
        // Nothing else is answered of it.
        return add(field, places);
    }
    let mut taken: Vec<u32> = Vec::new();
    for field in fields().filter(takes_object) {
        let part = part(field);
        if !taken.contains(&part) {
            taken.push(part);
            add(field, places);
        }
    }
    for field in fields().filter(|field| !taken.contains(&part(field))) {
        if places.is_done() {
            break;
        }
        add(field, places);
    }
}

impl<'p> Absorb<'_, 'p> {
    pub(crate) fn places(&self) -> Places<'p> {
        Places::new(self.store.limits().failure_paths_max)
    }

    /// Whether another object may be looked at for the place of an error; counts it.
    pub(crate) fn may_look(&self) -> bool {
        let left = self.looks_left.get().unwrap_or_else(|| {
            let lookups = self.gathered.lookups.iter();
            let objects: usize = lookups.map(|lookup| lookup.instances.len()).sum();
            (objects.saturating_add(self.store.limits().errors_max)).saturating_mul(LOOKS)
        });
        self.looks_left.set(Some(left.saturating_sub(1)));
        if left > 0 {
            self.errors.look();
        }
        left > 0
    }

    /// What is null of all that this fetch was to bring.
    pub(crate) fn affected(&self) -> Places<'p> {
        self.find_affected(self.places())
    }
    /// The first of it.
    pub(crate) fn first_affected(&self) -> Places<'p> {
        self.find_affected(Places::one())
    }
    fn find_affected(&self, mut places: Places<'p>) -> Places<'p> {
        if let (true, Some(root)) = (self.root, &self.fetch.root) {
            for field in self.null_fields(root.shape, Store::ROOT) {
                places.add(vec![PathStep::Key(&field.key)]);
                if places.is_done() {
                    break;
                }
            }
        }
        for at in 0..self.gathered.lookups.len() {
            self.affected_by(at, &mut places);
        }
        places
    }
    /// What is null of all that a look-up was to bring.
    pub(crate) fn affected_by(&self, lookup: usize, places: &mut Places<'p>) {
        for instance in self.gathered.lookups[lookup].instances.iter() {
            if places.is_done() || !self.may_look() {
                break;
            }
            let target = &self.fetch.lookups[lookup].targets[usize::from(instance.target)];
            self.affected_of(target.shape, instance.record, places);
        }
    }
    /// What is null of what an object was to get.
    pub(crate) fn affected_of(&self, shape: ShapeId, record: RecordId, places: &mut Places<'p>) {
        let Some(path) = self.store.visible_path(record) else {
            return;
        };
        if self.is_typeless(record) {
            return places.add(path);
        }
        let part = |field: &OutField| self.part_of(record, field);
        match self.null_fields(shape, record).next() {
            Some(_) => add_null_fields(&path, || self.null_fields(shape, record), part, places),
            // Only others need what it was to bring.
            None => add_null_fields(&path, || self.dependent_fields(record), part, places),
        }
    }

    /// When a field of a record is answered.
    fn part_of(&self, record: RecordId, field: &OutField) -> u32 {
        let plan = self.store.plan();
        let Some(deferral) = &plan.deferral else {
            return Deferral::PRIMARY;
        };
        let layout = self.store.layout(record);
        let mut entries = plan.layouts[layout].output.iter();
        let entry = entries.position(|entry| std::ptr::eq(entry, field));
        entry.map_or(Deferral::PRIMARY, |entry| deferral.of_output(layout, entry))
    }

    /// Whether an object is null for its type: it is none that clients may see, or it was not told and their fields depend
    /// on it.
    fn is_typeless(&self, record: RecordId) -> bool {
        self.store.type_state(record) != TypeState::Unknown
            && lacks_type(self.store, self.conditions, record)
    }
    /// The client's fields among those of a shape that are null in a record.
    fn null_fields(&self, shape: ShapeId, record: RecordId) -> impl Iterator<Item = &'p OutField> {
        let plan = self.store.plan();
        let shape = &plan.shapes[shape];
        let ty = self.store.known_type(record);
        let is_out = move |field: &OutField, slot| {
            let is_of_slot = match field.source {
                OutSource::Leaf(of, _) | OutSource::Object(of) => of == slot,
                OutSource::Typename | OutSource::Local(_) | OutSource::Null => false,
            };
            let of_type = match (&field.types, ty) {
                (Some(types), Some(ty)) => types.contains(ty.0),
                _ => true,
            };
            let (shown, granted) = (field.cond, field.granted);
            is_of_slot && of_type && self.conditions.hold(shown) && self.conditions.hold(granted)
        };
        let output = &plan.layouts[shape.layout].output;
        let fields = shape.fields.iter();
        fields
            .filter(move |field| applies(field, ty))
            .filter(move |field| is_null(self.store.value(record, field.slot)))
            .filter_map(move |field| output.iter().find(|out| is_out(out, field.slot)))
    }

    /// The client's fields of a record that fetches behind this one would have brought.
    fn dependent_fields(&self, record: RecordId) -> impl Iterator<Item = &'p OutField> {
        let layout = self.store.layout(record);
        let dependents = self.dependents.get_or_init(|| self.find_dependents());
        let mine = dependents.iter().filter(move |(of, _)| *of == layout);
        mine.flat_map(move |(_, shape)| self.null_fields(*shape, record))
    }
    fn find_dependents(&self) -> Vec<(LayoutId, ShapeId)> {
        let plan = self.store.plan();
        let mut open: Vec<FetchId> = self.fetch.successors.clone();
        let mut seen = open.clone();
        let mut found = Vec::new();
        while let Some(id) = open.pop() {
            let fetch = &plan.fetches[id];
            let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
            found.extend(targets.map(|target| (target.layout, target.shape)));
            for successor in &fetch.successors {
                if !seen.contains(successor) {
                    seen.push(*successor);
                    open.push(*successor);
                }
            }
        }
        found
    }

    /// What is null because a value is that others need of an object.
    pub(crate) fn affected_by_lack(&self, record: RecordId, places: &mut Places<'p>) {
        let Some(path) = self.store.visible_path(record) else {
            return;
        };
        for field in self.dependent_fields(record) {
            let mut path = path.clone();
            path.push(PathStep::Key(&field.key));
            places.add(path);
        }
    }

    /// The client path of `steps` below a record. An error if there is no place of that path, or it has a value; with an
    /// object if it is null and clients do not see it.
    pub(crate) fn map_path(
        &self,
        shape: ShapeId,
        record: RecordId,
        steps: &[Step<'_>],
    ) -> Result<Path<'p>, Option<RecordId>> {
        let plan = self.store.plan();
        let mut path = self.store.visible_path(record).ok_or(None)?;
        let (mut shape, mut record) = (&plan.shapes[shape], Some(record));
        // What is inside of a value that passes as it stands is not known.
        let (mut value, mut is_inside) = (Value::Failed, false);
        let mut steps = steps.iter().peekable();
        while let Some(Step::Key(key)) = steps.next() {
            let ty = record.and_then(|record| self.store.known_type(record));
            let named = || shape.fields.iter().filter(|field| *field.key == **key);
            let field = named()
                .find(|field| applies(field, ty))
                .or_else(|| named().next().filter(|_| ty.is_none()))
                .ok_or(None)?;
            let slot = &plan.layouts[shape.layout].slots[usize::from(field.slot)];
            value = record.map_or(Value::Absent, |r| self.store.value(r, field.slot));
            let Some(key) = slot.client_key.as_deref() else {
                return Err(record.filter(|_| is_null(value)));
            };
            path.push(PathStep::Key(key));
            is_inside |= matches!(value, Value::Raw(_)) && steps.peek().is_some();
            for _ in 0..slot.lists {
                let Some(Step::Index(index)) = steps.peek() else {
                    break;
                };
                steps.next();
                path.push(PathStep::Index(*index));
                value = match value {
                    Value::List(list) => self.store.item(list, *index),
                    _ => Value::Absent,
                };
            }
            let Some(child) = field.shape else {
                break;
            };
            shape = &plan.shapes[child];
            record = match value {
                Value::Record(record) => Some(record),
                _ => None,
            };
        }
        if is_inside || is_null(value) {
            Ok(path)
        } else {
            Err(None)
        }
    }
}
