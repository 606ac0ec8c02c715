//! Reading supergraphs, seen from outside.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its case has failed"
)]

mod cases;
mod damage;
mod overrides;
mod requests;
mod scale;
mod scenarios;
