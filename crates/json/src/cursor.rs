//! Tokens, read with vector instructions: what [`Scanner`](crate::Scanner) and [`Pattern`](crate::Pattern) have in
//! common.
//!
//! Everything is `#[inline(always)]`, so that it is compiled for the instruction set of the [`crate::lanes::Job`]
//! it is part of.

use crate::{
    error::{ScanError, ScanErrorKind},
    key::Key,
    lanes::{Job, Lanes},
};

type Result<T> = std::result::Result<T, ScanError>;

/// Most containers that may be open at a time.
pub(crate) const DEPTH_MAX: u32 = 1024;

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'t, L> {
    /// The text.
    pub text: &'t [u8],
    /// Next byte to read.
    pub at: usize,
    /// The instructions.
    pub lanes: L,
}

impl<L: Lanes> Cursor<'_, L> {
    /// Reads a key and its colon if it is exactly `key`, with nothing before it but the comma or bracket that has been
    /// read; otherwise reads nothing.
    #[inline(always)]
    pub fn key(&mut self, key: &Key) -> bool {
        let Some(before) = self.at.checked_sub(1) else {
            return false;
        };
        let found = key.is_behind(self.lanes, self.text, before);
        if found {
            self.at = before + key.len();
        }
        found
    }
    #[inline(always)]
    pub(crate) fn error(&self, kind: ScanErrorKind) -> ScanError {
        self.error_at(self.at, kind)
    }
    #[inline(always)]
    pub(crate) fn error_at(&self, offset: usize, kind: ScanErrorKind) -> ScanError {
        ScanError { offset, kind }
    }
    #[inline(always)]
    pub(crate) fn unexpected(&self) -> ScanError {
        self.error(ScanErrorKind::UnexpectedByte)
    }
    #[inline(always)]
    pub(crate) fn byte(&self) -> Result<u8> {
        match self.text.get(self.at) {
            Some(byte) => Ok(*byte),
            None => Err(self.error(ScanErrorKind::UnexpectedEnd)),
        }
    }
    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.byte()? != byte {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn skip_whitespace(&mut self) {
        // Mostly there is none, or one byte.
        if !self.at_space() {
            return;
        }
        self.at += 1;
        if self.at_space() {
            self.skip_spaces();
        }
    }
    #[inline(always)]
    fn at_space(&self) -> bool {
        matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r'))
    }
    #[inline(always)]
    fn skip_spaces(&mut self) {
        while let Some(mask) = self.lanes.space_mask(self.text, self.at) {
            let run = (!mask).trailing_zeros() as usize;
            if run < L::BLOCK {
                self.at += run;
                return;
            }
            self.at += L::BLOCK;
        }
        while self.at_space() {
            self.at += 1;
        }
    }

    /// Reads the rest of a string whose opening quote has been read; `at` is behind the closing quote afterwards.
    /// Says whether anything is escaped.
    #[inline(always)]
    pub fn string_rest(&mut self) -> Result<bool> {
        let start = self.at;
        let (mut escapes, mut high) = (false, false);
        loop {
            let byte = loop {
                let Some(masks) = self.lanes.string_masks(self.text, self.at) else {
                    break self.string_stop_at_end(&mut high)?;
                };
                if masks.stop == 0 {
                    high |= masks.high != 0;
                    self.at += L::BLOCK;
                    continue;
                }
                let before = masks.stop & masks.stop.wrapping_neg();
                high |= masks.high & (before - 1) != 0;
                self.at += masks.stop.trailing_zeros() as usize;
                break self.byte()?;
            };
            match byte {
                b'"' => break,
                b'\\' => {
                    escapes = true;
                    self.escape()?;
                }
                _ => return Err(self.error(ScanErrorKind::ControlCharacter)),
            }
        }
        if high {
            self.check_utf8(start)?;
        }
        self.at += 1;
        Ok(escapes)
    }
    /// The next quote, backslash or control character, in the last bytes of the text.
    #[inline(always)]
    fn string_stop_at_end(&mut self, high: &mut bool) -> Result<u8> {
        loop {
            let byte = self.byte()?;
            match byte {
                b'"' | b'\\' | 0..0x20 => return Ok(byte),
                0x80.. => *high = true,
                _ => {}
            }
            self.at += 1;
        }
    }
    #[inline(always)]
    fn check_utf8(&self, start: usize) -> Result<()> {
        match std::str::from_utf8(&self.text[start..self.at]) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(self.error_at(start + error.valid_up_to(), ScanErrorKind::InvalidUtf8))
            }
        }
    }
    #[inline(always)]
    fn escape(&mut self) -> Result<()> {
        let start = self.at;
        self.at += 1;
        match self.byte()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte()?.is_ascii_hexdigit() {
                        return Err(self.error_at(start, ScanErrorKind::InvalidEscape));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.error_at(start, ScanErrorKind::InvalidEscape)),
        }
        Ok(())
    }

    /// Reads a number; says whether it has neither fraction nor exponent.
    #[inline(always)]
    pub fn number(&mut self) -> Result<bool> {
        // Most numbers fit into one block, and then one look at it is enough.
        let first = self.at + usize::from(self.text.get(self.at) == Some(&b'-'));
        if let Some(mask) = self.lanes.digit_mask(self.text, first) {
            let whole = (!mask).trailing_zeros() as usize;
            let leading_zero = self.text.get(first) == Some(&b'0') && whole > 1;
            // The block begins with digits and has something else in it, so these bytes exist.
            if whole > 0 && whole < L::DIGIT_BLOCK && !leading_zero {
                let end = first + whole;
                match self.text.get(end) {
                    Some(b'.') => {
                        let fraction = (!(mask >> whole >> 1)).trailing_zeros() as usize;
                        let end = end + 1 + fraction;
                        let inside = whole + 1 + fraction < L::DIGIT_BLOCK;
                        if inside
                            && fraction > 0
                            && !matches!(self.text.get(end), Some(b'e' | b'E'))
                        {
                            self.at = end;
                            return Ok(false);
                        }
                    }
                    Some(b'e' | b'E') => {}
                    _ => {
                        self.at = end;
                        return Ok(true);
                    }
                }
            }
        }
        self.any_number()
    }
    /// The same for numbers of any length, and for those that are none.
    #[inline(never)]
    fn any_number(&mut self) -> Result<bool> {
        let start = self.at;
        if self.byte()? == b'-' {
            self.at += 1;
        }
        let first = self.at;
        self.digits();
        match self.text.get(first) {
            None => return Err(self.error(ScanErrorKind::UnexpectedEnd)),
            // A leading zero.
            Some(b'0') if self.at > first + 1 => {
                return Err(self.error_at(first + 1, ScanErrorKind::InvalidNumber));
            }
            Some(b'0'..=b'9') => {}
            Some(_) if first == start => return Err(self.unexpected()),
            Some(_) => return Err(self.error(ScanErrorKind::InvalidNumber)),
        }
        let mut integer = true;
        if self.text.get(self.at) == Some(&b'.') {
            integer = false;
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(integer)
    }
    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
    fn some_digits(&mut self) -> Result<()> {
        if !self.byte()?.is_ascii_digit() {
            return Err(self.error(ScanErrorKind::InvalidNumber));
        }
        self.digits();
        Ok(())
    }

    /// Reads exactly `literal`.
    #[inline(always)]
    pub fn literal(&mut self, literal: &[u8]) -> Result<()> {
        if let Some(word) = self.text.get(self.at..self.at + literal.len())
            && word == literal
        {
            self.at += literal.len();
            return Ok(());
        }
        for expected in literal {
            self.expect(*expected)?;
        }
        Ok(())
    }

    /// Reads any value, white space before it included; says where it begins. `depth` containers are open around it.
    #[inline(always)]
    pub(crate) fn skip_value(&mut self, depth: u32, depth_max: u32) -> Result<usize> {
        /// One bit per open container says whether it is an object.
        type Open = [u64; DEPTH_MAX as usize / 64 + 1];
        self.skip_whitespace();
        let begin = self.at;
        // Only containers need the table.
        if !matches!(self.byte()?, b'{' | b'[') {
            self.skip_scalar()?;
            return Ok(begin);
        }
        let mut objects: Open = [0; DEPTH_MAX as usize / 64 + 1];
        let mut open = depth;
        let bit = |open: u32| ((open / 64) as usize, 1u64 << (open % 64));
        loop {
            // A value begins here.
            let byte = self.byte()?;
            let mut object = byte == b'{';
            if object || byte == b'[' {
                if open >= depth_max {
                    return Err(self.error(ScanErrorKind::TooDeep));
                }
                self.at += 1;
                self.skip_whitespace();
                // `{` and `[` are two below their closing brackets.
                if self.byte()? == byte + 2 {
                    self.at += 1;
                    if open == depth {
                        return Ok(begin);
                    }
                } else {
                    open += 1;
                    let (word, mask) = bit(open);
                    if object {
                        objects[word] |= mask;
                        self.skip_key()?;
                    } else {
                        objects[word] &= !mask;
                    }
                    continue;
                }
            } else {
                self.skip_scalar()?;
            }
            // A value is complete.
            loop {
                self.skip_whitespace();
                let (word, mask) = bit(open);
                object = objects[word] & mask != 0;
                match self.byte()? {
                    b',' => {
                        self.at += 1;
                        self.skip_whitespace();
                        if object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    b'}' if object => self.at += 1,
                    b']' if !object => self.at += 1,
                    _ => return Err(self.unexpected()),
                }
                open -= 1;
                if open == depth {
                    return Ok(begin);
                }
            }
        }
    }
    #[inline(always)]
    fn skip_key(&mut self) -> Result<()> {
        self.expect(b'"')?;
        self.string_rest()?;
        self.skip_whitespace();
        self.expect(b':')?;
        self.skip_whitespace();
        Ok(())
    }
    #[inline(always)]
    pub(crate) fn skip_scalar(&mut self) -> Result<()> {
        match self.byte()? {
            b'"' => {
                self.at += 1;
                self.string_rest().map(drop)
            }
            b'-' | b'0'..=b'9' => self.number().map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => Err(self.unexpected()),
        }
    }
}

/// Reads any value; gives where it begins and what follows it.
pub(crate) struct SkipValue<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) at: usize,
    pub(crate) depth: u32,
    pub(crate) depth_max: u32,
}

impl Job for SkipValue<'_> {
    type Output = Result<(usize, usize)>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        let mut cursor = Cursor {
            text: self.text,
            at: self.at,
            lanes,
        };
        let begin = cursor.skip_value(self.depth, self.depth_max)?;
        Ok((begin, cursor.at))
    }
}
