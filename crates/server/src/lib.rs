//! The HTTP server: one accepting task, one single-threaded runtime per worker.
//!
//! It knows connections and HTTP, and nothing of what is said over it: a [`Service`] answers.
//!
//! The accepting task (`acceptor`) hands every connection to the worker with the fewest open ones; from then on nothing
//! about the connection is shared between threads. A permit per connection bounds their number: beyond it idle
//! ones give up theirs, and those for whom there is none are told so (`places`). The operating system's listen queue
//! holds newcomers back while all workers have some to begin (`worker`); those that a worker has begun wait in a queue
//! until they have asked something (`connection_queue`). Requests of a worker that is asked more than it can answer are
//! begun a few at a time (`request_queue`).
//!
//! Draining: on shutdown readiness turns to 503; after `drain_delay` the listener closes, and every connection ends
//! after its current answer (`connection`); what is not done at the deadline is cut off.
//!
//! Reading order: `service` (what the server asks whoever answers), `bound`, `acceptor`, `listener`, `places`;
//! `worker`, `connection`, `driven`, `http1` and `http2`, `activity`, `io` and `framing`, `clock`, `draining`; [`body`],
//! [`parts`] and [`drain_body`] (bodies of responses, and those of requests that nobody reads), `upgrade` (connections that become
//! something else), [`events`] (answers that end with their connection); [`tls`], `certificates`;
//! [`operator`] (endpoints for the operator on addresses of their own).

mod acceptor;
mod activity;
pub mod body;
mod bound;
pub mod certificates;
mod clock;
mod connection;
mod connection_queue;
pub mod drain_body;
mod draining;
mod driven;
pub mod events;
mod framing;
mod host_header;
mod http1;
mod http2;
mod http2_upgrade;
mod io;
mod listener;
pub mod offload;
pub mod operator;
mod options;
pub mod panic;
pub mod parts;
mod places;
mod request_queue;
mod service;
mod shared;
pub mod tls;
mod upgrade;
mod worker;

pub use body::ResponseBody;
pub use bound::{Bound, Drained};
pub use options::{ServeOptions, Threads};
pub use service::{ClientCertificate, Refusal, Service};
pub use upgrade::{Upgrade, Upgraded};
