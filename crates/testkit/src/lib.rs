//! Fixtures, oracles and generators. The centre is the differential test: generated federated graphs and operations,
//! answered by a monolith and by the gateway's pipeline over in-process subgraphs, must agree to the byte.
//!
//! Reading order: [`graph`] (the model of a federated graph), [`world`] (its data), [`ops`] (operations),
//! [`schemas`] and [`engines`] (all of it read by the product and by the mock), [`pipeline`] (the gateway in process),
//! [`differential`] (the comparison), [`incremental`] (the same in parts), [`shrink`] and
//! [`case`] (what becomes of a mismatch).

pub mod case;
pub mod contexts;
pub mod coverage;
pub mod differential;
pub mod engines;
pub mod faults;
pub mod graph;
pub mod incremental;
pub mod ops;
pub mod pipeline;
pub mod schemas;
pub mod shrink;
pub mod world;

pub use ogive_testbase::rng;
