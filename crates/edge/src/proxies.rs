//! Whose request it is, when a proxy hands it on: the address of the client behind trusted proxies.
//!
//! Anybody can write `x-forwarded-for`; what counts is only what a trusted peer has put there. So the header is read from
//! its end, where the peer itself has added whom it got the request from, and only as long as those named are trusted
//! proxies, too. Only one header is believed, because a proxy passes on the one it does not know as it came.
//!
//! Elements of a list are told apart from the end as well: what stands before the element that the peer has added may be
//! anything, an opening quote included, and must not decide about that element.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, header};
use ogive_base::{Client, Peer, PeerRange};
use ogive_config::{ClientAddressHeader, Config};

/// Most proxies in a row that are looked through; more make the last of them the client.
const HOPS_MAX: usize = 32;

/// Which peers are proxies, and where they say for whom.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proxies {
    trusted: Box<[PeerRange]>,
    forwarded: bool,
}

impl Proxies {
    /// Those of a configuration.
    pub fn new(config: &Config) -> Self {
        Proxies {
            trusted: config.http.trusted_proxies.as_slice().into(),
            forwarded: config.http.client_address_header == ClientAddressHeader::Forwarded,
        }
    }
    /// Whether there are any.
    pub fn is_on(&self) -> bool {
        !self.trusted.is_empty()
    }
    /// Whether somebody is one.
    pub fn contains(&self, client: Client) -> bool {
        self.trusted.iter().any(|range| range.contains(client))
    }
    /// Whose share of something a client has; `None` if nobody can tell which is which: those behind a proxy that does not
    /// name them, or at a unix socket.
    pub fn counted(&self, client: Client) -> Option<IpAddr> {
        client.network().filter(|_| !self.contains(client))
    }
    /// The client: the peer, unless the peer is trusted and names somebody else. A name that is no address ends the
    /// search.
    pub fn client(&self, headers: &HeaderMap, peer: Peer) -> Client {
        const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
        let name = if self.forwarded {
            header::FORWARDED
        } else {
            X_FORWARDED_FOR
        };
        let mut client = peer.client();
        // Several lines are one list (RFC 9110, section 5.3).
        let lines = headers.get_all(name).iter().rev();
        let hops = lines.flat_map(|line| Backwards {
            rest: Some(line.as_bytes()),
            by: b',',
            quotes: self.forwarded,
        });
        for hop in hops.take(HOPS_MAX) {
            if !self.contains(client) {
                break;
            }
            let hop = std::str::from_utf8(hop).unwrap_or_default();
            let node = if self.forwarded {
                forwarded_for(hop)
            } else {
                Some(hop)
            };
            match node.and_then(address) {
                Some(named) => client = Client::At(named),
                None => break,
            }
        }
        client
    }
}

/// The parts of a text, from its end.
struct Backwards<'a> {
    rest: Option<&'a [u8]>,
    by: u8,
    /// Whether `by` within quotes does not count (RFC 9110, section 5.6.4).
    quotes: bool,
}

impl<'a> Iterator for Backwards<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let mut within = false;
        let mut at = rest.len();
        while at > 0 {
            at -= 1;
            if rest[at] == b'"' && self.quotes {
                let escapes = rest[..at].iter().rev().take_while(|byte| **byte == b'\\');
                // One that is escaped is no quote, as long as it stands in quotes.
                within = !within || escapes.count() % 2 == 1;
            } else if rest[at] == self.by && !within {
                self.rest = Some(&rest[..at]);
                return Some(&rest[at + 1..]);
            }
        }
        self.rest = None;
        // Without its other quote it is nobody's element.
        Some(if within { &[] } else { rest })
    }
}

/// `for` of one element of `Forwarded` (RFC 7239, section 4), which must be there once.
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = Backwards {
        rest: Some(element.as_bytes()),
        by: b';',
        quotes: true,
    };
    let pairs = pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let ((_, node), None) = (nodes.next()?, nodes.next()) else {
        return None;
    };
    let node = node.trim();
    let quoted = node.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
    Some(quoted.unwrap_or(node))
}

/// An address, with or without a port, an IPv6 one with or without brackets.
fn address(node: &str) -> Option<IpAddr> {
    let node = node.trim();
    let bare = node.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    let parsed = bare.unwrap_or(node).parse().ok();
    let parsed = parsed.or_else(|| Some(node.parse::<SocketAddr>().ok()?.ip()));
    parsed.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(forwarded: bool, peer: &str, lines: &[&'static str]) -> String {
        let ranges = ["10.0.0.0/8", "unix"].map(|range| PeerRange::parse(range).unwrap());
        let proxies = Proxies {
            trusted: ranges.into(),
            forwarded,
        };
        let name = ["x-forwarded-for", "forwarded"][usize::from(forwarded)];
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(name, HeaderValue::from_static(line));
        }
        let peer = match peer {
            "unix" => Peer::Unix,
            address => Peer::Tcp((address.parse::<IpAddr>().unwrap(), 1).into()),
        };
        match proxies.client(&headers, peer) {
            Client::At(address) => address.to_string(),
            Client::Unix => "none".to_owned(),
        }
    }

    #[test]
    fn the_last_name_that_a_trusted_peer_gives_counts() {
        for (peer, lines, expected) in [
            ("10.0.0.1", &["1.2.3.4"][..], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4, 10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["1.2.3.4:5060"], "1.2.3.4"),
            ("10.0.0.1", &["[fd00::1]:443"], "fd00::1"),
            ("10.0.0.1", &["::ffff:1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["1.2.3.4, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4,"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4 5.6.7.8"], "10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6, 0x01020304"], "10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6, 01.2.3.4"], "10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6, \"1.2.3.4\""], "10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4:99999"], "10.0.0.1"),
            ("10.0.0.1", &["\", 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, fe80::1%eth0"], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("9.9.9.9", &["1.2.3.4"], "9.9.9.9"),
            ("unix", &["1.2.3.4"], "1.2.3.4"),
            ("unix", &[], "none"),
        ] {
            assert_eq!(client(false, peer, lines), expected, "{peer} {lines:?}");
        }
        for (lines, expected) in [
            (
                &["for=6.6.6.6, proto=https;For=\"1.2.3.4:80\""][..],
                "1.2.3.4",
            ),
            (&["for=\"[2001:db8::7]:4711\";by=10.0.0.1"], "2001:db8::7"),
            (&["for=1.2.3.4, for=_hidden"], "10.0.0.1"),
            (&["by=1.2.3.4"], "10.0.0.1"),
            // What the client has written, in quotes that its proxy has put around it.
            (&["for=1.2.3.4;host=\"a,for=6.6.6.6\""], "1.2.3.4"),
            (&["for=1.2.3.4;host=\"a;for=6.6.6.6\""], "1.2.3.4"),
            (&["host=\"a;for=6.6.6.6\";for=1.2.3.4"], "1.2.3.4"),
            (&["for=1.2.3.4;host=\"a\\\",for=6.6.6.6\""], "1.2.3.4"),
            // What the client has written itself, before that.
            (&["for=\"6.6.6.6, for=1.2.3.4"], "1.2.3.4"),
            (&["for=6.6.6.6;by=\", for=1.2.3.4"], "1.2.3.4"),
            (&["\"", "for=1.2.3.4"], "1.2.3.4"),
            // Two of them, or half a quote: nobody can tell.
            (&["for=6.6.6.6;for=1.2.3.4"], "10.0.0.1"),
            (&["for=1.2.3.4\""], "10.0.0.1"),
            (&["for=\"\\\"1.2.3.4\""], "10.0.0.1"),
            (&["for=\"[fe80::1%eth0]\""], "10.0.0.1"),
            (&["for=01.2.3.4"], "10.0.0.1"),
            (&["for="], "10.0.0.1"),
        ] {
            assert_eq!(client(true, "10.0.0.1", lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_row_of_proxies_ends_somewhere() {
        let line: &'static str = Box::leak(format!("1.2.3.4{}", ", 10.0.0.2".repeat(99)).into());
        assert_eq!(client(false, "10.0.0.1", &[line]), "10.0.0.2");
    }
}
