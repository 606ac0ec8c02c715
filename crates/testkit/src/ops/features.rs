//! Which features an operation uses: evidence that a run exercised them.

use std::collections::BTreeSet;

use super::{Directive, Field, Op, Sel, Val};
use crate::graph::{Kind, Model};

/// Names of the features an operation uses.
pub fn features(model: &Model, op: &Op) -> BTreeSet<&'static str> {
    let mut out = BTreeSet::new();
    out.insert(if op.mutation { "mutation" } else { "query" });
    if op.mutation && op.selections.len() > 1 {
        out.insert("mutation with several root fields");
    }
    let root = if op.mutation { "Mutation" } else { "Query" };
    walk(model, op, &op.selections, root, 1, &mut out);
    let (used, _) = op.used();
    for (i, variable) in op.variables.iter().enumerate() {
        if used[i] && !variable.name.starts_with('c') {
            out.insert("variable in argument");
            if variable.default.is_some() {
                out.insert("variable with default");
            }
            if variable.value.is_none() {
                out.insert("variable left out");
            }
        }
    }
    out
}

fn walk(
    model: &Model,
    op: &Op,
    set: &[Sel],
    ty: &str,
    depth: usize,
    out: &mut BTreeSet<&'static str>,
) {
    if depth > 40 {
        return;
    }
    let mut keys: Vec<&str> = Vec::new();
    let mut flat = Vec::new();
    flatten(op, set, ty, &mut flat);
    if flat.iter().enumerate().any(|(i, (key, on, name))| {
        flat[..i]
            .iter()
            .any(|(k, t, n)| k == key && t != on && n != name)
    }) {
        out.insert("same key under different types");
    }
    for selection in set {
        match selection {
            Sel::Field(field) => {
                if keys.contains(&field.key()) {
                    out.insert("field repeated in one set");
                }
                keys.push(field.key());
                self_features(model, field, ty, depth, out);
                if let Some(value) = model.field(ty, &field.name).and_then(|f| f.merged_ty()) {
                    match model.kind(value.name()) {
                        Kind::Interface => out.insert("interface field"),
                        Kind::Union => out.insert("union field"),
                        _ => false,
                    };
                    walk(model, op, &field.selections, value.name(), depth + 1, out);
                }
            }
            Sel::Inline {
                on,
                directives,
                selections,
            } => {
                out.insert("inline fragment");
                if !directives.is_empty() {
                    out.insert("condition on fragment");
                }
                condition(model, on.as_deref(), out);
                walk(
                    model,
                    op,
                    selections,
                    on.as_deref().unwrap_or(ty),
                    depth,
                    out,
                );
            }
            Sel::Spread {
                fragment,
                directives,
            } => {
                out.insert("named fragment");
                if !directives.is_empty() {
                    out.insert("condition on fragment");
                }
                let fragment = &op.fragments[*fragment];
                condition(model, Some(&fragment.on), out);
                walk(
                    model,
                    op,
                    &fragment.selections,
                    &fragment.on,
                    depth + 1,
                    out,
                );
            }
        }
    }
}

/// Response keys of one set with type condition and field, through fragments.
fn flatten<'o>(
    op: &'o Op,
    set: &'o [Sel],
    ty: &'o str,
    out: &mut Vec<(&'o str, &'o str, &'o str)>,
) {
    for selection in set {
        match selection {
            Sel::Field(field) => out.push((field.key(), ty, &field.name)),
            Sel::Inline { on, selections, .. } => {
                flatten(op, selections, on.as_deref().unwrap_or(ty), out);
            }
            Sel::Spread { fragment, .. } => {
                let fragment = &op.fragments[*fragment];
                flatten(op, &fragment.selections, &fragment.on, out);
            }
        }
    }
}

fn condition(model: &Model, on: Option<&str>, out: &mut BTreeSet<&'static str>) {
    out.insert(match on.map(|t| model.kind(t)) {
        None => "fragment without type condition",
        Some(Kind::Interface) => "fragment on interface",
        Some(Kind::Union) => "fragment on union",
        Some(_) => "fragment on object",
    });
}

fn self_features(
    model: &Model,
    field: &Field,
    ty: &str,
    depth: usize,
    out: &mut BTreeSet<&'static str>,
) {
    if field.name == "__typename" {
        out.insert("__typename");
    } else if field.name.starts_with("__") {
        out.insert("introspection");
    }
    if depth > 5 {
        out.insert("depth above 5");
    }
    for directive in &field.directives {
        let Directive::Condition { skip, condition } = directive else {
            continue;
        };
        out.insert(match (skip, condition) {
            (true, Val::Text(_)) => "@skip literal",
            (true, _) => "@skip variable",
            (false, Val::Text(_)) => "@include literal",
            (false, _) => "@include variable",
        });
    }
    for (_, value) in &field.args {
        out.insert("argument");
        match value {
            Val::Object(_) => out.insert("input object literal"),
            Val::List(_) => out.insert("list literal"),
            _ => false,
        };
    }
    let Some(row) = model.ty(ty) else { return };
    if let Some(alias) = &field.alias {
        out.insert("alias");
        if row.field(alias).is_some() && *alias != field.name {
            out.insert("alias that is another field's name");
        }
        if row
            .places
            .values()
            .any(|p| p.keys.iter().any(|k| k.fields.names().any(|n| n == alias)))
            && *alias != field.name
        {
            out.insert("alias that is a key's name");
        }
    }
    let Some(model_field) = row.field(&field.name) else {
        return;
    };
    for source in model_field.sources.values() {
        if source.requires.is_some() {
            out.insert("field with @requires");
        }
        if source.provides.is_some() {
            out.insert("field with @provides");
        }
        if source.overrides.is_some() {
            out.insert("field with @override");
        }
        if source.ty.to_string().contains("[[") {
            out.insert("nested list");
        }
    }
    if model_field.active().count_ones() > 1 {
        out.insert("shared field");
    }
}
