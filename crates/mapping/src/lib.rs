//! The mapping language of connectors: what turns the JSON of a service into fields of a type, and arguments into requests.
//!
//! The language is that of Apollo Connectors, `connect` v0.1 to v0.4, as its public documentation describes it;
//! `docs/mapping.md` is its reference here. Everything is pure: text and JSON bytes in, JSON bytes and messages out.
//!
//! Invariants: one text and one input give one output on any machine; every buffer, loop and recursion has a limit of
//! [`ParseLimits`] or [`RunLimits`]; a value that is missing because something went wrong has a [`Problem`]; values that
//! no method touches are copied byte for byte; values that are not read are not parsed; no value can change the host, the
//! number of path segments or parameters of a URL, or the lines of a header.
//!
//! Reading order: [`ast`] (what a mapping says), [`mod@parse`], [`mod@compile`] (checks, and the program), [`run`], [`template`]
//! (URLs and headers), [`connectors`] (`@source` and `@connect` of a schema document).

pub mod ast;
pub mod compile;
pub mod connectors;
mod diagnostics;
mod kinds;
mod limits;
mod method;
mod need;
mod origin;
pub mod parse;
mod program;
pub mod run;
pub mod shape;
pub mod template;
mod variable;
mod version;

pub use compile::{Compiled, Environment, compile};
pub use connectors::{Connector, ConnectorSource, Connectors, ReadConnectors, read_connectors};
pub use kinds::Kinds;
pub use limits::{ParseLimits, RunLimits};
pub use method::{METHODS, Method, MethodInfo};
pub use origin::{Located, Origin, locate_string};
pub use parse::{Parsed, parse};
pub use program::Program;
pub use run::{Failure, Inputs, Member, Outcome, Problem};
pub use shape::{FieldShape, ObjectShape, Shape, ShapeId, Shapes};
pub use template::{
    HeaderTemplate, ReadTemplate, RequestError, UrlLayer, UrlTemplate, build_url,
    parse_header_template, parse_url_template,
};
pub use variable::Variable;
pub use version::Version;
