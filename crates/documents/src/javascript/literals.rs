//! Strings and templates.

use ogive_base::Span;

use super::{Before, Open, Scanner};
use crate::embedded::Embedded;

/// What gives `gql` as the default import.
const MODULES: [&str; 3] = ["graphql-tag", "graphql-tag.macro", "graphql.macro"];

impl Scanner<'_> {
    /// A string; a quote without its other one on the line is none.
    pub(super) fn quoted(&mut self, quote: u8) {
        let start = self.at;
        let kind = usize::from(quote == b'"');
        if start < self.open_ended[kind] {
            return self.punctuation(quote);
        }
        let mut at = start + 1;
        let end = loop {
            match self.bytes.get(at) {
                None | Some(b'\n') => break None,
                // A line end may be escaped, too.
                Some(b'\\') if self.bytes.get(at + 1..at + 3) == Some(b"\r\n") => at += 3,
                Some(b'\\') => at += 2,
                Some(byte) if *byte == quote => break Some(at),
                Some(_) => at += 1,
            }
        };
        let Some(end) = end else {
            self.open_ended[kind] = at;
            return self.punctuation(quote);
        };
        let inner = &self.text[start + 1..end];
        if self.words[2] == "from" && self.words[0] == "import" && MODULES.contains(&inner) {
            self.tags.insert(self.words[1]);
        }
        let before = self.before;
        self.at = end + 1;
        if let Before::Argument { member } = before {
            let next = self.next_byte();
            if matches!(next, Some(b')' | b',')) {
                let mut document = Embedded::maybe(true);
                self.unescape(&mut document, start + 1, end);
                self.found.documents.push(document);
            } else if !member {
                let span = Span::new(start as u32, self.at as u32);
                self.found.dynamic.push(span);
            }
        } else if before == Before::Comment {
            let mut document = Embedded::default();
            self.unescape(&mut document, start + 1, end);
            self.found.documents.push(document);
        }
        self.end_token(true);
    }

    /// The next byte that is neither white space nor in a comment.
    fn next_byte(&self) -> Option<u8> {
        let mut rest = &self.text[self.at..];
        loop {
            rest = rest.trim_start();
            rest = if let Some(comment) = rest.strip_prefix("//") {
                &comment[comment.find('\n').unwrap_or(comment.len())..]
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").map(|end| end + 2);
                &comment[end.unwrap_or(comment.len())..]
            } else {
                return rest.bytes().next();
            };
        }
    }

    pub(super) fn open_template(&mut self) {
        let document = match self.before {
            Before::Tag { member } | Before::Argument { member } => Some(Embedded::maybe(member)),
            Before::Comment => Some(Embedded::default()),
            Before::Nothing | Before::Dot => None,
        };
        let start = self.start();
        // Some say it within.
        let rest = &self.text[self.at + 1..];
        let said = rest.trim_start().strip_prefix('#').map(str::trim_start);
        let says = said
            .and_then(|said| said.get(..7))
            .is_some_and(|said| said.eq_ignore_ascii_case("graphql"));
        let document = document.or(says.then(|| Embedded::maybe(true)));
        self.at += 1;
        self.open.push(Open::Template {
            document,
            substitution: 0,
            start,
        });
    }

    /// Goes on in a template, to its end or its next expression.
    pub(super) fn template(&mut self) {
        let from = self.at;
        let mut at = from;
        let ended = loop {
            match self.bytes.get(at) {
                None => break None,
                Some(b'\\') => at += 2,
                Some(b'`') => break Some(true),
                Some(b'$') if self.bytes.get(at + 1) == Some(&b'{') => break Some(false),
                Some(_) => at += 1,
            }
        };
        let at = at.min(self.bytes.len());
        let Some(Open::Template { document, .. }) = self.open.last_mut() else {
            return;
        };
        let mut taken = document.take();
        if let Some(document) = &mut taken {
            self.unescape(document, from, at);
        }
        match ended {
            Some(true) => {
                self.at = at + 1;
                self.open.pop();
                self.found.documents.extend(taken);
                self.end_token(true);
            }
            Some(false) => {
                self.at = at + 2;
                if let Some(Open::Template {
                    document,
                    substitution,
                    ..
                }) = self.open.last_mut()
                {
                    *document = taken;
                    *substitution = at;
                }
                self.open.push(Open::Brace);
                self.end_token(false);
            }
            None => {
                self.at = at;
                if let Some(Open::Template { document, .. }) = self.open.last_mut() {
                    *document = taken;
                }
            }
        }
    }

    /// Adds a part of the file with what its escapes stand for (ECMA-262, section 12.9).
    fn unescape(&self, document: &mut Embedded, from: usize, to: usize) {
        let text = &self.text[from..to];
        let mut at = 0;
        while let Some(found) = text[at..].find(['\\', '\r']) {
            let place = at + found;
            document.push(&text[at..place], from + at);
            let rest = &text[place..];
            if rest.starts_with('\r') {
                // Line ends of templates are all the same.
                if !rest.starts_with("\r\n") {
                    document.push_escaped('\n', from + place);
                }
                at = place + 1;
                continue;
            }
            let (meant, length) = escape(&rest[1..]);
            if let Some(meant) = meant {
                document.push_escaped(meant, from + place);
            }
            at = place + 1 + length;
        }
        document.push(&text[at..], from + at);
    }
}

/// What an escape stands for, if for anything, and its length without the backslash.
fn escape(text: &str) -> (Option<char>, usize) {
    let Some(first) = text.chars().next() else {
        return (None, 0);
    };
    let digits = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| all)?;
        Some((
            char::from_u32(code).or(Some(char::REPLACEMENT_CHARACTER)),
            to,
        ))
    };
    let coded = match first {
        'x' => digits(1, 3),
        'u' if text[1..].starts_with('{') => {
            let end = text.get(2..).and_then(|rest| rest.find('}'));
            end.and_then(|end| digits(2, 2 + end))
                .map(|(meant, end)| (meant, end + 1))
        }
        'u' => digits(1, 5),
        _ => None,
    };
    let plain = match first {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        '0' => Some('\0'),
        // A line goes on.
        '\n' => None,
        '\r' => return (None, 1 + usize::from(text.starts_with("\r\n"))),
        other => Some(other),
    };
    coded.unwrap_or((plain, first.len_utf8()))
}
