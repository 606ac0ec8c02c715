//! What one request costs, in instructions: scenarios that run without sockets, clocks and randomness, so that the
//! same code counts the same on any machine with the same instruction set.
//!
//! Reading order: [`graph`] (graphs and recorded answers), [`scenario`] (what is measured), [`count`] (under
//! callgrind), [`time`] (by the clock, as ratios).

pub mod count;
pub mod graph;
pub mod scenario;
pub mod time;
