//! Heads of requests, written straight from what they are made of.

use http::{HeaderMap, HeaderName, header};

use crate::address::Address;

/// Headers in two parts: a name in the second part replaces all of its values in the first.
#[derive(Clone, Debug)]
pub(crate) struct Headers<'h> {
    /// Those of all requests of one kind.
    pub(crate) common: &'h HeaderMap,
    /// Those of this one.
    pub(crate) own: HeaderMap,
    /// Whether their credentials hold for the whole connection, which nobody else may have then.
    pub(crate) binds: bool,
}

/// Whether credentials are of a scheme by which a server knows a connection, not a request (RFC 4559, section 6).
pub(crate) fn binds(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    all.any(|value| {
        let scheme = value.as_bytes().split(|byte| byte.is_ascii_whitespace());
        let scheme = scheme.take(1).next().unwrap_or_default();
        let schemes = ["ntlm", "negotiate", "nego2", "kerberos"];
        let is = |known: &str| scheme.eq_ignore_ascii_case(known.as_bytes());
        schemes.iter().any(|known| is(known))
    })
}

impl Headers<'_> {
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        self.common.contains_key(name) || self.own.contains_key(name)
    }
    /// As one map.
    pub(crate) fn into_map(self) -> HeaderMap {
        let mut map = self.common.clone();
        map.extend(self.own);
        map
    }
}

/// Writes a head. `lines` are whole lines of headers, which `headers` do not replace; length and host come from here
/// alone.
pub(crate) fn write(
    out: &mut Vec<u8>,
    (method, address): (&str, &Address),
    lines: &[&[u8]],
    headers: &Headers<'_>,
    length: Option<usize>,
) {
    let add = |out: &mut Vec<u8>, pieces: &[&[u8]]| {
        for piece in pieces {
            out.extend_from_slice(piece);
        }
    };
    let path = address.path.as_str();
    add(out, &[method.as_bytes(), b" ", path.as_bytes()]);
    add(
        out,
        &[b" HTTP/1.1\r\nhost: ", address.host.as_bytes(), b"\r\n"],
    );
    add(out, lines);
    if let Some(length) = length {
        out.extend_from_slice(b"content-length: ");
        decimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
    let has_own = !headers.own.is_empty();
    let common = headers.common.iter();
    let common = common.filter(|(name, _)| !has_own || !headers.own.contains_key(*name));
    for (name, value) in common.chain(&headers.own) {
        if !is_framing(name) {
            let name = name.as_str().as_bytes();
            add(out, &[name, b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Headers that only the connection may write.
fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [HeaderName; 4] = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::HOST,
        header::TRANSFER_ENCODING,
    ];
    FRAMING.contains(name)
}

fn decimal(out: &mut Vec<u8>, number: usize) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn own_headers_replace_common_ones() {
        let address = Address::parse("http://a:1/graphql?x=1").unwrap();
        let value = HeaderValue::from_static;
        let mut common = HeaderMap::new();
        common.append("x-a", value("1"));
        common.append("x-a", value("2"));
        common.append("x-b", value("3"));
        common.append("content-length", value("99"));
        let mut own = HeaderMap::new();
        own.append("x-b", value("4"));
        own.append("connection", value("upgrade"));
        let headers = Headers {
            common: &common,
            own,
            binds: false,
        };
        let mut out = Vec::new();
        let lines: [&[u8]; 2] = [b"accept: a\r\n", b"user-agent: b\r\n"];
        write(
            &mut out,
            ("POST", &address),
            &lines,
            &headers,
            Some(1_234_567_890),
        );
        let text = String::from_utf8(out).unwrap();
        let expected = "POST /graphql?x=1 HTTP/1.1\r\nhost: a:1\r\naccept: a\r\nuser-agent: b\r\ncontent-length: 1234567890\r\nx-a: 1\r\nx-a: 2\r\nx-b: 4\r\n\r\n";
        assert_eq!(text, expected);
        let mut map = headers.into_map();
        assert_eq!(map.get_all("x-a").iter().count(), 2);
        assert_eq!(map.remove("x-b").unwrap(), "4");
        let mut zero = Vec::new();
        decimal(&mut zero, 0);
        assert_eq!(zero, b"0");
    }
}
