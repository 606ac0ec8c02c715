//! How much memory a plan takes: what caches weigh; and giving up what it does not need.

use ogive_base::{BitSet, IdVec};

use crate::ir::*;

/// Bytes behind a value, the value itself not counted.
trait Heap {
    fn heap(&self) -> usize;
    /// Gives up spare capacity, here and below.
    fn shrink(&mut self) {}
}

impl Plan {
    /// Bytes the plan takes on the heap, itself included; exact but for what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Plan>()
            + self.subgraphs.heap()
            + self.types.heap()
            + self.enums.heap()
            + self.conditions.heap()
            + self.variables.heap()
            + self.layouts.heap()
            + self.shapes.heap()
            + self.fetches.heap()
    }

    /// Gives up spare capacity: worth it before a plan is kept.
    pub fn shrink_to_fit(&mut self) {
        self.subgraphs.shrink();
        self.types.shrink();
        self.enums.shrink();
        self.conditions.shrink();
        self.variables.shrink();
        self.layouts.shrink();
        self.shapes.shrink();
        self.fetches.shrink();
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
impl Heap for Box<str> {
    fn heap(&self) -> usize {
        self.len()
    }
}
impl Heap for Box<[u8]> {
    fn heap(&self) -> usize {
        self.len()
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
flat!((u32, bool), FetchId, Gate, RootPart);

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
    Layout { types, slots, output }
    Slot { name, client_key }
    OutField { key_json, key, types, coordinate }
    ObjectShape { typename_key, fields }
    ShapeField { key, types }
    Fetch { dependencies, successors, segments, variables, root, lookups }
    Segment { text, gates }
    VariableUse { gates }
    Lookup { response_key, variable, targets }
    Target { types, representations }
    Representation { typename, members }
    Member { key_json, types, members }
}
