//! Ogive as a library: a binary of one's own around the same gateway, with stages, transports and policies in Rust.
//!
//! ```no_run
//! # async fn run() -> Result<(), ogive::Error> {
//! let gateway = ogive::Gateway::builder()
//!     .configuration("listen: 127.0.0.1:4000")
//!     .supergraph(std::fs::read_to_string("supergraph.graphql").unwrap_or_default())
//!     .build()?;
//! let listening = gateway.listen().await?;
//! listening.serve(std::future::pending()).await
//! # }
//! ```
//!
//! - [`Stages`]: told of requests and responses at the stages of a coprocessor, in its words, and may change or end them.
//! - [`SubgraphTransport`]: answers for a subgraph in place of HTTP.
//! - [`PolicyEngine`]: decides what `@policy` asks for.
//!
//! What is not there is decided by the configuration, which is that of the command line.
//!
//! # Versions
//!
//! This crate follows semantic versioning: what it exports stays until the next major version, and so does what
//! is said of it here. Traits get no method without a default, [`Error`] and [`Request`] may get more. Nothing of the crates behind it is
//! exported: those have no stable interface. Messages of [`Stages`] follow the protocol of coprocessors, which has a version of
//! its own (1). Keys of the configuration follow the version of the gateway, which is that of this crate.
//! Before 1.0.0 a minor version may break what a patch may not.

mod bound;
mod builder;
mod error;
mod policies;
mod stages;
mod transport;

use std::{future::Future, pin::Pin};

pub use bound::{BoundGateway, GatewayReload};
pub use builder::{Gateway, GatewayBuilder};
pub use error::Error;
pub use policies::{Caller, PolicyEngine};
pub use stages::Stages;
pub use transport::{Request, SubgraphTransport};

/// A future that runs on the worker of its request, and is dropped if nobody waits for it any more. It must not block: what
/// takes longer than some microseconds belongs on another thread.
pub type WorkerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
