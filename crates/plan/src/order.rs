//! In which order subgraphs really answer the members of a shape's objects.
//!
//! Reading is fastest where the next key is the expected one. Most subgraphs answer in the order of the request, as the
//! specification demands (GraphQL 2.3.3, 6.3); those that do not mostly keep to an order of their own. What follows what
//! is noted the first time it is a surprise, and holds for all answers of the plan from then on, until the next surprise.
//!
//! What is noted is a hint: keys are compared all the same, so no value depends on it. Writers may overtake one another.
//! It takes four bytes per field of the plan's shapes, from the first surprise on.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

use ogive_base::IdVec;

use crate::ids::ShapeId;

/// What was noted of one plan.
#[derive(Debug, Default)]
pub struct LearnedOrder(OnceLock<Orders>);

/// By shape, and by field: the field that came next. The last entry says which comes first.
type Orders = IdVec<ShapeId, Box<[AtomicU32]>>;

impl LearnedOrder {
    /// Bytes on the heap of what is noted.
    pub(crate) fn heap_bytes(&self) -> usize {
        let orders = self.0.get();
        orders.map_or(0, |orders| {
            size_of_val(orders.as_slice())
                + orders
                    .as_slice()
                    .iter()
                    .map(|order| size_of_val(&**order))
                    .sum::<usize>()
        })
    }
    /// What it will be once anything is noted of shapes with these numbers of fields.
    pub(crate) fn heap_bytes_noted(n_fields: impl Iterator<Item = usize>) -> usize {
        let of = |n_fields: usize| {
            size_of::<Box<[AtomicU32]>>() + (n_fields + 1) * size_of::<AtomicU32>()
        };
        n_fields.map(of).sum()
    }
    /// What is noted; `None` before the first surprise.
    pub fn get(&self) -> Option<MemberOrder<'_>> {
        self.0.get().map(MemberOrder)
    }
    /// Notes that field `next` of a shape came behind `field`. `n_fields` are the numbers of fields of all shapes.
    pub(crate) fn note<'o, N: Iterator<Item = usize>>(
        &'o self,
        n_fields: impl FnOnce() -> N,
        shape: ShapeId,
        field: usize,
        next: usize,
    ) -> MemberOrder<'o> {
        let orders = self.0.get_or_init(|| n_fields().map(as_asked).collect());
        if let Some(noted) = orders.get(shape).and_then(|order| order.get(field)) {
            noted.store(next as u32, Ordering::Relaxed);
        }
        MemberOrder(orders)
    }
}

/// In the order of the request: every field before the next one.
fn as_asked(n_fields: usize) -> Box<[AtomicU32]> {
    let next = (1..=n_fields as u32).chain([0]);
    next.map(AtomicU32::new).collect()
}

/// What is noted of a plan of which something is.
#[derive(Clone, Copy, Debug)]
pub struct MemberOrder<'o>(&'o Orders);

impl MemberOrder<'_> {
    /// The field to expect behind `field`, or first if that is the number of fields; may be the number of fields for
    /// none.
    #[inline]
    pub fn after(self, shape: ShapeId, field: usize) -> usize {
        match self.0.get(shape).and_then(|order| order.get(field)) {
            Some(next) => next.load(Ordering::Relaxed) as usize,
            None => field + 1,
        }
    }
}
