//! Printing of string values, quoted and block.

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
            self.quoted_string(&value);
        }
    }

    fn quoted_string(&mut self, value: &str) {
        self.out.push('"');
        let mut from = 0;
        for (at, c) in value.char_indices() {
            let simple = match c {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\n' => "\\n",
                '\r' => "\\r",
                '\t' => "\\t",
                '\u{8}' => "\\b",
                '\u{C}' => "\\f",
                c if c.is_control() => "",
                _ => continue,
            };
            self.out.push_str(&value[from..at]);
            from = at + c.len_utf8();
            if simple.is_empty() {
                self.escape(c);
            } else {
                self.out.push_str(simple);
            }
        }
        self.out.push_str(&value[from..]);
        self.out.push('"');
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

fn is_long(value: &str) -> bool {
    value.len() > BLOCK_LINE_MAX && value.encode_utf16().count() > BLOCK_LINE_MAX
}
