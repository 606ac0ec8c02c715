//! Text within HTML, XML and SVG.

/// Text as it stands within an element or a quoted attribute.
pub fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write them.
            c if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_no_element_and_no_attribute() {
        assert_eq!(
            escape_markup("<a b=\"c\">&\u{1}\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp; \n"
        );
    }
}
