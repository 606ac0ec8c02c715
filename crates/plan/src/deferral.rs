//! What may be answered later (`@defer`, planner rule 55): deferred groups, and which requests and values are theirs.
//!
//! A *part* of a plan is a set of groups: what is in it is needed by each of them and by nothing else. The empty set is
//! the primary part. Invariant (checked by `verify`): whatever a part reads or waits for is in a part that each of its
//! groups has or is below ([`Deferral::follows`]), so that the primary part is complete without any group, and a group
//! without those that are not around it.

use crate::ir::{LayoutId, Plan};

/// Deferred groups of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deferral {
    /// The groups, parents before children.
    pub groups: Vec<DeferredGroup>,
    /// Sets of groups, sorted; row 0 is empty: the primary part.
    pub parts: Vec<Vec<u32>>,
    /// By fetch: its part.
    pub fetches: Vec<u32>,
    /// Values of the response that are not in the primary part, sorted.
    pub outputs: Vec<DeferredOutput>,
}

/// One fragment under `@defer`, at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredGroup {
    /// What the client calls it.
    pub label: Option<Box<str>>,
    /// The group around it.
    pub parent: Option<u32>,
    /// The place it is part of.
    pub layout: LayoutId,
    /// Deferred if this variable (index into [`Plan::variables`]) is true or not given; else it belongs to what is
    /// around it. `None`: always deferred.
    pub variable: Option<u32>,
}

/// A value of the response that is not in the primary part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeferredOutput {
    /// Its place.
    pub layout: LayoutId,
    /// Index into the place's output.
    pub entry: u32,
    /// Its part.
    pub part: u32,
}

impl Deferral {
    /// The primary part.
    pub const PRIMARY: u32 = 0;

    /// Whether `group` is `other` or below it.
    pub fn is_within(&self, group: u32, other: u32) -> bool {
        let mut at = Some(group);
        // Parents come before children, so this ends.
        while let Some(group) = at {
            if group == other {
                return true;
            }
            at = self.groups.get(group as usize).and_then(|g| g.parent);
        }
        false
    }

    /// Whether a part may wait for another one: that is the primary part, or each group of the first is within one of
    /// the second.
    pub fn follows(&self, part: u32, earlier: u32) -> bool {
        let groups = |part: u32| self.parts.get(part as usize).map_or(&[][..], Vec::as_slice);
        let (later, earlier) = (groups(part), groups(earlier));
        let within = |group: &u32| earlier.iter().any(|other| self.is_within(*group, *other));
        earlier.is_empty() || !later.is_empty() && later.iter().all(within)
    }

    /// The part of an entry of a place's output.
    pub fn of_output(&self, layout: LayoutId, entry: usize) -> u32 {
        let key = (layout, entry as u32);
        let found = self
            .outputs
            .binary_search_by_key(&key, |output| (output.layout, output.entry));
        found.map_or(Self::PRIMARY, |at| self.outputs[at].part)
    }

    /// The part of a fetch.
    pub fn of_fetch(&self, fetch: usize) -> u32 {
        self.fetches.get(fetch).copied().unwrap_or(Self::PRIMARY)
    }

    /// What is wrong with the tables.
    pub(crate) fn problems(&self, plan: &Plan) -> Vec<String> {
        let mut out = Vec::new();
        let mut check = |holds: bool, text: &dyn Fn() -> String| {
            if !holds {
                out.push(text());
            }
        };
        for (at, group) in self.groups.iter().enumerate() {
            let known = group.parent.is_none_or(|parent| (parent as usize) < at);
            check(known, &|| format!("group {at} comes before its parent"));
            let known = plan.layouts.get(group.layout).is_some();
            check(known, &|| format!("group {at} has no place"));
            let mut variable = group.variable.iter();
            let known = variable.all(|v| (*v as usize) < plan.variables.len());
            check(known, &|| format!("group {at} names an unknown variable"));
        }
        check(self.parts.first().is_some_and(Vec::is_empty), &|| {
            "part 0 is not the primary one".to_owned()
        });
        for (at, part) in self.parts.iter().enumerate().skip(1) {
            let sorted = !part.is_empty() && part.windows(2).all(|pair| pair[0] < pair[1]);
            check(sorted, &|| format!("part {at} is empty or not sorted"));
            let known = part.iter().all(|g| (*g as usize) < self.groups.len());
            check(known, &|| format!("part {at} names an unknown group"));
        }
        check(self.fetches.len() == plan.fetches.len(), &|| {
            "not every fetch has a part".to_owned()
        });
        let known = |part: u32| (part as usize) < self.parts.len();
        check(self.fetches.iter().all(|part| known(*part)), &|| {
            "a fetch is in an unknown part".to_owned()
        });
        let sorted = (self.outputs.windows(2))
            .all(|pair| (pair[0].layout, pair[0].entry) < (pair[1].layout, pair[1].entry));
        check(sorted, &|| "deferred values are not sorted".to_owned());
        for output in &self.outputs {
            let layout = plan.layouts.get(output.layout);
            let there = layout.is_some_and(|l| (output.entry as usize) < l.output.len());
            let known = known(output.part) && output.part != Self::PRIMARY;
            check(there && known, &|| {
                format!("a deferred value of layout {} is unknown", output.layout.0)
            });
        }
        for (id, fetch) in plan.fetches.iter() {
            for earlier in &fetch.dependencies {
                let parts = (
                    self.of_fetch(id.0 as usize),
                    self.of_fetch(earlier.0 as usize),
                );
                check(self.follows(parts.0, parts.1), &|| {
                    format!(
                        "fetch {} waits for fetch {}, which may come later than its own part",
                        id.0, earlier.0
                    )
                });
            }
        }
        out
    }
}
