//! Generates satisfiable federated graphs from a seed.
//!
//! Types first (enums, scalars, input objects, value types, entities with their keys), then fields and who resolves
//! them, then the roles that make federation interesting (`@requires`, `@provides`, `@override`, abstract types),
//! then root fields. Roles are drawn freely; what turns out not to be reachable is repaired by adding a key or a
//! provider, or dropped. Every graph that comes out passes [`super::reach::unreachable`].

mod abstracts;
mod composite;
pub mod count;
pub mod edit;
mod interface_objects;
mod repair;
mod roles;

use super::{
    FieldModel, FieldSet, FieldSource, InputModel, Item, KeyModel, Kind, Model, Place, Sub, Ty,
    TypeModel,
    clean::{self, SPARE_KEYS},
};
use crate::rng::Rng;
use edit::add_source;

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
    /// Graphs with an interface that some subgraphs know as `@interfaceObject`, of 100.
    pub interface_objects: usize,
    /// Many `@requires`, most of them through objects.
    pub through_objects: bool,
    /// Graphs with an interface object of an interface that nothing implements, of 100.
    pub lone_interfaces: usize,
    /// Graphs with composite keys several levels deep, of 100.
    pub deep_keys: usize,
}

impl Default for GraphOptions {
    fn default() -> Self {
        GraphOptions {
            subgraphs_max: 8,
            entities_max: 5,
            values_max: 3,
            fields_max: 6,
            uniform: false,
            interface_objects: 30,
            through_objects: false,
            lone_interfaces: 20,
            deep_keys: 15,
        }
    }
}

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
        if let Some(model) = repair::repair(draw.model, &mut rng) {
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

/// A key that may be null.
fn is_spare(key: &FieldSet) -> bool {
    SPARE_KEYS.iter().any(|k| *key == FieldSet::leaves(&[k]))
}

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
        self.model.join = [3, 3, 4, 5][self.rng.below(4)];
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
        self.shared_lists();
        self.interface_objects();
        self.lone_interface();
        self.roots_again();
        self.hide();
        self.ended_migrations();
        self.deep_keys();
        if self.options.uniform {
            edit::unify(&mut self.model);
        }
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
        InputModel::plain(name, ty, default.map(str::to_owned))
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
        let mut out: Vec<InputModel> = (0..self.rng.between(1, 3))
            .map(|i| self.input(&format!("a{i}"), inputs))
            .collect();
        let all = (1 << self.n_subs()) - 1;
        for input in &mut out {
            // Some subgraphs are content with less than the merged schema asks for.
            if input.ty.is_non_null() && self.rng.chance(30) {
                input.loose = self.rng.next() & all;
            }
            if !input.ty.is_non_null() || input.default.is_some() {
                input.hidden = self.rng.chance(8);
            }
        }
        if self.rng.chance(20) {
            let mut local = self.input("local", inputs);
            local.ty = local.ty.nullable().clone();
            local.only = self.rng.next() & all;
            if local.only != 0 && local.only != all {
                out.push(local);
            }
        }
        out
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
        if self.n_subs() > 1 && self.rng.chance(25) {
            self.single();
        }
    }

    /// An entity of which there is one, so that its name is key enough.
    fn single(&mut self) {
        let mut ty = TypeModel::new("EntityOne", Kind::Object);
        let count = self.rng.between(2, self.n_subs().min(4));
        for sub in self.some_subs(count) {
            let mut place = Place::default();
            if ty.places.is_empty() || self.rng.chance(70) {
                place.keys.push(KeyModel {
                    fields: FieldSet::leaves(&["__typename"]),
                    resolvable: true,
                });
            }
            ty.places.insert(sub, place);
        }
        self.model.types.push(ty);
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
        if self.rng.chance(15) {
            let names: &[&str] = if self.rng.chance(50) {
                &["code"]
            } else {
                &["code", "part"]
            };
            let items = vec![Item::nested("ref", FieldSet::leaves(names))];
            keys.push(FieldSet { items });
            if self.model.ty("Ref").is_none() {
                self.model.types.push(TypeModel::new("Ref", Kind::Object));
            }
        }
        if self.rng.chance(18) {
            keys.push(FieldSet::leaves(&["codes"]));
        }
        if self.rng.chance(10) {
            keys.push(FieldSet {
                items: vec![Item::nested("refs", FieldSet::leaves(&["code"]))],
            });
            if self.model.ty("Ref").is_none() {
                self.model.types.push(TypeModel::new("Ref", Kind::Object));
            }
        }
        let spare = self.rng.chance(25);
        if spare {
            // Two that may be null: a subgraph that knows one knows both.
            keys.retain(|k| k.names().count() != 1 || self.rng.chance(50));
            keys.push(FieldSet::leaves(&[SPARE_KEYS[0]]));
            keys.push(FieldSet::leaves(&[SPARE_KEYS[1]]));
        }
        let owner = format!("Entity{}", self.rng.below(entities));
        let places = self.places(name);
        for sub in places {
            let count = self.rng.between(1, keys.len());
            let mut own = keys.clone();
            self.rng.shuffle(&mut own);
            own.truncate(count);
            if own.iter().any(is_spare) {
                own.retain(|k| !is_spare(k));
                own.extend(SPARE_KEYS.iter().map(|k| FieldSet::leaves(&[k])));
            }
            for fields in own {
                let resolvable = is_spare(&fields) || !self.rng.chance(10);
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
            let base = match field.as_str() {
                "kb" | "part" => "Int",
                "ref" | "refs" => "Ref",
                _ if inner.is_empty() => "ID",
                _ => owner,
            };
            let ty = Ty::named(base).non_null();
            let ty = match field.as_str() {
                "__typename" => continue,
                "codes" | "refs" => ty.list().non_null(),
                _ if SPARE_KEYS.contains(&field.as_str()) => ty.nullable().clone(),
                _ => ty,
            };
            add_source(&mut self.model, name, field, sub, FieldSource::plain(ty));
            if !inner.is_empty() {
                if let Some(row) = self.model.ty_mut(base) {
                    row.places.entry(sub).or_default();
                }
                self.ensure_key(base, sub, inner, owner);
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
            return self.rng.try_pick(&custom).cloned().unwrap_or_default();
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
        let value_type = !self.model.types[index].is_entity();
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
                self.rng.try_pick(&objects).cloned().unwrap_or_default()
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

    /// Fields that lead back to the query root.
    fn roots_again(&mut self) {
        let Some(query) = self.model.ty("Query").cloned() else {
            return;
        };
        for _ in 0..self.rng.below(3) {
            let parents: Vec<(String, Sub)> = self
                .model
                .types
                .iter()
                .filter(|t| t.kind == Kind::Object && t.name != "Query")
                .flat_map(|t| t.places.keys().map(|s| (t.name.clone(), *s)))
                .filter(|(_, s)| query.fields.iter().any(|f| f.sources.contains_key(s)))
                .collect();
            let Some((parent, sub)) = self.rng.try_pick(&parents).cloned() else {
                return;
            };
            let ty = Ty::named("Query");
            let ty = if self.rng.chance(30) {
                ty.non_null()
            } else {
                ty
            };
            add_source(
                &mut self.model,
                &parent,
                "again",
                sub,
                FieldSource::plain(ty),
            );
        }
    }

    /// `@inaccessible` here and there, as long as what is left is a schema.
    fn hide(&mut self) {
        self.hide_required();
        if self.options.through_objects && self.rng.chance(70) {
            self.shadow();
        }
        for _ in 0..self.rng.below(5) {
            let before = self.model.clone();
            let pick = self.rng.below(self.model.types.len());
            let chance = self.rng.below(10);
            let ty = &mut self.model.types[pick];
            let name = ty.name.clone();
            match ty.kind {
                Kind::Enum => {
                    ty.hidden_members.insert("GREY".to_owned());
                }
                Kind::Object if !ty.is_root() && chance < 3 => ty.hidden = true,
                Kind::Object | Kind::Interface if !ty.fields.is_empty() => {
                    let field = self.rng.below(ty.fields.len());
                    // All that operations can ask of any interface object that nobody can name.
                    let is_needed =
                        name == interface_objects::LONE && ty.fields[field].name == "id";
                    ty.fields[field].hidden = !is_needed;
                }
                _ => {}
            }
            if self.model.types[pick].hidden {
                self.hide_fields_of(&name);
            }
            if !clean::is_presentable(&self.model) {
                self.model = before;
            }
        }
    }

    /// A concrete type of a value that a `@requires` goes through.
    fn hide_required(&mut self) {
        let fields = self.model.types.iter().flat_map(|t| {
            let fields = t.fields.iter();
            fields.filter_map(move |f| Some((t, f.requires()?.1)))
        });
        let mut behind: Vec<String> = Vec::new();
        for (ty, set) in fields {
            for field in set.names().filter_map(|name| ty.field(name)) {
                let domain = self.model.domain(field);
                let is_composite = |ty: &&str| self.model.kind(ty).is_composite();
                if domain.len() > 1 && domain.iter().all(is_composite) {
                    behind.extend(domain.into_iter().map(str::to_owned));
                }
            }
        }
        let pick = self.rng.try_pick(&behind).cloned();
        let percent = if self.options.through_objects { 80 } else { 30 };
        if let Some(name) = pick.filter(|_| self.rng.chance(percent)) {
            let before = self.model.clone();
            if let Some(ty) = self.model.ty_mut(&name) {
                ty.hidden = true;
            }
            self.hide_fields_of(&name);
            if !clean::is_presentable(&self.model) {
                self.model = before;
            }
        }
    }

    /// A type that clients must not see, in every subgraph that knows an interface or union which a `@requires` goes
    /// through.
    fn shadow(&mut self) {
        const NAME: &str = "Shadow";
        let mut behind: Vec<String> = Vec::new();
        for ty in &self.model.types {
            let mut open: Vec<(&TypeModel, &FieldSet)> = Vec::new();
            open.extend(ty.fields.iter().filter_map(|f| Some((ty, f.requires()?.1))));
            while let Some((ty, set)) = open.pop() {
                for name in set.names() {
                    let value = ty.field(name).and_then(FieldModel::merged_ty);
                    let Some(value) = value.and_then(|v| self.model.ty(v.name())) else {
                        continue;
                    };
                    if value.kind.is_abstract() {
                        behind.push(value.name.clone());
                    }
                    open.extend(set.get(name).map(|below| (value, below)));
                }
            }
        }
        let Some(value) = self
            .rng
            .try_pick(&behind)
            .and_then(|v| self.model.ty(v))
            .cloned()
        else {
            return;
        };
        let plain = |p: &Place| p.keys.is_empty() && p.implements.is_empty() && p.via.is_none();
        if !value
            .places
            .values()
            .all(|p| plain(p) && !p.interface_object)
        {
            return;
        }
        let mut shadow = TypeModel::new(NAME, Kind::Object);
        shadow.hidden = true;
        let place = Place {
            implements: match value.kind {
                Kind::Interface => vec![value.name.clone()],
                _ => Vec::new(),
            },
            ..Place::default()
        };
        shadow.fields.clone_from(&value.fields);
        shadow.places = value.places.keys().map(|s| (*s, place.clone())).collect();
        let everywhere = value.subs();
        self.model.types.push(shadow);
        for sub in value.places.keys() {
            let base = FieldSource::plain(Ty::named("String"));
            add_source(&mut self.model, NAME, "base", *sub, base);
        }
        if let Some(union) = self
            .model
            .ty_mut(&value.name)
            .filter(|t| t.kind == Kind::Union)
        {
            union.members.push((NAME.to_owned(), everywhere));
        }
    }

    /// Who returns a hidden type is hidden too.
    fn hide_fields_of(&mut self, name: &str) {
        for field in self.model.types.iter_mut().flat_map(|t| &mut t.fields) {
            field.hidden |= field.sources.values().any(|s| s.ty.name() == name);
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
                    self.rng.try_pick(&outputs).cloned().unwrap_or_default()
                } else {
                    self.leaf()
                };
                let ty = self.wrap(&name);
                self.root("Mutation", &format!("m{i}"), ty);
            }
        }
    }

    /// Unions, and mostly lists of them, that several subgraphs may serve, though they do not know the same members.
    fn shared_lists(&mut self) {
        let unions = self.model.types.iter().filter(|t| t.kind == Kind::Union);
        let unions: Vec<(String, Vec<Sub>)> = unions
            .map(|t| (t.name.clone(), t.places.keys().copied().collect()))
            .collect();
        for (i, (name, mut owners)) in unions.into_iter().enumerate() {
            if owners.len() < 2 || !self.rng.chance(60) {
                continue;
            }
            self.rng.shuffle(&mut owners);
            let count = self.rng.between(2, owners.len());
            owners.truncate(count);
            let ty = self.wrap(&name);
            let ty = if ty.is_list() || self.rng.chance(30) {
                ty
            } else {
                ty.list()
            };
            // A value on the way has no key by which it could be entered elsewhere.
            let parents = self.model.types.iter().filter(|t| {
                let is_here = owners.iter().all(|sub| t.places.contains_key(sub));
                t.kind == Kind::Object && is_here && t.name != "Mutation"
            });
            let parents: Vec<String> = parents.map(|t| t.name.clone()).collect();
            let parent = self.rng.try_pick(&parents).cloned();
            let parent = parent
                .filter(|_| self.rng.chance(50))
                .unwrap_or("Query".to_owned());
            for sub in owners {
                if let Some(row) = self.model.ty_mut(&parent).filter(|t| t.is_root()) {
                    row.places.entry(sub).or_default();
                }
                let source = FieldSource::plain(ty.clone());
                add_source(&mut self.model, &parent, &format!("shared{i}"), sub, source);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{count::roles, *};
    use crate::graph::reach;

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

    #[test]
    fn subgraphs_of_uniform_graphs_agree_on_every_type() {
        for through_objects in [false, true] {
            let options = GraphOptions {
                uniform: true,
                through_objects,
                interface_objects: 60,
                ..GraphOptions::default()
            };
            for seed in 0..100 {
                let model = generate(seed, &options);
                for ty in &model.types {
                    for field in &ty.fields {
                        let mut types = field.sources.values().map(|s| &s.ty);
                        let first = types.next();
                        assert!(
                            types.all(|ty| Some(ty) == first),
                            "seed {seed}: {}.{}: {:?}",
                            ty.name,
                            field.name,
                            field.sources
                        );
                    }
                }
            }
        }
    }
}
