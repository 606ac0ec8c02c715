//! What clients say over WebSocket: reading it as a server, writing it towards a subgraph.
//!
//! | `graphql-transport-ws` | `graphql-ws` |
//! |---|---|
//! | `connection_init` | `connection_init` |
//! | `subscribe` | `start` |
//! | `complete` | `stop` |
//! | `ping`, `pong` | none |
//! | none: the socket is closed | `connection_terminate` |

use std::borrow::Cow;

use crate::{
    Protocol,
    envelope::{Envelope, is_object, write_string},
};

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage<'m> {
    /// The connection may be used from its acknowledgement on.
    Init {
        /// JSON object: what the client says of itself.
        payload: Option<&'m str>,
    },
    /// Asks whether somebody is there.
    Ping {
        /// JSON object.
        payload: Option<&'m str>,
    },
    /// Somebody is there.
    Pong,
    /// An operation.
    Subscribe {
        /// The client's name for it.
        id: Cow<'m, str>,
        /// JSON object: the request.
        payload: &'m str,
    },
    /// The client wants no more of an operation.
    Complete {
        /// Its name.
        id: Cow<'m, str>,
    },
    /// The client is done with the connection.
    Terminate,
}

impl<'m> ClientMessage<'m> {
    /// Reads a message; an error is the reason for closing with 4400.
    pub fn read(protocol: Protocol, text: &'m str) -> Result<ClientMessage<'m>, String> {
        let mut message = Envelope::read(text).ok_or("Invalid message received")?;
        let object = |message: &Envelope<'m>| match message.payload() {
            Some(payload) if !is_object(payload) => Err(format!(
                "\"{}\" message expects the 'payload' property to be an object",
                message.kind
            )),
            payload => Ok(payload),
        };
        let id = |message: &mut Envelope<'m>| {
            let id = message.id();
            id.ok_or_else(|| {
                format!(
                    "\"{}\" message requires a non-empty 'id' property",
                    message.kind
                )
            })
        };
        let modern = protocol == Protocol::TransportWs;
        match (&*message.kind, modern) {
            ("connection_init", true) => Ok(ClientMessage::Init {
                payload: object(&message)?,
            }),
            // Clients of the legacy sub-protocol send whatever they were configured with.
            ("connection_init", false) => Ok(ClientMessage::Init {
                payload: object(&message).unwrap_or(None),
            }),
            ("ping", true) => Ok(ClientMessage::Ping {
                payload: object(&message)?,
            }),
            ("pong", true) => object(&message).map(|_| ClientMessage::Pong),
            ("subscribe", true) | ("start", false) => {
                let id = id(&mut message)?;
                let payload = object(&message)?.ok_or_else(|| {
                    format!("\"{}\" message requires a 'payload' property", message.kind)
                })?;
                Ok(ClientMessage::Subscribe { id, payload })
            }
            ("complete", true) | ("stop", false) => Ok(ClientMessage::Complete {
                id: id(&mut message)?,
            }),
            ("connection_terminate", false) => Ok(ClientMessage::Terminate),
            (kind, _) => Err(format!(
                "Unexpected message of type {} received",
                ogive_base::foreign::bounded_name(kind)
            )),
        }
    }

    /// Writes a message. Payloads must be JSON.
    pub fn write(&self, protocol: Protocol, out: &mut String) {
        let modern = protocol == Protocol::TransportWs;
        match self {
            ClientMessage::Init { payload } => write(out, "connection_init", None, *payload),
            ClientMessage::Ping { payload } => write(out, "ping", None, *payload),
            ClientMessage::Pong => write(out, "pong", None, None),
            ClientMessage::Subscribe { id, payload } => {
                let kind = if modern { "subscribe" } else { "start" };
                write(out, kind, Some(id), Some(payload));
            }
            ClientMessage::Complete { id } => {
                let kind = if modern { "complete" } else { "stop" };
                write(out, kind, Some(id), None);
            }
            ClientMessage::Terminate => write(out, "connection_terminate", None, None),
        }
    }
}

/// Writes the members in the order in which readers want them: what kind it is, whose it is, what it says.
pub(crate) fn write(out: &mut String, kind: &str, id: Option<&str>, payload: Option<&str>) {
    out.reserve(40 + id.map_or(0, str::len) + payload.map_or(0, str::len));
    out.push('{');
    if let Some(id) = id {
        out.push_str("\"id\":");
        write_string(out, id);
        out.push(',');
    }
    out.push_str("\"type\":\"");
    out.push_str(kind);
    out.push('"');
    if let Some(payload) = payload {
        out.push_str(",\"payload\":");
        out.push_str(payload);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Protocol; 2] = [Protocol::TransportWs, Protocol::LegacyWs];

    #[test]
    fn what_is_written_is_read() {
        for protocol in BOTH {
            let mut messages = vec![
                ClientMessage::Init { payload: None },
                ClientMessage::Init {
                    payload: Some(r#"{"token":"t"}"#),
                },
                ClientMessage::Subscribe {
                    id: "1\"".into(),
                    payload: r#"{"query":"{a}"}"#,
                },
                ClientMessage::Complete { id: "1\"".into() },
            ];
            if protocol == Protocol::TransportWs {
                messages.push(ClientMessage::Ping {
                    payload: Some("{}"),
                });
                messages.push(ClientMessage::Pong);
            } else {
                messages.push(ClientMessage::Terminate);
            }
            for message in messages {
                let mut text = String::new();
                message.write(protocol, &mut text);
                assert_eq!(ClientMessage::read(protocol, &text).as_ref(), Ok(&message));
            }
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_reason() {
        let modern = |text| ClientMessage::read(Protocol::TransportWs, text).unwrap_err();
        assert_eq!(modern("nonsense"), "Invalid message received");
        assert_eq!(
            modern(r#"{"type":"start","id":"1","payload":{}}"#),
            "Unexpected message of type start received"
        );
        assert_eq!(
            modern(r#"{"type":"next","id":"1","payload":{}}"#),
            "Unexpected message of type next received"
        );
        assert_eq!(
            modern(r#"{"type":"subscribe","id":"","payload":{}}"#),
            "\"subscribe\" message requires a non-empty 'id' property"
        );
        assert_eq!(
            modern(r#"{"type":"subscribe","id":"1"}"#),
            "\"subscribe\" message requires a 'payload' property"
        );
        assert_eq!(
            modern(r#"{"type":"subscribe","id":"1","payload":[]}"#),
            "\"subscribe\" message expects the 'payload' property to be an object"
        );
        assert_eq!(
            modern(r#"{"type":"connection_init","payload":"token"}"#),
            "\"connection_init\" message expects the 'payload' property to be an object"
        );
        assert_eq!(
            modern(r#"{"type":"complete"}"#),
            "\"complete\" message requires a non-empty 'id' property"
        );
        let legacy = |text| ClientMessage::read(Protocol::LegacyWs, text);
        assert!(legacy(r#"{"type":"ping"}"#).is_err());
        assert!(legacy(r#"{"type":"connection_init","payload":""}"#).is_ok());
        assert!(legacy(r#"{"type":"start","id":"1","payload":{"query":"{a}"}}"#).is_ok());
    }
}
