//! What a coprocessor says. Foreign bytes: nothing is believed before it is checked, and what is not of its type is a
//! failure as a whole, so that no half of an answer is applied.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use ogive_failure::codes;
use ogive_json::Scanner;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;

use crate::{
    Body, Break, Exchange,
    error::CoprocessorError,
    headers::{ReplyHeaders, of_break, replaced},
    message::{Message, VERSION},
};

/// Most objects and lists within one another in a body.
pub const BODY_DEPTH_MAX: u32 = 128;

/// Whether a request goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Control {
    /// It does.
    #[default]
    Continue,
    /// It ends here, with this status.
    Break(StatusCode),
}

/// What a coprocessor says of a stage; `None` of what it does not mention.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Whether the request goes on.
    pub control: Control,
    /// All headers from now on.
    pub headers: Option<ReplyHeaders>,
    /// The body from now on.
    pub body: Option<Body>,
    /// Entries of the context; a null removes one.
    pub entries: Option<BTreeMap<String, Box<RawValue>>>,
    /// The status from now on.
    pub status_code: Option<StatusCode>,
    /// The URL to ask the subgraph at.
    pub uri: Option<String>,
    /// How long it is, which is what its bodies and entries keep.
    pub bytes: usize,
}

/// Declares what a reply may say: each member with its type, its name, and what a value of another type is not.
macro_rules! members {
    ($( $member:ident: $ty:ty = $name:literal, $expected:literal; )*) => {
        /// The members, unread: each has an error of its own. What is not listed says nothing.
        #[derive(Deserialize)]
        struct Unread<'a> {
            $( #[serde(borrow, rename = $name)] $member: Option<&'a RawValue>, )*
            #[serde(borrow)]
            body: Option<&'a RawValue>,
        }
        /// The members, each of its type. A null says nothing.
        struct Members<'a> {
            $( $member: Option<$ty>, )*
            body: Option<&'a RawValue>,
        }
        impl<'a> Members<'a> {
            fn read(unread: &Unread<'a>) -> Result<Self, CoprocessorError> {
                Ok(Members {
                    $( $member: member(unread.$member, $name, $expected)?, )*
                    body: unread.body,
                })
            }
        }
    };
}

members! {
    version: u64 = "version", "a number";
    stage: String = "stage", "a text";
    control: ControlMember = "control", "`\"continue\"` or `{\"break\": 400}`";
    id: String = "id", "a text";
    subgraph_request_id: String = "subgraphRequestId", "a text";
    headers: ReplyHeaders = "headers", "an object of lists of texts";
    context: ContextMember = "context", "an object with `entries`";
    status_code: u16 = "statusCode", "a status";
    uri: String = "uri", "a text";
}

#[derive(Deserialize)]
struct ContextMember {
    entries: Option<BTreeMap<String, Box<RawValue>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ControlMember {
    Word(String),
    Break {
        #[serde(rename = "break")]
        status: u16,
    },
}

/// The answers of a list, as they are written: as many as were asked for.
pub fn split(text: &Bytes, count: usize) -> Result<Vec<Bytes>, CoprocessorError> {
    let items: Vec<&RawValue> = serde_json::from_slice(text)
        .map_err(|_| CoprocessorError::Unreadable("it is no list of answers".to_owned()))?;
    if items.len() != count {
        let found = items.len();
        let why = format!("it has {found} answers to {count} messages");
        let error = CoprocessorError::Unreadable(why);
        // It is not known which one is to end, and none may go on in its place.
        return Err(if items.into_iter().any(ends) {
            CoprocessorError::Ending(Box::new(error))
        } else {
            error
        });
    }
    let item = |item: &RawValue| text.slice_ref(item.get().as_bytes());
    Ok(items.into_iter().map(item).collect())
}

/// Whether an answer says anything but that the request goes on.
fn ends(answer: &RawValue) -> bool {
    let unread: Result<Unread<'_>, _> = serde_json::from_str(answer.get());
    unread.is_ok_and(|unread| unread.control.is_some_and(|control| !is_onward(control)))
}

impl Reply {
    /// Reads what is said to a message of a list, which has to say to which.
    pub fn read_in_list(text: &Bytes, to: &Message<'_>) -> Result<Reply, CoprocessorError> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "subgraphRequestId")]
            id: Option<IgnoredAny>,
        }
        let reply = Reply::read(text, to)?;
        let named: Option<Named> = serde_json::from_slice(text).ok();
        if named.is_some_and(|named| named.id.is_some()) {
            return Ok(reply);
        }
        let expected = "said in each answer of a list";
        let error = CoprocessorError::Malformed("subgraphRequestId", expected);
        // What is to end does not go on, whichever it is.
        Err(match reply.control {
            Control::Continue => error,
            Control::Break(_) => CoprocessorError::Ending(Box::new(error)),
        })
    }

    /// Reads what is said to a message.
    pub fn read(text: &Bytes, to: &Message<'_>) -> Result<Reply, CoprocessorError> {
        let unread: Unread<'_> = serde_json::from_slice(text)
            // Its own words quote what was read, which may be anything.
            .map_err(|error| {
                let (line, column) = (error.line(), error.column());
                CoprocessorError::Unreadable(format!("line {line}, column {column}"))
            })?;
        let ends = unread.control.is_some_and(|control| !is_onward(control));
        // Whatever else is wrong with it: it did not say that the request may go on.
        Reply::checked(text, &unread, to).map_err(|error| match error {
            error if ends => CoprocessorError::Ending(Box::new(error)),
            error => error,
        })
    }

    /// Applies what the reply says of an exchange, but for the context: all of it, or nothing.
    pub fn apply(self, exchange: &mut Exchange) -> Result<(), CoprocessorError> {
        let (stage, peer) = (exchange.stage, exchange.stage.peer());
        if let Control::Break(status) = self.control {
            // A request ends without the headers that it came with.
            let echo = (!stage.is_response()).then_some(&*exchange.headers);
            let headers = self.headers.map(|said| of_break(echo, &said, peer));
            exchange.changes.ending = Some(Box::new(Break {
                status,
                headers: headers.transpose()?,
                body: self.body,
                code: codes::COPROCESSOR_BREAK,
            }));
            return Ok(());
        }
        if let Some(said) = &self.headers {
            exchange.headers = replaced(&exchange.headers, said, peer)?.into();
            exchange.changes.headers = true;
        }
        if let Some(body) = self.body {
            exchange.body = Some(body);
            exchange.changes.body = true;
        }
        if let Some(status) = self.status_code {
            exchange.status = Some(status.as_u16());
            exchange.changes.status = true;
        }
        if let Some(uri) = self.uri {
            exchange.uri = Some(uri.into());
            exchange.changes.uri = true;
        }
        Ok(())
    }

    fn checked(
        text: &Bytes,
        unread: &Unread<'_>,
        to: &Message<'_>,
    ) -> Result<Reply, CoprocessorError> {
        let said = Members::read(unread)?;
        if said.version.is_some_and(|v| v != u64::from(VERSION)) {
            return Err(CoprocessorError::Changed("version"));
        }
        let told = [
            ("stage", said.stage, Some(to.stage.name())),
            ("id", said.id, Some(to.id)),
            (
                "subgraphRequestId",
                said.subgraph_request_id,
                to.subgraph_request_id,
            ),
        ];
        for (name, said, was) in told {
            // What was not told cannot be changed.
            if let (Some(said), Some(was)) = (said, was)
                && said != was
            {
                return Err(CoprocessorError::Changed(name));
            }
        }
        let status_code = said.status_code.map(|code| status(code, "statusCode"));
        Ok(Reply {
            control: said.control.map_or(Ok(Control::Continue), control)?,
            headers: said.headers,
            body: said.body.map(|body| read_body(text, body)).transpose()?,
            entries: said.context.and_then(|context| context.entries),
            status_code: status_code.transpose()?,
            uri: said.uri,
            bytes: text.len(),
        })
    }
}

/// Whether it says that the request goes on, or nothing.
fn is_onward(control: &RawValue) -> bool {
    let word: Result<Option<String>, _> = serde_json::from_str(control.get());
    word.is_ok_and(|word| word.is_none_or(|word| is_continue(&word)))
}

fn is_continue(word: &str) -> bool {
    word.eq_ignore_ascii_case("continue")
}

/// A member of a type. A null says nothing.
fn member<T: DeserializeOwned>(
    value: Option<&RawValue>,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, CoprocessorError> {
    let Some(value) = value else {
        return Ok(None);
    };
    serde_json::from_str(value.get()).map_err(|_| CoprocessorError::Malformed(name, expected))
}

fn control(said: ControlMember) -> Result<Control, CoprocessorError> {
    match said {
        ControlMember::Word(word) if is_continue(&word) => Ok(Control::Continue),
        ControlMember::Word(_) => Err(CoprocessorError::Malformed(
            "control",
            "`\"continue\"` or `{\"break\": 400}`",
        )),
        ControlMember::Break { status: code } => status(code, "control").map(Control::Break),
    }
}

/// A status that a response can have: those below 200 come before a response.
fn status(code: u16, name: &'static str) -> Result<StatusCode, CoprocessorError> {
    let known = StatusCode::from_u16(code).ok();
    let known = known.filter(|status| (200..600).contains(&status.as_u16()));
    known.ok_or(CoprocessorError::Malformed(
        name,
        "a status from 200 to 599",
    ))
}

fn read_body(text: &Bytes, body: &RawValue) -> Result<Body, CoprocessorError> {
    let json = body.get();
    if json.starts_with('"') {
        let text: Result<String, _> = serde_json::from_str(json);
        return text
            .map(|text| Body::Text(text.into()))
            .map_err(|error| CoprocessorError::Unreadable(error.to_string()));
    }
    let mut scanner = Scanner::with_depth_max(json.as_bytes(), BODY_DEPTH_MAX);
    scanner
        .skip_value()
        .map_err(|_| CoprocessorError::Depth(BODY_DEPTH_MAX))?;
    Ok(Body::Json(text.slice_ref(json.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    #[test]
    fn a_list_has_an_answer_to_each_message_that_says_to_which() {
        let split = |text: &'static str| split(&Bytes::from_static(text.as_bytes()), 2);
        assert!(split("{}").is_err() && split("[{}]").is_err() && split("[{},{},{}]").is_err());
        let read = |text: &'static str, id: &str| {
            let message = Message {
                subgraph_request_id: Some(id),
                ..Message::new(Stage::SubgraphRequest, "i")
            };
            Reply::read_in_list(&Bytes::from_static(text.as_bytes()), &message)
        };
        assert!(read(r#"{"subgraphRequestId":"a"}"#, "a").is_ok());
        assert!(read(r#"{"subgraphRequestId":"a"}"#, "b").is_err());
        assert!(read("{}", "a").is_err() && read("1", "a").is_err());
    }

    fn read(reply: &str) -> Result<Reply, CoprocessorError> {
        let to = Message {
            subgraph_request_id: Some("s"),
            ..Message::new(Stage::SubgraphRequest, "i")
        };
        Reply::read(&Bytes::copy_from_slice(reply.as_bytes()), &to)
    }

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        for told in [r#""a secret""#, r#"{"control": "a secret", }"#, "a secret"] {
            let error = read(told).unwrap_err().to_string();
            assert!(
                error.contains("column") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_not_mentioned_is_not_changed() {
        for nothing in [
            "{}",
            r#"{"unknown":1,"control":"continue","version":1,"stage":"SubgraphRequest","id":"i","subgraphRequestId":"s"}"#,
            r#"{"body":null,"headers":null,"context":null,"control":null,"uri":null,"statusCode":null}"#,
        ] {
            let reply = read(nothing).unwrap();
            assert_eq!(reply.control, Control::Continue);
            assert!(reply.headers.is_none() && reply.body.is_none() && reply.entries.is_none());
            assert!(reply.uri.is_none() && reply.status_code.is_none());
        }
    }

    #[test]
    fn what_is_said_is_read_and_bodies_keep_every_digit() {
        let reply = read(
            r#" {"control":{"break":401},"headers":{"a":["1","2"]},"body":{"n":1e999,"z":1,"a":9007199254740993},
               "context":{"entries":{"x":1.10,"y":null}},"statusCode":201,"uri":"http://b/"}"#,
        )
        .unwrap();
        assert_eq!(reply.control, Control::Break(StatusCode::UNAUTHORIZED));
        assert_eq!(reply.headers.unwrap()["a"], ["1", "2"]);
        let body = reply.body.unwrap().into_bytes();
        assert_eq!(&*body, br#"{"n":1e999,"z":1,"a":9007199254740993}"#);
        let entries = reply.entries.unwrap();
        assert_eq!((entries["x"].get(), entries["y"].get()), ("1.10", "null"));
        assert_eq!(reply.status_code, Some(StatusCode::CREATED));
        assert_eq!(reply.uri.as_deref(), Some("http://b/"));
        let text = read(r#"{"body":"a\n\u00e4"}"#).unwrap().body.unwrap();
        assert_eq!(text, Body::Text("a\nä".into()));
    }

    #[test]
    fn changing_what_a_message_is_about_is_a_failure() {
        for (reply, what) in [
            (r#"{"version":2}"#, "version"),
            (r#"{"stage":"SubgraphResponse"}"#, "stage"),
            (r#"{"id":"j"}"#, "id"),
            (r#"{"subgraphRequestId":"t"}"#, "subgraphRequestId"),
        ] {
            assert_eq!(read(reply).unwrap_err(), CoprocessorError::Changed(what));
        }
    }

    #[test]
    fn what_did_not_say_that_it_goes_on_is_known_to_end() {
        for (reply, is_ending) in [
            (r#"{"control":{"break":99}}"#, true),
            (r#"{"control":{"break":"401"}}"#, true),
            (r#"{"control":"stop"}"#, true),
            (r#"{"control":1}"#, true),
            (r#"{"control":{"break":401},"headers":{"a":"b"}}"#, true),
            (r#"{"control":{"break":401},"id":"j"}"#, true),
            (r#"{"control":"Continue","id":"j"}"#, false),
            (r#"{"control":null,"headers":1}"#, false),
            (r#"{"id":"j"}"#, false),
        ] {
            assert_eq!(read(reply).unwrap_err().is_ending(), is_ending, "{reply}");
        }
    }

    #[test]
    fn what_is_to_end_does_not_go_on_whatever_is_wrong_with_its_list() {
        let to = Message {
            subgraph_request_id: Some("i-0"),
            ..Message::new(Stage::SubgraphRequest, "i")
        };
        for (reply, is_ending) in [
            (r#"{"control":{"break":403}}"#, true),
            (r#"{"control":"continue"}"#, false),
            (r#"{"control":1}"#, true),
        ] {
            let text = Bytes::from_static(reply.as_bytes());
            let error = Reply::read_in_list(&text, &to).unwrap_err();
            assert_eq!(error.is_ending(), is_ending, "{reply}");
            let list = Bytes::from(format!("[{reply}]"));
            let error = split(&list, 2).unwrap_err();
            assert_eq!(error.is_ending(), is_ending, "{reply}");
        }
        let named = r#"{"control":{"break":403},"subgraphRequestId":"i-0"}"#;
        let named = Reply::read_in_list(&Bytes::from_static(named.as_bytes()), &to).unwrap();
        assert_eq!(named.control, Control::Break(StatusCode::FORBIDDEN));
    }

    #[test]
    fn what_is_not_of_its_type_is_a_failure_as_a_whole() {
        let deep = format!("{{\"body\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        for bad in [
            "",
            "<html>",
            "[]",
            "1",
            "{\"a\"",
            "{} {}",
            r#"{"control":"stop"}"#,
            r#"{"control":{"break":"401"}}"#,
            r#"{"control":{"break":0}}"#,
            r#"{"control":{"break":101}}"#,
            r#"{"control":{"break":70000}}"#,
            r#"{"control":{}}"#,
            r#"{"headers":{"a":"1"}}"#,
            r#"{"headers":[]}"#,
            r#"{"headers":{"a":[1]}}"#,
            r#"{"context":[]}"#,
            r#"{"context":{"entries":[]}}"#,
            r#"{"statusCode":"200"}"#,
            r#"{"statusCode":999}"#,
            r#"{"uri":1}"#,
            r#"{"id":1}"#,
            r#"{"version":"1"}"#,
            r#"{"body":1,"body":2}"#,
            &deep,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
