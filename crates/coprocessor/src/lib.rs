//! Coprocessors: services of the operator that are told of a request at its stages, and may change or end it. The protocol
//! is version 1 of Apollo Router's, as its public documentation describes it.
//!
//! One stage is one POST: a [`Message`] goes out, a [`Reply`] comes back. A message has what the stage's options select and
//! nothing else; what a reply does not mention stays as it is. Bodies travel as they are written, so numbers and the order
//! of members survive unless the coprocessor itself changes them.
//!
//! Reading order: [`stage`] (where a coprocessor is asked), [`message`] (what it is told), [`reply`] (what it says),
//! [`entries`] (the context that its stages share), [`headers`] (which of the headers it may change), [`service`] (asking
//! it), [`error`](CoprocessorError).

pub mod entries;
mod error;
pub mod headers;
pub mod message;
pub mod reply;
pub mod service;
pub mod stage;
pub mod worker_time;

pub use entries::{ContextEntries, ContextSelection};
pub use error::CoprocessorError;
pub use message::{Message, MessageBody, MessageContext};
pub use reply::{Control, Reply, ReplyBody};
pub use service::{Coprocessor, CoprocessorOptions};
pub use stage::Stage;
pub use worker_time::{CallMode, WorkerTime};
