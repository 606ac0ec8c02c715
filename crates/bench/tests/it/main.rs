//! Tests of the lab itself: its files, its verdicts on gateways that misbehave on purpose, its accounting.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at what is unexpected; a role tells that it is ready"
)]

mod accounting;
mod committed;
mod continued;
mod events;
mod files;
mod helpers;
mod schedules;
mod verdicts;
