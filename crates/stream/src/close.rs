//! Why a WebSocket connection is closed: codes and reasons.
//!
//! Codes from 4400 on are those of `graphql-transport-ws`; clients decide by them whether to come back. graphql-ws comes
//! back after 1001, 1005, 1006, 1012, 1013, 4403 and 4408, and never after 1002, 1011, 4400, 4401, 4406, 4409, 4429, 4500.

use std::borrow::Cow;

/// Longest reason in bytes: what a close frame holds besides its code (RFC 6455, section 5.5).
pub const REASON_BYTES_MAX: usize = 123;

/// A code with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The code.
    pub code: u16,
    /// The reason, at most [`REASON_BYTES_MAX`] bytes.
    pub reason: Cow<'static, str>,
}

impl Close {
    /// With a reason, cut to what a frame can hold.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        let mut reason = reason.into();
        if reason.len() > REASON_BYTES_MAX {
            let mut end = REASON_BYTES_MAX;
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            reason.to_mut().truncate(end);
        }
        Close { code, reason }
    }

    /// 1000: all is done.
    pub fn normal() -> Self {
        Close::new(1000, "Normal closure")
    }
    /// 1001: this process stops; another one serves.
    pub fn going_away() -> Self {
        Close::new(1001, "Going away")
    }
    /// 1008: something that no honest client does, for instance more pings than anybody needs.
    pub fn policy(reason: impl Into<Cow<'static, str>>) -> Self {
        Close::new(1008, reason)
    }
    /// 1011: something went wrong here. The legacy sub-protocol refuses a connection with it.
    pub fn internal() -> Self {
        Close::new(1011, "Internal server error")
    }
    /// 1012: the client should connect again.
    pub fn service_restart() -> Self {
        Close::new(1012, "Service restart")
    }
    /// 1013: no room now; the client should connect again later.
    pub fn try_again_later() -> Self {
        Close::new(1013, "Try again later")
    }
    /// 4400: a message that is none.
    pub fn bad_request(reason: impl Into<Cow<'static, str>>) -> Self {
        Close::new(4400, reason)
    }
    /// 4401: an operation before the connection was acknowledged.
    pub fn unauthorized() -> Self {
        Close::new(4401, "Unauthorized")
    }
    /// 4403: who asks may not connect, or not any more.
    pub fn forbidden() -> Self {
        Close::new(4403, "Forbidden")
    }
    /// 4406: none of the sub-protocols that the client offered is spoken here.
    pub fn subprotocol() -> Self {
        Close::new(4406, "Subprotocol not acceptable")
    }
    /// 4408: the client did not say `connection_init` in time.
    pub fn init_timeout() -> Self {
        Close::new(4408, "Connection initialisation timeout")
    }
    /// 4409: the client uses the id of an operation that still runs.
    pub fn duplicate(id: &str) -> Self {
        Close::new(4409, format!("Subscriber for {id} already exists"))
    }
    /// 4429: `connection_init` a second time.
    pub fn too_many_inits() -> Self {
        Close::new(4429, "Too many initialisation requests")
    }
    /// 4500: something went wrong here that is fatal for the whole connection.
    pub fn fatal() -> Self {
        Close::new(4500, "Internal server error")
    }
    /// 4504: the server did not acknowledge the connection in time; said by a client.
    pub fn ack_timeout() -> Self {
        Close::new(4504, "Connection acknowledgement timeout")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_characters() {
        let close = Close::duplicate(&"ü".repeat(100));
        assert!(close.reason.len() <= REASON_BYTES_MAX);
        assert!(close.reason.starts_with("Subscriber for ü"), "{close:?}");
    }
}
