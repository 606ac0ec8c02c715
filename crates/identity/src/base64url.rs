//! Base64 for URLs without padding (RFC 7515, appendix C), read strictly: no white space, no padding, and no bits that say
//! nothing, so that one value has one text.

/// The bytes of a text; `None` if it is none of bytes.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in text {
        bits = bits << 6 | u32::from(value(*byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0).then_some(out)
}

fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

/// The text of bytes.
pub fn encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..=chunk.len() {
            out.push(char::from(LETTERS[(bits >> (18 - 6 * i)) as usize & 63]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_text_and_come_back() {
        for length in 0..70usize {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37 % 256) as u8).collect();
            let text = encode(&bytes);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(&*bytes));
        }
        // RFC 7515, appendix C.
        assert_eq!(encode(&[3, 236, 255, 224, 193]), "A-z_4ME");
        // Padding, other alphabets, white space, one letter too many, and bits that say nothing.
        for text in ["YQ==", "+/", "Y Q", "YQ\n", "YWJjZ", "YR", "YWF", "é", "A"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decode(b"YQ").as_deref(), Some(&b"a"[..]));
    }
}
