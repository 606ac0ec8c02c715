//! A supergraph that was read and checked.

use ogive_base::{Diagnostic, IdVec, define_id};
use ogive_schema::{ConstValue, FieldId, OperationKind, Schema};

use crate::{Links, QueryGraph, Restrictions};

define_id! {
    /// A subgraph, in order of the `join__Graph` enum.
    pub struct SubgraphId;
}

/// One subgraph of a supergraph.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// Its name, from `@join__graph(name:)`.
    pub name: Box<str>,
    /// The `join__Graph` enum value that stands for it.
    pub enum_value: Box<str>,
    /// Where it is served, from `@join__graph(url:)`; may be empty.
    pub url: Box<str>,
}

/// A kind of message broker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broker {
    /// NATS, with JetStream.
    Nats,
    /// Kafka.
    Kafka,
    /// Redis, by its publish and subscribe.
    Redis,
}

impl Broker {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Broker::Nats => "nats",
            Broker::Kafka => "kafka",
            Broker::Redis => "redis",
        }
    }
}

/// What a field does with a broker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventAction {
    /// Hears what is published.
    Subscribe,
    /// Publishes its arguments.
    Publish,
    /// Asks, and is answered.
    Request,
}

/// A durable position in a stream of NATS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamConsumer {
    /// The stream.
    pub stream: Box<str>,
    /// The name of the consumer, as written.
    pub consumer: Box<str>,
    /// After how many seconds without a subscription the position is given up; `None` never.
    pub inactive_seconds: Option<u32>,
}

/// Which events a subscription wants.
#[derive(Clone, PartialEq, Debug)]
pub enum EventCondition {
    /// All of these.
    And(Vec<EventCondition>),
    /// One of these.
    Or(Vec<EventCondition>),
    /// Not this.
    Not(Box<EventCondition>),
    /// What is at this path of the event is one of these values.
    In(Vec<Box<str>>, Vec<ConstValue>),
}

/// One root field that is bound to a broker.
#[derive(Clone, PartialEq, Debug)]
pub struct EventField {
    /// The field.
    pub field: FieldId,
    /// The event subgraph that has it.
    pub subgraph: SubgraphId,
    /// Of which root it is.
    pub kind: OperationKind,
    /// The kind of broker.
    pub broker: Broker,
    /// What it does.
    pub action: EventAction,
    /// Which of the brokers of this kind.
    pub provider: Box<str>,
    /// Subjects, channels or topics, with templates such as `{{ args.id }}`.
    pub channels: Vec<Box<str>>,
    /// A durable position, if it wants one.
    pub consumer: Option<StreamConsumer>,
    /// Which events it wants; `None` for all.
    pub filter: Option<EventCondition>,
}

/// A supergraph: three views of one id space.
#[derive(Clone, Debug)]
pub struct Supergraph {
    /// Everything, including inaccessible elements and the join machinery.
    pub schema: Schema,
    /// What clients see: a view of `schema` without inaccessible elements and without machinery (join, link, core,
    /// tag, ... definitions). Ids are those of `schema`.
    pub api: Schema,
    /// Subgraphs in enum order.
    pub subgraphs: IdVec<SubgraphId, Subgraph>,
    /// The compiled query graph.
    pub graph: QueryGraph,
    /// What the supergraph links: tells the names of `@authenticated`, `@tag`, `@cost`, ... in this document.
    pub links: Links,
    /// Who may see what; empty if nothing is restricted, or if the restrictions are somebody else's business.
    pub restrictions: Restrictions,
    /// Root fields that are bound to message brokers instead of a service.
    pub events: Vec<EventField>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Diagnostic>,
}
