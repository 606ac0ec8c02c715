//! The one list of names that people and machines see: spans, error codes; and how logging is set up.
//!
//! A name that is not here does not exist: dashboards, alerts and clients switch on these words, so they are stable.
//!
//! Reading order: [`spans`] (the five stops), [`codes`] (every error code), [`log`] (the subscriber).

pub mod codes;
pub mod log;
pub mod spans;
