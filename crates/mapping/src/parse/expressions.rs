//! Expressions: literals, paths, fallbacks.

use super::{
    Parser,
    lexer::{TokenKind, number_as_json, string_text},
};
use crate::{
    ast::{
        Entry, EntryKind, ExprId, ExprKind, Fallback, FallbackOperator, MethodCall, Path, PathRoot,
        Step, StepKind,
    },
    version::Version,
};
use ogive_base::Span;

impl Parser<'_> {
    /// Operands with `??` or `?!` between them.
    pub(super) fn expression(&mut self) -> ExprId {
        let start = self.token().span.start;
        let first = self.operand();
        let Some(operator) = operator_of(self.peek()) else {
            return first;
        };
        let mut operands = vec![first];
        while let Some(next) = operator_of(self.peek()) {
            let span = self.next().span;
            if next != operator {
                self.report_with_help(
                    span,
                    "`??` and `?!` cannot be mixed",
                    "group one of them with `$(…)`",
                );
            }
            self.check_absence_operator(span);
            operands.push(self.operand());
        }
        let span = self.span_from(start);
        self.add(span, ExprKind::Fallback(Fallback { operator, operands }))
    }

    fn operand(&mut self) -> ExprId {
        let token = self.token();
        let expr = self.deeper(None, |parser| {
            Some(parser.operand_at(token.kind, token.span))
        });
        expr.unwrap_or_else(|| self.add(token.span, ExprKind::Invalid))
    }
    fn operand_at(&mut self, kind: TokenKind, span: Span) -> ExprId {
        let text = self.slice(span);
        let literal = match kind {
            TokenKind::Identifier => match text {
                "null" => ExprKind::Null,
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                _ => return self.path_selection(),
            },
            TokenKind::Number => ExprKind::Number(number_as_json(text)),
            TokenKind::String(closed) => {
                let text = string_text(text);
                self.check_closed(span, closed);
                ExprKind::String(text)
            }
            TokenKind::BracketOpen => {
                self.next();
                let items = self.items(TokenKind::BracketClose, "]", span);
                let list = self.add(self.span_from(span.start), ExprKind::List(items));
                return self.literal_path(list);
            }
            TokenKind::BraceOpen => {
                let object = self.braces();
                return self.literal_path(object);
            }
            TokenKind::Dollar | TokenKind::Variable | TokenKind::Group | TokenKind::At => {
                return self.path_selection();
            }
            _ => {
                self.unexpected("an expression");
                return self.add(span, ExprKind::Invalid);
            }
        };
        self.next();
        let literal = self.add(span, literal);
        self.literal_path(literal)
    }

    /// A literal, with the steps behind it if there are any.
    fn literal_path(&mut self, literal: ExprId) -> ExprId {
        if !matches!(
            self.peek(),
            TokenKind::Dot | TokenKind::Arrow | TokenKind::Question
        ) {
            return literal;
        }
        let span = self.exprs[literal].span;
        self.path_from(PathRoot::Group(literal), span)
    }

    /// An object between braces inside an expression: before version 0.4 every member has a key and an expression.
    fn braces(&mut self) -> ExprId {
        if self.version.has_one_syntax() {
            return self.selection();
        }
        let open = self.next().span;
        let mut entries: Vec<Entry> = Vec::new();
        while !matches!(self.peek(), TokenKind::BraceClose | TokenKind::End) {
            let key = self.token();
            if !matches!(key.kind, TokenKind::Identifier | TokenKind::String(_)) {
                self.unexpected("a key");
                break;
            }
            self.next();
            let name = self.key_text(key);
            if !self.take(TokenKind::Colon) {
                self.report_with_help(
                    self.token().span,
                    format!("expected `:`, found {}", self.shown()),
                    "before connect v0.4 a member of an object literal needs a key and a value",
                );
                break;
            }
            let value = self.expression();
            entries.push(Entry {
                span: self.span_from(key.span.start),
                kind: EntryKind::Named(name),
                value,
            });
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::BraceClose, "}", open);
        self.skip_to_close(open, TokenKind::BraceClose);
        self.add(self.span_from(open.start), ExprKind::Object(entries))
    }

    /// After a mistake inside brackets: reads on behind the bracket that closes them, if it comes.
    fn skip_to_close(&mut self, open: Span, close: TokenKind) {
        let closed = self.tokens[..self.at].last();
        if closed.is_some_and(|token| token.kind == close && token.span.start > open.start) {
            return;
        }
        let mut depth = 1;
        for (ahead, token) in self.tokens[self.at..].iter().enumerate() {
            match token.kind {
                TokenKind::BraceOpen
                | TokenKind::BracketOpen
                | TokenKind::ParenOpen
                | TokenKind::Group => depth += 1,
                TokenKind::BraceClose | TokenKind::BracketClose | TokenKind::ParenClose => {
                    depth -= 1;
                }
                _ => {}
            }
            if depth == 0 {
                self.at += ahead + 1;
                return;
            }
        }
    }

    /// Expressions with commas between them, up to the bracket that closes them.
    fn items(&mut self, close: TokenKind, shown: &str, open: Span) -> Vec<ExprId> {
        let mut items = Vec::new();
        while self.peek() != close && self.peek() != TokenKind::End {
            let before = self.at;
            items.push(self.expression());
            if !self.take(TokenKind::Comma) || self.at == before {
                break;
            }
        }
        self.close(close, shown, open);
        self.skip_to_close(open, close);
        items
    }

    /// `{ … }` with entries.
    pub(super) fn selection(&mut self) -> ExprId {
        let open = self.next().span;
        let entries = self.deeper(Vec::new(), |parser| parser.entries(Some(open)));
        self.add(self.span_from(open.start), ExprKind::Object(entries))
    }

    /// A path that does not begin with a literal.
    pub(super) fn path_selection(&mut self) -> ExprId {
        let token = self.next();
        let root = match token.kind {
            TokenKind::Dollar => PathRoot::Dollar,
            TokenKind::At => PathRoot::At,
            TokenKind::Variable => PathRoot::Variable(self.slice(token.span)[1..].into()),
            TokenKind::Group => {
                let inner = self.deeper(None, |parser| Some(parser.expression()));
                let inner = inner.unwrap_or_else(|| self.add(token.span, ExprKind::Invalid));
                self.close(TokenKind::ParenClose, ")", token.span);
                self.skip_to_close(token.span, TokenKind::ParenClose);
                PathRoot::Group(inner)
            }
            _ => PathRoot::Key(self.key_text(token)),
        };
        let root_span = self.span_from(token.span.start);
        self.path_from(root, root_span)
    }

    /// What stands behind the root of a path.
    fn path_from(&mut self, root: PathRoot, root_span: Span) -> ExprId {
        let optional = self.question();
        let mut steps = Vec::new();
        loop {
            let token = self.token();
            let kind = match token.kind {
                TokenKind::Dot => self.key_step(),
                TokenKind::Arrow => self.method_step(),
                _ => break,
            };
            let Some(kind) = kind else { break };
            let span = self.span_from(token.span.start);
            let optional = self.question();
            steps.push(Step {
                span,
                optional,
                kind,
            });
        }
        let selection = (self.peek() == TokenKind::BraceOpen).then(|| self.selection());
        let path = Path {
            root,
            root_span,
            optional,
            steps,
            selection,
        };
        self.add(self.span_from(root_span.start), ExprKind::Path(path))
    }

    fn key_step(&mut self) -> Option<StepKind> {
        self.next();
        let token = self.token();
        if !matches!(token.kind, TokenKind::Identifier | TokenKind::String(_)) {
            let found = self.shown();
            self.report_with_help(
                token.span,
                format!("expected a key behind `.`, found {found}"),
                "a key that does not begin with a letter needs quotes",
            );
            return None;
        }
        self.next();
        Some(StepKind::Key(self.key_text(token)))
    }

    fn method_step(&mut self) -> Option<StepKind> {
        self.next();
        let token = self.token();
        if token.kind != TokenKind::Identifier {
            self.unexpected("the name of a method behind `->`");
            return None;
        }
        self.next();
        let name = self.slice(token.span).into();
        let open = self.token().span;
        let arguments = if self.take(TokenKind::ParenOpen) {
            self.items(TokenKind::ParenClose, ")", open)
        } else {
            Vec::new()
        };
        Some(StepKind::Method(MethodCall { name, arguments }))
    }

    fn question(&mut self) -> bool {
        let span = self.token().span;
        let found = self.take(TokenKind::Question);
        if found {
            self.check_absence_operator(span);
        }
        found
    }
    fn check_absence_operator(&mut self, span: Span) {
        if !self.version.has_absence_operators() {
            let message = format!("`{}` needs {}", self.slice(span), Version::V0_3);
            self.report(span, message);
        }
    }
}

fn operator_of(kind: TokenKind) -> Option<FallbackOperator> {
    match kind {
        TokenKind::Nullish => Some(FallbackOperator::Nullish),
        TokenKind::Missing => Some(FallbackOperator::Missing),
        _ => None,
    }
}
