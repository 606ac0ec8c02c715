//! `@defer(label: String, if: Boolean! = true)` on fragments, as the draft of incremental delivery has it.
//!
//! Schemas do not define the directive, so introspection does not list it; documents may use it all the same. A schema that defines a directive of this name has its own rules.

use ogive_base::{FastMap, Span};
use ogive_schema::{
    ConstValue, DirectiveLocation, OperationKind, Type, TypeId, Wrapping, value::const_value,
};
use ogive_syntax::ast::{Argument, Directive, List, ValueKind};

use super::context::{Context, Position};

/// The name of the directive.
pub(super) const NAME: &str = "defer";

/// Labels so far, with where they stand.
pub(super) type Labels = FastMap<Box<str>, Span>;

/// Location, names of arguments, and labels, which are literals and unique in the document.
pub(super) fn check(
    cx: &mut Context<'_>,
    labels: &mut Labels,
    directive: &Directive,
    location: DirectiveLocation,
) {
    let on_fragment = matches!(
        location,
        DirectiveLocation::FragmentSpread | DirectiveLocation::InlineFragment
    );
    if !on_fragment {
        let location = location.as_str();
        cx.report(&[directive.span], |_| {
            format!("Directive \"@defer\" may not be used on {location}.")
        });
    }
    let doc = cx.doc;
    for argument in &doc[directive.arguments] {
        match (cx.text(argument.name), argument.value.kind) {
            ("if", _) | ("label", ValueKind::Null) => {}
            ("label", ValueKind::Variable(_)) => cx.report(&[argument.span], |_| {
                "Argument \"label\" of directive \"@defer\" must be a static string.".to_owned()
            }),
            ("label", ValueKind::String { .. }) => {
                let ConstValue::String(label) = const_value(doc, &argument.value) else {
                    continue;
                };
                let label: Box<str> = label.as_ref().into();
                if let Some(first) = labels.get(&label) {
                    cx.report(&[*first, argument.span], |_| {
                        format!("There can be only one deferred fragment labelled \"{label}\".")
                    });
                } else {
                    labels.insert(label, argument.span);
                }
            }
            // Said as a value of the wrong type.
            ("label", _) => {}
            (name, _) => cx.report(&[argument.span], |_| {
                format!("Unknown argument \"{name}\" on directive \"@defer\".")
            }),
        }
    }
}

/// What is expected of an argument.
pub(super) fn position(cx: &Context<'_>, argument: &Argument) -> Position {
    let (name, wrapping) = match cx.text(argument.name) {
        "if" => ("Boolean", Wrapping::NON_NULL),
        "label" => ("String", Wrapping::NULLABLE),
        _ => return Position::default(),
    };
    let id = cx.schema.type_by_name(name);
    Position {
        ty: id.map(|id| Type { id, wrapping }),
        has_default: wrapping.is_non_null(),
        object: None,
    }
}

/// Root fields of mutations run in order, and those of subscriptions are sources of events: neither is deferred.
pub(super) fn root(cx: &mut Context<'_>, list: List<Directive>, parent: Option<TypeId>) {
    if list.is_empty() || cx.schema.directive_by_name(NAME).is_some() {
        return;
    }
    let doc = cx.doc;
    let Some(directive) = doc[list].iter().find(|d| doc.name(d.name) == NAME) else {
        return;
    };
    let is_off = |argument: &Argument| {
        doc.name(argument.name) == "if" && matches!(argument.value.kind, ValueKind::Boolean(false))
    };
    for kind in [OperationKind::Mutation, OperationKind::Subscription] {
        let is_root = parent.is_some() && cx.schema.root(kind) == parent;
        if is_root && !doc[directive.arguments].iter().any(is_off) {
            cx.report(&[directive.span], |cx| {
                let (kind, ty) = (kind.as_str(), parent.map(|ty| cx.schema.type_name(ty)));
                let ty = ty.unwrap_or_default();
                format!("Directive \"@defer\" may not be used on root {kind} type \"{ty}\".")
            });
        }
    }
}
