//! What was announced and is not complete: parts that can be written, and parts that wait for fetches.
//!
//! A part waits for one target at a time (see `groups`), and is looked at again when that is complete. So the parts that wait
//! need not all be looked at for each one that is written.

use std::{cmp::Reverse, collections::BinaryHeap};

use ogive_base::FastMap;

use crate::incremental::{groups::Target, part::Part};

/// A part with the number by which it was announced.
pub(super) type Announced = (u32, Part);

/// See the module documentation.
#[derive(Default)]
pub(super) struct PendingParts {
    /// Those that can be written: what was announced first leaves first.
    ready: BinaryHeap<Reverse<Announced>>,
    waiting: FastMap<Target, Vec<Announced>>,
    len: usize,
}

impl PendingParts {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Whether any part can be written.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
    /// Adds a part with what it waits for, if it does.
    pub(super) fn add(&mut self, part: Announced, waits_for: Option<Target>) {
        self.len += 1;
        match waits_for {
            Some(target) => self.waiting.entry(target).or_default().push(part),
            None => self.ready.push(Reverse(part)),
        }
    }
    /// Takes the first part that can be written.
    pub(super) fn take_ready(&mut self) -> Option<Announced> {
        let Reverse(part) = self.ready.pop()?;
        self.len -= 1;
        Some(part)
    }
    /// Takes the parts that wait for a target.
    pub(super) fn take_waiting(&mut self, target: Target) -> Vec<Announced> {
        let parts = self.waiting.remove(&target).unwrap_or_default();
        self.len -= parts.len();
        parts
    }
    /// Takes all parts that wait.
    pub(super) fn take_all_waiting(&mut self) -> Vec<Announced> {
        let parts: Vec<Announced> = self.waiting.drain().flat_map(|(_, parts)| parts).collect();
        self.len -= parts.len();
        parts
    }
}
