//! The executor on hand-written plans and a scripted transport.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod arriving;
mod bounds;
mod completeness;
mod conditions;
mod context;
mod deferred;
mod entities;
mod events;
mod faults;
#[path = "../../../plan/tests/it/fixture.rs"]
mod fixture;
mod leaves;
mod lies;
mod limits;
mod lookups;
mod merging;
mod nulls;
mod order;
mod passing;
mod reentry;
mod restrictions;
mod reuse;
mod script;
mod simple;
mod split;
mod types;
