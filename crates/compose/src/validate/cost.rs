//! `@cost` and `@listSize`.

use ogive_schema::{ConstValue, FieldId, TypeKind};

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
        let int = sub.schema.arg_by_name(&row.args, name).map(|a| {
            let ty = sub.schema.inputs[a].ty;
            sub.schema.type_name(ty.id) == "Int" && !ty.wrapping.nullable().is_list()
        });
        let why = match int {
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
    for name in sized {
        let list = sub
            .schema
            .field_by_name(row.ty.id, name)
            .map(|f| sub.schema.fields[f].ty.wrapping.nullable().is_list());
        let why = match list {
            Some(true) => continue,
            Some(false) => (codes::LIST_SIZE_APPLIED_TO_NON_LIST, "is no list"),
            None => (codes::LIST_SIZE_INVALID_SIZED_FIELD, "does not exist"),
        };
        let (code, why) = why;
        report.error(
            code,
            &about,
            format!("the sized field `{name}` of `{about}` {why}"),
            &at,
        );
    }
}

fn strings(value: Option<&ConstValue>) -> Vec<&str> {
    match value {
        Some(ConstValue::List(items)) => items.iter().filter_map(ConstValue::as_str).collect(),
        Some(ConstValue::String(one)) => vec![one],
        _ => Vec::new(),
    }
}
