//! Lists of entries: what stands between braces, or at the top without them.

use ogive_base::Span;

use super::{
    Parser,
    lexer::{Token, TokenKind, string_text},
};
use crate::{
    ast::{Entry, EntryKind, ExprId, ExprKind, PathRoot},
    version::Version,
};

/// What stands between the entries of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Comma,
    Space,
}

impl Parser<'_> {
    /// Entries up to a closing brace whose opening one was at `open`, or up to the end.
    pub(super) fn entries(&mut self, open: Option<Span>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut separator = None;
        loop {
            let closes = match self.peek() {
                TokenKind::End => true,
                TokenKind::BraceClose => open.is_some(),
                _ => false,
            };
            if closes {
                break;
            }
            let before = self.at;
            if let Some(entry) = self.entry() {
                entries.push(entry);
            }
            if self.at == before {
                // Whatever it is, it begins no entry.
                self.next();
                continue;
            }
            self.separator(&mut separator, open.is_some());
        }
        if let Some(open) = open {
            self.close(TokenKind::BraceClose, "}", open);
        }
        self.check_unnamed(&entries);
        entries
    }

    /// Reads what stands behind an entry, and checks that it is always the same.
    fn separator(&mut self, separator: &mut Option<Separator>, in_braces: bool) {
        let token = self.token();
        let is_comma = self.take(TokenKind::Comma);
        let at_end =
            self.peek() == TokenKind::End || (in_braces && self.peek() == TokenKind::BraceClose);
        if is_comma && !self.version.has_one_syntax() {
            if separator.is_none() {
                self.report_with_help(
                    token.span,
                    format!("commas between entries need {}", Version::V0_4),
                    "separate entries by white space",
                );
            }
            *separator = Some(Separator::Comma);
            return;
        }
        let found = if is_comma {
            Separator::Comma
        } else if at_end {
            return;
        } else {
            Separator::Space
        };
        match separator {
            Some(first) if *first != found && !(is_comma && at_end) => self.report_with_help(
                token.span,
                "entries are separated by commas and by white space",
                "use one of them for the whole list",
            ),
            Some(_) => {}
            None => *separator = Some(found),
        }
    }

    fn entry(&mut self) -> Option<Entry> {
        let token = self.token();
        let start = token.span.start;
        let (kind, value) = match token.kind {
            TokenKind::Spread => {
                self.next();
                if !self.version.has_one_syntax() {
                    self.report(token.span, format!("`...` needs {}", Version::V0_4));
                }
                (EntryKind::Spread, self.expression())
            }
            TokenKind::Identifier | TokenKind::String(_)
                if self.peek_second() == TokenKind::Colon =>
            {
                self.next();
                self.next();
                let key = self.key_text(token);
                (EntryKind::Named(key), self.entry_value())
            }
            kind if begins_path(kind) => {
                let value = self.path_selection();
                (self.kind_of_path(value), value)
            }
            TokenKind::Dot => {
                self.report_with_help(
                    token.span,
                    "an entry cannot begin with `.`",
                    "write `$.key` to select the value of one key",
                );
                self.next();
                return None;
            }
            TokenKind::Comma => {
                self.unexpected("an entry");
                return None;
            }
            TokenKind::Number | TokenKind::BraceOpen | TokenKind::BracketOpen => {
                self.report_with_help(
                    token.span,
                    format!("a value without a name: {}", self.shown()),
                    "give it an alias, such as `name: $(…)`",
                );
                // Read on behind it, so that what is inside is not taken for entries.
                self.expression();
                return None;
            }
            _ => {
                self.unexpected("an entry");
                return None;
            }
        };
        Some(Entry {
            span: self.span_from(start),
            kind,
            value,
        })
    }

    /// The value behind an alias: anything, or before version 0.4 a path or a group.
    fn entry_value(&mut self) -> ExprId {
        if self.version.has_one_syntax() {
            return self.expression();
        }
        let token = self.token();
        match token.kind {
            TokenKind::BraceOpen => self.selection(),
            kind if begins_path(kind) => {
                let value = self.path_selection();
                if matches!(self.peek(), TokenKind::Nullish | TokenKind::Missing) {
                    self.report_with_help(
                        self.token().span,
                        format!("{} needs `$(…)` around it here", self.shown()),
                        "write `$(a ?? b)`",
                    );
                    self.next();
                    self.expression();
                }
                value
            }
            TokenKind::Number | TokenKind::BracketOpen => {
                self.report_with_help(
                    token.span,
                    format!(
                        "a literal behind an alias needs `$(…)` before {}",
                        Version::V0_4
                    ),
                    "write `$(…)` around it",
                );
                self.expression()
            }
            _ => {
                self.unexpected("a path or `{`");
                self.add(token.span, ExprKind::Invalid)
            }
        }
    }

    /// A path of one key has that key as its name.
    fn kind_of_path(&self, value: ExprId) -> EntryKind {
        match &self.exprs[value].kind {
            ExprKind::Path(path) if path.steps.is_empty() => match &path.root {
                PathRoot::Key(key) => EntryKind::Named(key.clone()),
                _ => EntryKind::Unnamed,
            },
            _ => EntryKind::Unnamed,
        }
    }

    /// Beside others, an entry without a name has to have members.
    fn check_unnamed(&mut self, entries: &[Entry]) {
        if entries.len() < 2 {
            return;
        }
        for entry in entries {
            let has_members = match &self.exprs[entry.value].kind {
                ExprKind::Path(path) => path.selection.is_some(),
                _ => true,
            };
            if matches!(entry.kind, EntryKind::Unnamed) && !has_members {
                self.report_with_help(
                    entry.span,
                    "a path beside other entries needs a name",
                    "give it an alias, such as `name: a.b`, or select members of it with `{ … }`",
                );
            }
        }
    }

    pub(super) fn key_text(&mut self, token: Token) -> Box<str> {
        let text = self.slice(token.span);
        match token.kind {
            TokenKind::String(closed) => {
                let text = string_text(text);
                self.check_closed(token.span, closed);
                text
            }
            _ => text.into(),
        }
    }
    pub(super) fn check_closed(&mut self, span: Span, closed: bool) {
        if !closed {
            self.report(span, "a string has no closing quote");
        }
    }
}

/// Whether a path can begin with such a token; a string is a key there.
fn begins_path(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Identifier
            | TokenKind::String(_)
            | TokenKind::Dollar
            | TokenKind::Variable
            | TokenKind::Group
            | TokenKind::At
    )
}
