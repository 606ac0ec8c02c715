//! The ground everything stands on: typed `u32` ids and dense tables over them, bitsets, interned
//! strings, hash-map aliases, and diagnostics. No domain words, no I/O, no clock.
//!
//! Reading order: [`id`], [`bits`], [`intern`], [`hash`], [`diagnostic`].

pub mod bits;
pub mod diagnostic;
pub mod hash;
pub mod id;
pub mod intern;

pub use bits::BitSet;
pub use diagnostic::{Diagnostic, Label, Severity, SourceId, Sources, Span};
pub use hash::{FastMap, FastSet};
pub use id::{IdRange, IdVec};
pub use intern::{Interner, Symbol};
