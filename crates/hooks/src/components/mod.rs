//! WebAssembly components at the stages of a request.
//!
//! A component is told of a stage by a call of what it exports for it, and sees and changes what the stage is about through
//! what it imports; both stand in the WIT package `ogive:hooks` (`wit/hooks.wit`), which only grows. It can reach nothing
//! else: no file, no socket, no clock, no other import, and no host but those that are permitted ([`outgoing`]). What it may
//! read and write is permitted by name ([`Permissions`]), what a call may need is bounded ([`Limits`]), and one that fails
//! again and again is left alone for a while ([`Ejection`]).
//!
//! Reading order: [`options`] (what a configuration says), [`outgoing`] (requests to other
//! hosts), [`decide`] (what is asked where something is decided), [`component`] (loading and calling), `ejection` (leaving it
//! alone), and behind the feature `components`: `engine` (the machine and its clock), `host` (what components import), `verdict`
//! (what they say where something is decided), `pool` (instances that wait for the next call).

pub mod component;
pub mod decide;
mod ejection;
mod error;
pub mod options;
#[cfg_attr(
    not(feature = "components"),
    allow(dead_code, reason = "nobody sends anything")
)]
pub mod outgoing;

#[cfg(feature = "components")]
mod engine;
#[cfg(feature = "components")]
mod host;
#[cfg(not(feature = "components"))]
#[path = "stub.rs"]
mod pool;
#[cfg(feature = "components")]
mod pool;
#[cfg(feature = "components")]
mod verdict;

pub use component::Component;
pub use decide::{PolicyQuestion, Verdict};
pub use error::ComponentError;
pub use options::{ComponentOptions, Decision, Ejection, Limits, Permissions, hook_name, hook_of};
