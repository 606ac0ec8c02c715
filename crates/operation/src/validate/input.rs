//! Input object literals (specification 5.6.2 to 5.6.5): field names, required fields, `@oneOf`.

use ogive_schema::{Type, TypeId, TypeKind};
use ogive_syntax::ast::{List, ObjectField, Value, ValueKind};

use super::{context::Context, values};

/// The input object type expected at a place, through lists.
pub(super) fn object_type(cx: &Context<'_>, ty: Option<Type>) -> Option<TypeId> {
    let id = ty?.id;
    (cx.schema.types[id].kind == TypeKind::InputObject).then_some(id)
}

/// Checks an object literal as a whole; says whether its fields are to be checked too.
pub(super) fn object(
    cx: &mut Context<'_>,
    value: &Value,
    entries: List<ObjectField>,
    ty: Option<Type>,
    object: Option<TypeId>,
) -> bool {
    let Some(object) = object else {
        values::leaf(cx, value, ty);
        return false;
    };
    let (doc, schema) = (cx.doc, cx.schema);
    let mut names: Vec<&str> = doc[entries].iter().map(|e| doc.name(e.name)).collect();
    names.sort_unstable();
    for id in &schema.types[object].input_fields {
        let field = cx.input(*id);
        if field.is_required() && names.binary_search(&field.name).is_err() {
            cx.report(&[value.span], |cx| {
                let (ty, name) = (schema.type_name(object), field.name);
                let field = cx.display(field.ty);
                format!("Field \"{ty}.{name}\" of required type \"{field}\" was not provided.")
            });
        }
    }
    if schema.types[object].one_of {
        names.dedup();
        let ty = schema.type_name(object);
        // Of fields with one name the last one counts; the repetition is reported by itself.
        if names.len() != 1 {
            cx.report(&[value.span], |_| {
                format!("OneOf Input Object \"{ty}\" must specify exactly one key.")
            });
        } else if let Some(last) = doc[entries].last()
            && matches!(last.value.kind, ValueKind::Null)
        {
            let name = names[0];
            cx.report(&[value.span], |_| {
                format!("Field \"{ty}.{name}\" must be non-null.")
            });
        }
    }
    true
}

/// Reports an entry that names no field of `object` (5.6.2).
pub(super) fn unknown_field(cx: &mut Context<'_>, entry: &ObjectField, object: TypeId) {
    cx.report(&[entry.span], |cx| {
        let name = cx.text(entry.name);
        let fields = &cx.schema.types[object].input_fields;
        let names = fields.iter().map(|f| cx.input(*f).name);
        let hint = cx.did_you_mean(None, name, names);
        let ty = cx.schema.type_name(object);
        format!("Field \"{name}\" is not defined by type \"{ty}\".{hint}")
    });
}
