//! The request pipeline and its HTTP edge.
//!
//! Every request passes five stops, one file each: [`receive`], [`prepare`], [`plan`], [`execute`], [`respond`].
//! [`Gateway::handle`] is the pipeline without sockets; [`server`] puts it on the network.
//!
//! Invariants:
//! - Every answer to a GraphQL request is a well-formed GraphQL response, whatever the client or a subgraph does.
//! - One request is one panic boundary ([`panic`]): a bug costs one answer, never the process.
//! - A request uses one [`state::SchemaState`] from start to end, whatever is swapped in meanwhile.
//!
//! Reading order: the five stops, then [`state`], [`cache`] and [`plans`] (what is kept), [`canonical`] and
//! [`fingerprint`] (what plans are known by and rest on), [`refine`] (better plans later), [`feedback`]
//! (what running requests teach),
//! [`labels`], [`bundle`] and [`reload`], [`gateway`], [`server`],
//! [`explain`], [`expose`], [`observe`], [`background`], [`heavy`] (what workers hand over). At the edge: [`admission`], [`authorization`], [`cors`],
//! [`documents`], [`notice`], [`operation_limits`], [`proxies`],
//! [`tls`], [`unusable`] (what a configuration cannot have).

pub mod admission;
pub mod authorization;
pub mod background;
pub mod body;
pub mod bundle;
pub mod cache;
pub mod cache_limits;
pub mod canonical;
mod certificates;
pub mod context;
pub mod cors;
pub mod documents;
mod doorkeeper;
pub mod early;
mod endpoints;
pub mod error;
pub mod execute;
pub mod explain;
mod export;
pub mod expose;
mod failures;
pub mod feedback;
pub mod fingerprint;
pub mod gateway;
mod gauges;
mod graphiql;
pub mod heavy;
mod json_value;
pub mod labels;
mod linger;
pub mod measured;
pub mod media;
pub mod memory;
pub mod notice;
pub mod observe;
pub mod operation;
pub mod operation_limits;
mod panic;
mod percent;
pub mod pipeline_options;
pub mod plan;
pub mod plans;
pub mod prepare;
pub mod proxies;
pub mod receive;
pub mod refine;
pub mod refinement;
pub mod reload;
pub mod respond;
pub mod server;
pub mod sharing;
pub mod state;
pub mod tls;
pub mod unusable;
pub mod uploads;

pub use background::Background;
pub use body::ResponseBody;
pub use error::{GraphqlError, RequestError};
pub use explain::{Explanation, explain};
pub use gateway::{Gateway, GatewayOptions};
pub use json_value::JsonObject;
pub use receive::GraphqlRequest;
pub use server::{Bound, ServeOptions, Threads};
pub use sharing::WorkerState;
pub use state::SchemaState;
