//! Scanning, slicing and writing of JSON bytes for the hot path. Knows nothing of GraphQL.
//!
//! Nothing here builds a tree of allocations: a [`Scanner`] walks validated tokens and hands out byte ranges, so that values
//! can be copied verbatim; a [`Tree`] is a table of such ranges. No function recurses, and none allocates per value but
//! [`read_value`], for texts of few bytes that are looked at as a whole.
//!
//! Reading order: [`scan`] (reading), [`error`] (why something is no JSON), [`tree`] (reading in any order), [`pattern`]
//! (reading what is expected), [`unfinished`] (while it arrives), [`key`] (keys that are known before), [`mod@compact`]
//! (white space), [`cursor`] (tokens), [`lanes`] (vector instructions), [`text`] (string contents), [`mod@write`] (writing),
//! [`value`] (as values of `serde_json`).

pub mod compact;
pub mod cursor;
pub mod error;
pub mod key;
pub mod lanes;
pub mod pattern;
pub mod scan;
pub mod text;
pub mod tree;
pub mod unfinished;
pub mod value;
pub mod write;

pub use compact::{compact, is_spaced};
pub use cursor::Cursor;
pub use error::{ScanError, ScanErrorKind};
pub use key::{Key, append_short};
pub use lanes::Level;
pub use pattern::{Conditions, Open, Pattern, PatternField, PatternScalar, PatternValue, Tally};
pub use scan::{Kind, Number, Scanner};
pub use text::JsonStr;
pub use tree::{Node, Tree};
pub use unfinished::{Advance, Unfinished};
pub use value::{Strictness, ValueError, read_value};
pub use write::{Writer, write_string, write_string_content};
