//! Where an error belongs: from a subgraph's answer to places of the client's response.
//!
//! An error is told at places that are null because of it, or below one that is: never at a place that has a value.
//! What failed as a whole is told at every place that it was to bring, in objects that others brought, too, up to
//! [`failure_paths_max`](crate::ExecuteLimits::failure_paths_max) of them. Of an object that is null because non-null
//! fields of it failed the first of these is a place; of an object that stays, every field that failed is. A part that is
//! answered later stays or is null on its own. An error whose path is of no use may mean whatever its answer left null.
//! Places that are null because something else could not be asked are found when the response is written
//! ([`Errors::explain`](crate::errors::Errors::explain)).
//!
//! A subgraph chooses how many errors it reports and what they say of their places. So what one answer may make us look
//! at is bounded ([`LOOKS`]): errors beyond that are told without a place.

use ogive_base::FastSet;
use ogive_plan::{Deferral, FetchId, LayoutId, OutField, OutSource, ShapeId, SlotIndex};

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
    /// Whether the subgraph did not say where: it may mean other places, too.
    pub(crate) is_guess: bool,
}

impl<'p> Places<'p> {
    pub(crate) fn new(max: usize) -> Self {
        Places {
            list: Vec::new(),
            beyond: 0,
            max,
            is_guess: false,
        }
    }
    /// One at most, which the subgraph may not mean.
    pub(crate) fn guess(path: Option<Path<'p>>) -> Self {
        Places {
            list: path.into_iter().collect(),
            is_guess: true,
            ..Places::new(1)
        }
    }
    pub(crate) fn add(&mut self, path: Path<'p>) {
        if self.list.len() >= self.max {
            self.beyond += 1;
        } else if !self.list.contains(&path) {
            self.list.push(path);
        }
    }
    /// How many there are.
    fn count(&self) -> usize {
        self.list.len() + self.beyond
    }
}

/// Adds the fields of an object that are null. If one of them must not be, the object is null: that field alone is told,
/// whatever became of the others. What is answered later is told apart from that (`part`: when a field is answered), as it
/// takes nothing of what is answered before with it. Says whether the object is null.
fn add_null_fields<'p, I: Iterator<Item = &'p OutField>>(
    path: &Path<'p>,
    fields: impl Fn() -> I,
    part: impl Fn(&OutField) -> u32,
    places: &mut Places<'p>,
) -> bool {
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
        add(field, places);
        return true;
    }
    let mut taken: FastSet<u32> = FastSet::default();
    for field in fields().filter(takes_object) {
        if taken.insert(part(field)) {
            add(field, places);
        }
    }
    for field in fields().filter(|field| !taken.contains(&part(field))) {
        add(field, places);
    }
    false
}

/// Where a subgraph's path leads.
pub(crate) enum PathEnd<'p> {
    /// To a place that is null, or below one, or to something inside of a value that passes as it stands.
    Place(Path<'p>),
    /// To something of an object that is null and that clients do not see.
    Hidden(RecordId),
    /// To a value, or to nothing.
    Nowhere,
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
        let mut places = self.places();
        if let (true, Some(root)) = (self.root, &self.fetch.root) {
            self.affected_of(root.shape, Store::ROOT, &mut places);
        }
        for at in 0..self.gathered.lookups.len() {
            self.affected_by(at, &mut places);
        }
        places
    }
    /// What is null of all that a look-up was to bring.
    pub(crate) fn affected_by(&self, lookup: usize, places: &mut Places<'p>) {
        for instance in self.gathered.lookups[lookup].instances.iter() {
            let target = &self.fetch.lookups[lookup].targets[usize::from(instance.target)];
            self.affected_of(target.shape, instance.record, places);
        }
    }
    /// What is null of what an object was to get, and of what the objects below it were to get.
    pub(crate) fn affected_of(&self, shape: ShapeId, record: RecordId, places: &mut Places<'p>) {
        let before = places.count();
        let mut open = vec![(shape, Value::Record(record))];
        while let Some((shape, value)) = open.pop() {
            if !self.may_look() {
                return;
            }
            match value {
                Value::Record(record) => self.affected_in(shape, record, places, &mut open),
                Value::List(list) => {
                    let items = (0..list.len).rev().map(|at| self.store.item(list, at));
                    open.extend(items.map(|item| (shape, item)));
                }
                _ => {}
            }
        }
        if places.count() == before
            && let Some(path) = self.store.visible_path(record)
        {
            // Only others need what it was to bring.
            let part = |field: &OutField| self.part_of(record, field);
            add_null_fields(&path, || self.dependent_fields(record), part, places);
        }
    }
    /// What is null of an object itself; objects in it are put on `open`.
    fn affected_in(
        &self,
        id: ShapeId,
        record: RecordId,
        places: &mut Places<'p>,
        open: &mut Vec<(ShapeId, Value)>,
    ) {
        let Some(path) = self.store.visible_path(record) else {
            return;
        };
        if self.is_typeless(record) {
            return places.add(path);
        }
        let part = |field: &OutField| self.part_of(record, field);
        if add_null_fields(&path, || self.null_fields(id, record), part, places) {
            return;
        }
        let plan = self.store.plan();
        let shape = &plan.shapes[id];
        let ty = self.store.known_type(record);
        let begin = open.len();
        for field in shape.fields.iter().filter(|field| applies(field, ty)) {
            match (self.store.value(record, field.slot), field.shape) {
                (value @ (Value::Record(_) | Value::List(_)), Some(child)) => {
                    self.add_null_items(&path, (record, field.slot), value, places);
                    open.push((child, value));
                }
                (Value::Raw(range), _) if self.is_of_answer(range) => {
                    self.add_nulls_inside(&path, (record, field.slot), range, places);
                }
                _ => {}
            }
        }
        open[begin..].reverse();
    }

    /// When a field of a record is answered.
    fn part_of(&self, record: RecordId, field: &OutField) -> u32 {
        let plan = self.store.plan();
        let Some(deferral) = &plan.deferral else {
            return Deferral::PRIMARY;
        };
        let layout = self.store.layout(record);
        let output = &plan.layouts[layout].output;
        // Entries of one list lie in order.
        let entry = output.partition_point(|entry| std::ptr::from_ref(entry) < field);
        let is_it = |entry: &OutField| std::ptr::eq(entry, field);
        if output.get(entry).is_some_and(is_it) {
            deferral.of_output(layout, entry)
        } else {
            Deferral::PRIMARY
        }
    }

    /// Whether an object is null for its type: it is none that clients may see, or it was not told and their fields depend
    /// on it.
    fn is_typeless(&self, record: RecordId) -> bool {
        self.store.type_state(record) != TypeState::Unknown
            && lacks_type(self.store, self.conditions, record)
    }
    /// The client's field that shows a slot of a record.
    pub(super) fn shown_field(&self, record: RecordId, slot: SlotIndex) -> Option<&'p OutField> {
        let output = &self.store.plan().layouts[self.store.layout(record)].output;
        let ty = self.store.known_type(record);
        output.iter().find(|field| {
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
        })
    }
    /// The client's fields among those of a shape that are null in a record.
    fn null_fields(&self, shape: ShapeId, record: RecordId) -> impl Iterator<Item = &'p OutField> {
        let shape = &self.store.plan().shapes[shape];
        let ty = self.store.known_type(record);
        let fields = shape.fields.iter();
        fields
            .filter(move |field| applies(field, ty))
            .filter(move |field| is_null(self.store.value(record, field.slot)))
            .filter_map(move |field| self.shown_field(record, field.slot))
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

    /// Where `steps` below a record lead in the client's response. What is null on the way is noted.
    pub(crate) fn map_path(
        &mut self,
        shape: ShapeId,
        record: RecordId,
        steps: &[Step<'_>],
    ) -> PathEnd<'p> {
        let plan = self.store.plan();
        let visible = self.store.visible_path(record);
        let is_visible = visible.is_some();
        let mut path = visible.unwrap_or_default();
        let object = record;
        let (mut shape, mut record) = (&plan.shapes[shape], Some(record));
        // What is inside of a value that passes as it stands is not known.
        let (mut value, mut is_inside) = (Value::Failed, false);
        let mut steps = steps.iter().peekable();
        while let Some(Step::Key(key)) = steps.next() {
            let ty = record.and_then(|record| self.store.known_type(record));
            let named = || shape.fields.iter().filter(|field| *field.key == **key);
            let field = named()
                .find(|field| applies(field, ty))
                .or_else(|| named().next().filter(|_| ty.is_none()));
            let slot =
                field.map(|field| &plan.layouts[shape.layout].slots[usize::from(field.slot)]);
            let (Some(field), Some(slot)) = (field, slot) else {
                // Something is null for what nobody asked for.
                return match record {
                    None if is_visible && !is_inside => PathEnd::Place(path),
                    _ => PathEnd::Nowhere,
                };
            };
            value = record.map_or(Value::Absent, |r| self.store.value(r, field.slot));
            if let Some(record) = record.filter(|_| is_null(value)) {
                self.errors.note_null(record, field.slot);
            }
            let Some(key) = slot.client_key.as_deref() else {
                return match record {
                    Some(record) if is_null(value) => PathEnd::Hidden(record),
                    // Clients see what is null around it.
                    None if is_visible && !is_inside => PathEnd::Place(path),
                    _ => PathEnd::Nowhere,
                };
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
        if !is_inside && !is_null(value) {
            PathEnd::Nowhere
        } else if is_visible {
            PathEnd::Place(path)
        } else {
            PathEnd::Hidden(object)
        }
    }
}
