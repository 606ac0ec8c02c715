//! An interface with a key, and subgraphs that know it as `@interfaceObject`.

use super::{
    super::{
        FieldModel, FieldSet, FieldSource, KeyModel, Kind, Place, Sub, Ty, TypeModel,
        interface_objects,
    },
    Draw,
    edit::{add_key, add_source},
};

/// The interface's name.
const NAME: &str = "Media";
/// The name of one that nothing implements.
pub(super) const LONE: &str = "Record";

impl Draw {
    pub(super) fn interface_objects(&mut self) {
        if !self.rng.chance(self.options.interface_objects) {
            return;
        }
        let entities = |draw: &Draw, sub: Sub| -> Vec<String> {
            let types = draw.model.types.iter();
            let here = types
                .filter(|t| t.kind == Kind::Object && t.is_entity() && t.places.contains_key(&sub));
            here.map(|t| t.name.clone()).collect()
        };
        let homes: Vec<Sub> = (0..self.n_subs())
            .filter(|s| !entities(self, *s).is_empty())
            .collect();
        let several: Vec<Sub> = homes
            .iter()
            .copied()
            .filter(|s| entities(self, *s).len() > 1)
            .collect();
        let homes = if several.is_empty() { homes } else { several };
        let Some(home) = self.rng.try_pick(&homes).copied() else {
            return;
        };
        let mut implementers = entities(self, home);
        self.rng.shuffle(&mut implementers);
        let count = self.rng.between(1, 3).max(self.rng.between(1, 3));
        implementers.truncate(count);
        let mut keys = vec![FieldSet::leaves(&["id"])];
        if self.rng.chance(35) {
            keys.push(FieldSet::leaves(&["mk"]));
        }
        self.interface_entity(home, &implementers, &keys);
        for sub in 0..self.n_subs() {
            if sub != home && self.rng.chance(40) {
                self.interface_elsewhere(sub, &implementers);
            }
        }
        for i in 0..self.rng.between(1, 2) {
            let ty = self.wrap(NAME);
            self.root("Query", &format!("media{i}"), ty);
        }
        let n = self.rng.between(1, 2);
        for _ in 0..n {
            self.interface_object(&keys, &implementers);
        }
        if self.rng.chance(40) {
            self.required_from_object(home, &implementers);
        }
        interface_objects::copy(&mut self.model);
    }

    /// An interface that nothing implements: one subgraph defines it, others have objects of it.
    pub(super) fn lone_interface(&mut self) {
        if self.n_subs() < 2 || !self.rng.chance(self.options.lone_interfaces) {
            return;
        }
        let count = self.rng.between(2, 4);
        let mut places = self.some_subs(count);
        self.rng.shuffle(&mut places);
        let Some((home, objects)) = places.split_first() else {
            return;
        };
        let key = |resolvable: bool| KeyModel {
            fields: FieldSet::leaves(&["id"]),
            resolvable,
        };
        let mut ty = TypeModel::new(LONE, Kind::Interface);
        ty.places.insert(
            *home,
            Place {
                keys: vec![key(true)],
                ..Place::default()
            },
        );
        for sub in objects {
            let resolvable = self.rng.chance(70);
            ty.places.insert(
                *sub,
                Place {
                    keys: vec![key(resolvable)],
                    interface_object: true,
                    ..Place::default()
                },
            );
        }
        self.model.types.push(ty);
        let id = Ty::named("ID").non_null();
        for sub in &places {
            add_source(
                &mut self.model,
                LONE,
                "id",
                *sub,
                FieldSource::plain(id.clone()),
            );
        }
        for (i, sub) in objects.iter().copied().enumerate() {
            for j in 0..self.rng.between(1, 3) {
                let values = self.model.types.iter();
                let values = values.filter(|t| {
                    t.kind == Kind::Object && !t.is_root() && t.places.contains_key(&sub)
                });
                let values: Vec<String> = values.map(|t| t.name.clone()).collect();
                let value = match self
                    .rng
                    .try_pick(&values)
                    .cloned()
                    .filter(|_| self.rng.chance(30))
                {
                    Some(value) => value,
                    None => self.leaf(),
                };
                let ty = self.wrap(&value);
                let field = format!("lone{i}x{j}");
                add_source(&mut self.model, LONE, &field, sub, FieldSource::plain(ty));
            }
            let ty = self.wrap(LONE);
            self.model.ty_mut("Query").into_iter().for_each(|query| {
                query.places.entry(sub).or_default();
            });
            add_source(
                &mut self.model,
                "Query",
                &format!("alone{i}"),
                sub,
                FieldSource::plain(ty),
            );
        }
    }

    /// The interface where its implementations live: with keys, and with fields that all of them have.
    fn interface_entity(&mut self, home: Sub, implementers: &[String], keys: &[FieldSet]) {
        let mut fields: Vec<(String, Ty)> = Vec::new();
        for i in 0..self.rng.between(1, 2) {
            let leaf = self.leaf();
            fields.push((format!("t{i}"), self.wrap(&leaf)));
        }
        if self.rng.chance(40) {
            let objects: Vec<String> = implementers
                .iter()
                .flat_map(|t| self.common(t, t).into_iter().map(move |s| (t, s)))
                .filter(|(_, s)| *s == home)
                .map(|(t, _)| t.clone())
                .collect();
            if let Some(value) = self.rng.try_pick(&objects).cloned() {
                fields.push(("tc".to_owned(), self.wrap(&value)));
            }
        }
        for key in keys {
            for name in key.names() {
                fields.push((name.to_owned(), Ty::named("ID").non_null()));
            }
        }
        let mut face = TypeModel::new(NAME, Kind::Interface);
        let place = Place {
            keys: keys
                .iter()
                .map(|fields| KeyModel {
                    fields: fields.clone(),
                    resolvable: true,
                })
                .collect(),
            ..Place::default()
        };
        face.places.insert(home, place);
        for (name, ty) in &fields {
            let mut row = FieldModel::new(name);
            row.sources.insert(home, FieldSource::plain(ty.clone()));
            face.fields.push(row);
        }
        self.model.types.push(face);
        for implementer in implementers {
            for (name, ty) in &fields {
                add_source(
                    &mut self.model,
                    implementer,
                    name,
                    home,
                    FieldSource::plain(ty.clone()),
                );
            }
            for key in keys {
                add_key(&mut self.model, implementer, home, key.clone(), true);
            }
            self.implement(implementer, home);
        }
    }

    fn implement(&mut self, implementer: &str, sub: Sub) {
        if let Some(place) = self
            .model
            .ty_mut(implementer)
            .and_then(|t| t.places.get_mut(&sub))
        {
            place.implements.push(NAME.to_owned());
        }
    }

    /// Another subgraph has the interface too, without a key, for those implementations that it knows.
    fn interface_elsewhere(&mut self, sub: Sub, implementers: &[String]) {
        let mut any = false;
        for implementer in implementers {
            if self.places(implementer).contains(&sub) {
                let key = FieldSet::leaves(&["id"]);
                add_key(&mut self.model, implementer, sub, key, true);
                self.implement(implementer, sub);
                any = true;
            }
        }
        if !any {
            return;
        }
        if let Some(face) = self.model.ty_mut(NAME) {
            face.places.insert(sub, Place::default());
        }
        let id = FieldSource::plain(Ty::named("ID").non_null());
        add_source(&mut self.model, NAME, "id", sub, id);
    }

    /// A new subgraph that knows the interface as an object.
    fn interface_object(&mut self, keys: &[FieldSet], implementers: &[String]) {
        let sub = self.n_subs();
        self.model.subgraphs.push(format!("objects{sub}"));
        for ty in self.model.types.iter_mut().filter(|t| t.kind == Kind::Enum) {
            for (_, known) in &mut ty.members {
                *known |= 1 << sub;
            }
        }
        let mut own: Vec<FieldSet> = keys.to_vec();
        self.rng.shuffle(&mut own);
        let count = self.rng.between(1, own.len());
        own.truncate(count);
        for name in own.iter().flat_map(FieldSet::names) {
            let source = FieldSource::plain(Ty::named("ID").non_null());
            add_source(&mut self.model, NAME, name, sub, source);
        }
        let mut place = Place {
            interface_object: true,
            ..Place::default()
        };
        for fields in own {
            let resolvable = !self.rng.chance(12);
            place.keys.push(KeyModel { fields, resolvable });
        }
        if let Some(face) = self.model.ty_mut(NAME) {
            face.places.insert(sub, place);
        }
        let note = format!("Note{sub}");
        let mut has_note = false;
        for i in 0..self.rng.between(1, 4) {
            let value = match self.rng.below(20) {
                0..=9 => self.leaf(),
                10 | 11 => NAME.to_owned(),
                12..=15 => {
                    has_note = true;
                    note.clone()
                }
                _ => self.neighbour(sub, implementers),
            };
            let name = format!("r{sub}{i}");
            let mut source = FieldSource::plain(self.wrap(&value));
            if self.rng.chance(30)
                && let Some(required) = self.requirable(sub)
            {
                source.requires = Some(FieldSet::leaves(&[required.as_str()]));
            }
            let args = if source.requires.is_none() {
                self.args(15)
            } else {
                Vec::new()
            };
            add_source(&mut self.model, NAME, &name, sub, source);
            if let Some(row) = self.model.ty_mut(NAME).and_then(|t| t.field_mut(&name)) {
                row.args = args;
            }
        }
        if has_note {
            let mut ty = TypeModel::new(&note, Kind::Object);
            ty.places.insert(sub, Place::default());
            self.model.types.push(ty);
            let about = self.wrap(NAME);
            for (name, ty) in [("text", Ty::named("String")), ("about", about)] {
                add_source(&mut self.model, &note, name, sub, FieldSource::plain(ty));
            }
        }
        for i in 0..self.rng.between(1, 2) {
            let ty = self.wrap(NAME);
            let name = format!("io{sub}{i}");
            if let Some(row) = self.model.ty_mut("Query") {
                row.places.entry(sub).or_default();
            }
            add_source(&mut self.model, "Query", &name, sub, FieldSource::plain(ty));
        }
    }

    /// An entity that does not implement the interface, known by its id; the interface itself if there is none.
    fn neighbour(&mut self, sub: Sub, implementers: &[String]) -> String {
        let others: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| {
                t.kind == Kind::Object
                    && t.name.starts_with("Entity")
                    && t.field("id").is_some()
                    && !implementers.contains(&t.name)
            })
            .map(|t| t.name.clone())
            .collect();
        let Some(other) = self.rng.try_pick(&others).cloned() else {
            return NAME.to_owned();
        };
        let key = FieldSet::leaves(&["id"]);
        add_key(&mut self.model, &other, sub, key, true);
        other
    }

    /// A leaf of the interface that others resolve, made external in an interface object.
    fn requirable(&mut self, sub: Sub) -> Option<String> {
        let face = self.model.ty(NAME)?;
        let leaves: Vec<(String, Ty)> = face
            .fields
            .iter()
            .filter(|f| !f.sources.contains_key(&sub) || f.sources[&sub].external)
            .filter(|f| f.args.is_empty() && f.requires().is_none())
            .filter_map(|f| Some((f.name.clone(), f.merged_ty()?)))
            .filter(|(_, ty)| !self.model.kind(ty.name()).is_composite())
            .collect();
        let (name, ty) = self.rng.try_pick(&leaves).cloned()?;
        let mut source = FieldSource::plain(ty);
        source.external = true;
        add_source(&mut self.model, NAME, &name, sub, source);
        Some(name)
    }

    /// A field of a concrete type that requires what an interface object brings.
    fn required_from_object(&mut self, home: Sub, implementers: &[String]) {
        let Some(face) = self.model.ty(NAME) else {
            return;
        };
        let leaves: Vec<(String, Ty)> = face
            .fields
            .iter()
            .filter(|f| f.name.starts_with('r') && f.args.is_empty())
            .filter_map(|f| Some((f.name.clone(), f.merged_ty()?)))
            .filter(|(_, ty)| !self.model.kind(ty.name()).is_composite())
            .collect();
        let (Some((name, ty)), Some(implementer)) = (
            self.rng.try_pick(&leaves).cloned(),
            self.rng.try_pick(implementers).cloned(),
        ) else {
            return;
        };
        let mut source = FieldSource::plain(ty);
        source.external = true;
        add_source(&mut self.model, &implementer, &name, home, source);
        let leaf = self.leaf();
        let mut source = FieldSource::plain(self.wrap(&leaf));
        source.requires = Some(FieldSet::leaves(&[name.as_str()]));
        add_source(&mut self.model, &implementer, "tr", home, source);
    }
}
