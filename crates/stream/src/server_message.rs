//! What servers say over WebSocket: writing it towards clients, reading it from subgraphs.
//!
//! | `graphql-transport-ws` | `graphql-ws` |
//! |---|---|
//! | `connection_ack` | `connection_ack` |
//! | `ping`, `pong` | `ka` |
//! | `next` | `data` |
//! | `error`, a list of errors | `error`, one error |
//! | `complete` | `complete` |
//! | none: the socket is closed with 4403 | `connection_error` |

use std::borrow::Cow;

use ogive_json::Scanner;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Protocol,
    client_message::write,
    envelope::{Envelope, is_object, write_string},
};

/// A message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerMessage<'m> {
    /// The connection may be used.
    Ack {
        /// JSON object.
        payload: Option<&'m str>,
    },
    /// The connection may not be used.
    ConnectionError {
        /// JSON: why.
        payload: Option<&'m str>,
    },
    /// Asks whether somebody is there.
    Ping {
        /// JSON object.
        payload: Option<&'m str>,
    },
    /// Somebody is there.
    Pong {
        /// JSON object.
        payload: Option<&'m str>,
    },
    /// Somebody is there, unasked.
    KeepAlive,
    /// An answer of an operation.
    Next {
        /// The client's name for the operation.
        id: Cow<'m, str>,
        /// JSON object: the answer.
        payload: &'m str,
    },
    /// The operation failed before it ran, and is over.
    Error {
        /// The client's name for it.
        id: Cow<'m, str>,
        /// JSON: a list of errors, or one.
        payload: &'m str,
    },
    /// The operation is over.
    Complete {
        /// The client's name for it.
        id: Cow<'m, str>,
    },
}

/// The member of an error that legacy clients show.
#[derive(Deserialize)]
struct Messaged<'m> {
    #[serde(borrow)]
    message: &'m RawValue,
}

impl<'m> ServerMessage<'m> {
    /// Reads a message; an error says what is wrong with it.
    pub fn read(protocol: Protocol, text: &'m str) -> Result<ServerMessage<'m>, String> {
        if let Some(next) = usual_next(protocol, text) {
            return Ok(next);
        }
        let mut message = Envelope::read(text)
            .ok_or("it is not a JSON object with a type, an id and a payload")?;
        let id = |message: &mut Envelope<'m>| {
            let id = message.id();
            id.ok_or_else(|| format!("`{}` without an id", message.kind))
        };
        let modern = protocol == Protocol::TransportWs;
        let payload = message.payload();
        match (&*message.kind, modern) {
            ("connection_ack", _) => Ok(ServerMessage::Ack { payload }),
            ("ping", true) => Ok(ServerMessage::Ping { payload }),
            ("pong", true) => Ok(ServerMessage::Pong { payload }),
            ("ka", false) => Ok(ServerMessage::KeepAlive),
            ("connection_error", false) => Ok(ServerMessage::ConnectionError { payload }),
            ("next", true) | ("data", false) => {
                let id = id(&mut message)?;
                let payload = payload.filter(|payload| is_object(payload));
                let payload =
                    payload.ok_or_else(|| format!("`{}` without an answer", message.kind))?;
                Ok(ServerMessage::Next { id, payload })
            }
            ("error", _) => {
                let id = id(&mut message)?;
                let payload = payload.ok_or("`error` without one")?;
                Ok(ServerMessage::Error { id, payload })
            }
            ("complete", _) => Ok(ServerMessage::Complete {
                id: id(&mut message)?,
            }),
            (kind, _) => Err(format!(
                "messages of type `{}` are not part of {}",
                ogive_base::foreign::bounded_name(kind),
                protocol.name()
            )),
        }
    }

    /// Writes a message. Payloads must be JSON; that of an error a list of errors.
    pub fn write(&self, protocol: Protocol, out: &mut String) {
        let modern = protocol == Protocol::TransportWs;
        match self {
            ServerMessage::Ack { payload } => write(out, "connection_ack", None, *payload),
            ServerMessage::ConnectionError { payload } => {
                write(out, "connection_error", None, *payload);
            }
            ServerMessage::Ping { payload } => write(out, "ping", None, *payload),
            ServerMessage::Pong { payload } => write(out, "pong", None, *payload),
            ServerMessage::KeepAlive => write(out, "ka", None, None),
            ServerMessage::Next { id, payload } => {
                let kind = if modern { "next" } else { "data" };
                write(out, kind, Some(id), Some(payload));
            }
            ServerMessage::Error { id, payload } if modern => {
                write(out, "error", Some(id), Some(payload));
            }
            ServerMessage::Error { id, payload } => {
                write(out, "error", Some(id), Some(&legacy_error(payload)));
            }
            ServerMessage::Complete { id } => write(out, "complete", Some(id), None),
        }
    }
}

/// An answer as most servers write it: nearly all messages are that. `None`: it is to be read member by member.
fn usual_next(protocol: Protocol, text: &str) -> Option<ServerMessage<'_>> {
    let (id, rest) = text.strip_prefix("{\"id\":\"")?.split_once('"')?;
    let kind = match protocol {
        Protocol::TransportWs => ",\"type\":\"next\",\"payload\":",
        Protocol::LegacyWs => ",\"type\":\"data\",\"payload\":",
    };
    let payload = rest.strip_prefix(kind).filter(|rest| is_object(rest))?;
    let range = Scanner::new(payload.as_bytes()).skip_value().ok()?;
    let is_plain = |byte: &u8| !matches!(byte, b'\\' | ..b' ');
    if id.is_empty() || !id.as_bytes().iter().all(is_plain) || &payload[range.end..] != "}" {
        return None;
    }
    Some(ServerMessage::Next {
        id: id.into(),
        payload: &payload[range],
    })
}

/// The one object that the legacy sub-protocol wants for an error: the message of the first one, and all of them for
/// clients that look for more (`formatErrors` of subscriptions-transport-ws does).
fn legacy_error(errors: &str) -> String {
    let mut out = String::from("{\"message\":");
    let first: Option<Vec<Messaged<'_>>> = serde_json::from_str(errors).ok();
    match first.as_deref().and_then(<[_]>::first) {
        Some(error) => out.push_str(error.message.get()),
        None => write_string(&mut out, "The operation failed"),
    }
    out.push_str(",\"errors\":");
    out.push_str(errors);
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let payload = r#"{"data":{"a":1}}"#;
        let id = || Cow::from("7");
        for protocol in [Protocol::TransportWs, Protocol::LegacyWs] {
            let mut messages = vec![
                ServerMessage::Ack { payload: None },
                ServerMessage::Next { id: id(), payload },
                ServerMessage::Complete { id: id() },
            ];
            if protocol == Protocol::TransportWs {
                messages.push(ServerMessage::Ping { payload: None });
                messages.push(ServerMessage::Pong {
                    payload: Some("{}"),
                });
                messages.push(ServerMessage::Error {
                    id: id(),
                    payload: r#"[{"message":"no"}]"#,
                });
            } else {
                messages.push(ServerMessage::KeepAlive);
                messages.push(ServerMessage::ConnectionError {
                    payload: Some("{}"),
                });
            }
            for message in messages {
                let mut text = String::new();
                message.write(protocol, &mut text);
                assert_eq!(ServerMessage::read(protocol, &text).as_ref(), Ok(&message));
            }
        }
    }

    #[test]
    fn answers_are_read_however_they_are_written() {
        let next = |text: &'static str| match ServerMessage::read(Protocol::TransportWs, text) {
            Ok(ServerMessage::Next { id, payload }) => Some((id.into_owned(), payload)),
            _ => None,
        };
        let expected = |id: &str| Some((id.to_owned(), r#"{"a":"}"}"#));
        for (text, id) in [
            (r#"{"id":"1","type":"next","payload":{"a":"}"}}"#, "1"),
            (r#"{"id":"é","type":"next","payload":{"a":"}"}}"#, "é"),
            (r#"{"type":"next","id":"1","payload":{"a":"}"}}"#, "1"),
            (r#"{"id":"1","type":"next","payload": {"a":"}"} }"#, "1"),
            (r#"{"id":"\u0031","type":"next","payload":{"a":"}"}}"#, "1"),
            (r#"{"id":"1","type":"next","payload":{"a":"}"},"b":2}"#, "1"),
        ] {
            assert_eq!(next(text), expected(id), "{text}");
        }
        for text in [
            r#"{"id":"","type":"next","payload":{}}"#,
            r#"{"id":"1","type":"next","payload":{}"#,
            r#"{"id":"1","type":"next","payload":{}}}"#,
            r#"{"id":"1","type":"next","payload":{}}{}"#,
            r#"{"id":"1","type":"next","payload":{a}}"#,
            r#"{"id":"1","type":"next","payload":[]}"#,
            r#"{"id":"1","type":"next","payload":{},"id":"2"}"#,
            "{\"id\":\"\n\",\"type\":\"next\",\"payload\":{}}",
        ] {
            assert_eq!(next(text), None, "{text}");
        }
    }

    #[test]
    fn errors_of_the_legacy_sub_protocol_are_one_object() {
        let written = |payload| {
            let mut text = String::new();
            let id = "1".into();
            ServerMessage::Error { id, payload }.write(Protocol::LegacyWs, &mut text);
            text
        };
        assert_eq!(
            written(r#"[{"message":"first"},{"message":"second"}]"#),
            r#"{"id":"1","type":"error","payload":{"message":"first","errors":[{"message":"first"},{"message":"second"}]}}"#
        );
        assert_eq!(
            written("[]"),
            r#"{"id":"1","type":"error","payload":{"message":"The operation failed","errors":[]}}"#
        );
    }

    #[test]
    fn what_subgraphs_may_not_say_is_refused() {
        let modern = |text| ServerMessage::read(Protocol::TransportWs, text).unwrap_err();
        assert!(modern("<html>").contains("JSON"));
        assert!(modern(r#"{"type":"data","id":"1","payload":{}}"#).contains("`data`"));
        assert!(modern(r#"{"type":"next","payload":{}}"#).contains("id"));
        assert!(modern(r#"{"type":"next","id":"1","payload":[]}"#).contains("answer"));
        assert!(modern(r#"{"type":"error","id":"1"}"#).contains("without"));
    }
}
