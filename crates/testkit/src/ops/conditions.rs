//! Puts conditions by variables on what an operation selects, takes them for what they are with the values that are sent, and
//! takes the directives away by which answers come in parts.

use super::{Directive, Op, Sel, Val, Variable};
use crate::rng::Rng;

/// Puts `@skip` and `@include` on fields and fragments at random.
pub fn condition(op: &mut Op, seed: u64) {
    let mut rng = Rng::new(seed);
    let first = op.variables.len();
    for name in ["when", "unless"] {
        op.variables.push(Variable {
            name: name.to_owned(),
            ty: "Boolean!".to_owned(),
            default: None,
            value: Some(rng.chance(40).to_string()),
        });
    }
    for_each(op, &mut |directives| {
        let has_some = directives
            .iter()
            .any(|directive| matches!(directive, Directive::Condition { .. }));
        if !has_some && rng.chance(15) {
            directives.push(Directive::Condition {
                skip: rng.chance(40),
                condition: Val::Var(first + rng.below(2)),
            });
        }
    });
}

/// The same operation with the values of variables in the place of those that conditions name.
#[must_use]
pub fn decided(op: &Op) -> Op {
    let mut out = op.clone();
    for_each(&mut out, &mut |directives| {
        for directive in directives {
            if let Directive::Condition { condition, .. } = directive
                && let Val::Var(at) = condition
            {
                let variable = &op.variables[*at];
                let value = variable.value.as_ref().or(variable.default.as_ref());
                *condition = Val::Text(value.map_or_else(|| "false".to_owned(), String::clone));
            }
        }
    });
    out
}

/// The same operation without `@defer` and `@stream`.
#[must_use]
pub fn whole(op: &Op) -> Op {
    let mut out = op.clone();
    for_each(&mut out, &mut |directives| {
        directives.retain(|directive| matches!(directive, Directive::Condition { .. }));
    });
    out
}

fn for_each(op: &mut Op, change: &mut dyn FnMut(&mut Vec<Directive>)) {
    op.for_each_set(&mut |selections| {
        for selection in selections {
            match selection {
                Sel::Field(field) => change(&mut field.directives),
                Sel::Inline { directives, .. } | Sel::Spread { directives, .. } => {
                    change(directives);
                }
            }
        }
    });
}
