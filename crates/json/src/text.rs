//! Contents of JSON strings.

use std::borrow::Cow;

use crate::{
    key::append_short,
    lanes::{BASELINE, Baseline, KEY_BLOCK, Lanes},
};

/// The contents of a validated JSON string, as written between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStr<'a> {
    raw: &'a [u8],
    escapes: bool,
}

impl<'a> JsonStr<'a> {
    /// `raw` must be the contents of a string that a scanner accepted; `escapes` says whether a backslash is in it.
    pub(crate) fn new(raw: &'a [u8], escapes: bool) -> Self {
        JsonStr { raw, escapes }
    }
    /// The bytes between the quotes, escapes included.
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }
    /// Whether anything is escaped.
    pub fn has_escapes(self) -> bool {
        self.escapes
    }
    /// Whether the string denotes exactly `other`.
    pub fn is(self, other: &str) -> bool {
        if self.escapes {
            self.unescape() == other
        } else {
            self.raw == other.as_bytes()
        }
    }
    /// The denoted text; lone surrogates become U+FFFD. Borrows unless something is escaped.
    pub fn unescape(self) -> Cow<'a, str> {
        if !self.escapes {
            // Checking for what is almost always so is many times cheaper than looking for what is not.
            return match str::from_utf8(self.raw) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => String::from_utf8_lossy(self.raw),
            };
        }
        let raw = self.raw;
        // Short runs are copied as a whole block.
        let mut out = Vec::with_capacity(raw.len() + KEY_BLOCK);
        let mut at = 0;
        while let Some(slash) = next_slash(raw, at) {
            append_short(&mut out, raw, at, slash - at);
            at = raw.len() - unescape_one(&raw[slash + 1..], &mut out).len();
        }
        append_short(&mut out, raw, at, raw.len() - at);
        // Only whole characters were added to the validated rest, so nothing is lost here.
        Cow::Owned(
            String::from_utf8(out)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

/// Where the next backslash of a string's contents is. There are no control characters in them, and quotes only behind
/// backslashes.
#[inline]
fn next_slash(raw: &[u8], from: usize) -> Option<usize> {
    const BLOCK: usize = <Baseline as Lanes>::BLOCK;
    let mut at = from;
    while let Some(masks) = BASELINE.string_masks(raw, at) {
        if masks.stop != 0 {
            return Some(at + masks.stop.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    // The last block, some of which was looked at before.
    let last = raw.len().checked_sub(BLOCK);
    if let Some((last, masks)) = last.and_then(|at| Some((at, BASELINE.string_masks(raw, at)?))) {
        let stop = masks.stop >> (at - last);
        return (stop != 0).then(|| at + stop.trailing_zeros() as usize);
    }
    let rest = raw.get(at..)?;
    Some(at + rest.iter().position(|byte| *byte == b'\\')?)
}

/// Decodes the escape whose backslash has just been read; returns what follows it.
fn unescape_one<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((&letter, after)) = rest.split_first() else {
        return rest;
    };
    let plain = match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unescape_unicode(after, out),
        other => other,
    };
    out.push(plain);
    after
}

fn unescape_unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (Some(first), Some(after)) = (hex4(rest), rest.get(4..)) else {
        return &[];
    };
    let mut rest = after;
    let mut code = first;
    if (0xd800..0xdc00).contains(&first)
        && let Some(low) = after.strip_prefix(b"\\u")
        && let (Some(second), Some(after_low)) = (hex4(low), low.get(4..))
        && (0xdc00..0xe000).contains(&second)
    {
        code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        rest = after_low;
    }
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    digits.iter().try_fold(0, |code, digit| {
        Some(code * 16 + (*digit as char).to_digit(16)?)
    })
}
