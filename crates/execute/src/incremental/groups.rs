//! The deferred groups of a plan for one set of variables, and when they are ready.
//!
//! A group whose `if` is false is part of what is around it. So the groups and parts of the plan become those that are
//! in effect: each group is itself, the nearest one around it that is deferred, or nothing, which is the primary part. A
//! conditional group is what is around it, or is absent if its condition does not hold.
//!
//! Clients write as many groups as they like, and objects have as many entries. So nothing here looks at all groups, parts or
//! entries for one of them.

use std::rc::Rc;

use ogive_base::{FastMap, id::Id as _};
use ogive_plan::{Deferral, FetchId, LayoutId, Plan};

use crate::{condition::Conditions, incremental::IncrementalForm};

/// See the module documentation.
pub(crate) struct Groups<'p> {
    deferral: &'p Deferral,
    /// By group of the plan: what is in effect in its place.
    in_effect: Vec<Effect>,
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
    /// The same by key: keys with their entries, sorted.
    by_key: Vec<Box<[(u32, u32)]>>,
    /// Every group by itself, which is what a key stands for with [`IncrementalForm::Repeated`].
    single: Vec<u32>,
    /// Groups inside of a group by how many fields are above the place where they begin.
    children: FastMap<(u32, u32), Vec<u32>>,
    /// Groups around items of a list, by the place of the items.
    around: FastMap<LayoutId, Rc<[u32]>>,
    /// What became complete since it was last asked.
    reached: Vec<Target>,
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
    /// How many fetches are not complete...
    incomplete: usize,
    /// ... and how many of the primary part; then by group: of parts that it is one of.
    left: Vec<u32>,
}

/// What is in effect in the place of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing: no appearance of it counts.
    Absent,
    /// It is not deferred.
    Primary,
    /// A group.
    Deferred(u32),
}

impl Effect {
    fn deferred(self) -> Option<u32> {
        match self {
            Effect::Deferred(group) => Some(group),
            Effect::Absent | Effect::Primary => None,
        }
    }
}

/// What a fragment or an item waits for: the fetches of the primary part (0) or of a group (its number and 1) in a pass.
pub(crate) type Target = (u32, u32);

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
        (variables, conditions): (&[Option<Box<str>>], &Conditions),
        form: IncrementalForm,
        passes: u32,
    ) -> Self {
        let mut in_effect: Vec<Effect> = Vec::with_capacity(deferral.groups.len());
        for (at, group) in (0..).zip(&deferral.groups) {
            let value = group
                .variable
                .and_then(|v| variables.get(v as usize)?.as_deref());
            let around = group.parent.map_or(Some(Effect::Primary), |parent| {
                in_effect.get(parent as usize).copied()
            });
            let around = around.unwrap_or(Effect::Absent);
            let effect = match around {
                Effect::Absent => Effect::Absent,
                _ if !conditions.hold(group.cond) => Effect::Absent,
                around if group.is_conditional() || value == Some("false") => around,
                _ => Effect::Deferred(at),
            };
            in_effect.push(effect);
        }
        let mut parts: Vec<Vec<u32>> = vec![Vec::new()];
        let mut known: FastMap<Vec<u32>, u32> = FastMap::default();
        known.insert(Vec::new(), FIRST);
        let numbers: Vec<u32> = (deferral.parts.iter())
            .map(|part| {
                let part = part_in_effect(deferral, &in_effect, part);
                *known.entry(part).or_insert_with_key(|part| {
                    parts.push(part.clone());
                    parts.len() as u32 - 1
                })
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
            let group = output
                .group
                .and_then(|g| in_effect.get(g as usize)?.deferred());
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
        let by_key = keys.iter().map(|row| {
            let mut entries: Vec<(u32, u32)> = row.iter().copied().zip(0..).collect();
            entries.sort_unstable();
            entries.into()
        });
        let fetches: Vec<u32> = fetches.collect();
        let groups = deferral.groups.iter();
        let mut groups = Groups {
            deferral,
            in_effect,
            is_whole: false,
            is_idle: false,
            by_key: by_key.collect(),
            single: (0..deferral.groups.len() as u32).collect(),
            children: FastMap::default(),
            around: FastMap::default(),
            reached: Vec::new(),
            keys,
            group_depths: groups.map(|group| plan.depth(group.layout)).collect(),
            depths: plan.layouts.ids().map(|id| plan.depth(id)).collect(),
            form,
            passes: vec![first_pass(deferral, &parts, &fetches); passes as usize],
            parts,
            fetches,
        };
        let is_own = |group: &u32| groups.in_effect[*group as usize] == Effect::Deferred(*group);
        let own: Vec<u32> = groups.single.iter().copied().filter(is_own).collect();
        for group in own {
            if let Some(parent) = groups.parent(group) {
                let depth = groups.group_depths[group as usize];
                let children = groups.children.entry((parent, depth));
                children.or_default().push(group);
            }
        }
        groups
    }

    /// Whether anything is not in the primary part.
    pub(crate) fn defers(&self) -> bool {
        self.keys.iter().any(|row| !row.is_empty())
    }
    /// From now on nothing is deferred.
    pub(crate) fn defer_nothing(&mut self) {
        self.keys.iter_mut().for_each(|row| *row = Box::default());
        self.by_key.iter_mut().for_each(|row| *row = Box::default());
        self.fetches.iter_mut().for_each(|part| *part = FIRST);
        self.is_whole = true;
    }
    /// Whether nothing is asked any more.
    pub(crate) fn is_complete(&self) -> bool {
        let last = self.passes.last();
        self.is_idle || last.is_none_or(|pass| pass.incomplete == 0)
    }
    pub(crate) fn form(&self) -> IncrementalForm {
        self.form
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
            let now = &mut self.passes[to];
            now.complete[at] = true;
            now.incomplete = now.incomplete.saturating_sub(1);
            for target in targets(&self.parts, part) {
                let Some(left) = now.left.get_mut(target as usize) else {
                    continue;
                };
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.reached.push((to as u32, target));
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
        self.waits_for(pass, group).is_none()
    }
    /// What is not there yet that a group has, or the primary part; `None` if all is.
    pub(crate) fn waits_for(&self, pass: u32, group: Option<u32>) -> Option<Target> {
        if self.is_idle {
            return None;
        }
        let left = &self.passes.get(pass as usize)?.left;
        let is_open = |target: u32| left.get(target as usize).is_some_and(|left| *left > 0);
        if is_open(0) {
            return Some((pass, 0));
        }
        let mut at = group;
        while let Some(group) = at {
            if is_open(group + 1) {
                return Some((pass, group + 1));
            }
            at = self.deferral.groups.get(group as usize)?.parent;
        }
        None
    }
    /// What became complete since this was last asked.
    pub(crate) fn take_reached(&mut self) -> Vec<Target> {
        std::mem::take(&mut self.reached)
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }
    /// Whether entries of a key are written.
    pub(crate) fn shows(&self, shown: Shown, key: u32) -> bool {
        key == shown.key
            || shown.floor.is_some_and(|floor| {
                let mut groups = self.of_key(key).iter();
                key == FIRST || groups.any(|group| self.begins_above(*group, floor))
            })
    }
    /// Groups that an item of a list has something of and that begin above it: nobody tells of them apart from it.
    pub(crate) fn around_items(&mut self, plan: &Plan, item: LayoutId) -> Rc<[u32]> {
        if let Some(known) = self.around.get(&item) {
            return Rc::clone(known);
        }
        let floor = self.depth(item);
        let mut out: Vec<u32> = Vec::new();
        for layout in plan.layouts.ids() {
            if self.keys(layout).is_empty() || !is_within(plan, layout, item) {
                continue;
            }
            for key in self.keys(layout) {
                let groups = self.of_key(*key).iter().copied();
                out.extend(groups.filter(|group| self.begins_above(*group, floor)));
            }
        }
        out.sort_unstable();
        out.dedup();
        let out: Rc<[u32]> = out.into();
        self.around.insert(item, Rc::clone(&out));
        out
    }
    /// Number of fields above a place.
    pub(crate) fn depth(&self, layout: LayoutId) -> u32 {
        self.depths.get(layout.index()).copied().unwrap_or_default()
    }

    /// The group around a group.
    pub(crate) fn parent(&self, group: u32) -> Option<u32> {
        let parent = self.deferral.groups.get(group as usize)?.parent?;
        self.in_effect.get(parent as usize)?.deferred()
    }
    /// Whether a place is where a group begins, if something of the group is there.
    pub(crate) fn begins_at(&self, group: u32, layout: LayoutId) -> bool {
        self.group_depths.get(group as usize) == self.depths.get(layout.index())
    }
    fn begins_above(&self, group: u32, floor: u32) -> bool {
        let depth = self.group_depths.get(group as usize);
        depth.is_some_and(|depth| *depth < floor)
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
    /// The first entry of a layout's output from one on that is written with a key.
    pub(crate) fn next_of_key(&self, layout: LayoutId, key: u32, from: usize) -> usize {
        let Some(row) = self
            .by_key
            .get(layout.index())
            .filter(|row| !row.is_empty())
        else {
            return from;
        };
        let at = row.partition_point(|known| *known < (key, from as u32));
        let next = row.get(at).filter(|(other, _)| *other == key);
        next.map_or(row.len(), |(_, entry)| *entry as usize)
    }
    /// Keys of a layout's output but for what is written at first, each with its entries.
    pub(crate) fn entries_by_key(&self, layout: LayoutId) -> impl Iterator<Item = &[(u32, u32)]> {
        let row = self.by_key.get(layout.index()).map_or(&[][..], |row| row);
        row.chunk_by(|a, b| a.0 == b.0)
            .filter(|of_key| of_key[0].0 != FIRST)
    }
    /// Entries of a layout's output that are written with a key.
    pub(crate) fn entries(&self, layout: LayoutId, key: u32) -> &[(u32, u32)] {
        let row = self.by_key.get(layout.index()).map_or(&[][..], |row| row);
        let from = row.partition_point(|known| *known < (key, 0));
        let len = row[from..].partition_point(|known| known.0 == key);
        &row[from..from + len]
    }
    /// Groups inside of a group that begin at a place, if something of them is there.
    pub(crate) fn children_at(&self, group: u32, layout: LayoutId) -> &[u32] {
        let children = self.children.get(&(group, self.depth(layout)));
        children.map_or(&[], Vec::as_slice)
    }
    /// The groups that what is written with a key belongs to.
    pub(crate) fn of_key(&self, key: u32) -> &[u32] {
        let groups = match self.form {
            IncrementalForm::Distinct => self.parts.get(key as usize).map(Vec::as_slice),
            IncrementalForm::Repeated => {
                let at = key.checked_sub(1).map(|at| at as usize);
                at.and_then(|at| self.single.get(at..=at))
            }
        };
        groups.unwrap_or_default()
    }
    /// Whether what is written with a key may have what a fetch brought.
    pub(crate) fn may_have(&self, key: u32, fetch: FetchId) -> bool {
        let part = self.fetches.get(fetch.index()).copied().unwrap_or(FIRST);
        let Some(part) = self.parts.get(part as usize) else {
            return true;
        };
        let groups = self.of_key(key);
        let needs = |group: &u32| {
            let mut others = part.iter();
            others.any(|other| self.deferral.is_within(*group, *other))
        };
        part.is_empty() || !groups.is_empty() && groups.iter().all(needs)
    }
}

/// What waits for the fetches of a part: the primary part, or its groups and those in them.
fn targets(parts: &[Vec<u32>], part: u32) -> impl Iterator<Item = u32> {
    let groups = parts.get(part as usize).map_or(&[][..], Vec::as_slice);
    let primary = groups.is_empty().then_some(0);
    primary
        .into_iter()
        .chain(groups.iter().map(|group| group + 1))
}

/// A pass of which nothing is done yet.
fn first_pass(deferral: &Deferral, parts: &[Vec<u32>], fetches: &[u32]) -> Pass {
    let mut left = vec![0; deferral.groups.len() + 1];
    for target in fetches.iter().flat_map(|part| targets(parts, *part)) {
        if let Some(left) = left.get_mut(target as usize) {
            *left += 1;
        }
    }
    Pass {
        done: vec![false; fetches.len()],
        complete: vec![false; fetches.len()],
        incomplete: fetches.len(),
        left,
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

/// The groups of a part that are in effect: none of them within another; empty if one of them is not deferred. Where none
/// counts, nobody waits for the part: it has a group that does not exist.
fn part_in_effect(deferral: &Deferral, in_effect: &[Effect], part: &[u32]) -> Vec<u32> {
    let mut groups = Vec::with_capacity(part.len());
    for group in part {
        match in_effect.get(*group as usize) {
            Some(Effect::Deferred(group)) => groups.push(*group),
            Some(Effect::Absent) => {}
            Some(Effect::Primary) | None => return Vec::new(),
        }
    }
    if groups.is_empty() && !part.is_empty() {
        return vec![deferral.groups.len() as u32];
    }
    deferral.reduce(&mut groups);
    groups
}
