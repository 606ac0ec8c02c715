//! `@defer(label: String, if: Boolean! = true)` on fragments and `@stream(label: String, if: Boolean! = true, initialCount: Int! = 0)`
//! on lists, as the draft of incremental delivery has them.
//!
//! Schemas do not define the directives; documents may use them all the same, and introspection lists them where they are served. A schema
//! that defines a directive of one of these names has its own rules.

use ogive_base::{BitSet, FastMap, Span};
use ogive_schema::{
    ConstValue, DirectiveLocation, OperationKind, Type, TypeId, Wrapping, value::const_value,
};
use ogive_syntax::ast::{
    Argument, Directive, Field, List, OperationDefinition, Selection, ValueKind,
};

use super::context::{Context, Position};

/// The name of the directive on fragments.
pub(super) const DEFER: &str = "defer";
/// The name of the directive on lists.
pub(super) const STREAM: &str = "stream";

/// Labels so far, with where they stand and whether a list has them.
pub(super) type Labels = FastMap<Box<str>, (Span, bool)>;

/// Whether a directive of this name has the rules of this file, unless the schema defines it.
pub(super) fn is_known(name: &str) -> bool {
    name == DEFER || name == STREAM
}

/// Location, names of arguments, and labels, which are literals and unique in the document.
pub(super) fn check(
    cx: &mut Context<'_>,
    labels: &mut Labels,
    directive: &Directive,
    location: DirectiveLocation,
) {
    let name = cx.text(directive.name);
    let is_stream = name == STREAM;
    let is_there = match location {
        DirectiveLocation::FragmentSpread | DirectiveLocation::InlineFragment => !is_stream,
        DirectiveLocation::Field => is_stream,
        _ => false,
    };
    if !is_there {
        let location = location.as_str();
        cx.report(&[directive.span], |_| {
            format!("Directive \"@{name}\" may not be used on {location}.")
        });
    }
    let doc = cx.doc;
    for argument in &doc[directive.arguments] {
        match (cx.text(argument.name), argument.value.kind) {
            ("if", _) | ("label", ValueKind::Null) => {}
            ("initialCount", kind) if is_stream => {
                let is_negative = matches!(kind, ValueKind::Int)
                    && doc.text(argument.value.span).starts_with('-');
                if is_negative {
                    cx.report(&[argument.span], |_| {
                        "Argument \"initialCount\" of directive \"@stream\" must not be negative."
                            .to_owned()
                    });
                }
            }
            ("label", ValueKind::Variable(_)) => cx.report(&[argument.span], |_| {
                format!("Argument \"label\" of directive \"@{name}\" must be a static string.")
            }),
            ("label", ValueKind::String { .. }) => {
                let ConstValue::String(label) = const_value(doc, &argument.value) else {
                    continue;
                };
                let label: Box<str> = label.as_ref().into();
                if let Some((first, of_list)) = labels.get(&label) {
                    let what = if *of_list || is_stream {
                        "deferred fragment or streamed field"
                    } else {
                        "deferred fragment"
                    };
                    cx.report(&[*first, argument.span], |_| {
                        format!("There can be only one {what} labelled \"{label}\".")
                    });
                } else {
                    labels.insert(label, (argument.span, is_stream));
                }
            }
            // Said as a value of the wrong type.
            ("label", _) => {}
            (unknown, _) => cx.report(&[argument.span], |_| {
                format!("Unknown argument \"{unknown}\" on directive \"@{name}\".")
            }),
        }
    }
}

/// What is expected of an argument.
pub(super) fn position(cx: &Context<'_>, directive: &Directive, argument: &Argument) -> Position {
    let (name, wrapping) = match cx.text(argument.name) {
        "if" => ("Boolean", Wrapping::NON_NULL),
        "label" => ("String", Wrapping::NULLABLE),
        "initialCount" if cx.text(directive.name) == STREAM => ("Int", Wrapping::NON_NULL),
        _ => return Position::default(),
    };
    let id = cx.schema.type_by_name(name);
    Position {
        ty: id.map(|id| Type { id, wrapping }),
        has_default: wrapping.is_non_null(),
        object: None,
    }
}

/// The directive of a list, unless the schema defines it.
fn found<'a>(cx: &Context<'a>, list: List<Directive>, name: &str) -> Option<&'a Directive> {
    if list.is_empty() || cx.schema.directive_by_name(name).is_some() {
        return None;
    }
    let doc = cx.doc;
    doc[list].iter().find(|d| doc.name(d.name) == name)
}

/// Whether a directive is switched off, or may be (`if` is a variable).
fn is_off(cx: &Context<'_>, directive: &Directive, or_may_be: bool) -> bool {
    let doc = cx.doc;
    doc[directive.arguments].iter().any(|argument| {
        doc.name(argument.name) == "if"
            && match argument.value.kind {
                ValueKind::Boolean(value) => !value,
                ValueKind::Variable(_) => or_may_be,
                _ => false,
            }
    })
}

/// Root fields of mutations run in order: none is deferred.
pub(super) fn fragment(cx: &mut Context<'_>, list: List<Directive>, parent: Option<TypeId>) {
    if let Some(directive) = found(cx, list, DEFER) {
        root(cx, directive, parent);
    }
}

/// Only lists are streamed, and none of the root of mutations.
pub(super) fn field(cx: &mut Context<'_>, field: &Field, parent: Option<TypeId>, ty: Option<Type>) {
    let Some(directive) = found(cx, field.directives, STREAM) else {
        return;
    };
    root(cx, directive, parent);
    if let Some(parent) = parent
        && ty.is_some_and(|ty| !ty.wrapping.is_list())
    {
        cx.report(&[directive.span], |cx| {
            let (ty, name) = (cx.schema.type_name(parent), cx.text(field.name));
            format!("Directive \"@stream\" cannot be used on non-list field \"{ty}.{name}\".")
        });
    }
}

fn root(cx: &mut Context<'_>, directive: &Directive, parent: Option<TypeId>) {
    let kind = OperationKind::Mutation;
    let is_root = parent.is_some() && cx.schema.root(kind) == parent;
    if is_root && !is_off(cx, directive, false) {
        cx.report(&[directive.span], |cx| {
            let name = cx.text(directive.name);
            let (kind, ty) = (kind.as_str(), parent.map(|ty| cx.schema.type_name(ty)));
            let ty = ty.unwrap_or_default();
            format!("Directive \"@{name}\" may not be used on root {kind} type \"{ty}\".")
        });
    }
}

/// Events of subscriptions are answered whole: neither directive may be in effect anywhere in one.
pub(super) fn subscription(cx: &mut Context<'_>, operation: &OperationDefinition) {
    let doc = cx.doc;
    let mut visited = BitSet::new();
    let mut pending = vec![doc[operation.selection_set.items].iter()];
    while let Some(selections) = pending.last_mut() {
        let Some(selection) = selections.next() else {
            pending.pop();
            continue;
        };
        let (directives, below) = match selection {
            Selection::Field(field) => {
                let set = field.selection_set.as_ref();
                (field.directives, set.map(|set| set.items))
            }
            Selection::Inline(inline) => (inline.directives, Some(inline.selection_set.items)),
            Selection::Spread(spread) => {
                let index = cx.fragment(doc.name(spread.name));
                let index = index.filter(|index| visited.insert(*index as u32));
                let below = index.map(|index| cx.fragments[index].selection_set.items);
                (spread.directives, below)
            }
        };
        pending.extend(below.map(|items| doc[items].iter()));
        for name in [DEFER, STREAM] {
            if let Some(directive) = found(cx, directives, name)
                && !is_off(cx, directive, true)
            {
                cx.report(&[directive.span], |_| {
                    format!(
                        "Directive \"@{name}\" is not supported in subscriptions. It can be switched off by `if: false`."
                    )
                });
            }
        }
    }
}
