//! Tokens, key sets and what keeps them up.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod forged;
mod judged;
mod kept_up;
mod key_sets;
mod made;
mod parsing;
