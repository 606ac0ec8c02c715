//! A validating scanner over one JSON text.
//!
//! The caller pulls tokens: [`Scanner::peek`] says what comes next, and the matching method reads it. Everything that
//! is stepped over is checked against RFC 8259: grammar, escapes, control characters, UTF-8 and depth. Lone surrogate
//! escapes (`"\ud800"`) are grammatical and therefore accepted.
//!
//! Objects and arrays are stepped like this:
//!
//! ```
//! # use ogive_json::Scanner;
//! # fn sum(json: &[u8]) -> Result<usize, ogive_json::ScanError> {
//! # let mut members = 0;
//! let mut scanner = Scanner::new(json);
//! let mut more = scanner.begin_object()?;
//! while more {
//!     let _key = scanner.key()?;
//!     scanner.skip_value()?;
//!     members += 1;
//!     more = scanner.next_member()?;
//! }
//! scanner.finish()?;
//! # Ok(members)
//! # }
//! # assert_eq!(sum(br#"{"a": 1, "b": []}"#), Ok(2));
//! ```
//!
//! Invariants: after an error the position is unspecified, so a scanner that failed is thrown away; `position` never
//! passes the end of the text.

use std::ops::Range;

use crate::{
    cursor::{self, Cursor, SkipValue},
    error::{ScanError, ScanErrorKind},
    lanes::{self, BASELINE},
    pattern::{Conditions, Open, Pattern, PatternValue},
    text::JsonStr,
};

/// What a value is, by its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A number token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Number {
    /// Where it stands.
    pub range: Range<usize>,
    /// Whether it has neither fraction nor exponent.
    pub integer: bool,
}

type Result<T> = std::result::Result<T, ScanError>;
type Baseline = lanes::Baseline;

/// Walks the tokens of one JSON text.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Containers open around `pos`.
    depth: u32,
    depth_max: u32,
}

impl<'a> Scanner<'a> {
    /// Depth limit of [`Scanner::new`].
    pub const DEPTH_MAX_DEFAULT: u32 = 128;
    /// The highest depth limit there is.
    pub const DEPTH_MAX: u32 = cursor::DEPTH_MAX;

    /// Starts at the beginning of `bytes` with the default depth limit.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with_depth_max(bytes, Self::DEPTH_MAX_DEFAULT)
    }
    /// Starts at the beginning of `bytes`; at most `depth_max` (and never more than [`Self::DEPTH_MAX`]) containers
    /// may be open at a time.
    pub fn with_depth_max(bytes: &'a [u8], depth_max: u32) -> Self {
        Scanner {
            bytes,
            pos: 0,
            depth: 0,
            depth_max: depth_max.min(Self::DEPTH_MAX),
        }
    }
    /// A scanner over the value at `range` of the same text, for reading it a second time. Positions stay those of
    /// the whole text; the range's depth counts from where this scanner stands now.
    #[must_use]
    pub fn within(&self, range: Range<usize>) -> Scanner<'a> {
        let end = range.end.min(self.bytes.len());
        Scanner {
            bytes: &self.bytes[..end],
            pos: range.start.min(end),
            depth: self.depth,
            depth_max: self.depth_max,
        }
    }

    /// Byte offset of the next unread byte.
    pub fn position(&self) -> usize {
        self.pos
    }
    /// The whole text.
    pub fn text(&self) -> &'a [u8] {
        self.bytes
    }

    /// Containers that are open here, and how many may be.
    pub fn depth(&self) -> (u32, u32) {
        (self.depth, self.depth_max)
    }
    /// Goes on where another reader of the same text has left off: `at`, with `depth` containers open. That reader must
    /// have found everything before to be well-formed.
    pub fn resume(&mut self, at: usize, depth: u32) {
        self.pos = at.min(self.bytes.len());
        self.depth = depth;
    }

    /// What the next value is, without reading it.
    pub fn peek(&mut self) -> Result<Kind> {
        self.skip_whitespace();
        Ok(match self.byte()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b'-' | b'0'..=b'9' => Kind::Number,
            b't' => Kind::True,
            b'f' => Kind::False,
            b'n' => Kind::Null,
            _ => return Err(self.unexpected()),
        })
    }

    /// Reads any value and returns where it stands.
    pub fn skip_value(&mut self) -> Result<Range<usize>> {
        let (start, end) = lanes::run(SkipValue {
            text: self.bytes,
            at: self.pos,
            depth: self.depth,
            depth_max: self.depth_max,
        })?;
        self.pos = end;
        Ok(start..end)
    }
    /// Reads a string, number or literal; says what it is and where it stands. Containers are an error.
    pub fn scalar(&mut self) -> Result<Range<usize>> {
        self.skip_whitespace();
        let start = self.pos;
        self.with_cursor(|cursor| cursor.skip_scalar())?;
        Ok(start..self.pos)
    }

    /// Reads the value at the current position if it is exactly what the pattern says, without any white space;
    /// otherwise reads nothing.
    pub fn try_pattern(
        &mut self,
        pattern: &Pattern,
        value: PatternValue,
        conditions: &Conditions,
    ) -> Option<Range<usize>> {
        self.try_pattern_with(&mut Open::default(), pattern, value, conditions)
    }
    /// The same with a stack that was used before, for many small values.
    pub fn try_pattern_with<'p>(
        &mut self,
        open: &mut Open<'p>,
        pattern: &'p Pattern,
        value: PatternValue,
        conditions: &Conditions,
    ) -> Option<Range<usize>> {
        let start = self.pos;
        let depth = (self.depth, self.depth_max);
        self.pos = pattern.matches_with(open, self.bytes, start, value, conditions, depth)?;
        Some(start..self.pos)
    }

    /// Does something with a cursor, and stays where it left off.
    #[inline(always)]
    fn with_cursor<T>(
        &mut self,
        then: impl FnOnce(&mut Cursor<'a, Baseline>) -> Result<T>,
    ) -> Result<T> {
        let mut cursor = Cursor {
            text: self.bytes,
            at: self.pos,
            lanes: BASELINE,
        };
        let result = then(&mut cursor);
        self.pos = cursor.at;
        result
    }

    /// Enters an object; false if it is empty (and already left again).
    pub fn begin_object(&mut self) -> Result<bool> {
        self.begin(b'{', b'}')
    }
    /// Enters an array; false if it is empty (and already left again).
    pub fn begin_array(&mut self) -> Result<bool> {
        self.begin(b'[', b']')
    }
    fn begin(&mut self, open: u8, close: u8) -> Result<bool> {
        self.skip_whitespace();
        self.expect(open)?;
        if self.depth >= self.depth_max {
            return Err(self.error_at(self.pos - 1, ScanErrorKind::TooDeep));
        }
        self.skip_whitespace();
        if self.byte()? == close {
            self.pos += 1;
            return Ok(false);
        }
        self.depth += 1;
        Ok(true)
    }

    /// After a member's value: true if another member follows, false if the object is over.
    pub fn next_member(&mut self) -> Result<bool> {
        self.next(b'}')
    }
    /// After an item: true if another item follows, false if the array is over.
    pub fn next_item(&mut self) -> Result<bool> {
        self.next(b']')
    }
    fn next(&mut self, close: u8) -> Result<bool> {
        self.skip_whitespace();
        match self.byte()? {
            b',' => {
                self.pos += 1;
                Ok(true)
            }
            byte if byte == close => {
                self.pos += 1;
                self.depth = self.depth.saturating_sub(1);
                Ok(false)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Reads a member's key and its colon.
    pub fn key(&mut self) -> Result<JsonStr<'a>> {
        self.skip_whitespace();
        let key = self.string()?;
        self.skip_whitespace();
        self.expect(b':')?;
        Ok(key)
    }
    /// Reads a member's key and its colon if the key is exactly `expected`, written without escapes; otherwise reads
    /// nothing. `expected` itself must need no escapes.
    pub fn try_key(&mut self, expected: &str) -> bool {
        self.skip_whitespace();
        let before = self.pos;
        let quoted = expected.len() + 2;
        let matches = self
            .bytes
            .get(before..before + quoted)
            .is_some_and(|bytes| {
                bytes[0] == b'"'
                    && bytes[quoted - 1] == b'"'
                    && &bytes[1..quoted - 1] == expected.as_bytes()
            });
        if !matches {
            return false;
        }
        self.pos += quoted;
        self.skip_whitespace();
        if self.bytes.get(self.pos) == Some(&b':') {
            self.pos += 1;
            true
        } else {
            // The slow path will report what is wrong.
            self.pos = before;
            false
        }
    }

    /// Reads a string.
    pub fn string(&mut self) -> Result<JsonStr<'a>> {
        self.skip_whitespace();
        self.expect(b'"')?;
        let start = self.pos;
        let escapes = self.with_cursor(|cursor| cursor.string_rest())?;
        Ok(JsonStr::new(&self.bytes[start..self.pos - 1], escapes))
    }

    /// Reads a number.
    pub fn number(&mut self) -> Result<Number> {
        self.skip_whitespace();
        let start = self.pos;
        let integer = self.with_cursor(|cursor| cursor.number())?;
        Ok(Number {
            range: start..self.pos,
            integer,
        })
    }

    /// Reads `null`.
    pub fn null(&mut self) -> Result<()> {
        self.skip_whitespace();
        self.literal(b"null")
    }
    /// Reads `true` or `false`.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.peek()? {
            Kind::True => self.literal(b"true").map(|()| true),
            Kind::False => self.literal(b"false").map(|()| false),
            _ => Err(self.unexpected()),
        }
    }
    fn literal(&mut self, literal: &[u8]) -> Result<()> {
        self.with_cursor(|cursor| cursor.literal(literal))
    }

    /// Checks that nothing but white space is left.
    pub fn finish(&mut self) -> Result<()> {
        self.skip_whitespace();
        if self.pos < self.bytes.len() {
            return Err(self.error(ScanErrorKind::TrailingBytes));
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_whitespace(&mut self) {
        let mut cursor = Cursor {
            text: self.bytes,
            at: self.pos,
            lanes: BASELINE,
        };
        cursor.skip_whitespace();
        self.pos = cursor.at;
    }
    fn byte(&self) -> Result<u8> {
        match self.bytes.get(self.pos) {
            Some(byte) => Ok(*byte),
            None => Err(self.error(ScanErrorKind::UnexpectedEnd)),
        }
    }
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.byte()? != byte {
            return Err(self.unexpected());
        }
        self.pos += 1;
        Ok(())
    }
    pub(crate) fn too_deep(&self) -> ScanError {
        self.error(ScanErrorKind::TooDeep)
    }
    fn unexpected(&self) -> ScanError {
        self.error(ScanErrorKind::UnexpectedByte)
    }
    fn error(&self, kind: ScanErrorKind) -> ScanError {
        self.error_at(self.pos, kind)
    }
    fn error_at(&self, offset: usize, kind: ScanErrorKind) -> ScanError {
        ScanError { offset, kind }
    }
}

/// Checks that `bytes` is one JSON value, nested at most [`Scanner::DEPTH_MAX_DEFAULT`] deep.
pub fn validate(bytes: &[u8]) -> Result<()> {
    let mut scanner = Scanner::new(bytes);
    scanner.skip_value()?;
    scanner.finish()
}
