//! Hooks: code and services of the operator that see a request at its stages, and may change or end it.
//!
//! | hook | runs | module |
//! |---|---|---|
//! | coprocessor | in a service, asked by one POST per stage; the protocol is version 1 of Apollo Router's | [`coprocessor`] |
//! | Rhai scripts | in this process, with the objects that Apollo Router's public documentation describes | [`scripts`] |
//! | WebAssembly components | in this process, with the functions of the package `ogive:hooks` (`wit/hooks.wit`) | [`components`] |
//!
//! Reading order: [`stage`] (where hooks are called), [`Exchange`] (what a hook sees and may change), [`entries`] (the context that
//! the stages of one request share), [`headers`] (which headers a hook may change), [`HookEngine`] (hooks that run in this process),
//! [`worker_time`] (how their calls share the workers), and then the three kinds of hooks.

pub mod components;
pub mod coprocessor;
mod engine;
pub mod entries;
mod error;
mod exchange;
pub mod headers;
pub mod members;
pub mod scripts;
pub mod stage;
pub mod worker_time;

pub use coprocessor::{
    Coprocessor, CoprocessorOptions,
    message::{self, Message, MessageContext},
    reply::{self, Control, Reply},
};
pub use engine::{CallError, HookEngine};
pub use entries::{ContextEntries, ContextSelection};
pub use error::CoprocessorError;
pub use exchange::{Body, Break, Changes, Exchange, RequestHead};
pub use members::Members;
pub use stage::Stage;
pub use worker_time::{CallMode, WorkerTime};
