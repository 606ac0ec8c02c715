//! What an operation costs, for people and for tools.

use std::fmt::Write;

use ogive_json::write_string;
use ogive_operation::{FieldNodeId, Operation};

use crate::{Estimate, FieldEstimate};

/// Where a field is answered: response keys from the root, with the types that have it if others do not.
pub fn path(operation: &Operation, field: FieldNodeId) -> String {
    let mut keys = Vec::new();
    let mut at = Some(field);
    while let Some(id) = at {
        let node = &operation.fields[id];
        keys.push(operation.keys.text(node.key));
        at = operation.selection_sets[node.parent].parent;
    }
    keys.reverse();
    keys.join(".")
}

/// As text: the cost, and one line per field that costs something.
pub fn text(operation: &Operation, estimate: &Estimate, fields: &[FieldEstimate]) -> String {
    let mut out = format!("cost {}\n", estimate.cost);
    if let Some(field) = estimate.unsized_field {
        let path = path(operation, field);
        let _ = writeln!(out, "`{path}` needs exactly one slicing argument");
    }
    for row in fields.iter().filter(|row| row.cost > 0) {
        let (cost, size, path) = (row.cost, row.size, path(operation, row.field));
        let _ = match size {
            1 => writeln!(out, "{cost:>12}  {path}"),
            _ => writeln!(out, "{cost:>12}  {path}  {size} items"),
        };
    }
    out
}

/// As JSON: `cost`, `needsSlicingArgument` and `fields`, each with `path`, `size` and `cost`.
pub fn json(operation: &Operation, estimate: &Estimate, fields: &[FieldEstimate]) -> String {
    let quoted = |field| {
        let mut text = Vec::new();
        write_string(&mut text, &path(operation, field));
        String::from_utf8_lossy(&text).into_owned()
    };
    let needs = estimate.unsized_field.map_or("null".to_owned(), quoted);
    let rows = fields.iter().map(|row| {
        let (path, size, cost) = (quoted(row.field), row.size, row.cost);
        format!("    {{ \"path\": {path}, \"size\": {size}, \"cost\": {cost} }}")
    });
    let rows: Vec<String> = rows.collect();
    let rows = if rows.is_empty() {
        "[]".to_owned()
    } else {
        format!("[\n{}\n  ]", rows.join(",\n"))
    };
    let cost = estimate.cost;
    format!(
        "{{\n  \"cost\": {cost},\n  \"needsSlicingArgument\": {needs},\n  \"fields\": {rows}\n}}\n"
    )
}
