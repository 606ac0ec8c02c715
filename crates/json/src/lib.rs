//! Scanning, slicing and writing of JSON bytes for the hot path. Knows nothing of GraphQL.
//!
//! Nothing here builds a tree: a [`Scanner`] walks validated tokens and hands out byte ranges, so that values can be
//! copied verbatim. No function allocates per value and none recurses.
//!
//! Reading order: [`scan`] (reading), [`pattern`] (reading what is expected), [`lanes`] (vector instructions), [`text`] (string contents), [`write`] (writing).

mod cursor;
pub mod lanes;
pub mod pattern;
pub mod scan;
pub mod text;
pub mod write;

pub use lanes::Level;
pub use pattern::{Conditions, Pattern, PatternField, PatternScalar, PatternValue};
pub use scan::{Kind, Number, ScanError, ScanErrorKind, Scanner};
pub use text::JsonStr;
pub use write::{Writer, write_string, write_string_content};
