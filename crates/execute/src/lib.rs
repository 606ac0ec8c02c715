//! Runs a plan over a [`Transport`]: ready fetches start at once, subgraph bytes land in a response store, entities
//! join by record, and the output program streams the answer. Sees neither sockets nor the planner.
//!
//! Reading order: [`transport`] (what it needs from below), `run` (stop 4: execute), `respond` (stop 5).

pub mod transport;

pub use transport::*;
