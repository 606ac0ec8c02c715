//! Federation: the vocabulary of directives, reading a supergraph (join v0.1 to v0.5), its API schema, its
//! subgraph schemas, and the query graph compiled to dense rows for the planner.
//!
//! Reading order: [`supergraph`] (what was read), [`graph`] (the compiled rows), `read` (SDL to both),
//! `subgraph` (one subgraph's own schema out of the supergraph).

pub mod graph;
pub mod read;
pub mod supergraph;

pub use graph::*;
pub use read::{ReadOptions, read_supergraph};
pub use supergraph::*;
