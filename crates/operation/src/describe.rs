//! The normal form as text, for `ogive explain` and tests: one line per field, indented by depth.
//!
//! `key: field(args) on TypeA|TypeB if $x && !$y || $z`, in order of appearance; a repeated appearance is marked `again`.

use std::fmt::Write as _;

use ogive_base::{BitSet, FastSet};
use ogive_schema::{Schema, TypeId};

use crate::ir::*;

/// Renders an operation in normal form. Linear in its size.
pub fn describe(schema: &Schema, op: &Operation) -> String {
    let mut out = String::new();
    out.push_str(op.kind.as_str());
    if let Some(name) = &op.name {
        let _ = write!(out, " {name}");
    }
    for variable in &op.variables {
        let _ = write!(
            out,
            " ${}: {}",
            variable.name,
            schema.display_type(variable.ty)
        );
    }
    out.push('\n');
    // An explicit stack: (selection set, next entry).
    let mut seen: FastSet<FieldNodeId> = FastSet::default();
    let mut stack: Vec<(SelectionSetId, usize)> = vec![(op.root, 0)];
    while let Some((set_id, next)) = stack.pop() {
        let set = &op.selection_sets[set_id];
        let Some(entry) = set.order.get(next) else {
            continue;
        };
        stack.push((set_id, next + 1));
        let node = &op.fields[entry.field];
        let again = !seen.insert(entry.field);
        for _ in 0..set.depth + 1 {
            out.push_str("  ");
        }
        field(schema, op, set, entry, node, &mut out);
        if again {
            out.push_str(" again");
            if let Some(group) = entry.defer {
                let _ = write!(out, " in {}", group.0);
            }
            out.push('\n');
            continue;
        }
        out.push('\n');
        if let Some(child) = node.selection_set {
            stack.push((child, 0));
        }
    }
    out
}

fn field(
    schema: &Schema,
    op: &Operation,
    set: &SelectionSet,
    entry: &Occurrence,
    node: &FieldNode,
    out: &mut String,
) {
    let key = &op.keys[node.key];
    let name = match node.field {
        FieldRef::Field(id) => schema.field_name(id),
        FieldRef::Typename => "__typename",
        FieldRef::Schema => "__schema",
        FieldRef::Type => "__type",
    };
    if key != name {
        let _ = write!(out, "{key}: ");
    }
    out.push_str(name);
    if !node.args.is_empty() {
        out.push('(');
        for (i, arg) in node.args.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            let _ = write!(out, "{}: ", arg.name);
            value(op, &arg.value, out);
        }
        out.push(')');
    }
    if !set.possible.is_subset(&entry.types) {
        let _ = write!(out, " on {}", types(schema, &entry.types));
    }
    if entry.cond != CondId::TRUE {
        let _ = write!(out, " if {}", condition(op, entry.cond));
    }
    for group in op.deferral.of(entry.field) {
        let cond = op.deferral.groups[*group].cond;
        let _ = if cond == CondId::TRUE {
            write!(out, " deferred {}", group.0)
        } else {
            write!(out, " conditional {} if {}", group.0, condition(op, cond))
        };
    }
    if let Some(stream) = op.deferral.streams.get(&entry.field) {
        let _ = write!(out, " streamed after {}", stream.initial_count);
    }
}

fn types(schema: &Schema, types: &BitSet) -> String {
    let names: Vec<&str> = types.iter().map(|t| schema.type_name(TypeId(t))).collect();
    names.join("|")
}

fn condition(op: &Operation, cond: CondId) -> String {
    let clause = |c: &Clause| -> String {
        let literals: Vec<String> = c
            .iter()
            .map(|(v, want)| {
                format!(
                    "{}${}",
                    if *want { "" } else { "!" },
                    op.variables[*v as usize].name
                )
            })
            .collect();
        literals.join(" && ")
    };
    let clauses: Vec<String> = op.conditions.clauses(cond).iter().map(clause).collect();
    clauses.join(" || ")
}

/// Nesting is bounded by the parser's depth limit.
fn value(op: &Operation, v: &ArgValue, out: &mut String) {
    match v {
        ArgValue::Variable(i) => {
            let _ = write!(out, "${}", op.variables[*i as usize].name);
        }
        ArgValue::Const(c) => {
            let _ = write!(out, "{c}");
        }
        ArgValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                value(op, item, out);
            }
            out.push(']');
        }
        ArgValue::Object(fields) => {
            out.push('{');
            for (i, (name, field)) in fields.iter().enumerate() {
                let _ = write!(out, "{}{name}: ", if i > 0 { ", " } else { "" });
                value(op, field, out);
            }
            out.push('}');
        }
    }
}
