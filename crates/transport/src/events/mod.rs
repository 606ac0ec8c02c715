//! Subscriptions towards subgraphs: requests whose answers are streams of events.
//!
//! [`source`] says by which protocol a subgraph sends events, and how patient we are. [`subscribe`] opens a stream, and
//! opens it again by policy when it was lost. `over_http` reads SSE and multipart, where nobody reads ahead of whoever
//! wants the events: the subgraph feels that, and nothing is kept here. `sockets` keeps WebSocket connections, each with a
//! task of its own (`driven`), for all subscriptions that are equal in everything but what they ask; what waits for its
//! reader stands in a bounded queue (`queue`). [`callback`] are events that the subgraph sends by requests of its own.
//!
//! Invariants:
//! - Whatever ends a stream before its end is an error with a code, never an end.
//! - Events of one subscription come in order, and none is dropped: if nobody takes them, the subgraph waits; if that
//!   holds up others on the same connection, the one that does not read is ended.
//! - Between the loss of a stream and its next beginning a subgraph may have had events. Nobody knows, so it is told to
//!   operators every time.
//! - Header rules, proof, TLS and limits of sizes are those of requests.

pub(crate) mod callback;
mod driven;
pub(crate) mod failures;
mod over_http;
mod queue;
mod running;
mod sockets;
pub(crate) mod source;
mod subscribe_request;

pub(crate) use callback::Callbacks;
pub(crate) use running::subscribe;
pub(crate) use sockets::Sockets;
pub(crate) use subscribe_request::SubscribeRequest;
