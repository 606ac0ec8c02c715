//! Text from outside: names, ids, messages and header values that are as long as whoever wrote them likes.
//!
//! Whatever of it is echoed, logged, counted, traced or kept beyond its request goes through [`bounded`], so that one
//! request cannot fill a log, a table of metrics or an answer. What is executed or sent on to subgraphs does not: there
//! the limits on requests hold.

use std::borrow::Cow;

/// Longest name, id or header value that is shown, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest message that is shown, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1_000;
/// Stands for what is left out.
const GAP: &str = " ... ";

/// The text itself if it has at most `bytes_max` bytes; otherwise its beginning and its end, because the end of a message
/// often says what to do. The result has no more than `bytes_max` bytes.
pub fn bounded(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let half = bytes_max.saturating_sub(GAP.len()) / 2;
    let begin = text.floor_char_boundary(half);
    let end = text.ceil_char_boundary(text.len() - half);
    let mut out = String::with_capacity(bytes_max);
    out.push_str(&text[..begin]);
    if bytes_max >= GAP.len() {
        out.push_str(GAP);
    }
    out.push_str(&text[end..]);
    Cow::Owned(out)
}

/// The same for a text that nobody else needs: it is not copied if it has no more than `bytes_max` bytes.
pub fn bounded_string(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        text
    } else {
        bounded(&text, bytes_max).into_owned()
    }
}

/// A name, an id or a header value, to be shown.
pub fn bounded_name(text: &str) -> Cow<'_, str> {
    bounded(text, NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_within_the_bound_is_itself() {
        assert!(matches!(bounded("", 0), Cow::Borrowed("")));
        assert!(matches!(bounded("äöü", 6), Cow::Borrowed("äöü")));
    }

    #[test]
    fn longer_text_keeps_both_ends_and_never_exceeds_the_bound() {
        let text = format!("begin{}end", "ä".repeat(100_000));
        for max in 0..300 {
            let shown = bounded(&text, max);
            assert!(shown.len() <= max, "{max}: {} bytes", shown.len());
        }
        let shown = bounded(&text, 40);
        assert!(shown.starts_with("begin") && shown.ends_with("end") && shown.contains(GAP));
    }
}
