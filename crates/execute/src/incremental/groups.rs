//! The deferred groups of a plan for one set of variables, and when they are ready.
//!
//! A group whose `if` is false is part of what is around it. So the groups and parts of the plan become those that are
//! in effect: each group is itself, the nearest one around it that is deferred, or nothing, which is the primary part.

use ogive_base::id::Id as _;
use ogive_plan::{Deferral, FetchId, LayoutId, Plan};

use crate::incremental::IncrementalForm;

/// See the module documentation.
pub(crate) struct Groups<'p> {
    deferral: &'p Deferral,
    /// By group of the plan: the group that is in effect in its place.
    in_effect: Vec<Option<u32>>,
    /// Parts that are in effect: sets of groups, the empty one first.
    parts: Vec<Vec<u32>>,
    /// By fetch: its part.
    fetches: Vec<u32>,
    /// What is complete, by pass.
    passes: Vec<Pass>,
    /// Whether nothing is deferred after all.
    is_whole: bool,
    /// Whether nothing is under way any more.
    is_idle: bool,
    /// By layout and entry of its output: what it is written with. Nothing where everything is written at first.
    keys: Vec<Box<[u32]>>,
    /// By layout and by group: how many fields are above it.
    depths: Vec<u32>,
    group_depths: Vec<u32>,
    form: IncrementalForm,
}

/// What of the fetches is complete in one pass (see `streams`) and in all before it.
#[derive(Clone, Default)]
struct Pass {
    /// FetchPasses that are done in this pass...
    done: Vec<bool>,
    /// ... and in those before it, too.
    complete: Vec<bool>,
    /// How many fetches are not complete that the primary part waits for; then by group.
    left: Vec<u32>,
}

/// What is written at one time: the entries of a key; if there is a floor (number of fields above a place), all entries
/// but those of groups that begin no higher than it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) key: u32,
    pub(crate) floor: Option<u32>,
}

impl Shown {
    pub(crate) fn of(key: u32) -> Self {
        Shown { key, floor: None }
    }
}

/// What is written at first, as a key of [`Groups::key`].
pub(crate) const FIRST: u32 = 0;

impl<'p> Groups<'p> {
    pub(crate) fn new(
        plan: &Plan,
        deferral: &'p Deferral,
        variables: &[Option<Box<str>>],
        form: IncrementalForm,
        passes: u32,
    ) -> Self {
        let mut in_effect: Vec<Option<u32>> = Vec::with_capacity(deferral.groups.len());
        for (at, group) in (0..).zip(&deferral.groups) {
            let value = group
                .variable
                .and_then(|v| variables.get(v as usize)?.as_deref());
            let around = group
                .parent
                .and_then(|parent| *in_effect.get(parent as usize)?);
            in_effect.push(if value == Some("false") {
                around
            } else {
                Some(at)
            });
        }
        let mut parts: Vec<Vec<u32>> = vec![Vec::new()];
        let numbers: Vec<u32> = (deferral.parts.iter())
            .map(|part| {
                let part = part_in_effect(deferral, &in_effect, part);
                let known = parts.iter().position(|other| *other == part);
                known.unwrap_or_else(|| {
                    parts.push(part);
                    parts.len() - 1
                }) as u32
            })
            .collect();
        let number = |part: u32| numbers.get(part as usize).copied().unwrap_or(FIRST);
        let n_fetches = plan.fetches.len();
        let fetches = (0..n_fetches).map(|fetch| number(deferral.of_fetch(fetch)));
        let mut keys: Vec<Box<[u32]>> = Vec::new();
        keys.resize_with(plan.layouts.len(), Box::default);
        for output in &deferral.outputs {
            let Some(layout) = plan.layouts.get(output.layout) else {
                continue;
            };
            let row = &mut keys[output.layout.index()];
            if row.is_empty() {
                *row = vec![FIRST; layout.output.len()].into();
            }
            let group = output.group.and_then(|g| *in_effect.get(g as usize)?);
            if let Some(key) = row.get_mut(output.entry as usize) {
                *key = match form {
                    IncrementalForm::Distinct => number(output.part),
                    IncrementalForm::Repeated => group.map_or(FIRST, |group| group + 1),
                };
            }
        }
        for row in &mut keys {
            if row.iter().all(|key| *key == FIRST) {
                *row = Box::default();
            }
        }
        let groups = deferral.groups.iter();
        let mut groups = Groups {
            deferral,
            in_effect,
            parts,
            fetches: fetches.collect(),
            passes: Vec::new(),
            is_whole: false,
            is_idle: false,
            keys,
            group_depths: groups.map(|group| plan.depth(group.layout)).collect(),
            depths: plan.layouts.ids().map(|id| plan.depth(id)).collect(),
            form,
        };
        let targets = std::iter::once(None).chain((0..deferral.groups.len() as u32).map(Some));
        let waits = |target| {
            let needed = |part: &&u32| groups.needs(target, **part);
            groups.fetches.iter().filter(needed).count() as u32
        };
        let pass = Pass {
            done: vec![false; n_fetches],
            complete: vec![false; n_fetches],
            left: targets.map(waits).collect(),
        };
        groups.passes = vec![pass; passes as usize];
        groups
    }

    /// Whether anything is not in the primary part.
    pub(crate) fn defers(&self) -> bool {
        self.keys.iter().any(|row| !row.is_empty())
    }
    /// From now on nothing is deferred.
    pub(crate) fn defer_nothing(&mut self) {
        self.keys.iter_mut().for_each(|row| *row = Box::default());
        self.fetches.iter_mut().for_each(|part| *part = FIRST);
        self.is_whole = true;
    }
    /// Whether nothing is asked any more.
    pub(crate) fn is_complete(&self) -> bool {
        let last = self.passes.last();
        self.is_idle || last.is_none_or(|pass| pass.complete.iter().all(|complete| *complete))
    }
    pub(crate) fn form(&self) -> IncrementalForm {
        self.form
    }

    /// Whether the primary part or a group waits for fetches of a part.
    fn needs(&self, target: Option<u32>, part: u32) -> bool {
        let Some(part) = self.parts.get(part as usize) else {
            return true;
        };
        let within = |group: u32| {
            part.iter()
                .any(|other| self.deferral.is_within(group, *other))
        };
        part.is_empty() || target.is_some_and(within)
    }
    /// Notes that a fetch is done in a pass; says in which passes that makes it complete.
    pub(crate) fn complete(&mut self, pass: u32, fetch: FetchId) -> std::ops::Range<u32> {
        let (from, at) = (pass as usize, fetch.index());
        let part = self.fetches.get(at).copied().unwrap_or(FIRST);
        let is_next = |passes: &[Pass], to: usize| to == 0 || passes[to - 1].complete[at];
        // Those that are prefetched come after the fetches.
        let known = self
            .passes
            .get_mut(from)
            .and_then(|pass| pass.done.get_mut(at));
        let Some(done) = known else {
            return pass..pass;
        };
        *done = true;
        let mut to = from;
        while to < self.passes.len()
            && self.passes[to].done[at]
            && !self.passes[to].complete[at]
            && is_next(&self.passes, to)
        {
            self.passes[to].complete[at] = true;
            for target in 0..self.passes[to].left.len() {
                if self.needs((target as u32).checked_sub(1), part) {
                    let left = &mut self.passes[to].left[target];
                    *left = left.saturating_sub(1);
                }
            }
            to += 1;
        }
        pass..to as u32
    }
    /// Nothing is under way.
    pub(crate) fn complete_all(&mut self) {
        self.is_idle = true;
    }
    /// Whether all is there that a group has, or the primary part, of what a pass and those before it ask for.
    pub(crate) fn is_ready(&self, pass: u32, group: Option<u32>) -> bool {
        if self.is_whole || self.is_idle {
            return self.is_complete();
        }
        let at = group.map_or(0, |group| group as usize + 1);
        let left = self
            .passes
            .get(pass as usize)
            .and_then(|pass| pass.left.get(at));
        left.is_none_or(|left| *left == 0)
    }
    /// Whether entries of a key are written.
    pub(crate) fn shows(&self, shown: Shown, key: u32) -> bool {
        key == shown.key
            || shown.floor.is_some_and(|floor| {
                let begins_above = |group: &u32| self.group_depths[*group as usize] < floor;
                key == FIRST || self.of_key(key).iter().any(begins_above)
            })
    }
    /// Groups that an item of a list has something of and that begin above it: nobody tells of them apart from it.
    pub(crate) fn around_items(&self, plan: &Plan, item: LayoutId) -> Vec<u32> {
        let floor = self.depths.get(item.index()).copied().unwrap_or_default();
        let mut out: Vec<u32> = Vec::new();
        for layout in plan.layouts.ids() {
            if self.keys(layout).is_empty() || !is_within(plan, layout, item) {
                continue;
            }
            for key in self.keys(layout) {
                let groups = self.of_key(*key).into_iter();
                out.extend(groups.filter(|group| self.group_depths[*group as usize] < floor));
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
    /// Number of fields above a place.
    pub(crate) fn depth(&self, layout: LayoutId) -> u32 {
        self.depths.get(layout.index()).copied().unwrap_or_default()
    }

    /// The group around a group.
    pub(crate) fn parent(&self, group: u32) -> Option<u32> {
        let parent = self.deferral.groups.get(group as usize)?.parent?;
        *self.in_effect.get(parent as usize)?
    }
    /// Whether a place is where a group begins, if something of the group is there.
    pub(crate) fn begins_at(&self, group: u32, layout: LayoutId) -> bool {
        self.group_depths.get(group as usize) == self.depths.get(layout.index())
    }
    pub(crate) fn label(&self, group: u32) -> Option<Box<str>> {
        self.deferral.groups.get(group as usize)?.label.clone()
    }

    /// What every entry of a layout's output is written with; nothing if all are at first.
    pub(crate) fn keys(&self, layout: LayoutId) -> &[u32] {
        self.keys.get(layout.index()).map_or(&[], |row| row)
    }
    /// What an entry is written with.
    pub(crate) fn key(&self, layout: LayoutId, entry: usize) -> u32 {
        self.keys(layout).get(entry).copied().unwrap_or(FIRST)
    }
    /// The groups that what is written with a key belongs to.
    pub(crate) fn of_key(&self, key: u32) -> Vec<u32> {
        match self.form {
            IncrementalForm::Distinct => self.parts.get(key as usize).cloned().unwrap_or_default(),
            IncrementalForm::Repeated => key.checked_sub(1).into_iter().collect(),
        }
    }
    /// Whether what is written with a key may have what a fetch brought.
    pub(crate) fn may_have(&self, key: u32, fetch: FetchId) -> bool {
        let part = self.fetches.get(fetch.index()).copied().unwrap_or(FIRST);
        let groups = self.of_key(key);
        part == FIRST || !groups.is_empty() && groups.iter().all(|g| self.needs(Some(*g), part))
    }
}

/// Whether a place is another one or below it.
fn is_within(plan: &Plan, layout: LayoutId, other: LayoutId) -> bool {
    let mut at = Some(layout);
    while let Some(layout) = at {
        if layout == other {
            return true;
        }
        at = plan.layouts[layout].parent.map(|(parent, _)| parent);
    }
    false
}

/// The groups of a part that are in effect: none of them within another; empty if one of them is not deferred.
fn part_in_effect(deferral: &Deferral, in_effect: &[Option<u32>], part: &[u32]) -> Vec<u32> {
    let groups: Option<Vec<u32>> = part
        .iter()
        .map(|group| in_effect.get(*group as usize).copied().flatten())
        .collect();
    let mut groups = groups.unwrap_or_default();
    groups.sort_unstable();
    groups.dedup();
    let all = groups.clone();
    groups.retain(|g| !all.iter().any(|o| o != g && deferral.is_within(*g, *o)));
    groups
}
