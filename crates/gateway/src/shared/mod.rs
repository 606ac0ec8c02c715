//! What all stages use.

pub(crate) mod attributes;
pub(crate) mod client_shares;
pub mod context;
pub(crate) mod cost_transport;
pub mod error;
pub(crate) mod failures;
pub(crate) mod header;
pub(crate) mod hook_threads;
pub(crate) mod identity;
pub(crate) mod json_value;
pub mod measured;
pub mod media;
pub mod memory;
pub mod observe;
pub mod observe_options;
pub mod offload;
pub(crate) mod open_response;
pub(crate) mod operation_values;
pub(crate) mod panic;
pub mod rate_state;
pub(crate) mod selectors;
pub(crate) mod shared_state;
pub mod stage;
pub(crate) mod stage_observer;
pub mod telling;
pub mod worker;
