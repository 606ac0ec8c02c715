//! Field selections (specification 5.3.1) and leaf selections (5.3.3).

use std::cmp::Ordering;

use ogive_schema::{FieldId, Type, TypeId, TypeKind, suggest};
use ogive_syntax::ast::Field;

use super::context::Context;

/// Leaf fields have no selection set, composite ones have one.
pub(super) fn leaf(cx: &mut Context<'_>, field: &Field, ty: Option<Type>) {
    let Some(ty) = ty else {
        return;
    };
    let name = cx.text(field.name);
    let is_leaf = cx.schema.types[ty.id].kind.is_leaf();
    match &field.selection_set {
        Some(set) if is_leaf => cx.report(&[set.span], |cx| {
            let ty = cx.display(ty);
            format!("Field \"{name}\" must not have a selection since type \"{ty}\" has no subfields.")
        }),
        None if !is_leaf => cx.report(&[field.span], |cx| {
            let ty = cx.display(ty);
            format!(
                "Field \"{name}\" of type \"{ty}\" must have a selection of subfields. Did you mean \"{name} {{ ... }}\"?"
            )
        }),
        _ => {}
    }
}

/// Reports a field that its parent type does not have.
pub(super) fn unknown(cx: &mut Context<'_>, field: &Field, parent: Option<TypeId>) {
    let Some(parent) = parent else {
        return;
    };
    cx.report(&[field.span], |cx| {
        let name = cx.text(field.name);
        let types = if cx.limits.suggestions {
            types_with(cx, parent, name)
        } else {
            Vec::new()
        };
        let hint = if types.is_empty() {
            let fields = &cx.schema.types[parent].fields;
            let names = fields.iter().map(|f| cx.schema.field_name(*f));
            cx.did_you_mean(None, name, names)
        } else {
            suggest::did_you_mean(Some("to use an inline fragment on"), &types)
        };
        let parent = cx.schema.type_name(parent);
        format!("Cannot query field \"{name}\" on type \"{parent}\".{hint}")
    });
}

/// The object types of an abstract type that have the field, and their interfaces that have it: most often
/// implemented first, then super types, then by name.
fn types_with<'a>(cx: &Context<'a>, parent: TypeId, field: &str) -> Vec<&'a str> {
    let schema = cx.schema;
    if !schema.types[parent].kind.is_abstract() {
        return Vec::new();
    }
    let has = |ty: TypeId| -> Option<FieldId> { schema.field_by_name(ty, field) };
    let mut found: Vec<(TypeId, u32)> = Vec::new();
    let mut count = |ty: TypeId| match found.iter_mut().find(|(id, _)| *id == ty) {
        Some((_, n)) => *n += 1,
        None => found.push((ty, 1)),
    };
    for object in schema.types[parent].possible.iter().map(TypeId) {
        if has(object).is_none() {
            continue;
        }
        count(object);
        for interface in &schema.types[object].interfaces {
            if has(*interface).is_some() {
                count(*interface);
            }
        }
    }
    let is_super = |a: TypeId, b: TypeId| {
        schema.types[a].kind == TypeKind::Interface && a != b && schema.is_subtype(b, a)
    };
    // An insertion by comparison, as "is a super type of" is no total order a library sort may rely on.
    let mut order: Vec<(TypeId, u32)> = Vec::new();
    for (ty, n) in found {
        let before = |(other, m): &(TypeId, u32)| {
            if *m != n {
                return *m > n;
            }
            if is_super(*other, ty) {
                return true;
            }
            if is_super(ty, *other) {
                return false;
            }
            suggest::natural(schema.type_name(*other), schema.type_name(ty)) == Ordering::Less
        };
        let at = order.iter().position(|o| !before(o)).unwrap_or(order.len());
        order.insert(at, (ty, n));
    }
    order
        .into_iter()
        .map(|(ty, _)| schema.type_name(ty))
        .collect()
}
