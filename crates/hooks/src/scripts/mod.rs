//! Rhai scripts at the stages of a request, with the hooks, objects and modules that Apollo Router's public documentation
//! describes.
//!
//! Scripts are read once ([`Program`]), and their entry points run once for each schema ([`Scripts`]): what they register is
//! called for every request with an [`Exchange`](crate::Exchange). A call has a budget of operations and a
//! time; whatever it allocates is bounded ([`Limits`]). A script that throws ends its request, and one that fails is told to
//! the operator.
//!
//! Reading order: `program` (reading and checking), `scripts` (hooks and calls), `exchange` (what they are lent), `objects` and
//! `body` (how a script sees it), `modules` (functions), `values` (JSON and back), `check` with `uses` and `members` (what is not
//! offered). Without the feature `scripts` all of it is `stub`, which refuses scripts.

mod error;
mod limits;

#[cfg(feature = "scripts")]
mod body;
#[cfg(feature = "scripts")]
mod check;
#[cfg(feature = "scripts")]
mod exchange;
#[cfg(feature = "scripts")]
mod loaded;
#[cfg(feature = "scripts")]
mod members;
#[cfg(feature = "scripts")]
mod modules;
#[cfg(feature = "scripts")]
mod objects;
#[cfg(feature = "scripts")]
mod program;
#[cfg(not(feature = "scripts"))]
mod stub;
#[cfg(feature = "scripts")]
mod uses;
#[cfg(feature = "scripts")]
mod values;

#[cfg(feature = "scripts")]
pub use check::{Call, check, require_offered};
pub use error::ProgramError;
pub use limits::Limits;
#[cfg(feature = "scripts")]
pub use loaded::Scripts;
#[cfg(feature = "scripts")]
pub use program::Program;
#[cfg(not(feature = "scripts"))]
pub use stub::{Program, Scripts, check, require_offered};
