//! What an operation costs, before it runs.
//!
//! The costs of a schema (`@cost`, `@listSize`) and one operation in normal form are compiled into a [`Program`]: a sum
//! of products over the variables that say how long a list is, and over the conditions of `@skip` and `@include`.
//! [`Program::evaluate`] gives the number for the variables of a request. It is linear in the program and allocates
//! nothing once its [`Scratch`] is large enough.
//!
//! - The cost is a property of operation and variables. How the operation is planned does not matter.
//! - A mutation begins at [`MUTATION`], everything else at 0. An object, interface or union costs 1, a scalar or enum 0,
//!   an input object 1; `@cost` replaces these, and `@cost` of a field that of its type.
//! - A list multiplies by its size what one item costs. Arguments are paid once for the list.
//! - Where objects of several types may stand, the most expensive type counts.
//! - Arithmetic saturates. Nothing here panics, whatever the schema says.
//!
//! Reading order: [`program`], `compile`, `evaluate`, `values` (costs and sizes in variables),
//! `output` (what an answer did cost, at the places of its plan). Tests: `tests/it/cases.rs`, and `tests/it/expansion.rs`, which expands operations in full and compares.

mod compile;
mod evaluate;
mod output;
mod place;
pub mod program;
pub mod report;
mod values;

pub use compile::{Settings, compile};
pub use evaluate::{Estimate, FieldEstimate, Scratch};
pub use output::OutputProgram;
pub use program::Program;

/// What a mutation costs before any of its fields.
pub const MUTATION: u64 = 10;

/// Items that a list of unknown size has, if nobody says otherwise.
pub const LIST_SIZE: u32 = 10;
