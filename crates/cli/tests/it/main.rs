//! The `ogive` binary as a user meets it: what it prints, its exit code, signals.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod chart;
mod commands;
mod comparing;
mod compose_file;
mod composing;
mod config;
mod deploying;
mod developing;
mod health;
mod idle;
mod measuring;
mod migrating;
mod new;
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
