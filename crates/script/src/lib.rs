//! Rhai scripts at the stages of a request, with the hooks, objects and modules that Apollo Router's public documentation
//! describes.
//!
//! Scripts are read once ([`Program`]), and their entry points run once for each schema ([`Scripts`]): what they register is
//! called for every request with an [`Exchange`], which is what a stage lends them. A call has a budget of operations and a
//! time; whatever it allocates is bounded ([`Limits`]). A script that throws ends its request, and one that fails is told to
//! the operator.
//!
//! Reading order: [`program`] (reading and checking), [`scripts`] (hooks and calls), [`exchange`] (what they are lent),
//! `objects` and `body` (how a script sees it), `modules` (functions), `values` (JSON and back),
//! [`check`] with `uses` and `members` (what is not offered).

mod body;
pub mod check;
mod error;
pub mod exchange;
mod members;
mod modules;
mod objects;
pub mod program;
pub mod scripts;
mod uses;
mod values;

pub use error::{ProgramError, ScriptError};
pub use exchange::Exchange;
pub use program::{Limits, Program};
pub use scripts::{Hook, Outcome, Scripts};
