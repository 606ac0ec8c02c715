//! Verifier and written forms, on hand-written plans.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod encode;
mod fixture;
mod forms;
mod verify;
mod views;
