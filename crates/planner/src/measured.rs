//! What was measured while plans ran, as plain input: which lists are how long, and which subgraphs are slow.
//!
//! A snapshot in rough steps, made by whoever runs the plans. The planner stays pure: the same snapshot gives the same
//! plan, and steps are wide enough that plans do not change with every breath of a subgraph.

use ogive_base::FastMap;
use ogive_schema::FieldId;

/// A snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Measured {
    /// Lengths of lists by field, instead of estimates.
    pub items: FastMap<FieldId, u32>,
    /// How slow each subgraph is, by index; 0 is the fastest, and what is not known. Of subgraphs that would do equally
    /// well, faster ones are asked.
    pub slowness: Vec<u8>,
}

impl Measured {
    /// How slow a subgraph is.
    pub fn slowness_of(&self, subgraph: u32) -> u8 {
        let known = self.slowness.get(subgraph as usize);
        known.copied().unwrap_or(0)
    }
}
