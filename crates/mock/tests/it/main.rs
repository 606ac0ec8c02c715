//! Tests of the mock as its users see it: published scenarios, engine cases from files, generation, real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod cases;
mod data;
mod demo;
mod docs;
mod events;
mod federation;
mod generate;
mod http;
mod scenarios;
mod support;
