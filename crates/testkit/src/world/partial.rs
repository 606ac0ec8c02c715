//! What subgraphs of a graph do not know, or dispute.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value as Json};

use super::Value;
use crate::graph::{FieldModel, FieldSet, Item, Kind, Model, Sub, Subs, TypeModel, clean, subs};

/// What each of those who can serve a union, or a list of one, gives, if they do not know the same members.
pub(super) fn disputed(
    model: &Model,
    field: &FieldModel,
    servers: Subs,
    certain: &[String],
) -> Vec<(Sub, Vec<String>)> {
    let Some(ty) = field.merged_ty() else {
        return Vec::new();
    };
    let Some(union) = model
        .ty(ty.name())
        .filter(|t| t.kind == Kind::Union && !t.hidden)
    else {
        return Vec::new();
    };
    let seen = |name: &&str| model.ty(name).is_some_and(|t| !t.hidden);
    let known = |sub: Sub| {
        let all = model.possible_in(&union.name, sub).into_iter().filter(seen);
        let mut all: Vec<String> = all.map(str::to_owned).collect();
        all.sort_unstable();
        (sub, all)
    };
    let all: Vec<(Sub, Vec<String>)> = subs(servers).map(known).collect();
    let is_plain = all.iter().all(|(_, known)| known == certain);
    if is_plain || all.iter().any(|(_, known)| known.is_empty()) {
        Vec::new()
    } else {
        all
    }
}

/// Marks the objects inside a value whose type is not certain.
pub(super) fn doubt(value: &mut Value, is_certain: &dyn Fn(&str) -> bool) {
    match value {
        Value::Object(object) => object.uncertain = !is_certain(&object.ty),
        Value::List(items) => items.iter_mut().for_each(|v| doubt(v, is_certain)),
        _ => {}
    }
}

/// Marks the objects inside a value as coming with provided fields.
pub(super) fn provide(value: &mut Value, set: &Arc<FieldSet>) {
    match value {
        Value::Object(object) => object.provided = Some(set.clone()),
        Value::List(items) => items.iter_mut().for_each(|v| provide(v, set)),
        _ => {}
    }
}

/// Whether every member is there and not null.
pub(super) fn is_complete(json: &Map<String, Json>, set: &FieldSet) -> bool {
    set.items.iter().all(|item| match item {
        Item::Field { name, sub, .. } => match json.get(name) {
            None | Some(Json::Null) => false,
            Some(Json::Object(inner)) => is_complete(inner, sub),
            Some(_) => true,
        },
        Item::On { .. } => true,
    })
}

/// Non-null fields whose error nulls an object that a field set goes through.
pub(super) fn on_the_way(model: &Model) -> HashSet<(String, String)> {
    let mut out = HashSet::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut todo: Vec<&str> = Vec::new();
    let mentioned: BTreeSet<(String, String, Sub)> = clean::mentioned(model).into_iter().collect();
    for (ty, field, _) in mentioned {
        let value = model
            .field(&ty, &field)
            .and_then(|f| f.sources.values().next());
        if let Some(source) = value {
            todo.extend(model.possible(source.ty.name()));
        }
    }
    while let Some(name) = todo.pop() {
        if !seen.insert(name) {
            continue;
        }
        for field in model.ty(name).into_iter().flat_map(|t| &t.fields) {
            if field.data_ty().is_some_and(|t| t.is_non_null()) {
                out.insert((name.to_owned(), field.name.clone()));
                if let Some(source) = field.sources.values().next() {
                    todo.extend(model.possible(source.ty.name()));
                }
            }
        }
    }
    out
}

/// Whether a subgraph knows but some entities of a type. It can where nothing else would notice: it is entered by its
/// one key only, and all that it knows is its own, may be null and serves nobody else.
pub(super) fn partial(model: &Model) -> HashSet<(String, Sub)> {
    let mentioned: HashSet<(String, String)> = clean::mentioned(model)
        .into_iter()
        .map(|(ty, field, _)| (ty, field))
        .collect();
    let mut out = HashSet::new();
    for ty in model
        .types
        .iter()
        .filter(|t| t.kind == Kind::Object && t.is_entity())
    {
        for sub in ty.places.keys() {
            if is_partial(model, ty, *sub, &mentioned) {
                out.insert((ty.name.clone(), *sub));
            }
        }
    }
    out
}

pub(super) fn is_partial(
    model: &Model,
    ty: &TypeModel,
    sub: Sub,
    mentioned: &HashSet<(String, String)>,
) -> bool {
    let Some(place) = ty.places.get(&sub) else {
        return false;
    };
    let led_to = model.types.iter().any(|t| {
        t.fields.iter().any(|f| {
            f.sources
                .get(&sub)
                .is_some_and(|s| model.possible_in(s.ty.name(), sub).contains(&&*ty.name))
        })
    });
    if led_to || place.keys.len() != 1 || !place.implements.is_empty() || ty.is_single() {
        return false;
    }
    ty.fields.iter().all(|f| match f.sources.get(&sub) {
        None => true,
        // Below a nested member there may be values of the subgraph's own.
        Some(source) if clean::is_key_member(ty, sub, &f.name) => {
            !model.kind(source.ty.name()).is_composite()
        }
        Some(source) => {
            source.active()
                && f.sources.len() == 1
                && !source.ty.is_non_null()
                && !mentioned.contains(&(ty.name.clone(), f.name.clone()))
        }
    })
}

/// Leaf key members that alone do not identify: several instances share their value. At least one member of every
/// key stays exact.
pub(super) fn coarse_members(model: &Model, name: &str) -> Vec<String> {
    let Some(ty) = model.ty(name) else {
        return Vec::new();
    };
    let keys: Vec<Vec<&str>> = ty
        .places
        .values()
        .flat_map(|p| p.keys.iter().map(|k| k.fields.names().collect()))
        .collect();
    let mut names: Vec<&str> = keys.iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut coarse: Vec<String> = Vec::new();
    for member in names {
        // Nested in another key it may be the only member.
        let nested = model.types.iter().any(|t| {
            t.places.values().flat_map(|p| &p.keys).any(|k| {
                k.fields.items.iter().any(|item| match item {
                    Item::Field { sub, .. } => sub.names().any(|n| n == member),
                    Item::On { .. } => false,
                })
            })
        });
        let leaf = ty
            .field(member)
            .and_then(|f| f.sources.values().next())
            .is_some_and(|s| !model.kind(s.ty.name()).is_composite());
        let safe = keys.iter().filter(|k| k.contains(&member)).all(|key| {
            key.iter()
                .any(|other| *other != member && coarse.iter().all(|c| c != other))
        });
        if leaf && safe && !nested {
            coarse.push(member.to_owned());
        }
    }
    coarse
}
