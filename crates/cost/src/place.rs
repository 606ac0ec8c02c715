//! What the selections of one place cost: of objects of several types, the most expensive.
//!
//! Types that see the same fields are one class. Where there are too many pairs of a type and a field, the most expensive
//! field of each response key counts instead, which is never less.

use ogive_base::{BitSet, FastMap, FastSet, Symbol};

use crate::program::Operand;

/// Most pairs of a type and a field that one operation may have looked at.
pub(crate) const PAIRS_MAX: usize = 200_000;

/// A field, or the field of some types if theirs cost differently.
pub(crate) struct Part<'a> {
    pub(crate) key: Symbol,
    /// The concrete types that have it.
    pub(crate) types: &'a BitSet,
    pub(crate) cost: Operand,
}

/// How the costs of a place make one.
pub(crate) struct Alternatives {
    /// What every object costs.
    pub(crate) common: Vec<Operand>,
    /// Of each of these lists comes one more cost.
    pub(crate) lists: Vec<Vec<Operand>>,
    /// True: the sum of each list, and the largest of the sums; else the largest of each list, and all of those.
    pub(crate) classes: bool,
}

/// The costs of parts at a place whose objects are of one of the types `possible`; `pairs` counts what was looked at.
pub(crate) fn alternatives(
    possible: &BitSet,
    mut parts: Vec<Part<'_>>,
    pairs: &mut usize,
) -> Alternatives {
    parts.retain(|part| part.cost != Operand::ZERO);
    let is_common = |part: &Part<'_>| possible.is_subset(part.types);
    let common = parts.iter().filter(|p| is_common(p)).map(|p| p.cost);
    let common = common.collect();
    parts.retain(|part| !is_common(part));
    let more: usize = parts.iter().map(|part| part.types.len()).sum();
    *pairs = pairs.saturating_add(more);
    let classes = *pairs <= PAIRS_MAX;
    Alternatives {
        common,
        lists: if classes {
            by_type(&parts)
        } else {
            by_key(&parts)
        },
        classes,
    }
}

/// The costs of each response key, in order of appearance.
fn by_key(parts: &[Part<'_>]) -> Vec<Vec<Operand>> {
    let mut places: FastMap<Symbol, usize> = FastMap::default();
    let mut out: Vec<Vec<Operand>> = Vec::new();
    for part in parts {
        let place = *places.entry(part.key).or_insert(out.len());
        if place == out.len() {
            out.push(Vec::new());
        }
        out[place].push(part.cost);
    }
    out
}

/// The costs that each class of types has, in the order of its first type.
fn by_type(parts: &[Part<'_>]) -> Vec<Vec<Operand>> {
    let mut of_type: FastMap<u32, Vec<u32>> = FastMap::default();
    let mut types: Vec<u32> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        for ty in part.types.iter() {
            let row = of_type.entry(ty).or_insert_with(|| {
                types.push(ty);
                Vec::new()
            });
            row.push(i as u32);
        }
    }
    types.sort_unstable();
    let mut known: FastSet<Vec<u32>> = FastSet::default();
    let mut out = Vec::new();
    for ty in types {
        let Some(row) = of_type.remove(&ty) else {
            continue;
        };
        if known.contains(&row) {
            continue;
        }
        let costs = row.iter().filter_map(|i| parts.get(*i as usize));
        out.push(costs.map(|part| part.cost).collect());
        known.insert(row);
    }
    out
}
