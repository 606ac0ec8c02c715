//! Satisfiability against a second opinion that shares no code with it: every query up to a depth, and for each every
//! way through the subgraphs, one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ogive_testbase::Rng;

use crate::{Owned, run, sub};

/// Depth that no failure of an instance of this size needs more than.
const DEPTH: usize = 6;
/// Instances.
const INSTANCES: u64 = 800;
const TYPES: usize = 3;
const KEYS: usize = 3;

/// What one subgraph says of one type.
#[derive(Clone, Default)]
struct Local {
    /// Fields that identify an object here.
    keys: BTreeSet<usize>,
    /// Key fields it resolves.
    holds: BTreeSet<usize>,
    /// Leaf fields.
    leaves: BTreeSet<usize>,
    /// Fields that lead to a type.
    links: BTreeMap<usize, usize>,
}

/// Per subgraph its types, and the types its queries return.
struct Model {
    subs: Vec<(BTreeMap<usize, Local>, Vec<usize>)>,
}

fn model(seed: u64) -> Model {
    let mut rng = Rng::new(seed);
    let count = 2 + rng.below(3);
    let mut subs = Vec::new();
    for s in 0..count {
        let mut types: BTreeMap<usize, Local> = BTreeMap::new();
        for ty in 0..TYPES {
            if rng.below(100) < 70 {
                let mut local = Local::default();
                for key in 0..KEYS {
                    if rng.below(100) < 45 {
                        local.holds.insert(key);
                        if rng.below(100) < 65 {
                            local.keys.insert(key);
                        }
                    }
                }
                if rng.below(100) < 40 {
                    local.leaves.insert(s);
                }
                types.insert(ty, local);
            }
        }
        let known: Vec<usize> = types.keys().copied().collect();
        for ty in known.clone() {
            for _ in 0..rng.below(2) {
                let target = known[rng.below(known.len())];
                if let Some(local) = types.get_mut(&ty) {
                    local.links.insert(s, target);
                }
            }
        }
        let queries = known
            .iter()
            .copied()
            .filter(|_| rng.below(100) < 40)
            .collect();
        subs.push((types, queries));
    }
    // An object has a field, and a graph a query.
    for (types, _) in &mut subs {
        for local in types.values_mut() {
            if local.holds.is_empty() && local.leaves.is_empty() && local.links.is_empty() {
                local.holds.insert(0);
            }
        }
    }
    Model { subs }
}

fn sdl(model: &Model) -> Vec<Owned> {
    let mut out = Vec::new();
    for (s, (types, queries)) in model.subs.iter().enumerate() {
        let mut text = String::from(
            "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@shareable\"])\n",
        );
        let _ = write!(text, "type Query {{ s{s}: Int");
        for ty in queries {
            let _ = write!(text, " q{s}t{ty}: T{ty}");
        }
        text.push_str(" }\n");
        for (ty, local) in types {
            let _ = write!(text, "type T{ty}");
            for key in &local.keys {
                let _ = write!(text, " @key(fields: \"k{key}\")");
            }
            text.push_str(" {");
            for key in &local.holds {
                let _ = write!(text, " k{key}: ID! @shareable");
            }
            for leaf in &local.leaves {
                let _ = write!(text, " f{leaf}: Int");
            }
            for (name, target) in &local.links {
                let _ = write!(text, " l{name}: T{target}");
            }
            text.push_str(" }\n");
        }
        out.push(sub(&format!("s{s}"), &text));
    }
    out
}

/// Every subgraph one can stand in at objects of `ty`, coming from `at`: hop by hop, each way on its own.
fn hops(model: &Model, ty: usize, at: usize, seen: &mut Vec<usize>) {
    if seen.contains(&at) {
        return;
    }
    seen.push(at);
    let Some(here) = model.subs[at].0.get(&ty) else {
        return;
    };
    for (other, (types, _)) in model.subs.iter().enumerate() {
        let Some(there) = types.get(&ty) else {
            continue;
        };
        if here.holds.intersection(&there.keys).next().is_some() {
            hops(model, ty, other, seen);
        }
    }
}

/// The fields of the merged type: who has them, and where they lead.
fn fields(model: &Model, ty: usize) -> BTreeMap<String, Option<usize>> {
    let mut out = BTreeMap::new();
    for (types, _) in &model.subs {
        let Some(local) = types.get(&ty) else {
            continue;
        };
        out.extend(local.holds.iter().map(|k| (format!("k{k}"), None)));
        out.extend(local.leaves.iter().map(|f| (format!("f{f}"), None)));
        out.extend(local.links.iter().map(|(l, t)| (format!("l{l}"), Some(*t))));
    }
    out
}

fn has(local: &Local, field: &str) -> bool {
    let Ok(n) = field[1..].parse::<usize>() else {
        return false;
    };
    match &field[..1] {
        "k" => local.holds.contains(&n),
        "f" => local.leaves.contains(&n),
        _ => local.links.contains_key(&n),
    }
}

/// The shortest query below objects of `ty` reached in the subgraphs `ats` that nothing resolves.
fn failing(model: &Model, ty: usize, ats: &[usize], depth: usize) -> Option<usize> {
    let mut best: Option<usize> = None;
    let mut places = Vec::new();
    for at in ats {
        hops(model, ty, *at, &mut places);
    }
    for (field, target) in fields(model, ty) {
        let next: Vec<usize> = places
            .iter()
            .copied()
            .filter(|s| model.subs[*s].0.get(&ty).is_some_and(|l| has(l, &field)))
            .collect();
        let found = if next.is_empty() {
            Some(1)
        } else if depth > 1 {
            target
                .and_then(|t| failing(model, t, &next, depth - 1))
                .map(|n| n + 1)
        } else {
            None
        };
        best = match (best, found) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    best
}

#[test]
fn every_query_and_every_way_gives_the_same_verdict() {
    let (mut rejected, mut accepted) = (0, 0);
    for seed in 0..INSTANCES {
        let model = model(seed);
        let expected = model
            .subs
            .iter()
            .enumerate()
            .flat_map(|(s, (_, queries))| queries.iter().map(move |ty| (s, *ty)))
            .filter_map(|(s, ty)| failing(&model, ty, &[s], DEPTH))
            .min();
        let set = sdl(&model);
        let composed = run(&set);
        let context = || {
            set.iter()
                .map(|s| s.sdl.as_str())
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert!(
            composed
                .errors
                .iter()
                .all(|e| e.code == "SATISFIABILITY_ERROR"),
            "seed {seed}: {:?}\n{}",
            composed.errors,
            context()
        );
        assert_eq!(
            composed.errors.is_empty(),
            expected.is_none(),
            "seed {seed}: expected a failing query of depth {expected:?}\n{}",
            context()
        );
        match expected {
            None => accepted += 1,
            Some(shortest) => {
                rejected += 1;
                // The first one printed is as short as any.
                let message = &composed.errors[0].message;
                let query = message.split_once("in this query: ").unwrap().1;
                let depth = query.matches('{').count() - usize::from(query.contains("__typename"));
                assert_eq!(depth, shortest + 1, "seed {seed}: {query}\n{}", context());
            }
        }
    }
    assert!(
        rejected > 150 && accepted > 50,
        "{rejected} rejected, {accepted} accepted"
    );
}
