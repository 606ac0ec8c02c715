//! Whom a gateway believes: ranges of addresses of the peers that connect to it.

use std::{fmt, net::IpAddr};

use crate::{
    decode::{Decode, Errors},
    yaml::Node,
};

/// Peers: one address (`10.1.2.3`), a range of them (`10.0.0.0/8`), or whoever connects to a unix socket (`unix`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerRange {
    /// Connections to a unix socket, which have no address.
    Unix,
    /// Addresses that share their first bits with this one.
    Network {
        /// An address of the range.
        address: IpAddr,
        /// How many bits are shared.
        bits: u8,
    },
}

impl PeerRange {
    /// Reads one range; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const HELP: &str = "write an address, a range such as `10.0.0.0/8`, or `unix`";
        if text == "unix" {
            return Ok(PeerRange::Unix);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| HELP)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(HELP)?,
            None => most,
        };
        Ok(PeerRange::Network { address, bits })
    }
    /// Whether a peer is in the range; `None` is one at a unix socket. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        match (*self, peer.map(|peer| peer.to_canonical())) {
            (PeerRange::Unix, None) => true,
            (PeerRange::Network { address, bits }, Some(peer)) => match (address, peer) {
                (IpAddr::V4(a), IpAddr::V4(b)) => {
                    let differs = a.to_bits() ^ b.to_bits();
                    differs.leading_zeros() >= u32::from(bits)
                }
                (IpAddr::V6(a), IpAddr::V6(b)) => {
                    let differs = a.to_bits() ^ b.to_bits();
                    differs.leading_zeros() >= u32::from(bits)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Display for PeerRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerRange::Unix => f.write_str("unix"),
            PeerRange::Network { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

impl Decode for PeerRange {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "an address")?;
        PeerRange::parse(text)
            .map_err(|help| errors.invalid(node.span, format!("`{text}` is no address"), help))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_shares_their_first_bits() {
        let holds = |range: &str, peer: &str| {
            let peer = (peer != "unix").then(|| peer.parse().unwrap());
            PeerRange::parse(range).unwrap().contains(peer)
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.1.2.3", "10.1.2.3"));
        assert!(holds("10.1.2.3", "::ffff:10.1.2.3"));
        assert!(!holds("10.1.2.3", "10.1.2.2"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe00::1"));
        assert!(holds("unix", "unix") && !holds("unix", "127.0.0.1"));
        assert!(!holds("0.0.0.0/0", "unix"));
        for wrong in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "example.org",
            "::/129",
            "10.0.0/8",
        ] {
            assert!(PeerRange::parse(wrong).is_err(), "{wrong}");
        }
    }
}
