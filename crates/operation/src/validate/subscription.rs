//! Single root field (specification 5.2.4.1): one response key, no introspection, no `@skip` or `@include`.

use ogive_base::{BitSet, FastMap, Span};
use ogive_schema::OperationKind;
use ogive_syntax::{
    Name,
    ast::{Directive, Field, List, OperationDefinition, Selection, SelectionSet},
};

use super::context::Context;

/// What a subscription selects at its root.
struct Root<'a> {
    /// Fields by response key, in order of first appearance.
    groups: Vec<Vec<&'a Field>>,
    /// `@skip` and `@include` on the way to a root field.
    conditions: Vec<Span>,
}

/// Checks the root of a subscription.
pub(super) fn check<'a>(cx: &mut Context<'a>, operation: &'a OperationDefinition) {
    if cx.schema.root(OperationKind::Subscription).is_none() {
        return;
    }
    let who = match operation.name {
        Some(name) => format!("Subscription \"{}\"", cx.text(name)),
        None => "Anonymous Subscription".to_owned(),
    };
    let root = collect(cx, &operation.selection_set);
    if !root.conditions.is_empty() {
        // Which fields there are depends on variables, so nothing else can be said.
        cx.report(&root.conditions, |_| {
            format!(
                "{who} must not use `@skip` or `@include` directives in the top level selection."
            )
        });
        return;
    }
    let places = |fields: &mut dyn Iterator<Item = &&Field>| -> Vec<Span> {
        fields.map(|field| field.span).collect()
    };
    if root.groups.len() > 1 {
        let extra = places(&mut root.groups[1..].iter().flatten());
        cx.report(&extra, |_| {
            format!("{who} must select only one top level field.")
        });
    }
    for group in &root.groups {
        if cx.text(group[0].name).starts_with("__") {
            cx.report(&places(&mut group.iter()), |_| {
                format!("{who} must not select an introspection top level field.")
            });
        }
    }
}

/// `CollectSubscriptionFields`: fragments that apply are flattened, each named one once.
fn collect<'a>(cx: &Context<'a>, set: &'a SelectionSet) -> Root<'a> {
    let doc = cx.doc;
    let mut root = Root {
        groups: Vec::new(),
        conditions: Vec::new(),
    };
    let mut keys: FastMap<&str, usize> = FastMap::default();
    let mut visited = BitSet::new();
    let mut pending = vec![doc[set.items].iter()];
    while let Some(selections) = pending.last_mut() {
        let Some(selection) = selections.next() else {
            pending.pop();
            continue;
        };
        match selection {
            Selection::Field(field) => {
                root.note_conditions(cx, field.directives);
                let key = doc.name(field.response_key());
                let at = *keys.entry(key).or_insert_with(|| {
                    root.groups.push(Vec::new());
                    root.groups.len() - 1
                });
                root.groups[at].push(field);
            }
            Selection::Inline(inline) => {
                root.note_conditions(cx, inline.directives);
                if inline.type_condition.is_none_or(|c| applies(cx, c)) {
                    pending.push(doc[inline.selection_set.items].iter());
                }
            }
            Selection::Spread(spread) => {
                root.note_conditions(cx, spread.directives);
                if let Some(index) = cx.fragment(doc.name(spread.name))
                    && visited.insert(index as u32)
                    && applies(cx, cx.fragments[index].type_condition)
                {
                    pending.push(doc[cx.fragments[index].selection_set.items].iter());
                }
            }
        }
    }
    root
}

impl Root<'_> {
    fn note_conditions(&mut self, cx: &Context<'_>, list: List<Directive>) {
        let named = |name: &str| {
            let mut directives = cx.doc[list].iter();
            directives.find(|d| cx.text(d.name) == name)
        };
        self.conditions
            .extend(named("skip").or_else(|| named("include")).map(|d| d.span));
    }
}

/// Whether a fragment on `condition` applies to the subscription root.
fn applies(cx: &Context<'_>, condition: Name) -> bool {
    let schema = cx.schema;
    match (
        schema.type_by_name(cx.text(condition)),
        schema.root(OperationKind::Subscription),
    ) {
        (Some(condition), Some(root)) => schema.is_subtype(root, condition),
        _ => false,
    }
}
