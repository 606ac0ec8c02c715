//! The `host` header: whom a request is for (RFC 9110, section 7.2).

use http::{HeaderValue, header, request::Parts};

/// Whether a value is a host and perhaps a port (RFC 3986, sections 3.2.2 and 3.2.3). Nothing at all is one.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let (host, port) = match value.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if value[at] == b':' => (&value[..at], &value[at + 1..]),
        _ => (value, &[][..]),
    };
    let is_port = port.len() <= 5 && port.iter().all(u8::is_ascii_digit) && number(port) <= 65_535;
    let is_name = match host {
        [b'[', address @ .., b']'] => address.iter().all(|byte| is_of_address(*byte)),
        name => name.iter().all(|byte| is_of_name(*byte)),
    };
    is_port && is_name
}

/// Whether `:authority` and a `host` header name one server, whichever of them has the port that goes without saying
/// (RFC 9113, section 8.3.1).
pub(crate) fn is_same_host(authority: &str, host: &[u8]) -> bool {
    let is_same = |one: &[u8], other: &[u8]| {
        let ports: [&[u8]; 3] = [b"", b":443", b":80"];
        let mut bare = ports.iter().filter_map(|port| one.strip_suffix(*port));
        bare.any(|one| one.eq_ignore_ascii_case(other))
    };
    is_same(authority.as_bytes(), host) || is_same(host, authority.as_bytes())
}

/// A request of HTTP/1.1 that names its target by a whole URL is for the host of that one, whatever its header says
/// (RFC 9112, section 3.2.2): all who look at the header see that.
pub(crate) fn by_target(parts: &mut Parts) {
    if parts.uri.scheme().is_some()
        && let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
}

fn number(digits: &[u8]) -> u32 {
    let digits = digits.iter();
    digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
}

/// Of an IPv6 address, or of what may come instead one day.
fn is_of_address(byte: u8) -> bool {
    byte == b':' || is_of_name(byte)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{is_host, is_same_host};

    #[test]
    fn hosts_are_the_same_whatever_their_case_and_default_port() {
        for (authority, host) in [
            ("a", "a"),
            ("A.example:443", "a.example"),
            ("[::1]", "[::1]:80"),
        ] {
            assert!(
                is_same_host(authority, host.as_bytes()),
                "{authority} {host}"
            );
        }
        for (authority, host) in [
            ("a", "b"),
            ("a", "a:8080"),
            ("a:1", "a:2"),
            ("a:80", "a:443"),
            ("a", ""),
        ] {
            assert!(
                !is_same_host(authority, host.as_bytes()),
                "{authority} {host}"
            );
        }
    }

    #[test]
    fn hosts_are_told_from_what_is_none() {
        for host in [
            "",
            "a",
            "a.example:80",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:1",
            "a:",
            "x_y",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for other in [
            "a b", "a,b", "a/b", "a@b", "[::1", "a:b:c", "a:99999", "a?b", "a:8x", "::1", "a#",
            "[a]b", "\u{e4}",
        ] {
            assert!(!is_host(other.as_bytes()), "{other}");
        }
    }
}
