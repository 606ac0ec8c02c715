//! Values of correct type (specification 5.6.1) for everything but input objects, which [`super::input`] checks.

use ogive_schema::{Type, TypeId, TypeKind};
use ogive_syntax::ast::{Value, ValueKind};

use super::{context::Context, literal};

/// Checks a literal that has no parts of its own, or whose parts do not matter because `ty` has none.
pub(super) fn leaf(cx: &mut Context<'_>, value: &Value, ty: Option<Type>) {
    let Some(ty) = ty else {
        return;
    };
    if let ValueKind::Null = value.kind {
        if ty.wrapping.is_non_null() {
            expected(cx, value, ty);
        }
        return;
    }
    match cx.schema.types[ty.id].kind {
        TypeKind::Scalar => scalar(cx, value, ty.id),
        TypeKind::Enum => enum_value(cx, value, ty.id),
        _ => expected(cx, value, ty),
    }
}

/// Reports `value` as something else than a `ty`.
pub(super) fn expected(cx: &mut Context<'_>, value: &Value, ty: Type) {
    cx.report(&[value.span], |cx| {
        let (ty, found) = (cx.display(ty), literal::print(cx.doc, value));
        format!("Expected value of type \"{ty}\", found {found}.")
    });
}

fn scalar(cx: &mut Context<'_>, value: &Value, ty: TypeId) {
    if !cx.schema.types[ty].built_in {
        return;
    }
    let doc = cx.doc;
    let kind = value.kind;
    let complaint = match cx.schema.type_name(ty) {
        "Int" => match kind {
            ValueKind::Int if doc.text(value.span).parse::<i32>().is_err() => {
                "Int cannot represent non 32-bit signed integer value: "
            }
            ValueKind::Int => return,
            _ => "Int cannot represent non-integer value: ",
        },
        "Float" if !matches!(kind, ValueKind::Int | ValueKind::Float) => {
            "Float cannot represent non numeric value: "
        }
        "String" if !matches!(kind, ValueKind::String { .. }) => {
            "String cannot represent a non string value: "
        }
        "Boolean" if !matches!(kind, ValueKind::Boolean(_)) => {
            "Boolean cannot represent a non boolean value: "
        }
        "ID" if !matches!(kind, ValueKind::Int | ValueKind::String { .. }) => {
            "ID cannot represent a non-string and non-integer value: "
        }
        _ => return,
    };
    cx.report(&[value.span], |cx| {
        format!("{complaint}{}", literal::print(cx.doc, value))
    });
}

fn enum_value(cx: &mut Context<'_>, value: &Value, ty: TypeId) {
    let is_enum = matches!(value.kind, ValueKind::Enum);
    if is_enum
        && cx
            .schema
            .enum_value_by_name(ty, cx.doc.text(value.span))
            .is_some()
    {
        return;
    }
    cx.report(&[value.span], |cx| {
        let found = literal::print(cx.doc, value);
        let values = &cx.schema.types[ty].enum_values;
        let names = values
            .iter()
            .map(|v| cx.schema.name(cx.schema.enum_values[*v].name));
        let hint = cx.did_you_mean(Some("the enum value"), &found, names);
        let name = cx.schema.type_name(ty);
        if is_enum {
            format!("Value \"{found}\" does not exist in \"{name}\" enum.{hint}")
        } else {
            format!("Enum \"{name}\" cannot represent non-enum value: {found}.{hint}")
        }
    });
}
