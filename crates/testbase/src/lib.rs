//! What tests of every layer share. It depends on no crate of the product, so tests of the lowest layers can use it, too.
//!
//! - [`recorded`]: what comes out equals a committed file; `BLESS=1` writes the file.
//! - [`rng`]: the only source of chance, so that a seed names a case on every machine.
//! - [`subgraph`]: subgraphs that a test plays on real sockets.
//! - [`needs`]: what a test needs of the machine, and how a test says that it was left out.
//!
//! `ogive-testkit` is the place of what needs the product: generated graphs, pipelines, monoliths.

pub mod needs;
pub mod recorded;
pub mod rng;
pub mod subgraph;

pub use needs::{left_out, oracle, runs};
pub use recorded::{Recorded, assert_recorded};
pub use rng::Rng;
