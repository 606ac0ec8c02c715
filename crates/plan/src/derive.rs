//! Working out what the executor wants to know of a plan beyond its data ([`Derived`]).
//!
//! The heart is the *pass* rule: a value may go from a subgraph's answer to the client as it stands, if nothing but the
//! client wants it and it already looks as the client must see it. An object's shape passes if
//!
//! 1. its layout has one concrete type, and this shape is the only one that writes records of that layout;
//! 2. no representation reads anything in it;
//! 3. its response keys are the client's, in the client's order, each once, with the same lists;
//! 4. all objects below pass too;
//! 5. all in it is answered together with it, if there are deferred groups.
//!
//! Whether an actual answer is as expected (no null where none may be, leaves of the right kind) is found out while it
//! is scanned, by the [`Pattern`]; an answer that is not is read object by object, as those are that do not pass.

use std::sync::OnceLock;

use ogive_base::{BitSet, FastMap, FastSet, IdVec, id::Id};
use ogive_json::{Pattern, PatternField, PatternScalar, PatternValue};

use crate::{
    derived::{Derived, FieldFacts, Reusable, ShapeFacts},
    ids::*,
    ir::*,
    keys::{KeyTable, needs_no_escapes},
    lookups::lookup_facts,
    order::{LearnedOrder, MemberOrder},
    prefetch::prefetches,
    representation::Member,
    reuse_sources::{reuse_sources, writers},
    sizes::LearnedSizes,
    steps::{note_lists, out_steps, shape_steps},
};

impl Plan {
    /// What follows from the plan's data, which must not change afterwards.
    pub fn derived(&self) -> &Derived {
        self.derived.0.get_or_init(|| Box::new(derive(self)))
    }
    /// What could be reused within one execution.
    pub fn reusable(&self) -> &Reusable {
        self.derived().reuse.get_or_init(|| {
            let writers = writers(self);
            Reusable {
                sources: reuse_sources(self, &writers),
                prefetches: prefetches(self, &writers),
            }
        })
    }
}

impl LearnedOrder {
    /// Notes that field `next` of a shape came behind `field`, or first if `field` is none of its fields.
    pub fn learn<'o>(
        &'o self,
        plan: &Plan,
        shape: ShapeId,
        field: usize,
        next: usize,
    ) -> MemberOrder<'o> {
        let n_fields = || plan.shapes.iter().map(|(_, shape)| shape.fields.len());
        self.note(n_fields, shape, field, next)
    }
}

/// Entries of an output list that show one slot.
struct Shown<'p> {
    entries: Vec<&'p OutField>,
}

struct Deriver<'p> {
    plan: &'p Plan,
    pattern: Pattern,
    objects: FastMap<Vec<PatternField>, u32>,
    sets: FastMap<EnumId, u32>,
    /// Shapes by layout.
    n_shapes: IdVec<LayoutId, u32>,
    /// Fields that name a shape.
    n_uses: IdVec<ShapeId, u32>,
    /// Slots that representations read.
    captured: FastSet<(LayoutId, SlotIndex)>,
    facts: IdVec<ShapeId, Option<ShapeFacts>>,
    /// Objects of a shape that passes.
    passing: IdVec<ShapeId, Option<PatternValue>>,
}

fn derive(plan: &Plan) -> Derived {
    let mut deriver = Deriver {
        plan,
        pattern: Pattern::default(),
        objects: FastMap::default(),
        sets: FastMap::default(),
        n_shapes: plan.layouts.iter().map(|_| 0).collect(),
        n_uses: plan.shapes.iter().map(|_| 0).collect(),
        captured: captured_slots(plan),
        facts: plan.shapes.iter().map(|_| None).collect(),
        passing: plan.shapes.iter().map(|_| None).collect(),
    };
    for (_, shape) in plan.shapes.iter() {
        if shape.layout.index() < plan.layouts.len() {
            deriver.n_shapes[shape.layout] += 1;
        }
        for child in shape.fields.iter().filter_map(|field| field.shape) {
            if child.index() < plan.shapes.len() {
                deriver.n_uses[child] += 1;
            }
        }
    }
    let children_first = children_first(plan);
    for shape in &children_first {
        deriver.shape(*shape);
    }
    let mut classes = FastMap::default();
    let mut shapes: IdVec<ShapeId, ShapeFacts> = IdVec::new();
    for (id, facts) in deriver.facts.iter_mut() {
        let mut facts = facts.take().unwrap_or_default();
        let shape = &plan.shapes[id];
        let keys: Vec<&str> = shape.fields.iter().map(|field| &*field.key).collect();
        let next = classes.len() as u32;
        let class = (shape.typename_key.as_deref(), keys, facts.fields.clone());
        facts.class = *classes.entry(class).or_insert(next);
        facts.untyped = shape.fields.iter().all(|field| field.types.is_none());
        shapes.push(facts);
    }
    // It is kept for as long as the plan is.
    shapes.shrink_to_fit();
    deriver.pattern.shrink_to_fit();
    let asked_twice = asked_twice(plan);
    let only_type: IdVec<LayoutId, _> = plan.layouts.iter().map(|(_, l)| l.only_type()).collect();
    let mut keys = KeyTable::default();
    let reads = plan.shapes.iter();
    let mut reads = reads
        .map(|(id, shape)| shape_steps(plan, shape, &shapes[id].fields, &only_type, &mut keys))
        .collect();
    note_lists(plan, &mut reads, children_first.into_iter().rev());
    let layouts = plan.layouts.iter();
    let outputs = layouts
        .map(|(_, layout)| out_steps(layout, &mut keys))
        .collect();
    Derived {
        reads,
        outputs,
        keys: keys.finish(),
        pattern: deriver.pattern,
        shapes,
        asks_twice: asked_twice.iter().flatten().flatten().any(|twice| *twice),
        asked_twice,
        only_type,
        earlier: plan
            .layouts
            .iter()
            .map(|(_, l)| earlier_entries(l))
            .collect(),
        lookups: plan
            .fetches
            .iter()
            .map(|(_, f)| lookup_facts(plan, f))
            .collect(),
        order: LearnedOrder::default(),
        sizes: LearnedSizes::default(),
        reuse: OnceLock::new(),
    }
}

fn earlier_entries(layout: &Layout) -> Vec<Option<u32>> {
    if !layout.output.iter().any(|field| field.repeated) {
        return Vec::new();
    }
    let mut last: FastMap<&str, u32> = FastMap::default();
    let entries = layout.output.iter().enumerate();
    entries
        .map(|(at, field)| last.insert(&field.key, at as u32))
        .collect()
}

fn asked_twice(plan: &Plan) -> Vec<Vec<Vec<bool>>> {
    /// The one fetch that asks a selection, or none if several do.
    type Asker = Option<FetchId>;
    let mut askers: FastMap<(u32, u32), Asker> = FastMap::default();
    for (id, fetch) in plan.fetches.iter() {
        let entities = fetch.lookups.iter().filter(|lookup| !lookup.is_reentry());
        let targets = entities.flat_map(|lookup| &lookup.targets);
        // What is asked with values of its own is asked once.
        for target in targets.filter(|target| target.contexts.is_empty()) {
            let asker = askers
                .entry((fetch.subgraph, target.selection))
                .or_insert(Some(id));
            if *asker != Some(id) {
                *asker = None;
            }
        }
    }
    let twice = |fetch: &Fetch, target: &Target| {
        askers.get(&(fetch.subgraph, target.selection)) == Some(&None)
    };
    let of_lookup =
        |fetch: &Fetch, lookup: &Lookup| lookup.targets.iter().map(|t| twice(fetch, t)).collect();
    let of_fetch = |fetch: &Fetch| fetch.lookups.iter().map(|l| of_lookup(fetch, l)).collect();
    plan.fetches
        .iter()
        .map(|(_, fetch)| of_fetch(fetch))
        .collect()
}

fn captured_slots(plan: &Plan) -> FastSet<(LayoutId, SlotIndex)> {
    let mut captured = FastSet::default();
    let mut open: Vec<(LayoutId, &[Member])> = Vec::new();
    for (_, fetch) in plan.fetches.iter() {
        for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
            for representation in &target.representations {
                open.push((target.layout, &representation.members));
            }
            for context in &target.contexts {
                open.push((context.layout, &context.members));
            }
        }
    }
    while let Some((layout, members)) = open.pop() {
        for member in members {
            let Some(slot) = member.slot else { continue };
            captured.insert((layout, slot));
            let slots = plan.layouts.get(layout).map(|layout| &layout.slots);
            let slot = slots.and_then(|slots| slots.get(usize::from(slot)));
            if let Some(child) = slot.and_then(|slot| slot.child) {
                open.push((child, &member.members));
            }
        }
    }
    captured
}

/// All shapes, those of objects inside others first. Shapes that contain themselves, which no correct plan has, are
/// left out.
fn children_first(plan: &Plan) -> Vec<ShapeId> {
    let mut order = Vec::with_capacity(plan.shapes.len());
    let mut seen: FastSet<ShapeId> = FastSet::default();
    let mut stack: Vec<(ShapeId, usize)> = Vec::new();
    for root in plan.shapes.ids() {
        if seen.insert(root) {
            stack.push((root, 0));
        }
        while let Some((id, next)) = stack.last_mut() {
            let Some(field) = plan.shapes[*id].fields.get(*next) else {
                order.push(*id);
                stack.pop();
                continue;
            };
            *next += 1;
            if let Some(child) = field.shape
                && child.index() < plan.shapes.len()
                && seen.insert(child)
            {
                stack.push((child, 0));
            }
        }
    }
    order
}

impl<'p> Deriver<'p> {
    fn shape(&mut self, id: ShapeId) {
        let plan = self.plan;
        let shape = &plan.shapes[id];
        let Some(layout) = plan.layouts.get(shape.layout) else {
            return;
        };
        let fields: Vec<FieldFacts> = shape
            .fields
            .iter()
            .map(|field| self.field(shape.layout, layout, field))
            .collect();
        self.passing[id] = self.pass(id, shape, layout, &fields);
        self.facts[id] = Some(ShapeFacts {
            fields,
            ..ShapeFacts::default()
        });
    }

    fn field(&mut self, id: LayoutId, layout: &'p Layout, field: &ShapeField) -> FieldFacts {
        let shown = shown(layout, field.slot);
        let Some(first) = shown.entries.first() else {
            return FieldFacts {
                verbatim: None,
                composite: field.shape.is_some(),
            };
        };
        // Entries of different types or conditions may show it differently.
        let alike =
            |entry: &&OutField| entry.wrapping == first.wrapping && entry.source == first.source;
        let lists = layout
            .slots
            .get(usize::from(field.slot))
            .map(|slot| slot.lists);
        let same = shown.entries.iter().all(alike)
            && lists == Some(first.wrapping.lists())
            && self.comes_whole(id, layout, field.slot)
            && !self.is_streamed(id, &shown);
        let value = match (&first.source, field.shape) {
            _ if !same => None,
            (OutSource::Leaf(_, kind), None) => Some(PatternValue::scalar(self.scalar(*kind))),
            (OutSource::Object(slot), Some(child)) if !self.captured.contains(&(id, *slot)) => {
                self.passing.get(child).copied().flatten()
            }
            _ => None,
        };
        FieldFacts {
            verbatim: value.map(|value| wrapped(value, first.wrapping)),
            composite: field.shape.is_some(),
        }
    }

    /// Whether all that an object in a slot shows, without what is in objects below, is answered together with it.
    fn comes_whole(&self, id: LayoutId, layout: &Layout, slot: SlotIndex) -> bool {
        let Some(deferral) = &self.plan.deferral else {
            return true;
        };
        let slots = layout.slots.get(usize::from(slot));
        let Some((child, below)) = slots
            .and_then(|slot| slot.child)
            .and_then(|child| Some((child, self.plan.layouts.get(child)?)))
        else {
            return true;
        };
        let entries = (0..).zip(&layout.output);
        let mut marks = entries
            .filter(|(_, entry)| entry.source == OutSource::Object(slot))
            .map(|(at, _)| deferral.mark(id, at))
            .chain((0..below.output.len()).map(|at| deferral.mark(child, at)));
        let first = marks.next();
        marks.all(|mark| Some(mark) == first)
    }

    /// Whether a value is a list that may be answered item by item.
    fn is_streamed(&self, id: LayoutId, shown: &Shown<'_>) -> bool {
        let Some(deferral) = &self.plan.deferral else {
            return false;
        };
        let layout = self.plan.layouts.get(id);
        let mut streams = deferral.streams.iter().filter(|stream| stream.layout == id);
        streams.any(|stream| {
            let entry = layout.and_then(|layout| layout.output.get(stream.entry as usize));
            entry.is_some_and(|entry| {
                shown
                    .entries
                    .iter()
                    .any(|other| std::ptr::eq(*other, entry))
            })
        })
    }

    fn pass(
        &mut self,
        id: ShapeId,
        shape: &ObjectShape,
        layout: &Layout,
        facts: &[FieldFacts],
    ) -> Option<PatternValue> {
        let only = layout.only_type()?;
        let alone = self.n_shapes[shape.layout] == 1 && self.n_uses[id] == 1;
        let same_number = shape.fields.len() == layout.output.len();
        if !alone || !same_number || shape.typename_key.is_some() || !layout.restricted.is_empty() {
            return None;
        }
        let mut fields = Vec::with_capacity(facts.len());
        for ((field, entry), facts) in shape.fields.iter().zip(&layout.output).zip(facts) {
            let slot = match entry.source {
                OutSource::Leaf(slot, _) | OutSource::Object(slot) => slot,
                OutSource::Typename | OutSource::Local(_) | OutSource::Null => return None,
            };
            let for_all =
                |types: &Option<_>| types.as_ref().is_none_or(|t: &BitSet| t.contains(only.0));
            let same = slot == field.slot
                && field.key == entry.key
                && !entry.repeated
                && entry.granted == Cond::TRUE
                && !self.captured.contains(&(shape.layout, slot))
                && for_all(&field.types)
                && for_all(&entry.types)
                && needs_no_escapes(&field.key);
            if !same {
                return None;
            }
            fields.push(PatternField::new(&field.key, entry.cond.0, facts.verbatim?));
        }
        let object = match self.objects.get(&fields) {
            Some(object) => *object,
            None => {
                let object = self.pattern.add_object(fields.clone());
                self.objects.insert(fields, object);
                object
            }
        };
        Some(PatternValue::object(object))
    }

    fn scalar(&mut self, kind: LeafKind) -> PatternScalar {
        match kind {
            LeafKind::Int => PatternScalar::Int,
            LeafKind::Float => PatternScalar::Number,
            LeafKind::String => PatternScalar::String,
            LeafKind::Boolean => PatternScalar::Boolean,
            LeafKind::Id => PatternScalar::StringOrInteger,
            LeafKind::Any => PatternScalar::Any,
            LeafKind::Enum(id) => {
                let plan = self.plan;
                let pattern = &mut self.pattern;
                let set = self.sets.entry(id).or_insert_with(|| {
                    pattern.add_set(plan.enums.get(id).cloned().unwrap_or_default())
                });
                PatternScalar::OneOf(*set)
            }
        }
    }
}

fn shown(layout: &Layout, slot: SlotIndex) -> Shown<'_> {
    let shows = |entry: &&OutField| match entry.source {
        OutSource::Leaf(shown, _) | OutSource::Object(shown) => shown == slot,
        OutSource::Typename | OutSource::Local(_) | OutSource::Null => false,
    };
    Shown {
        entries: layout.output.iter().filter(shows).collect(),
    }
}

fn wrapped(value: PatternValue, wrapping: Wrapping) -> PatternValue {
    let layers = 0..=wrapping.lists();
    let non_null = layers.filter(|layer| wrapping.layer_is_non_null(*layer));
    value.wrapped(
        wrapping.lists(),
        non_null.fold(0, |bits, layer| bits | 1 << layer),
    )
}
