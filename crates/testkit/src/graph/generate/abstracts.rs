//! Interfaces and unions: who implements and joins them where, and fields that return them.

use super::{
    super::{FieldModel, FieldSource, InputModel, Kind, Ty, TypeModel},
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
                let Some(parent) = self.rng.pick(&objects).cloned() else {
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

    /// An interface whose fields its implementers get wherever they are known to implement it.
    fn interface(&mut self, name: &str, number: usize, objects: &[String]) {
        let mut face = TypeModel::new(name, Kind::Interface);
        let mut implementers: Vec<String> = objects.to_vec();
        self.rng.shuffle(&mut implementers);
        let count = self.rng.between(1, 4);
        implementers.truncate(count);
        let mut fields: Vec<(String, Ty, Vec<InputModel>)> = Vec::new();
        for j in 0..self.rng.between(1, 3) {
            let value = if self.rng.chance(30) {
                self.rng.pick(objects).cloned().unwrap_or_default()
            } else {
                self.leaf()
            };
            let ty = self.wrap(&value);
            let args = self.args(15);
            fields.push((format!("n{number}{j}"), ty, args));
        }
        // Entities implement it with their key sometimes.
        if implementers.iter().all(|t| t.starts_with("Entity")) && self.rng.chance(60) {
            fields.push(("id".to_owned(), Ty::named("ID").non_null(), Vec::new()));
        }
        for implementer in &implementers {
            // An implementation may promise more than its interface.
            let strict = self.rng.chance(15);
            for sub in self.places(implementer) {
                if !self.rng.chance(80) {
                    continue;
                }
                for (field, ty, args) in &fields {
                    if self
                        .common(implementer, ty.name())
                        .iter()
                        .all(|s| *s != sub)
                    {
                        continue;
                    }
                    let known = self.model.field(implementer, field).is_some();
                    if known || field != "id" || self.rng.chance(80) {
                        add_source(
                            &mut self.model,
                            implementer,
                            field,
                            sub,
                            FieldSource::plain(if strict {
                                ty.clone().non_null()
                            } else {
                                ty.clone()
                            }),
                        );
                        if let Some(row) = self
                            .model
                            .ty_mut(implementer)
                            .and_then(|t| t.field_mut(field))
                        {
                            row.args.clone_from(args);
                        }
                    }
                }
                if let Some(place) = self
                    .model
                    .ty_mut(implementer)
                    .and_then(|t| t.places.get_mut(&sub))
                {
                    place.implements.push(name.to_owned());
                }
                face.places.entry(sub).or_default();
            }
        }
        // In each subgraph the interface has a part of its fields that all its implementers have there.
        for (field, ty, args) in &fields {
            let mut row = FieldModel::new(field);
            row.args.clone_from(args);
            for sub in face.places.keys() {
                let everyone = implementers.iter().all(|t| {
                    !self
                        .model
                        .ty(t)
                        .and_then(|t| t.places.get(sub))
                        .is_some_and(|p| p.implements.iter().any(|i| i == name))
                        || self
                            .model
                            .field(t, field)
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
        self.model.types.push(face);
    }
}
