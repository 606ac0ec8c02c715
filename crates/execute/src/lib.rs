//! Runs a plan over a [`Transport`]: ready fetches start at once, subgraph bytes land in a response store, entities
//! join by record, and the output program streams the answer. Sees neither sockets nor the planner.
//!
//! Reading order: [`transport`] (what it needs from below), [`run`] (stop 4: execute), `store` (where values live),
//! `gather`, `request` and `operation_names` (what a subgraph is asked), `reuse` (what it need not be asked again), `answer`, `envelope`, `lookups`, `scan`, `lane` and `duplicates` (what becomes of its answer), `ahead` (what is known of it when it is whole), `respond` and `leaf`
//! (stop 5), `value_costs` (what it costs), [`incremental`] (both, in parts), `events` (subscriptions), `errors` and `failure_report` (what clients and
//! operators are told), [`limits`].
//!
//! Invariants: nothing a subgraph answers can make this crate panic, loop, recurse or exceed [`ExecuteLimits`]; the
//! answer does not depend on the order in which subgraphs answer.

mod answer;
mod condition;
mod envelope;
mod error_rules;
mod errors;
mod events;
mod failure_report;
mod gather;
mod graphql_error;
pub mod incremental;
mod inflight;
mod inline_list;
mod leaf;
pub mod limits;
mod operation_names;
mod output;
mod request;
mod respond;
mod reuse;
pub mod run;
mod scan;
mod shown;
mod split;
mod stop;
mod store;
mod stream_scan;
pub mod transport;
mod unauthorized;
mod value_costs;

pub use error_rules::{ErrorRules, ShownError};
pub use events::{answer_event, execute_event, source_request};
pub use failure_report::FailureReport;
pub use limits::{ExecuteLimits, ExecuteOptions, Reuse};
pub use operation_names::{NamedSubgraphs, OperationNames};
pub use output::ResponseBody;
pub use run::{ExecuteInput, ExecuteOutput, ExecuteStats, FetchTrace, execute};
pub use stream_scan::{PartialAnswer, StreamScan};
pub use transport::*;
pub use unauthorized::refused_places;
