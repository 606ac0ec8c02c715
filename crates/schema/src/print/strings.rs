//! Descriptions: block strings where their value survives it, else quoted strings.

use super::Printer;
use crate::value::write_string;

/// Longest description on the line of its quotes, in UTF-16 code units.
const LINE_MAX: usize = 70;

impl Printer<'_> {
    /// A description and the line end after it.
    pub(super) fn description(&mut self, description: Option<&str>) {
        let Some(text) = description.filter(|_| self.options.descriptions) else {
            return;
        };
        if is_block(text) {
            self.block(text);
        } else {
            // Writing to a string cannot fail.
            let _ = write_string(text, &mut self.out);
        }
        self.line();
    }

    fn block(&mut self, text: &str) {
        self.out.push_str("\"\"\"");
        let spread = text.contains('\n') || is_guarded(text) || is_long(text);
        if spread {
            self.line();
        }
        for (i, line) in text.replace("\"\"\"", "\\\"\"\"").split('\n').enumerate() {
            match (i, line) {
                (0, _) => {}
                (_, "") => self.out.push('\n'),
                _ => self.line(),
            }
            self.out.push_str(line);
        }
        if spread {
            self.line();
        }
        self.out.push_str("\"\"\"");
    }
}

/// Whether the value of the printed block string is `text` again (specification 2.9.4, `BlockStringValue`): no
/// characters that need escapes, no blank first or last line, no indentation that all lines share.
fn is_block(text: &str) -> bool {
    let is_blank = |line: &str| line.trim_matches([' ', '\t']).is_empty();
    let mut lines = text.split('\n');
    !text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
        && !lines.next().is_none_or(is_blank)
        && !lines.next_back().is_some_and(is_blank)
        && text
            .split('\n')
            .any(|line| !is_blank(line) && !line.starts_with([' ', '\t']))
}

/// Whether closing quotes right after the text would be read as part of it.
fn is_guarded(text: &str) -> bool {
    text.ends_with(['"', '\\'])
}

fn is_long(text: &str) -> bool {
    text.len() > LINE_MAX && text.encode_utf16().count() > LINE_MAX
}
