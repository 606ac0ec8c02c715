//! What the entries of a plan's outputs cost for the variables of one request, if somebody counts it while the response is
//! written. A plan knows no costs: whoever does makes this table for it.

use std::sync::Arc;

use ogive_base::{FastMap, IdVec};
use ogive_json::PatternValue;

use crate::{LayoutId, OutSource, Plan, RuntimeType, SlotIndex};

/// What one entry of an output costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FieldCost {
    /// Once for each object that has it.
    pub args: u64,
    /// For each of its values, or items, that is not null.
    pub item: u64,
}

/// What the entries of one layout's output cost.
#[derive(Clone, Debug, Default)]
pub struct LayoutCosts {
    /// By entry; of types that cost differently, one row for each of them.
    pub rows: Vec<Box<[FieldCost]>>,
    /// By runtime type: the row; empty if there is only one.
    pub by_type: Box<[u32]>,
    /// The row of objects of which nobody has said what they are.
    pub unknown: u32,
}

/// What stands below an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputEntry {
    /// Where its objects are.
    pub layout: Option<LayoutId>,
    /// How it looks if it can be used as it stands.
    pub verbatim: Option<PatternValue>,
    /// The first entry with the same key.
    pub first: usize,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct OutputCosts {
    /// What the operation costs before any of its fields.
    pub base: u64,
    /// By layout.
    pub layouts: IdVec<LayoutId, LayoutCosts>,
    below: Arc<[Box<[OutputEntry]>]>,
}

impl OutputCosts {
    /// The costs of a plan's layouts.
    pub fn new(plan: &Plan, base: u64, layouts: IdVec<LayoutId, LayoutCosts>) -> Self {
        let verbatim = verbatim(plan);
        let below = plan.layouts.iter().map(|(id, layout)| {
            let mut keys: FastMap<&str, usize> = FastMap::default();
            let entries = (0..).zip(layout.output.iter()).map(|(at, entry)| {
                let first = *keys.entry(&entry.key).or_insert(at);
                match entry.source {
                    OutSource::Object(slot) => OutputEntry {
                        layout: (layout.slots.get(usize::from(slot))).and_then(|slot| slot.child),
                        verbatim: verbatim.get(&(id, slot)).copied(),
                        first,
                    },
                    _ => OutputEntry {
                        first,
                        ..OutputEntry::default()
                    },
                }
            });
            entries.collect()
        });
        OutputCosts {
            base,
            layouts,
            below: below.collect(),
        }
    }

    /// What the entries of an object cost, and what is below them.
    #[inline]
    pub fn of(&self, layout: LayoutId, ty: Option<RuntimeType>) -> (&[FieldCost], &[OutputEntry]) {
        let Some(costs) = self.layouts.get(layout) else {
            return (&[], &[]);
        };
        let row = match ty {
            _ if costs.by_type.is_empty() => 0,
            None => costs.unknown,
            Some(ty) => costs.by_type.get(ty.0 as usize).copied().unwrap_or(0),
        };
        let row = costs.rows.get(row as usize).map_or(&[][..], |row| row);
        let below = self.below.get(layout.0 as usize);
        (row, below.map_or(&[][..], |below| below))
    }
}

/// How values look that can be used as they stand. Their shape is that of one place only.
fn verbatim(plan: &Plan) -> FastMap<(LayoutId, SlotIndex), PatternValue> {
    let mut out = FastMap::default();
    for (id, facts) in plan.derived().shapes.iter() {
        let Some(shape) = plan.shapes.get(id) else {
            continue;
        };
        for (field, facts) in shape.fields.iter().zip(&facts.fields) {
            if let (Some(value), Some(_)) = (facts.verbatim, field.shape) {
                out.insert((shape.layout, field.slot), value);
            }
        }
    }
    out
}
