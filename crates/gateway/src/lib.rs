//! The request pipeline and its HTTP edge.
//!
//! Every request passes five stops, one file each: [`receive`], [`prepare`], [`plan`], [`execute`], [`respond`].
//! [`Gateway::handle`] is the pipeline without sockets; [`server`] puts it on the network.
//!
//! Invariants:
//! - Every answer to a GraphQL request is a well-formed GraphQL response, whatever the client or a subgraph does.
//! - One request is one panic boundary ([`shared::panic`]): a bug costs one answer, never the process.
//! - A request uses one [`SchemaState`] from start to end, whatever is swapped in meanwhile.
//!
//! Reading order: [`gateway`], then the stages in the order in which a request passes them: [`router`], [`identify`],
//! [`admit`], [`receive`], [`documents`], [`prepare`], [`authorize`], [`plan`], [`execute`], [`respond`]. What belongs to a
//! schema is in [`schema`], what all stages use in [`shared`]. Beside the requests: [`background`], [`reload`]. [`explain`]
//! shows one request on its way; [`unusable`] says what a configuration cannot have. [`server`] is the network.

pub mod admit;
pub mod authorize;
pub mod background;
pub mod documents;
pub mod execute;
pub mod explain;
mod finish;
pub mod gateway;
pub mod identify;
pub mod options;
mod pipeline;
pub mod plan;
pub mod prepare;
pub mod receive;
mod record;
pub mod reload;
pub mod respond;
pub mod router;
pub mod schema;
pub mod server;
pub mod shared;
mod stages;
pub mod tls;
pub mod unusable;

pub use background::Background;
pub use explain::{Explanation, explain};
pub use gateway::Gateway;
pub use options::GatewayOptions;
pub use receive::GraphqlRequest;
pub use schema::state::SchemaState;
pub use server::{Bound, ServeOptions, Threads};
pub use shared::body::ResponseBody;
pub use shared::error::{GraphqlError, RequestError};
pub use shared::json_value::JsonObject;
pub use shared::worker::WorkerState;
