//! Bytes as text: hexadecimal, base64, percent encoding.

use base64::{Engine, engine::general_purpose::STANDARD};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(HEX[usize::from(digit)]));
        }
    }
    out
}

/// Base64 with padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Appends `bytes`, everything but unreserved characters (RFC 3986, section 2.3) and those of `kept` as `%XX`.
pub(crate) fn percent(out: &mut String, bytes: &[u8], kept: &[u8]) {
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            _ if kept.contains(byte) => out.push(char::from(*byte)),
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.push(char::from(HEX[usize::from(digit)].to_ascii_uppercase()));
                }
            }
        }
    }
}

/// A body of form fields (`application/x-www-form-urlencoded`).
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        percent(&mut out, name.as_bytes(), b"");
        out.push('=');
        percent(&mut out, value.as_bytes(), b"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text() {
        assert_eq!(hex(&[0, 15, 255]), "000fff");
        assert_eq!(base64(b"hello"), "aGVsbG8=");
        assert_eq!(
            form(&[("a b", "c/d"), ("e", "\u{e9}~")]),
            "a%20b=c%2Fd&e=%C3%A9~"
        );
    }
}
