//! AST to canonical source text.

use crate::ast::*;

/// Prints a whole document, definitions separated by one empty line, two-space indentation,
/// `print(parse(print(d))) == print(d)`.
pub fn print_document(document: &Document) -> String {
    let _ = document;
    todo!()
}

/// Prints one definition without trailing newline.
pub fn print_definition(document: &Document, definition: &Definition) -> String {
    let _ = (document, definition);
    todo!()
}

/// Prints one value on one line.
pub fn print_value(document: &Document, value: &Value) -> String {
    let _ = (document, value);
    todo!()
}
