//! Source text to AST: predictive (one token of look-ahead), error-recovering, without recursion.
//!
//! Reading order: this file (entry functions and the token cursor), `operations`, `values`, `type_system`,
//! `coordinate`, then `recovery` and `report` for what happens on errors.
//!
//! Invariants: everything nested to user-controlled depth (selection sets, values, list types) is parsed with
//! an explicit stack; children of nested kinds gather on one scratch stack and move to their arena in one
//! piece; every function that returns [`Failed`] has reported why; every loop consumes a token per turn.

use std::sync::Arc;

use crate::{
    Diagnostic, Document, Limits, SourceId, Span,
    ast::*,
    lexer::{Lexer, Token, TokenKind},
};

mod coordinate;
mod operations;
mod recovery;
pub(crate) mod report;
mod type_system;
mod values;

pub use coordinate::{SchemaCoordinate, parse_schema_coordinate};
use report::{Code, Report};

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
    let source: Arc<str> = source.into();
    let text = source.clone();
    let Some(mut parser) = Parser::start(&text, source_id, limits) else {
        return too_big(source, source_id, limits);
    };
    parser.document();
    parser.finish(source, source_id)
}

/// Parses a selection set without the outer braces, as in `@key(fields: "id org { id }")`, into a document
/// with one anonymous query operation.
pub fn parse_selection_set(
    source: impl Into<Arc<str>>,
    source_id: SourceId,
    limits: &Limits,
) -> Parsed {
    let source: Arc<str> = source.into();
    let text = source.clone();
    let Some(mut parser) = Parser::start(&text, source_id, limits) else {
        return too_big(source, source_id, limits);
    };
    parser.bare_selection_set();
    parser.finish(source, source_id)
}

/// Parses one value. `constant` forbids variables. The document owns the nodes.
pub fn parse_value(
    source: &str,
    constant: bool,
    limits: &Limits,
) -> Result<(Document, Value), Vec<Diagnostic>> {
    parse_whole(source, limits, |parser| parser.value(constant))
}

/// Parses one type reference such as `[Int!]!`.
pub fn parse_type_ref(
    source: &str,
    limits: &Limits,
) -> Result<(Document, TypeRef), Vec<Diagnostic>> {
    parse_whole(source, limits, Parser::type_ref)
}

/// Parses `source` as exactly one `T`.
fn parse_whole<'a, T>(
    source: &'a str,
    limits: &Limits,
    read: impl FnOnce(&mut Parser<'a>) -> Step<T>,
) -> Result<(Document, T), Vec<Diagnostic>> {
    let source_id = SourceId(0);
    let Some(mut parser) = Parser::start(source, source_id, limits) else {
        return Err(too_big("".into(), source_id, limits).errors);
    };
    let read = read(&mut parser).and_then(|node| {
        parser.expect(TokenKind::Eof)?;
        Ok(node)
    });
    let parsed = parser.finish(source.into(), source_id);
    match read {
        Ok(node) if parsed.errors.is_empty() => Ok((parsed.document, node)),
        _ => Err(parsed.errors),
    }
}

/// The answer to a text beyond the size limit; the text is kept so that the error can point into it.
fn too_big(source: Arc<str>, source_id: SourceId, limits: &Limits) -> Parsed {
    let bytes_max = source_bytes_max(limits);
    let mut report = Report::new(source_id, 1);
    report.push(
        Code::SourceBytesMax,
        (0, 0),
        format!("Document is larger than {bytes_max} bytes. Parsing aborted."),
        "",
    );
    Parsed {
        document: Document {
            source,
            source_id: Some(source_id),
            ..Document::default()
        },
        errors: report.into_errors(),
    }
}

/// Offsets are `u32`, whatever the limit says.
fn source_bytes_max(limits: &Limits) -> usize {
    limits.source_bytes_max.min(u32::MAX as usize - 1)
}

/// An error was reported and the caller's production cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed;

/// A production, or an error that was reported.
pub(crate) type Step<T> = Result<T, Failed>;

/// The token cursor and the arenas being filled.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The text; tokens are places in it.
    text: &'a str,
    /// The next token, not yet consumed.
    token: Token,
    /// Where the last consumed token ended.
    prev_end: u32,
    /// Open selection sets, values and list types.
    depth: u32,
    depth_max: u32,
    doc: Document,
    selections: operations::Scratch,
    values: values::Scratch,
}

impl<'a> Parser<'a> {
    /// A parser at the first token; `None` if the text is too long.
    fn start(text: &'a str, source_id: SourceId, limits: &Limits) -> Option<Self> {
        if text.len() > source_bytes_max(limits) {
            return None;
        }
        let report = Report::new(source_id, limits.errors_max);
        let mut lexer = Lexer::new(text, limits.tokens_max, report);
        let token = lexer.next();
        Some(Parser {
            lexer,
            text,
            token,
            prev_end: 0,
            depth: 0,
            depth_max: limits.depth_max,
            doc: Document::default(),
            selections: operations::Scratch::default(),
            values: values::Scratch::default(),
        })
    }

    fn finish(self, source: Arc<str>, source_id: SourceId) -> Parsed {
        let mut document = self.doc;
        document.tokens = self.lexer.tokens();
        document.source = source;
        document.source_id = Some(source_id);
        Parsed {
            document,
            errors: self.lexer.report.into_errors(),
        }
    }

    /// Definitions until the end of the text.
    fn document(&mut self) {
        if self.at(TokenKind::Eof) {
            self.unexpected();
        }
        while !self.at(TokenKind::Eof) {
            let start = self.token.start;
            match self.definition() {
                Ok(definition) => self.doc.definitions.push(definition),
                Err(Failed) => self.recover_to_definition(start),
            }
        }
    }

    fn definition(&mut self) -> Step<Definition> {
        if self.at(TokenKind::BraceL) {
            return self.shorthand_query();
        }
        let start = self.token.start;
        let description = self.description();
        let keyword = self.token;
        if keyword.kind != TokenKind::Name {
            if let (Some(description), TokenKind::BraceL) = (description, keyword.kind) {
                self.misplaced_description(
                    description,
                    "Unexpected description, descriptions are not supported on shorthand queries.",
                );
                return self.shorthand_query();
            }
            return Err(self.unexpected());
        }
        let head = Head { start, description };
        match self.keyword_text(keyword) {
            b"type" => self.object_type(head, false),
            b"input" => self.input_object_type(head, false),
            b"enum" => self.enum_type(head, false),
            b"interface" => self.interface_type(head, false),
            b"union" => self.union_type(head, false),
            b"scalar" => self.scalar_type(head, false),
            b"directive" => self.directive_definition(head),
            b"schema" => self.schema_definition(head),
            b"query" => self.operation(head, OperationKind::Query),
            b"mutation" => self.operation(head, OperationKind::Mutation),
            b"subscription" => self.operation(head, OperationKind::Subscription),
            b"fragment" => self.fragment(head),
            b"extend" => {
                if let Some(description) = description {
                    self.misplaced_description(description, NOT_DESCRIBABLE);
                }
                self.extension(head)
            }
            _ => {
                if let Some(description) = description {
                    self.misplaced_description(description, NOT_DESCRIBABLE);
                    // Said enough about this place.
                    return Err(Failed);
                }
                Err(self.unexpected())
            }
        }
    }

    fn extension(&mut self, head: Head) -> Step<Definition> {
        self.bump();
        let head = Head {
            description: None,
            ..head
        };
        if !self.at(TokenKind::Name) {
            return Err(self.unexpected());
        }
        match self.keyword_text(self.token) {
            b"type" => self.object_type(head, true),
            b"input" => self.input_object_type(head, true),
            b"enum" => self.enum_type(head, true),
            b"interface" => self.interface_type(head, true),
            b"union" => self.union_type(head, true),
            b"scalar" => self.scalar_type(head, true),
            b"schema" => self.schema_extension(head),
            _ => Err(self.unexpected()),
        }
    }

    /// An optional string before a definition.
    #[inline]
    fn description(&mut self) -> Option<StringValue> {
        let block = match self.token.kind {
            TokenKind::String => false,
            TokenKind::BlockString => true,
            _ => return None,
        };
        Some(StringValue {
            span: self.bump(),
            block,
        })
    }

    #[cold]
    fn misplaced_description(&mut self, description: StringValue, message: &str) {
        let span = description.span;
        self.lexer.report.push_with(
            Code::Syntax,
            (span.start as usize, span.end as usize),
            message.to_owned(),
            "this description describes nothing",
            |diagnostic, _| diagnostic.help("remove it, or turn it into a `#` comment"),
        );
        self.stop_if_full();
    }

    // The cursor.

    #[inline]
    fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    /// Consumes the current token and returns its place.
    #[inline]
    fn bump(&mut self) -> Span {
        let span = Span::new(self.token.start, self.token.end);
        self.prev_end = self.token.end;
        self.token = self.lexer.next();
        span
    }

    #[inline]
    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    #[inline]
    fn expect(&mut self, kind: TokenKind) -> Step<Span> {
        if self.at(kind) {
            Ok(self.bump())
        } else {
            Err(self.expected(kind.describe()))
        }
    }

    #[inline]
    fn name(&mut self) -> Step<Name> {
        let token = self.token;
        if token.kind == TokenKind::Name
            && let Some(name) = Name::new(token.start, token.end - token.start)
        {
            self.bump();
            return Ok(name);
        }
        Err(self.expected(TokenKind::Name.describe()))
    }

    /// The bytes of a token.
    #[inline]
    fn keyword_text(&self, token: Token) -> &'a [u8] {
        let bytes = self.text.as_bytes();
        bytes
            .get(token.start as usize..token.end as usize)
            .unwrap_or(&[])
    }

    /// Whether the next token is the name `keyword`.
    #[inline]
    fn at_keyword(&self, keyword: &str) -> bool {
        self.at(TokenKind::Name) && self.keyword_text(self.token) == keyword.as_bytes()
    }

    #[inline]
    fn eat_keyword(&mut self, keyword: &str) -> bool {
        let found = self.at_keyword(keyword);
        if found {
            self.bump();
        }
        found
    }

    #[inline]
    fn expect_keyword(&mut self, keyword: &'static str) -> Step<()> {
        if self.eat_keyword(keyword) {
            Ok(())
        } else {
            Err(self.expected(&format!("\"{keyword}\"")))
        }
    }

    /// From `start` to the end of the last consumed token.
    #[inline]
    fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.prev_end)
    }

    /// One level deeper; the caller restores `depth`.
    #[inline]
    fn enter(&mut self) -> Step<()> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(self.too_deep(self.depth_max));
        }
        Ok(())
    }
}

/// What precedes a definition's keyword.
#[derive(Clone, Copy)]
struct Head {
    start: u32,
    description: Option<StringValue>,
}

const NOT_DESCRIBABLE: &str =
    "Unexpected description, only GraphQL definitions support descriptions.";
