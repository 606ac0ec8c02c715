//! Base64, and forms.

use base64::{Engine, engine::general_purpose::STANDARD};
use ogive_base::encode::percent_encode;

/// Base64 with padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A body of form fields (`application/x-www-form-urlencoded`).
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        percent_encode(&mut out, name.as_bytes(), b"");
        out.push('=');
        percent_encode(&mut out, value.as_bytes(), b"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text() {
        assert_eq!(base64(b"hello"), "aGVsbG8=");
        assert_eq!(
            form(&[("a b", "c/d"), ("e", "\u{e9}~")]),
            "a%20b=c%2Fd&e=%C3%A9~"
        );
    }
}
