//! What all stages use.

pub(crate) mod attributes;
pub mod context;
pub(crate) mod cost_transport;
pub(crate) mod failures;
pub(crate) mod hook_threads;
pub(crate) mod identity;
pub mod memory;
pub mod observe;
pub mod observe_options;
pub(crate) mod open_response;
pub(crate) mod operation_values;
pub(crate) mod response_cache;
pub(crate) mod selectors;
pub(crate) mod shared_state;
pub mod stage;
pub(crate) mod stage_observer;
pub mod telling;
pub mod worker;
