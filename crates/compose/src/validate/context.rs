//! `@context` and `@fromContext`.

use ogive_schema::{FieldId, TypeId, TypeKind};

use crate::{
    codes,
    fields::Item,
    report::{Place, Problem, Report},
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
    let setters: Vec<TypeId> = sub.setters(arg).collect();
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
    if sub.schema.types[ty].kind == TypeKind::Interface || sub.types[ty].interface_object {
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
    if let Err(problem) = selection(sub, &setters, arg) {
        report.error(
            codes::CONTEXT_INVALID_SELECTION,
            &about,
            format!("`@fromContext` of `{about}` {problem}"),
            &at,
        );
    }
}

/// Whether the selection of an argument brings one value of the argument's type, whichever type sets the context.
fn selection(sub: &Subgraph, setters: &[TypeId], arg: &ContextArg) -> Result<(), Problem> {
    let name = |ty: TypeId| sub.schema.type_name(ty);
    let mut used: Vec<TypeId> = Vec::new();
    let mut items = Vec::new();
    for setter in setters {
        items = sub.selected_of(arg, *setter).map_err(|invalid| {
            let name = name(*setter);
            Problem(format!("cannot select from `{name}`: {}", invalid.message))
        })?;
        if !is_typed(arg) {
            one_value(sub, &items, arg)?;
            continue;
        }
        let possible = &sub.schema.types[*setter].possible;
        let before = used.len();
        used.extend(conditions(&items).filter(|ty| possible.contains(ty.0)));
        if before == used.len() {
            return Err(Problem(format!(
                "selects nothing of `{}`, which sets the context",
                name(*setter)
            )));
        }
    }
    for (n, item) in items.iter().enumerate().filter(|_| is_typed(arg)) {
        let Item::On { ty, sub: inner } = item else {
            return Err(Problem("selects fields beside type conditions".into()));
        };
        if sub.schema.types[*ty].kind != TypeKind::Object {
            return Err(Problem(format!(
                "selects from `{}`, which is no object type",
                name(*ty)
            )));
        }
        if !used.contains(ty) {
            return Err(Problem(format!(
                "selects from `{}`, which does not set the context",
                name(*ty)
            )));
        }
        if conditions(&items[..n]).any(|before| before == *ty) {
            return Err(Problem(format!("selects from `{}` twice", name(*ty))));
        }
        one_value(sub, inner, arg)?;
    }
    Ok(())
}

/// Whether a selection consists of type conditions, the same for all types that set the context.
fn is_typed(arg: &ContextArg) -> bool {
    arg.selection.trim_start().starts_with("...")
}

fn conditions(items: &[Item]) -> impl Iterator<Item = TypeId> {
    items.iter().filter_map(|item| match item {
        Item::On { ty, .. } => Some(*ty),
        Item::Field { .. } => None,
    })
}

/// Whether items select one field of each object on the way, and the last one is of the argument's type. Values may
/// always be null: objects on the way can be, and subgraphs can fail.
fn one_value(sub: &Subgraph, items: &[Item], arg: &ContextArg) -> Result<(), Problem> {
    let wanted = sub.schema.inputs[arg.arg].ty;
    let mut items = items;
    let mut lists = 0usize;
    loop {
        let (field, inner) = match items {
            [Item::Field { field, sub, .. }] => (*field, sub),
            [Item::On { sub, .. }] => {
                items = sub;
                continue;
            }
            _ => return Err(Problem("selects more than one value".into())),
        };
        let ty = match field {
            Some(field) => sub.schema.fields[field].ty,
            None => ogive_schema::Type {
                id: ogive_schema::builtins::STRING,
                wrapping: ogive_schema::Wrapping::NON_NULL,
            },
        };
        lists += usize::from(ty.wrapping.lists());
        if !inner.is_empty() {
            items = inner;
            continue;
        }
        let is_nullable =
            (0..=wanted.wrapping.lists()).all(|l| !wanted.wrapping.layer_is_non_null(l));
        if ty.id == wanted.id && lists == usize::from(wanted.wrapping.lists()) && is_nullable {
            return Ok(());
        }
        let found = format!(
            "{}{}{}",
            "[".repeat(lists),
            sub.schema.type_name(ty.id),
            "]".repeat(lists)
        );
        return Err(Problem(format!(
            "selects a value of type `{found}`, and the argument is of type `{}`",
            sub.schema.display_type(wanted)
        )));
    }
}
