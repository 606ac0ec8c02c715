//! Introspection queries must not nest lists without end: the one rule here that the specification does not have.
//!
//! Lists of fields, interfaces, possible types and input fields multiply at every level, so a short query could
//! ask for an answer of any size. Tools need two levels; the reference implementation refuses the third.

use ogive_syntax::ast::{Field, Selection, SelectionSet};

use super::context::Context;

/// Lists inside each other at which a query is refused.
const LISTS_MAX: u8 = 3;

/// How deep the lists nest inside each fragment.
#[derive(Default)]
pub(super) struct Depth {
    fragments: Option<Vec<u8>>,
}

impl Depth {
    /// Reports an introspection field with too many lists inside each other.
    pub(super) fn check(&mut self, cx: &mut Context<'_>, field: &Field) {
        if !matches!(cx.text(field.name), "__schema" | "__type") {
            return;
        }
        let Some(set) = &field.selection_set else {
            return;
        };
        let fragments = self.fragments.get_or_insert_with(|| fragment_depths(cx));
        if depth(cx, set, fragments) >= LISTS_MAX {
            cx.report(&[field.span], |_| {
                "Maximum introspection depth exceeded".to_owned()
            });
        }
    }
}

/// The least fixed point: depths only grow and stop at [`LISTS_MAX`], so there are at most that many rounds after
/// the spreads are settled; cycles count as the limit only if they contain a list.
fn fragment_depths(cx: &Context<'_>) -> Vec<u8> {
    let mut depths = vec![0; cx.fragments.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); depths.len()];
    for user in 0..depths.len() {
        for spread in cx.spreads_of(user) {
            if let Some(used) = spread.fragment {
                users[used].push(user);
            }
        }
    }
    let mut pending: Vec<usize> = (0..depths.len()).collect();
    let mut waiting = vec![true; depths.len()];
    while let Some(index) = pending.pop() {
        waiting[index] = false;
        let now = depth(cx, &cx.fragments[index].selection_set, &depths);
        if now > depths[index] {
            depths[index] = now;
            for user in &users[index] {
                if !std::mem::replace(&mut waiting[*user], true) {
                    pending.push(*user);
                }
            }
        }
    }
    depths
}

/// Most lists inside each other below `set`.
fn depth(cx: &Context<'_>, set: &SelectionSet, fragments: &[u8]) -> u8 {
    let mut deepest = 0;
    let mut pending = vec![(set, 0)];
    while let Some((set, above)) = pending.pop() {
        for selection in &cx.doc[set.items] {
            let here = match selection {
                Selection::Field(field) => {
                    let is_list = matches!(
                        cx.text(field.name),
                        "fields" | "interfaces" | "possibleTypes" | "inputFields"
                    );
                    let here = (above + u8::from(is_list)).min(LISTS_MAX);
                    pending.extend(field.selection_set.as_ref().map(|set| (set, here)));
                    here
                }
                Selection::Inline(inline) => {
                    pending.push((&inline.selection_set, above));
                    above
                }
                Selection::Spread(spread) => {
                    let inside = cx
                        .fragment(cx.text(spread.name))
                        .map_or(0, |f| fragments[f]);
                    (above + inside).min(LISTS_MAX)
                }
            };
            deepest = deepest.max(here);
        }
    }
    deepest
}
