//! Whom a gateway believes: ranges of addresses of the peers that connect to it.
//!
//! Who is at the other end of a connection is never an optional address: an address that could not be had is not a unix
//! socket, and a unix socket is not an address that could not be had.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

/// The other end of a connection, as the socket that accepted it knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Over TCP, from this address.
    Tcp(SocketAddr),
    /// At a unix socket, where nobody has an address.
    Unix,
}

/// Whoever asks: the peer, or the client that trusted proxies in between name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Client {
    /// Somebody at this address.
    At(IpAddr),
    /// Somebody at a unix socket, of whom nobody has told more.
    Unix,
}

impl Peer {
    /// The client, as far as the peer alone tells. An IPv4 address mapped into IPv6 is one of IPv4.
    pub fn client(self) -> Client {
        match self {
            Peer::Tcp(address) => Client::At(address.ip().to_canonical()),
            Peer::Unix => Client::Unix,
        }
    }
}

impl Client {
    /// The address, for those who only write it down.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Client::At(address) => Some(address),
            Client::Unix => None,
        }
    }
    /// Whose share of something it has: whoever has an IPv6 address has a whole network of them.
    pub fn network(self) -> Option<IpAddr> {
        let address = self.address()?.to_canonical();
        Some(match address {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            IpAddr::V4(_) => address,
        })
    }
}

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
    /// Whether somebody is in the range. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, client: Client) -> bool {
        let (address, bits, client) = match (*self, client) {
            (PeerRange::Unix, Client::Unix) => return true,
            (PeerRange::Unix, Client::At(_)) | (PeerRange::Network { .. }, Client::Unix) => {
                return false;
            }
            (PeerRange::Network { address, bits }, Client::At(client)) => {
                (address, u32::from(bits), client.to_canonical())
            }
        };
        match (address, client) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= bits,
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= bits,
            _ => false,
        }
    }
    /// Whether ranges together hold half of all addresses of a kind or more: nobody has so many proxies.
    pub fn hold_half_of_all(ranges: &[PeerRange]) -> bool {
        [true, false].into_iter().any(|is_v4| {
            let shares = ranges.iter().map(|range| match range {
                PeerRange::Network { address, bits } if address.is_ipv4() == is_v4 => {
                    0.5_f64.powi(i32::from(*bits))
                }
                _ => 0.0,
            });
            shares.sum::<f64>() >= 0.5
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_shares_their_first_bits() {
        let holds = |range: &str, peer: &str| {
            let peer = match peer {
                "unix" => Client::Unix,
                address => Client::At(address.parse().unwrap()),
            };
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
