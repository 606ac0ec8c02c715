//! `@cost` and `@listSize`.

use ogive_federation::costs::{field_paths, slicing_argument};
use ogive_schema::{ConstValue, FieldId, TypeId, TypeKind};

use crate::{codes, report::Report, spec::Word, subgraph::Subgraph};

pub(super) fn validate(sub: &Subgraph, report: &mut Report) {
    if sub.words[Word::Cost as usize].is_none() && sub.words[Word::ListSize as usize].is_none() {
        return;
    }
    for ty in sub.merged_types() {
        for field in &sub.schema.types[ty].fields {
            if sub.schema.types[ty].kind == TypeKind::Interface {
                cost_on_interface(sub, *field, report);
            }
            list_size(sub, *field, report);
        }
    }
}

fn cost_on_interface(sub: &Subgraph, field: FieldId, report: &mut Report) {
    if let Some(applied) = sub.find(&sub.schema.fields[field].directives, Word::Cost) {
        let about = sub.coordinate(field);
        report.error_help(
            codes::COST_APPLIED_TO_INTERFACE_FIELD,
            &about,
            format!("`@cost` on `{about}`: costs are those of the implementations"),
            "move it to the implementations".into(),
            &[(sub.place(applied.span), String::new())],
        );
    }
}

fn list_size(sub: &Subgraph, field: FieldId, report: &mut Report) {
    let row = &sub.schema.fields[field];
    let Some(applied) = sub.find(&row.directives, Word::ListSize) else {
        return;
    };
    let about = sub.coordinate(field);
    let at = [(sub.place(applied.span), String::new())];
    let sized: Vec<&str> = strings(sub.arg(applied, "sizedFields"));
    if !row.ty.wrapping.nullable().is_list() && sized.is_empty() {
        report.error(
            codes::LIST_SIZE_APPLIED_TO_NON_LIST,
            &about,
            format!("`@listSize` on `{about}`, which is no list"),
            &at,
        );
    }
    if let Some(ConstValue::Int(size)) = sub.arg(applied, "assumedSize")
        && size.starts_with('-')
    {
        report.error(
            codes::LIST_SIZE_INVALID_ASSUMED_SIZE,
            &about,
            format!("the assumed size {size} of `{about}` is negative"),
            &at,
        );
    }
    for name in strings(sub.arg(applied, "slicingArguments")) {
        let says_a_size = slicing_argument(&sub.schema, &row.args, name).map(|slicing| {
            let last = slicing.path.last().copied().unwrap_or(slicing.input);
            let ty = sub.schema.inputs[last].ty;
            sub.schema.type_name(ty.id) == "Int" || ty.wrapping.is_list()
        });
        let why = match says_a_size {
            Some(true) => continue,
            Some(false) => "is no `Int`",
            None => "does not exist",
        };
        report.error(
            codes::LIST_SIZE_INVALID_SLICING_ARGUMENT,
            &about,
            format!("the slicing argument `{name}` of `{about}` {why}"),
            &at,
        );
    }
    if sized.is_empty() {
        return;
    }
    if !sub.schema.types[row.ty.id].kind.is_composite() {
        report.error(
            codes::LIST_SIZE_INVALID_SIZED_FIELD,
            &about,
            format!("`{about}` has no fields, so none can be sized"),
            &at,
        );
        return;
    }
    for text in sized {
        let paths = field_paths(text);
        let why = match paths
            .iter()
            .find_map(|path| unsuitable(sub, row.ty.id, path))
        {
            Some(why) => why,
            None if paths.is_empty() => NO_FIELD,
            None => continue,
        };
        let (code, why) = why;
        report.error(
            code,
            &about,
            format!("the sized field `{text}` of `{about}` {why}"),
            &at,
        );
    }
}

const NO_FIELD: (&str, &str) = (codes::LIST_SIZE_INVALID_SIZED_FIELD, "does not exist");

/// Why there is no list at this path below a type; `None` if there is one.
fn unsuitable(sub: &Subgraph, ty: TypeId, path: &[&str]) -> Option<(&'static str, &'static str)> {
    let mut at = ty;
    let mut is_list = false;
    for name in path {
        let Some(field) = sub.schema.field_by_name(at, name) else {
            return Some(NO_FIELD);
        };
        let of = sub.schema.fields[field].ty;
        (at, is_list) = (of.id, of.wrapping.nullable().is_list());
    }
    (!is_list).then_some((codes::LIST_SIZE_APPLIED_TO_NON_LIST, "is no list"))
}

fn strings(value: Option<&ConstValue>) -> Vec<&str> {
    match value {
        Some(ConstValue::List(items)) => items.iter().filter_map(ConstValue::as_str).collect(),
        Some(ConstValue::String(one)) => vec![one],
        _ => Vec::new(),
    }
}
