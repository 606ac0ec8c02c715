//! The root fields of one event subgraph, and what has to be known of its types.

use std::collections::BTreeSet;

use ogive_base::FastMap;
use ogive_federation::{Broker, EventAction, EventField, StreamConsumer, SubgraphId, Supergraph};
use ogive_schema::{ConstValue, OperationKind, TypeId};
use serde_json::{Map, Value};

use crate::{filter::Filter, template::Template};

/// One root field.
#[derive(Debug)]
pub(crate) struct BoundField {
    pub(crate) broker: Broker,
    pub(crate) action: EventAction,
    pub(crate) provider: Box<str>,
    pub(crate) channels: Vec<Template>,
    pub(crate) consumer: Option<StreamConsumer>,
    pub(crate) filter: Option<Filter>,
    /// Arguments that are not given.
    defaults: Vec<(Box<str>, Value)>,
    /// What it returns.
    pub(crate) returns: Box<str>,
}

impl BoundField {
    /// Fills in what is not given.
    pub(crate) fn complete(&self, arguments: &mut Map<String, Value>) {
        for (name, value) in &self.defaults {
            if !arguments.contains_key(&**name) {
                arguments.insert(name.to_string(), value.clone());
            }
        }
    }
}

/// A composite type of the subgraph.
#[derive(Debug, Default)]
pub(crate) struct EventType {
    /// The object types that a value of it can have; one, itself, for objects.
    pub(crate) possible: Vec<Box<str>>,
    /// By field: the name of its type, and whether it may not be null.
    pub(crate) fields: FastMap<Box<str>, (Box<str>, bool)>,
}

/// The root fields and types of one event subgraph.
#[derive(Debug, Default)]
pub(crate) struct EventFields {
    /// By kind and name.
    roots: [FastMap<Box<str>, BoundField>; 3],
    pub(crate) types: FastMap<Box<str>, EventType>,
}

fn index(kind: OperationKind) -> usize {
    match kind {
        OperationKind::Query => 0,
        OperationKind::Mutation => 1,
        OperationKind::Subscription => 2,
    }
}

impl EventFields {
    pub(crate) fn new(supergraph: &Supergraph, subgraph: SubgraphId) -> EventFields {
        let schema = &supergraph.schema;
        let mut out = EventFields::default();
        let mut waiting: Vec<TypeId> = Vec::new();
        for field in supergraph.events.iter().filter(|f| f.subgraph == subgraph) {
            let row = &schema.fields[field.field];
            waiting.push(row.ty.id);
            let inputs = row.args.iter().map(|arg| &schema.inputs[*arg]);
            let defaults = inputs.filter_map(|input| {
                Some((
                    schema.name(input.name).into(),
                    json(input.default.as_ref()?),
                ))
            });
            let bound = bound(field, schema.type_name(row.ty.id), defaults.collect());
            out.roots[index(field.kind)].insert(schema.name(row.name).into(), bound);
        }
        while let Some(id) = waiting.pop() {
            let ty = &schema.types[id];
            let name = schema.type_name(id);
            if !ty.kind.is_composite() || out.types.contains_key(name) {
                continue;
            }
            let possible: Vec<TypeId> = ty.possible.iter().map(TypeId).collect();
            let mut event_type = EventType {
                possible: possible
                    .iter()
                    .map(|id| schema.type_name(*id).into())
                    .collect(),
                fields: FastMap::default(),
            };
            waiting.extend(possible);
            for field in &ty.fields {
                if supergraph.graph.field_source(*field, subgraph).is_none()
                    && !supergraph.graph.fields[*field]
                        .resolvers
                        .contains(subgraph.0)
                {
                    continue;
                }
                let row = &schema.fields[*field];
                let of = schema.type_name(row.ty.id).into();
                let non_null = row.ty.wrapping.is_non_null();
                event_type
                    .fields
                    .insert(schema.name(row.name).into(), (of, non_null));
                waiting.push(row.ty.id);
            }
            out.types.insert(name.into(), event_type);
        }
        out
    }
    /// Everything that the answers of a subscription's root field depend on as text, in an order that is always the same:
    /// what it is bound to, and the types that can be reached from what it returns.
    pub(crate) fn describe(&self, name: &str) -> Option<String> {
        let root = self.get(OperationKind::Subscription, name)?;
        let mut lines = vec![format!("{name} {root:?}")];
        let mut waiting = vec![&*root.returns];
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            let Some(ty) = self.types.get(name).filter(|_| seen.insert(name)) else {
                continue;
            };
            let mut fields: Vec<_> = ty.fields.iter().collect();
            fields.sort_unstable();
            lines.push(format!("{name} {:?} {fields:?}", ty.possible));
            waiting.extend(ty.possible.iter().map(|name| &**name));
            waiting.extend(fields.into_iter().map(|(_, (of, _))| &**of));
        }
        lines.sort_unstable();
        Some(lines.join("\n"))
    }
    /// A root field.
    pub(crate) fn get(&self, kind: OperationKind, name: &str) -> Option<&BoundField> {
        self.roots[index(kind)].get(name)
    }
}

fn bound(field: &EventField, returns: &str, defaults: Vec<(Box<str>, Value)>) -> BoundField {
    BoundField {
        broker: field.broker,
        action: field.action,
        provider: field.provider.clone(),
        channels: field
            .channels
            .iter()
            .map(|text| Template::new(text))
            .collect(),
        consumer: field.consumer.clone(),
        filter: field.filter.as_ref().map(Filter::new),
        defaults,
        returns: returns.into(),
    }
}

fn json(value: &ConstValue) -> Value {
    match value {
        ConstValue::Null => Value::Null,
        ConstValue::Boolean(is) => Value::Bool(*is),
        ConstValue::Int(text) | ConstValue::Float(text) => {
            serde_json::from_str(text).unwrap_or(Value::Null)
        }
        ConstValue::String(text) | ConstValue::Enum(text) => Value::String(text.to_string()),
        ConstValue::List(list) => Value::Array(list.iter().map(json).collect()),
        ConstValue::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, value)| (name.to_string(), json(value)))
                    .collect(),
            )
        }
    }
}
