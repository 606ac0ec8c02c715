//! Headers towards a coprocessor and back: `{"name": ["value", ...]}`.
//!
//! A coprocessor that says headers says all of them: what it leaves out is gone. Those of one connection or of one body's
//! length are not its to change; they stay as they are, whatever it says.

use std::{borrow::Cow, collections::BTreeMap};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_json::write_string;

use crate::error::CoprocessorError;

/// Headers by name, as a reply says them.
pub type ReplyHeaders = BTreeMap<String, Vec<String>>;

/// Most names of headers that anybody may say: tables of them have an end.
const NAMES_MAX: usize = 1_000;

/// Room for what is said, if that is not too much.
fn room_for(said: &ReplyHeaders) -> Result<HeaderMap, CoprocessorError> {
    if said.len() > NAMES_MAX {
        let found = said.len();
        return Err(CoprocessorError::Header(format!(
            "(there are {found} names; at most {NAMES_MAX} are taken)"
        )));
    }
    Ok(HeaderMap::with_capacity(said.len()))
}

/// Who is on the other side of headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A client: what frames a message is not a coprocessor's to change.
    Client,
    /// A subgraph: no header of one hop is, since the gateway writes those itself.
    Subgraph,
}

impl Peer {
    /// Whether a header stays as it is, whatever is said of it.
    fn keeps(self, name: &HeaderName) -> bool {
        let is_of_hop = self == Peer::Subgraph && ogive_base::is_of_one_hop(name.as_str());
        is_of_hop || ogive_base::is_framing(name.as_str())
    }
}

/// Whether what is said names a header as one of a connection (RFC 9110, section 7.6.1).
fn is_nominated(said: &ReplyHeaders, name: &HeaderName, peer: Peer) -> bool {
    // A client's are about what the client sent, not about what is said of it.
    if peer == Peer::Client {
        return false;
    }
    let connection = said
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case("connection"));
    let values = connection.flat_map(|(_, values)| values);
    let mut options = values.flat_map(|value| value.split(','));
    options.any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}

/// What a header says, as text.
fn shown(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Writes headers as an object, names in the order in which they came first.
pub(crate) fn write(headers: &HeaderMap, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, name) in headers.keys().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, name.as_str());
        out.extend_from_slice(b":[");
        for (at, value) in headers.get_all(name).iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(out, &shown(value));
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// The headers that are there after a coprocessor has said `said` of `headers`. Values that it only repeats stay what they
/// are, byte for byte, and secret if they are.
pub fn replaced(
    headers: &HeaderMap,
    said: &ReplyHeaders,
    peer: Peer,
) -> Result<HeaderMap, CoprocessorError> {
    let mut out = room_for(said)?;
    for (name, values) in said {
        let name = header_name(name)?;
        if peer.keeps(&name) || is_nominated(said, &name, peer) {
            continue;
        }
        let before: Vec<&HeaderValue> = headers.get_all(&name).iter().collect();
        for (at, value) in values.iter().enumerate() {
            let same = before.get(at).filter(|before| shown(before) == *value);
            let value = match same {
                Some(before) => (*before).clone(),
                None => header_value(&name, value)?,
            };
            out.append(&name, value);
        }
    }
    for name in headers.keys().filter(|name| peer.keeps(name)) {
        for value in headers.get_all(name) {
            out.append(name, value.clone());
        }
    }
    Ok(out)
}

/// The headers that are there after somebody inside the gateway has changed them: those that are not theirs to change are what
/// they were.
pub fn kept(before: &HeaderMap, now: HeaderMap, peer: Peer) -> HeaderMap {
    let mut out = now;
    let keeps: Vec<HeaderName> = out
        .keys()
        .filter(|name| peer.keeps(name))
        .cloned()
        .collect();
    for name in keeps {
        out.remove(name);
    }
    for name in before.keys().filter(|name| peer.keeps(name)) {
        for value in before.get_all(name) {
            out.append(name, value.clone());
        }
    }
    out
}

/// The headers of a response that a coprocessor ends a request with: those that it says and that are not only what it was
/// told of the request.
pub fn of_break(
    request: Option<&HeaderMap>,
    said: &ReplyHeaders,
    peer: Peer,
) -> Result<HeaderMap, CoprocessorError> {
    let mut out = room_for(said)?;
    for (name, values) in said {
        let name = header_name(name)?;
        let is_echo = request.is_some_and(|request| {
            let before = request.get_all(&name).iter().map(shown);
            before.eq(values.iter().map(|value| Cow::Borrowed(value.as_str())))
        });
        if is_echo || peer.keeps(&name) || is_nominated(said, &name, peer) {
            continue;
        }
        for value in values {
            out.append(&name, header_value(&name, value)?);
        }
    }
    Ok(out)
}

fn header_name(name: &str) -> Result<HeaderName, CoprocessorError> {
    let unusable = |_| CoprocessorError::Header(name.chars().take(100).collect());
    HeaderName::from_bytes(name.as_bytes()).map_err(unusable)
}

fn header_value(name: &HeaderName, value: &str) -> Result<HeaderValue, CoprocessorError> {
    let unusable = |_| CoprocessorError::Header(name.to_string());
    HeaderValue::from_bytes(value.as_bytes()).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(&str, &[&str])]) -> ReplyHeaders {
        let one = |(name, values): &(&str, &[&str])| {
            let values = values.iter().map(|value| (*value).to_owned());
            ((*name).to_owned(), values.collect())
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn what_is_not_said_is_gone_and_framing_stays() {
        let mut headers = HeaderMap::new();
        headers.insert("x-old", HeaderValue::from_static("1"));
        headers.insert("content-length", HeaderValue::from_static("7"));
        headers.insert("host", HeaderValue::from_static("a"));
        headers.append("x-bytes", HeaderValue::from_bytes(b"\xe4").unwrap());
        let now = said(&[
            ("X-New", &["1", "2"]),
            ("content-length", &["70"]),
            ("x-bytes", &["\u{fffd}"]),
        ]);
        let now = replaced(&headers, &now, Peer::Client).unwrap();
        assert!(now.get("x-old").is_none());
        assert_eq!(now.get_all("x-new").iter().count(), 2);
        assert_eq!(now["content-length"], "7");
        assert_eq!(now["host"], "a");
        assert_eq!(now["x-bytes"].as_bytes(), b"\xe4", "repeated, so unchanged");
    }

    #[test]
    fn headers_of_one_hop_are_not_said_towards_a_subgraph() {
        let mut headers = HeaderMap::new();
        headers.insert("x-kept", HeaderValue::from_static("1"));
        let of_hop = [
            "accept",
            "accept-encoding",
            "connection",
            "content-type",
            "host",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "via",
            "http2-settings",
            "x-named",
        ];
        let mut now: ReplyHeaders = of_hop
            .iter()
            .map(|name| ((*name).into(), vec!["1".into()]))
            .collect();
        now.insert("Connection".into(), vec!["close, X-Named".into()]);
        now.insert("x-kept".into(), vec!["1".into()]);
        let now = replaced(&headers, &now, Peer::Subgraph).unwrap();
        let names: Vec<&str> = now.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-kept"]);
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused() {
        for bad in [
            said(&[("a b", &["1"])]),
            said(&[("a", &["1\r\nx: 2"])]),
            said(&[("", &["1"])]),
        ] {
            assert!(
                replaced(&HeaderMap::new(), &bad, Peer::Client).is_err(),
                "{bad:?}"
            );
            assert!(of_break(None, &bad, Peer::Client).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn who_ends_a_request_does_not_send_its_headers_back() {
        let mut request = HeaderMap::new();
        request.insert("authorization", HeaderValue::from_static("Bearer a"));
        request.insert("x-a", HeaderValue::from_static("1"));
        let now = said(&[
            ("authorization", &["Bearer a"]),
            ("x-a", &["2"]),
            ("set-cookie", &["a=1", "b=2"]),
            ("content-length", &["1"]),
        ]);
        let now = of_break(Some(&request), &now, Peer::Client).unwrap();
        assert!(now.get("authorization").is_none());
        assert!(now.get("content-length").is_none());
        assert_eq!(now["x-a"], "2");
        assert_eq!(now.get_all("set-cookie").iter().count(), 2);
    }
}
