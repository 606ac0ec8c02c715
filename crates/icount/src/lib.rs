//! What one request costs, in instructions: scenarios that run without sockets, clocks and randomness, so that the
//! same code counts the same on any machine with the same instruction set.
//!
//! Reading order: [`graph`] (graphs and recorded answers), [`scenario`] (what is measured), [`count`] (under
//! callgrind), [`time`] (CPU time, as ratios), [`variant`] (other ways to write an answer), [`memory`] (how much is held).

pub mod count;
pub mod graph;
pub mod memory;
pub mod scenario;
pub mod time;
pub mod variant;
