//! Input objects: `@oneOf`, circles of required fields, default values (specification 3.10).

use ogive_base::{BitSet, FastMap, FastSet};

use super::{Index, is_strict, values};
use crate::{
    builder::{Builder, InputOwner},
    codes,
    report::Place,
    types::*,
};

pub(super) fn check(builder: &mut Builder<'_>, index: &Index) {
    check_one_of(builder);
    check_required_circles(builder);
    check_unique_fields(builder);
    if is_strict(builder) || builder.loose_values {
        check_defaults(builder, index);
    }
    if is_strict(builder) {
        check_default_circles(builder, index);
    }
}

fn check_one_of(builder: &mut Builder<'_>) {
    for (_, ty) in builder.schema.types().filter(|(_, t)| t.one_of) {
        for input in &ty.input_fields {
            let row = &builder.schema.inputs[*input];
            let coordinate = format!(
                "{}.{}",
                builder.schema.name(ty.name),
                builder.schema.name(row.name)
            );
            let place = builder.input_places[*input];
            if row.ty.wrapping.is_non_null() {
                let message = format!("OneOf input field {coordinate} must be nullable.");
                builder.report.error(codes::INVALID_ONE_OF, message, place);
            }
            if row.default.is_some() {
                let message =
                    format!("OneOf input field {coordinate} cannot have a default value.");
                builder.report.error(codes::INVALID_ONE_OF, message, place);
            }
        }
    }
}

/// Finds circles of fields that are non-null input objects: no finite value exists. Depth first without recursion,
/// each type entered once.
fn check_required_circles(builder: &mut Builder<'_>) {
    let schema = &builder.schema;
    let mut entered = BitSet::new();
    for start in &schema.type_list {
        if schema.types[*start].kind != TypeKind::InputObject || !entered.insert(start.0) {
            continue;
        }
        // Open types with the position of the next field to follow, and where each type stands on the path.
        let mut path: Vec<(TypeId, usize)> = vec![(*start, 0)];
        let mut depth: FastMap<TypeId, usize> = [(*start, 0)].into_iter().collect();
        while let Some((id, next)) = path.last_mut() {
            let Some(input) = schema.types[*id].input_fields.get(*next).copied() else {
                depth.remove(id);
                path.pop();
                continue;
            };
            *next += 1;
            let ty = schema.inputs[input].ty;
            let is_link = ty.wrapping.is_non_null()
                && !ty.wrapping.is_list()
                && schema.types[ty.id].kind == TypeKind::InputObject;
            if !is_link {
                continue;
            }
            if let Some(from) = depth.get(&ty.id) {
                let fields: Vec<&str> = path[*from..]
                    .iter()
                    .map(|(id, next)| schema.types[*id].input_fields[next - 1])
                    .map(|i| schema.name(schema.inputs[i].name))
                    .collect();
                let message = format!(
                    "Cannot reference Input Object \"{}\" within itself through a series of non-null fields: \
                     \"{}\".",
                    schema.type_name(ty.id),
                    fields.join(".")
                );
                let place = builder.input_places[input];
                builder
                    .report
                    .error(codes::CIRCULAR_DEFINITION, message, place);
            } else if entered.insert(ty.id.0) {
                depth.insert(ty.id, path.len());
                path.push((ty.id, 0));
            }
        }
    }
}

fn check_unique_fields(builder: &mut Builder<'_>) {
    let mut repeated = Vec::new();
    for use_ in &builder.default_uses {
        values::check_unique(builder.docs[use_.doc as usize], &use_.value, &mut repeated);
        for mismatch in repeated.drain(..) {
            let place = Place {
                doc: use_.doc,
                span: mismatch.span,
            };
            builder
                .report
                .error(codes::INVALID_DEFAULT_VALUE, mismatch.message, place);
        }
    }
}

fn check_defaults(builder: &mut Builder<'_>, index: &Index) {
    let mut mismatches = Vec::new();
    let strictness = if builder.loose_values {
        values::Strictness::Loose
    } else {
        values::Strictness::Exact
    };
    for use_ in &builder.default_uses {
        if builder.report.is_full() {
            return;
        }
        let row = &builder.schema.inputs[use_.input];
        let doc = builder.docs[use_.doc as usize];
        values::check(
            &builder.schema,
            index,
            doc,
            (&use_.value, row.ty),
            strictness,
            &mut mismatches,
        );
        for mismatch in mismatches.drain(..) {
            let coordinate = builder.coordinate(use_.coordinate, builder.schema.name(row.name));
            builder.report.error(
                codes::INVALID_DEFAULT_VALUE,
                format!(
                    "{coordinate} has invalid default value: {}",
                    mismatch.message
                ),
                Place {
                    doc: use_.doc,
                    span: mismatch.span,
                },
            );
        }
    }
}

/// Finds default values that can only be built from themselves (`InputObjectDefaultValueHasCycle`).
///
/// Input fields are nodes; a field leads to every field whose default its own default needs: fields with defaults
/// that the object literals in it leave out. A circle of these is an infinite value.
fn check_default_circles(builder: &mut Builder<'_>, index: &Index) {
    let schema = &builder.schema;
    // Per input object: fields with a default that is worth following.
    let mut defaulted: FastMap<TypeId, Vec<InputId>> = FastMap::default();
    let mut owners: FastMap<InputId, TypeId> = FastMap::default();
    for use_ in &builder.default_uses {
        if let InputOwner::InputObject(id) = use_.coordinate
            && schema.types[schema.inputs[use_.input].ty.id].kind == TypeKind::InputObject
        {
            defaulted.entry(id).or_default().push(use_.input);
            owners.insert(use_.input, id);
        }
    }
    let mut links: FastMap<InputId, Vec<InputId>> = FastMap::default();
    for use_ in &builder.default_uses {
        if !owners.contains_key(&use_.input) {
            continue;
        }
        let doc = builder.docs[use_.doc as usize];
        let mut to = Vec::new();
        let ty = schema.inputs[use_.input].ty;
        values::for_each_object(schema, index, doc, &use_.value, ty, |id, given| {
            let Some(fields) = defaulted.get(&id) else {
                return;
            };
            let given: FastSet<&str> = given.iter().map(|f| doc.name(f.name)).collect();
            to.extend(
                fields
                    .iter()
                    .filter(|f| !given.contains(schema.name(schema.inputs[**f].name))),
            );
        });
        to.sort_unstable();
        to.dedup();
        links.insert(use_.input, to);
    }
    let coordinate = |input: InputId| {
        format!(
            "{}.{}",
            owners.get(&input).map_or("", |t| schema.type_name(*t)),
            schema.name(schema.inputs[input].name)
        )
    };
    let mut entered: FastSet<InputId> = FastSet::default();
    for use_ in &builder.default_uses {
        if !owners.contains_key(&use_.input) || !entered.insert(use_.input) {
            continue;
        }
        let mut path: Vec<(InputId, usize)> = vec![(use_.input, 0)];
        let mut depth: FastMap<InputId, usize> = [(use_.input, 0)].into_iter().collect();
        while let Some((input, next)) = path.last_mut() {
            let Some(to) = links.get(input).and_then(|l| l.get(*next)).copied() else {
                depth.remove(input);
                path.pop();
                continue;
            };
            *next += 1;
            if let Some(from) = depth.get(&to) {
                let via: Vec<String> = path[from + 1..]
                    .iter()
                    .map(|(i, _)| coordinate(*i))
                    .collect();
                let via = if via.is_empty() {
                    String::new()
                } else {
                    format!(" via the default values of: {}", via.join(", "))
                };
                let message = format!(
                    "Invalid circular reference. The default value of Input Object field {} references \
                     itself{via}.",
                    coordinate(to)
                );
                let place = builder.input_places[to];
                builder
                    .report
                    .error(codes::CIRCULAR_DEFINITION, message, place);
            } else if entered.insert(to) {
                depth.insert(to, path.len());
                path.push((to, 0));
            }
        }
    }
}
