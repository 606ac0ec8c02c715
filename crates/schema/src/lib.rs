//! The validated type system: dense tables over ids, lookups by name, and introspection answered from them.
//! Specification: GraphQL, September 2025, sections 3 and 4. Knows nothing about federation.
//!
//! Reading order: [`types`] (the data), `build` (SDL to [`Schema`]), `validate` (type system rules), `introspection`.

pub mod build;
pub mod types;

pub use build::{BuildOptions, Built, build};
pub use ogive_syntax::ast::{OperationKind, Wrapping};
pub use types::*;
