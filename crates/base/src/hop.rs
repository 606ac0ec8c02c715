//! Headers of one connection, or of the body of one message: whoever passes messages on writes them itself.
//!
//! One list for what tells operators that a rule has no effect, and for what makes it have none.

/// Whether a header, by its name in lower case, describes one connection or one body: copying it would at best lie and at
/// worst let a client smuggle requests (RFC 9110, section 7.6.1).
pub fn is_of_one_hop(name: &str) -> bool {
    matches!(
        name,
        "accept"
            | "accept-charset"
            | "accept-encoding"
            | "connection"
            | "content-encoding"
            | "content-length"
            | "content-type"
            | "expect"
            | "host"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "via"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_hop_are_told_from_those_of_everybody() {
        for name in ["connection", "te", "content-type", "host", "keep-alive"] {
            assert!(is_of_one_hop(name), "{name}");
        }
        for name in ["authorization", "cookie", "x-te", "content-language", ""] {
            assert!(!is_of_one_hop(name), "{name}");
        }
    }
}
