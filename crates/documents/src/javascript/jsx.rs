//! JSX: elements within programs, whose texts are no program.

use ogive_base::Span;

use super::{Open, Scanner};

impl Scanner<'_> {
    /// Whether a `<` begins an element: where an expression may begin, unless it begins the type parameters of a function.
    pub(super) fn begins_jsx(&self) -> bool {
        if !self.jsx || self.operand || self.plain.contains(&self.at) {
            return false;
        }
        let rest = &self.text[self.at + 1..];
        if rest.starts_with('>') {
            return true;
        }
        let begins = rest.bytes().next().is_some_and(is_name_start);
        let name = rest.bytes().position(|b| !is_name(b)).unwrap_or(rest.len());
        let after = rest[name..].trim_start();
        let parameters = after.starts_with(',')
            || after.starts_with('=')
            || after.strip_prefix("extends").is_some_and(|bound| {
                // An attribute may have that name.
                bound.starts_with(char::is_whitespace)
                    && !bound.trim_start().starts_with(['=', '>', '/'])
            });
        begins && !parameters
    }

    /// The name of an element.
    pub(super) fn jsx_name(&mut self) -> Span {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|b| !is_name(*b));
        let end = self.at + length.unwrap_or(rest.len());
        let name = Span::new(self.at as u32, end as u32);
        self.at = end;
        name
    }

    /// Goes on in `<Name …`.
    pub(super) fn jsx_tag(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'>' => {
                self.at += 1;
                if let Some(Open::JsxTag { name, start }) = self.open.pop() {
                    self.open.push(Open::JsxChildren { name, start });
                }
            }
            b'/' if self.peek(1) == b'>' => {
                self.at += 2;
                self.open.pop();
                self.end_token(true);
            }
            b'/' if self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.peek(1) == b'*' => self.comment(),
            b'"' | b'\'' => {
                let rest = &self.bytes[self.at + 1..];
                match rest.iter().position(|b| *b == byte) {
                    Some(length) => self.at += length + 2,
                    None => self.give_up_last(),
                }
            }
            b'{' => {
                self.at += 1;
                self.open.push(Open::Brace);
                self.end_token(false);
            }
            // Type arguments.
            b'<' => match self.type_end() {
                Some(end) => self.at = end,
                None => self.give_up_last(),
            },
            byte if byte.is_ascii_whitespace() || is_name(byte) || byte == b'=' => self.at += 1,
            _ => self.give_up_last(),
        }
    }

    /// The end of type arguments of an element.
    fn type_end(&self) -> Option<usize> {
        let mut depth = 0usize;
        let rest = &self.bytes[self.at..];
        for (i, byte) in rest.iter().enumerate().take(super::TYPE_ARGUMENTS_MAX) {
            match byte {
                b'<' => depth += 1,
                b'>' if rest[i - 1] != b'=' => depth -= 1,
                b'`' | b';' => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(self.at + i + 1);
            }
        }
        None
    }

    /// Goes on between `<Name>` and `</Name>`.
    pub(super) fn jsx_children(&mut self) {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|b| matches!(b, b'<' | b'{')) else {
            self.at = self.bytes.len();
            return;
        };
        self.at += length;
        if self.bytes[self.at] == b'{' {
            self.at += 1;
            self.open.push(Open::Brace);
            return self.end_token(false);
        }
        if self.peek(1) == b'/' {
            return self.jsx_end();
        }
        let begins = self.peek(1) == b'>' || is_name_start(self.peek(1));
        if !begins || self.plain.contains(&self.at) {
            return self.give_up_last();
        }
        let start = self.start();
        self.at += 1;
        let name = self.jsx_name();
        self.open.push(Open::JsxTag { name, start });
    }

    /// `</Name>`.
    fn jsx_end(&mut self) {
        let close = &self.text[self.at + 2..];
        let after = close.trim_start();
        let name = after
            .bytes()
            .position(|b| !is_name(b))
            .unwrap_or(after.len());
        let (name, rest) = after.split_at(name);
        let rest = rest.trim_start();
        let opened = match self.open.last() {
            Some(Open::JsxChildren { name, .. }) => &self.text[name.range()],
            _ => return,
        };
        if name != opened || !rest.starts_with('>') {
            return self.give_up_last();
        }
        self.at = self.bytes.len() - rest.len() + 1;
        self.open.pop();
        self.end_token(true);
    }

    /// What was opened last is no element after all.
    fn give_up_last(&mut self) {
        if self.plain.len() < super::RETRIES_MAX {
            self.give_up(self.open.len() - 1);
        } else {
            // It is none, and nobody looks again.
            self.at += 1;
            self.open.pop();
            self.end_token(false);
        }
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
}
