//! Objects and interfaces conform to the interfaces they declare (specification 3.6, `IsValidImplementation`).

use ogive_base::{FastMap, FastSet};

use super::{Args, is_strict};
use crate::{
    builder::{Builder, TypeUse},
    codes,
    report::Place,
    types::*,
};

pub(super) fn check(builder: &mut Builder<'_>) {
    let uses = std::mem::take(&mut builder.implements);
    // Pairs (sub, sup): `interfaces.contains` would make deep hierarchies quadratic.
    let pairs: FastSet<(TypeId, TypeId)> = uses
        .iter()
        .chain(&builder.members)
        .map(|u| match builder.schema.types[u.by].kind {
            TypeKind::Union => (u.of, u.by),
            _ => (u.by, u.of),
        })
        .collect();
    // Fields with many arguments may be required by many interfaces.
    let mut args: FastMap<FieldId, Args> = FastMap::default();
    for one in &uses {
        if builder.report.is_full() {
            break;
        }
        check_ancestors(builder, one, &pairs);
        check_fields(builder, one, &pairs, &mut args);
    }
    builder.implements = uses;
}

fn check_ancestors(builder: &mut Builder<'_>, one: &TypeUse, pairs: &FastSet<(TypeId, TypeId)>) {
    let schema = &builder.schema;
    let (by, of) = (schema.type_name(one.by), schema.type_name(one.of));
    let mut circle = false;
    let mut missing = Vec::new();
    for ancestor in &schema.types[one.of].interfaces {
        if *ancestor == one.by {
            circle = true;
        } else if !pairs.contains(&(one.by, *ancestor)) {
            missing.push(*ancestor);
        }
    }
    if circle {
        let message = format!(
            "Type {by} cannot implement {of} because it would create a circular reference."
        );
        builder
            .report
            .error(codes::CIRCULAR_DEFINITION, message, one.place);
    }
    for ancestor in missing {
        let schema = &builder.schema;
        let message = format!(
            "Type {} must implement {} because it is implemented by {}.",
            schema.type_name(one.by),
            schema.type_name(ancestor),
            schema.type_name(one.of)
        );
        builder
            .report
            .error(codes::INVALID_IMPLEMENTATION, message, one.place);
    }
}

fn check_fields(
    builder: &mut Builder<'_>,
    one: &TypeUse,
    pairs: &FastSet<(TypeId, TypeId)>,
    args: &mut FastMap<FieldId, Args>,
) {
    let mut errors: Vec<(String, Place, Place)> = Vec::new();
    let schema = &builder.schema;
    let (by, of) = (schema.type_name(one.by), schema.type_name(one.of));
    for required_id in &schema.types[one.of].fields {
        let required = &schema.fields[*required_id];
        let name = schema.name(required.name);
        let required_place = builder.field_places[*required_id];
        let Some(id) = schema.fields_by_name.get(&(one.by, required.name)) else {
            if !builder.incomplete.contains(one.by.0) {
                errors.push((
                    format!("Interface field {of}.{name} expected but {by} does not provide it."),
                    builder.type_places[one.by],
                    required_place,
                ));
            }
            continue;
        };
        let field = &schema.fields[*id];
        let place = builder.field_places[*id];
        if !is_valid_type(field.ty, required.ty, pairs) {
            errors.push((
                format!(
                    "Interface field {of}.{name} expects type {} but {by}.{name} is type {}.",
                    schema.display_type(required.ty),
                    schema.display_type(field.ty)
                ),
                place,
                required_place,
            ));
        }
        if is_strict(builder) && field.deprecated.is_some() && required.deprecated.is_none() {
            errors.push((
                format!(
                    "Interface field {of}.{name} is not deprecated, so implementation field {by}.{name} \
                     must not be deprecated."
                ),
                place,
                required_place,
            ));
        }
        if !field.args.is_empty() || !required.args.is_empty() {
            for id in [*id, *required_id] {
                args.entry(id)
                    .or_insert_with(|| Args::new(schema, &schema.fields[id].args));
            }
            let (have, want) = (&args[id], &args[required_id]);
            check_args(builder, (*id, have), (*required_id, want), &mut errors);
        }
    }
    for (message, place, required) in errors {
        builder.report.error_with(
            codes::INVALID_IMPLEMENTATION,
            message,
            place,
            &[(required, "required here")],
        );
    }
}

fn check_args(
    builder: &Builder<'_>,
    (field, have): (FieldId, &Args),
    (required, want): (FieldId, &Args),
    errors: &mut Vec<(String, Place, Place)>,
) {
    let schema = &builder.schema;
    let coordinate = schema.field_coordinate(field);
    let required_coordinate = schema.field_coordinate(required);
    let is_incomplete = |id: FieldId| builder.incomplete.contains(schema.fields[id].parent.0);
    for arg in &schema.fields[required].args {
        let wanted = &schema.inputs[*arg];
        let name = schema.name(wanted.name);
        let Some(found) = have.by_name.get(&wanted.name).copied().flatten() else {
            if !is_incomplete(field) {
                errors.push((
                    format!(
                        "Interface field argument {required_coordinate}({name}:) expected but {coordinate} \
                         does not provide it."
                    ),
                    builder.field_places[field],
                    builder.input_places[*arg],
                ));
            }
            continue;
        };
        // Argument types are invariant.
        if schema.inputs[found].ty != wanted.ty {
            errors.push((
                format!(
                    "Interface field argument {required_coordinate}({name}:) expects type {} but \
                     {coordinate}({name}:) is type {}.",
                    schema.display_type(wanted.ty),
                    schema.display_type(schema.inputs[found].ty)
                ),
                builder.input_places[found],
                builder.input_places[*arg],
            ));
        }
    }
    for arg in &have.required {
        let row = &schema.inputs[*arg];
        if !want.by_name.contains_key(&row.name) && !is_incomplete(required) {
            errors.push((
                format!(
                    "Object field {coordinate} includes required argument {} that is missing from the \
                     Interface field {required_coordinate}.",
                    schema.name(row.name)
                ),
                builder.input_places[*arg],
                builder.field_places[required],
            ));
        }
    }
}

/// `IsValidImplementationFieldType` (specification 3.6.1).
fn is_valid_type(field: Type, required: Type, pairs: &FastSet<(TypeId, TypeId)>) -> bool {
    let (mut ours, mut theirs) = (field.wrapping, required.wrapping);
    loop {
        if theirs.is_non_null() && !ours.is_non_null() {
            return false;
        }
        match (ours.nullable().item(), theirs.nullable().item()) {
            (Some(a), Some(b)) => (ours, theirs) = (a, b),
            (None, None) => {
                return field.id == required.id || pairs.contains(&(field.id, required.id));
            }
            _ => return false,
        }
    }
}
