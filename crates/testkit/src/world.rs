//! The data of a generated graph: every value is a pure function of (seed, type, identity, field, arguments).
//!
//! Monolith and subgraphs ask the same world, so they agree on every value; what differs is what a subgraph may be
//! asked. A subgraph refuses, loudly, what it cannot resolve: external fields that nobody provides, `@requires`
//! fields of objects that did not come with a representation, entities by an incomplete key. The value of a field
//! with `@requires` depends on the required values: those of the representation in a subgraph, the true ones in the
//! monolith. So a wrong, stale or missing member of a representation shows in the answer.
//!
//! Entities come from a pool of [`POOL`] instances per type, found by any key by comparison with all of them; other
//! objects are identified by where they are reached. Each mutation root field counts, and the count is part of its
//! value, so a gateway that reorders, repeats or skips one is found out.

mod arguments;
mod partial;
mod representation;
mod values;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value as Json};

use self::partial::{coarse_members, disputed, is_complete, on_the_way, partial, provide};
use crate::graph::{
    FieldModel, FieldSet, Item, Kind, Model, Sub, Ty, TypeModel, clean, interface_objects, reach,
};

/// Instances per entity type.
pub const POOL: u64 = 5;

/// The instance that subgraphs with a gap do not know.
pub const UNKNOWN: u64 = 3;

/// How much more often fields fail that take an object with them which a field set goes through.
const ON_THE_WAY: u64 = 6;

/// How the messages of wanted errors end.
pub const FAULT: &str = "is out of order";

/// A graph's data.
#[derive(Debug)]
pub struct World {
    model: Model,
    seed: u64,
    facts: HashMap<String, HashMap<String, Facts>>,
    mutations: AtomicU64,
    /// Whether the labels of progressive overrides are on.
    labels: AtomicBool,
    /// Fields that raise an error, of 1,000.
    faults_per_mille: u64,
    /// Types of which a subgraph does not know [`UNKNOWN`].
    partial: HashSet<(String, Sub)>,
    is_disputed: bool,
    /// By value: the members that those know who were asked for it.
    asked: Mutex<HashMap<u64, BTreeSet<Vec<String>>>>,
}

/// What is needed again and again about one field.
#[derive(Debug)]
struct Facts {
    /// What data must satisfy everywhere.
    ty: Ty,
    /// Concrete types or enum values it may have.
    domain: Vec<String>,
    /// Unions, or lists of them, whose members differ between those who can serve it: what each of them gives. Members
    /// that not all give are uncertain.
    disputed: Vec<(Sub, Vec<String>)>,
    /// Key member: spells the identity, divided by this.
    coded: Option<u64>,
    /// Never raises an error: field sets mention it.
    safe: bool,
    /// Its error nulls an object that a field set goes through, so it fails more often than others.
    on_the_way: bool,
    /// The only subgraph that resolves it knows but some of the entities: null for [`UNKNOWN`].
    partial: bool,
}

/// An object of a concrete type.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its type.
    pub ty: Arc<str>,
    /// Which one.
    pub identity: u64,
    /// The representation it was entered by.
    representation: Option<Arc<Map<String, Json>>>,
    /// Fields that the path to it provides.
    provided: Option<Arc<FieldSet>>,
    /// Its type is a member that not all know who could have been asked: in the monolith nothing is known of it.
    uncertain: bool,
}

/// A field's value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// A leaf.
    Leaf(Json),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(Object),
    /// A field error.
    Error(String),
}

impl World {
    /// The data of a graph under a seed.
    pub fn new(model: &Model, seed: u64) -> Self {
        Self::with_faults(model, seed, 0)
    }

    /// The same, with some fields (never keys or required ones) that raise errors.
    pub fn with_faults(model: &Model, seed: u64, faults_per_mille: u64) -> Self {
        let mentioned: HashSet<(String, String)> = clean::mentioned(model)
            .into_iter()
            .map(|(ty, field, _)| (ty, field))
            .collect();
        let on_the_way = on_the_way(model);
        let partial = partial(model);
        let mut facts = HashMap::new();
        let servers = match faults_per_mille {
            0 => reach::servers(model),
            // What fails and what is uncertain are tested apart.
            _ => HashMap::new(),
        };
        let mut is_disputed = false;
        let has_objects = |t: &&TypeModel| t.kind == Kind::Object || model.stands_alone(&t.name);
        for ty in model.types.iter().filter(has_objects) {
            let coarse = coarse_members(model, &ty.name);
            let mut fields = HashMap::new();
            for field in &ty.fields {
                let Some(data_ty) = field.data_ty() else {
                    continue;
                };
                let member = ty.places.values().any(|p| {
                    p.keys
                        .iter()
                        .any(|k| k.fields.names().any(|n| n == field.name))
                });
                let coded = member.then(|| if coarse.contains(&field.name) { 2 } else { 1 });
                let is_partial = field
                    .sources
                    .keys()
                    .next()
                    .is_some_and(|sub| partial.contains(&(ty.name.clone(), *sub)))
                    && !member;
                // Sorted, so that the order of definitions changes no data.
                let mut domain: Vec<String> =
                    model.domain(field).into_iter().map(str::to_owned).collect();
                domain.sort_unstable();
                // What clients must not see is an error, so it waits for runs that want errors.
                if faults_per_mille == 0
                    && let Some(value) = model.ty(data_ty.name())
                {
                    domain.retain(|d| {
                        value.hidden
                            || ty.hidden
                            || field.hidden
                            || (!value.hidden_members.contains(d)
                                && model.ty(d).is_none_or(|t| !t.hidden))
                    });
                }
                let name = (ty.name.clone(), field.name.clone());
                let disputed = match servers.get(&name) {
                    Some(servers) if !mentioned.contains(&name) && ty.name != "Mutation" => {
                        disputed(model, field, *servers, &domain)
                    }
                    _ => Vec::new(),
                };
                is_disputed |= !disputed.is_empty();
                fields.insert(
                    field.name.clone(),
                    Facts {
                        disputed,
                        ty: data_ty,
                        domain,
                        coded,
                        safe: mentioned.contains(&(ty.name.clone(), field.name.clone())),
                        on_the_way: on_the_way.contains(&(ty.name.clone(), field.name.clone())),
                        partial: is_partial,
                    },
                );
            }
            facts.insert(ty.name.clone(), fields);
        }
        World {
            model: model.clone(),
            seed,
            facts,
            mutations: AtomicU64::new(0),
            labels: AtomicBool::new(false),
            faults_per_mille,
            partial,
            is_disputed,
            asked: Mutex::default(),
        }
    }

    /// Whether subgraphs give different members of some lists.
    pub fn is_disputed(&self) -> bool {
        self.is_disputed
    }

    /// Forgets who was asked for what.
    pub fn forget(&self) {
        self.lock().clear();
    }

    /// Whether two subgraphs that do not know the same members were asked for one list, at different places.
    pub fn is_ambiguous(&self) -> bool {
        self.lock().values().any(|domains| domains.len() > 1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, BTreeSet<Vec<String>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Whether some fields raise errors.
    pub fn has_faults(&self) -> bool {
        self.faults_per_mille > 0
    }

    /// Forgets how many mutation fields ran.
    pub fn reset(&self) {
        self.mutations.store(0, Ordering::Relaxed);
    }

    /// Switches all labels on or off: whoever lost a field by that refuses it.
    pub fn label(&self, on: bool) {
        self.labels.store(on, Ordering::Relaxed);
    }

    /// Whether another subgraph resolves the field instead.
    fn is_overridden(&self, field: &FieldModel, sub: Sub) -> bool {
        let Some(source) = field.sources.get(&sub) else {
            return false;
        };
        let on = self.labels.load(Ordering::Relaxed);
        let mut others = field.sources.values();
        let taken = others.any(|s| s.label.is_some() && s.overrides == Some(sub));
        source.overridden || on && taken || !on && field.label(sub).is_some()
    }

    /// The query or mutation root.
    pub fn root(&self, name: &str) -> Object {
        Object {
            ty: name.into(),
            identity: 0,
            representation: None,
            provided: None,
            uncertain: false,
        }
    }

    /// The value of a field; `at` names the subgraph that is asked, `None` the monolith.
    pub fn field(
        &self,
        at: Option<Sub>,
        object: &Object,
        name: &str,
        args: &Map<String, Json>,
    ) -> Value {
        let Some(field) = self.model.field(&object.ty, name) else {
            return Value::Error(format!("{}.{name} does not exist", object.ty));
        };
        let refuse = |why: &str| Value::Error(format!("{}.{name} {why}", object.ty));
        let mut provides = None;
        let mut required = None;
        if object.uncertain {
            return Value::Null;
        }
        match at {
            None => {
                if let Some((_, set)) = field.requires() {
                    required = Some(self.project(object, set));
                }
            }
            Some(sub) => {
                let Some(source) = field.sources.get(&sub) else {
                    return refuse("is not defined here");
                };
                let here = object
                    .provided
                    .as_ref()
                    .and_then(|p| self.provided(p, object, name));
                if self.is_overridden(field, sub)
                    && !self
                        .model
                        .ty(&object.ty)
                        .is_some_and(|t| clean::is_key_member(t, sub, name))
                {
                    return refuse("is overridden by another subgraph");
                }
                if source.external && here.is_none() {
                    return refuse("is external and not provided here");
                }
                if let Some(set) = &source.requires {
                    let Some(representation) = &object.representation else {
                        return refuse("needs a representation with its required fields");
                    };
                    required = Some(self.project_json(representation, &object.ty, set));
                }
                let mut set = source.provides.clone().unwrap_or_default();
                if let Some(inner) = here {
                    set.items.extend(inner.items);
                }
                provides = (!set.is_empty()).then(|| Arc::new(set));
            }
        }
        let mut value = self.value(at, object, field, args, required.as_ref());
        if let Some(set) = provides {
            provide(&mut value, &set);
        }
        value
    }

    /// The entity a representation stands for, as `sub` sees it.
    pub fn entity(&self, sub: Sub, representation: &Map<String, Json>) -> Value {
        let Some(name) = representation.get("__typename").and_then(Json::as_str) else {
            return Value::Error("a representation without __typename".to_owned());
        };
        let place = self.model.ty(name).and_then(|t| t.places.get(&sub));
        let Some(place) = place.filter(|p| p.via.is_none()) else {
            return Value::Error(format!("{name} is not defined here"));
        };
        if let Some(stranger) = representation.keys().find(|k| {
            *k != "__typename"
                && self
                    .model
                    .field(name, k)
                    .is_none_or(|f| !f.sources.contains_key(&sub))
        }) {
            return Value::Error(format!("{name} has no field {stranger} here"));
        }
        let complete = place
            .keys
            .iter()
            .find(|k| k.resolvable && is_complete(representation, &k.fields));
        let Some(key) = complete else {
            let given: Vec<&String> = representation.keys().collect();
            return Value::Error(format!("no complete key of {name} among {given:?}"));
        };
        let wanted = self.project_json(representation, name, &key.fields);
        // An interface's name stands for all that implement it; key values tell them apart.
        for concrete in self.model.possible_in(name, sub) {
            let ty: Arc<str> = concrete.into();
            for identity in 0..self.pool(concrete) {
                let mut object = Object {
                    ty: ty.clone(),
                    identity,
                    representation: None,
                    provided: None,
                    uncertain: false,
                };
                if self.project(&object, &key.fields) == wanted {
                    if identity == UNKNOWN && self.partial.contains(&(concrete.to_owned(), sub)) {
                        return Value::Null;
                    }
                    object.representation = Some(Arc::new(representation.clone()));
                    return Value::Object(object);
                }
            }
        }
        Value::Null
    }

    /// The type an object has in the eyes of a subgraph.
    pub fn type_in(&self, sub: Sub, object: &Object) -> Arc<str> {
        match interface_objects::name_in(&self.model, &object.ty, sub) {
            same if *same == *object.ty => object.ty.clone(),
            other => other.into(),
        }
    }

    /// The sub-selection of a provided field, if it is provided on this object.
    fn provided(&self, set: &FieldSet, object: &Object, name: &str) -> Option<FieldSet> {
        let mut out: Option<FieldSet> = None;
        for item in set.of_type(&|on| self.model.possible(on).contains(&&*object.ty)) {
            if let Item::Field {
                name: field, sub, ..
            } = item
                && field == name
            {
                out.get_or_insert_with(FieldSet::default)
                    .items
                    .extend(sub.items.iter().cloned());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::generate::{GraphOptions, generate};

    #[test]
    fn entities_are_found_by_every_key() {
        for seed in 0..40 {
            let model = generate(seed, &GraphOptions::default());
            let world = World::new(&model, seed);
            for ty in model.types.iter().filter(|t| t.kind == Kind::Object) {
                for (sub, place) in &ty.places {
                    for key in place.keys.iter().filter(|k| k.resolvable) {
                        for identity in 0..world.pool(&ty.name) {
                            let mut object = world.root(&ty.name);
                            object.identity = identity;
                            let Json::Object(mut map) = world.project(&object, &key.fields) else {
                                panic!("no object");
                            };
                            let partial = identity == UNKNOWN
                                && world.partial.contains(&(ty.name.clone(), *sub));
                            if partial || map.values().any(Json::is_null) {
                                continue;
                            }
                            let name = world.type_in(*sub, &object);
                            map.insert("__typename".to_owned(), Json::from(&*name));
                            match world.entity(*sub, &map) {
                                Value::Object(found) => assert_eq!(
                                    found.identity, identity,
                                    "seed {seed}, {}: {map:?}",
                                    ty.name
                                ),
                                other => panic!("seed {seed}, {}: {other:?}", ty.name),
                            }
                        }
                    }
                }
            }
        }
    }
}
