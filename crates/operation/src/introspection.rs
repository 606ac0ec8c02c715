//! Answers the introspection fields of an operation (`__schema`, `__type`) from a schema.
//!
//! A plan refers to these fields as *locals*, numbered in order of their [`FieldNodeId`]s; [`local_fields`] gives that
//! order, [`answer_locals`] the JSON of each.

use ogive_base::FastSet;
use ogive_schema::{
    ConstValue, Schema,
    introspection::{self, Meta, OutputTooLarge, Root, Selected},
};

use crate::{Variables, ir::*};

/// The introspection fields of an operation, in the order in which plans number them.
pub fn local_fields(op: &Operation) -> impl Iterator<Item = FieldNodeId> + '_ {
    op.fields
        .iter()
        .filter(|(_, f)| matches!(f.field, FieldRef::Schema | FieldRef::Type))
        .map(|(id, _)| id)
}

/// The JSON of every introspection field for these variable values. `output_bytes_max` bounds each
/// ([`introspection::OUTPUT_BYTES_MAX`] by default).
pub fn answer_locals(
    api: &Schema,
    op: &Operation,
    variables: &Variables,
    output_bytes_max: usize,
) -> Result<Vec<Vec<u8>>, OutputTooLarge> {
    local_fields(op)
        .map(|field| answer(api, op, variables, field, output_bytes_max))
        .collect()
}

fn answer(
    api: &Schema,
    op: &Operation,
    variables: &Variables,
    field: FieldNodeId,
    output_bytes_max: usize,
) -> Result<Vec<u8>, OutputTooLarge> {
    let node = &op.fields[field];
    let mut selected: Vec<Selected> = Vec::new();
    let mut pending: Vec<(usize, SelectionSetId)> = Vec::new();
    let root = match node.selection_set {
        Some(set) => children(op, variables, set, &mut selected, &mut pending),
        None => 0..0,
    };
    let mut next = 0;
    while next < pending.len() {
        let (parent, set) = pending[next];
        let range = children(op, variables, set, &mut selected, &mut pending);
        selected[parent].children = range;
        next += 1;
    }
    let name = match node.args.first().map(|a| &a.value) {
        Some(ArgValue::Const(ConstValue::String(name))) => name.to_string(),
        Some(ArgValue::Variable(v)) => {
            let text = variables
                .values
                .get(*v as usize)
                .and_then(Option::as_deref)
                .unwrap_or("\"\"");
            serde_json::from_str(text).unwrap_or_default()
        }
        _ => String::new(),
    };
    let root_field = if node.field == FieldRef::Schema {
        Root::Schema
    } else {
        Root::Type(&name)
    };
    let mut out = Vec::new();
    introspection::execute(api, &selected, root, root_field, output_bytes_max, &mut out)?;
    Ok(out)
}

/// Appends what is selected in one set, and notes the sub-selections still to be appended.
fn children(
    op: &Operation,
    variables: &Variables,
    set: SelectionSetId,
    selected: &mut Vec<Selected>,
    pending: &mut Vec<(usize, SelectionSetId)>,
) -> std::ops::Range<u32> {
    let start = selected.len() as u32;
    let holds = |cond| {
        op.conditions
            .holds(cond, |v| variables.boolean(v as usize).unwrap_or(false))
    };
    let mut seen: FastSet<FieldNodeId> = FastSet::default();
    for entry in &op.selection_sets[set].order {
        if !holds(entry.cond) || !seen.insert(entry.field) {
            continue;
        }
        let node = &op.fields[entry.field];
        let field = match node.field {
            FieldRef::Field(id) => Meta::Field(id),
            _ => Meta::Typename,
        };
        let include = node
            .args
            .iter()
            .find(|a| &*a.name == "includeDeprecated")
            .is_some_and(|a| match &a.value {
                ArgValue::Const(value) => value.as_bool().unwrap_or(false),
                ArgValue::Variable(v) => variables.boolean(*v as usize).unwrap_or(false),
                _ => false,
            });
        if let Some(child) = node.selection_set {
            pending.push((selected.len(), child));
        }
        selected.push(Selected::new(&op.keys[node.key], field).include_deprecated(include));
    }
    start..selected.len() as u32
}
