//! What a supergraph says about event subgraphs: root fields that are bound to message brokers, as `@join__directive`
//! carries Cosmo's directives.
//!
//! What makes no sense is left out: composition has refused it, and a field without a source is answered with an error.

use ogive_base::{IdVec, Symbol};
use ogive_schema::{AppliedDirective, ConstValue, OperationKind, Schema};

use crate::{
    Links,
    applied::applied,
    supergraph::{
        Broker, EventAction, EventCondition, EventField, StreamConsumer, Subgraph, SubgraphId,
    },
    vocabulary::{Spec, join},
};

/// Most levels of conditions of one filter.
const FILTER_DEPTH_MAX: usize = 8;

/// What the directives are called: name, broker, action, argument with the channels.
const BINDINGS: [(&str, Broker, EventAction, &str); 7] = [
    (
        "edfs__natsRequest",
        Broker::Nats,
        EventAction::Request,
        "subject",
    ),
    (
        "edfs__natsPublish",
        Broker::Nats,
        EventAction::Publish,
        "subject",
    ),
    (
        "edfs__natsSubscribe",
        Broker::Nats,
        EventAction::Subscribe,
        "subjects",
    ),
    (
        "edfs__kafkaPublish",
        Broker::Kafka,
        EventAction::Publish,
        "topic",
    ),
    (
        "edfs__kafkaSubscribe",
        Broker::Kafka,
        EventAction::Subscribe,
        "topics",
    ),
    (
        "edfs__redisPublish",
        Broker::Redis,
        EventAction::Publish,
        "channel",
    ),
    (
        "edfs__redisSubscribe",
        Broker::Redis,
        EventAction::Subscribe,
        "channels",
    ),
];
const FILTER: &str = "openfed__subscriptionFilter";

/// Reads the root fields that are bound to brokers.
pub(crate) fn read_events(
    schema: &Schema,
    links: &Links,
    subgraphs: &IdVec<SubgraphId, Subgraph>,
) -> Vec<EventField> {
    let name = links.directive(Spec::Join, join::DIRECTIVE);
    let Some(name) = name.and_then(|name| schema.names.get(&name)) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for kind in [
        OperationKind::Query,
        OperationKind::Mutation,
        OperationKind::Subscription,
    ] {
        let Some(root) = schema.root(kind) else {
            continue;
        };
        for field in &schema.types[root].fields {
            let directives = &schema.fields[*field].directives;
            let carried: Vec<Carried<'_>> = applied(directives, Some(name))
                .filter_map(|one| Carried::read(schema, one))
                .collect();
            for one in &carried {
                let binding = BINDINGS.iter().find(|(name, ..)| *name == one.name);
                let Some((_, broker, action, channels)) = binding else {
                    continue;
                };
                let filter = carried.iter().find(|other| {
                    other.name == FILTER && other.graphs.iter().any(|g| one.graphs.contains(g))
                });
                // One that cannot be read lets nothing pass, so the field is bound to nothing.
                let filter = match filter {
                    None => None,
                    Some(filter) => match filter.arg("condition").and_then(|c| condition(c, 0)) {
                        Some(condition) => Some(condition),
                        None => continue,
                    },
                };
                for graph in &one.graphs {
                    let found = subgraphs.iter().find(|(_, s)| *s.enum_value == **graph);
                    let Some((subgraph, _)) = found else {
                        continue;
                    };
                    out.push(EventField {
                        field: *field,
                        subgraph,
                        kind,
                        broker: *broker,
                        action: *action,
                        provider: one.text("providerId").unwrap_or("default").into(),
                        channels: texts(one.arg(channels)),
                        consumer: one.arg("streamConfiguration").and_then(consumer),
                        filter: filter.clone(),
                    });
                }
            }
        }
    }
    out
}

/// One `@join__directive`.
struct Carried<'s> {
    name: &'s str,
    graphs: Vec<Box<str>>,
    args: &'s [(Box<str>, ConstValue)],
}

impl<'s> Carried<'s> {
    fn read(schema: &Schema, one: &'s AppliedDirective) -> Option<Carried<'s>> {
        let symbol = |name: &str| -> Option<Symbol> { schema.names.get(name) };
        let name = one.arg(symbol("name")?)?.as_str()?;
        let graphs = match one.arg(symbol("graphs")?)? {
            ConstValue::List(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let graphs = graphs.iter().filter_map(|graph| match graph {
            ConstValue::Enum(graph) => Some(graph.clone()),
            _ => None,
        });
        let args = match symbol("args").and_then(|args| one.arg(args)) {
            Some(ConstValue::Object(members)) => members.as_slice(),
            _ => &[],
        };
        Some(Carried {
            name,
            graphs: graphs.collect(),
            args,
        })
    }
    fn arg(&self, name: &str) -> Option<&'s ConstValue> {
        member(self.args, name)
    }
    fn text(&self, name: &str) -> Option<&'s str> {
        self.arg(name)?.as_str()
    }
}

fn member<'v>(members: &'v [(Box<str>, ConstValue)], name: &str) -> Option<&'v ConstValue> {
    members
        .iter()
        .find(|(known, _)| **known == *name)
        .map(|(_, value)| value)
}

/// A list of texts, or one text.
fn texts(value: Option<&ConstValue>) -> Vec<Box<str>> {
    let list = match value {
        Some(ConstValue::List(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter()
        .filter_map(ConstValue::as_str)
        .map(Box::from)
        .collect()
}

fn consumer(value: &ConstValue) -> Option<StreamConsumer> {
    let ConstValue::Object(members) = value else {
        return None;
    };
    let inactive = match member(members, "consumerInactiveThreshold") {
        // Nought and less: never. What is more than a number can say is never, too.
        Some(ConstValue::Int(text)) => text.parse().ok().filter(|seconds| *seconds > 0),
        _ => Some(30),
    };
    Some(StreamConsumer {
        stream: member(members, "streamName")?.as_str()?.into(),
        consumer: member(members, "consumerName")?.as_str()?.into(),
        inactive_seconds: inactive,
    })
}

fn condition(value: &ConstValue, depth: usize) -> Option<EventCondition> {
    let ConstValue::Object(members) = value else {
        return None;
    };
    let (name, value) = members.first().filter(|_| depth < FILTER_DEPTH_MAX)?;
    let list = |value: &ConstValue| -> Option<Vec<EventCondition>> {
        match value {
            ConstValue::List(list) => list.iter().map(|one| condition(one, depth + 1)).collect(),
            one => Some(vec![condition(one, depth + 1)?]),
        }
    };
    Some(match &**name {
        "AND" => EventCondition::And(list(value)?),
        "OR" => EventCondition::Or(list(value)?),
        "NOT" => EventCondition::Not(Box::new(condition(value, depth + 1)?)),
        "IN" => {
            let ConstValue::Object(members) = value else {
                return None;
            };
            let path = member(members, "fieldPath")?.as_str()?;
            let values = match member(members, "values")? {
                ConstValue::List(list) => list.clone(),
                one => vec![one.clone()],
            };
            EventCondition::In(path.split('.').map(Box::from).collect(), values)
        }
        _ => return None,
    })
}
