//! Bytes as text: hexadecimal and percent encoding.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    out
}

/// The bytes of `2 * N` hexadecimal digits, in upper or lower case.
pub fn decode_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = byte_of(pair[0], pair[1])?;
    }
    Some(out)
}

/// Appends `text`: everything but unreserved characters (RFC 3986, section 2.3) and those of `kept` as `%XX`.
pub fn percent_encode(out: &mut String, text: &[u8], kept: &[u8]) {
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            _ if kept.contains(byte) => out.push(char::from(*byte)),
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.push(char::from(DIGITS[usize::from(digit)].to_ascii_uppercase()));
                }
            }
        }
    }
}

/// The bytes behind `%XX`. A `%` without two digits stays.
pub fn percent_decode(text: &str) -> Vec<u8> {
    unescape(text, b'+').bytes
}

/// A value of `application/x-www-form-urlencoded`: `%XX` and `+`. `None` if an escape is broken or the result is not UTF-8.
pub fn decode_form(text: &str) -> Option<String> {
    let found = unescape(text, b' ');
    String::from_utf8(found.bytes)
        .ok()
        .filter(|_| !found.is_broken)
}

/// A value of `application/x-www-form-urlencoded`, in which a `%` without two digits stays, and what is not UTF-8 becomes
/// U+FFFD.
pub fn decode_form_lossy(text: &str) -> String {
    String::from_utf8_lossy(&unescape(text, b' ').bytes).into_owned()
}

/// What a text with escapes says.
struct Unescaped {
    bytes: Vec<u8>,
    /// Whether there was a `%` without two digits.
    is_broken: bool,
}

fn unescape(text: &str, plus: u8) -> Unescaped {
    let mut bytes = Vec::with_capacity(text.len());
    let mut is_broken = false;
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'+', _) => bytes.push(plus),
            (b'%', _) => match escaped(after) {
                Some((byte, behind)) => {
                    bytes.push(byte);
                    rest = behind;
                }
                None => {
                    is_broken = true;
                    bytes.push(b'%');
                }
            },
            _ => bytes.push(*byte),
        }
    }
    Unescaped { bytes, is_broken }
}

/// The byte that two digits stand for, and what is behind them.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = text.split_at_checked(2)?;
    Some((byte_of(digits[0], digits[1])?, behind))
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    Some((digit(high)? << 4) | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_hexadecimal_text() {
        assert_eq!(hex(&[0, 15, 255]), "000fff");
        assert_eq!(decode_hex("000fFF"), Some([0, 15, 255]));
        for wrong in ["000ff", "000ffff", "000ffg", "+00fff", ""] {
            assert_eq!(decode_hex::<3>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn reserved_characters_are_escaped() {
        let mut out = String::new();
        percent_encode(&mut out, "a b/c=\u{e9}~".as_bytes(), b"/");
        assert_eq!(out, "a%20b/c%3D%C3%A9~");
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(percent_decode("a+b%2Bc%zz%4%"), b"a+b+c%zz%4%");
        assert_eq!(decode_form("a+b%2Bc%20d").as_deref(), Some("a b+c d"));
        assert_eq!(decode_form("%C3%a4").as_deref(), Some("\u{e4}"));
        for broken in ["%C3", "%4", "%zz", "%"] {
            assert_eq!(decode_form(broken), None, "{broken}");
        }
        assert_eq!(decode_form_lossy("%C3+%4"), "\u{fffd} %4");
    }
}
