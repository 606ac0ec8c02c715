//! Fixtures, oracles and generators. The centre is the differential test: generated federated graphs and operations,
//! answered by a monolith and by the gateway's pipeline over in-process subgraphs, must agree to the byte.
//!
//! Reading order: [`graph`] (the model of a federated graph), [`world`] (its data), [`ops`] (operations),
//! [`schemas`] (all of it read by the product).

pub mod graph;
pub mod ops;
pub mod rng;
pub mod schemas;
pub mod world;
