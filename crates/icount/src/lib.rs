//! What one request costs, in instructions and memory: scenarios that run on one thread, the whole gateway's without a
//! network and all others without sockets, clocks and randomness, so that the same code counts the same on any machine
//! with the same instruction set.
//!
//! Reading order: [`graph`] (graphs and recorded answers), [`scenario`] (what is measured), [`whole`] (through the whole gateway), [`count`] (under
//! callgrind) and [`heap`] (what the allocator is asked for), [`gate`] (against the committed figures), [`time`] (CPU
//! time, as ratios), [`variant`] (other ways to write an answer), [`memory`] (how much is held).

pub mod count;
pub mod gate;
pub mod graph;
pub mod heap;
pub mod identify;
pub mod memory;
pub mod scenario;
pub mod time;
pub mod variant;
pub mod whole;
