//! GraphQL over HTTP: what a client sends becomes one [`receive::GraphqlRequest`], and what is wrong with it an answer.
//!
//! - [`receive`](mod@receive): methods, media types, bodies with their limits, batches, files;
//! - [`media`]: what the client sends and what it can read;
//! - [`error`]: errors of whole requests as GraphQL errors, with [`error_rules`] that rewrite them and [`rate_state`] that tells
//!   what is left of a rate;
//! - [`cors`]: which pages may read answers, and which requests they may send;
//! - [`proxies`]: the client behind trusted proxies, and [`client_shares`]: what one client has of what all share;
//! - [`graphiql`], [`health`], [`dev_diagnostics`]: pages and answers that are no GraphQL.
//!
//! Nothing here knows a schema state, a plan of a request or who asks.

pub mod client_shares;
pub mod cors;
pub mod dev_diagnostics;
pub mod error;
pub mod error_rules;
pub mod graphiql;
pub mod header;
pub mod health;
pub mod json_value;
pub mod measured;
pub mod media;
pub mod proxies;
pub mod rate_state;
pub mod receive;
