//! Printing of string values, quoted and block.

use std::fmt::{self, Write};

use super::Printer;
use crate::{ast::StringValue, string_value::lines};

/// Longest block string on one line, in UTF-16 code units.
const BLOCK_LINE_MAX: usize = 70;

impl Printer<'_> {
    pub(super) fn string(&mut self, string: StringValue) {
        let value = self.doc.string_value(string);
        if string.block && self.block_strings {
            self.block_string(&value);
        } else {
            // Writing to a string cannot fail.
            let _ = write_string(&value, &mut self.out);
        }
    }

    /// A block string whose value is `value`, which is the value of some block string: it has no blank first
    /// or last line, and its lines after the first have no indentation in common.
    fn block_string(&mut self, value: &str) {
        self.out.push_str("\"\"\"");
        let one_line = !value.contains('\n');
        // The closing quotes must not join a quote or follow a backslash.
        let guard_end = value.ends_with(['"', '\\']);
        // Indentation of a single line counts only right after the opening quotes.
        let keep_first = one_line && value.starts_with([' ', '\t']);
        let spread = !one_line || guard_end || is_long(value);
        if spread && !keep_first {
            self.line();
        }
        let escaped;
        let text = if value.contains("\"\"\"") {
            escaped = value.replace("\"\"\"", "\\\"\"\"");
            &escaped
        } else {
            value
        };
        for (i, line) in lines(text).enumerate() {
            if i > 0 {
                self.out.push('\n');
                if !line.is_empty() {
                    self.indentation();
                }
            }
            self.out.push_str(line);
        }
        if spread {
            self.line();
        }
        self.out.push_str("\"\"\"");
    }
}

/// Writes a string in quotes, escaping what must be escaped (specification 2.9.4).
pub fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut plain = 0;
    for (i, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            c if c.is_control() => "",
            _ => continue,
        };
        out.write_str(&text[plain..i])?;
        if escape.is_empty() {
            write!(out, "\\u{:04X}", u32::from(c))?;
        } else {
            out.write_str(escape)?;
        }
        plain = i + c.len_utf8();
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

fn is_long(value: &str) -> bool {
    value.len() > BLOCK_LINE_MAX && value.encode_utf16().count() > BLOCK_LINE_MAX
}
