//! Small edits of models that generator, repair and shrinker share.

use super::super::{
    FieldModel, FieldSet, FieldSource, Item, KeyModel, Kind, Model, Sub, clean::SPARE_KEYS,
};

/// Adds a role unless the subgraph has one already.
pub fn add_source(model: &mut Model, ty: &str, field: &str, sub: Sub, source: FieldSource) {
    let Some(row) = model.ty_mut(ty) else { return };
    if row.field(field).is_none() {
        row.fields.push(FieldModel::new(field));
    }
    if let Some(field) = row.field_mut(field) {
        field.sources.entry(sub).or_insert(source);
    }
}

/// Adds a key with its members, taking their types from where they are known.
pub fn add_key(model: &mut Model, name: &str, sub: Sub, fields: FieldSet, resolvable: bool) {
    if SPARE_KEYS.iter().any(|k| fields.get(k).is_some()) {
        for spare in SPARE_KEYS {
            put_key(model, name, sub, FieldSet::leaves(&[spare]), true);
        }
        return;
    }
    put_key(model, name, sub, fields, resolvable);
}

fn put_key(model: &mut Model, name: &str, sub: Sub, fields: FieldSet, resolvable: bool) {
    add_members(model, name, sub, &fields);
    if let Some(place) = model.ty_mut(name).and_then(|t| t.places.get_mut(&sub)) {
        match place.keys.iter_mut().find(|k| k.fields == fields) {
            Some(key) => key.resolvable |= resolvable,
            None => place.keys.push(KeyModel { fields, resolvable }),
        }
    }
}

fn add_members(model: &mut Model, name: &str, sub: Sub, fields: &FieldSet) {
    if let Some(ty) = model.ty_mut(name) {
        ty.places.entry(sub).or_default();
    }
    for item in &fields.items {
        let Item::Field {
            name: field,
            sub: inner,
            ..
        } = item
        else {
            continue;
        };
        let Some(ty) = model.field(name, field).and_then(FieldModel::merged_ty) else {
            continue;
        };
        add_source(model, name, field, sub, FieldSource::plain(ty.clone()));
        // A member that was external becomes the subgraph's own: keys are always its own.
        if let Some(source) = model
            .ty_mut(name)
            .and_then(|t| t.field_mut(field))
            .and_then(|f| f.sources.get_mut(&sub))
        {
            source.external = false;
        }
        if !inner.is_empty() {
            add_members(model, ty.name(), sub, inner);
        }
    }
}

/// Removes a field from its type, and from interfaces that ask for it.
pub fn drop_field(model: &mut Model, ty: &str, field: &str) {
    let interfaces: Vec<String> = model
        .ty(ty)
        .map(|t| t.interfaces().into_iter().map(str::to_owned).collect())
        .unwrap_or_default();
    for name in interfaces.iter().map(String::as_str).chain([ty]) {
        if let Some(row) = model.ty_mut(name) {
            row.fields.retain(|f| f.name != field);
        }
    }
}

/// Makes all subgraphs that define a field agree on its type. Objects promise the most that any subgraph promised, and
/// interfaces the least, so that objects still implement them.
pub fn unify(model: &mut Model) {
    for ty in &mut model.types {
        let is_interface = ty.kind == Kind::Interface;
        for field in &mut ty.fields {
            let types = field.sources.values().map(|s| s.ty.clone());
            let agreed = types.reduce(|a, b| {
                if is_interface {
                    a.widen(&b)
                } else {
                    a.narrow(&b)
                }
            });
            let Some(agreed) = agreed else { continue };
            for source in field.sources.values_mut() {
                source.ty = agreed.clone();
            }
        }
    }
}
