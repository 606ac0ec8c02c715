//! The request pipeline.
//!
//! Every request passes five stops, one file each: [`receive`], [`prepare`], [`plan`], [`execute`], [`respond`].
//! [`Gateway::handle`] is the pipeline without sockets; [`ogive_server`] puts it on the network, as [`serve`] says.
//!
//! Invariants:
//! - Every answer to a GraphQL request is a well-formed GraphQL response, whatever the client or a subgraph does.
//! - One request is one panic boundary ([`ogive_server::panic`]): a bug costs one answer, never the process.
//! - A request uses one [`SchemaState`] from start to end, whatever is swapped in meanwhile.
//!
//! Reading order: [`gateway`], then the stages in the order in which a request passes them: [`router`], [`identify`],
//! [`admit`], [`receive`], [`documents`], [`prepare`], [`authorize`], [`plan`], [`execute`] or [`subscribe`], [`respond`]. What belongs to a
//! schema is in [`schema`], what all stages use in [`shared`]. Beside the requests: [`listen`], [`background`], [`reload`]. [`explain`]
//! shows one request on its way; [`unusable`] says what a configuration cannot have.

pub mod admit;
pub mod authorize;
pub mod background;
mod batch;
mod callers;
pub mod charge;
mod decide;
pub mod documents;
pub mod execute;
pub(crate) mod execution;
pub mod explain;
mod finish;
pub mod gateway;
pub mod hooks;
pub mod identify;
pub mod listen;
mod negotiate;
mod operation;
mod operation_rules;
pub mod options;
mod pending_cost;
mod pipeline;
pub mod plan;
pub mod policies;
pub mod prepare;
mod receive;
mod record;
pub mod redaction;
pub mod reload;
pub mod respond;
pub mod router;
pub mod schema;
pub mod serve;
pub mod shared;
pub mod stages;
pub mod subscribe;
pub(crate) mod tls;
pub mod unusable;
pub mod usage;

pub use ogive_edge::{
    error::{GraphqlError, RequestError},
    json_value::JsonObject,
    receive::GraphqlRequest,
};
pub use ogive_server::ResponseBody;

pub use background::{Background, StartError};
pub use explain::{ExplainInput, Explanation};
pub use gateway::Gateway;
pub use options::GatewayOptions;
pub use policies::LoadedPolicies;
pub use schema::state::SchemaState;
pub use shared::worker::WorkerState;
