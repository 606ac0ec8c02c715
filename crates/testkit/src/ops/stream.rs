//! Puts `@stream` into an operation: on fields that are lists wherever their response key stands, so that all appearances say
//! the same.

use std::collections::BTreeMap;

use super::{Directive, Op, Sel, Val};
use crate::{graph::Model, rng::Rng};

/// Streams lists at random. The operation asks for the same as before.
pub fn stream(op: &mut Op, model: &Model, seed: u64) {
    let mut keys: BTreeMap<String, Key> = BTreeMap::new();
    let root = if op.mutation { "Mutation" } else { "Query" };
    note(model, &op.selections, root, &mut keys);
    for fragment in &op.fragments {
        note(model, &fragment.selections, &fragment.on, &mut keys);
    }
    let mut rng = Rng::new(seed);
    let boolean = (op.variables.iter()).position(|v| v.ty == "Boolean!" && v.value.is_some());
    let number = (op.variables.iter()).position(|v| {
        let value = v
            .value
            .as_deref()
            .and_then(|value| value.parse::<i64>().ok());
        v.ty == "Int!" && value.is_some_and(|value| value >= 0)
    });
    let mut labels = 0;
    let mut chosen: BTreeMap<String, Directive> = BTreeMap::new();
    for (name, key) in keys {
        if !key.is_list || !rng.chance(50) {
            continue;
        }
        let label = (key.appearances == 1 && rng.chance(50)).then(|| {
            labels += 1;
            format!("stream{labels}")
        });
        let initial = match number {
            Some(variable) if rng.chance(10) => Some(Val::Var(variable)),
            _ if rng.chance(70) => Some(Val::Text(rng.below(3).to_string())),
            _ => None,
        };
        let condition = match boolean {
            Some(variable) if rng.chance(10) => Some(Val::Var(variable)),
            _ if rng.chance(10) => Some(Val::Text(rng.chance(60).to_string())),
            _ => None,
        };
        let directive = Directive::Stream {
            label,
            initial,
            condition,
        };
        chosen.insert(name, directive);
    }
    op.for_each_set(&mut |set| {
        for selection in set {
            if let Sel::Field(field) = selection
                && let Some(directive) = chosen.get(field.key())
            {
                field.directives.push(directive.clone());
            }
        }
    });
}

struct Key {
    is_list: bool,
    appearances: u32,
}

fn note(model: &Model, set: &[Sel], ty: &str, keys: &mut BTreeMap<String, Key>) {
    for selection in set {
        match selection {
            Sel::Field(field) => {
                let found = model.field(ty, &field.name).and_then(|f| f.merged_ty());
                // Root fields of mutations come one after another.
                let is_list = ty != "Mutation" && found.as_ref().is_some_and(|ty| ty.is_list());
                let key = keys.entry(field.key().to_owned()).or_insert(Key {
                    is_list,
                    appearances: 0,
                });
                key.is_list &= is_list;
                key.appearances += 1;
                if let Some(found) = found {
                    note(model, &field.selections, found.name(), keys);
                }
            }
            Sel::Inline { on, selections, .. } => {
                note(model, selections, on.as_deref().unwrap_or(ty), keys);
            }
            Sel::Spread { .. } => {}
        }
    }
}
