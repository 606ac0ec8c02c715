//! The language, seen from outside: tables of cases, a reference beside it, and what no value may do.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set up its case should stop there"
)]

mod cases;
mod connectors;
mod generated;
mod hostile;
mod page;
mod reference;
mod requests;
mod shapes;
mod strings;
