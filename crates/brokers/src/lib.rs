//! Events from message brokers: subscriptions, publishing mutations and requests without a subgraph.
//!
//! An event subgraph has no service. An [`EventService`] stands in for it at the transport's seam: it reads which root
//! field the request asks for, hears, publishes or asks what the supergraph binds the field to, and answers with what the
//! selection takes of the event. What the event does not carry is fetched by its key, as the plan says.
//!
//! Invariants:
//! - Equal connections are made once in the process, on one thread of their own, and last as long as somebody needs them.
//! - What is heard waits in bounded queues. Nothing is dropped without a word: who does not read is ended with a code, and
//!   a lost connection is told, since nobody knows what was published meanwhile.
//! - An event of a durable position is acknowledged after it was handed on, and given back if it was not.
//! - What clients send never widens the name of a subject, channel or topic.
//!
//! Reading order: [`settings`], [`service`] (the seam), `fields` and `request` (what is asked), `answer` (what is taken of an
//! event), `template`, `filter`, `events` (the stream), `queue`, `channels`, `provider` (one broker), `nats`, `redis`, `kafka`, `tls`.

mod answer;
mod channels;
mod events;
mod failure;
mod fields;
mod filter;
mod kafka;
mod nats;
mod provider;
mod queue;
mod redis;
mod request;
pub mod service;
pub mod settings;
mod template;
mod tls;

pub use service::{Brokers, EventService};
pub use settings::{
    ConnectionSettings, Credentials, ProviderSettings, QueueLimits, Reconnect, Settings,
    TlsSettings,
};
