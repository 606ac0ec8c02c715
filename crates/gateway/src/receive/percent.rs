//! `application/x-www-form-urlencoded` values.

/// Decodes `%41` and `+`. `None` if an escape is broken or the result is not UTF-8.
pub(crate) fn decode_form(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => (hex(bytes.next()?)? << 4) | hex(bytes.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_escapes_and_plus() {
        assert_eq!(decode_form("a+b%2Bc%20d").as_deref(), Some("a b+c d"));
        assert_eq!(decode_form("%C3%a4").as_deref(), Some("ä"));
        assert_eq!(decode_form("%C3"), None);
        assert_eq!(decode_form("%4"), None);
        assert_eq!(decode_form("%zz"), None);
    }
}
