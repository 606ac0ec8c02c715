//! The interface `http`: requests of a component to hosts that are permitted.
//!
//! What cannot be sent, or is not permitted, is an error that the component is told: URLs and headers may hold what clients say,
//! and no client is to make a component fail. The operator is told of the second. More requests than a call may send, and a
//! call whose time is over while it waits, end that call.

use std::time::{Duration, Instant};

use bytes::Bytes;
use wasmtime::{
    Result, StoreContextMut,
    component::{ComponentType, Lift, Linker, Lower},
};

use super::{Lent, Said, short};
use crate::{
    CallError,
    components::outgoing::{Outgoing, Refused, Unanswered, headers, method, place},
};

/// Longest reason that a component is told.
const REASON_BYTES_MAX: usize = 500;

/// A request, as a component says it.
#[derive(ComponentType, Lift)]
#[component(record)]
struct Request {
    method: String,
    url: String,
    headers: Vec<Said>,
    body: Vec<u8>,
}

/// What a component is told of its answer.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Response {
    status: u16,
    headers: Vec<Said>,
    body: Vec<u8>,
}

/// What a call has sent so far, and until when it may wait.
#[derive(Default)]
pub(super) struct Requests {
    sent: usize,
    /// When the time of the call is over; nothing is sent outside of a call.
    until: Option<Instant>,
}

impl Requests {
    /// Those of a call that begins and may take so long.
    pub(super) fn of_call(within: Duration) -> Self {
        Requests {
            sent: 0,
            until: Some(Instant::now() + within),
        }
    }
}

/// Offers the interface.
pub(super) fn http(linker: &mut Linker<Lent>) -> Result<()> {
    let mut of = linker.instance("ogive:hooks/http@1.1.0")?;
    of.func_wrap(
        "send",
        |mut lent: StoreContextMut<'_, Lent>, (request,): (Request,)| {
            Ok((send(lent.data_mut(), request)?,))
        },
    )
}

fn send(lent: &mut Lent, said: Request) -> Result<std::result::Result<Response, String>> {
    let limits = lent.settings.limits;
    let Some(sender) = lent.settings.sender.clone() else {
        return Ok(Err("nobody sends requests here".to_owned()));
    };
    let Some(until) = lent.requests.until else {
        let why = "a request outside of a call of a hook".to_owned();
        return Err(CallError::Forbidden(why).into());
    };
    if lent.requests.sent >= limits.requests {
        let why = format!("more than {} requests", limits.requests);
        return Err(CallError::Limit(why).into());
    }
    lent.requests.sent += 1;
    let late = || CallError::Limit(format!("longer than {:?}", limits.time));
    let within = until.saturating_duration_since(Instant::now());
    if within.is_zero() {
        return Err(late().into());
    }
    let request = match outgoing(lent, said, within) {
        Ok(request) => request,
        Err(why) => return Ok(Err(why)),
    };
    match sender.send(request) {
        Ok(answer) => Ok(Ok(Response {
            status: answer.status,
            headers: answer.headers.iter().map(shown).collect(),
            body: answer.body.to_vec(),
        })),
        Err(Unanswered::Late) => Err(late().into()),
        Err(Unanswered::Failed(mut why)) => {
            why.truncate(why.floor_char_boundary(REASON_BYTES_MAX));
            Ok(Err(why))
        }
    }
}

fn shown((name, value): (&http::HeaderName, &http::HeaderValue)) -> Said {
    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
    (name.as_str().to_owned(), value)
}

/// What is sent, or why nothing is.
fn outgoing(lent: &Lent, said: Request, within: Duration) -> std::result::Result<Outgoing, String> {
    let settings = &*lent.settings;
    let made = || {
        let (host, path) = place(&said.url, &settings.permissions.hosts)?;
        Ok((host, path, method(&said.method)?, headers(&said.headers)?))
    };
    match made() {
        Ok((host, path, method, headers)) => Ok(Outgoing {
            host,
            path,
            method,
            headers,
            body: Bytes::from(said.body),
            within,
            body_bytes_max: settings.limits.response_bytes,
        }),
        Err(Refused::Malformed(why)) => Err(why),
        Err(Refused::Forbidden(why)) => {
            let (plugin, what) = (settings.name.as_str(), short(&why));
            tracing::warn!(target: "ogive::component", plugin, "not permitted: {what}");
            Err(format!("not permitted: {what}"))
        }
    }
}
