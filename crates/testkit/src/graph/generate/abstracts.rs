//! Interfaces and unions: who implements and joins them where, and fields that return them.

use super::{
    super::{FieldModel, FieldSet, FieldSource, InputModel, KeyModel, Kind, Ty, TypeModel},
    Draw,
    edit::add_source,
};

impl Draw {
    pub(super) fn abstracts(&mut self) {
        let objects: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| t.kind == Kind::Object && !t.is_root())
            .map(|t| t.name.clone())
            .collect();
        let mut made = Vec::new();
        for i in 0..self.rng.between(0, 2) {
            let name = format!("Face{i}");
            self.interface(&name, i, &objects);
            made.push(name);
        }
        for i in 0..self.rng.between(0, 2) {
            let name = format!("Union{i}");
            let mut ty = TypeModel::new(&name, Kind::Union);
            let count = self.rng.between(1, 4);
            let mut members = objects.clone();
            self.rng.shuffle(&mut members);
            members.truncate(count);
            for member in members {
                let mut known = 0;
                for sub in self.places(&member) {
                    if self.rng.chance(75) {
                        known |= 1 << sub;
                        ty.places.entry(sub).or_default();
                    }
                }
                ty.members.push((member, known));
            }
            self.model.types.push(ty);
            made.push(name);
        }
        // Fields that return them.
        for name in made {
            for i in 0..self.rng.between(1, 3) {
                let Some(parent) = self.rng.try_pick(&objects).cloned() else {
                    continue;
                };
                let mut owners = self.common(&parent, &name);
                if owners.is_empty() {
                    continue;
                }
                self.rng.shuffle(&mut owners);
                let count = if self.rng.chance(25) { 2 } else { 1 };
                owners.truncate(count);
                let ty = self.wrap(&name);
                for sub in owners {
                    let field = format!("{}{i}", name.to_lowercase());
                    add_source(
                        &mut self.model,
                        &parent,
                        &field,
                        sub,
                        FieldSource::plain(ty.clone()),
                    );
                }
            }
        }
    }

    /// Makes an interface implement an earlier one, whose fields all its implementers get too.
    fn extend_interface(&mut self, face: &mut TypeModel) {
        let Some(parent) = self.model.ty("Face0").cloned() else {
            return;
        };
        let name = face.name.clone();
        let shared: Vec<usize> = face
            .places
            .keys()
            .copied()
            .filter(|s| parent.places.contains_key(s))
            .collect();
        if shared.len() != face.places.len() || shared.len() != parent.places.len() {
            return;
        }
        let implementers: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| t.kind == Kind::Object && t.implements(&name))
            .map(|t| t.name.clone())
            .collect();
        for sub in shared {
            for field in &parent.fields {
                let Some(source) = field.sources.get(&sub) else {
                    continue;
                };
                for implementer in &implementers {
                    let here = self
                        .model
                        .ty(implementer)
                        .and_then(|t| t.places.get(&sub))
                        .is_some_and(|p| p.implements.contains(&name));
                    if !here {
                        continue;
                    }
                    add_source(
                        &mut self.model,
                        implementer,
                        &field.name,
                        sub,
                        source.clone(),
                    );
                    if let Some(row) = self
                        .model
                        .ty_mut(implementer)
                        .and_then(|t| t.field_mut(&field.name))
                    {
                        row.args.clone_from(&field.args);
                    }
                }
                if face.field(&field.name).is_none() {
                    let mut row = FieldModel::new(&field.name);
                    row.args.clone_from(&field.args);
                    face.fields.push(row);
                }
                if let Some(row) = face.field_mut(&field.name) {
                    row.sources.insert(sub, source.clone());
                }
            }
            for implementer in &implementers {
                if let Some(place) = self
                    .model
                    .ty_mut(implementer)
                    .and_then(|t| t.places.get_mut(&sub))
                    && place.implements.contains(&name)
                    && !place.implements.contains(&parent.name)
                {
                    place.implements.push(parent.name.clone());
                }
            }
            if let Some(place) = face.places.get_mut(&sub) {
                place.implements.push(parent.name.clone());
            }
        }
    }

    /// An interface whose fields its implementers get wherever they are known to implement it.
    fn interface(&mut self, name: &str, number: usize, objects: &[String]) {
        let mut face = TypeModel::new(name, Kind::Interface);
        let mut implementers: Vec<String> = objects.to_vec();
        self.rng.shuffle(&mut implementers);
        let count = self.rng.between(1, 4);
        implementers.truncate(count);
        let fields = self.interface_fields(number, objects, &implementers);
        for implementer in &implementers {
            self.implement_interface(&mut face, implementer, &fields);
        }
        self.partial_fields(&mut face, &implementers, &fields);
        self.shared_keys(&mut face);
        // Whoever implements it and an earlier interface everywhere lets the one implement the other.
        if number > 0 && self.rng.chance(60) {
            self.extend_interface(&mut face);
        }
        self.model.types.push(face);
    }

    fn interface_fields(
        &mut self,
        number: usize,
        objects: &[String],
        implementers: &[String],
    ) -> Vec<InterfaceField> {
        let mut fields = Vec::new();
        for j in 0..self.rng.between(1, 3) {
            let value = if self.rng.chance(30) {
                self.rng.try_pick(objects).cloned().unwrap_or_default()
            } else {
                self.leaf()
            };
            let ty = self.wrap(&value);
            let mut args = self.args(15);
            // An interface and its implementers agree on them.
            args.retain(InputModel::is_visible);
            args.iter_mut().for_each(|a| a.loose = 0);
            let name = format!("n{number}{j}");
            fields.push(InterfaceField { name, ty, args });
        }
        // Entities implement it with their key sometimes.
        if implementers.iter().all(|t| t.starts_with("Entity")) && self.rng.chance(75) {
            fields.push(InterfaceField {
                name: "id".to_owned(),
                ty: Ty::named("ID").non_null(),
                args: Vec::new(),
            });
        }
        fields
    }

    /// Lets a type implement the interface in some of its places, with the fields it needs for that.
    fn implement_interface(
        &mut self,
        face: &mut TypeModel,
        implementer: &str,
        fields: &[InterfaceField],
    ) {
        // An implementation may promise more than its interface.
        let strict = self.rng.chance(15);
        for sub in self.places(implementer) {
            if !self.rng.chance(80) {
                continue;
            }
            for InterfaceField { name, ty, args } in fields {
                let common = self.common(implementer, ty.name());
                if common.iter().all(|s| *s != sub) {
                    continue;
                }
                let known = self.model.field(implementer, name).is_some();
                if !known && name == "id" && !self.rng.chance(80) {
                    continue;
                }
                let ty = if strict {
                    ty.clone().non_null()
                } else {
                    ty.clone()
                };
                let source = FieldSource::plain(ty);
                add_source(&mut self.model, implementer, name, sub, source);
                let row = self.model.ty_mut(implementer);
                if let Some(row) = row.and_then(|t| t.field_mut(name)) {
                    row.args.clone_from(args);
                }
            }
            let row = self.model.ty_mut(implementer);
            if let Some(place) = row.and_then(|t| t.places.get_mut(&sub)) {
                place.implements.push(face.name.clone());
            }
            face.places.entry(sub).or_default();
        }
    }

    /// In each subgraph the interface has a part of its fields that all its implementers have there.
    fn partial_fields(
        &mut self,
        face: &mut TypeModel,
        implementers: &[String],
        fields: &[InterfaceField],
    ) {
        for InterfaceField { name, ty, args } in fields {
            let mut row = FieldModel::new(name);
            row.args.clone_from(args);
            for sub in face.places.keys() {
                let everyone = implementers.iter().all(|t| {
                    !self
                        .model
                        .ty(t)
                        .and_then(|t| t.places.get(sub))
                        .is_some_and(|p| p.implements.contains(&face.name))
                        || self
                            .model
                            .field(t, name)
                            .is_some_and(|f| f.sources.contains_key(sub))
                });
                let last = row.sources.is_empty();
                if everyone && (last || self.rng.chance(75)) {
                    row.sources.insert(*sub, FieldSource::plain(ty.clone()));
                }
            }
            if !row.sources.is_empty() {
                face.fields.push(row);
            }
        }
    }

    /// What identifies all its implementers identifies the interface.
    fn shared_keys(&mut self, face: &mut TypeModel) {
        let key = KeyModel {
            fields: FieldSet::leaves(&["id"]),
            resolvable: true,
        };
        for sub in face.places.keys().copied().collect::<Vec<_>>() {
            let told = face
                .field("id")
                .is_some_and(|f| f.sources.contains_key(&sub));
            let shared = self.model.types.iter().all(|t| {
                t.kind != Kind::Object
                    || t.places
                        .get(&sub)
                        .is_none_or(|p| !p.implements.contains(&face.name) || p.keys.contains(&key))
            });
            if told
                && shared
                && self.rng.chance(70)
                && let Some(place) = face.places.get_mut(&sub)
            {
                place.keys.push(key.clone());
            }
        }
    }
}

/// A field of an interface that its implementers get.
struct InterfaceField {
    name: String,
    ty: Ty,
    args: Vec<InputModel>,
}
