//! Why something failed, as clients and operators learn of it.
//!
//! - [`ErrorCode`]: every value of `extensions.code` that the gateway itself gives, a row of one table each: its HTTP status,
//!   whose affair it is, whether it passes by itself, what happened and what to do. `docs/errors.md` is that table, and so is
//!   `ogive explain CODE`;
//! - [`Failure`]: what failed in one case: the code, what the client may read, and what the operator has to know.
//!
//! What a request is refused with (`gateway::shared::error`) and what the executor writes into a response are made of these.
//! Invariant: no code without its row. Codes that subgraphs choose for their own errors are texts, and none of these.

pub mod codes;
mod failure;

pub use codes::{ErrorCode, Origin};
pub use failure::Failure;
