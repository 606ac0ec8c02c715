//! The standard introspection query answered by us and by the reference implementation.

use ogive_schema::{
    Schema, TypeId,
    introspection::{Meta, OUTPUT_BYTES_MAX, Root, Selected, execute},
};
use ogive_syntax::{
    Document, Limits, SourceId,
    ast::{Selection, SelectionSet, ValueKind},
    parse,
};
use serde_json::Value;

/// Compares the answers to `query`, the text of the standard query.
pub(super) fn compare(
    schema: &Schema,
    query: &Value,
    answer: &Value,
    name: &str,
    failures: &mut Vec<String>,
) {
    let parsed = parse(query.as_str().unwrap(), SourceId(0), &Limits::default());
    assert_eq!(parsed.errors, []);
    let doc = &parsed.document;
    let operation = doc.operations().next().unwrap();
    let Selection::Field(root) = doc[operation.selection_set.items][0] else {
        panic!("the query selects `__schema`");
    };
    let mut selected = Vec::new();
    let ty = schema.type_by_name("__Schema").unwrap();
    let children = flatten(schema, doc, root.selection_set.unwrap(), ty, &mut selected);
    let mut out = Vec::new();
    execute(
        schema,
        &selected,
        children,
        Root::Schema,
        OUTPUT_BYTES_MAX,
        &mut out,
    )
    .unwrap();
    let ours: Value = serde_json::from_slice(&out).unwrap();
    let ours = normal(&ours, None);
    let reference = &answer["17"]["introspection"]["__schema"];
    for version in ["16", "17"] {
        let theirs = &answer[version]["introspection"]["__schema"];
        if theirs.is_null() {
            continue;
        }
        // Version 16 prints default values after coercion, version 17 as written.
        let theirs = normal(theirs, (version == "16").then_some(reference));
        if let Some(place) = difference(&ours, &theirs, String::new()) {
            failures.push(format!("{name}: introspection, version {version}: {place}"));
        }
    }
}

/// Appends the fields of `set`, fragments inlined; what the operation's normal form does in general.
fn flatten(
    schema: &Schema,
    doc: &Document,
    set: SelectionSet,
    ty: TypeId,
    out: &mut Vec<Selected>,
) -> std::ops::Range<u32> {
    let mut fields = Vec::new();
    let mut sets = vec![set];
    while let Some(set) = sets.pop() {
        for selection in &doc[set.items] {
            match selection {
                Selection::Field(field) => fields.push(*field),
                Selection::Inline(inline) => sets.push(inline.selection_set),
                Selection::Spread(spread) => {
                    let name = doc.name(spread.name);
                    let fragment = doc.fragments().find(|f| doc.name(f.name) == name);
                    sets.push(fragment.unwrap().selection_set);
                }
            }
        }
    }
    let start = out.len();
    let row = |name: &str| schema.field_by_name(ty, name).unwrap();
    out.extend(fields.iter().map(|field| {
        let all = doc[field.arguments]
            .iter()
            .any(|a| matches!(a.value.kind, ValueKind::Boolean(true)));
        let key = doc.name(field.response_key());
        Selected::new(key, Meta::Field(row(doc.name(field.name)))).include_deprecated(all)
    }));
    let end = out.len();
    for (i, field) in fields.iter().enumerate() {
        if let Some(set) = field.selection_set {
            let ty = schema.fields[row(doc.name(field.name))].ty.id;
            out[start + i].children = flatten(schema, doc, set, ty, out);
        }
    }
    start as u32..end as u32
}

/// What must be equal: without the introspection types and `@deprecated`, which have newer fields and locations
/// there; without descriptions of what the specification defines; sets in order of names; default values of
/// version 16 replaced by those of version 17.
fn normal(schema: &Value, reference: Option<&Value>) -> Value {
    let mut schema = schema.clone();
    if let Some(reference) = reference.filter(|r| !r.is_null()) {
        copy_defaults(&mut schema, reference);
    }
    let specified = [
        "String",
        "Int",
        "Float",
        "Boolean",
        "ID",
        "include",
        "skip",
        "specifiedBy",
        "oneOf",
    ];
    for list in ["types", "directives"] {
        let rows = schema[list].as_array_mut().unwrap();
        rows.retain(|row| {
            let name = row["name"].as_str().unwrap();
            !name.starts_with("__") && name != "deprecated"
        });
        sort_by_name(rows);
        for row in rows {
            if let Some(possible) = row["possibleTypes"].as_array_mut() {
                sort_by_name(possible);
            }
            if specified.contains(&row["name"].as_str().unwrap()) {
                row["description"] = Value::Null;
                if let Some(args) = row["args"].as_array_mut() {
                    for arg in args {
                        arg["description"] = Value::Null;
                    }
                }
            }
        }
    }
    trim_defaults(&mut schema);
    schema
}

fn sort_by_name(rows: &mut [Value]) {
    rows.sort_by_key(|row| row["name"].as_str().unwrap().to_owned());
}

fn copy_defaults(to: &mut Value, from: &Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (key, value) in to.iter_mut() {
                let Some(other) = from.get(key) else { continue };
                if key == "defaultValue" && value.is_string() {
                    *value = other.clone();
                } else {
                    copy_defaults(value, other);
                }
            }
        }
        (Value::Array(to), Value::Array(from)) => {
            for (to, from) in to.iter_mut().zip(from) {
                copy_defaults(to, from);
            }
        }
        _ => {}
    }
}

/// Braces stand alone there: `{ a: 1 }`.
fn trim_defaults(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if key == "defaultValue" => {
                        *text = text.replace("{ ", "{").replace(" }", "}");
                    }
                    _ => trim_defaults(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(trim_defaults),
        _ => {}
    }
}

/// The first place where two values differ.
fn difference(ours: &Value, theirs: &Value, place: String) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().find_map(|(k, v)| {
                difference(v, b.get(k).unwrap_or(&Value::Null), format!("{place}.{k}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(i, (a, b))| difference(a, b, format!("{place}[{i}]"))),
        _ if ours == theirs => None,
        _ => {
            let short = |v: &Value| v.to_string().chars().take(300).collect::<String>();
            Some(format!(
                "{place}\n  ours: {}\n  theirs: {}",
                short(ours),
                short(theirs)
            ))
        }
    }
}
