//! What happens after an error: telling it, and finding the next place worth reading.
//!
//! Inside braces that is the next member on a line of its own or the closing brace; at the top it is the next
//! definition keyword outside all braces. A definition keyword in column one followed by a name ends whatever
//! was left open, so one missing brace costs one error.
//! All of this runs only on errors, at most `errors_max` times.

use super::{Failed, Parser, Step, report::Code, type_system::DIRECTIVE_LOCATIONS};
use crate::{
    Span,
    ast::StringValue,
    lexer::{Token, TokenKind},
    string_value::string_value,
};

/// Most characters of a token that an error message repeats.
const FOUND_CHARS_MAX: usize = 100;

/// Most nested brackets that resynchronisation keeps apart; deeper ones are not told from each other.
const RESYNC_DEPTH_MAX: usize = 100;

impl Parser<'_> {
    /// "Expected X, found Y" at the next token.
    #[cold]
    pub(super) fn expected(&mut self, what: &str) -> Failed {
        let message = format!("Expected {what}, found {}.", self.describe(self.token));
        self.fail(Code::Syntax, message, format!("expected {what}"))
    }

    /// "Unexpected Y" at the next token.
    #[cold]
    pub(super) fn unexpected(&mut self) -> Failed {
        let found = self.describe(self.token);
        let label = match self.token.kind {
            TokenKind::Eof => "the text ends here".to_owned(),
            kind => format!("unexpected {}", kind.describe()),
        };
        self.fail(Code::Syntax, format!("Unexpected {found}."), label)
    }

    #[cold]
    pub(super) fn too_deep(&mut self, max: u32) -> Failed {
        let message = format!("Document is nested deeper than {max} levels. Parsing aborted.");
        let failed = self.fail(Code::DepthMax, message, "one level too deep".to_owned());
        self.give_up();
        failed
    }

    #[cold]
    pub(super) fn variable_in_constant(&mut self, dollar: Token) -> Failed {
        if self.at(TokenKind::Name) {
            let name = &self.text[self.token.start as usize..self.token.end as usize];
            let message = format!("Unexpected variable \"${name}\" in constant value.");
            let place = (dollar.start as usize, self.token.end as usize);
            self.lexer.report.push(
                Code::Syntax,
                place,
                message,
                "only constants are allowed here",
            );
        } else {
            let place = (dollar.start as usize, dollar.end as usize);
            let message = "Unexpected \"$\".".to_owned();
            self.lexer.report.push(
                Code::Syntax,
                place,
                message,
                "only constants are allowed here",
            );
        }
        self.stop_if_full();
        Failed
    }

    #[cold]
    pub(super) fn reserved_enum_value(&mut self) -> Failed {
        let name = &self.text[self.token.start as usize..self.token.end as usize];
        let message = format!("Name \"{name}\" is reserved and cannot be used for an enum value.");
        self.fail(Code::Syntax, message, "reserved name".to_owned())
    }

    #[cold]
    pub(super) fn unknown_location(&mut self) -> Failed {
        let message = format!("Unexpected {}.", self.describe(self.token));
        let place = (self.token.start as usize, self.token.end as usize);
        self.lexer.report.push_with(
            Code::Syntax,
            place,
            message,
            "not a directive location",
            |diagnostic, _| {
                let known = DIRECTIVE_LOCATIONS.join(", ");
                diagnostic.help(format!("the directive locations are {known}"))
            },
        );
        self.stop_if_full();
        Failed
    }

    #[cold]
    fn fail(&mut self, code: Code, message: String, label: String) -> Failed {
        if code == Code::Syntax && self.lexer.report.forgive() {
            return Failed;
        }
        let place = (self.token.start as usize, self.token.end as usize);
        self.lexer.report.push(code, place, message, label);
        self.stop_if_full();
        Failed
    }

    /// Reads no further if there are as many errors as allowed.
    #[cold]
    pub(super) fn stop_if_full(&mut self) {
        if self.lexer.report.is_full() {
            self.give_up();
        }
    }

    /// Makes the rest of the text invisible.
    #[cold]
    fn give_up(&mut self) {
        self.lexer.stop();
        self.token = self.lexer.next();
    }

    /// A token as error messages show it, e.g. `Name "x"`.
    fn describe(&self, token: Token) -> String {
        let kind = token.kind.describe();
        let text = &self.text[token.start as usize..token.end as usize];
        let value = match token.kind {
            TokenKind::Name | TokenKind::Int | TokenKind::Float => text.into(),
            TokenKind::String => string_value(text, false),
            TokenKind::BlockString => string_value(text, true),
            _ => return kind.to_owned(),
        };
        match value.char_indices().nth(FOUND_CHARS_MAX) {
            Some((cut, _)) => format!("{kind} \"{}…\"", &value[..cut]),
            None => format!("{kind} \"{value}\""),
        }
    }

    /// After a failed member that began at `start` in the braces opened at `open`: goes to `close` or the next
    /// member. Fails where the whole definition has to be given up.
    #[cold]
    pub(super) fn recover_in_braces(
        &mut self,
        start: u32,
        open: u32,
        close: TokenKind,
    ) -> Step<()> {
        // `type A {` without end, then `type B {`: the member is a definition.
        if start < self.token.start && self.begins_definition_in_column_one(start) {
            self.seek(start);
            self.unclosed(open);
            return Err(Failed);
        }
        let mut brackets = self.brackets_between(start, self.token.start);
        let mut may_stop = start < self.token.start;
        loop {
            match self.token.kind {
                TokenKind::Eof if close == TokenKind::Eof => return Ok(()),
                TokenKind::Eof => {
                    self.unclosed(open);
                    return Err(Failed);
                }
                TokenKind::BraceR
                    if !brackets.contains(&TokenKind::BraceL) && close == TokenKind::BraceR =>
                {
                    return Ok(());
                }
                TokenKind::Name
                    if may_stop && self.begins_definition_in_column_one(self.token.start) =>
                {
                    self.unclosed(open);
                    return Err(Failed);
                }
                TokenKind::Name
                | TokenKind::Spread
                | TokenKind::String
                | TokenKind::BlockString
                    if may_stop
                        && brackets.is_empty()
                        && self.is_first_on_line(self.token.start) =>
                {
                    return Ok(());
                }
                kind => track(&mut brackets, kind),
            }
            self.bump();
            may_stop = true;
        }
    }

    /// After a failed definition that began at `start`: goes to the next one, or the end.
    #[cold]
    pub(super) fn recover_to_definition(&mut self, start: u32) {
        self.lexer.report.forgive();
        let mut brackets = self.brackets_between(start, self.token.start);
        let mut may_stop = start < self.token.start;
        let mut description: Option<StringValue> = None;
        loop {
            if self.at(TokenKind::Eof) {
                return;
            }
            if may_stop {
                let begins = if brackets.is_empty() {
                    self.at(TokenKind::Name) && is_keyword(self.keyword_text(self.token))
                } else {
                    self.begins_definition_in_column_one(self.token.start)
                };
                if begins {
                    if let Some(description) = description {
                        self.seek(description.span.start);
                    }
                    return;
                }
            }
            may_stop = true;
            description = match self.token.kind {
                TokenKind::String | TokenKind::BlockString => Some(StringValue {
                    span: Span::new(self.token.start, self.token.end),
                    block: self.at(TokenKind::BlockString),
                }),
                _ => None,
            };
            track(&mut brackets, self.token.kind);
            self.bump();
        }
    }

    /// Goes back to the token at `start`.
    fn seek(&mut self, start: u32) {
        self.lexer.seek(start);
        self.token = self.lexer.next();
    }

    /// Adds to the last error where the brace that was never closed is.
    #[cold]
    fn unclosed(&mut self, open: u32) {
        self.lexer
            .report
            .explain_last(Span::new(open, open + 1), "this brace is never closed");
    }

    /// The brackets opened and not closed by the tokens from `start` to `end`.
    fn brackets_between(&self, start: u32, end: u32) -> Vec<TokenKind> {
        let mut brackets = Vec::new();
        let mut lexer = self.lexer.peek_from(start);
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::Eof || token.start >= end {
                return brackets;
            }
            track(&mut brackets, token.kind);
        }
    }

    /// Whether the token at `at` is a definition keyword at the very start of a line with a name after it.
    fn begins_definition_in_column_one(&self, at: u32) -> bool {
        let before = self.text.as_bytes()[..at as usize].last();
        if !matches!(before, None | Some(b'\n' | b'\r')) {
            return false;
        }
        let mut lexer = self.lexer.peek_from(at);
        let keyword = lexer.next();
        if keyword.kind != TokenKind::Name {
            return false;
        }
        let next = lexer.next();
        match self.keyword_text(keyword) {
            b"schema" => matches!(next.kind, TokenKind::BraceL | TokenKind::At),
            b"directive" => next.kind == TokenKind::At,
            b"query" | b"mutation" | b"subscription" => {
                matches!(next.kind, TokenKind::Name | TokenKind::BraceL)
            }
            text => is_keyword(text) && next.kind == TokenKind::Name,
        }
    }

    fn is_first_on_line(&self, at: u32) -> bool {
        let before = &self.text.as_bytes()[..at as usize];
        let blank = |b: &&u8| matches!(**b, b' ' | b'\t' | b',');
        matches!(
            before.iter().rev().find(|b| !blank(b)),
            None | Some(b'\n' | b'\r')
        )
    }
}

/// Keeps `brackets` up to date; a closing bracket closes everything opened inside its pair.
fn track(brackets: &mut Vec<TokenKind>, kind: TokenKind) {
    let opener = match kind {
        TokenKind::BraceL | TokenKind::ParenL | TokenKind::BracketL => {
            if brackets.len() < RESYNC_DEPTH_MAX {
                brackets.push(kind);
            }
            return;
        }
        TokenKind::BraceR => TokenKind::BraceL,
        TokenKind::ParenR => TokenKind::ParenL,
        TokenKind::BracketR => TokenKind::BracketL,
        _ => return,
    };
    if let Some(at) = brackets.iter().rposition(|b| *b == opener) {
        brackets.truncate(at);
    }
}

fn is_keyword(text: &[u8]) -> bool {
    matches!(
        text,
        b"type"
            | b"input"
            | b"enum"
            | b"interface"
            | b"union"
            | b"scalar"
            | b"directive"
            | b"schema"
            | b"query"
            | b"mutation"
            | b"subscription"
            | b"fragment"
            | b"extend"
    )
}
