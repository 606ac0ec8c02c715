//! What may be answered later (`@defer`, `@stream`, planner rule 55): deferred groups, which requests and values are theirs,
//! and lists that are answered item by item.
//!
//! A *part* of a plan is a set of groups: what is in it is needed by each of them and by nothing else. The empty set is
//! the primary part. Invariant (checked by `verify`): whatever a part reads or waits for is in a part that each of its
//! groups has or is below ([`Deferral::follows`]), so that the primary part is complete without any group, and a group
//! without those that are not around it.

use crate::ids::{Cond, LayoutId};

/// Deferred groups of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deferral {
    /// The groups, parents before children.
    pub groups: Vec<DeferredGroup>,
    /// Sets of groups, sorted; row 0 is empty: the primary part.
    pub parts: Vec<Vec<u32>>,
    /// By fetch: its part.
    pub fetches: Vec<u32>,
    /// Values of the response that are not in the primary part, or that deferred fragments ask for, sorted.
    pub outputs: Vec<DeferredOutput>,
    /// Lists of which the first items are answered, and the others later; sorted.
    pub streams: Vec<StreamOutput>,
}

/// One fragment under `@defer`, at one place; or a *conditional group*: appearances of values that count only under a
/// condition, where others count always or under other ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredGroup {
    /// What the client calls it.
    pub label: Option<Box<str>>,
    /// The group around it.
    pub parent: Option<u32>,
    /// The place it is part of. Where objects of several types have places of their own, it is one of them; all are as
    /// deep ([`Plan::depth`](crate::Plan::depth)).
    pub layout: LayoutId,
    /// Deferred if this variable (index into [`Plan::variables`](crate::Plan::variables)) is true or not given; else it belongs to what is
    /// around it. `None`: always deferred.
    pub variable: Option<u32>,
    /// Of a conditional group: when its appearances count. They are never deferred by it, but part of what is around it.
    /// [`Cond::TRUE`]: it is a fragment under `@defer`.
    pub cond: Cond,
}

impl DeferredGroup {
    /// Whether it is no fragment, but appearances that count only under a condition.
    pub fn is_conditional(&self) -> bool {
        self.cond != Cond::TRUE
    }
}

/// An appearance of a value in the response that is not in the primary part, or that a deferred fragment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeferredOutput {
    /// Its place.
    pub layout: LayoutId,
    /// Index into the place's output.
    pub entry: u32,
    /// Its part: of all appearances of one value the same.
    pub part: u32,
    /// The group whose fragment this appearance stands in; `None`: none.
    pub group: Option<u32>,
}

/// An appearance of a list in the response that is streamed: its part and group are those of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOutput {
    /// Its place.
    pub layout: LayoutId,
    /// Index into the place's output.
    pub entry: u32,
    /// What the client calls it.
    pub label: Option<Box<str>>,
    /// How many items are answered with what is around it...
    pub initial_count: u32,
    /// ... unless this variable (index into [`Plan::variables`](crate::Plan::variables)) has a value.
    pub initial_variable: Option<u32>,
    /// Streamed if this variable is true or not given; else answered whole. `None`: always streamed.
    pub variable: Option<u32>,
}

impl Deferral {
    /// The primary part.
    pub const PRIMARY: u32 = 0;

    /// The fragment that a group stands for: itself, or of a conditional group the nearest one around it; `None`: the primary
    /// part.
    pub fn fragment(&self, group: Option<u32>) -> Option<u32> {
        let mut at = group;
        // Parents come before children, so this ends.
        while let Some(group) = at.and_then(|at| self.groups.get(at as usize))
            && group.is_conditional()
        {
            at = group.parent;
        }
        at
    }

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

    /// Sorts groups and drops duplicates and those below others, which come later anyway. Each is looked at once for every
    /// group around it.
    pub fn reduce(&self, groups: &mut Vec<u32>) {
        groups.sort_unstable();
        groups.dedup();
        if groups.len() < 2 {
            return;
        }
        let all = groups.clone();
        groups.retain(|group| {
            let parent = |group: u32| self.groups.get(group as usize).and_then(|g| g.parent);
            // Parents come before children, so this ends.
            let mut around = std::iter::successors(parent(*group), |group| parent(*group));
            !around.any(|other| all.binary_search(&other).is_ok())
        });
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
        self.mark(layout, entry).0
    }

    /// When an entry of a place's output is answered, and which group's fragment it stands in.
    pub fn mark(&self, layout: LayoutId, entry: usize) -> (u32, Option<u32>) {
        let key = (layout, entry as u32);
        let found = self
            .outputs
            .binary_search_by_key(&key, |output| (output.layout, output.entry));
        found.map_or((Self::PRIMARY, None), |at| {
            (self.outputs[at].part, self.outputs[at].group)
        })
    }

    /// The part of a fetch.
    pub fn of_fetch(&self, fetch: usize) -> u32 {
        self.fetches.get(fetch).copied().unwrap_or(Self::PRIMARY)
    }
}
