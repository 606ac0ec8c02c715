//! Literals against input types (specification 3.5 to 3.12 "input coercion", 5.6.1).

use ogive_base::{FastSet, Span};
use ogive_syntax::{
    Document,
    ast::{ObjectField, Value, ValueKind},
    print_value,
};

use super::Index;
use crate::{builtins, suggest, types::*};

/// What is wrong at one place of a literal.
pub(super) struct Mismatch {
    pub(super) span: Span,
    pub(super) message: String,
}

/// How exactly literals have to fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// As the specification has it.
    Exact,
    /// Objects may leave out what is required.
    LooseObjects,
    /// That, and scalars and enum values as [`BuildOptions::loose_values`](crate::BuildOptions::loose_values) says.
    Loose,
}

/// Appends everything in `value` that does not fit `ty`. No recursion; linear in the literal plus the required
/// fields of the input objects it names.
pub(super) fn check(
    schema: &Schema,
    index: &Index,
    doc: &Document,
    (value, ty): (&Value, Type),
    strictness: Strictness,
    out: &mut Vec<Mismatch>,
) {
    let loose = strictness == Strictness::Loose;
    let mut stack = vec![(*value, ty)];
    while let Some((value, mut ty)) = stack.pop() {
        let mismatch = |message: String| Mismatch {
            span: value.span,
            message,
        };
        if matches!(value.kind, ValueKind::Null) {
            if ty.wrapping.is_non_null() {
                out.push(mismatch(format!(
                    "Expected value of type \"{}\", found null.",
                    schema.display_type(ty)
                )));
            }
            continue;
        }
        let shown = ty;
        ty.wrapping = ty.wrapping.nullable();
        if let (ValueKind::List(items), Some(item)) = (value.kind, ty.wrapping.item()) {
            let ty = Type {
                wrapping: item,
                ..ty
            };
            stack.extend(doc[items].iter().rev().map(|v| (*v, ty)));
            continue;
        }
        // A single value stands for a list of one, at any depth.
        while let Some(item) = ty.wrapping.item() {
            ty.wrapping = item.nullable();
        }
        let row = &schema.types[ty.id];
        match (row.kind, value.kind) {
            (TypeKind::InputObject, ValueKind::Object(fields)) => {
                let fields = &doc[fields];
                check_object(
                    schema,
                    index,
                    doc,
                    ty.id,
                    (value.span, fields),
                    strictness,
                    out,
                );
                for field in fields.iter().rev() {
                    if let Some(input) = input_field(schema, index, ty.id, doc.name(field.name)) {
                        stack.push((field.value, schema.inputs[input].ty));
                    }
                }
            }
            (TypeKind::Scalar, _) => {
                if let Some(message) = check_scalar(row, ty.id, doc, &value)
                    && !(loose && is_loosely(ty.id, doc, &value))
                {
                    out.push(mismatch(message));
                }
            }
            (TypeKind::Enum, _) => {
                if let Some(message) = check_enum(schema, index, ty.id, doc, &value)
                    && !(loose && is_quoted_value(schema, index, ty.id, doc, &value))
                {
                    out.push(mismatch(message));
                }
            }
            // Of another kind only if an error was reported where the type is used.
            (TypeKind::InputObject, _) => out.push(mismatch(format!(
                "Expected value of type \"{}\", found {}.",
                schema.display_type(shown),
                print_value(doc, &value)
            ))),
            _ => {}
        }
    }
}

fn check_scalar(row: &TypeDef, id: TypeId, doc: &Document, value: &Value) -> Option<String> {
    if !row.built_in {
        return None;
    }
    let shown = || print_value(doc, value);
    let text = doc.text(value.span);
    match (id, value.kind) {
        (builtins::INT, ValueKind::Int) => text.parse::<i32>().is_err().then(|| {
            format!(
                "Int cannot represent non 32-bit signed integer value: {}",
                shown()
            )
        }),
        (builtins::INT, _) => Some(format!(
            "Int cannot represent non-integer value: {}",
            shown()
        )),
        (builtins::FLOAT, ValueKind::Int | ValueKind::Float) => {
            let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
            (!finite).then(|| format!("Float cannot represent non numeric value: {}", shown()))
        }
        (builtins::FLOAT, _) => Some(format!(
            "Float cannot represent non numeric value: {}",
            shown()
        )),
        (builtins::STRING, ValueKind::String { .. })
        | (builtins::BOOLEAN, ValueKind::Boolean(_))
        | (builtins::ID, ValueKind::String { .. } | ValueKind::Int) => None,
        (builtins::STRING, _) => Some(format!(
            "String cannot represent a non string value: {}",
            shown()
        )),
        (builtins::BOOLEAN, _) => Some(format!(
            "Boolean cannot represent a non boolean value: {}",
            shown()
        )),
        (builtins::ID, _) => Some(format!(
            "ID cannot represent a non-string and non-integer value: {}",
            shown()
        )),
        _ => None,
    }
}

/// Whether a literal could be meant for a built-in scalar: an integer of any size or notation, a string without quotes.
fn is_loosely(id: TypeId, doc: &Document, value: &Value) -> bool {
    match (id, value.kind) {
        (builtins::INT, ValueKind::Int | ValueKind::Float) => {
            let number = doc.text(value.span).parse::<f64>();
            number.is_ok_and(|n| n.is_finite() && n.fract() == 0.0)
        }
        (builtins::STRING | builtins::ID, ValueKind::Enum) => true,
        _ => false,
    }
}

/// Whether a literal is a value of an enum in quotes.
fn is_quoted_value(
    schema: &Schema,
    index: &Index,
    id: TypeId,
    doc: &Document,
    value: &Value,
) -> bool {
    value.as_string().is_some_and(|string| {
        let symbol = schema.names.get(&doc.string_value(string));
        symbol.is_some_and(|s| index.enum_values.contains(&(id, s)))
    })
}

fn check_enum(
    schema: &Schema,
    index: &Index,
    id: TypeId,
    doc: &Document,
    value: &Value,
) -> Option<String> {
    let name = schema.type_name(id);
    let hint = |text: &str| {
        let values = schema.types[id]
            .enum_values
            .iter()
            .map(|v| schema.name(schema.enum_values[*v].name));
        suggest::did_you_mean(Some("the enum value"), &suggest::suggestions(text, values))
    };
    match value.kind {
        ValueKind::Enum => {
            let text = doc.text(value.span);
            let symbol = schema.names.get(text);
            let is_known = symbol.is_some_and(|s| index.enum_values.contains(&(id, s)));
            (!is_known && !index.incomplete.contains(id.0)).then(|| {
                format!(
                    "Value \"{text}\" does not exist in \"{name}\" enum.{}",
                    hint(text)
                )
            })
        }
        _ => {
            let shown = print_value(doc, value);
            let hint = hint(&shown);
            Some(format!(
                "Enum \"{name}\" cannot represent non-enum value: {shown}.{hint}"
            ))
        }
    }
}

fn check_object(
    schema: &Schema,
    index: &Index,
    doc: &Document,
    id: TypeId,
    (span, fields): (Span, &[ObjectField]),
    strictness: Strictness,
    out: &mut Vec<Mismatch>,
) {
    let name = schema.type_name(id);
    let mut seen: FastSet<&str> = FastSet::default();
    for field in fields {
        let text = doc.name(field.name);
        let span = field.name.span();
        seen.insert(text);
        if !index.incomplete.contains(id.0) && input_field(schema, index, id, text).is_none() {
            let known = schema.types[id]
                .input_fields
                .iter()
                .map(|i| schema.name(schema.inputs[*i].name));
            let hint = suggest::did_you_mean(None, &suggest::suggestions(text, known));
            let message = format!("Field \"{text}\" is not defined by type \"{name}\".{hint}");
            out.push(Mismatch { span, message });
        }
    }
    let required = index
        .required
        .get(&id)
        .filter(|_| strictness == Strictness::Exact);
    for required in required.map_or(&[][..], |r| r) {
        let row = &schema.inputs[*required];
        if !seen.contains(schema.name(row.name)) {
            let message = format!(
                "Field \"{name}.{}\" of required type \"{}\" was not provided.",
                schema.name(row.name),
                schema.display_type(row.ty)
            );
            out.push(Mismatch { span, message });
        }
    }
    if !schema.types[id].one_of {
        return;
    }
    match fields {
        [only] if matches!(only.value.kind, ValueKind::Null) => {
            let message = format!("Field \"{name}.{}\" must be non-null.", doc.name(only.name));
            out.push(Mismatch { span, message });
        }
        [_] => {}
        _ => {
            let message = format!("OneOf Input Object \"{name}\" must specify exactly one key.");
            out.push(Mismatch { span, message });
        }
    }
}

/// Appends every name that an object literal in `value` gives twice (specification 5.6.3), whatever its type.
pub(super) fn check_unique(doc: &Document, value: &Value, out: &mut Vec<Mismatch>) {
    let mut seen: FastSet<&str> = FastSet::default();
    let mut stack = vec![*value];
    while let Some(value) = stack.pop() {
        match value.kind {
            ValueKind::List(items) => stack.extend(&doc[items]),
            ValueKind::Object(fields) => {
                seen.clear();
                for field in &doc[fields] {
                    let text = doc.name(field.name);
                    if !seen.insert(text) {
                        let message =
                            format!("There can be only one input field named \"{text}\".");
                        let span = field.name.span();
                        out.push(Mismatch { span, message });
                    }
                    stack.push(field.value);
                }
            }
            _ => {}
        }
    }
}

fn input_field(schema: &Schema, index: &Index, id: TypeId, name: &str) -> Option<InputId> {
    let name = schema.names.get(name)?;
    index.input_fields.get(&(id, name)).copied()
}

/// The input objects a literal of type `ty` builds, with the names each gives; for default values that lead back
/// to themselves.
pub(super) fn for_each_object<'d>(
    schema: &Schema,
    index: &Index,
    doc: &'d Document,
    value: &Value,
    ty: Type,
    mut visit: impl FnMut(TypeId, &'d [ObjectField]),
) {
    let mut stack = vec![(*value, ty.id)];
    while let Some((value, id)) = stack.pop() {
        match value.kind {
            ValueKind::List(items) => stack.extend(doc[items].iter().map(|v| (*v, id))),
            ValueKind::Object(fields) if schema.types[id].kind == TypeKind::InputObject => {
                visit(id, &doc[fields]);
                for field in &doc[fields] {
                    if let Some(input) = input_field(schema, index, id, doc.name(field.name)) {
                        stack.push((field.value, schema.inputs[input].ty.id));
                    }
                }
            }
            _ => {}
        }
    }
}
