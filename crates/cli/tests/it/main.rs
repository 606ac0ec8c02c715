//! The `ogive` binary as a user meets it: what it prints, its exit code, signals.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod commands;
mod comparing;
mod composing;
mod config;
mod deploying;
mod developing;
mod idle;
mod measuring;
mod migrating;
mod operations;
mod page;
mod planning;
mod polling;
mod pressure;
mod process;
mod refusals;
mod reloading;
mod repairing;
mod resting;
mod scripts;
mod serving;
mod sharing;
mod soak;
mod statuses;
mod stuck;
mod swaps;
mod trusted_documents;
mod unfinished;
mod wrk;
