//! Runs a plan over a [`Transport`]: ready fetches start at once, subgraph bytes land in a response store, entities
//! join by record, and the output program streams the answer. Sees neither sockets nor the planner.
//!
//! Reading order: [`transport`] (what it needs from below), [`run`] (stop 4: execute), `store` (where values live),
//! `request` and `keys` (what a subgraph is asked), `reuse` (what it need not be asked again), `answer`, `envelope`, `lookups`, `scan`, `lane` and `twins` (what becomes of its answer), `ahead` (what is known of it when it is whole), `respond` and `leaf`
//! (stop 5), `errors` and `failure` (what clients and operators are told), [`limits`] and [`codes`].
//!
//! Invariants: nothing a subgraph answers can make this crate panic, loop, recurse or exceed [`ExecuteLimits`]; the
//! answer does not depend on the order in which subgraphs answer.

mod ahead;
mod answer;
pub mod codes;
mod condition;
mod envelope;
mod errors;
mod failure;
mod few;
mod inflight;
mod keys;
mod lane;
mod leaf;
pub mod limits;
mod lookups;
mod output;
mod places;
mod request;
mod respond;
mod reuse;
pub mod run;
mod scan;
mod split;
mod store;
pub mod transport;
mod twins;
mod unauthorized;

pub use ahead::{Arriving, ReadAhead};
pub use failure::Failure;
pub use limits::{ExecuteLimits, ExecuteOptions};
pub use output::ResponseBody;
pub use reuse::Reuse;
pub use run::{ExecuteInput, ExecuteOutput, ExecuteStats, FetchTrace, execute};
pub use transport::*;
pub use unauthorized::refused_places;
