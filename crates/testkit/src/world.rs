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

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value as Json};

use crate::{
    graph::{
        FieldModel, FieldSet, InputModel, Item, Kind, Model, Sub, Subs, Ty, TypeModel, clean,
        interface_objects, reach, subs,
    },
    rng::{hash_texts, mix},
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
        source.overridden || on && taken || !on && source.label.is_some()
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

    /// What is true, or, of a list whose members are disputed, what is said by the one who is asked. The monolith repeats
    /// that.
    fn value(
        &self,
        at: Option<Sub>,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
    ) -> Value {
        let facts = self.facts.get(&*object.ty).and_then(|f| f.get(&field.name));
        let Some(facts) = facts.filter(|facts| !facts.disputed.is_empty()) else {
            return self.truth(object, field, args, required);
        };
        let hash = self.hash(object, field, args, required, 0);
        let domain = match at {
            Some(sub) => {
                let own = facts.disputed.iter().find(|(s, _)| *s == sub);
                let Some((_, domain)) = own else {
                    let text = format!("{}.{} is asked of the wrong one", object.ty, field.name);
                    return Value::Error(text);
                };
                self.lock().entry(hash).or_default().insert(domain.clone());
                domain.clone()
            }
            None => {
                let asked = self.lock();
                let said = asked.get(&hash).and_then(|domains| domains.first());
                said.unwrap_or(&facts.domain).clone()
            }
        };
        let mut value = self.produce(&facts.ty, &domain, hash);
        if at.is_none() {
            let is_certain = |name: &str| {
                let mut all = facts.disputed.iter();
                all.all(|(_, known)| known.iter().any(|k| k == name))
            };
            doubt(&mut value, &is_certain);
        }
        value
    }

    /// What is true, whoever is asked.
    fn truth(
        &self,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
    ) -> Value {
        let Some(facts) = self.facts.get(&*object.ty).and_then(|f| f.get(&field.name)) else {
            return Value::Null;
        };
        let entity = self.model.is_entity(&object.ty);
        if facts.partial && object.identity == UNKNOWN {
            return Value::Null;
        }
        if let Some(divisor) = facts.coded.filter(|_| entity) {
            return self.coded(object, field, facts, divisor);
        }
        let count = if &*object.ty == "Mutation" {
            self.mutations.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        };
        let hash = self.hash(object, field, args, required, count);
        let faults = if facts.on_the_way {
            self.faults_per_mille * ON_THE_WAY
        } else {
            self.faults_per_mille
        };
        if !facts.safe && mix(hash ^ 0xfa) % 1000 < faults {
            return Value::Error(format!("{}.{} {FAULT}", object.ty, field.name));
        }
        self.produce(&facts.ty, &facts.domain, hash)
    }

    fn hash(
        &self,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
        count: u64,
    ) -> u64 {
        let hash = hash_texts(
            self.seed ^ mix(object.identity) ^ mix(count << 32),
            &[
                &object.ty,
                &field.name,
                &canonical_args(&self.model, &field.args, args),
                &required.map(ToString::to_string).unwrap_or_default(),
            ],
        );
        // The type takes part so that hashes of different shapes do not line up.
        mix(hash)
    }

    /// A key member: a leaf that spells the identity, or an object that has the same identity.
    fn coded(&self, object: &Object, field: &FieldModel, facts: &Facts, divisor: u64) -> Value {
        let number = object.identity / divisor;
        // Either of the two may be null, never both.
        if let Some(spare) = clean::SPARE_KEYS.iter().position(|k| *k == field.name)
            && object.identity % 3 == spare as u64
        {
            return Value::Null;
        }
        let one = |index: u64| {
            if let Some(child) = facts.domain.first() {
                return Value::Object(Object {
                    ty: child.as_str().into(),
                    identity: if self.model.is_entity(child) {
                        (object.identity + index) % self.pool(child)
                    } else {
                        hash_texts(
                            self.seed ^ object.identity ^ mix(index),
                            &[&object.ty, &field.name],
                        )
                    },
                    representation: None,
                    provided: None,
                    uncertain: false,
                });
            }
            Value::Leaf(match facts.ty.name() {
                "Int" => Json::from(1000 + number + 100 * index),
                _ if index > 0 => {
                    Json::from(format!("{}-{}-{number}.{index}", object.ty, field.name))
                }
                _ => Json::from(format!("{}-{}-{number}", object.ty, field.name)),
            })
        };
        if facts.ty.is_list() {
            return Value::List((0..=object.identity % 2).map(one).collect());
        }
        one(0)
    }

    /// Instances of an entity type.
    fn pool(&self, name: &str) -> u64 {
        match self.model.ty(name) {
            Some(ty) if ty.is_single() => 1,
            _ => POOL,
        }
    }

    fn produce(&self, ty: &Ty, domain: &[String], hash: u64) -> Value {
        let nullable = !ty.is_non_null();
        if nullable && mix(hash ^ 0xa11) % 100 < 9 {
            return Value::Null;
        }
        match ty.nullable() {
            Ty::List(inner) => {
                let length = [0, 1, 1, 2, 2, 2, 3][(mix(hash ^ 0x115) % 7) as usize];
                Value::List(
                    (0..length)
                        .map(|i| self.produce(inner, domain, mix(hash ^ mix(i + 1))))
                        .collect(),
                )
            }
            Ty::Named(name) => self.named(name, domain, hash, nullable),
            Ty::NonNull(_) => Value::Null,
        }
    }

    fn named(&self, name: &str, domain: &[String], hash: u64, nullable: bool) -> Value {
        let text = || format!("{name}#{:08x}", hash >> 32);
        Value::Leaf(match name {
            "Int" => Json::from((hash >> 32) as i32),
            "Float" => {
                number(["0.5", "1e3", "-2.50", "100", "3.0", "6.02e23"][(hash % 6) as usize])
            }
            "Boolean" => Json::from(hash & 16 == 0),
            "ID" => Json::from(text()),
            "String" => Json::from(match hash % 5 {
                0 => format!("\"{}\" \\ \n\u{e9}\u{1f600}", text()),
                _ => text(),
            }),
            _ => {
                let picked = if domain.is_empty() {
                    None
                } else {
                    domain.get((mix(hash) % domain.len() as u64) as usize)
                };
                return match (self.model.kind(name), picked) {
                    (Kind::Enum, Some(value)) => Value::Leaf(Json::from(value.as_str())),
                    (Kind::Scalar, _) => Value::Leaf(match hash % 4 {
                        0 => number("12345678901234567890123"),
                        1 => number("1.0"),
                        2 => serde_json::json!({"k": [1, null, {"z": text()}], "a": {}}),
                        _ => Json::from(text()),
                    }),
                    (_, Some(concrete)) => Value::Object(Object {
                        ty: concrete.as_str().into(),
                        identity: if concrete == "Query" {
                            0
                        } else if self.model.is_entity(concrete) {
                            hash % self.pool(concrete)
                        } else {
                            hash
                        },
                        representation: None,
                        provided: None,
                        uncertain: false,
                    }),
                    (_, None) if nullable => Value::Null,
                    (_, None) => Value::Error(format!("no data for {name}")),
                };
            }
        })
    }

    /// The true values of a field set, as JSON.
    fn project(&self, object: &Object, set: &FieldSet) -> Json {
        let mut out = Map::new();
        for item in set.of_type(&|on| self.model.possible(on).contains(&&*object.ty)) {
            let Item::Field { name, args, sub } = item else {
                continue;
            };
            if name == "__typename" {
                continue;
            }
            let Some(field) = self.model.field(&object.ty, name) else {
                continue;
            };
            let required = field.requires().map(|(_, r)| self.project(object, r));
            let args = set_args(&field.args, args);
            let value = self.truth(object, field, &args, required.as_ref());
            out.insert(name.clone(), self.project_value(&value, sub));
        }
        Json::Object(out)
    }

    fn project_value(&self, value: &Value, sub: &FieldSet) -> Json {
        match value {
            Value::Null | Value::Error(_) => Json::Null,
            Value::Leaf(json) => json.clone(),
            Value::List(items) => {
                Json::Array(items.iter().map(|v| self.project_value(v, sub)).collect())
            }
            Value::Object(object) => self.project(object, sub),
        }
    }

    /// The values of a field set that a representation carries. What is missing says so.
    fn project_json(&self, json: &Map<String, Json>, ty: &str, set: &FieldSet) -> Json {
        let mut out = Map::new();
        let concrete = json.get("__typename").and_then(Json::as_str).unwrap_or(ty);
        for item in set.of_type(&|on| self.model.possible(on).contains(&concrete)) {
            let Item::Field { name, sub, .. } = item else {
                continue;
            };
            if name == "__typename" {
                continue;
            }
            let child = self
                .model
                .field(concrete, name)
                .and_then(|f| f.sources.values().next())
                .map_or("", |s| s.ty.name());
            let value = match json.get(name) {
                None => Json::from("(missing)"),
                Some(value) => self.project_json_value(value, child, sub),
            };
            out.insert(name.clone(), value);
        }
        Json::Object(out)
    }

    fn project_json_value(&self, value: &Json, ty: &str, sub: &FieldSet) -> Json {
        match value {
            Json::Array(items) => Json::Array(
                items
                    .iter()
                    .map(|v| self.project_json_value(v, ty, sub))
                    .collect(),
            ),
            Json::Object(map) if !sub.is_empty() => self.project_json(map, ty, sub),
            other => other.clone(),
        }
    }
}

/// What each of those who can serve a union, or a list of one, gives, if they do not know the same members.
fn disputed(
    model: &Model,
    field: &FieldModel,
    servers: Subs,
    certain: &[String],
) -> Vec<(Sub, Vec<String>)> {
    let Some(ty) = field.merged_ty() else {
        return Vec::new();
    };
    let Some(union) = model
        .ty(ty.name())
        .filter(|t| t.kind == Kind::Union && !t.hidden)
    else {
        return Vec::new();
    };
    let seen = |name: &&str| model.ty(name).is_some_and(|t| !t.hidden);
    let known = |sub: Sub| {
        let all = model.possible_in(&union.name, sub).into_iter().filter(seen);
        let mut all: Vec<String> = all.map(str::to_owned).collect();
        all.sort_unstable();
        (sub, all)
    };
    let all: Vec<(Sub, Vec<String>)> = subs(servers).map(known).collect();
    let is_plain = all.iter().all(|(_, known)| known == certain);
    if is_plain || all.iter().any(|(_, known)| known.is_empty()) {
        Vec::new()
    } else {
        all
    }
}

/// Marks the objects inside a value whose type is not certain.
fn doubt(value: &mut Value, is_certain: &dyn Fn(&str) -> bool) {
    match value {
        Value::Object(object) => object.uncertain = !is_certain(&object.ty),
        Value::List(items) => items.iter_mut().for_each(|v| doubt(v, is_certain)),
        _ => {}
    }
}

/// Marks the objects inside a value as coming with provided fields.
fn provide(value: &mut Value, set: &Arc<FieldSet>) {
    match value {
        Value::Object(object) => object.provided = Some(set.clone()),
        Value::List(items) => items.iter_mut().for_each(|v| provide(v, set)),
        _ => {}
    }
}

/// Whether every member is there and not null.
fn is_complete(json: &Map<String, Json>, set: &FieldSet) -> bool {
    set.items.iter().all(|item| match item {
        Item::Field { name, sub, .. } => match json.get(name) {
            None | Some(Json::Null) => false,
            Some(Json::Object(inner)) => is_complete(inner, sub),
            Some(_) => true,
        },
        Item::On { .. } => true,
    })
}

/// Non-null fields whose error nulls an object that a field set goes through.
fn on_the_way(model: &Model) -> HashSet<(String, String)> {
    let mut out = HashSet::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut todo: Vec<&str> = Vec::new();
    let mentioned: BTreeSet<(String, String, Sub)> = clean::mentioned(model).into_iter().collect();
    for (ty, field, _) in mentioned {
        let value = model
            .field(&ty, &field)
            .and_then(|f| f.sources.values().next());
        if let Some(source) = value {
            todo.extend(model.possible(source.ty.name()));
        }
    }
    while let Some(name) = todo.pop() {
        if !seen.insert(name) {
            continue;
        }
        for field in model.ty(name).into_iter().flat_map(|t| &t.fields) {
            if field.data_ty().is_some_and(|t| t.is_non_null()) {
                out.insert((name.to_owned(), field.name.clone()));
                if let Some(source) = field.sources.values().next() {
                    todo.extend(model.possible(source.ty.name()));
                }
            }
        }
    }
    out
}

/// Whether a subgraph knows but some entities of a type. It can where nothing else would notice: it is entered by its
/// one key only, and all that it knows is its own, may be null and serves nobody else.
fn partial(model: &Model) -> HashSet<(String, Sub)> {
    let mentioned: HashSet<(String, String)> = clean::mentioned(model)
        .into_iter()
        .map(|(ty, field, _)| (ty, field))
        .collect();
    let mut out = HashSet::new();
    for ty in model
        .types
        .iter()
        .filter(|t| t.kind == Kind::Object && t.is_entity())
    {
        for sub in ty.places.keys() {
            if is_partial(model, ty, *sub, &mentioned) {
                out.insert((ty.name.clone(), *sub));
            }
        }
    }
    out
}

fn is_partial(
    model: &Model,
    ty: &TypeModel,
    sub: Sub,
    mentioned: &HashSet<(String, String)>,
) -> bool {
    let Some(place) = ty.places.get(&sub) else {
        return false;
    };
    let led_to = model.types.iter().any(|t| {
        t.fields.iter().any(|f| {
            f.sources
                .get(&sub)
                .is_some_and(|s| model.possible_in(s.ty.name(), sub).contains(&&*ty.name))
        })
    });
    if led_to || place.keys.len() != 1 || !place.implements.is_empty() || ty.is_single() {
        return false;
    }
    ty.fields.iter().all(|f| match f.sources.get(&sub) {
        None => true,
        // Below a nested member there may be values of the subgraph's own.
        Some(source) if clean::is_key_member(ty, sub, &f.name) => {
            !model.kind(source.ty.name()).is_composite()
        }
        Some(source) => {
            source.active()
                && f.sources.len() == 1
                && !source.ty.is_non_null()
                && !mentioned.contains(&(ty.name.clone(), f.name.clone()))
        }
    })
}

/// Leaf key members that alone do not identify: several instances share their value. At least one member of every
/// key stays exact.
fn coarse_members(model: &Model, name: &str) -> Vec<String> {
    let Some(ty) = model.ty(name) else {
        return Vec::new();
    };
    let keys: Vec<Vec<&str>> = ty
        .places
        .values()
        .flat_map(|p| p.keys.iter().map(|k| k.fields.names().collect()))
        .collect();
    let mut names: Vec<&str> = keys.iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut coarse: Vec<String> = Vec::new();
    for member in names {
        // Nested in another key it may be the only member.
        let nested = model.types.iter().any(|t| {
            t.places.values().flat_map(|p| &p.keys).any(|k| {
                k.fields.items.iter().any(|item| match item {
                    Item::Field { sub, .. } => sub.names().any(|n| n == member),
                    Item::On { .. } => false,
                })
            })
        });
        let leaf = ty
            .field(member)
            .and_then(|f| f.sources.values().next())
            .is_some_and(|s| !model.kind(s.ty.name()).is_composite());
        let safe = keys.iter().filter(|k| k.contains(&member)).all(|key| {
            key.iter()
                .any(|other| *other != member && coarse.iter().all(|c| c != other))
        });
        if leaf && safe && !nested {
            coarse.push(member.to_owned());
        }
    }
    coarse
}

/// A number that keeps its text.
fn number(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or(Json::Null)
}

/// Coerced arguments as text that is equal exactly when the arguments mean the same.
fn canonical_args(model: &Model, inputs: &[InputModel], args: &Map<String, Json>) -> String {
    let mut out = String::new();
    for input in inputs {
        if let Some(value) = args.get(&input.name)
            && input.is_visible()
        {
            out.push_str(&input.name);
            out.push('=');
            canonical(model, input.ty.name(), value, &mut out);
            out.push(';');
        }
    }
    out
}

fn canonical(model: &Model, ty: &str, value: &Json, out: &mut String) {
    match value {
        Json::Array(items)
            if model.kind(ty) != Kind::Scalar || crate::graph::SCALARS.contains(&ty) =>
        {
            out.push('[');
            for item in items {
                canonical(model, ty, item, out);
                out.push(',');
            }
            out.push(']');
        }
        Json::Object(map) if model.kind(ty) == Kind::Input => {
            out.push('{');
            if let Some(row) = model.ty(ty) {
                out.push_str(&canonical_args(model, &row.inputs, map));
            }
            out.push('}');
        }
        // 1, 1.0 and 1e0 are the same Float.
        Json::Number(n) if ty == "Float" => match n.as_f64() {
            Some(f) => out.push_str(&f.to_string()),
            None => out.push_str(&n.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// The arguments of a field in a field set, defaults filled in.
fn set_args(inputs: &[InputModel], text: &str) -> Map<String, Json> {
    let mut given: Vec<(&str, Json)> = Vec::new();
    let mut rest = text.trim();
    while let Some((name, tail)) = rest.split_once(':') {
        let (value, after) = literal(tail.trim_start());
        given.push((
            name.trim_matches(|c: char| c == ',' || c.is_whitespace()),
            value,
        ));
        rest = after;
    }
    let mut out = Map::new();
    for input in inputs {
        let value = given
            .iter()
            .find(|(n, _)| *n == input.name)
            .map(|(_, v)| v.clone())
            .or_else(|| input.default.as_deref().map(|d| literal(d).0));
        if let Some(value) = value {
            let value = match (input.ty.is_list(), &value) {
                (true, Json::Array(_) | Json::Null) | (false, _) => value,
                (true, _) => Json::Array(vec![value]),
            };
            out.insert(input.name.clone(), value);
        }
    }
    out
}

/// One GraphQL literal of the plain kinds that field sets and defaults use, and the text after it.
fn literal(text: &str) -> (Json, &str) {
    if let Some(rest) = text.strip_prefix('[') {
        let mut items = Vec::new();
        let mut rest = rest.trim_start();
        while !rest.is_empty() && !rest.starts_with(']') {
            let (item, after) = literal(rest);
            items.push(item);
            rest = after.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        }
        return (Json::Array(items), rest.get(1..).unwrap_or(""));
    }
    if text.starts_with('"') {
        let mut escaped = false;
        for (i, c) in text.char_indices().skip(1) {
            match c {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    let value = serde_json::from_str(&text[..=i]).unwrap_or(Json::Null);
                    return (value, &text[i + 1..]);
                }
                _ => escaped = false,
            }
        }
        return (Json::Null, "");
    }
    let end = text
        .find(|c: char| c.is_whitespace() || ",])".contains(c))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let value = serde_json::from_str(word).unwrap_or_else(|_| Json::from(word));
    (value, rest)
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

    #[test]
    fn field_set_arguments_are_read() {
        let inputs = [
            InputModel::plain("a", Ty::named("Int").list(), None),
            InputModel::plain("b", Ty::named("String"), Some("\"x\"".to_owned())),
        ];
        let read = |text| Json::Object(set_args(&inputs, text)).to_string();
        assert_eq!(read(r#"b: "y, z", a: 4"#), r#"{"a":[4],"b":"y, z"}"#);
        assert_eq!(read("a: [1, 2]"), r#"{"a":[1,2],"b":"x"}"#);
    }
}
