//! Structured field values (RFC 9651), as far as caches need them: dictionaries of directives and lists of names.
//!
//! If one item of a field is malformed, the whole field is malformed. Parameters and members of inner lists are checked and
//! dropped, because the fields that caches read give them no meaning.

use std::iter::from_fn;

/// The value of an item.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// At most 15 digits.
    Integer(i64),
    /// With at most three digits behind the point.
    Decimal(f64),
    /// The text, with its escapes decoded.
    String(String),
    /// A word without quotation marks.
    Token(String),
    /// `?1` or `?0`.
    Boolean(bool),
    /// Bytes, a date, a display string or an inner list: caches read none of them.
    Other,
}

/// A malformed field value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// Parses a dictionary; returns its members in order. Of equal names the last value counts, at the place of the first.
pub fn parse_dictionary(text: &str) -> Result<Vec<(String, Value)>> {
    let mut reader = Reader::new(text);
    let mut members: Vec<(String, Value)> = Vec::new();
    reader.list_of(|reader| {
        let name = reader.key()?;
        let value = if reader.accept(b'=') {
            reader.item_or_inner_list()?
        } else {
            Value::Boolean(true)
        };
        reader.parameters()?;
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => members.push((name, value)),
        }
        Ok(())
    })?;
    Ok(members)
}

/// Parses a list; returns its items.
pub fn parse_list(text: &str) -> Result<Vec<Value>> {
    let mut reader = Reader::new(text);
    let mut items = Vec::new();
    reader.list_of(|reader| {
        items.push(reader.item_or_inner_list()?);
        reader.parameters()
    })?;
    Ok(items)
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        let text = text.trim_matches(' ').as_bytes();
        Reader { text, at: 0 }
    }
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }
    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }
    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }
    /// Takes the next bytes for which `is_part` holds.
    fn run(&mut self, is_part: impl Fn(u8) -> bool) -> &'t str {
        let begin = self.at;
        self.skip(is_part);
        std::str::from_utf8(&self.text[begin..self.at]).unwrap_or_default()
    }

    /// Reads members separated by commas, up to the end (section 4.2.1).
    fn list_of(&mut self, mut member: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while self.peek().is_some() {
            member(self)?;
            self.skip(is_space);
            if self.peek().is_none() {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err(Malformed);
            }
            self.skip(is_space);
            if self.peek().is_none() {
                return Err(Malformed);
            }
        }
        Ok(())
    }

    fn item_or_inner_list(&mut self) -> Result<Value> {
        if !self.accept(b'(') {
            return self.item();
        }
        loop {
            self.skip(|byte| byte == b' ');
            if self.accept(b')') {
                return Ok(Value::Other);
            }
            self.item()?;
            self.parameters()?;
            if !matches!(self.peek(), Some(b' ' | b')')) {
                return Err(Malformed);
            }
        }
    }

    fn parameters(&mut self) -> Result<()> {
        while self.accept(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.accept(b'=') {
                self.item()?;
            }
        }
        Ok(())
    }

    fn key(&mut self) -> Result<String> {
        let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
        if !self.peek().is_some_and(is_first) {
            return Err(Malformed);
        }
        let is_part = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Ok(self.run(is_part).to_owned())
    }

    fn item(&mut self) -> Result<Value> {
        match self.peek().ok_or(Malformed)? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string().map(Value::String),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => Ok(Value::Token(self.run(is_of_token).to_owned())),
            b':' => self.bytes(),
            b'?' => self.boolean(),
            b'@' => self.date(),
            b'%' => self.display_string(),
            _ => Err(Malformed),
        }
    }

    fn number(&mut self) -> Result<Value> {
        let begin = self.at;
        self.accept(b'-');
        let whole = self.run(|byte| byte.is_ascii_digit()).len();
        if whole == 0 {
            return Err(Malformed);
        }
        let is_decimal = self.accept(b'.');
        let fraction = if is_decimal {
            self.run(|byte| byte.is_ascii_digit()).len()
        } else {
            0
        };
        let text = std::str::from_utf8(&self.text[begin..self.at]).map_err(|_| Malformed)?;
        let value = if !is_decimal && whole <= 15 {
            text.parse().ok().map(Value::Integer)
        } else if is_decimal && whole <= 12 && (1..=3).contains(&fraction) {
            text.parse().ok().map(Value::Decimal)
        } else {
            None
        };
        value.ok_or(Malformed)
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next().ok_or(Malformed)? {
                b'"' => return Ok(out),
                b'\\' => match self.next().ok_or(Malformed)? {
                    byte @ (b'"' | b'\\') => out.push(char::from(byte)),
                    _ => return Err(Malformed),
                },
                byte @ 0x20..=0x7e => out.push(char::from(byte)),
                _ => return Err(Malformed),
            }
        }
    }

    fn bytes(&mut self) -> Result<Value> {
        self.at += 1;
        self.run(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        self.accept(b':').then_some(Value::Other).ok_or(Malformed)
    }

    fn boolean(&mut self) -> Result<Value> {
        self.at += 1;
        match self.next() {
            Some(b'1') => Ok(Value::Boolean(true)),
            Some(b'0') => Ok(Value::Boolean(false)),
            _ => Err(Malformed),
        }
    }

    fn date(&mut self) -> Result<Value> {
        self.at += 1;
        match self.number()? {
            Value::Integer(_) => Ok(Value::Other),
            _ => Err(Malformed),
        }
    }

    fn display_string(&mut self) -> Result<Value> {
        self.at += 1;
        if !self.accept(b'"') {
            return Err(Malformed);
        }
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let mut text = Vec::new();
        loop {
            match self.next().ok_or(Malformed)? {
                b'"' => break,
                b'%' => {
                    let digits: Vec<u8> = from_fn(|| self.next()).take(2).collect();
                    if digits.len() < 2 || !digits.iter().all(|byte| is_hex(*byte)) {
                        return Err(Malformed);
                    }
                    let digits = std::str::from_utf8(&digits).map_err(|_| Malformed)?;
                    text.push(u8::from_str_radix(digits, 16).map_err(|_| Malformed)?);
                }
                byte @ 0x20..=0x7e => text.push(byte),
                _ => return Err(Malformed),
            }
        }
        // The decoded bytes must be UTF-8.
        String::from_utf8(text)
            .map(|_| Value::Other)
            .map_err(|_| Malformed)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":/!#$%&'*+-.^_`|~".contains(&byte)
}
