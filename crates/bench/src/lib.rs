//! The benchmark lab: it drives any gateway as a process, checks what it answers, measures it from outside and writes
//! a report. It links no gateway crate, so that what it measures is what users run.
//!
//! Reading order: [`model`] (gateways, scenarios, graphs: files under `bench/`), [`install`], [`schedule`]
//! (what, how long), [`campaign`] (in which order), [`run`] (one run from start to verdict), [`load`] (generators), [`events`] (subscribers and their source), [`process`] and [`usage`] (what the
//! operating system tells), [`verify`] (answers), [`record`] (what is kept), [`places`] (what is not), [`report`] (what people read).
//!
//! Invariants: a wrong answer is never a fast answer; nothing is left out silently; a result is on disk before the
//! next run starts; what is measured is never parsed, compared or written while it is measured.

pub mod campaign;
pub mod check;
pub mod error;
pub mod events;
pub mod http;
pub mod install;
pub mod load;
pub mod machine;
pub mod model;
pub mod places;
pub mod process;
pub mod progress;
pub mod record;
pub mod report;
pub mod rest;
pub mod run;
pub mod schedule;
pub mod stage;
pub mod template;
pub mod units;
pub mod usage;
pub mod verify;

pub use error::{Error, Result};
