//! Puts `@defer` into an operation: on fragments that it has, and around selections, which some of the time stay where they
//! were, too.

use super::{Directive, Op, Sel, Val};
use crate::rng::Rng;

/// Defers at random. The operation asks for the same as before.
pub fn defer(op: &mut Op, seed: u64) {
    let mut work = Work {
        rng: Rng::new(seed),
        labels: 0,
        boolean: (op.variables.iter()).position(|v| v.ty == "Boolean!" && v.value.is_some()),
    };
    let mutation = op.mutation;
    work.set(&mut op.selections, mutation);
    for fragment in &mut op.fragments {
        // Root fields of mutations come one after another, so nothing of them is deferred.
        let is_root = fragment.on == "Mutation";
        work.set(&mut fragment.selections, is_root);
    }
}

struct Work {
    rng: Rng,
    labels: u32,
    /// A variable for `if`.
    boolean: Option<usize>,
}

impl Work {
    fn directive(&mut self) -> Directive {
        let label = self.rng.chance(50).then(|| {
            self.labels += 1;
            format!("label{}", self.labels)
        });
        let condition = match self.boolean {
            Some(variable) if self.rng.chance(20) => Some(Val::Var(variable)),
            _ if self.rng.chance(10) => Some(Val::Text(self.rng.chance(60).to_string())),
            _ => None,
        };
        Directive::Defer { label, condition }
    }

    fn set(&mut self, selections: &mut Vec<Sel>, is_serial: bool) {
        for selection in selections.iter_mut() {
            match selection {
                Sel::Field(field) => self.set(&mut field.selections, false),
                Sel::Inline {
                    directives,
                    selections,
                    ..
                } => {
                    if !is_serial && self.rng.chance(35) {
                        directives.push(self.directive());
                    }
                    self.set(selections, is_serial);
                }
                Sel::Spread { directives, .. } => {
                    if !is_serial && self.rng.chance(35) {
                        directives.push(self.directive());
                    }
                }
            }
        }
        if is_serial || selections.is_empty() {
            return;
        }
        while self.rng.chance(25) {
            let at = self.rng.below(selections.len());
            let len = self.rng.between(1, selections.len() - at);
            let inner = if self.rng.chance(30) {
                selections[at..at + len].to_vec()
            } else {
                selections.drain(at..at + len).collect()
            };
            let inner = inner.into_iter().map(without_labels).collect();
            let deferred = Sel::Inline {
                on: None,
                directives: vec![self.directive()],
                selections: inner,
            };
            selections.insert(at.min(selections.len()), deferred);
        }
    }
}

/// Labels are unique, so those of what may be a copy go.
fn without_labels(mut selection: Sel) -> Sel {
    match &mut selection {
        Sel::Field(field) => clean(&mut field.selections),
        Sel::Inline {
            directives,
            selections,
            ..
        } => {
            forget(directives);
            clean(selections);
        }
        Sel::Spread { directives, .. } => forget(directives),
    }
    selection
}
fn clean(selections: &mut Vec<Sel>) {
    let all = std::mem::take(selections);
    selections.extend(all.into_iter().map(without_labels));
}
fn forget(directives: &mut [Directive]) {
    for directive in directives {
        if let Directive::Defer { label, .. } = directive {
            *label = None;
        }
    }
}
