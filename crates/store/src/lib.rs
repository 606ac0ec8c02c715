//! Shared state: what several processes of a gateway count and keep together, in Redis.
//!
//! [`Store`] is the only one that knows Redis: one server, sentinels, or a cluster, with TLS and users. It lives on a thread
//! of its own; whoever asks waits for no longer than [`StoreOptions::timeout`]. [`SharedRates`] counts rates: each process
//! takes slices of what there is and serves requests from them, so a request costs no round trip.
//!
//! Invariant: nothing here makes a request fail that could be answered. Where Redis does not answer, a process counts by
//! itself, its share of each rate ([`rates`]).

mod connection;
pub mod gcra;
pub mod options;
pub mod rates;
pub mod store;

pub use options::{StoreError, StoreOptions, StoreTls, Topology};
pub use rates::{SharedRates, SharedTaken};
pub use store::Store;
