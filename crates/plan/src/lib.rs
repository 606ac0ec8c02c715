//! The immutable query plan: a DAG of fetches, request templates, response shapes, representation programs and the
//! output program. Pure data plus its text form and verifier; knows neither the search that found it nor the
//! executor that runs it.
//!
//! Reading order: [`ir`] (the data), `text` (for people), `verify` (what must hold).

pub mod ir;

pub use ir::*;
