//! Becoming a WebSocket connection: the HTTP request that asks for it, and the answer (RFC 6455, section 4).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version,
    header::{
        CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
        SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};

use crate::Protocol;

/// What every server adds to a key before it hashes it.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why a request cannot become a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeRefusal {
    /// It does not ask for one.
    NotAsked,
    /// It asks for one in a way that cannot be answered: 400.
    Malformed(&'static str),
    /// It asks for a version that is not spoken: 426 with `sec-websocket-version: 13`.
    Version,
}

/// Whether a request asks for a WebSocket connection, in whatever way.
pub fn is_asked(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket")
}

/// The headers with which a request for a connection is answered, with status 101. Over HTTP/2 `upgrade` stands for the
/// extended `CONNECT` that it is (RFC 8441), which has no key.
pub fn accept(
    (method, version): (&Method, Version),
    headers: &HeaderMap,
    protocol: Option<Protocol>,
) -> Result<HeaderMap, UpgradeRefusal> {
    if !is_asked(headers) {
        return Err(UpgradeRefusal::NotAsked);
    }
    if method != Method::GET {
        return Err(UpgradeRefusal::Malformed(
            "an upgrade to WebSocket is a GET request",
        ));
    }
    let is_stream = version == Version::HTTP_2;
    if version != Version::HTTP_11 && !is_stream {
        return Err(UpgradeRefusal::Malformed(
            "an upgrade to WebSocket needs HTTP/1.1 or an extended CONNECT of HTTP/2",
        ));
    }
    if !is_stream && !has_token(headers, &CONNECTION, "upgrade") {
        return Err(UpgradeRefusal::Malformed(
            "`connection` does not say `upgrade`",
        ));
    }
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(b"13")
    {
        return Err(UpgradeRefusal::Version);
    }
    let mut answer = HeaderMap::new();
    if let Some(protocol) = protocol {
        let name = HeaderValue::from_static(protocol.name());
        answer.insert(SEC_WEBSOCKET_PROTOCOL, name);
    }
    if is_stream {
        return Ok(answer);
    }
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) if is_key(key.as_bytes()) => key,
        _ => {
            return Err(UpgradeRefusal::Malformed(
                "`sec-websocket-key` is not 16 bytes in base64",
            ));
        }
    };
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(SEC_WEBSOCKET_ACCEPT, accept_value(key.as_bytes()));
    Ok(answer)
}

/// A request for a connection, as a client makes it.
#[derive(Debug)]
pub struct ClientHandshake {
    key: String,
    protocol: Protocol,
}

/// What is wrong with the answer to a request for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeFailure {
    /// It has another status than 101.
    Status(StatusCode),
    /// `upgrade` or `connection` do not say that the connection is one.
    NotUpgraded,
    /// `sec-websocket-accept` is not the one for our key.
    Key,
    /// It does not name the sub-protocol that was asked for.
    Protocol,
    /// It names an extension that nobody asked for.
    Extension,
}

impl ClientHandshake {
    /// With a key of its own; `None` if the system has no chance to give.
    pub fn new(protocol: Protocol) -> Option<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let key = STANDARD.encode(bytes);
        Some(ClientHandshake { key, protocol })
    }

    /// Adds what the request needs besides its host, after headers of others that could contradict are gone.
    pub fn write(&self, headers: &mut HeaderMap) {
        const SEC: &str = "sec-websocket-";
        let of_sockets = |name: &&HeaderName| name.as_str().starts_with(SEC);
        let foreign: Vec<_> = headers.keys().filter(of_sockets).cloned().collect();
        for name in foreign {
            headers.remove(name);
        }
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let name = HeaderValue::from_static(self.protocol.name());
        headers.insert(SEC_WEBSOCKET_PROTOCOL, name);
        let key = HeaderValue::from_str(&self.key);
        headers.insert(SEC_WEBSOCKET_KEY, key.expect("base64 is ASCII"));
    }

    /// Checks the answer.
    pub fn check(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), UpgradeFailure> {
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(UpgradeFailure::Status(status));
        }
        if !is_asked(headers) || !has_token(headers, &CONNECTION, "upgrade") {
            return Err(UpgradeFailure::NotUpgraded);
        }
        if headers.get(SEC_WEBSOCKET_ACCEPT) != Some(&accept_value(self.key.as_bytes())) {
            return Err(UpgradeFailure::Key);
        }
        if headers.contains_key(http::header::SEC_WEBSOCKET_EXTENSIONS) {
            return Err(UpgradeFailure::Extension);
        }
        let named = headers.get(SEC_WEBSOCKET_PROTOCOL);
        if named.map(HeaderValue::as_bytes) != Some(self.protocol.name().as_bytes()) {
            return Err(UpgradeFailure::Protocol);
        }
        Ok(())
    }
}

fn accept_value(key: &[u8]) -> HeaderValue {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(GUID);
    let value = STANDARD.encode(hash.finish());
    HeaderValue::from_str(&value).expect("base64 is ASCII")
}

fn is_key(key: &[u8]) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut tokens = values.flat_map(|value| value.split(','));
    tokens.any(|found| found.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> HeaderMap {
        let mut headers = HeaderMap::new();
        let protocol = Protocol::TransportWs;
        ClientHandshake::new(protocol).unwrap().write(&mut headers);
        headers
    }

    #[test]
    fn the_example_of_the_standard_is_answered_as_it_says() {
        assert_eq!(
            accept_value(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }

    #[test]
    fn both_sides_understand_each_other() {
        for protocol in [Protocol::TransportWs, Protocol::LegacyWs] {
            let mut headers = HeaderMap::new();
            headers.insert(
                "sec-websocket-extensions",
                "permessage-deflate".parse().unwrap(),
            );
            let handshake = ClientHandshake::new(protocol).unwrap();
            handshake.write(&mut headers);
            assert!(!headers.contains_key("sec-websocket-extensions"));
            let chosen = Protocol::choose(&headers);
            assert_eq!(chosen, Some(protocol));
            let first = (&Method::GET, Version::HTTP_11);
            let answer = accept(first, &headers, chosen).unwrap();
            let status = StatusCode::SWITCHING_PROTOCOLS;
            assert_eq!(handshake.check(status, &answer), Ok(()));
            let silent = accept(first, &headers, None).unwrap();
            assert_eq!(
                handshake.check(status, &silent),
                Err(UpgradeFailure::Protocol)
            );
            let other = ClientHandshake::new(protocol).unwrap();
            assert_eq!(other.check(status, &answer), Err(UpgradeFailure::Key));
            let refused = StatusCode::UNAUTHORIZED;
            assert_eq!(
                handshake.check(refused, &answer),
                Err(UpgradeFailure::Status(refused))
            );
        }
    }

    #[test]
    fn requests_that_are_no_upgrade_are_refused() {
        let get = (&Method::GET, Version::HTTP_11);
        assert_eq!(
            accept(get, &HeaderMap::new(), None),
            Err(UpgradeRefusal::NotAsked)
        );
        let without = |name: &str| {
            let mut headers = asked();
            headers.remove(name);
            accept(get, &headers, None)
        };
        assert!(matches!(
            without("connection"),
            Err(UpgradeRefusal::Malformed(_))
        ));
        assert!(matches!(
            without("sec-websocket-key"),
            Err(UpgradeRefusal::Malformed(_))
        ));
        assert_eq!(
            without("sec-websocket-version"),
            Err(UpgradeRefusal::Version)
        );
        let post = (&Method::POST, Version::HTTP_11);
        assert!(matches!(
            accept(post, &asked(), None),
            Err(UpgradeRefusal::Malformed(_))
        ));
        let old = (&Method::GET, Version::HTTP_10);
        assert!(matches!(
            accept(old, &asked(), None),
            Err(UpgradeRefusal::Malformed(_))
        ));
        let mut short = asked();
        short.insert(SEC_WEBSOCKET_KEY, "c2hvcnQ=".parse().unwrap());
        assert!(matches!(
            accept(get, &short, None),
            Err(UpgradeRefusal::Malformed(_))
        ));
    }
}
