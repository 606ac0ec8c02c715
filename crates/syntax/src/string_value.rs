//! The value of a string token: escapes resolved, block-string indentation removed (specification 2.9.4).
//!
//! [`escape_at`] is the one place that knows escape sequences: the lexer checks with it, values are made with it.

use std::borrow::Cow;

/// The value of the token `raw` (quotes included). Borrows when nothing needs to change.
pub(crate) fn string_value(raw: &str, block: bool) -> Cow<'_, str> {
    if block {
        block_value(inner(raw, "\"\"\""))
    } else {
        quoted_value(inner(raw, "\""))
    }
}

/// The text between the quotes; an unterminated token (in a document with errors) has no closing ones.
fn inner<'a>(raw: &'a str, quotes: &str) -> &'a str {
    let text = raw.strip_prefix(quotes).unwrap_or(raw);
    text.strip_suffix(quotes).unwrap_or(text)
}

fn quoted_value(text: &str) -> Cow<'_, str> {
    let Some(mut at) = memchr::memchr(b'\\', text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    loop {
        out.push_str(&text[from..at]);
        from = match escape_at(text, at) {
            Ok((c, end)) => {
                out.push(c);
                end
            }
            // Only in documents with errors.
            Err(end) => {
                out.push('\u{FFFD}');
                end
            }
        };
        match memchr::memchr(b'\\', &text.as_bytes()[from..]) {
            Some(skip) => at = from + skip,
            None => break,
        }
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Decodes the escape sequence whose backslash is at `at`: the character and where the sequence ends.
/// `Err` is the end of what to show for a malformed one.
pub fn escape_at(text: &str, at: usize) -> Result<(char, usize), usize> {
    let bytes = text.as_bytes();
    let simple = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{C}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') if bytes.get(at + 2) == Some(&b'{') => return braced_escape(text, at),
        Some(b'u') => return fixed_escape(text, at),
        Some(_) => return Err(chars_end(text, at, 2)),
        None => return Err(text.len()),
    };
    Ok((simple, at + 2))
}

/// `\u{1F600}`
fn braced_escape(text: &str, at: usize) -> Result<(char, usize), usize> {
    let bytes = text.as_bytes();
    let (mut point, mut pos) = (0u32, at + 3);
    loop {
        match bytes.get(pos) {
            Some(b'}') if pos > at + 3 => {
                let found = char::from_u32(point).ok_or(pos + 1)?;
                return Ok((found, pos + 1));
            }
            Some(byte) => match hex(*byte) {
                // Saturates above every scalar value, so long digit runs cannot wrap around into a valid one.
                Some(digit) => point = (point.min(0x0FFF_FFFF) << 4) | digit,
                None => return Err(chars_end(text, pos, 1)),
            },
            None => return Err(text.len()),
        }
        pos += 1;
    }
}

/// `\u0041`, or `\uD83D\uDE00` for one character beyond the basic plane.
fn fixed_escape(text: &str, at: usize) -> Result<(char, usize), usize> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        bytes
            .get(at + 2..at + 6)?
            .iter()
            .try_fold(0, |point, byte| Some(point << 4 | hex(*byte)?))
    };
    let shown = || chars_end(text, at, 6);
    let first = unit(at).ok_or_else(shown)?;
    if let Some(found) = char::from_u32(first) {
        return Ok((found, at + 6));
    }
    if (0xD800..0xDC00).contains(&first)
        && bytes.get(at + 6..at + 8) == Some(b"\\u")
        && let Some(second @ 0xDC00..0xE000) = unit(at + 6)
    {
        let point = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return char::from_u32(point)
            .map(|found| (found, at + 12))
            .ok_or_else(shown);
    }
    Err(shown())
}

/// Where `n` characters from `at` end.
fn chars_end(text: &str, at: usize, n: usize) -> usize {
    text[at..]
        .char_indices()
        .nth(n)
        .map_or(text.len(), |(i, _)| at + i)
}

fn hex(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// `BlockStringValue`: common indentation and blank lines at both ends removed, line ends become LF.
fn block_value(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if memchr::memchr2(b'\n', b'\r', bytes).is_none() {
        return if is_blank(text) {
            Cow::Borrowed("")
        } else {
            unescape_block(text)
        };
    }
    let mut common_indent = usize::MAX;
    let (mut first, mut last) = (usize::MAX, 0);
    for (i, line) in lines(text).enumerate() {
        let indent = indent_of(line);
        if indent < line.len() {
            if i > 0 {
                common_indent = common_indent.min(indent);
            }
            first = first.min(i);
            last = i;
        }
    }
    let mut out = String::with_capacity(text.len());
    for (i, line) in lines(text).enumerate() {
        if i < first || i > last {
            continue;
        }
        if i > first {
            out.push('\n');
        }
        // Bytes that are cut are spaces and tabs, so this is a character boundary.
        let cut = if i == 0 {
            0
        } else {
            common_indent.min(line.len())
        };
        out.push_str(&line[cut..]);
    }
    if out.contains(ESCAPED_QUOTES) {
        out = out.replace(ESCAPED_QUOTES, "\"\"\"");
    }
    Cow::Owned(out)
}

const ESCAPED_QUOTES: &str = "\\\"\"\"";

fn unescape_block(text: &str) -> Cow<'_, str> {
    if text.contains(ESCAPED_QUOTES) {
        Cow::Owned(text.replace(ESCAPED_QUOTES, "\"\"\""))
    } else {
        Cow::Borrowed(text)
    }
}

fn indent_of(line: &str) -> usize {
    line.bytes()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

fn is_blank(line: &str) -> bool {
    indent_of(line) == line.len()
}

/// The lines of `text`, ended by LF, CR LF or CR.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let Some(end) = memchr::memchr2(b'\n', b'\r', all.as_bytes()) else {
            rest = None;
            return Some(all);
        };
        let after = if all[end..].starts_with("\r\n") {
            end + 2
        } else {
            end + 1
        };
        rest = Some(&all[after..]);
        Some(&all[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(raw: &str) -> String {
        string_value(raw, raw.starts_with("\"\"\"")).into_owned()
    }

    #[test]
    fn quoted_strings_resolve_every_escape() {
        assert_eq!(value(r#""""#), "");
        assert_eq!(value(r#""plain é""#), "plain é");
        assert_eq!(
            value(r#""\" \\ \/ \b \f \n \r \t""#),
            "\" \\ / \u{8} \u{c} \n \r \t"
        );
        assert_eq!(
            value(r#""\u0041\u00e9\uD83D\uDE00\u{1F600}\u{0000000041}""#),
            "Aé😀😀A"
        );
        assert_eq!(value(r#""\\u0041\\\\""#), "\\u0041\\\\");
        assert_eq!(value(r#""a\"""#), "a\"");
    }

    #[test]
    fn malformed_escapes_say_where_they_end() {
        for (text, shown) in [
            (r"\x", r"\x"),
            (r"\uD83D", r"\uD83D"),
            (r"\uD83D\u0041", r"\uD83D"),
            (r"\uDE00", r"\uDE00"),
            (r"\u00g0 ", r"\u00g0"),
            (r"\u{}", r"\u{}"),
            (r"\u{110000}", r"\u{110000}"),
            (r"\u{D800}", r"\u{D800}"),
            (r"\u{FFFFFFFFFFFF41}", r"\u{FFFFFFFFFFFF41}"),
            (r"\u{4é", r"\u{4é"),
            (r"\é", r"\é"),
        ] {
            assert_eq!(escape_at(text, 0), Err(shown.len()), "{text}");
        }
    }

    #[test]
    fn block_strings_lose_common_indentation_and_blank_ends() {
        assert_eq!(value("\"\"\"\"\"\""), "");
        assert_eq!(value("\"\"\"  \t \"\"\""), "");
        assert_eq!(value("\"\"\" \n \n\t\"\"\""), "");
        assert_eq!(value("\"\"\"  one  \"\"\""), "  one  ");
        assert_eq!(
            value("\"\"\"\n    a\n      b\n\n    c\n  \"\"\""),
            "a\n  b\n\nc"
        );
        assert_eq!(value("\"\"\"  a\n    b\n    c\"\"\""), "  a\nb\nc");
        assert_eq!(value("\"\"\"a\r\n  b\r  c\r\n\"\"\""), "a\nb\nc");
        assert_eq!(value("\"\"\"\n  a\n \n  b\"\"\""), "a\n\nb");
        assert_eq!(value("\"\"\"x \\\"\"\" y\"\"\""), "x \"\"\" y");
        assert_eq!(value("\"\"\"\n x \\\"\"\" y\n\"\"\""), "x \"\"\" y");
        assert_eq!(value(r#""""\u0041 \n""""#), r"\u0041 \n");
    }

    #[test]
    fn values_borrow_when_nothing_changes() {
        assert!(matches!(
            string_value("\"abc\"", false),
            Cow::Borrowed("abc")
        ));
        assert!(matches!(
            string_value("\"\"\"abc\"\"\"", true),
            Cow::Borrowed("abc")
        ));
    }
}
