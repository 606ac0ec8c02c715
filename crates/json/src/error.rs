//! Why a text is no JSON, and where: what every reader of texts fails with.

use std::fmt;

/// Why a text is no JSON, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanError {
    /// Byte offset of the offending byte; the length of the text if it ends too early.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ScanErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that cannot stand here.
    UnexpectedByte,
    /// A malformed number.
    InvalidNumber,
    /// A malformed escape sequence.
    InvalidEscape,
    /// An unescaped control character inside a string.
    ControlCharacter,
    /// A string is no UTF-8.
    InvalidUtf8,
    /// Nested more deeply than allowed.
    TooDeep,
    /// Something follows the value.
    TrailingBytes,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ScanErrorKind::UnexpectedEnd => "unexpected end",
            ScanErrorKind::UnexpectedByte => "unexpected character",
            ScanErrorKind::InvalidNumber => "malformed number",
            ScanErrorKind::InvalidEscape => "malformed escape sequence",
            ScanErrorKind::ControlCharacter => "unescaped control character",
            ScanErrorKind::InvalidUtf8 => "invalid UTF-8",
            ScanErrorKind::TooDeep => "nested too deeply",
            ScanErrorKind::TrailingBytes => "something follows the value",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl std::error::Error for ScanError {}
