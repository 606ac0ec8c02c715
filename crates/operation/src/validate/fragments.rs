//! Fragments (specification 5.5): existing, used, composite, acyclic, possible where they are spread.

use ogive_base::{BitSet, Span};
use ogive_schema::TypeId;
use ogive_syntax::{
    Name,
    ast::{Definition, FragmentSpread, InlineFragment},
};

use super::context::Context;

/// Fragments on object, interface or union types (5.5.1.3). `fragment` is `None` for inline fragments.
pub(super) fn condition(cx: &mut Context<'_>, fragment: Option<Name>, condition: Name) {
    let ty = cx.text(condition);
    let Some(id) = cx.schema.type_by_name(ty) else {
        return;
    };
    if cx.schema.types[id].kind.is_composite() {
        return;
    }
    cx.report(&[condition.span()], |cx| match fragment {
        Some(name) => {
            let name = cx.text(name);
            format!("Fragment \"{name}\" cannot condition on non composite type \"{ty}\".")
        }
        None => format!("Fragment cannot condition on non composite type \"{ty}\"."),
    });
}

/// Fragment spread target defined (5.5.2.1).
pub(super) fn known(cx: &mut Context<'_>, spread: &FragmentSpread) {
    let name = cx.text(spread.name);
    if cx.fragment(name).is_none() {
        cx.report(&[spread.name.span()], |_| {
            format!("Unknown fragment \"{name}\".")
        });
    }
}

/// Fragment spread is possible (5.5.2.3), for spreads.
pub(super) fn possible_spread(
    cx: &mut Context<'_>,
    spread: &FragmentSpread,
    parent: Option<TypeId>,
) {
    let name = cx.text(spread.name);
    let Some(fragment) = cx.fragment(name) else {
        return;
    };
    let condition = cx.text(cx.fragments[fragment].type_condition);
    let ty = cx.composite(cx.schema.type_by_name(condition));
    if let (Some(ty), Some(parent)) = (ty, parent)
        && !overlap(cx, ty, parent)
    {
        cx.report(&[spread.span], |cx| {
            let (parent, ty) = (cx.schema.type_name(parent), cx.schema.type_name(ty));
            format!(
                "Fragment \"{name}\" cannot be spread here as objects of type \"{parent}\" can never be of type \"{ty}\"."
            )
        });
    }
}

/// Fragment spread is possible (5.5.2.3), for inline fragments.
pub(super) fn possible_inline(
    cx: &mut Context<'_>,
    inline: &InlineFragment,
    ty: Option<TypeId>,
    parent: Option<TypeId>,
) {
    if let (Some(ty), Some(parent)) = (ty, parent)
        && !overlap(cx, ty, parent)
    {
        cx.report(&[inline.span], |cx| {
            let (parent, ty) = (cx.schema.type_name(parent), cx.schema.type_name(ty));
            format!(
                "Fragment cannot be spread here as objects of type \"{parent}\" can never be of type \"{ty}\"."
            )
        });
    }
}

fn overlap(cx: &Context<'_>, a: TypeId, b: TypeId) -> bool {
    a == b
        || cx.schema.types[a]
            .possible
            .intersects(&cx.schema.types[b].possible)
}

/// Fragments must be used (5.5.1.4).
pub(super) fn unused(cx: &mut Context<'_>) {
    let mut used = BitSet::new();
    for definition in &cx.doc.definitions {
        if let Definition::Operation(operation) = definition {
            let spreads = cx.spreads_in(&operation.selection_set);
            cx.reach(&spreads, &mut used, &mut 0);
        }
    }
    for index in 0..cx.fragments.len() {
        let fragment = cx.fragments[index];
        let name = cx.text(fragment.name);
        // Of several fragments with one name all count as used.
        let target = cx.fragment(name).unwrap_or(index);
        if !used.contains(target as u32) {
            cx.report(&[fragment.span], |_| {
                format!("Fragment \"{name}\" is never used.")
            });
        }
    }
}

/// Fragment spreads must not form cycles (5.5.2.2).
#[derive(Default)]
pub(super) struct Cycles {
    visited: BitSet,
    /// Where on the path of the search each fragment stands, so that closing a cycle is a look-up.
    on_path: Vec<Option<usize>>,
}

/// One fragment on the path of the search.
struct Step {
    /// The fragment whose spreads are looked at: as visited, and as its name resolves.
    node: usize,
    name: usize,
    /// The next spread to follow.
    next: usize,
}

impl Cycles {
    /// Follows the spreads of fragment `start` depth first, unless an earlier search has been there.
    pub(super) fn check(&mut self, cx: &mut Context<'_>, start: usize) {
        let named = |cx: &Context<'_>, index: usize| {
            cx.fragment(cx.text(cx.fragments[index].name))
                .unwrap_or(index)
        };
        let name = named(cx, start);
        if !self.visited.insert(name as u32) {
            return;
        }
        let mut path = vec![Step {
            node: start,
            name,
            next: 0,
        }];
        self.on_path.resize(cx.fragments.len(), None);
        self.on_path[name] = Some(0);
        while let Some(step) = path.last_mut() {
            let Some(spread) = cx.spreads_of(step.node).get(step.next).copied() else {
                self.on_path[step.name] = None;
                path.pop();
                continue;
            };
            step.next += 1;
            let Some(target) = spread.fragment else {
                continue;
            };
            if let Some(from) = self.on_path[target] {
                // Every step from there on has just followed its spread `next - 1`.
                let around: Vec<_> = path[from..]
                    .iter()
                    .map(|step| cx.spreads_of(step.node)[step.next - 1])
                    .collect();
                let places: Vec<Span> = around.iter().map(|spread| spread.span).collect();
                let via: Vec<String> = around[..around.len() - 1]
                    .iter()
                    .map(|spread| format!("\"{}\"", spread.name))
                    .collect();
                cx.report(&places, |_| {
                    let via = if via.is_empty() {
                        String::new()
                    } else {
                        format!(" via {}", via.join(", "))
                    };
                    format!(
                        "Cannot spread fragment \"{}\" within itself{via}.",
                        spread.name
                    )
                });
            } else if self.visited.insert(target as u32) {
                self.on_path[target] = Some(path.len());
                path.push(Step {
                    node: target,
                    name: target,
                    next: 0,
                });
            }
        }
    }
}
