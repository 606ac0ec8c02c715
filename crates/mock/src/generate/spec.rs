//! What all subgraphs of one graph agree on, so that each generates the same values.
//!
//! Why: a subgraph alone cannot know that another one uses `User.email` as a key, declares a field non-null, or
//! defines fewer members of a union. Values must be right for all of them at once, so the facts are joined: a field
//! may be null only where every subgraph allows it; an abstract or enum field takes only values every subgraph knows;
//! only arguments every subgraph knows count.
//!
//! Object types that implement a common entity interface share one identity space, because an `@interfaceObject`
//! elsewhere sees their instances without knowing the concrete type.

use std::sync::Arc;

use ogive_base::{FastMap, FastSet};
use ogive_schema::{FieldId, OperationKind, Schema, TypeId, TypeKind, Wrapping};

use crate::model::{FieldSet, Model};

/// Facts joined over subgraphs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    /// Identity space by entity type.
    spaces: FastMap<String, Arc<str>>,
    /// Concrete entity types of a space, sorted.
    members: FastMap<Arc<str>, Vec<String>>,
    coordinates: FastMap<String, FastMap<String, Coordinate>>,
}

/// What subgraphs agree on about one field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Coordinate {
    /// Part of a key.
    pub(crate) key: bool,
    /// Part of a key or a `@requires`: never an error.
    pub(crate) needed: bool,
    /// Bit `n`: layer `n` of the type is non-null somewhere.
    pub(crate) non_null: u32,
    /// Concrete types or enum values that every subgraph knows, sorted. `None`: a scalar.
    pub(crate) choices: Option<Vec<String>>,
    /// Arguments that every subgraph knows, sorted.
    pub(crate) arguments: Vec<String>,
}

impl Spec {
    pub(crate) fn new(models: &[&Model]) -> Spec {
        let mut spec = Spec::default();
        spec.add_spaces(models);
        for model in models {
            spec.add_coordinates(model);
        }
        for model in models {
            spec.join_interface_objects(model);
        }
        for model in models {
            spec.mark_needed(model);
        }
        spec
    }

    /// The identity space of an entity type.
    pub(crate) fn space(&self, ty: &str) -> Option<&Arc<str>> {
        self.spaces.get(ty)
    }
    /// The concrete types of a space.
    pub(crate) fn members(&self, space: &str) -> &[String] {
        self.members.get(space).map_or(&[], Vec::as_slice)
    }
    pub(crate) fn coordinate(&self, ty: &str, field: &str) -> Option<&Coordinate> {
        self.coordinates.get(ty)?.get(field)
    }

    fn add_spaces(&mut self, models: &[&Model]) {
        // Union-find by name over a sorted list: the smallest name stands for its group.
        let mut parent: std::collections::BTreeMap<String, String> = Default::default();
        let mut concrete: std::collections::BTreeSet<String> = Default::default();
        let mut links: Vec<(String, String)> = Vec::new();
        let mut interfaces: FastSet<String> = FastSet::default();
        for model in models {
            let schema = &model.schema;
            for (id, ty) in schema.types() {
                if !model.keys.contains_key(&id) {
                    continue;
                }
                let name = schema.name(ty.name).to_string();
                parent.insert(name.clone(), name.clone());
                if ty.kind == TypeKind::Interface {
                    interfaces.insert(name.clone());
                    for member in ty.possible.iter().map(TypeId) {
                        let member = schema.type_name(member).to_string();
                        parent.insert(member.clone(), member.clone());
                        concrete.insert(member.clone());
                        links.push((name.clone(), member));
                    }
                } else if !model.interface_objects.contains(&id) {
                    concrete.insert(name);
                }
            }
        }
        // A lone `@interfaceObject` without the interface anywhere is an object like any other.
        for model in models {
            for (id, ty) in model.schema.types() {
                let name = model.schema.name(ty.name);
                if model.interface_objects.contains(&id) && !interfaces.contains(name) {
                    concrete.insert(name.to_string());
                }
            }
        }
        let root = |parent: &std::collections::BTreeMap<String, String>, name: &str| {
            let mut name = name.to_string();
            while let Some(up) = parent.get(&name).filter(|up| **up != name) {
                name.clone_from(up);
            }
            name
        };
        for (a, b) in links {
            let (a, b) = (root(&parent, &a), root(&parent, &b));
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            parent.insert(high, low);
        }
        for name in parent.keys() {
            let space: Arc<str> = root(&parent, name).into();
            if concrete.contains(name) {
                // Keys come sorted, so members are too.
                self.members
                    .entry(space.clone())
                    .or_default()
                    .push(name.clone());
            }
            self.spaces.insert(name.clone(), space);
        }
    }

    fn add_coordinates(&mut self, model: &Model) {
        let schema = &model.schema;
        for (id, ty) in schema.types() {
            if ty.built_in || !matches!(ty.kind, TypeKind::Object | TypeKind::Interface) {
                continue;
            }
            let parent = type_key(schema, id).to_string();
            for field in &ty.fields {
                let found = self.describe(model, *field);
                let name = schema.field_name(*field).to_string();
                let fields = self.coordinates.entry(parent.clone()).or_default();
                match fields.get_mut(&name) {
                    Some(known) => known.join(found),
                    None => {
                        fields.insert(name, found);
                    }
                }
            }
        }
    }

    /// One field as one subgraph sees it.
    pub(crate) fn describe(&self, model: &Model, field: FieldId) -> Coordinate {
        let schema = &model.schema;
        let definition = &schema.fields[field];
        let target = &schema.types[definition.ty.id];
        let hidden = |directives: &[ogive_schema::AppliedDirective], word: &str| {
            directives
                .iter()
                .any(|d| schema.name(d.name).ends_with(word))
        };
        let mut choices = match target.kind {
            TypeKind::Enum => Some(
                target
                    .enum_values
                    .iter()
                    .filter(|v| !hidden(&schema.enum_values[**v].directives, "inaccessible"))
                    .map(|v| schema.name(schema.enum_values[*v].name).to_string())
                    .collect(),
            ),
            kind if kind.is_composite() => {
                let mut names = Vec::new();
                for ty in target.possible.iter().map(TypeId) {
                    let name = schema.type_name(ty);
                    if model.interface_objects.contains(&ty) {
                        // It stands for every concrete type of its space.
                        let space = self.space(name).cloned();
                        let members = space.map(|s| self.members(&s).to_vec());
                        names.extend(members.unwrap_or_default());
                    } else if !hidden(&schema.types[ty].directives, "inaccessible") {
                        names.push(name.to_string());
                    }
                }
                Some(names)
            }
            _ => None,
        };
        if let Some(names) = &mut choices {
            names.sort();
            names.dedup();
        }
        let mut arguments: Vec<String> = definition
            .args
            .iter()
            .filter(|a| !hidden(&schema.inputs[**a].directives, "fromContext"))
            .map(|a| schema.name(schema.inputs[*a].name).to_string())
            .collect();
        arguments.sort();
        let key = model.key_fields.contains(&field);
        Coordinate {
            key,
            needed: key,
            non_null: non_null_bits(definition.ty.wrapping),
            choices,
            arguments,
        }
    }

    /// The fields of an `@interfaceObject` are fields of every type that implements the interface.
    fn join_interface_objects(&mut self, model: &Model) {
        for (id, ty) in model.schema.types() {
            if !model.interface_objects.contains(&id) {
                continue;
            }
            let name = model.schema.name(ty.name).to_string();
            let members = match self.space(&name) {
                Some(space) => self.members(&space.clone()).to_vec(),
                None => Vec::new(),
            };
            for field in &ty.fields {
                let field = model.schema.field_name(*field).to_string();
                let holders: Vec<&String> = members.iter().chain([&name]).collect();
                let mut joined: Option<Coordinate> = None;
                for holder in &holders {
                    if let Some(found) = self.coordinate(holder, &field) {
                        match &mut joined {
                            Some(joined) => joined.join(found.clone()),
                            None => joined = Some(found.clone()),
                        }
                    }
                }
                let Some(joined) = joined else { continue };
                for holder in holders {
                    self.coordinates
                        .entry(holder.clone())
                        .or_default()
                        .insert(field.clone(), joined.clone());
                }
            }
        }
    }

    fn mark_needed(&mut self, model: &Model) {
        let schema = &model.schema;
        for (id, ty) in schema.types() {
            for field in &ty.fields {
                let Some(requires) = model.fields.get(field).and_then(|f| f.requires.clone())
                else {
                    continue;
                };
                let mut work: Vec<(TypeId, &FieldSet)> = vec![(id, &requires)];
                while let Some((parent, set)) = work.pop() {
                    for item in &set.items {
                        let on = item.on.as_deref().and_then(|n| schema.type_by_name(n));
                        let parent = on.unwrap_or(parent);
                        let possible = schema.types[parent].possible.iter();
                        for holder in possible.map(TypeId).chain([parent]) {
                            let known = self.coordinates.get_mut(schema.type_name(holder));
                            if let Some(found) = known.and_then(|f| f.get_mut(&*item.name)) {
                                found.needed = true;
                            }
                        }
                        if let Some(field) = schema.field_by_name(parent, &item.name) {
                            work.push((schema.fields[field].ty.id, &item.sub));
                        }
                    }
                }
            }
        }
    }
}

impl Coordinate {
    fn join(&mut self, other: Coordinate) {
        self.key |= other.key;
        self.needed |= other.needed;
        self.non_null |= other.non_null;
        self.arguments.retain(|a| other.arguments.contains(a));
        self.choices = match (self.choices.take(), other.choices) {
            (Some(mut mine), Some(others)) => {
                mine.retain(|c| others.contains(c));
                Some(mine)
            }
            (mine, others) => mine.or(others),
        };
    }
    /// Whether layer `layer` must not be null.
    pub(crate) fn layer_is_non_null(&self, layer: u8) -> bool {
        self.key || self.non_null & (1 << layer) != 0
    }
}

fn non_null_bits(wrapping: Wrapping) -> u32 {
    (0..=wrapping.lists())
        .filter(|layer| wrapping.layer_is_non_null(*layer))
        .fold(0, |bits, layer| bits | 1 << layer)
}

/// The name a type goes by in every subgraph: root types by their operation.
pub(crate) fn type_key(schema: &Schema, id: TypeId) -> &str {
    let root = [
        (OperationKind::Query, "Query"),
        (OperationKind::Mutation, "Mutation"),
        (OperationKind::Subscription, "Subscription"),
    ]
    .into_iter()
    .find(|(kind, _)| schema.root(*kind) == Some(id));
    root.map_or_else(|| schema.type_name(id), |(_, name)| name)
}
