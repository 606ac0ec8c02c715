//! Tests of the public interface: files with their expected outcome, limits, spans, printing.
#![allow(clippy::unwrap_used, reason = "a failed test is the point")]

mod cases;
mod limits;
mod oracle;
mod printing;
mod spans;
