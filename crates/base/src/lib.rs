//! The ground everything stands on: typed `u32` ids and dense tables over them, bitsets, interned
//! strings, hash-map aliases, diagnostics, bytes as text, bounds on text from outside, names of headers of one hop, text within markup, the
//! memory budget of a process, peers and clients, and shares of tables. No domain
//! words, no I/O, no clock.
//!
//! Reading order: [`id`], [`bits`], [`intern`], [`hash`], [`diagnostic`], [`encode`], [`foreign`], [`hop`], [`markup`], [`memory`],
//! [`peer`], [`reclaim`], [`shares`].

pub mod bits;
mod caches;
pub mod diagnostic;
pub mod encode;
pub mod foreign;
pub mod hash;
pub mod hop;
pub mod id;
pub mod intern;
pub mod markup;
pub mod memory;
pub mod peer;
pub mod reclaim;
pub mod shares;
pub mod url;

pub use bits::BitSet;
pub use caches::Reclaim;
pub use diagnostic::{Diagnostic, Label, Severity, SourceId, Sources, Span};
pub use foreign::{bounded, bounded_name, bounded_string};
pub use hash::{FastMap, FastSet};
pub use hop::{is_framing, is_of_one_hop};
pub use id::{IdRange, IdVec};
pub use intern::{Interner, Symbol};
pub use markup::escape_markup;
pub use memory::{
    CommonReservation, HeldBytes, MemoryBudget, MemoryShare, OutOfMemory, Reservation,
};
pub use peer::{Client, Peer, PeerRange};
pub use reclaim::ReclaimableBytes;
pub use shares::{Share, ShareLimits, Shares, Shortage};
pub use url::{host_of, is_loopback_host, is_loopback_url, with_stars, without_secrets};
