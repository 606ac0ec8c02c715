//! How much memory a plan takes: what caches weigh; and giving up what it does not need.

use std::hash::Hash;

use ogive_base::{BitSet, FastMap, IdVec};

use crate::{
    deferral::{Deferral, DeferredGroup, DeferredOutput, StreamOutput},
    derived::{
        Derived, FieldFacts, LookupFacts, OutStep, Prefetch, Prefix, Programs, ReadStep, Reusable,
        ReuseSource, ReuseSources, ShapeFacts, ShapeSteps,
    },
    ids::*,
    ir::*,
    order::LearnedOrder,
    representation::{Member, Representation},
    requirement::Requirement,
    shared::Shared,
};

/// Bytes behind a value, the value itself not counted.
trait Heap {
    fn heap(&self) -> usize;
    /// Gives up spare capacity, here and below.
    fn shrink(&mut self) {}
}

impl Plan {
    /// Bytes the plan takes on the heap now, itself and what was [derived](crate::derived) from it included; exact but
    /// for what the allocator adds. Lists that a copy of the plan shares count half here and half there.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Plan>()
            + self.subgraphs.heap()
            + self.types.heap()
            + self.enums.heap()
            + self.conditions.heap()
            + self.variables.heap()
            + self.requirements.heap()
            + self.layouts.heap()
            + self.shapes.heap()
            + self.fetches.heap()
            + self.deferral.as_ref().map_or(0, |deferral| {
                size_of::<Deferral>()
                    + deferral.groups.heap()
                    + deferral.parts.heap()
                    + deferral.fetches.heap()
                    + deferral.outputs.heap()
                    + deferral.streams.heap()
            })
            + self.derived.known().map_or(0, |derived| {
                size_of::<Derived>() + derived.heap() + derived.order.heap_bytes()
            })
    }

    /// Bytes the plan takes once it is executed again and again: what caches weigh. Works out what executions need
    /// of it ([`Plan::derived`], [`Plan::reusable`]), which the first of them would do otherwise, and counts what they
    /// may learn of it, so that the figure stays true.
    pub fn heap_bytes_in_use(&self) -> usize {
        self.reusable();
        let order = &self.derived().order;
        let n_fields = self.shapes.iter().map(|(_, shape)| shape.fields.len());
        self.heap_bytes() + LearnedOrder::heap_bytes_noted(n_fields) - order.heap_bytes()
    }

    /// Gives up spare capacity, and holds equal lists once: worth it before a plan is kept.
    pub fn shrink_to_fit(&mut self) {
        share(self.layouts.iter_mut().map(|(_, l)| &mut l.slots));
        share(self.layouts.iter_mut().map(|(_, l)| &mut l.output));
        share(self.shapes.iter_mut().map(|(_, s)| &mut s.fields));
        let lookups = self.fetches.iter_mut().flat_map(|(_, f)| &mut f.lookups);
        let targets = lookups.flat_map(|l| &mut l.targets);
        share(targets.map(|t| &mut t.representations));
        self.subgraphs.shrink();
        self.types.shrink();
        self.enums.shrink();
        self.conditions.shrink();
        self.variables.shrink();
        self.requirements.shrink();
        self.layouts.shrink();
        self.shapes.shrink();
        self.fetches.shrink();
        if let Some(deferral) = &mut self.deferral {
            deferral.groups.shrink();
            deferral.parts.shrink();
            deferral.fetches.shrink();
            deferral.outputs.shrink();
            deferral.streams.shrink();
        }
    }
}

/// Makes equal lists one.
fn share<'a, T: Hash + Eq + 'a>(lists: impl Iterator<Item = &'a mut Shared<T>>) {
    let mut known: FastMap<Shared<T>, ()> = FastMap::default();
    for list in lists {
        match known.get_key_value(&*list) {
            Some((same, ())) => *list = same.clone(),
            None => {
                known.insert(list.clone(), ());
            }
        }
    }
}

impl<T: Heap> Heap for Vec<T> {
    fn heap(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(Heap::heap).sum::<usize>()
    }
    fn shrink(&mut self) {
        self.iter_mut().for_each(Heap::shrink);
        self.shrink_to_fit();
    }
}
impl<I: ogive_base::id::Id, T: Heap> Heap for IdVec<I, T> {
    fn heap(&self) -> usize {
        let rows = self.as_slice();
        size_of_val(rows) + rows.iter().map(Heap::heap).sum::<usize>()
    }
    fn shrink(&mut self) {
        self.iter_mut().for_each(|(_, row)| row.shrink());
        self.shrink_to_fit();
    }
}
impl<T: Heap> Heap for Option<T> {
    fn heap(&self) -> usize {
        self.as_ref().map_or(0, Heap::heap)
    }
    fn shrink(&mut self) {
        if let Some(value) = self {
            value.shrink();
        }
    }
}
/// Bytes of the counters of a shared list.
const COUNTS: usize = 2 * size_of::<usize>();

impl<T: Heap> Heap for Shared<T> {
    /// What several hold is split evenly between them.
    fn heap(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let rows = size_of_val(&**self) + self.iter().map(Heap::heap).sum::<usize>();
        (COUNTS + rows).div_ceil(self.holders())
    }
}
impl Heap for Box<str> {
    fn heap(&self) -> usize {
        self.len()
    }
}
impl<T: Heap> Heap for Box<[T]> {
    fn heap(&self) -> usize {
        size_of_val(&**self) + self.iter().map(Heap::heap).sum::<usize>()
    }
}
impl Heap for ogive_json::Key {
    fn heap(&self) -> usize {
        self.len()
    }
}
impl Heap for ReuseSources {
    fn heap(&self) -> usize {
        self.table().heap()
    }
}
impl Heap for Derived {
    fn heap(&self) -> usize {
        self.pattern.heap_bytes()
            + self.shapes.heap()
            + self.asked_twice.heap()
            + self.only_type.heap()
            + self.earlier.heap()
            + self.keys.heap()
            + self.reads.heap()
            + self.outputs.heap()
            + self.lookups.heap()
            + self.known_reuse().map_or(0, Heap::heap)
    }
}
impl Heap for BitSet {
    fn heap(&self) -> usize {
        // One word is inline.
        self.iter().last().map_or(0, |last| last as usize / 64 * 8)
    }
}

macro_rules! flat {
    ($($ty:ty),*) => { $(impl Heap for $ty {
        fn heap(&self) -> usize {
            0
        }
    })* };
}
flat!(
    bool,
    u8,
    u32,
    (u32, bool),
    (SlotIndex, SlotIndex),
    FetchId,
    RuntimeType,
    Gate,
    RootPart,
    DeferredOutput,
    FieldFacts,
    ReadStep,
    OutStep
);

macro_rules! parts {
    ($($ty:ty { $($field:ident),* })*) => { $(impl Heap for $ty {
        fn heap(&self) -> usize {
            0 $(+ self.$field.heap())*
        }
        fn shrink(&mut self) {
            $(self.$field.shrink();)*
        }
    })* };
}
parts! {
    Layout { types, slots, output, restricted }
    RestrictedTypes { types }
    Requirement { scopes, policies, mask }
    DeferredGroup { label }
    StreamOutput { label }
    Slot { name, client_key }
    OutField { key_json, key, types, coordinate }
    ObjectShape { typename_key, interface_objects, fields }
    ShapeField { key, types }
    Fetch { dependencies, successors, segments, variables, root, lookups }
    Segment { text, gates }
    VariableUse { gates }
    Lookup { response_key, variable, targets }
    Target { types, representations, contexts }
    ContextValue { variable, members }
    Representation { typename, members }
    Member { key_json, types, members }
    ShapeFacts { fields }
    ShapeSteps { fields }
    LookupFacts { key, variable, programs }
    Programs { numbers, by_type, prefixes }
    Prefix { text }
    Reusable { sources, prefetches }
    ReuseSource { fetches, representation, values }
    Prefetch { dependencies, targets }
}
