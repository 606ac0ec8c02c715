//! Finds documents in JavaScript and TypeScript: templates tagged with `gql` or `graphql`, what these functions are called
//! with, and templates and strings behind a comment that says `GraphQL`.
//!
//! It is a scanner, not a parser: it knows comments, strings, templates, regular expressions and JSX well enough never to
//! take one for the other in programs that compile, and nothing else. Where the grammar needs more than the token before (a
//! `<` that may begin JSX or type parameters), it tries one reading, and the other if that does not come to an end.
//! What is open is on a stack ([`Open`]), never on the stack of the thread; it tries again [`RETRIES_MAX`] times at most,
//! so the work is linear.

use std::collections::BTreeSet;

use ogive_base::Span;

use crate::embedded::Embedded;

mod jsx;
mod literals;

/// How often a reading is given up because what it has opened does not end.
const RETRIES_MAX: usize = 32;
/// Longest type arguments between a tag and its template.
const TYPE_ARGUMENTS_MAX: usize = 1_024;

/// How a file is read.
#[derive(Clone, Debug)]
pub struct ScanOptions<'a> {
    /// Whether `<` may begin JSX.
    pub jsx: bool,
    /// Names of functions that take documents.
    pub tags: &'a [String],
}

/// What is found in a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scanned {
    /// Documents in order.
    pub documents: Vec<Embedded>,
    /// Documents that are put together when the program runs, so that nobody knows them before.
    pub dynamic: Vec<Span>,
    /// Documents that do not end.
    pub unterminated: Vec<Span>,
}

/// Documents in a program.
pub fn scan(text: &str, options: &ScanOptions<'_>) -> Scanned {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        jsx: options.jsx,
        tags: options.tags.iter().map(String::as_str).collect(),
        open: Vec::new(),
        operand: false,
        before: Before::Nothing,
        words: ["", "", ""],
        open_ended: [0; 3],
        plain: BTreeSet::new(),
        found: Scanned::default(),
    };
    scanner.run();
    scanner.found
}

/// What the last token was, as far as a document may follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    Nothing,
    /// A function that takes documents.
    Tag {
        /// Whether it is a member of something, so that it may be another one.
        member: bool,
    },
    /// The parenthesis behind it.
    Argument {
        member: bool,
    },
    /// A comment that says so.
    Comment,
    /// A dot.
    Dot,
}

/// What is open.
#[derive(Debug)]
enum Open {
    Brace,
    /// Whether an operand follows its end, as after `if (…)`.
    Paren {
        statement: bool,
    },
    Bracket,
    /// A template: in it, unless a brace is open above.
    Template {
        document: Option<Embedded>,
        substitution: usize,
        start: Start,
    },
    /// Within `<Name …`.
    JsxTag {
        name: Span,
        start: Start,
    },
    /// Between `<Name>` and `</Name>`.
    JsxChildren {
        name: Span,
        start: Start,
    },
}

/// Where something began, and what was known then.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: usize,
    documents: usize,
    dynamic: usize,
    operand: bool,
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    jsx: bool,
    tags: BTreeSet<&'a str>,
    open: Vec<Open>,
    /// Whether the last token ends an operand, so that `/` divides and `<` compares.
    operand: bool,
    before: Before,
    /// The last three tokens that are words, as long as nothing else is between them.
    words: [&'a str; 3],
    /// Up to where no `'`, no `"` and no `/` begins a literal: one before did not end, so that lines are read once.
    open_ended: [usize; 3],
    /// Places whose byte opens nothing, as was found out.
    plain: BTreeSet<usize>,
    found: Scanned,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        if self.text.starts_with("#!") {
            self.skip_line();
        }
        loop {
            while self.at < self.bytes.len() {
                match self.open.last() {
                    Some(Open::Template { .. }) => self.template(),
                    Some(Open::JsxTag { .. }) => self.jsx_tag(),
                    Some(Open::JsxChildren { .. }) => self.jsx_children(),
                    _ => self.token(),
                }
            }
            let unended = self.open.iter().position(|open| {
                matches!(
                    open,
                    Open::Template { .. } | Open::JsxTag { .. } | Open::JsxChildren { .. }
                )
            });
            match unended {
                Some(which) if self.plain.len() < RETRIES_MAX => self.give_up(which),
                // Whatever it is, it has no elements.
                Some(_) if self.jsx => self.begin_without_jsx(),
                _ => return,
            }
        }
    }

    /// Goes back to where something was opened that does not end, and reads it as something else.
    fn give_up(&mut self, which: usize) {
        let start = match &self.open[which] {
            Open::Template {
                document, start, ..
            } => {
                if document.is_some() {
                    let at = start.at as u32;
                    self.found.unterminated.push(Span::new(at, at + 1));
                }
                *start
            }
            Open::JsxTag { start, .. } | Open::JsxChildren { start, .. } => *start,
            _ => return,
        };
        self.open.truncate(which);
        self.plain.insert(start.at);
        self.at = start.at;
        self.operand = start.operand;
        self.before = Before::Nothing;
        self.open_ended = [0; 3];
        self.found.documents.truncate(start.documents);
        self.found.dynamic.truncate(start.dynamic);
    }

    fn begin_without_jsx(&mut self) {
        self.jsx = false;
        self.at = 0;
        self.operand = false;
        self.before = Before::Nothing;
        self.open.clear();
        self.open_ended = [0; 3];
        self.plain.clear();
        self.found = Scanned::default();
    }

    fn start(&self) -> Start {
        Start {
            at: self.at,
            documents: self.found.documents.len(),
            dynamic: self.found.dynamic.len(),
            operand: self.operand,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// One token, or what is between tokens.
    fn token(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'/' if self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.peek(1) == b'*' => self.comment(),
            b'/' => self.slash(),
            b'\'' | b'"' => self.quoted(byte),
            b'`' if !self.plain.contains(&self.at) => self.open_template(),
            byte if byte.is_ascii_whitespace() => self.at += 1,
            byte if is_word(byte) => self.word(),
            b'<' => self.less(),
            _ => self.punctuation(byte),
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
        self.at += end.unwrap_or(rest.len());
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at + 2..];
        let length = rest.find("*/");
        let said = &rest[..length.unwrap_or(rest.len())];
        // It may stand before what a function that takes documents is called with.
        if said.trim().eq_ignore_ascii_case("graphql") && self.before == Before::Nothing {
            self.before = Before::Comment;
        }
        self.at += 2 + length.map_or(rest.len(), |length| length + 2);
    }

    /// A division, or a regular expression.
    fn slash(&mut self) {
        if self.operand || self.at < self.open_ended[2] {
            return self.punctuation(b'/');
        }
        let mut class = false;
        let mut at = self.at + 1;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.at = at + 1;
                    return self.end_token(true);
                }
                _ => {}
            }
            at += 1;
        }
        // No line of a program has only the beginning of one.
        self.open_ended[2] = at;
        self.punctuation(b'/');
    }

    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|b| !is_word(*b));
        let end = self.at + length.unwrap_or(rest.len());
        let word = &self.text[self.at..end];
        let member = self.before == Before::Dot;
        self.at = end;
        let keyword = !member && expects_operand(word);
        // `import { gql as query }`.
        if self.words[2] == "as" && self.tags.contains(self.words[1]) {
            self.tags.insert(word);
        }
        self.words = [self.words[1], self.words[2], word];
        self.operand = !keyword;
        self.before = if self.tags.contains(word) {
            Before::Tag { member }
        } else {
            Before::Nothing
        };
    }

    /// JSX, type arguments of a tag, or a comparison.
    fn less(&mut self) {
        if let Before::Tag { .. } = self.before
            && let Some(end) = self.type_arguments()
        {
            // The tag is still what is before.
            self.at = end;
            return;
        }
        if self.begins_jsx() {
            let start = self.start();
            self.at += 1;
            let name = self.jsx_name();
            self.open.push(Open::JsxTag { name, start });
            return;
        }
        self.punctuation(b'<');
    }

    /// The end of type arguments that a template or a parenthesis follows.
    fn type_arguments(&self) -> Option<usize> {
        let end = self.bytes.len().min(self.at + TYPE_ARGUMENTS_MAX);
        let mut depth = 0usize;
        let mut at = self.at;
        while at < end {
            match self.bytes[at] {
                b'<' => depth += 1,
                // Not that of `=>`.
                b'>' if self.bytes[at - 1] != b'=' => depth -= 1,
                b'`' | b';' => return None,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                let rest = &self.bytes[at..];
                let next = rest.iter().find(|b| !b.is_ascii_whitespace());
                return matches!(next, Some(b'`' | b'(')).then_some(at);
            }
        }
        None
    }

    fn punctuation(&mut self, byte: u8) {
        let before = self.before;
        let (statement, last) = (is_statement(self.words[2]), self.at);
        self.at += 1;
        let mut operand = false;
        match byte {
            b'(' => self.open.push(Open::Paren { statement }),
            b'[' => self.open.push(Open::Bracket),
            b'{' => self.open.push(Open::Brace),
            b')' => {
                operand = true;
                if let Some(Open::Paren { statement }) = self.open.last() {
                    operand = !statement;
                    self.open.pop();
                }
            }
            b']' => {
                operand = true;
                if let Some(Open::Bracket) = self.open.last() {
                    self.open.pop();
                }
            }
            b'}' => self.close_brace(),
            b'.' if self.bytes[self.at..].starts_with(b"..") => {
                self.at += 2;
                return self.end_token(false);
            }
            // As a suffix they leave an operand what it is.
            b'+' | b'-' if self.operand && self.bytes.get(self.at) == Some(&byte) => {
                self.at += 1;
                operand = true;
            }
            b'!' if self.operand && self.bytes.get(self.at) != Some(&b'=') => operand = true,
            _ => {}
        }
        // Nothing else is longer than a byte, and none of them begins anything.
        debug_assert!(self.at > last);
        self.end_token(operand);
        self.before = match (byte, before) {
            (b'(', Before::Tag { member }) => Before::Argument { member },
            (b'.', _) => Before::Dot,
            _ => Before::Nothing,
        };
    }

    fn close_brace(&mut self) {
        // What is open within it is a mistake.
        while matches!(self.open.last(), Some(Open::Paren { .. } | Open::Bracket)) {
            self.open.pop();
        }
        if let Some(Open::Brace) = self.open.last() {
            self.open.pop();
        }
        if let Some(Open::Template {
            document: Some(document),
            substitution,
            ..
        }) = self.open.last_mut()
        {
            document.push_substitution(Span::new(*substitution as u32, self.at as u32));
        }
    }

    fn end_token(&mut self, operand: bool) {
        self.operand = operand;
        self.before = Before::Nothing;
        self.words = ["", "", ""];
    }
}

/// Whether a byte is one of names, numbers and keywords. What is not ASCII is, or stands in texts.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'$' | b'#' | b'@' | b'\\')
        || byte >= 0x80
}

/// Whether an expression follows a word, so that `/` begins a regular expression and `<` an element.
fn expects_operand(word: &str) -> bool {
    const WORDS: [&str; 18] = [
        "await",
        "case",
        "default",
        "delete",
        "do",
        "else",
        "extends",
        "in",
        "instanceof",
        "new",
        "of",
        "return",
        "throw",
        "typeof",
        "void",
        "yield",
        "export",
        "satisfies",
    ];
    WORDS.contains(&word)
}

/// Whether a word has parentheses behind it that are no operand.
fn is_statement(word: &str) -> bool {
    matches!(word, "if" | "while" | "for" | "with")
}

#[cfg(test)]
mod tests;
