//! Which answers belong to whoever asked for them alone.
//!
//! An answer that sets a cookie, challenges or acknowledges credentials, says that it is `private`, or that it varies by
//! what no request tells, was made for one client. Equal requests of other clients must not get it, though nothing in
//! them tells the clients apart: a visitor without a session is given one. `no-store` and `no-cache` are no such
//! statement: who asked at the same time does not store anything, and many servers say so of everything.

/// Whether a header makes the answer that it stands in one client's own.
pub(crate) fn is_personal(name: &str, value: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match name.len() {
        4 => is("vary") && list(value).any(|item| item == b"*"),
        10 => is("set-cookie"),
        11 => is("set-cookie2"),
        13 => {
            let private = |item: &[u8]| {
                let name = item.split(|byte| *byte == b'=').next().unwrap_or_default();
                name.trim_ascii().eq_ignore_ascii_case(b"private")
            };
            is("cache-control") && list(value).any(private)
        }
        16 => is("www-authenticate"),
        19 => is("authentication-info"),
        _ => false,
    }
}

/// The items of a list, without the empty ones.
pub(super) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_whose_an_answer_is() {
        let personal = [
            ("Set-Cookie", "a=1"),
            ("set-cookie2", "a=1"),
            ("WWW-Authenticate", "Digest nonce=1"),
            ("authentication-info", "nextnonce=1"),
            ("vary", "accept, *"),
            ("cache-control", "max-age=5, Private"),
            ("cache-control", "private=\"x-a\""),
        ];
        for (name, value) in personal {
            assert!(is_personal(name, value.as_bytes()), "{name}: {value}");
        }
        let everybodys = [
            ("vary", "accept"),
            ("cache-control", "no-store, no-cache, max-age=0"),
            ("cache-control", "privately, public"),
            ("x-cookie", "a=1"),
            ("connection", "close"),
        ];
        for (name, value) in everybodys {
            assert!(!is_personal(name, value.as_bytes()), "{name}: {value}");
        }
    }
}
