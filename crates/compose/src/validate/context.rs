//! `@context` and `@fromContext`.

use ogive_schema::{FieldId, TypeId, TypeKind};

use crate::{
    codes, fields,
    report::{Place, Report},
    spec::Word,
    subgraph::{ContextArg, Subgraph},
};

pub(super) fn validate(sub: &Subgraph, report: &mut Report) {
    if sub.words[Word::Context as usize].is_none() {
        return;
    }
    for ty in sub.merged_types() {
        for (name, span) in &sub.types[ty].contexts {
            let about = sub.schema.type_name(ty);
            let at = [(sub.place(*span), String::new())];
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric());
            if name.contains('_') {
                report.error(codes::CONTEXT_NAME_INVALID, about, format!("the name `{name}` of a context contains an underscore, which separates it from its subgraph"), &at);
            } else if !is_name {
                report.error(
                    codes::CONTEXT_NAME_INVALID,
                    about,
                    format!("`{name}` is no name of a context"),
                    &at,
                );
            }
        }
        for field in &sub.schema.types[ty].fields {
            let args = &sub.fields[*field].context_args;
            if args.is_empty() {
                continue;
            }
            for arg in args {
                argument(sub, ty, *field, arg, report);
            }
            if !sub.types[ty].keys.iter().any(|k| k.resolvable) {
                let about = sub.schema.type_name(ty);
                report.error_help(
                    codes::CONTEXT_NO_RESOLVABLE_KEY,
                    about,
                    format!("`{}` takes arguments from context, and `{about}` has no resolvable key to come back by", sub.coordinate(*field)),
                    format!("add a `@key` to `{about}`"),
                    &[(sub.place(sub.schema.fields[*field].span), String::new())],
                );
            }
        }
    }
}

fn argument(sub: &Subgraph, ty: TypeId, field: FieldId, arg: &ContextArg, report: &mut Report) {
    let about = format!(
        "{}({}:)",
        sub.coordinate(field),
        sub.schema.name(sub.schema.inputs[arg.arg].name)
    );
    let at: [(Place, String); 1] = [(sub.place(arg.span), String::new())];
    if arg.context.is_empty() || arg.selection.trim().is_empty() {
        report.error_help(
            codes::NO_CONTEXT_IN_SELECTION,
            &about,
            format!("`@fromContext` of `{about}` names no context or selects nothing"),
            "write `$context { field }`".into(),
            &at,
        );
        return;
    }
    let setters: Vec<TypeId> = sub
        .types
        .iter()
        .filter(|(_, t)| t.contexts.iter().any(|(n, _)| *n == arg.context))
        .map(|(id, _)| id)
        .collect();
    if setters.is_empty() {
        report.error_help(
            codes::CONTEXT_NOT_SET,
            &about,
            format!(
                "no type of subgraph `{}` sets the context `{}`",
                sub.name, arg.context
            ),
            format!(
                "add `@context(name: \"{}\")` to a type above `{}`",
                arg.context,
                sub.schema.type_name(ty)
            ),
            &at,
        );
        return;
    }
    if sub.schema.types[ty].kind == TypeKind::Interface {
        report.error(
            codes::CONTEXT_INVALID_SELECTION,
            &about,
            format!(
                "`{about}` belongs to an interface; arguments of objects take values from context"
            ),
            &at,
        );
        return;
    }
    for setter in setters {
        if let Err(problem) = fields::read(&sub.schema, setter, &arg.selection) {
            report.error(
                codes::CONTEXT_INVALID_SELECTION,
                &about,
                format!(
                    "`@fromContext` of `{about}` cannot select from `{}`: {}",
                    sub.schema.type_name(setter),
                    problem.message
                ),
                &at,
            );
            return;
        }
    }
}
