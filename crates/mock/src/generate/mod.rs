//! Deterministic values without data: a pure function of seed, type, key, field and arguments.
//!
//! Every entity instance is one integer; each of its key fields spells that integer (`"User:7:id"`, or `7` for an
//! `Int`), so any key leads to the same instance, in every subgraph and in a monolith over the merged schema. Value
//! objects are identified by where they are reached. A representation whose members are not what the instance has is
//! refused, which catches a gateway that mixes up entities or forgets what `@requires` asks for.
//!
//! Reading order: `spec` (what subgraphs agree on), this file (values), `hash`.

mod hash;
mod spec;

use std::sync::Arc;

use ogive_base::FastMap;
use ogive_schema::{TypeId, TypeKind, Wrapping};
use serde_json::{Map, Number, Value};

use crate::{
    data::COUNT_ARGUMENTS,
    input::Values,
    model::{FieldSet, Key, Model},
    node::{FieldCall, Generated, Node, NodeKind, Resolved},
};
pub(crate) use hash::mix;
use hash::{below, derive, hash};
use spec::{Coordinate, Spec, type_key};

/// How to generate.
#[derive(Clone, Debug)]
pub struct GeneratorOptions {
    /// Different seeds give different graphs; default 0.
    pub seed: u64,
    /// Instances per entity type that relations lead to; default 20.
    pub population: u32,
    /// Shortest list without a count argument; default 1.
    pub list_min: u32,
    /// Longest list without a count argument; default 3.
    pub list_max: u32,
    /// Longest list an argument like `first` can ask for; default 10,000.
    pub count_max: u32,
    /// Nullable values that are null, of 1,000; default 0.
    pub null_per_mille: u32,
    /// Fields that raise an error, of 1,000; keys and required fields never do; default 0.
    pub error_per_mille: u32,
    /// Strings with quotes, control characters and emoji, numbers in unusual spellings, custom scalars of any JSON
    /// kind; default off.
    pub wild: bool,
    /// Refuse representations with wrong or missing members; default on.
    pub check_representations: bool,
    /// List lengths by coordinate, inclusive.
    pub lengths: FastMap<String, (u32, u32)>,
    /// Lengths of random lower-case texts by coordinate, inclusive.
    pub texts: FastMap<String, (u32, u32)>,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        GeneratorOptions {
            seed: 0,
            population: 20,
            list_min: 1,
            list_max: 3,
            count_max: 10_000,
            null_per_mille: 0,
            error_per_mille: 0,
            wild: false,
            check_representations: true,
            lengths: FastMap::default(),
            texts: FastMap::default(),
        }
    }
}

/// Generates the values of a graph. Share one among all subgraphs of a graph and its monolith.
#[derive(Clone, Debug)]
pub struct Generator {
    spec: Spec,
    options: GeneratorOptions,
}

/// Probes for an instance of a wanted concrete type before giving up.
const PROBES_MAX: u64 = 4096;

impl Generator {
    /// A generator for a graph of these subgraphs.
    pub fn new(subgraphs: &[&Model], options: GeneratorOptions) -> Generator {
        Generator {
            spec: Spec::new(subgraphs),
            options,
        }
    }

    /// The value of a field of instance `identity` of type `ty`. Objects are given as
    /// `{"__typename": .., "$identity": ..}`; a field error as `{"$error": message}`. `None` if there is no such field.
    pub fn value(
        &self,
        model: &Model,
        ty: &str,
        identity: u64,
        field: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Value> {
        let id = model.schema.type_by_name(ty)?;
        let field = model.schema.field_by_name(id, field)?;
        let object = self.instance(ty, identity);
        let node = Node::new(id, NodeKind::Generated(object.clone()));
        let call = FieldCall {
            model,
            node: &node,
            field,
            arguments,
            event: 0,
        };
        Some(describe(model, self.resolve(model, &object, &call)))
    }

    /// The object of an instance number.
    pub fn instance(&self, ty: &str, identity: u64) -> Generated {
        let space = self.spec.space(ty);
        Generated {
            coded: space.is_some(),
            space: space.cloned().unwrap_or_else(|| ty.into()),
            identity,
            representation: None,
        }
    }

    pub(crate) fn root_object(&self, call: &FieldCall<'_, '_>) -> Generated {
        Generated {
            space: type_key(&call.model.schema, call.node.ty).into(),
            identity: call.event,
            coded: false,
            representation: None,
        }
    }

    /// The value of a field of a generated object.
    pub(crate) fn resolve<'s>(
        &self,
        model: &Model,
        object: &Generated,
        call: &FieldCall<'_, '_>,
    ) -> Resolved<'s> {
        let schema = &model.schema;
        let definition = &schema.fields[call.field];
        let name = schema.name(definition.name);
        let own;
        let coordinate = match self.spec.coordinate(type_key(schema, call.node.ty), name) {
            Some(coordinate) => coordinate,
            None => {
                own = self.spec.describe(model, call.field);
                &own
            }
        };
        if self.options.check_representations
            && let Some(requires) = model
                .fields
                .get(&call.field)
                .and_then(|f| f.requires.as_deref())
            && let Err(message) = self.check_requires(model, call.node.ty, object, requires)
        {
            return Resolved::error(message);
        }
        let mut arguments = String::new();
        for argument in &coordinate.arguments {
            if let Some(value) = call.arguments.get(argument) {
                arguments.push_str(argument);
                arguments.push(':');
                canonical(value, &mut arguments);
                arguments.push(',');
            }
        }
        let h = hash(
            self.options.seed,
            &[
                object.space.as_bytes(),
                &object.identity.to_le_bytes(),
                name.as_bytes(),
                arguments.as_bytes(),
            ],
        );
        if !coordinate.needed && per_mille(derive(h, 1), self.options.error_per_mille) {
            return Resolved::error(format!(
                "No luck with {}",
                schema.field_coordinate(call.field)
            ));
        }
        let place = Place {
            generator: self,
            model,
            object,
            call,
            coordinate,
            declared: definition.ty.id,
            name,
        };
        if matches!(call.node.kind, NodeKind::Root)
            && let Some(found) = place.lookup(definition.ty.wrapping)
        {
            return found;
        }
        place.value(definition.ty.wrapping, h, true)
    }

    /// `_entities` for one representation.
    pub(crate) fn entity<'s>(
        &self,
        model: &Model,
        ty: TypeId,
        keys: &[Key],
        representation: &Map<String, Value>,
    ) -> Resolved<'s> {
        let schema = &model.schema;
        let name = schema.type_name(ty);
        let Some(key) = keys
            .iter()
            .find(|k| k.resolvable && decode_any(&k.fields, representation).is_some())
        else {
            return Resolved::error(format!(
                "The representation has no resolvable key of \"{name}\" that names an instance: {}",
                Value::Object(representation.clone())
            ));
        };
        let identity = decode_any(&key.fields, representation).unwrap_or_default();
        let Some(space) = self.spec.space(name) else {
            return Resolved::error(format!("Type \"{name}\" is not an entity of this graph"));
        };
        let concrete = self.concrete(space, identity);
        let object = Generated {
            space: space.clone(),
            identity,
            coded: true,
            representation: Some(Arc::new(representation.clone())),
        };
        let served = if schema.types[ty].kind == TypeKind::Interface {
            concrete.and_then(|c| schema.type_by_name(c))
        } else if model.interface_objects.contains(&ty) || concrete == Some(name) {
            Some(ty)
        } else {
            None
        };
        let Some(served) = served else {
            return Resolved::error(format!(
                "Instance {identity} is no \"{name}\" but a \"{}\"",
                concrete.unwrap_or("stranger")
            ));
        };
        if self.options.check_representations
            && let Err(message) =
                self.check_members(model, served, &object, &key.fields, representation)
        {
            return Resolved::error(message);
        }
        Resolved::Object(Node::new(served, NodeKind::Generated(object)))
    }

    /// The concrete type of an instance.
    fn concrete(&self, space: &str, identity: u64) -> Option<&str> {
        let members = self.spec.members(space);
        let h = hash(
            self.options.seed,
            &[b"concrete", space.as_bytes(), &identity.to_le_bytes()],
        );
        let at = below(h, members.len() as u64) as usize;
        members.get(at).map(String::as_str)
    }

    /// An instance whose concrete type is one of `allowed`.
    fn pick(&self, space: &str, allowed: &[String], h: u64) -> Option<u64> {
        let start = below(h, u64::from(self.options.population.max(1)));
        (start..start + PROBES_MAX).find(|n| {
            self.concrete(space, *n)
                .is_some_and(|c| allowed.iter().any(|a| a == c))
        })
    }

    fn check_requires(
        &self,
        model: &Model,
        ty: TypeId,
        object: &Generated,
        requires: &FieldSet,
    ) -> Result<(), String> {
        match &object.representation {
            Some(representation) => self.check_members(model, ty, object, requires, representation),
            None => Err(format!(
                "A field of \"{}\" requires other fields and can only be resolved for a representation",
                model.schema.type_name(ty)
            )),
        }
    }

    /// Every member of `set` in `given` is what the instance has.
    fn check_members(
        &self,
        model: &Model,
        ty: TypeId,
        object: &Generated,
        set: &FieldSet,
        given: &Map<String, Value>,
    ) -> Result<(), String> {
        for item in &set.items {
            if item.has_arguments || !applies(model, ty, item.on.as_deref()) {
                continue;
            }
            let expected = self.project(model, ty, object, item);
            let found = given.get(&*item.name);
            if !found.is_some_and(|found| agrees(found, &expected)) {
                return Err(format!(
                    "The representation of {} {} has \"{}\": {}, expected {expected}",
                    object.space,
                    object.identity,
                    item.name,
                    found.unwrap_or(&Value::Null),
                ));
            }
        }
        Ok(())
    }

    /// What a member of a field set is for an instance. Recursion is bounded by the depth of the field set.
    fn project(
        &self,
        model: &Model,
        ty: TypeId,
        object: &Generated,
        item: &crate::model::FieldSetItem,
    ) -> Value {
        if &*item.name == "__typename" {
            return model.schema.type_name(ty).into();
        }
        let Some(field) = model.schema.field_by_name(ty, &item.name) else {
            return Value::Null;
        };
        let node = Node::new(ty, NodeKind::Generated(object.clone()));
        let call = FieldCall {
            model,
            node: &node,
            field,
            arguments: &Values::new(),
            event: 0,
        };
        self.project_value(model, self.resolve(model, object, &call), &item.sub)
    }

    fn project_value(&self, model: &Model, value: Resolved<'_>, set: &FieldSet) -> Value {
        match value {
            Resolved::Null | Resolved::Error(_) => Value::Null,
            Resolved::Leaf(value) => value.into_owned(),
            Resolved::Raw(value) => value,
            Resolved::List(items) => Value::Array(
                items
                    .into_iter()
                    .map(|v| self.project_value(model, v, set))
                    .collect(),
            ),
            Resolved::Object(node) => {
                let NodeKind::Generated(object) = &node.kind else {
                    return Value::Null;
                };
                let members = set
                    .items
                    .iter()
                    .filter(|i| !i.has_arguments && applies(model, node.ty, i.on.as_deref()));
                Value::Object(
                    members
                        .map(|i| (i.name.to_string(), self.project(model, node.ty, object, i)))
                        .collect(),
                )
            }
        }
    }
}

/// One field of one object while its value is made.
struct Place<'a, 'c, 's> {
    generator: &'a Generator,
    model: &'a Model,
    object: &'a Generated,
    call: &'a FieldCall<'c, 's>,
    coordinate: &'a Coordinate,
    declared: TypeId,
    name: &'a str,
}

impl Place<'_, '_, '_> {
    fn value<'r>(&self, wrapping: Wrapping, h: u64, outermost: bool) -> Resolved<'r> {
        let options = &self.generator.options;
        let layer = wrapping.lists();
        if !self.coordinate.layer_is_non_null(layer)
            && per_mille(derive(h, 2), options.null_per_mille)
        {
            return Resolved::Null;
        }
        let Some(item) = wrapping.item() else {
            return match self.model.schema.types[self.declared].kind {
                kind if kind.is_composite() => self.composite(h),
                _ => self.leaf(h),
            };
        };
        let (min, max) = self
            .range(&options.lengths)
            .unwrap_or((options.list_min, options.list_max));
        let asked = if outermost { self.count() } else { None };
        let length = asked.unwrap_or_else(|| {
            min + below(derive(h, 3), u64::from(max.saturating_sub(min)) + 1) as u32
        });
        Resolved::List(
            (0..length)
                .map(|i| self.value(item, derive(h, 100 + u64::from(i)), false))
                .collect(),
        )
    }

    /// The number of items an argument asks for.
    fn count(&self) -> Option<u32> {
        let arguments = &self.coordinate.arguments;
        let name = COUNT_ARGUMENTS
            .iter()
            .find(|n| arguments.iter().any(|a| a == *n))?;
        let count = self.call.arguments.get(*name)?.as_i64()?;
        let max = i64::from(self.generator.options.count_max);
        u32::try_from(count.clamp(0, max)).ok()
    }

    fn range(&self, ranges: &FastMap<String, (u32, u32)>) -> Option<(u32, u32)> {
        if ranges.is_empty() {
            return None;
        }
        let coordinate = self.model.schema.field_coordinate(self.call.field);
        ranges.get(&coordinate).copied()
    }

    /// An object: the same instance whatever subgraph is asked.
    fn composite<'r>(&self, h: u64) -> Resolved<'r> {
        let empty = Vec::new();
        let choices = self.coordinate.choices.as_ref().unwrap_or(&empty);
        let at = below(derive(h, 4), choices.len() as u64) as usize;
        let Some(first) = choices.get(at) else {
            return Resolved::Null;
        };
        let spec = &self.generator.spec;
        let in_key = self.coordinate.key && self.object.coded;
        let Some(space) = spec.space(first) else {
            let identity = if in_key {
                self.object.identity
            } else {
                derive(h, 5)
            };
            return self.node(
                first,
                Generated {
                    space: first.as_str().into(),
                    identity,
                    coded: in_key,
                    representation: None,
                },
            );
        };
        // All choices of one space at once if they are one space, so that a field typed by an entity interface and
        // one typed by its `@interfaceObject` agree.
        let one_space = choices.iter().all(|c| spec.space(c) == Some(space));
        let allowed: &[String] = if one_space {
            choices
        } else {
            std::slice::from_ref(first)
        };
        let identity = if in_key {
            Some(self.object.identity)
        } else {
            self.generator.pick(space, allowed, derive(h, 6))
        };
        match identity {
            Some(identity) => self.entity(space, identity),
            None => Resolved::Null,
        }
    }

    fn entity<'r>(&self, space: &Arc<str>, identity: u64) -> Resolved<'r> {
        let object = Generated {
            space: space.clone(),
            identity,
            coded: true,
            representation: None,
        };
        match self.generator.concrete(space, identity) {
            Some(concrete) => self.node(concrete, object),
            None => Resolved::Null,
        }
    }

    /// The object as this subgraph knows it: by its concrete type or by an `@interfaceObject`.
    fn node<'r>(&self, concrete: &str, object: Generated) -> Resolved<'r> {
        let schema = &self.model.schema;
        let ty = match schema.type_by_name(concrete) {
            Some(ty) => ty,
            None if self.model.interface_objects.contains(&self.declared) => self.declared,
            None => return Resolved::Null,
        };
        Resolved::Object(Node::new(ty, NodeKind::Generated(object)))
    }

    /// Root fields find entities by key arguments: `user(id:)`, `users(ids:)`.
    fn lookup<'r>(&self, wrapping: Wrapping) -> Option<Resolved<'r>> {
        let choices = self.coordinate.choices.as_ref()?;
        let spec = &self.generator.spec;
        let space = spec.space(choices.first()?)?;
        for name in &self.coordinate.arguments {
            let is_key = |field: &str| {
                choices
                    .iter()
                    .all(|c| spec.coordinate(c, field).is_some_and(|c| c.key))
            };
            let value = self.call.arguments.get(name);
            let found = |value: &Value, field: &str| {
                let identity = decode(value, field)?;
                let concrete = self.generator.concrete(space, identity)?;
                choices
                    .iter()
                    .any(|c| c == concrete)
                    .then(|| self.entity(space, identity))
            };
            match value {
                Some(Value::Array(items)) if wrapping.is_list() => {
                    let singular = name.strip_suffix('s').unwrap_or(name);
                    let field = if is_key(name) { name } else { singular };
                    if !is_key(field) {
                        continue;
                    }
                    let items: Option<Vec<_>> = items.iter().map(|v| found(v, field)).collect();
                    if items.is_some() {
                        return items.map(Resolved::List);
                    }
                }
                Some(value) if !wrapping.is_list() && is_key(name) => {
                    if let Some(entity) = found(value, name) {
                        return Some(entity);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn leaf<'r>(&self, h: u64) -> Resolved<'r> {
        let schema = &self.model.schema;
        let options = &self.generator.options;
        if let Some(choices) = &self.coordinate.choices {
            let at = below(derive(h, 4), choices.len() as u64) as usize;
            return match choices.get(at) {
                Some(value) => Resolved::leaf(value.as_str()),
                None => Resolved::Null,
            };
        }
        let ty = schema.type_name(self.declared);
        if self.coordinate.key && self.object.coded && ty != "Boolean" {
            return Resolved::leaf(encode(
                ty,
                &self.object.space,
                self.object.identity,
                self.name,
            ));
        }
        let wild = options.wild;
        Resolved::leaf(match ty {
            "Int" if wild && below(derive(h, 7), 8) == 0 => {
                let extremes = [0, -1, i32::MAX, i32::MIN];
                Value::from(extremes[below(derive(h, 8), 4) as usize])
            }
            "Int" => Value::from(below(h, 2001) as i64 - 1000),
            "Float" if wild => number(WILD_FLOATS[below(h, WILD_FLOATS.len() as u64) as usize]),
            "Float" => Number::from_f64(below(h, 400_000) as f64 / 4.0 - 50_000.0)
                .map_or(Value::Null, Value::Number),
            "Boolean" => Value::Bool(h & (1 << 40) != 0),
            "ID" => Value::String(format!("{}-{:x}", self.name, h >> 40)),
            "String" => self.text(h),
            // Custom scalars.
            _ if wild => match below(derive(h, 9), 5) {
                0 => serde_json::json!({"b": below(h, 9), "a": [null, "x", {"c": true}]}),
                1 => serde_json::json!([below(h, 9), "\u{e9}", false]),
                2 => number("12345678901234567890.0100"),
                3 => Value::Bool(false),
                _ => Value::String(format!("{ty}-{:x}", h >> 40)),
            },
            _ => Value::String(format!("{ty}-{:x}", h >> 40)),
        })
    }

    fn text(&self, h: u64) -> Value {
        let options = &self.generator.options;
        if let Some((min, max)) = self.range(&options.texts) {
            let length =
                u64::from(min) + below(derive(h, 3), u64::from(max.saturating_sub(min)) + 1);
            let letter = |i: u64| char::from(b'a' + below(derive(h, 200 + i), 26) as u8);
            return Value::String((0..length).map(letter).collect());
        }
        if options.wild && below(derive(h, 10), 3) == 0 {
            return WILD_TEXTS[below(h, WILD_TEXTS.len() as u64) as usize].into();
        }
        Value::String(format!("{}-{:x}", self.name, h >> 44))
    }
}

const WILD_TEXTS: [&str; 10] = [
    "",
    " ",
    "a \"quoted\" word",
    "back\\slash / slash",
    "line\nbreak\ttab\r",
    "\u{0}\u{1f}\u{7f}\u{2028}",
    "caf\u{e9} \u{4e16}\u{754c}",
    "\u{1f680}\u{1f468}\u{200d}\u{1f469}",
    "{\"data\":null}",
    "],}",
];

/// Numbers whose spelling must survive.
const WILD_FLOATS: [&str; 8] = [
    "0.0",
    "-0.5",
    "1.10",
    "123456789.123456789",
    "3",
    "-17",
    "0.1000",
    "9007199254740993.0",
];

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn per_mille(h: u64, rate: u32) -> bool {
    rate > 0 && below(h, 1000) < u64::from(rate)
}

/// How a key field spells an instance.
fn encode(ty: &str, space: &str, identity: u64, field: &str) -> Value {
    match ty {
        "Int" => Value::from(identity),
        "Float" => Number::from_f64(identity as f64 + 0.5).map_or(Value::Null, Value::Number),
        _ => Value::String(format!("{space}:{identity}:{field}")),
    }
}

/// The instance a key field's value spells.
fn decode(value: &Value, field: &str) -> Option<u64> {
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(n) => Some(n),
            None => {
                let float = number.as_f64()?;
                (float >= 0.0 && float.fract() == 0.5).then_some(float as u64)
            }
        },
        Value::String(text) => {
            let rest = text.strip_suffix(field)?.strip_suffix(':')?;
            rest.rsplit(':').next()?.parse().ok()
        }
        _ => None,
    }
}

/// The instance any member of a key spells. All members must be there.
fn decode_any(key: &FieldSet, representation: &Map<String, Value>) -> Option<u64> {
    let mut work = vec![(key, representation)];
    let mut found = None;
    while let Some((set, given)) = work.pop() {
        for item in &set.items {
            match given.get(&*item.name)? {
                Value::Object(inner) => work.push((&item.sub, inner)),
                value => found = found.or_else(|| decode(value, &item.name)),
            }
        }
    }
    found
}

fn applies(model: &Model, ty: TypeId, condition: Option<&str>) -> bool {
    condition.is_none_or(|name| {
        model
            .schema
            .type_by_name(name)
            .is_some_and(|c| model.schema.is_subtype(ty, c))
    })
}

/// Whether a value sent by a gateway is the expected one. Members beyond the expected ones, such as `__typename`, are
/// fine; numbers are compared by spelling, because a gateway must not re-print them.
fn agrees(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|f| agrees(f, value))),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| agrees(f, e))
        }
        _ => found == expected,
    }
}

/// JSON with sorted members and numbers by value, for hashing.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in members {
                out.push_str(name);
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) => out.push_str(&float.to_string()),
            None => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn describe(model: &Model, value: Resolved<'_>) -> Value {
    match value {
        Resolved::Null => Value::Null,
        Resolved::Leaf(value) => value.into_owned(),
        Resolved::Raw(value) => value,
        Resolved::Error(error) => serde_json::json!({ "$error": error.message }),
        Resolved::List(items) => {
            Value::Array(items.into_iter().map(|v| describe(model, v)).collect())
        }
        Resolved::Object(node) => match node.kind {
            NodeKind::Generated(object) => serde_json::json!({
                "__typename": model.schema.type_name(node.ty),
                "$identity": object.identity,
            }),
            _ => Value::Null,
        },
    }
}
