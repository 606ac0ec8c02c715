//! Coprocessors: services of the operator that are told of a request at its stages. The protocol is version 1 of Apollo
//! Router's, as its public documentation describes it.
//!
//! One stage is one POST: a [`Message`](message::Message) goes out, a [`Reply`](reply::Reply) comes back. A message has what the
//! stage's options select and nothing else; what a reply does not mention stays as it is. Bodies travel as they are written, so
//! numbers and the order of members survive unless the coprocessor itself changes them.

pub mod message;
pub mod reply;
pub mod service;

pub use service::{Coprocessor, CoprocessorOptions};
