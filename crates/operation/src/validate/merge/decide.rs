//! Whether all fields merge, without comparing pairs.
//!
//! The rule asks two things of fields with one response name in a merged selection set: all must have one shape,
//! and all that can meet in one response object must be the same call. Both are equivalences, so comparing each
//! field with the first of its group is enough, and what is below is again a merged selection set: the one of the
//! whole group for shapes, one per object type (with the fields of abstract parents in each) for calls. The idea is
//! Simon Adameit's ("A new algorithm for the validation of overlapping fields", 2018).
//!
//! A merged selection set is named by the sorted selection sets in it. Each is visited once, so fragments that spread
//! each other in many places cost what their distinct combinations cost. There can be many of those in a document
//! made for it, hence the limit on steps.

use ogive_base::{BitSet, FastMap, Span};

use super::{super::context::Context, Conflict, table::Table};

/// Why there is no clean verdict.
pub(super) enum Stop {
    Conflict(Conflict),
    /// The limit on steps was met below the operation or fragment that stands here.
    TooComplex(Span),
}

/// What is asked of a merged selection set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// Shapes only: its fields come from parents of different object types.
    Shapes,
    /// Shapes and calls.
    Calls,
}

/// Sorted sets of the table, of which there are several.
type Key = Box<[u32]>;

/// A merged selection set that is to be visited.
enum Visit {
    /// A set on its own, as most are.
    One(u32),
    Several(Key),
}

struct Decide<'t, 'a> {
    table: &'t Table<'a>,
    seen: FastMap<Key, Ask>,
    /// By set: what was asked of it on its own.
    seen_alone: Vec<Option<Ask>>,
    pending: Vec<(Visit, Ask)>,
    /// Fragments that some visited set spreads.
    reached: BitSet,
    /// The visit in which each set was last flattened.
    marks: Vec<u32>,
    /// The visit in which each response name was last seen.
    names: Vec<u32>,
    visit: u32,
}

/// Visits every merged selection set of the document. `Ok` if all fields merge.
pub(super) fn decide(cx: &Context<'_>, table: &Table<'_>, steps: &mut u32) -> Result<(), Stop> {
    let mut decide = Decide {
        table,
        seen: FastMap::default(),
        seen_alone: vec![None; table.sets.len()],
        pending: Vec::new(),
        reached: BitSet::new(),
        marks: vec![0; table.sets.len()],
        names: vec![0; table.names],
        visit: 0,
    };
    let most = cx.limits.merge_steps_max;
    for (root, operation) in table.roots.iter().zip(cx.doc.operations()) {
        decide.from(*root, steps, most, operation.span)?;
    }
    // Fragments that no operation reaches, those first which no other fragment spreads.
    let mut spread = BitSet::new();
    for set in &table.sets[..cx.fragments.len()] {
        spread.union_with(&set.spreads.iter().copied().collect());
    }
    for only_tops in [true, false] {
        for fragment in 0..cx.fragments.len() as u32 {
            let later = only_tops && spread.contains(fragment);
            if !later && !decide.reached.contains(fragment) {
                let span = cx.fragments[fragment as usize].span;
                decide.reached.insert(fragment);
                decide.from(fragment, steps, most, span)?;
            }
        }
    }
    Ok(())
}

impl Decide<'_, '_> {
    fn from(&mut self, set: u32, steps: &mut u32, most: u32, place: Span) -> Result<(), Stop> {
        self.push_one(set, Ask::Calls);
        while let Some((visit, ask)) = self.pending.pop() {
            let rows = match &visit {
                Visit::One(set) if self.differ(*set, ask, steps) => {
                    if *steps > most {
                        return Err(Stop::TooComplex(place));
                    }
                    continue;
                }
                Visit::One(set) => self.flatten(&[*set], steps),
                Visit::Several(key) => self.flatten(key, steps),
            };
            *steps = steps.saturating_add(rows.len() as u32);
            if *steps > most {
                return Err(Stop::TooComplex(place));
            }
            let table = self.table;
            let same = |a: &u32, b: &u32| table.row(*a).response == table.row(*b).response;
            for group in rows.chunk_by(same) {
                self.group(group, ask, steps).map_err(Stop::Conflict)?;
            }
        }
        Ok(())
    }

    /// If all fields of a set have different response names and it spreads nothing, all there is to do: goes on to what
    /// is below each of them.
    fn differ(&mut self, set: u32, ask: Ask, steps: &mut u32) -> bool {
        let table = self.table;
        let of_set = &table.sets[set as usize];
        if !of_set.spreads.is_empty() {
            return false;
        }
        self.visit += 1;
        for row in of_set.rows.clone() {
            let name = &mut self.names[table.row(row).response as usize];
            if std::mem::replace(name, self.visit) == self.visit {
                return false;
            }
        }
        *steps = steps.saturating_add(1 + of_set.rows.len() as u32);
        for row in of_set.rows.clone() {
            if let Some(below) = table.row(row).set {
                self.push_one(below, ask);
            }
        }
        true
    }

    /// All fields of a merged selection set, sorted by response name, then document order.
    fn flatten(&mut self, key: &[u32], steps: &mut u32) -> Vec<u32> {
        self.visit += 1;
        let mut rows = Vec::new();
        let mut open: Vec<u32> = key.to_vec();
        while let Some(set) = open.pop() {
            *steps = steps.saturating_add(1);
            let mark = &mut self.marks[set as usize];
            if std::mem::replace(mark, self.visit) == self.visit {
                continue;
            }
            let set = &self.table.sets[set as usize];
            rows.extend(set.rows.clone());
            open.extend(&set.spreads);
            for fragment in &set.spreads {
                self.reached.insert(*fragment);
            }
        }
        rows.sort_unstable_by_key(|row| (self.table.row(*row).response, *row));
        rows
    }

    /// Checks the fields of one response name.
    fn group(&mut self, group: &[u32], ask: Ask, steps: &mut u32) -> Result<(), Conflict> {
        if let [only] = group {
            if let Some(set) = self.table.row(*only).set {
                self.push_one(set, ask);
            }
            return Ok(());
        }
        if ask == Ask::Calls {
            self.calls(group, steps)?;
        }
        let mut first = None;
        for row in group {
            let Some(shape) = self.table.row(*row).shape else {
                continue;
            };
            match first {
                None => first = Some((*row, shape)),
                Some((a, of)) if of != shape => return Err(Conflict { a, b: *row }),
                Some(_) => {}
            }
        }
        let below = group
            .iter()
            .filter_map(|row| self.table.row(*row).set)
            .collect();
        self.push(below, Ask::Shapes);
        Ok(())
    }

    /// Checks that fields which can meet are one call.
    fn calls(&mut self, group: &[u32], steps: &mut u32) -> Result<(), Conflict> {
        let mut sorted = group.to_vec();
        let table = self.table;
        let object = |row: &u32| table.row(*row).object;
        // Fields of abstract or unknown parents come first: they can meet all others.
        sorted.sort_by_key(object);
        let n_anywhere = sorted.partition_point(|row| object(row).is_none());
        let (anywhere, on_objects) = sorted.split_at(n_anywhere);
        let mut buckets: Vec<&[u32]> = on_objects.chunk_by(|a, b| object(a) == object(b)).collect();
        if buckets.is_empty() {
            buckets.push(&[]);
        }
        for bucket in buckets {
            *steps = steps.saturating_add(anywhere.len() as u32);
            let meeting = || anywhere.iter().chain(bucket).copied();
            let Some(a) = meeting().next() else {
                continue;
            };
            for b in meeting() {
                if self.table.row(a).call != self.table.row(b).call {
                    return Err(Conflict {
                        a: a.min(b),
                        b: a.max(b),
                    });
                }
            }
            let below = meeting()
                .filter_map(|row| self.table.row(row).set)
                .collect();
            self.push(below, Ask::Calls);
        }
        Ok(())
    }

    /// Plans a visit of a set that stands for itself or for the fragments it spreads.
    fn push_one(&mut self, set: u32, ask: Ask) {
        let row = &self.table.sets[set as usize];
        if row.rows.is_empty() && !row.spreads.is_empty() {
            return self.push(vec![set], ask);
        }
        let asked = &mut self.seen_alone[set as usize];
        if asked.is_none_or(|asked| asked < ask) {
            *asked = Some(ask);
            self.pending.push((Visit::One(set), ask));
        }
    }

    /// Plans a visit, unless the same was asked before.
    fn push(&mut self, sets: Vec<u32>, ask: Ask) {
        if sets.is_empty() {
            return;
        }
        let key = self.key(sets);
        if let [only] = *key {
            let asked = &mut self.seen_alone[only as usize];
            if asked.is_none_or(|asked| asked < ask) {
                *asked = Some(ask);
                self.pending.push((Visit::One(only), ask));
            }
            return;
        }
        match self.seen.get_mut(&key) {
            Some(asked) if *asked >= ask => return,
            Some(asked) => *asked = ask,
            None => {
                self.seen.insert(key.clone(), ask);
            }
        }
        self.pending.push((Visit::Several(key), ask));
    }

    /// Sorts, and puts fragments in place of sets that only spread them, so that equal combinations meet.
    fn key(&mut self, mut sets: Vec<u32>) -> Key {
        let mut chased = 0;
        let mut i = 0;
        while let Some(set) = sets.get(i).copied() {
            let Some(row) = self.table.sets.get(set as usize) else {
                break;
            };
            // A bound on the chase: cycles of fragments that only spread each other.
            if row.rows.is_empty() && !row.spreads.is_empty() && chased < self.table.sets.len() {
                chased += 1;
                sets.swap_remove(i);
                sets.extend(&row.spreads);
                for fragment in &row.spreads {
                    self.reached.insert(*fragment);
                }
            } else {
                i += 1;
            }
        }
        sets.sort_unstable();
        sets.dedup();
        sets.into()
    }
}
