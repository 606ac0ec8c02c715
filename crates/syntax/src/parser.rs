//! Source text to AST.

use std::sync::Arc;

use crate::{Diagnostic, Document, Limits, SourceId, ast::*};

/// What came out of a source text: always a document, plus everything that was wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// What could be read; definitions with errors may be missing.
    pub document: Document,
    /// Syntax errors in source order; empty means the text conforms to the grammar.
    pub errors: Vec<Diagnostic>,
}

/// Parses a document: operations, fragments, type system definitions and extensions in any mixture.
/// O(n) in the text; no recursion.
pub fn parse(source: impl Into<Arc<str>>, source_id: SourceId, limits: &Limits) -> Parsed {
    let _ = (source.into(), source_id, limits);
    todo!()
}

/// Parses a selection set without the outer braces, as in `@key(fields: "id org { id }")`, into a document
/// with one anonymous query operation.
pub fn parse_selection_set(
    source: impl Into<Arc<str>>,
    source_id: SourceId,
    limits: &Limits,
) -> Parsed {
    let _ = (source.into(), source_id, limits);
    todo!()
}

/// Parses one value. `constant` forbids variables. The document owns the nodes.
pub fn parse_value(
    source: &str,
    constant: bool,
    limits: &Limits,
) -> Result<(Document, Value), Vec<Diagnostic>> {
    let _ = (source, constant, limits);
    todo!()
}

/// Parses one type reference such as `[Int!]!`.
pub fn parse_type_ref(
    source: &str,
    limits: &Limits,
) -> Result<(Document, TypeRef), Vec<Diagnostic>> {
    let _ = (source, limits);
    todo!()
}

/// Parses a schema coordinate such as `Query.user(id:)` or `@deprecated(reason:)` (specification 2.14).
pub fn parse_schema_coordinate(source: &str) -> Result<SchemaCoordinate, Vec<Diagnostic>> {
    let _ = source;
    todo!()
}

/// A schema coordinate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaCoordinate {
    /// `Type`
    Type(String),
    /// `Type.member`: a field, input field or enum value.
    Member(String, String),
    /// `Type.field(arg:)`
    Argument(String, String, String),
    /// `@directive`
    Directive(String),
    /// `@directive(arg:)`
    DirectiveArgument(String, String),
}
