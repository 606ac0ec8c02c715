//! What a path leads to: the GraphQL endpoint, pages for people, health.

pub mod cors;
pub mod dev_diagnostics;
pub(crate) mod graphiql;
