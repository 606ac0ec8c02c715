//! GraphQL source text to arena AST and back: lexer, error-recovering parser, printer.
//! Grammar: GraphQL specification, September 2025 edition, section 2 and appendix C.
//!
//! Reading order: [`ast`] (the data), `lexer`, `parser`, `printer`.

pub mod ast;
mod lexer;
mod literals;
mod parser;
mod printer;
mod string_value;

pub use ast::{Document, Name};
pub use literals::without_literals;
pub use ogive_base::{Diagnostic, SourceId, Span};
pub use parser::{
    Parsed, SchemaCoordinate, parse, parse_schema_coordinate, parse_selection_set, parse_type_ref,
    parse_value,
};
pub use printer::{print_definition, print_document, print_type_ref, print_value, write_string};
pub use string_value::escape_at;

/// Limits on one source text. Every limit is checked while reading, so memory stays proportional to what was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of source text; default 64 MiB (offsets are `u32`).
    pub source_bytes_max: usize,
    /// Most lexical tokens; default unlimited (`u32::MAX`); the gateway sets 15,000 for client documents.
    pub tokens_max: u32,
    /// Deepest nesting of selection sets, values and list types together; default 200.
    pub depth_max: u32,
    /// Most diagnostics before the parser gives up; default 50.
    pub errors_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            source_bytes_max: 64 << 20,
            tokens_max: u32::MAX,
            depth_max: 200,
            errors_max: 50,
        }
    }
}
