//! Field merging (specification 5.3.2) on generated operations: what conflicts is dropped.
//!
//! Quadratic and literal, so that it shares nothing with the product's sub-quadratic check.

use super::{Field, Op, Sel};
use crate::graph::{Kind, Model, Ty};

/// Drops fields until all that share a response key can merge. Returns how many were dropped.
pub fn resolve(model: &Model, op: &mut Op) -> usize {
    let mut dropped = 0;
    while let Some(victim) = find(model, op) {
        let mut next = 0;
        op.for_each_set(&mut |set| {
            // Numbering as in `number`: a set's own fields come before those below them.
            let mut at = None;
            for (i, selection) in set.iter().enumerate() {
                if let Sel::Field(_) = selection {
                    if next == victim {
                        at = Some(i);
                    }
                    next += 1;
                }
            }
            if let Some(i) = at {
                // Keep the count of what follows intact for this round: it ends here anyway.
                set.remove(i);
                next = usize::MAX / 2;
            }
        });
        dropped += 1;
    }
    dropped
}

struct Entry<'o> {
    /// Enclosing types from the top of the merged scope down, one per response level.
    chain: Vec<&'o str>,
    field: &'o Field,
    number: usize,
    ty: Ty,
}

fn find(model: &Model, op: &Op) -> Option<usize> {
    let numbers = number(op);
    let root = if op.mutation { "Mutation" } else { "Query" };
    scope(
        model,
        op,
        &numbers,
        vec![(vec![root], op.selections.as_slice())],
    )
}

type Numbers<'o> = std::collections::HashMap<*const Field, usize>;

/// Numbers all fields in the order in which [`Op::for_each_set`] meets them.
fn number(op: &Op) -> Numbers<'_> {
    fn walk(
        set: &[Sel],
        next: &mut usize,
        out: &mut std::collections::HashMap<*const Field, usize>,
    ) {
        for selection in set {
            if let Sel::Field(field) = selection {
                out.insert(std::ptr::from_ref(field), *next);
                *next += 1;
            }
        }
        for selection in set {
            match selection {
                Sel::Field(field) => walk(&field.selections, next, out),
                Sel::Inline { selections, .. } => walk(selections, next, out),
                Sel::Spread { .. } => {}
            }
        }
    }
    let mut out = std::collections::HashMap::new();
    let mut next = 0;
    walk(&op.selections, &mut next, &mut out);
    for fragment in &op.fragments {
        walk(&fragment.selections, &mut next, &mut out);
    }
    out
}

/// The first conflict in one merged scope: the later of two fields.
fn scope<'o>(
    model: &'o Model,
    op: &'o Op,
    numbers: &Numbers<'o>,
    sets: Vec<(Vec<&'o str>, &'o [Sel])>,
) -> Option<usize> {
    let mut entries: Vec<Entry<'o>> = Vec::new();
    for (chain, set) in sets {
        expand(model, op, numbers, &chain, set, &mut entries);
    }
    for (i, later) in entries.iter().enumerate() {
        for earlier in &entries[..i] {
            if earlier.field.key() != later.field.key() {
                continue;
            }
            let exclusive = earlier.chain.iter().zip(&later.chain).any(|(a, b)| {
                a != b && model.kind(a) == Kind::Object && model.kind(b) == Kind::Object
            });
            let same =
                earlier.field.name == later.field.name && earlier.field.args == later.field.args;
            if (!exclusive && !same) || !same_shape(model, &earlier.ty, &later.ty) {
                return Some(later.number);
            }
        }
    }
    let mut done: Vec<&str> = Vec::new();
    for entry in &entries {
        let key = entry.field.key();
        if !entry.field.composite || done.contains(&key) {
            continue;
        }
        done.push(key);
        let children: Vec<(Vec<&str>, &[Sel])> = entries
            .iter()
            .filter(|e| e.field.key() == key)
            .map(|e| {
                let mut chain = e.chain.clone();
                chain.push(model.ty(e.ty.name()).map_or("", |t| t.name.as_str()));
                (chain, e.field.selections.as_slice())
            })
            .collect();
        if let Some(found) = scope(model, op, numbers, children) {
            return Some(found);
        }
    }
    None
}

/// Flattens fragments. The last of the chain is the innermost type condition.
fn expand<'o>(
    model: &'o Model,
    op: &'o Op,
    numbers: &Numbers<'o>,
    chain: &[&'o str],
    set: &'o [Sel],
    out: &mut Vec<Entry<'o>>,
) {
    let narrowed = |on: &'o str| {
        let mut chain = chain.to_vec();
        chain.pop();
        chain.push(on);
        chain
    };
    for selection in set {
        match selection {
            Sel::Field(field) => {
                let parent = chain.last().copied().unwrap_or("");
                let ty = match field.name.as_str() {
                    "__typename" => Ty::named("String").non_null(),
                    // Introspection is generated without aliases that could collide.
                    "__schema" | "__type" => continue,
                    name => match model.field(parent, name).and_then(|f| f.merged_ty()) {
                        Some(ty) => ty,
                        None => continue,
                    },
                };
                let number = numbers
                    .get(&std::ptr::from_ref(field))
                    .copied()
                    .unwrap_or(usize::MAX);
                out.push(Entry {
                    chain: chain.to_vec(),
                    field,
                    number,
                    ty,
                });
            }
            Sel::Inline { on, selections, .. } => match on {
                Some(on) => expand(model, op, numbers, &narrowed(on), selections, out),
                None => expand(model, op, numbers, chain, selections, out),
            },
            Sel::Spread { fragment, .. } => {
                let fragment = &op.fragments[*fragment];
                expand(
                    model,
                    op,
                    numbers,
                    &narrowed(&fragment.on),
                    &fragment.selections,
                    out,
                );
            }
        }
    }
}

/// `SameResponseShape` without the part about sub-selections.
fn same_shape(model: &Model, a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::NonNull(a), Ty::NonNull(b)) | (Ty::List(a), Ty::List(b)) => same_shape(model, a, b),
        (Ty::Named(a), Ty::Named(b)) => {
            match (model.kind(a).is_composite(), model.kind(b).is_composite()) {
                (true, true) => true,
                (false, false) => a == b,
                _ => false,
            }
        }
        _ => false,
    }
}
