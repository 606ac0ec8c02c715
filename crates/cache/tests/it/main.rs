//! The cache from outside: reference implementations, recorded cases, random interleavings, two tiers.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod answers;
mod cases;
mod codec;
mod fields;
mod flights;
mod invalidation;
mod keys;
mod made;
mod memory;
mod remote_double;
mod tiers;
mod vectors;
mod writes;
