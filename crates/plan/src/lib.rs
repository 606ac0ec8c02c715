//! The immutable query plan: a DAG of fetches, request templates, response shapes, representation programs and the
//! output program. Pure data plus its text form and verifier; knows neither the search that found it nor the
//! executor that runs it.
//!
//! Reading order: [`ir`] (the data), [`mod@text`] (for people), [`json_form`] (for tools), [`mod@verify`] (what must
//! hold), [`describe`] (words shared by them).

pub mod describe;
pub mod ir;
pub mod json_form;
pub mod text;
pub mod verify;

pub use ir::*;
pub use json_form::json;
pub use text::text;
pub use verify::verify;
