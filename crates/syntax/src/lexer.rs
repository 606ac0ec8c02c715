//! Source text to tokens, one at a time and on demand (specification 2.1).
//!
//! The parser holds exactly one token of look-ahead, so no token list is ever stored.
//! Bytes are classified by one table; strings and comments are skipped with `memchr`.
//!
//! Invariants: every token starts and ends on a character boundary; a broken token is reported once, here,
//! and replaced by the most likely intended one, so the parser never reports it again; after a fatal error
//! (a limit) the text ends where the error was and nothing more is reported.

use memchr::{memchr, memchr2};

use crate::{
    parser::report::{Code, Report},
    string_value::escape_at,
};

/// Kinds of token. Ignored tokens (white space, commas, comments, byte order marks) never leave the lexer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum TokenKind {
    Eof,
    Name,
    Int,
    Float,
    String,
    BlockString,
    Spread,
    Bang,
    Dollar,
    Amp,
    ParenL,
    ParenR,
    Colon,
    Equals,
    At,
    BracketL,
    BracketR,
    BraceL,
    Pipe,
    BraceR,
}

impl TokenKind {
    /// The kind as error messages name it.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            TokenKind::Eof => "<EOF>",
            TokenKind::Name => "Name",
            TokenKind::Int => "Int",
            TokenKind::Float => "Float",
            TokenKind::String => "String",
            TokenKind::BlockString => "BlockString",
            TokenKind::Spread => "\"...\"",
            TokenKind::Bang => "\"!\"",
            TokenKind::Dollar => "\"$\"",
            TokenKind::Amp => "\"&\"",
            TokenKind::ParenL => "\"(\"",
            TokenKind::ParenR => "\")\"",
            TokenKind::Colon => "\":\"",
            TokenKind::Equals => "\"=\"",
            TokenKind::At => "\"@\"",
            TokenKind::BracketL => "\"[\"",
            TokenKind::BracketR => "\"]\"",
            TokenKind::BraceL => "\"{\"",
            TokenKind::Pipe => "\"|\"",
            TokenKind::BraceR => "\"}\"",
        }
    }
}

/// One token and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What the first byte of a token says.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    Bad,
    Blank,
    Name,
    Punctuator,
    Comment,
    Quote,
    Digit,
    Minus,
    Dot,
    BomLead,
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Bad; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => Class::Blank,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Class::Name,
            b'0'..=b'9' => Class::Digit,
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|'
            | b'}' => Class::Punctuator,
            b'#' => Class::Comment,
            b'"' => Class::Quote,
            b'-' => Class::Minus,
            b'.' => Class::Dot,
            0xEF => Class::BomLead,
            _ => Class::Bad,
        };
        byte += 1;
    }
    table
};

const NAME_CONTINUE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// Bytes inside a quoted string that need a look.
const STRING_STOP: [bool; 256] = {
    let mut table = [false; 256];
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'\n' as usize] = true;
    table[b'\r' as usize] = true;
    table
};

const PUNCTUATOR: [TokenKind; 256] = {
    let mut table = [TokenKind::Eof; 256];
    table[b'!' as usize] = TokenKind::Bang;
    table[b'$' as usize] = TokenKind::Dollar;
    table[b'&' as usize] = TokenKind::Amp;
    table[b'(' as usize] = TokenKind::ParenL;
    table[b')' as usize] = TokenKind::ParenR;
    table[b':' as usize] = TokenKind::Colon;
    table[b'=' as usize] = TokenKind::Equals;
    table[b'@' as usize] = TokenKind::At;
    table[b'[' as usize] = TokenKind::BracketL;
    table[b']' as usize] = TokenKind::BracketR;
    table[b'{' as usize] = TokenKind::BraceL;
    table[b'|' as usize] = TokenKind::Pipe;
    table[b'}' as usize] = TokenKind::BraceR;
    table
};

/// Whether `byte` may stand inside a name.
#[inline]
pub(crate) fn is_name_continue(byte: u8) -> bool {
    NAME_CONTINUE[byte as usize]
}

/// Whether `byte` may begin a name.
#[inline]
pub(crate) fn is_name_start(byte: u8) -> bool {
    CLASS[byte as usize] == Class::Name
}

/// Reads tokens from one source text.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// The bytes of `text`, cut short after a fatal error.
    bytes: &'a [u8],
    pos: usize,
    tokens_left: u32,
    tokens_max: u32,
    pub(crate) report: Report,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`, whose length fits `u32`.
    pub(crate) fn new(text: &'a str, tokens_max: u32, report: Report) -> Self {
        Lexer {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            tokens_left: tokens_max,
            tokens_max,
            report,
        }
    }

    /// A lexer that looks around from `pos` without reporting or counting.
    pub(crate) fn peek_from(&self, pos: u32) -> Lexer<'a> {
        Lexer {
            text: self.text,
            bytes: self.bytes,
            pos: pos as usize,
            tokens_left: u32::MAX,
            tokens_max: u32::MAX,
            report: Report::silent(),
        }
    }

    /// Goes back (or forward) to the token that starts at `pos`.
    pub(crate) fn seek(&mut self, pos: u32) {
        self.pos = pos as usize;
    }

    /// Ends the text where it was read to: every further token is the end of the file.
    #[cold]
    pub(crate) fn stop(&mut self) {
        self.bytes = &self.bytes[..self.pos.min(self.bytes.len())];
        self.report.close();
    }

    /// Reports a broken token.
    #[cold]
    fn error(&mut self, place: (usize, usize), message: String, label: &str) {
        self.report.push(Code::Syntax, place, message, label);
        if self.report.is_full() {
            self.stop();
        }
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        let mut bytes = self.bytes;
        let mut pos = self.pos;
        loop {
            let Some(&byte) = bytes.get(pos) else {
                self.pos = pos;
                return Token {
                    kind: TokenKind::Eof,
                    start: pos as u32,
                    end: pos as u32,
                };
            };
            match CLASS[byte as usize] {
                Class::Blank => {
                    pos += 1;
                    // Indentation comes in runs of spaces.
                    while bytes.get(pos) == Some(&b' ') {
                        pos += 1;
                    }
                }
                Class::Name => {
                    let mut end = pos + 1;
                    while end < bytes.len() && NAME_CONTINUE[bytes[end] as usize] {
                        end += 1;
                    }
                    return self.token(TokenKind::Name, pos, end);
                }
                Class::Punctuator => {
                    return self.token(PUNCTUATOR[byte as usize], pos, pos + 1);
                }
                Class::Comment => {
                    pos =
                        memchr2(b'\n', b'\r', &bytes[pos..]).map_or(bytes.len(), |skip| pos + skip);
                }
                Class::Quote => {
                    return if bytes[pos..].starts_with(b"\"\"\"") {
                        self.block_string(pos)
                    } else {
                        self.string(pos)
                    };
                }
                Class::Digit | Class::Minus => return self.number(pos),
                Class::Dot => {
                    if bytes[pos..].starts_with(b"...") {
                        return self.token(TokenKind::Spread, pos, pos + 3);
                    }
                    match self.stray_dot(pos) {
                        Ok(token) => return token,
                        Err(next) => (pos, bytes) = (next, self.bytes),
                    }
                }
                Class::BomLead if bytes[pos..].starts_with("\u{FEFF}".as_bytes()) => pos += 3,
                Class::Bad if byte == b'\'' => {
                    return self.single_quoted(pos);
                }
                Class::BomLead | Class::Bad => {
                    pos = self.unexpected_characters(pos);
                    bytes = self.bytes;
                }
            }
        }
    }

    #[inline]
    fn token(&mut self, kind: TokenKind, start: usize, end: usize) -> Token {
        if self.tokens_left == 0 {
            return self.too_many_tokens(start, end);
        }
        self.tokens_left -= 1;
        self.pos = end;
        Token {
            kind,
            start: start as u32,
            end: end as u32,
        }
    }

    /// Tokens read so far.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens_max - self.tokens_left
    }

    #[cold]
    fn too_many_tokens(&mut self, start: usize, end: usize) -> Token {
        let max = self.tokens_max;
        self.report.push(
            Code::TokensMax,
            (start, end),
            format!("Document contains more than {max} tokens. Parsing aborted."),
            "the first token beyond the limit",
        );
        self.pos = start;
        self.stop();
        Token {
            kind: TokenKind::Eof,
            start: start as u32,
            end: start as u32,
        }
    }

    fn string(&mut self, start: usize) -> Token {
        let bytes = self.bytes;
        let mut pos = start + 1;
        loop {
            while pos < bytes.len() && !STRING_STOP[bytes[pos] as usize] {
                pos += 1;
            }
            match bytes.get(pos) {
                Some(b'"') => return self.token(TokenKind::String, start, pos + 1),
                Some(b'\\') => match escape_at(self.text, pos) {
                    Ok((_, end)) => pos = end,
                    Err(end) => pos = self.bad_escape(pos, end),
                },
                _ => return self.unterminated(TokenKind::String, start, pos),
            }
        }
    }

    #[cold]
    fn bad_escape(&mut self, start: usize, end: usize) -> usize {
        let text = &self.text[start..end];
        let what = if text.starts_with("\\u") {
            "Unicode"
        } else {
            "character"
        };
        self.error(
            (start, end),
            format!("Invalid {what} escape sequence: \"{text}\"."),
            "no such escape sequence",
        );
        // The quote or line end that cut the sequence short still counts.
        text[1..]
            .find(['"', '\n', '\r'])
            .map_or(end, |i| start + 1 + i)
    }

    fn block_string(&mut self, start: usize) -> Token {
        let bytes = self.bytes;
        let mut pos = start + 3;
        while let Some(skip) = bytes.get(pos..).and_then(|rest| memchr(b'"', rest)) {
            pos += skip;
            if !bytes[pos..].starts_with(b"\"\"\"") {
                pos += 1;
            } else if pos > start + 3 && bytes[pos - 1] == b'\\' {
                pos += 3;
            } else {
                return self.token(TokenKind::BlockString, start, pos + 3);
            }
        }
        self.unterminated(TokenKind::BlockString, start, bytes.len())
    }

    /// Reports a string without end; the rest of the line (or text) is taken to be inside it.
    #[cold]
    fn unterminated(&mut self, kind: TokenKind, start: usize, end: usize) -> Token {
        let help = match kind {
            TokenKind::BlockString => "close it with `\"\"\"`",
            _ => "close it with `\"` on the same line, or use a `\"\"\"` block string",
        };
        self.report.push_with(
            Code::Syntax,
            (end, end),
            "Unterminated string.".to_owned(),
            "the string should have ended by here",
            |diagnostic, source| {
                diagnostic
                    .label(
                        source,
                        ogive_base::Span::new(start as u32, start as u32 + 1),
                        "it starts here",
                    )
                    .help(help)
            },
        );
        // The quote probably hid the end of something, which is no second mistake.
        self.report.forgive_next();
        if self.report.is_full() {
            self.stop();
        }
        self.token(kind, start, end)
    }

    fn number(&mut self, start: usize) -> Token {
        let bytes = self.bytes;
        let digits = |mut pos: usize| {
            while bytes.get(pos).is_some_and(u8::is_ascii_digit) {
                pos += 1;
            }
            pos
        };
        let mut kind = TokenKind::Int;
        let mut pos = start;
        if bytes[pos] == b'-' {
            pos += 1;
        }
        if bytes.get(pos) == Some(&b'0') {
            pos += 1;
            if bytes.get(pos).is_some_and(u8::is_ascii_digit) {
                return self.bad_number(kind, start, pos, "unexpected digit after 0:");
            }
        } else {
            let end = digits(pos);
            if end == pos {
                return self.bad_number(kind, start, pos, "expected digit but got:");
            }
            pos = end;
        }
        if bytes.get(pos) == Some(&b'.') {
            kind = TokenKind::Float;
            let end = digits(pos + 1);
            if end == pos + 1 {
                return self.bad_number(kind, start, end, "expected digit but got:");
            }
            pos = end;
        }
        if matches!(bytes.get(pos), Some(b'e' | b'E')) {
            kind = TokenKind::Float;
            pos += 1;
            if matches!(bytes.get(pos), Some(b'+' | b'-')) {
                pos += 1;
            }
            let end = digits(pos);
            if end == pos {
                return self.bad_number(kind, start, end, "expected digit but got:");
            }
            pos = end;
        }
        // A number must not run into a name or another number (specification 2.9.1, 2.9.2).
        if bytes
            .get(pos)
            .is_some_and(|b| *b == b'.' || is_name_start(*b))
        {
            return self.bad_number(kind, start, pos, "expected digit but got:");
        }
        self.token(kind, start, pos)
    }

    /// Reports a number broken at `at`; everything that looks like part of it is swallowed.
    #[cold]
    fn bad_number(&mut self, kind: TokenKind, start: usize, at: usize, why: &str) -> Token {
        let found = self.text[at..].chars().next();
        self.error(
            (at, at + found.map_or(0, char::len_utf8)),
            format!("Invalid number, {why} {}.", describe_char(found)),
            "not part of a number",
        );
        let mut end = at;
        while self
            .bytes
            .get(end)
            .is_some_and(|b| *b == b'.' || is_name_continue(*b))
        {
            end += 1;
        }
        // At least the minus sign or first digit is consumed.
        self.token(kind, start, end.max(start + 1))
    }

    /// A dot that begins no spread: a fraction without digit before it, two dots, or junk.
    #[cold]
    fn stray_dot(&mut self, start: usize) -> Result<Token, usize> {
        let bytes = self.bytes;
        match bytes.get(start + 1) {
            Some(b'.') => {
                self.error(
                    (start, start + 2),
                    "Unexpected \"..\", did you mean \"...\"?".to_owned(),
                    "two dots",
                );
                Ok(self.token(TokenKind::Spread, start, start + 2))
            }
            Some(b'0'..=b'9') => {
                let mut end = start + 1;
                while bytes
                    .get(end)
                    .is_some_and(|b| *b == b'.' || is_name_continue(*b))
                {
                    end += 1;
                }
                let digits = bytes[start + 1..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                let number = &self.text[start..start + 1 + digits];
                self.error(
                    (start, end),
                    format!(
                        "Invalid number, expected digit before \".\", did you mean \"0{number}\"?"
                    ),
                    "a number starts with a digit",
                );
                Ok(self.token(TokenKind::Float, start, end))
            }
            _ => Err(self.unexpected_characters(start)),
        }
    }

    /// Reports a string in single quotes and takes it for a string.
    #[cold]
    fn single_quoted(&mut self, start: usize) -> Token {
        self.error(
            (start, start + 1),
            "Unexpected single quote character ('), did you mean to use a double quote (\")?"
                .to_owned(),
            "strings stand in double quotes",
        );
        let rest = &self.text.as_bytes()[start + 1..];
        let line = &rest[..memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
        let end = memchr(b'\'', line).map_or(start + 1, |skip| start + 2 + skip);
        self.token(TokenKind::String, start, end)
    }

    /// Reports a run of characters that begin no token, and skips it.
    #[cold]
    fn unexpected_characters(&mut self, start: usize) -> usize {
        let first = self.text[start..].chars().next();
        let message = format!("Unexpected character: {}.", describe_char(first));
        let first_end = start + first.map_or(0, char::len_utf8);
        self.error((start, first_end), message, "not a GraphQL character here");
        // One message per run: what follows junk is usually more of it.
        let end = self.text[first_end..]
            .char_indices()
            .find(|(_, c)| {
                *c == '\u{FEFF}' || (c.is_ascii() && CLASS[*c as usize & 0x7F] != Class::Bad)
            })
            .map_or(self.text.len(), |(i, _)| first_end + i);
        end.min(self.bytes.len())
    }
}

/// A character as error messages show it: `"a"`, `U+0000`, `<EOF>`.
fn describe_char(c: Option<char>) -> String {
    match c {
        None => "<EOF>".to_owned(),
        Some('"') => "'\"'".to_owned(),
        Some(c) if (' '..='~').contains(&c) => format!("\"{c}\""),
        Some(c) => format!("U+{:04X}", c as u32),
    }
}
