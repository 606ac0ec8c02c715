//! Generates satisfiable federated graphs from a seed.
//!
//! Types first (enums, scalars, input objects, value types, entities with their keys), then fields and who resolves
//! them, then the roles that make federation interesting (`@requires`, `@provides`, `@override`, abstract types),
//! then root fields. Roles are drawn freely; what turns out not to be reachable is repaired by adding a key or a
//! provider, or dropped. Every graph that comes out passes [`super::reach::unreachable`].

use std::collections::BTreeMap;

use super::{
    FieldModel, FieldSet, FieldSource, InputModel, Item, KeyModel, Kind, Model, Place, Sub, Ty,
    TypeModel, clean, reach, subs,
};
use crate::rng::Rng;

/// How large and how twisted.
#[derive(Clone, Copy, Debug)]
pub struct GraphOptions {
    /// Most subgraphs, at most 60.
    pub subgraphs_max: usize,
    /// Most entity types.
    pub entities_max: usize,
    /// Most other object types.
    pub values_max: usize,
    /// Fields per object type, besides keys.
    pub fields_max: usize,
    /// All subgraphs agree on the nullability of every field. Otherwise some promise more than the merged schema, and
    /// an error then nulls more in that subgraph than it would in a monolith.
    pub uniform: bool,
}

impl Default for GraphOptions {
    fn default() -> Self {
        GraphOptions {
            subgraphs_max: 8,
            entities_max: 5,
            values_max: 3,
            fields_max: 6,
            uniform: false,
        }
    }
}

/// Most rounds of repair before another draw is made.
const REPAIRS_MAX: usize = 60;

/// A satisfiable graph with at least one query field.
pub fn generate(seed: u64, options: &GraphOptions) -> Model {
    let mut rng = Rng::new(seed);
    loop {
        let mut draw = Draw {
            rng: rng.fork(1),
            model: Model::default(),
            options: *options,
        };
        draw.all();
        if let Some(model) = repair(draw.model, &mut rng) {
            return model;
        }
    }
}

/// Names of subgraphs; further ones are numbered.
const NAMES: [&str; 12] = [
    "accounts",
    "billing",
    "catalog",
    "delivery",
    "events",
    "feeds",
    "geo",
    "history",
    "inventory",
    "jobs",
    "kiosk",
    "ledger",
];

struct Draw {
    rng: Rng,
    model: Model,
    options: GraphOptions,
}

impl Draw {
    fn all(&mut self) {
        let n = match self.rng.below(10) {
            0 => 1,
            1..=3 => self.rng.between(2, 3),
            _ => self.rng.between(2, self.options.subgraphs_max.max(2)),
        };
        let n = n.min(self.options.subgraphs_max);
        for i in 0..n {
            let name = NAMES
                .get(i)
                .map_or_else(|| format!("sub{i}"), |n| (*n).to_owned());
            self.model.subgraphs.push(name);
        }
        self.model.types.push(TypeModel::new("Query", Kind::Object));
        if self.rng.chance(30) {
            self.model
                .types
                .push(TypeModel::new("Mutation", Kind::Object));
        }
        self.leaves();
        self.values();
        self.entities();
        for i in 0..self.model.types.len() {
            if self.model.types[i].kind == Kind::Object && !self.model.types[i].is_root() {
                self.object_fields(i);
            }
        }
        self.abstracts();
        self.provides();
        self.requires();
        self.overrides();
        self.roots();
    }

    fn n_subs(&self) -> usize {
        self.model.subgraphs.len()
    }

    /// `count` different subgraphs (or all there are).
    fn some_subs(&mut self, count: usize) -> Vec<Sub> {
        let mut all: Vec<Sub> = (0..self.n_subs()).collect();
        self.rng.shuffle(&mut all);
        all.truncate(count.max(1));
        all.sort_unstable();
        all
    }

    fn leaves(&mut self) {
        let all = (1u64 << self.n_subs()) - 1;
        for i in 0..self.rng.between(0, 2) {
            let mut ty = TypeModel::new(&format!("Enum{i}"), Kind::Enum);
            // The first enum is also used for input, so all subgraphs agree on its values.
            for value in ["RED", "GREEN", "BLUE", "GREY"] {
                let known = if i == 0 || self.rng.chance(70) {
                    all
                } else {
                    self.some_subs(self.n_subs().div_ceil(2))
                        .iter()
                        .fold(0, |set, s| set | 1 << s)
                };
                ty.members.push((value.to_owned(), known));
            }
            self.model.types.push(ty);
        }
        if self.rng.chance(40) {
            self.model.types.push(TypeModel::new("Blob", Kind::Scalar));
        }
        for i in 0..self.rng.between(0, 2) {
            let mut ty = TypeModel::new(&format!("Input{i}"), Kind::Input);
            for j in 0..self.rng.between(1, 3) {
                let input = self.input(&format!("i{j}"), i);
                ty.inputs.push(input);
            }
            self.model.types.push(ty);
        }
    }

    /// An argument or input field. Input objects may only hold those with a smaller number, so none is infinite.
    fn input(&mut self, name: &str, inputs_below: usize) -> InputModel {
        let base = match self.rng.below(8) {
            0 | 1 => "Int".to_owned(),
            2 => "String".to_owned(),
            3 => "Boolean".to_owned(),
            4 => "ID".to_owned(),
            5 if self.model.ty("Enum0").is_some() => "Enum0".to_owned(),
            6 if inputs_below > 0 => format!("Input{}", self.rng.below(inputs_below)),
            7 if self.model.ty("Blob").is_some() => "Blob".to_owned(),
            _ => "Float".to_owned(),
        };
        let default = match base.as_str() {
            "Int" => Some("7"),
            "String" => Some("\"d\\u00e9f\""),
            "Boolean" => Some("true"),
            "Float" => Some("1.5"),
            "Enum0" => Some("GREEN"),
            _ => None,
        };
        let ty = Ty::Named(base);
        let (ty, default) = match self.rng.below(8) {
            0 => (ty.non_null(), None),
            1 => (ty.non_null(), default),
            2 => (ty, default),
            3 => (ty.list(), None),
            4 => (ty.non_null().list(), default.map(|_| "[]")),
            _ => (ty, None),
        };
        InputModel {
            name: name.to_owned(),
            ty,
            default: default.map(str::to_owned),
        }
    }

    fn args(&mut self, percent: usize) -> Vec<InputModel> {
        if !self.rng.chance(percent) {
            return Vec::new();
        }
        let inputs = self
            .model
            .types
            .iter()
            .filter(|t| t.kind == Kind::Input)
            .count();
        (0..self.rng.between(1, 3))
            .map(|i| self.input(&format!("a{i}"), inputs))
            .collect()
    }

    fn values(&mut self) {
        for i in 0..self.rng.between(0, self.options.values_max) {
            let mut ty = TypeModel::new(&format!("Value{i}"), Kind::Object);
            let count = self.rng.between(1, self.n_subs());
            for sub in self.some_subs(count) {
                ty.places.insert(sub, Place::default());
            }
            self.model.types.push(ty);
        }
    }

    fn entities(&mut self) {
        let n = self.rng.between(1, self.options.entities_max);
        for i in 0..n {
            let mut ty = TypeModel::new(&format!("Entity{i}"), Kind::Object);
            let count = self.rng.between(1, self.n_subs().min(5));
            for sub in self.some_subs(count) {
                ty.places.insert(sub, Place::default());
            }
            self.model.types.push(ty);
        }
        for i in 0..n {
            self.keys(&format!("Entity{i}"), n);
        }
    }

    /// Keys of one entity: single, several, compound, nested; each subgraph knows some of them.
    fn keys(&mut self, name: &str, entities: usize) {
        let mut keys = vec![FieldSet::leaves(&["id"])];
        if self.rng.chance(40) {
            keys.push(FieldSet::leaves(&["upc"]));
        }
        if self.rng.chance(25) {
            keys.push(FieldSet::leaves(&["ka", "kb"]));
        }
        if self.rng.chance(12) {
            keys.push(FieldSet::leaves(&["id", "kc"]));
        }
        if self.rng.chance(25) {
            let other = format!("Entity{}", self.rng.below(entities));
            let mut items = vec![Item::nested("owner", FieldSet::leaves(&["id"]))];
            if self.rng.chance(40) {
                items.push(Item::field("kd"));
            }
            keys.push(FieldSet { items });
            let places: Vec<Sub> = self.places(name);
            for sub in places {
                // The other entity must be known wherever it is part of a key.
                if let Some(ty) = self.model.ty_mut(&other) {
                    ty.places.entry(sub).or_default();
                }
            }
        } else {
            keys.retain(|k| k.get("owner").is_none());
        }
        let owner = format!("Entity{}", self.rng.below(entities));
        let places = self.places(name);
        for sub in places {
            let count = self.rng.between(1, keys.len());
            let mut own = keys.clone();
            self.rng.shuffle(&mut own);
            own.truncate(count);
            for fields in own {
                let resolvable = !self.rng.chance(10);
                self.ensure_key(name, sub, &fields, &owner);
                let place = KeyModel { fields, resolvable };
                if let Some(ty) = self.model.ty_mut(name)
                    && let Some(p) = ty.places.get_mut(&sub)
                {
                    p.keys.push(place);
                }
            }
        }
    }

    fn places(&self, name: &str) -> Vec<Sub> {
        self.model
            .ty(name)
            .map(|t| t.places.keys().copied().collect())
            .unwrap_or_default()
    }

    /// Defines a key's members in a subgraph.
    fn ensure_key(&mut self, name: &str, sub: Sub, set: &FieldSet, owner: &str) {
        for item in &set.items {
            let Item::Field {
                name: field,
                sub: inner,
                ..
            } = item
            else {
                continue;
            };
            let ty = if inner.is_empty() {
                let base = if field == "kb" { "Int" } else { "ID" };
                Ty::named(base).non_null()
            } else {
                Ty::named(owner).non_null()
            };
            add_source(&mut self.model, name, field, sub, FieldSource::plain(ty));
            if !inner.is_empty() {
                if let Some(row) = self.model.ty_mut(owner) {
                    row.places.entry(sub).or_default();
                }
                self.ensure_key(owner, sub, inner, owner);
            }
        }
    }

    /// A random leaf type name.
    fn leaf(&mut self) -> String {
        let custom: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| matches!(t.kind, Kind::Enum | Kind::Scalar))
            .map(|t| t.name.clone())
            .collect();
        if !custom.is_empty() && self.rng.chance(25) {
            return self.rng.pick(&custom).cloned().unwrap_or_default();
        }
        ["Int", "Float", "String", "String", "Boolean", "ID"][self.rng.below(6)].to_owned()
    }

    /// Lists and non-nulls around a name.
    fn wrap(&mut self, name: &str) -> Ty {
        let ty = Ty::named(name);
        match self.rng.below(20) {
            0..=7 => ty,
            8..=11 => ty.non_null(),
            12 | 13 => ty.list(),
            14 => ty.non_null().list(),
            15 => ty.list().non_null(),
            16 | 17 => ty.non_null().list().non_null(),
            18 => ty.list().list(),
            _ => ty.non_null().list().list().non_null(),
        }
    }

    /// Some places of a type that also define `value`.
    fn common(&self, parent: &str, value: &str) -> Vec<Sub> {
        let Some(ty) = self.model.ty(parent) else {
            return Vec::new();
        };
        let leaf = !self.model.kind(value).is_composite();
        ty.places
            .keys()
            .copied()
            .filter(|s| {
                leaf || self
                    .model
                    .ty(value)
                    .is_some_and(|t| t.places.contains_key(s))
            })
            .collect()
    }

    fn object_fields(&mut self, index: usize) {
        let parent = self.model.types[index].name.clone();
        let value_type = parent.starts_with("Value");
        let objects: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| t.kind == Kind::Object && !t.is_root())
            .map(|t| t.name.clone())
            .collect();
        for i in 0..self.rng.between(2, self.options.fields_max.max(2)) {
            let composite = self.rng.chance(if value_type { 25 } else { 35 });
            let value = if composite {
                self.rng.pick(&objects).cloned().unwrap_or_default()
            } else {
                self.leaf()
            };
            let mut owners = self.common(&parent, &value);
            if owners.is_empty() {
                continue;
            }
            self.rng.shuffle(&mut owners);
            // Value types are mostly the same everywhere, entities mostly owned.
            let shared = if value_type { 70 } else { 25 };
            let count = if self.rng.chance(shared) {
                self.rng.between(1, owners.len())
            } else {
                1
            };
            owners.truncate(count);
            let ty = self.wrap(&value);
            let name = format!("f{i}");
            for sub in owners {
                // Subgraphs may promise more than others.
                let ty = if self.rng.chance(8) && !self.options.uniform {
                    ty.clone().non_null()
                } else {
                    ty.clone()
                };
                add_source(&mut self.model, &parent, &name, sub, FieldSource::plain(ty));
            }
            let args = self.args(20);
            if let Some(field) = self.model.types[index].field_mut(&name) {
                field.args = args;
            }
        }
        // A value type must have content everywhere.
        if value_type {
            let places = self.places(&parent);
            for sub in places {
                let empty = !self.model.types[index]
                    .fields
                    .iter()
                    .any(|f| f.sources.contains_key(&sub));
                if empty || self.rng.chance(40) {
                    add_source(
                        &mut self.model,
                        &parent,
                        "base",
                        sub,
                        FieldSource::plain(Ty::named("String")),
                    );
                }
            }
        }
    }

    fn abstracts(&mut self) {
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
                            FieldSource::plain(ty.clone()),
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

    /// `@provides`: a field hands out fields of its value that only other subgraphs resolve.
    fn provides(&mut self) {
        for _ in 0..self.rng.between(0, 4) {
            let Some((parent, field, sub, value)) = self.any_composite_source() else {
                return;
            };
            if self.model.kind(&value) != Kind::Object {
                continue;
            }
            let Some(set) = self.external_set(&value, sub, 2, false) else {
                continue;
            };
            if let Some(source) = self
                .model
                .ty_mut(&parent)
                .and_then(|t| t.field_mut(&field))
                .and_then(|f| f.sources.get_mut(&sub))
                && source.provides.is_none()
                && source.active()
            {
                source.provides = Some(set);
            }
        }
    }

    fn any_composite_source(&mut self) -> Option<(String, String, Sub, String)> {
        let mut all = Vec::new();
        for ty in &self.model.types {
            if ty.kind != Kind::Object {
                continue;
            }
            for field in &ty.fields {
                for (sub, source) in &field.sources {
                    if source.active() && self.model.kind(source.ty.name()).is_composite() {
                        all.push((
                            ty.name.clone(),
                            field.name.clone(),
                            *sub,
                            source.ty.name().to_owned(),
                        ));
                    }
                }
            }
        }
        self.rng.pick(&all).cloned()
    }

    /// A field set on `ty` of fields that `sub` does not resolve, declared external there.
    fn external_set(
        &mut self,
        ty: &str,
        sub: Sub,
        depth: usize,
        for_requires: bool,
    ) -> Option<FieldSet> {
        let mut candidates: Vec<FieldModel> = self
            .model
            .ty(ty)?
            .fields
            .iter()
            .filter(|f| {
                f.sources.get(&sub).is_none_or(|s| s.external)
                    && f.sources.values().all(|s| s.overrides.is_none())
                    && (for_requires || (f.requires().is_none() && f.args.is_empty()))
                    && f.args
                        .iter()
                        .all(|a| !a.ty.is_non_null() || a.default.is_some())
            })
            .cloned()
            .collect();
        self.rng.shuffle(&mut candidates);
        let count = self.rng.between(1, 2);
        candidates.truncate(count);
        let mut items = Vec::new();
        for field in candidates {
            let Some(ty_there) = field.merged_ty() else {
                continue;
            };
            let value = ty_there.name().to_owned();
            let inner = match self.model.kind(&value) {
                Kind::Object if depth > 0 => {
                    let set = self.value_set(&value, sub, depth - 1, for_requires);
                    let Some(set) = set else { continue };
                    set
                }
                kind if kind.is_composite() => continue,
                _ => FieldSet::default(),
            };
            let mut source = FieldSource::plain(ty_there);
            source.external = true;
            add_source(&mut self.model, ty, &field.name, sub, source);
            let args = match field.args.first() {
                Some(arg) if for_requires && self.rng.chance(70) => literal(&self.model, &arg.ty)
                    .map(|v| format!("{}: {v}", arg.name))
                    .unwrap_or_default(),
                _ => String::new(),
            };
            items.push(Item::Field {
                name: field.name,
                args,
                sub: inner,
            });
        }
        (!items.is_empty()).then_some(FieldSet { items })
    }

    /// A selection on the value of an external field: `sub` must know the type and the fields.
    fn value_set(
        &mut self,
        value: &str,
        sub: Sub,
        depth: usize,
        for_requires: bool,
    ) -> Option<FieldSet> {
        let ty = self.model.ty(value)?;
        let mut candidates: Vec<FieldModel> = ty
            .fields
            .iter()
            .filter(|f| {
                f.args.is_empty()
                    && f.requires().is_none()
                    && f.sources
                        .values()
                        .all(|s| s.overrides.is_none() && !s.overridden)
            })
            .cloned()
            .collect();
        self.rng.shuffle(&mut candidates);
        let count = self.rng.between(1, 2);
        let entity = ty.is_entity();
        let mut items = Vec::new();
        for field in candidates {
            if items.len() == count {
                break;
            }
            let Some(field_ty) = field.merged_ty() else {
                continue;
            };
            let inner = match self.model.kind(field_ty.name()) {
                Kind::Object if depth > 0 => {
                    let name = field_ty.name().to_owned();
                    match self.value_set(&name, sub, depth - 1, for_requires) {
                        Some(set) => set,
                        None => continue,
                    }
                }
                kind if kind.is_composite() => continue,
                _ => FieldSet::default(),
            };
            if let Some(row) = self.model.ty_mut(value) {
                row.places.entry(sub).or_default();
            }
            if !field.sources.contains_key(&sub) {
                let mut source = FieldSource::plain(field_ty);
                // Fields of entities stay where they are; value types are shared.
                source.external = entity;
                add_source(&mut self.model, value, &field.name, sub, source);
            }
            items.push(Item::Field {
                name: field.name,
                args: String::new(),
                sub: inner,
            });
        }
        if entity && !items.is_empty() {
            self.ensure_some_key(value, sub);
        }
        (!items.is_empty()).then_some(FieldSet { items })
    }

    /// An entity that a subgraph only mentions still needs a key there to be told apart.
    fn ensure_some_key(&mut self, name: &str, sub: Sub) {
        let Some(ty) = self.model.ty(name) else {
            return;
        };
        if ty.places.get(&sub).is_some_and(|p| !p.keys.is_empty()) {
            return;
        }
        let mut keys: Vec<FieldSet> = ty
            .places
            .values()
            .flat_map(|p| p.keys.iter().map(|k| k.fields.clone()))
            .collect();
        self.rng.shuffle(&mut keys);
        if let Some(fields) = keys.into_iter().next() {
            let resolvable = self.rng.chance(50);
            add_key(&mut self.model, name, sub, fields, resolvable);
        }
    }

    /// `@requires`: a field that is computed from what other subgraphs know.
    fn requires(&mut self) {
        for i in 0..self.rng.between(0, 5) {
            let entities: Vec<(String, Sub)> = self
                .model
                .types
                .iter()
                .filter(|t| t.kind == Kind::Object)
                .flat_map(|t| {
                    t.places
                        .iter()
                        .filter(|(_, p)| p.keys.iter().any(|k| k.resolvable))
                        .map(|(s, _)| (t.name.clone(), *s))
                })
                .collect();
            let Some((name, sub)) = self.rng.pick(&entities).cloned() else {
                return;
            };
            let Some(set) = self.external_set(&name, sub, 2, true) else {
                continue;
            };
            let value = if self.rng.chance(20) {
                let known: Vec<String> = self
                    .model
                    .types
                    .iter()
                    .filter(|t| {
                        t.kind == Kind::Object && !t.is_root() && t.places.contains_key(&sub)
                    })
                    .map(|t| t.name.clone())
                    .collect();
                self.rng.pick(&known).cloned().unwrap_or_default()
            } else {
                ["String", "Int", "Float", "ID"][self.rng.below(4)].to_owned()
            };
            let mut source = FieldSource::plain(self.wrap(&value));
            source.requires = Some(set);
            let field = format!("r{i}");
            add_source(&mut self.model, &name, &field, sub, source);
            let args = self.args(15);
            if let Some(row) = self.model.ty_mut(&name).and_then(|t| t.field_mut(&field)) {
                row.args = args;
            }
        }
    }

    /// `@override`: a field moves to another subgraph.
    fn overrides(&mut self) {
        for _ in 0..self.rng.between(0, 3) {
            let mentioned = clean::mentioned(&self.model);
            let mut all = Vec::new();
            for ty in &self.model.types {
                if ty.kind != Kind::Object || ty.is_root() || !ty.is_entity() {
                    continue;
                }
                for field in &ty.fields {
                    for (from, source) in &field.sources {
                        let key = (ty.name.clone(), field.name.clone(), *from);
                        if source.active()
                            && source.requires.is_none()
                            && source.provides.is_none()
                            && source.overrides.is_none()
                            && !mentioned.contains(&key)
                            && ty.interfaces().is_empty()
                        {
                            for to in self.common(&ty.name, source.ty.name()) {
                                if !field.sources.contains_key(&to) {
                                    all.push((key.0.clone(), key.1.clone(), *from, to));
                                }
                            }
                        }
                    }
                }
            }
            let Some((ty, field, from, to)) = self.rng.pick(&all).cloned() else {
                return;
            };
            if let Some(row) = self.model.ty_mut(&ty).and_then(|t| t.field_mut(&field))
                && let Some(source) = row.sources.get_mut(&from)
            {
                source.overridden = true;
                let mut moved = FieldSource::plain(source.ty.clone());
                moved.overrides = Some(from);
                row.sources.insert(to, moved);
            }
        }
    }

    fn roots(&mut self) {
        let outputs: Vec<String> = self
            .model
            .types
            .iter()
            .filter(|t| t.kind.is_composite() && !t.is_root())
            .map(|t| t.name.clone())
            .collect();
        let mut number = 0;
        for name in &outputs {
            let n = self.rng.between(usize::from(name.starts_with("Entity")), 2);
            for _ in 0..n {
                let ty = self.wrap(name);
                self.root("Query", &format!("q{number}"), ty);
                number += 1;
            }
        }
        for _ in 0..self.rng.between(0, 2) {
            let leaf = self.leaf();
            let ty = self.wrap(&leaf);
            self.root("Query", &format!("q{number}"), ty);
            number += 1;
        }
        if self.model.ty("Mutation").is_some() {
            for i in 0..self.rng.between(2, 5) {
                let name = if self.rng.chance(70) {
                    self.rng.pick(&outputs).cloned().unwrap_or_default()
                } else {
                    self.leaf()
                };
                let ty = self.wrap(&name);
                self.root("Mutation", &format!("m{i}"), ty);
            }
        }
    }

    fn root(&mut self, root: &str, field: &str, ty: Ty) {
        let leaf = !self.model.kind(ty.name()).is_composite();
        let mut owners: Vec<Sub> = (0..self.n_subs())
            .filter(|s| {
                leaf || self
                    .model
                    .ty(ty.name())
                    .is_some_and(|t| t.places.contains_key(s))
            })
            .collect();
        self.rng.shuffle(&mut owners);
        let shared = root == "Query" && self.rng.chance(20);
        let count = if shared {
            self.rng.between(1, owners.len().max(1))
        } else {
            1
        };
        owners.truncate(count);
        for sub in owners {
            if let Some(row) = self.model.ty_mut(root) {
                row.places.entry(sub).or_default();
            }
            add_source(
                &mut self.model,
                root,
                field,
                sub,
                FieldSource::plain(ty.clone()),
            );
        }
        let args = self.args(35);
        if let Some(row) = self.model.ty_mut(root).and_then(|t| t.field_mut(field)) {
            row.args = args;
        }
    }
}

/// Adds a role unless the subgraph has one already.
fn add_source(model: &mut Model, ty: &str, field: &str, sub: Sub, source: FieldSource) {
    let Some(row) = model.ty_mut(ty) else { return };
    if row.field(field).is_none() {
        row.fields.push(FieldModel::new(field));
    }
    if let Some(field) = row.field_mut(field) {
        field.sources.entry(sub).or_insert(source);
    }
}

/// Adds a key with its members, taking their types from where they are known.
fn add_key(model: &mut Model, name: &str, sub: Sub, fields: FieldSet, resolvable: bool) {
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

/// A literal for an argument of a required field.
fn literal(model: &Model, ty: &Ty) -> Option<String> {
    Some(match ty.nullable() {
        Ty::List(inner) => format!("[{}]", literal(model, inner)?),
        Ty::Named(name) => match name.as_str() {
            "Int" => "42".to_owned(),
            "Float" => "2.5".to_owned(),
            // Field sets are printed inside a string; plain words only.
            "String" | "ID" => "\"x\"".to_owned(),
            "Boolean" => "false".to_owned(),
            _ if model.kind(name) == Kind::Enum => "BLUE".to_owned(),
            _ => return None,
        },
        Ty::NonNull(_) => return None,
    })
}

/// Cleans and repairs until every field can be reached, or gives up.
fn repair(mut model: Model, rng: &mut Rng) -> Option<Model> {
    for _ in 0..REPAIRS_MAX {
        clean::clean(&mut model);
        if model.ty("Query").is_none() {
            return None;
        }
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
            let Some(owner) = rng.pick(&owners).copied() else {
                continue;
            };
            let plain = row.requires().is_none() && row.args.is_empty();
            let value = row.merged_ty().map(|t| t.name().to_owned());
            let known = known_keys(&model, &hole.ty, hole.have);
            if let Some(key) = rng.pick(&known).cloned()
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
fn known_keys(model: &Model, ty: &str, have: super::Subs) -> Vec<FieldSet> {
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

/// How many fields of each kind of role a graph has: evidence that a run exercised them.
pub fn roles(model: &Model) -> BTreeMap<&'static str, usize> {
    let mut out: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut count = |name: &'static str, is: bool| *out.entry(name).or_default() += usize::from(is);
    for ty in &model.types {
        count("interface", ty.kind == Kind::Interface);
        count("union", ty.kind == Kind::Union);
        count("enum", ty.kind == Kind::Enum);
        count("custom scalar", ty.kind == Kind::Scalar);
        count("input object", ty.kind == Kind::Input);
        count("entity", ty.is_entity());
        count(
            "value type",
            ty.kind == Kind::Object && !ty.is_entity() && !ty.is_root(),
        );
        let all = ty.subs();
        count(
            "partial abstract type or enum",
            ty.members.iter().any(|(_, s)| *s != all),
        );
        for place in ty.places.values() {
            count("several keys", place.keys.len() > 1);
            for key in &place.keys {
                count("compound key", key.fields.items.len() > 1);
                count("nested key", key.fields.to_string().contains('{'));
                count("resolvable: false", !key.resolvable);
            }
        }
        for field in &ty.fields {
            count(
                "shared field",
                ty.kind == Kind::Object && field.active().count_ones() > 1,
            );
            count(
                "shared root field",
                ty.is_root() && field.active().count_ones() > 1,
            );
            count("field with arguments", !field.args.is_empty());
            for source in field.sources.values() {
                let requires = source.requires.as_ref().map(ToString::to_string);
                let provides = source.provides.as_ref().map(ToString::to_string);
                count("requires", requires.is_some());
                count(
                    "nested requires",
                    requires.as_ref().is_some_and(|t| t.contains('{')),
                );
                count(
                    "requires with arguments",
                    requires.as_ref().is_some_and(|t| t.contains('(')),
                );
                count(
                    "chained requires",
                    source.requires.as_ref().is_some_and(|set| {
                        set.names()
                            .any(|n| ty.field(n).is_some_and(|f| f.requires().is_some()))
                    }),
                );
                count("provides", provides.is_some());
                count("nested provides", provides.is_some_and(|t| t.contains('{')));
                count("external", source.external);
                count("override", source.overrides.is_some());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_satisfiable_and_deterministic() {
        for seed in 0..60 {
            let options = GraphOptions::default();
            let model = generate(seed, &options);
            assert_eq!(reach::unreachable(&model), [], "seed {seed}");
            assert_eq!(model, generate(seed, &options), "seed {seed}");
            let mut again = model.clone();
            clean::clean(&mut again);
            assert_eq!(model, again, "seed {seed} is not clean");
        }
    }

    #[test]
    fn every_role_occurs() {
        let mut total: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..200 {
            for (role, n) in roles(&generate(seed, &GraphOptions::default())) {
                *total.entry(role).or_default() += n;
            }
        }
        println!("{total:#?}");
        for (role, n) in total {
            assert!(n > 0, "no graph has {role}");
        }
    }
}
