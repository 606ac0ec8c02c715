//! The pipeline without sockets: what comes back for every kind of request.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod authorization;
mod bad_input;
mod bundle;
mod cache;
mod graph;
mod labels;
mod memory;
mod pages;
mod plans;
mod setup;
mod streams;
