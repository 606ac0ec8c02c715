//! Arguments of fields and directives (specification 5.4): known, unique, required.

use ogive_base::Span;
use ogive_schema::TypeId;
use ogive_syntax::ast::{Argument, Directive, Field, List};

use super::context::{Args, Context, Input, duplicates};

/// Argument names (5.4.1), on fields.
pub(super) fn known_on_field<'a>(
    cx: &mut Context<'a>,
    argument: &Argument,
    args: Args<'a>,
    parent: TypeId,
    field: &Field,
) {
    let name = cx.text(argument.name);
    if cx.arg(args, name).is_none() {
        cx.report(&[argument.span], |cx| {
            let (parent, field) = (cx.schema.type_name(parent), cx.text(field.name));
            let hint = hint(cx, args, name);
            format!("Unknown argument \"{name}\" on field \"{parent}.{field}\".{hint}")
        });
    }
}

/// Argument names (5.4.1), on directives.
pub(super) fn known_on_directive<'a>(cx: &mut Context<'a>, directive: &Directive, args: Args<'a>) {
    for argument in &cx.doc[directive.arguments] {
        let name = cx.text(argument.name);
        if cx.arg(args, name).is_none() {
            cx.report(&[argument.span], |cx| {
                let directive = cx.text(directive.name);
                let hint = hint(cx, args, name);
                format!("Unknown argument \"{name}\" on directive \"@{directive}\".{hint}")
            });
        }
    }
}

fn hint<'a>(cx: &Context<'a>, args: Args<'a>, name: &str) -> String {
    let names = cx.arg_list(args).map(|input| input.name);
    cx.did_you_mean(None, name, names)
}

/// Argument uniqueness (5.4.2).
pub(super) fn unique(cx: &mut Context<'_>, arguments: List<Argument>) {
    let doc = cx.doc;
    let names = doc[arguments]
        .iter()
        .map(|a| (doc.name(a.name), a.name.span()));
    for (name, places) in duplicates(names) {
        cx.report(&places, |_| {
            format!("There can be only one argument named \"{name}\".")
        });
    }
}

/// Required arguments (5.4.3), on fields.
pub(super) fn required_on_field<'a>(cx: &mut Context<'a>, field: &Field, args: Args<'a>) {
    missing(cx, args, field.arguments, field.span, |cx, input| {
        let (field, name, ty) = (cx.text(field.name), input.name, cx.display(input.ty));
        format!(
            "Field \"{field}\" argument \"{name}\" of type \"{ty}\" is required, but it was not provided."
        )
    });
}

/// Required arguments (5.4.3), on directives.
pub(super) fn required_on_directive<'a>(
    cx: &mut Context<'a>,
    directive: &Directive,
    args: Args<'a>,
) {
    missing(
        cx,
        args,
        directive.arguments,
        directive.span,
        |cx, input| {
            let (directive, name) = (cx.text(directive.name), input.name);
            let ty = cx.display(input.ty);
            format!(
                "Directive \"@{directive}\" argument \"{name}\" of type \"{ty}\" is required, but it was not provided."
            )
        },
    );
}

fn missing<'a>(
    cx: &mut Context<'a>,
    args: Args<'a>,
    given: List<Argument>,
    place: Span,
    message: impl Fn(&Context<'a>, &Input<'a>) -> String,
) {
    let doc = cx.doc;
    let absent: Vec<Input<'a>> = cx
        .arg_list(args)
        .filter(|input| {
            input.is_required() && !doc[given].iter().any(|a| doc.name(a.name) == input.name)
        })
        .collect();
    for input in absent {
        cx.report(&[place], |cx| message(cx, &input));
    }
}
