//! Coprocessors: a service of the operator that is told of a request at its stages, and may change or end it.
//!
//! | stage | where | when |
//! |---|---|---|
//! | `RouterRequest` | [`router`] | who asks is known; the body is not read as GraphQL yet |
//! | `SupergraphRequest` | [`operation`] | the document is known; nothing is validated yet |
//! | `ExecutionRequest` | [`operation`] | it is planned, and decided what the caller may see |
//! | `SubgraphRequest`, `SubgraphResponse` | [`fetch`] | around each request to a subgraph |
//! | `ExecutionResponse`, `SupergraphResponse` | [`operation`], [`answers`] | the response is made |
//! | `RouterResponse` | [`router`], [`answers`] | its head is made |
//! | the last three, again | [`parts`] | a later part of an answer, or an event, is made |
//!
//! What the stages of one request share is its [`run`]. How a coprocessor is asked, and how what it says is taken over, is
//! [`messages`]; several requests are told in one message by [`fetch_batch`], and for which requests it is told say [`condition`]
//! and [`values`]. What of a configuration is used is [`settings`] and [`plugins`], what bodies look like is [`body`]. Scripts
//! ([`scripts`]) and WebAssembly components ([`components`]) are called at the same stages, and get at the context by
//! [`lent_context`]; requests of components to other hosts are sent by [`outgoing`], and what components decide elsewhere is asked
//! by [`decide`]. Without a coprocessor none of this is there: a request looks once whether it is.
//!
//! What goes on behind a response keeps what it needs of the stages of its request ([`kept`]). Only requests to the subgraph of a
//! subscription pass no stage: where one looks at requests to subgraphs, subscriptions are refused.

pub(crate) mod answers;
pub(crate) mod body;
pub(crate) mod change;
pub(crate) mod components;
pub(crate) mod condition;
pub(crate) mod decide;
pub(crate) mod fetch;
mod fetch_batch;
pub(crate) mod kept;
mod lent_context;
pub mod loaded_hooks;
mod message_batch;
pub(crate) mod messages;
pub(crate) mod operation;
mod outgoing;
pub(crate) mod parts;
pub(crate) mod plugins;
pub(crate) mod router;
pub(crate) mod run;
pub(crate) mod scripts;
pub mod settings;
pub(crate) mod values;
