//! The validated type system: dense tables over ids, lookups by name, and introspection answered from them.
//! Specification: GraphQL, September 2025, sections 3 and 4. Knows nothing about federation.
//!
//! Reading order: [`types`] (the data), [`builtins`] (what every schema has), [`mod@build`] (SDL to [`Schema`]),
//! [`builder`] (a schema while it is built), `validate` (type system rules), [`codes`] (what diagnostics are called),
//! [`retain`] (views), [`introspection`], [`mod@print`] (back to SDL), [`suggest`] ("did you mean").

pub mod build;
pub mod builder;
pub mod builtins;
pub mod codes;
pub mod introspection;
pub mod print;
mod report;
pub mod retain;
pub mod suggest;
pub mod types;
mod validate;
pub mod value;

pub use build::{Built, build};
pub use builder::{BuildOptions, Edition};
pub use ogive_syntax::ast::{OperationKind, Wrapping};
pub use types::*;
