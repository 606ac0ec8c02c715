//! The two sub-protocols of WebSocket, by the names under which peers agree on them.
//!
//! Beware of the names: the sub-protocol `graphql-transport-ws` is that of the library graphql-ws, and the sub-protocol
//! `graphql-ws` is that of the library subscriptions-transport-ws, which is not maintained any more.

use http::{HeaderMap, header::SEC_WEBSOCKET_PROTOCOL};

/// A sub-protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `graphql-transport-ws`, the current one.
    TransportWs,
    /// `graphql-ws`, the legacy one.
    LegacyWs,
}

impl Protocol {
    /// Its name in `sec-websocket-protocol`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::TransportWs => "graphql-transport-ws",
            Protocol::LegacyWs => "graphql-ws",
        }
    }

    /// The sub-protocol of that name. Names of sub-protocols are compared byte by byte (RFC 6455, section 4.1).
    pub fn named(name: &str) -> Option<Protocol> {
        [Protocol::TransportWs, Protocol::LegacyWs]
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }

    /// The sub-protocol to speak with a client that offers these: the current one if it is among them.
    pub fn choose(headers: &HeaderMap) -> Option<Protocol> {
        let offered = || {
            let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            values
                .flat_map(|value| value.split(','))
                .filter_map(|name| Protocol::named(name.trim()))
        };
        offered()
            .find(|protocol| *protocol == Protocol::TransportWs)
            .or_else(|| offered().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_sub_protocol_is_chosen_wherever_it_stands() {
        let offered = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
            }
            Protocol::choose(&headers)
        };
        let modern = Some(Protocol::TransportWs);
        assert_eq!(offered(&["graphql-ws, graphql-transport-ws"]), modern);
        assert_eq!(offered(&["graphql-ws", "graphql-transport-ws"]), modern);
        assert_eq!(offered(&["mqtt,graphql-ws"]), Some(Protocol::LegacyWs));
        assert_eq!(offered(&["Graphql-WS"]), None);
        assert_eq!(offered(&[]), None);
    }
}
