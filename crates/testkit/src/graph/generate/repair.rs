//! Makes a drawn graph satisfiable: adds a key or a provider where a field cannot be reached, or drops the field.

use super::{
    super::{FieldSet, FieldSource, Model, Sub, Subs, clean, reach, subs},
    edit::{add_key, add_source, drop_field},
};
use crate::rng::Rng;

/// Most rounds of repair before another draw is made.
const REPAIRS_MAX: usize = 60;

/// Cleans and repairs until every field can be reached, or gives up.
pub(super) fn repair(mut model: Model, rng: &mut Rng) -> Option<Model> {
    for _ in 0..REPAIRS_MAX {
        clean::clean(&mut model);
        model.ty("Query")?;
        let missing = reach::unreachable(&model);
        if missing.is_empty() {
            return Some(model);
        }
        let mut keys_added = 0;
        for hole in &missing {
            let Some(row) = model.field(&hole.ty, &hole.field) else {
                continue;
            };
            let owners: Vec<Sub> = subs(row.active()).collect();
            let Some(owner) = rng.try_pick(&owners).copied() else {
                continue;
            };
            // What an interface object brings is the interface's.
            let place = model.ty(&hole.ty).and_then(|t| t.places.get(&owner));
            if let Some(interface) = place.and_then(|p| p.via.clone()) {
                drop_field(&mut model, &interface, &hole.field);
                break;
            }
            let plain = row.requires().is_none() && row.args.is_empty();
            let value = row.merged_ty().map(|t| t.name().to_owned());
            let known = known_keys(&model, &hole.ty, hole.have);
            if let Some(key) = rng.try_pick(&known).cloned()
                && hole.have & (1 << owner) == 0
            {
                add_key(&mut model, &hole.ty, owner, key, true);
                keys_added += 1;
                if keys_added > 3 {
                    break;
                }
                continue;
            }
            let leaf = value
                .as_deref()
                .is_some_and(|v| !model.kind(v).is_composite());
            if plain && leaf && rng.chance(60) {
                // Let whoever holds the object resolve it too.
                let ty = row.merged_ty()?;
                let field = hole.field.clone();
                for sub in subs(hole.have) {
                    add_source(
                        &mut model,
                        &hole.ty,
                        &field,
                        sub,
                        FieldSource::plain(ty.clone()),
                    );
                    if let Some(source) = model
                        .ty_mut(&hole.ty)
                        .and_then(|t| t.field_mut(&field))
                        .and_then(|f| f.sources.get_mut(&sub))
                        && source.external
                    {
                        drop_field(&mut model, &hole.ty, &field);
                        break;
                    }
                }
                continue;
            }
            drop_field(&mut model, &hole.ty, &hole.field);
            break;
        }
    }
    None
}

/// Keys of a type that are known where `have` hold the object.
fn known_keys(model: &Model, ty: &str, have: Subs) -> Vec<FieldSet> {
    let mut out: Vec<FieldSet> = Vec::new();
    let Some(row) = model.ty(ty) else { return out };
    for place in row.places.values() {
        for key in &place.keys {
            if !out.contains(&key.fields) && reach::knows(model, ty, have, &key.fields, 12) {
                out.push(key.fields.clone());
            }
        }
    }
    out
}
