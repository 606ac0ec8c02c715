//! Parsing: text to [`Mapping`], with a diagnostic for each mistake.
//!
//! The parser never stops at the first mistake: it reports, skips to where an entry can begin, and goes on. It descends
//! recursively, to [`ParseLimits::depth_max`] at most.
//!
//! Version 0.4 has one syntax. Before, an entry's value is a path or a group, and literals stand inside `$(…)` and
//! arguments only; the two functions that differ are [`Parser::entry_value`] and [`Parser::braces`].

mod entries;
mod expressions;
mod lexer;

use ogive_base::{Diagnostic, IdVec, Span};

use crate::{
    ast::{EntryKind, Expr, ExprId, ExprKind, Mapping, PathRoot, Root},
    limits::ParseLimits,
    origin::Origin,
    version::Version,
};
use lexer::{Token, TokenKind};

/// Code of a mapping that is no text of the language.
pub const INVALID_SYNTAX: &str = "CONNECTORS_INVALID_MAPPING";

/// A mapping, and what is wrong with its text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The mapping; parts with mistakes are [`ExprKind::Invalid`] or missing.
    pub mapping: Mapping,
    /// One per mistake, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a mapping.
pub fn parse(text: &str, origin: &Origin, version: Version, limits: &ParseLimits) -> Parsed {
    let mut parser = Parser {
        text,
        tokens: Vec::new(),
        at: 0,
        version,
        limits,
        depth: 0,
        exprs: IdVec::new(),
        origin,
        diagnostics: Vec::new(),
    };
    let whole = Span::new(0, u32::try_from(text.len()).unwrap_or(u32::MAX));
    let root = if text.len() > limits.text_bytes_max {
        parser.report(
            whole,
            format!(
                "a mapping of {} bytes is too long: at most {} bytes are allowed",
                text.len(),
                limits.text_bytes_max
            ),
        );
        Root::Value(parser.add(whole, ExprKind::Invalid))
    } else {
        parser.tokens = lexer::tokens(text);
        parser.root(whole)
    };
    Parsed {
        mapping: Mapping {
            version,
            exprs: parser.exprs,
            root,
        },
        diagnostics: parser.diagnostics,
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// The next token.
    at: usize,
    version: Version,
    limits: &'t ParseLimits,
    depth: u32,
    exprs: IdVec<ExprId, Expr>,
    origin: &'t Origin,
    diagnostics: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn root(&mut self, whole: Span) -> Root {
        if self.version.has_one_syntax()
            && let Some(expr) = self.whole_expression()
        {
            return Root::Value(expr);
        }
        let entries = self.entries(None);
        if let [only] = entries.as_slice()
            && matches!(only.kind, EntryKind::Unnamed)
        {
            // One path is evaluated once, even if the body is a list.
            return Root::Value(only.value);
        }
        let expr = self.add(whole, ExprKind::Object(entries));
        Root::Selection(expr)
    }

    /// The whole text as one expression that is no list of entries; reads nothing if it is none.
    fn whole_expression(&mut self) -> Option<ExprId> {
        let (at, diagnostics) = (self.at, self.diagnostics.len());
        let expr = self.expression();
        let is_whole = self.peek() == TokenKind::End && self.diagnostics.len() == diagnostics;
        // Braces and brackets begin no entry, so mistakes inside are those of an expression.
        let begins_literal = matches!(
            self.tokens.get(at).map(|token| token.kind),
            Some(TokenKind::BraceOpen | TokenKind::BracketOpen | TokenKind::Number)
        );
        if begins_literal {
            self.expect_end();
            return Some(expr);
        }
        let is_entry = match &self.exprs[expr].kind {
            ExprKind::Path(_) | ExprKind::Invalid => true,
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::List(_)
            | ExprKind::Object(_)
            | ExprKind::Fallback(_) => false,
        };
        // A literal with steps is a path, too, but in the list of entries it would be a key.
        let is_literal_path = matches!(
            &self.exprs[expr].kind,
            ExprKind::Path(path) if matches!(path.root, PathRoot::Group(_))
        );
        if is_whole && (!is_entry || is_literal_path) {
            return Some(expr);
        }
        self.at = at;
        self.diagnostics.truncate(diagnostics);
        None
    }

    fn expect_end(&mut self) {
        if self.peek() != TokenKind::End {
            self.unexpected("the end of the mapping");
        }
    }

    // Tokens.

    fn token(&self) -> Token {
        // The last token is the end, and is never passed.
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }
    fn peek(&self) -> TokenKind {
        self.token().kind
    }
    fn peek_second(&self) -> TokenKind {
        let token = self.tokens.get(self.at + 1);
        token.map_or(TokenKind::End, |token| token.kind)
    }
    fn next(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }
    /// Takes the next token if it is of that kind.
    fn take(&mut self, kind: TokenKind) -> bool {
        let takes = self.peek() == kind;
        if takes {
            self.next();
        }
        takes
    }
    /// Takes the token that closes what `open` began, or reports that it is not there.
    fn close(&mut self, kind: TokenKind, shown: &str, open: Span) {
        if self.take(kind) {
            return;
        }
        let found = self.shown();
        self.report_at(
            self.token().span,
            format!("expected `{shown}`, found {found}"),
            |diagnostic, origin| {
                diagnostic.label(origin.source(), origin.span(open), "opened here")
            },
        );
    }
    /// End of the token before the next one.
    fn end(&self) -> u32 {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(0, |token| token.span.end)
    }
    fn slice(&self, span: Span) -> &str {
        &self.text[span.range()]
    }
    fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.end().max(start))
    }

    fn add(&mut self, span: Span, kind: ExprKind) -> ExprId {
        self.exprs.push(Expr { span, kind })
    }

    // Diagnostics.

    /// Whether so many mistakes were reported that reading on is of no use.
    fn gives_up(&self) -> bool {
        self.diagnostics.len() >= self.limits.diagnostics_max
    }
    fn report(&mut self, span: Span, message: impl Into<String>) {
        self.report_at(span, message, |diagnostic, _| diagnostic);
    }
    fn report_with_help(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.report_at(span, message, |diagnostic, _| diagnostic.help(help));
    }
    fn report_at(
        &mut self,
        span: Span,
        message: impl Into<String>,
        complete: impl FnOnce(Diagnostic, &Origin) -> Diagnostic,
    ) {
        if self.gives_up() {
            // Nothing more is parsed.
            self.at = self.tokens.len().saturating_sub(1);
            return;
        }
        let diagnostic = Diagnostic::error(INVALID_SYNTAX, message).label(
            self.origin.source(),
            self.origin.span(span),
            "",
        );
        self.diagnostics.push(complete(diagnostic, self.origin));
    }
    fn unexpected(&mut self, expected: &str) {
        let found = self.shown();
        self.report(
            self.token().span,
            format!("expected {expected}, found {found}"),
        );
    }
    /// The next token as it is shown in messages.
    fn shown(&self) -> String {
        let token = self.token();
        match token.kind {
            TokenKind::End => "the end of the mapping".to_owned(),
            _ => format!("`{}`", ogive_base::bounded(self.slice(token.span), 40)),
        }
    }

    /// Runs `then` one level deeper, or reports that it is too deep.
    fn deeper<T>(&mut self, otherwise: T, then: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= self.limits.depth_max {
            let message = format!(
                "expressions are nested too deeply: at most {} levels are allowed",
                self.limits.depth_max
            );
            self.report(self.token().span, message);
            self.at = self.tokens.len().saturating_sub(1);
            return otherwise;
        }
        self.depth += 1;
        let result = then(self);
        self.depth -= 1;
        result
    }
}

/// Where the brace stands that closes one whose inside begins at `start`.
pub(crate) fn closing_brace(text: &str, start: usize) -> Option<usize> {
    lexer::closing_brace(&text[start..]).map(|at| start + at)
}
