//! The type system validation rules (specification 3) that need complete tables.
//!
//! Rules on one definition alone (names, uniqueness, known types, positions) are checked while it is read, see
//! [`mod@crate::build`]. Here: root operation types and emptiness (this file), [`interfaces`], [`inputs`]
//! (`@oneOf`, circles), [`directives`] (applied ones and circles of definitions), [`values`] (literals).
//! Every rule is linear, or n log n, in the documents plus what interfaces require of their implementations.

mod directives;
mod inputs;
mod interfaces;
mod values;

use ogive_base::{BitSet, FastMap, FastSet, Symbol};

use crate::{
    builder::{Builder, Edition, InputOwner},
    codes,
    report::Place,
    types::*,
};

/// Lookups the rules share.
pub(crate) struct Index {
    /// Input fields by input object and name.
    input_fields: FastMap<(TypeId, Symbol), InputId>,
    /// Input fields that must be given, of input objects that have some.
    required: FastMap<TypeId, Vec<InputId>>,
    /// Values by enum and name.
    enum_values: FastSet<(TypeId, Symbol)>,
    /// Types that lost a row to an error: nothing is unknown in them.
    incomplete: BitSet,
}

impl Index {
    fn new(builder: &Builder<'_>) -> Self {
        let schema = &builder.schema;
        let mut index = Index {
            input_fields: FastMap::default(),
            required: FastMap::default(),
            enum_values: FastSet::default(),
            incomplete: builder.incomplete.clone(),
        };
        for (id, ty) in schema.types() {
            index.enum_values.extend(
                ty.enum_values
                    .iter()
                    .map(|v| (id, schema.enum_values[*v].name)),
            );
            for field in &ty.input_fields {
                let row = &schema.inputs[*field];
                index.input_fields.insert((id, row.name), *field);
                if row.is_required() {
                    index.required.entry(id).or_default().push(*field);
                }
            }
        }
        index
    }
}

/// The arguments of one field or directive.
struct Args {
    /// `None` for one that was lost to an error.
    by_name: FastMap<Symbol, Option<InputId>>,
    required: Vec<InputId>,
}

impl Args {
    fn new(schema: &Schema, args: &[InputId]) -> Self {
        let by_name = |id: &InputId| (schema.inputs[*id].name, Some(*id));
        Args {
            by_name: args.iter().map(by_name).collect(),
            required: args
                .iter()
                .copied()
                .filter(|a| schema.inputs[*a].is_required())
                .collect(),
        }
    }
}

pub(crate) fn validate(builder: &mut Builder<'_>, require_query: bool) {
    let index = Index::new(builder);
    check_roots(builder, require_query);
    check_not_empty(builder);
    check_deprecations(builder);
    interfaces::check(builder);
    inputs::check(builder, &index);
    directives::check_uses(builder, &index);
    directives::check_definitions(builder);
}

const ROOTS: [(&str, &str); 3] = [
    ("Query", "query"),
    ("Mutation", "mutation"),
    ("Subscription", "subscription"),
];

fn check_roots(builder: &mut Builder<'_>, require_query: bool) {
    if require_query && builder.root_places[0].is_none() {
        builder.report.error(
            codes::INVALID_ROOT_TYPE,
            "Query root type must be provided.".into(),
            builder.schema_place,
        );
    }
    for (kind, (title, _)) in ROOTS.iter().enumerate() {
        let (Some(id), Some(place)) = (builder.schema.roots[kind], builder.root_places[kind])
        else {
            continue;
        };
        if builder.schema.types[id].kind != TypeKind::Object {
            let provided = if kind == 0 { "" } else { " if provided" };
            let message = format!(
                "{title} root type must be Object type{provided}, it cannot be {}.",
                builder.schema.type_name(id)
            );
            builder
                .report
                .error(codes::INVALID_ROOT_TYPE, message, place);
        }
    }
    for first in 0..ROOTS.len() {
        let Some(id) = builder.schema.roots[first] else {
            continue;
        };
        let same: Vec<usize> = (0..ROOTS.len())
            .filter(|kind| builder.schema.roots[*kind] == Some(id))
            .collect();
        if same[0] != first || same.len() == 1 {
            continue;
        }
        let words = match *same.as_slice() {
            [a, b] => format!("{} and {}", ROOTS[a].1, ROOTS[b].1),
            _ => "query, mutation, and subscription".into(),
        };
        let message = format!(
            "All root types must be different, \"{}\" type is used as {words} root types.",
            builder.schema.type_name(id)
        );
        let places: Vec<Place> = same
            .iter()
            .filter_map(|k| builder.root_places[*k])
            .collect();
        if let Some((last, others)) = places.split_last() {
            let others: Vec<_> = others.iter().map(|p| (*p, "and here")).collect();
            builder
                .report
                .error_with(codes::INVALID_ROOT_TYPE, message, *last, &others);
        }
    }
}

fn check_not_empty(builder: &mut Builder<'_>) {
    for (id, ty) in builder.schema.types() {
        let name = builder.schema.name(ty.name);
        let message = match ty.kind {
            _ if builder.incomplete.contains(id.0) => continue,
            TypeKind::Object | TypeKind::Interface if ty.fields.is_empty() => {
                format!("Type {name} must define one or more fields.")
            }
            TypeKind::Union if ty.members.is_empty() => {
                format!("Union type {name} must define one or more member types.")
            }
            TypeKind::Enum if ty.enum_values.is_empty() => {
                format!("Enum type {name} must define one or more values.")
            }
            TypeKind::InputObject if ty.input_fields.is_empty() => {
                format!("Input Object type {name} must define one or more fields.")
            }
            _ => continue,
        };
        let place = builder.type_places[id];
        builder
            .report
            .error(codes::EMPTY_DEFINITION, message, place);
    }
}

/// Whatever must be given cannot be deprecated.
fn check_deprecations(builder: &mut Builder<'_>) {
    let mut found: Vec<(InputOwner, InputId)> = Vec::new();
    let schema = &builder.schema;
    let mut look = |owner: InputOwner, inputs: &[InputId]| {
        found.extend(
            inputs
                .iter()
                .filter(|i| schema.inputs[**i].deprecated.is_some())
                .filter(|i| schema.inputs[**i].is_required())
                .map(|i| (owner, *i)),
        );
    };
    for (id, ty) in schema.types() {
        look(InputOwner::InputObject(id), &ty.input_fields);
        for field in &ty.fields {
            look(InputOwner::Field(*field), &schema.fields[*field].args);
        }
    }
    for id in &schema.directive_list {
        look(InputOwner::Directive(*id), &schema.directive_defs[*id].args);
    }
    for (owner, input) in found {
        let what = match owner {
            InputOwner::InputObject(_) => "input field",
            _ => "argument",
        };
        let name = builder.schema.name(builder.schema.inputs[input].name);
        let message = format!(
            "Required {what} {} cannot be deprecated.",
            builder.coordinate(owner, name)
        );
        let place = builder.input_places[input];
        builder
            .report
            .error(codes::INVALID_DEPRECATION, message, place);
    }
}

/// Whether rules new in the September 2025 edition apply.
fn is_strict(builder: &Builder<'_>) -> bool {
    builder.edition >= Edition::September2025
}
