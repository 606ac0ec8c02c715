//! What a client asked for: validation of documents, their normal form, and coercion of variables.
//! Specification: GraphQL, September 2025, sections 5 and 6.1 to 6.4. Knows nothing about subgraphs.
//!
//! Reading order: [`mod@validate`] (every rule of section 5), [`ir`] (the normal form), `normalise`, [`coerce`].

pub mod coerce;
pub mod describe;
pub mod introspection;
pub mod ir;
mod least;
pub mod normalise;
pub mod validate;

pub use coerce::{Variables, coerce_variables};
pub use describe::describe;
pub use introspection::{answer_locals, local_fields};
pub use ir::*;
pub use normalise::{NormaliseLimits, normalise};
pub use validate::{ValidationLimits, validate};
