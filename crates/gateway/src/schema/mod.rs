//! What belongs to one schema: its state, what is kept with it, plans made ahead of time or made better later.

pub(crate) mod access;
pub(crate) mod brokers;
pub mod bundle;
pub mod cache_limits;
pub mod canonical;
pub(crate) mod conditions;
pub(crate) mod doorkeeper;
pub(crate) mod endpoints;
pub mod feedback;
pub mod fingerprint;
pub mod labels;
pub mod operation;
pub mod operation_cache;
pub mod operation_rules;
pub(crate) mod operation_usage;
pub mod options;
pub mod plan_cache;
pub(crate) mod plan_costs;
pub mod refine;
pub mod refinement;
pub(crate) mod signers;
pub mod split_fetch;
pub mod state;
pub mod views;
