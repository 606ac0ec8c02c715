//! Tokens of the language.

use ogive_base::Span;

/// One token and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    Identifier,
    /// A string; `false` if its closing quote is not there.
    String(bool),
    Number,
    /// `$` with nothing directly behind it that would belong to it.
    Dollar,
    /// `$name`.
    Variable,
    /// `$(`.
    Group,
    At,
    BraceOpen,
    BraceClose,
    BracketOpen,
    BracketClose,
    ParenOpen,
    ParenClose,
    Colon,
    Comma,
    Dot,
    Arrow,
    Spread,
    Question,
    /// `??`.
    Nullish,
    /// `?!`.
    Missing,
    /// A character that begins no token.
    Unknown,
    /// Behind the last token.
    End,
}

/// Reads all tokens. The last one is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        let kind = lexer.token();
        let span = Span::new(start as u32, lexer.at as u32);
        tokens.push(Token { kind, span });
        if kind == TokenKind::End {
            return tokens;
        }
    }
}

/// Where the brace stands that closes one that was opened before `text`.
pub(super) fn closing_brace(text: &str) -> Option<usize> {
    let mut lexer = Lexer { text, at: 0 };
    let mut open = 1;
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        match lexer.token() {
            TokenKind::BraceOpen => open += 1,
            TokenKind::BraceClose => open -= 1,
            TokenKind::End => return None,
            _ => {}
        }
        if open == 0 {
            return Some(start);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    let line = rest.iter().position(|byte| *byte == b'\n');
                    self.at += line.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> TokenKind {
        let Some(first) = self.byte(0) else {
            return TokenKind::End;
        };
        let (len, kind) = match (first, self.byte(1)) {
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => {
                self.skip_identifier();
                return TokenKind::Identifier;
            }
            (b'"' | b'\'', _) => return self.string(first),
            (b'0'..=b'9', _) | (b'.', Some(b'0'..=b'9')) => return self.number(),
            (b'-', Some(b'0'..=b'9' | b'.')) => return self.number(),
            (b'$', Some(b'a'..=b'z' | b'A'..=b'Z' | b'_')) => {
                self.at += 1;
                self.skip_identifier();
                return TokenKind::Variable;
            }
            (b'$', Some(b'(')) => (2, TokenKind::Group),
            (b'$', _) => (1, TokenKind::Dollar),
            (b'-', Some(b'>')) => (2, TokenKind::Arrow),
            (b'.', Some(b'.')) if self.byte(2) == Some(b'.') => (3, TokenKind::Spread),
            (b'.', _) => (1, TokenKind::Dot),
            // In `a???b` the first one belongs to `a`.
            (b'?', Some(b'?')) if matches!(self.byte(2), Some(b'?' | b'!')) => {
                (1, TokenKind::Question)
            }
            (b'?', Some(b'?')) => (2, TokenKind::Nullish),
            (b'?', Some(b'!')) => (2, TokenKind::Missing),
            (b'?', _) => (1, TokenKind::Question),
            (b'@', _) => (1, TokenKind::At),
            (b'{', _) => (1, TokenKind::BraceOpen),
            (b'}', _) => (1, TokenKind::BraceClose),
            (b'[', _) => (1, TokenKind::BracketOpen),
            (b']', _) => (1, TokenKind::BracketClose),
            (b'(', _) => (1, TokenKind::ParenOpen),
            (b')', _) => (1, TokenKind::ParenClose),
            (b':', _) => (1, TokenKind::Colon),
            (b',', _) => (1, TokenKind::Comma),
            _ => {
                let rest = &self.text[self.at..];
                let len = rest.chars().next().map_or(1, char::len_utf8);
                (len, TokenKind::Unknown)
            }
        };
        self.at += len;
        kind
    }

    fn skip_identifier(&mut self) {
        while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') = self.byte(0) {
            self.at += 1;
        }
    }

    fn string(&mut self, quote: u8) -> TokenKind {
        self.at += 1;
        loop {
            match self.byte(0) {
                None => return TokenKind::String(false),
                Some(b'\\') if self.byte(1).is_some() => self.at += 2,
                Some(byte) => {
                    self.at += 1;
                    if byte == quote {
                        return TokenKind::String(true);
                    }
                }
            }
            while !self.text.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
    }

    /// `"-"? ([0-9]+ ("." [0-9]*)? | "." [0-9]+)`
    fn number(&mut self) -> TokenKind {
        if self.byte(0) == Some(b'-') {
            self.at += 1;
        }
        let start = self.at;
        self.skip_digits();
        let whole = self.at > start;
        if self.byte(0) == Some(b'.') && self.byte(1) != Some(b'.') {
            let digit_follows = self.byte(1).is_some_and(|byte| byte.is_ascii_digit());
            if whole || digit_follows {
                self.at += 1;
                self.skip_digits();
            }
        }
        if self.at > start {
            TokenKind::Number
        } else {
            TokenKind::Unknown
        }
    }
    fn skip_digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

/// A number of the language as one of JSON, which has no leading zeros and digits on both sides of a point.
pub(super) fn number_as_json(text: &str) -> Box<str> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let has_point = digits.contains('.');
    let fraction = match (has_point, fraction) {
        (false, _) => String::new(),
        (true, "") => ".0".to_owned(),
        (true, fraction) => format!(".{fraction}"),
    };
    format!("{sign}{whole}{fraction}").into()
}

/// The text that a string token denotes. Escapes are those of JSON and `\'`; a backslash before anything else stands
/// for itself.
pub(super) fn string_text(token: &str) -> Box<str> {
    let mut chars = token.chars();
    let quote = chars.next();
    let inner = chars.as_str();
    let inner = quote
        .and_then(|quote| inner.strip_suffix(quote))
        .unwrap_or(inner);
    if !inner.contains('\\') {
        return inner.into();
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(slash) = rest.find('\\') {
        out.push_str(&rest[..slash]);
        rest = push_escape(&rest[slash + 1..], &mut out);
    }
    out.push_str(rest);
    out.into()
}

/// Decodes the escape whose backslash has just been read; returns what follows it.
fn push_escape<'t>(rest: &'t str, out: &mut String) -> &'t str {
    let mut chars = rest.chars();
    let plain = match chars.next() {
        Some(letter @ ('"' | '\'' | '\\' | '/')) => letter,
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => {
            if let Some((letter, behind)) = unicode_escape(chars.as_str()) {
                out.push(letter);
                return behind;
            }
            out.push('\\');
            return rest;
        }
        _ => {
            out.push('\\');
            return rest;
        }
    };
    out.push(plain);
    chars.as_str()
}

/// Four hexadecimal digits, or two of such escapes for one character.
fn unicode_escape(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| {
        let digits = text.get(..4)?;
        let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| all_hex)
    };
    let first = unit(text)?;
    let behind = &text[4..];
    if let Some(letter) = char::from_u32(first) {
        return Some((letter, behind));
    }
    let low = behind.strip_prefix("\\u")?;
    let second = unit(low)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let letter = char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?;
    Some((letter, &low[4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text).iter().map(|token| token.kind).collect()
    }

    #[test]
    fn question_marks_are_split_where_they_belong() {
        use TokenKind::{End, Identifier, Missing, Nullish, Question};
        assert_eq!(
            kinds("a?? b"),
            [Identifier, Nullish, Identifier, End],
            "an operator may stand directly behind a key"
        );
        assert_eq!(
            kinds("a??? b"),
            [Identifier, Question, Nullish, Identifier, End]
        );
        assert_eq!(
            kinds("a??!b"),
            [Identifier, Question, Missing, Identifier, End]
        );
    }

    #[test]
    fn numbers_become_json() {
        for (text, json) in [
            ("7", "7"),
            ("007", "7"),
            ("-0", "-0"),
            ("5.", "5.0"),
            (".5", "0.5"),
            ("-.25", "-0.25"),
            ("10.50", "10.50"),
        ] {
            assert_eq!(kinds(text), [TokenKind::Number, TokenKind::End], "{text}");
            assert_eq!(&*number_as_json(text), json);
        }
    }

    #[test]
    fn strings_denote_their_text() {
        for (token, text) in [
            (r#""a""#, "a"),
            (r#"'it\'s'"#, "it's"),
            (r#""\"\\\/\n""#, "\"\\/\n"),
            (r#""\u00e9\ud83d\ude00""#, "é😀"),
            (r#""\d \ud83d""#, r"\d \ud83d"),
            ("'open", "open"),
        ] {
            assert_eq!(&*string_text(token), text, "{token}");
        }
    }

    #[test]
    fn any_text_ends() {
        for text in ["'\\", "$", "-", "...", "..", "é", "'é", "-.", "->", "#"] {
            assert_eq!(kinds(text).last(), Some(&TokenKind::End), "{text}");
        }
    }
}
