//! The HTTP callback protocol, `callback/1.0`: whoever has the events sends them by requests to a URL of ours.
//!
//! We send the subscription as any request, with an id, a URL and a secret (`verifier`) in its extensions. The subgraph asks
//! back (`check`) before it answers; then it sends every event (`next`) and the end (`complete`) by a request of its own, and
//! a `check` at an interval, so that we know that it is there. Whoever does not know the secret says nothing to us.

use std::borrow::Cow;

use ogive_base::encode::hex;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::envelope::is_object;

/// How the request says that it speaks the protocol.
pub const ACCEPT: &str = "application/json;callbackSpec=1.0";
/// The header of answers that says so.
pub const HEADER: &str = "subscription-protocol";
/// Its value.
pub const VERSION: &str = "callback/1.0";

/// Random bytes of ids and secrets.
const RANDOM_BYTES: usize = 24;

/// What nobody can guess, as text; `None` if the system has no chance to give.
pub fn random() -> Option<String> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// What a subgraph says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackMessage<'m> {
    /// Whether the subscription is wanted, now or still.
    Check,
    /// An event: a JSON object, the answer.
    Next(&'m str),
    /// The subscription is over; with errors, JSON, if it failed.
    Complete(Option<&'m str>),
}

/// Why a request of a subgraph is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackRefusal {
    /// It is of somebody who does not know the secret, or it cannot be said whose it is.
    Foreign,
    /// It is of the subgraph, and wrong; what is wrong with it.
    Malformed(&'static str),
}

#[derive(Deserialize)]
struct Sent<'m> {
    #[serde(borrow)]
    kind: Option<Cow<'m, str>>,
    #[serde(borrow)]
    action: Option<Cow<'m, str>>,
    #[serde(borrow)]
    id: Option<Cow<'m, str>>,
    #[serde(borrow)]
    verifier: Option<Cow<'m, str>>,
    #[serde(borrow)]
    payload: Option<&'m RawValue>,
    #[serde(borrow)]
    errors: Option<&'m RawValue>,
}

/// Reads what came for a subscription of this id, which has this secret.
pub fn read<'m>(
    body: &'m [u8],
    id: &str,
    verifier: &str,
) -> Result<CallbackMessage<'m>, CallbackRefusal> {
    let sent: Sent<'m> = serde_json::from_slice(body).map_err(|_| CallbackRefusal::Foreign)?;
    let is_known = sent
        .verifier
        .as_deref()
        .is_some_and(|found| is_equal(found.as_bytes(), verifier.as_bytes()));
    if !is_known || sent.id.as_deref() != Some(id) {
        return Err(CallbackRefusal::Foreign);
    }
    let malformed = |what| Err(CallbackRefusal::Malformed(what));
    if sent.kind.as_deref() != Some("subscription") {
        return malformed("a callback of another `kind`");
    }
    match sent.action.as_deref() {
        Some("check") => Ok(CallbackMessage::Check),
        Some("next") => match sent.payload.map(RawValue::get) {
            Some(payload) if is_object(payload) => Ok(CallbackMessage::Next(payload)),
            _ => malformed("`next` without a `payload` that is an object"),
        },
        Some("complete") => match sent.errors.map(RawValue::get) {
            None | Some("null" | "[]") => Ok(CallbackMessage::Complete(None)),
            Some(errors) if errors.starts_with('[') => Ok(CallbackMessage::Complete(Some(errors))),
            Some(_) => malformed("`complete` with `errors` that are no list"),
        },
        _ => malformed("a callback with an `action` that is none"),
    }
}

/// Takes as long for all that are different.
fn is_equal(found: &[u8], wanted: &[u8]) -> bool {
    let differences = found
        .iter()
        .zip(wanted)
        .fold(0, |all, (a, b)| all | (a ^ b));
    found.len() == wanted.len() && differences == 0
}

#[derive(Deserialize)]
struct Answered<'m> {
    #[serde(borrow)]
    errors: Option<&'m RawValue>,
}

/// Whether an answer to the request for a subscription says that there is one.
pub fn is_answer(body: &[u8]) -> bool {
    let answered: Option<Answered<'_>> = serde_json::from_slice(body).ok();
    answered.is_some_and(|answered| {
        let errors = answered.errors.map(RawValue::get);
        errors.is_none_or(|errors| errors == "[]")
    })
}

/// What a subscription is to be called back by.
#[derive(Clone, Copy, Debug)]
pub struct CallbackRequest<'r> {
    /// URL of callbacks, of which the id is the last segment.
    pub url: &'r str,
    /// Name of the subscription.
    pub id: &'r str,
    /// Secret.
    pub verifier: &'r str,
    /// How often a `check` is to come, in milliseconds; zero: never.
    pub heartbeat_ms: u64,
}

#[derive(Deserialize)]
struct WithExtensions<'m> {
    #[serde(borrow)]
    extensions: Option<&'m RawValue>,
}

impl CallbackRequest<'_> {
    /// Adds it to the extensions of a GraphQL request; `None` if that is none.
    pub fn add_to(&self, request: &str) -> Option<String> {
        let read: WithExtensions<'_> = serde_json::from_str(request).ok()?;
        let CallbackRequest {
            url,
            id,
            verifier,
            heartbeat_ms,
        } = self;
        // URL, id and secret are ours, and need no escapes.
        let own = format!(
            "\"subscription\":{{\"callbackUrl\":\"{url}/{id}\",\"subscriptionId\":\"{id}\",\
             \"verifier\":\"{verifier}\",\"heartbeatIntervalMs\":{heartbeat_ms}}}"
        );
        let known = read.extensions.map(RawValue::get);
        Some(match known.filter(|known| is_object(known)) {
            Some(known) => {
                let at = known.as_ptr() as usize - request.as_ptr() as usize + 1;
                let (before, behind) = request.split_at(at);
                let is_empty = behind.trim_start().starts_with('}');
                let comma = if is_empty { "" } else { "," };
                format!("{before}{own}{comma}{behind}")
            }
            None => {
                let before = request.trim_end().strip_suffix('}')?;
                let is_empty = before.trim_end().ends_with('{');
                let comma = if is_empty { "" } else { "," };
                format!("{before}{comma}\"extensions\":{{{own}}}}}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(body: &str) -> Result<CallbackMessage<'_>, CallbackRefusal> {
        read(body.as_bytes(), "i", "secret")
    }

    #[test]
    fn what_a_subgraph_may_say_is_read() {
        let of = |rest: &str| {
            format!(r#"{{"kind":"subscription","id":"i","verifier":"secret",{rest}}}"#)
        };
        let check = of(r#""action":"check""#);
        assert_eq!(read_one(&check), Ok(CallbackMessage::Check));
        let next = of(r#""action":"next","payload":{"data":1}"#);
        assert_eq!(read_one(&next), Ok(CallbackMessage::Next(r#"{"data":1}"#)));
        for end in [
            r#""action":"complete""#,
            r#""action":"complete","errors":[]"#,
        ] {
            assert_eq!(read_one(&of(end)), Ok(CallbackMessage::Complete(None)));
        }
        let failed = of(r#""action":"complete","errors":[{"message":"m"}]"#);
        let errors = r#"[{"message":"m"}]"#;
        assert_eq!(
            read_one(&failed),
            Ok(CallbackMessage::Complete(Some(errors)))
        );
        for wrong in [
            r#""action":"next""#,
            r#""action":"next","payload":[]"#,
            r#""action":"complete","errors":{}"#,
            r#""action":"other""#,
            r#""a":1"#,
        ] {
            let read = read(of(wrong).as_bytes(), "i", "secret").map(|_| ());
            assert!(
                matches!(read, Err(CallbackRefusal::Malformed(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn who_does_not_know_the_secret_says_nothing() {
        for body in [
            "",
            "[]",
            r#"{"kind":"subscription","action":"next","id":"i","payload":{}}"#,
            r#"{"kind":"subscription","action":"next","id":"i","verifier":"secre","payload":{}}"#,
            r#"{"kind":"subscription","action":"next","id":"i","verifier":"secreT","payload":{}}"#,
            r#"{"kind":"subscription","action":"next","id":"j","verifier":"secret","payload":{}}"#,
        ] {
            assert_eq!(read_one(body), Err(CallbackRefusal::Foreign), "{body}");
        }
    }

    #[test]
    fn extensions_of_a_request_are_kept() {
        let asked = CallbackRequest {
            url: "http://h/c",
            id: "i",
            verifier: "v",
            heartbeat_ms: 5,
        };
        let own = concat!(
            r#""subscription":{"callbackUrl":"http://h/c/i","subscriptionId":"i","#,
            r#""verifier":"v","heartbeatIntervalMs":5}"#
        );
        for (request, expected) in [
            (
                r#"{"query":"q"}"#,
                format!(r#"{{"query":"q","extensions":{{{own}}}}}"#),
            ),
            (
                r#"{"extensions":{},"query":"q"}"#,
                format!(r#"{{"extensions":{{{own}}},"query":"q"}}"#),
            ),
            (
                r#"{"extensions":{"a":1},"query":"q"}"#,
                format!(r#"{{"extensions":{{{own},"a":1}},"query":"q"}}"#),
            ),
        ] {
            assert_eq!(asked.add_to(request).as_deref(), Some(&*expected));
        }
        assert_eq!(asked.add_to("no JSON"), None);
    }
}
