//! Hooks: coprocessors, scripts and WebAssembly components that see a request at its stages, and may change or end it.
//!
//! | stage | where | when |
//! |---|---|---|
//! | `RouterRequest` | [`router`] | the caller is known; the body is not read as GraphQL yet |
//! | `SupergraphRequest` | [`operation`] | the document is known; nothing is validated yet |
//! | `ExecutionRequest` | [`operation`] | the operation is planned, and what the caller may see is decided |
//! | `SubgraphRequest`, `SubgraphResponse` | [`fetch`] | around each request to a subgraph |
//! | `ExecutionResponse`, `SupergraphResponse` | [`operation`], [`answers`] | the response is made |
//! | `RouterResponse` | [`router`], [`answers`] | the head of the response is made |
//! | the last three, again | [`parts`] | a later part of an answer, or an event, is made |
//!
//! What the stages of one request share is its [`run`]. The hooks of a stage are called, one after the other, by [`call`]: scripts
//! and components in this process, and the coprocessor by [`coprocessor`], which [`fetch_batch`] tells of several requests in one
//! message. For which requests a hook is called say [`condition`] and [`values`]. What of a configuration is used is [`settings`] and
//! [`components`], what bodies look like is [`body`]. Requests of components to other hosts are sent by [`outgoing`], and what
//! components decide elsewhere is asked by [`decide`]. Without hooks none of this is there: a request checks once that there are none.
//!
//! What goes on behind a response keeps what it needs of the stages of its request ([`kept`]): later parts, events, the source of a
//! subscription ([`opening`](crate::subscribe::opening)), and what is asked for each event.

pub(crate) mod answers;
pub(crate) mod body;
mod call;
pub mod components;
pub(crate) mod condition;
mod coprocessor;
pub(crate) mod decide;
pub(crate) mod fetch;
mod fetch_batch;
pub(crate) mod kept;
mod message_batch;
pub(crate) mod operation;
mod outgoing;
pub(crate) mod parts;
pub(crate) mod router;
pub(crate) mod run;
pub mod settings;
pub(crate) mod values;
