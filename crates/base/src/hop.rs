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

/// Whether a header, by its name in lower case, frames a message or is of one connection, or led the request here: the server
/// writes those itself, whatever is said of them.
pub fn is_framing(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "content-encoding"
            | "content-length"
            | "expect"
            | "host"
            | "http2-settings"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
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

    #[test]
    fn what_frames_a_message_is_of_one_hop() {
        for name in ["connection", "content-length", "transfer-encoding", "te"] {
            assert!(is_framing(name) && is_of_one_hop(name), "{name}");
        }
        for name in ["content-type", "via", "accept", "x-te", ""] {
            assert!(!is_framing(name), "{name}");
        }
    }
}
