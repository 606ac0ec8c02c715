//! A GraphQL subgraph from SDL and data: the stub of every test and benchmark, and the independent oracle of the
//! differential tests (the same engine over the merged schema).
//!
//! It follows the specification's section 6 to the letter and shares no execution or coercion code with the gateway.
//!
//! Reading order: [`subgraph`] (one subgraph, pure), `engine` (execution), [`model`] and `sdl` (schema and federation
//! facts), [`data`] and [`generate`] (values), [`service`] (many subgraphs, faults, counters), [`http`] (sockets), `timer` (delays),
//! [`config`] and [`assemble`](mod@assemble) (files).

pub mod assemble;
pub mod config;
pub mod custom;
pub mod data;
pub mod delay;
pub(crate) mod engine;
pub mod events;
pub mod fault;
pub mod field_fault;
pub mod generate;
pub mod http;
mod input;
pub mod model;
mod node;
mod resolver;
mod sdl;
pub mod service;
pub mod subgraph;
mod timer;
pub mod yaml;

pub use assemble::{AssembleError, Assembled, assemble};
pub use config::{Config, ConfigError, Sdl, SubgraphConfig};
pub use custom::{CustomSource, CustomValue};
pub use data::{Data, DataError};
pub use delay::Delay;
pub use events::{EventFault, EventFaultKind, EventSchedule};
pub use fault::{Fault, FaultKind};
pub use generate::{Generator, GeneratorOptions};
pub use http::Server;
pub use model::{Model, SdlError};
pub use node::{CustomObject, FieldError, Generated};
pub use resolver::Source;
pub use sdl::{Federation, Vocabulary};
pub use service::{Reply, Service, Settings, Transfer};
pub use subgraph::{Answer, Options, Subgraph};
