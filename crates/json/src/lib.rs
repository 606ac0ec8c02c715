//! Scanning, slicing and writing of JSON bytes for the hot path. Knows nothing of GraphQL.
//!
//! Nothing here builds a tree: a [`Scanner`] walks validated tokens and hands out byte ranges, so that values can be
//! copied verbatim. No function allocates per value and none recurses.
//!
//! Reading order: [`scan`] (reading), [`text`] (string contents), [`write`] (writing).

pub mod scan;
pub mod text;
pub mod write;

pub use scan::{Kind, Number, ScanError, ScanErrorKind, Scanner};
pub use text::JsonStr;
pub use write::{Writer, write_string, write_string_content};
