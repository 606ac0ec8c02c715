//! How much room an execution of a plan takes.
//!
//! Vectors that grow are copied again and again; whoever knows how large they will be makes room once. Executions of a
//! plan are mostly alike, so each notes what it took, and the next one makes as much room, up to a limit.
//!
//! What is noted is a hint: too much costs a little memory for as long as an execution takes, too little a copy. Writers
//! may overtake one another.

use std::sync::atomic::{AtomicU32, Ordering};

/// What the last execution of a plan took.
#[derive(Debug, Default)]
pub struct LearnedSizes {
    records: AtomicU32,
    values: AtomicU32,
}

impl LearnedSizes {
    /// Numbers of objects and of slots in the response store; zeros before the first execution.
    pub fn get(&self) -> (usize, usize) {
        let get = |size: &AtomicU32| size.load(Ordering::Relaxed) as usize;
        (get(&self.records), get(&self.values))
    }
    /// Notes them.
    pub fn learn(&self, records: usize, values: usize) {
        let set = |size: &AtomicU32, new: usize| {
            let new = u32::try_from(new).unwrap_or(u32::MAX);
            // Written only if it differs, so that threads share the line.
            if size.load(Ordering::Relaxed) != new {
                size.store(new, Ordering::Relaxed);
            }
        };
        set(&self.records, records);
        set(&self.values, values);
    }
}
