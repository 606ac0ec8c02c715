//! Makes a failing case small: first the operation, then the graph, then the operation again.
//!
//! Every step proposes a slightly smaller case; it is kept if it is still valid and still fails *in the same way*
//! (the same [`Mismatch::kind`](crate::differential::Mismatch::kind)), so that shrinking does not wander off to
//! another bug.

use crate::{
    graph::{FieldModel, FieldSource, Model, Ty, TypeModel, clean, reach},
    ops::{Op, Sel},
};

/// A graph with an operation.
#[derive(Clone, Debug)]
pub struct Failing {
    /// The graph.
    pub model: Model,
    /// The operation.
    pub op: Op,
}

/// Most cases tried.
const TRIES_MAX: usize = 20_000;

/// The smallest case found for which `fails` says yes.
pub fn shrink(case: Failing, fails: &mut dyn FnMut(&Failing) -> bool) -> Failing {
    let mut shrinker = Shrinker {
        case,
        fails,
        tries: 0,
    };
    loop {
        let before = (shrinker.case.op.clone(), shrinker.case.model.clone());
        shrinker.operation();
        shrinker.graph();
        if before == (shrinker.case.op.clone(), shrinker.case.model.clone())
            || shrinker.tries >= TRIES_MAX
        {
            return shrinker.case;
        }
    }
}

struct Shrinker<'f> {
    case: Failing,
    fails: &'f mut dyn FnMut(&Failing) -> bool,
    tries: usize,
}

impl Shrinker<'_> {
    fn keep(&mut self, case: Failing) -> bool {
        if self.tries >= TRIES_MAX {
            return false;
        }
        self.tries += 1;
        if (self.fails)(&case) {
            self.case = case;
            return true;
        }
        false
    }

    fn operation(&mut self) {
        for edit in [
            remove,
            hoist,
            simplify_directives,
            simplify_alias,
            simplify_args,
        ] {
            let mut n = 0;
            loop {
                let mut op = self.case.op.clone();
                if !edit(&mut op, n) {
                    break;
                }
                let model = self.case.model.clone();
                if op == self.case.op || !self.keep(Failing { model, op }) {
                    n += 1;
                }
            }
        }
        let mut op = self.case.op.clone();
        op.name = None;
        op.others.clear();
        for variable in &mut op.variables {
            variable.default = None;
        }
        let model = self.case.model.clone();
        self.keep(Failing { model, op });
    }

    fn graph(&mut self) {
        let mut n = 0;
        while let Some(mut model) = edited(&self.case.model, n) {
            clean::clean(&mut model);
            let sound = model != self.case.model
                && model.ty("Query").is_some()
                && reach::unreachable(&model).is_empty();
            let op = self.case.op.clone();
            if !sound || !self.keep(Failing { model, op }) {
                n += 1;
            }
        }
    }
}

/// Applies `f` to the selection number `n`; false if there is no such selection.
fn at(op: &mut Op, n: usize, f: &mut dyn FnMut(&mut Vec<Sel>, usize)) -> bool {
    let mut next = 0;
    let mut found = false;
    op.for_each_set(&mut |set| {
        if found {
            return;
        }
        if n < next + set.len() {
            found = true;
            f(set, n - next);
        } else {
            next += set.len();
        }
    });
    found
}

fn remove(op: &mut Op, n: usize) -> bool {
    at(op, n, &mut |set, i| {
        set.remove(i);
    })
}

/// Puts the content of a fragment in its place.
fn hoist(op: &mut Op, n: usize) -> bool {
    let fragments = op.fragments.clone();
    at(op, n, &mut |set, i| match set[i].clone() {
        Sel::Inline { selections, .. } => {
            set.splice(i..=i, selections);
        }
        Sel::Spread {
            fragment,
            directives,
        } => {
            set[i] = Sel::Inline {
                on: Some(fragments[fragment].on.clone()),
                directives,
                selections: fragments[fragment].selections.clone(),
            };
        }
        Sel::Field(_) => {}
    })
}

fn simplify_directives(op: &mut Op, n: usize) -> bool {
    at(op, n, &mut |set, i| match &mut set[i] {
        Sel::Field(field) => field.directives.clear(),
        Sel::Inline { directives, .. } | Sel::Spread { directives, .. } => directives.clear(),
    })
}

fn simplify_alias(op: &mut Op, n: usize) -> bool {
    at(op, n, &mut |set, i| {
        if let Sel::Field(field) = &mut set[i] {
            field.alias = None;
        }
    })
}

fn simplify_args(op: &mut Op, n: usize) -> bool {
    at(op, n, &mut |set, i| {
        if let Sel::Field(field) = &mut set[i] {
            field.args.clear();
        }
    })
}

/// The model with edit number `n`, coarse edits first; `None` when there are no more.
fn edited(model: &Model, n: usize) -> Option<Model> {
    let mut countdown = n;
    let mut hit = || {
        if countdown == 0 {
            return true;
        }
        countdown -= 1;
        false
    };
    let mut out = model.clone();
    for sub in 0..model.subgraphs.len() {
        if hit() {
            for ty in &mut out.types {
                ty.places.remove(&sub);
            }
            return Some(out);
        }
    }
    for i in 0..model.types.len() {
        if hit() {
            out.types.remove(i);
            return Some(out);
        }
    }
    for (i, ty) in model.types.iter().enumerate() {
        for j in 0..ty.fields.len() {
            if hit() {
                let name = ty.fields[j].name.clone();
                crate::graph::generate::edit::drop_field(&mut out, &ty.name, &name);
                return Some(out);
            }
        }
        if edit_type(ty, &mut out.types[i], &mut hit) {
            return Some(out);
        }
        for (j, field) in ty.fields.iter().enumerate() {
            let is_key = || {
                let mentioned = clean::mentioned(model);
                let mut mentioned = mentioned.iter();
                mentioned.any(|(t, f, _)| *t == ty.name && *f == field.name)
            };
            if edit_field(field, &mut out.types[i].fields[j], is_key, &mut hit) {
                return Some(out);
            }
        }
    }
    None
}

/// Takes something out of a type; says whether it has.
fn edit_type(ty: &TypeModel, out: &mut TypeModel, hit: &mut dyn FnMut() -> bool) -> bool {
    for sub in ty.places.keys() {
        if hit() {
            out.places.remove(sub);
            return true;
        }
    }
    for j in 0..ty.members.len() {
        if hit() {
            out.members.remove(j);
            return true;
        }
    }
    for j in 0..ty.inputs.len() {
        if hit() {
            out.inputs.remove(j);
            return true;
        }
    }
    for (place, out) in ty.places.values().zip(out.places.values_mut()) {
        for k in 0..place.keys.len() {
            if hit() {
                out.keys.remove(k);
                return true;
            }
        }
        for k in 0..place.implements.len() {
            if hit() {
                out.implements.remove(k);
                return true;
            }
        }
    }
    false
}

/// Takes something out of a field, or makes its type the plainest if it is part of no key; says whether it has.
fn edit_field(
    field: &FieldModel,
    out: &mut FieldModel,
    is_key: impl FnOnce() -> bool,
    hit: &mut dyn FnMut() -> bool,
) -> bool {
    if !field.args.is_empty() && hit() {
        out.args.clear();
        return true;
    }
    for (sub, source) in &field.sources {
        if hit() {
            out.sources.remove(sub);
            return true;
        }
        let Some(target) = out.sources.get_mut(sub) else {
            continue;
        };
        if edit_source(source, target, hit) {
            return true;
        }
    }
    // The plainest type: nullable, no lists.
    let Some(plain) = field.merged_ty().map(|t| Ty::named(t.name())) else {
        return false;
    };
    let is_plain = field.sources.values().all(|s| s.ty == plain);
    let is_edited = !is_plain && !is_key() && hit();
    if is_edited {
        for source in out.sources.values_mut() {
            source.ty = plain.clone();
        }
    }
    is_edited
}

/// Takes a field set away, or a member of one; says whether it has.
fn edit_source(source: &FieldSource, out: &mut FieldSource, hit: &mut dyn FnMut() -> bool) -> bool {
    if source.requires.is_some() && hit() {
        out.requires = None;
        return true;
    }
    if source.provides.is_some() && hit() {
        out.provides = None;
        return true;
    }
    for (set, out) in [
        (&source.requires, &mut out.requires),
        (&source.provides, &mut out.provides),
    ] {
        let (Some(set), Some(out)) = (set, out) else {
            continue;
        };
        for k in 0..set.items.len() {
            if hit() {
                out.items.remove(k);
                return true;
            }
        }
    }
    false
}
