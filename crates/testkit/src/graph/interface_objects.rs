//! Interface objects: what a subgraph with `type I @interfaceObject` says about every implementation of `I`.
//!
//! The interface's own rows are what counts. Each implementation gets a copy of them as a place of its own that is
//! marked as known only [via](super::Place::via) the interface, so that reachability and data need no special rules:
//! the subgraph defines the type, has a key for it and resolves its fields. Only printers and engines know better.

use super::{Kind, Model, Place, Sub};

/// Removes interface objects that nobody could make sense of, and copies the others to the implementations.
pub fn copy(model: &mut Model) {
    for ty in &mut model.types {
        let copies: Vec<Sub> = ty
            .places
            .iter()
            .filter(|(_, p)| p.via.is_some())
            .map(|(s, _)| *s)
            .collect();
        for sub in copies {
            ty.places.remove(&sub);
            for field in &mut ty.fields {
                field.sources.remove(&sub);
            }
        }
    }
    let interfaces: Vec<String> = model
        .types
        .iter()
        .filter(|t| t.kind == Kind::Interface)
        .map(|t| t.name.clone())
        .collect();
    for name in &interfaces {
        let implementers: Vec<String> = model
            .types
            .iter()
            .filter(|t| t.kind == Kind::Object && t.implements(name))
            .map(|t| t.name.clone())
            .collect();
        keys(model, name, &implementers);
        for sub in objects(model, name) {
            if implementers.is_empty() && is_known_elsewhere(model, name, sub) {
                continue;
            }
            if makes_sense(model, name, sub, &implementers) {
                for implementer in &implementers {
                    copy_to(model, name, sub, implementer);
                }
            } else {
                remove(model, name, sub);
            }
        }
    }
    for ty in &mut model.types {
        ty.fields.retain(|f| !f.sources.is_empty());
    }
}

/// Takes from interface objects what was taken from one of their copies.
pub fn settle(model: &mut Model) {
    let reference = model.clone();
    for interface in model.types.iter_mut().filter(|t| t.kind == Kind::Interface) {
        let copies: Vec<_> = reference
            .types
            .iter()
            .flat_map(|t| t.places.iter().map(move |(sub, place)| (t, *sub, place)))
            .filter(|(_, _, place)| place.via.as_ref() == Some(&interface.name))
            .collect();
        for (ty, sub, place) in copies {
            for field in &mut interface.fields {
                let copied = ty.field(&field.name).and_then(|f| f.sources.get(&sub));
                if copied.is_none() {
                    field.sources.remove(&sub);
                }
            }
            if let Some(own) = interface.places.get_mut(&sub) {
                own.keys.retain(|k| place.keys.contains(k));
            }
        }
    }
}

/// Subgraphs in which an interface is an interface object.
pub fn objects(model: &Model, name: &str) -> Vec<Sub> {
    let places = model.ty(name).into_iter().flat_map(|t| &t.places);
    places
        .filter(|(_, p)| p.interface_object)
        .map(|(s, _)| *s)
        .collect()
}

/// The name by which a subgraph knows objects of a concrete type.
pub fn name_in<'m>(model: &'m Model, ty: &'m str, sub: Sub) -> &'m str {
    let place = model.ty(ty).and_then(|t| t.places.get(&sub));
    place.and_then(|p| p.via.as_deref()).unwrap_or(ty)
}

/// Where an interface has keys, everything that implements it anywhere has them too.
fn keys(model: &mut Model, name: &str, implementers: &[String]) {
    let reference = model.clone();
    let Some(ty) = model.ty_mut(name) else { return };
    for (sub, place) in ty.places.iter_mut().filter(|(_, p)| !p.interface_object) {
        place.keys.retain(|key| {
            let members = key.fields.names().all(|n| {
                let field = reference.field(name, n);
                field.is_some_and(|f| f.sources.contains_key(sub))
            });
            members
                && implementers.iter().all(|t| {
                    let place = reference.ty(t).and_then(|t| t.places.get(sub));
                    place.is_some_and(|p| {
                        p.implements.iter().any(|i| i == name) && p.keys.contains(key)
                    })
                })
        });
    }
}

/// It can be left to a subgraph that tells concrete types.
fn makes_sense(model: &Model, name: &str, sub: Sub, implementers: &[String]) -> bool {
    let Some(ty) = model.ty(name) else {
        return false;
    };
    let active = |field: &str| {
        let source = ty.field(field).and_then(|f| f.sources.get(&sub));
        source.is_some_and(|s| s.active())
    };
    let own = ty.places.get(&sub).is_some_and(|p| {
        let whole = |k: &super::KeyModel| k.fields.names().all(active);
        !p.keys.is_empty() && p.keys.iter().all(whole)
    });
    let told = ty.places.iter().any(|(_, p)| {
        let keys = p.keys.iter();
        !p.interface_object && { keys }.any(|k| k.resolvable && k.fields.names().all(active))
    });
    let alone = implementers
        .iter()
        .all(|t| model.ty(t).is_some_and(|t| !t.places.contains_key(&sub)));
    own && told && alone && !implementers.is_empty()
}

/// Nothing implements it, and another subgraph defines it as an interface with the same key.
fn is_known_elsewhere(model: &Model, name: &str, sub: Sub) -> bool {
    let Some(ty) = model.ty(name) else {
        return false;
    };
    let Some(keys) = ty.places.get(&sub).map(|p| &p.keys) else {
        return false;
    };
    let same = |a: &super::KeyModel| { keys }.iter().any(|b| a.fields == b.fields);
    let mut others = ty.places.values().filter(|p| !p.interface_object);
    !keys.is_empty() && others.any(|p| p.keys.iter().any(same))
}

fn copy_to(model: &mut Model, interface: &str, sub: Sub, implementer: &str) {
    let Some(of) = model.ty(interface).cloned() else {
        return;
    };
    let Some(ty) = model.ty_mut(implementer) else {
        return;
    };
    let keys = of.places.get(&sub).map(|p| p.keys.clone());
    ty.places.insert(
        sub,
        Place {
            keys: keys.unwrap_or_default(),
            implements: vec![interface.to_owned()],
            via: Some(interface.to_owned()),
            interface_object: false,
        },
    );
    let defined: Vec<Sub> = ty
        .places
        .iter()
        .filter(|(_, p)| p.via.is_none())
        .map(|(s, _)| *s)
        .collect();
    for field in &of.fields {
        let Some(source) = field.sources.get(&sub) else {
            continue;
        };
        if ty.field(&field.name).is_none() {
            let mut row = super::FieldModel::new(&field.name);
            row.args.clone_from(&field.args);
            ty.fields.push(row);
        }
        if let Some(row) = ty.field_mut(&field.name) {
            // Nobody else could say so.
            if !row.sources.keys().any(|s| defined.contains(s)) {
                row.hidden = field.hidden;
            }
            row.sources.insert(sub, source.clone());
        }
    }
}

fn remove(model: &mut Model, name: &str, sub: Sub) {
    if let Some(ty) = model.ty_mut(name) {
        ty.places.remove(&sub);
        for field in &mut ty.fields {
            field.sources.remove(&sub);
        }
    }
}
