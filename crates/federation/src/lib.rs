//! Federation: the vocabulary of directives, reading a supergraph (join v0.1 to v0.5), its API schema, its
//! subgraph schemas, and the query graph compiled to dense rows for the planner.
//!
//! Reading order: [`supergraph`] (what was read), [`graph`] (the compiled rows), [`vocabulary`] and [`links`] (what
//! things are called), [`read`] (SDL to both), `applied` (finding directives), `rows`, `field_rows`, `possible_rows`, `legacy` and `derive` (join directives to
//! rows), [`costs`] (estimates), `events` (root fields of message brokers),
//! [`field_set`], [`restrictions`] (who may see what), [`api`] (what clients see), [`subgraph`] (what one
//! subgraph can be asked for), [`mod@describe`] (rows as text).

pub mod api;
mod applied;
pub mod costs;
mod derive;
pub mod describe;
mod events;
mod field_rows;
pub mod field_set;
pub mod graph;
mod legacy;
pub mod links;
mod possible_rows;
pub mod read;
pub mod restrictions;
mod rows;
pub mod subgraph;
pub mod supergraph;
pub mod vocabulary;

pub use api::api_schema;
pub use costs::{Costs, ListSize, SlicingArgument};
pub use describe::describe;
pub use graph::*;
pub use links::{Import, Link, Links, Purpose};
pub use read::{ReadOptions, read_supergraph};
pub use restrictions::{Alternatives, Requirement, Restrictions};
pub use subgraph::{subgraph_schema, subgraph_sdl};
pub use supergraph::*;
