//! Satisfiability on the model: can every field be reached from every place at which it may be selected?
//!
//! A place is a type together with the set of subgraphs that hold the object there. From a root one walks every
//! field; a leaf must be resolvable by some subgraph of the (closed) set. Entities close their set by keys; value
//! types cannot. This is deliberately written against the model, not with the product's closure, so that the two can
//! be held against each other.

use std::collections::{HashMap, HashSet};

use super::{FieldModel, FieldSet, Item, Kind, Model, Sub, Subs, subs};

/// A field that cannot be had at some place.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreachable {
    /// The object type.
    pub ty: String,
    /// The field.
    pub field: String,
    /// Subgraphs that hold the object.
    pub have: Subs,
}

/// Deepest chain of `@requires` and nested keys that is followed.
const DEPTH_MAX: u32 = 10;

/// Every field that cannot be reached from some place. Empty: the graph is satisfiable.
pub fn unreachable(model: &Model) -> Vec<Unreachable> {
    if model.labels().is_empty() {
        return unreachable_now(model);
    }
    let mut out = unreachable_now(&model.labelled(true));
    out.extend(unreachable_now(&model.labelled(false)));
    out
}

/// The same while labels stay as they are.
fn unreachable_now(model: &Model) -> Vec<Unreachable> {
    walk(model, &mut |_, _, _| {})
}

/// Subgraphs that can serve each field, if they are the same wherever objects of its type occur; zero if they are not.
/// Labels may be on or off.
pub fn servers(model: &Model) -> HashMap<(String, String), Subs> {
    let mut out: HashMap<(String, String), Subs> = HashMap::new();
    let mut note = |ty: &str, field: &str, providers: Subs| {
        let known = out.entry((ty.to_owned(), field.to_owned()));
        let known = known.or_insert(providers);
        if *known != providers {
            *known = 0;
        }
    };
    walk(&model.labelled(true), &mut note);
    walk(&model.labelled(false), &mut note);
    out
}

/// Visits every place; `note` is given type, field and the subgraphs that can serve it there.
fn walk(model: &Model, note: &mut dyn FnMut(&str, &str, Subs)) -> Vec<Unreachable> {
    let mut seen: HashSet<(&str, Subs)> = HashSet::new();
    let mut todo: Vec<(&str, Subs)> = Vec::new();
    let mut out = Vec::new();
    for root in ["Query", "Mutation"] {
        if let Some(ty) = model.ty(root) {
            todo.push((&ty.name, ty.subs()));
        }
    }
    while let Some((name, have)) = todo.pop() {
        if !seen.insert((name, have)) {
            continue;
        }
        let Some(ty) = model.ty(name) else { continue };
        for field in &ty.fields {
            let providers = providers(model, name, have, &field.name, DEPTH_MAX);
            if providers == 0 {
                out.push(Unreachable {
                    ty: name.to_owned(),
                    field: field.name.clone(),
                    have,
                });
                continue;
            }
            note(name, &field.name, providers);
            for (child, have) in children(model, name, &field.name, providers, DEPTH_MAX) {
                todo.push((child, have));
            }
            alone(model, name, field, providers, &mut todo, &mut out);
        }
    }
    out
}

/// What one subgraph, or those that know the same members, must bring of an abstract value: everything of a list of
/// members that differ, and an interface's own fields. Each of them must, so that any will do.
fn alone<'m>(
    model: &'m Model,
    ty: &str,
    field: &FieldModel,
    providers: Subs,
    todo: &mut Vec<(&'m str, Subs)>,
    out: &mut Vec<Unreachable>,
) {
    let Some(merged) = field.merged_ty() else {
        return;
    };
    let value = merged.name();
    if !model.kind(value).is_abstract() || providers.count_ones() < 2 {
        return;
    }
    let knows = |sub: Sub| model.possible_in(value, sub);
    let first = subs(providers).next().map(knows);
    let differs = subs(providers).any(|sub| Some(knows(sub)) != first);
    let is_interface = model.kind(value) == Kind::Interface;
    for sub in subs(providers) {
        let same = subs(providers).filter(|s| knows(*s) == knows(sub));
        let group = same.fold(0, |set: Subs, s| set | 1 << s);
        if differs && (merged.is_list() || is_interface) {
            todo.extend(children(model, ty, &field.name, group, DEPTH_MAX));
        }
        if !is_interface {
            continue;
        }
        for (concrete, have) in children(model, ty, &field.name, 1 << sub, DEPTH_MAX) {
            for own in model.ty(value).into_iter().flat_map(|t| &t.fields) {
                if self::providers(model, concrete, have, &own.name, DEPTH_MAX) == 0 {
                    out.push(Unreachable {
                        ty: concrete.to_owned(),
                        field: own.name.clone(),
                        have,
                    });
                }
            }
        }
    }
}

/// Concrete types of a field's value with the subgraphs that hold it.
fn children<'m>(
    model: &'m Model,
    ty: &str,
    field: &str,
    providers: Subs,
    depth: u32,
) -> Vec<(&'m str, Subs)> {
    let Some(child) = model
        .field(ty, field)
        .and_then(|f| f.sources.values().next())
        .map(|s| s.ty.name().to_owned())
    else {
        return Vec::new();
    };
    if !model.kind(&child).is_composite() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for concrete in model.possible(&child) {
        let have = subs(providers)
            .filter(|s| model.possible_in(&child, *s).contains(&concrete))
            .fold(0, |set, s| set | 1 << s);
        if have != 0 {
            // The name must live as long as the model, not as long as this call.
            let name = model.ty(concrete).map_or("", |t| t.name.as_str());
            out.push((name, close(model, name, have, depth)));
        }
    }
    out
}

/// All subgraphs that can hold an object of `ty` which `have` hold already: those with a key that is known.
pub fn close(model: &Model, ty: &str, mut have: Subs, depth: u32) -> Subs {
    // Any subgraph can be asked for the query root, wherever that is.
    if ty == "Query" {
        return model.ty(ty).map_or(have, |t| t.subs());
    }
    let alone = model.stands_alone(ty);
    let Some(row) = model
        .ty(ty)
        .filter(|t| (t.kind == Kind::Object || alone) && !t.is_root())
    else {
        return have;
    };
    if depth == 0 {
        return have;
    }
    loop {
        let mut grown = have;
        for (sub, place) in &row.places {
            if grown & (1 << sub) == 0
                && (!alone || place.interface_object)
                && place
                    .keys
                    .iter()
                    .any(|k| k.resolvable && knows(model, ty, grown, &k.fields, depth - 1))
            {
                grown |= 1 << sub;
            }
        }
        if grown == have {
            return have;
        }
        have = grown;
    }
}

/// Subgraphs of `have` that can give `field` on an object of `ty`, including what `@requires` needs.
pub fn providers(model: &Model, ty: &str, have: Subs, field: &str, depth: u32) -> Subs {
    let Some(row) = model.field(ty, field) else {
        return 0;
    };
    subs(have)
        .filter(|sub| {
            let Some(source) = row.sources.get(sub).filter(|s| s.active()) else {
                return false;
            };
            match &source.requires {
                None => true,
                Some(requires) => {
                    depth > 0
                        && can_enter(model, ty, have, *sub, depth - 1)
                        && knows(model, ty, have, requires, depth - 1)
                }
            }
        })
        .fold(0, |set, s| set | 1 << s)
}

/// Whether an entity look-up in `sub` is possible for an object that `have` hold.
pub fn can_enter(model: &Model, ty: &str, have: Subs, sub: Sub, depth: u32) -> bool {
    model
        .ty(ty)
        .and_then(|t| t.places.get(&sub))
        .is_some_and(|p| {
            p.keys
                .iter()
                .any(|k| k.resolvable && knows(model, ty, have, &k.fields, depth))
        })
}

/// Whether every member of a field set can be had for an object of `ty` that `have` hold.
pub fn knows(model: &Model, ty: &str, have: Subs, set: &FieldSet, depth: u32) -> bool {
    if depth == 0 {
        return false;
    }
    set.items.iter().all(|item| match item {
        Item::On { ty: on, sub } => {
            !model.possible(on).contains(&ty) || knows(model, ty, have, sub, depth - 1)
        }
        Item::Field { name, .. } if name == "__typename" => true,
        Item::Field { name, sub, .. } => {
            let providers = providers(model, ty, have, name, depth - 1);
            providers != 0
                && (sub.is_empty()
                    || children(model, ty, name, providers, depth - 1)
                        .into_iter()
                        .all(|(child, have)| knows(model, child, have, sub, depth - 1)))
        }
    })
}
