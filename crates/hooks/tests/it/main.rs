//! Hooks that run in this process, each with what goes in and what has to come out, and hostile ones.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[cfg(feature = "components")]
mod components;
#[cfg(feature = "scripts")]
mod scripts;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_hooks::{Body, Break, CallError, CallMode, Exchange, HookEngine};

/// Lets an engine see an exchange: how it leaves the exchange, and what came of the call.
fn pass(
    engine: &impl HookEngine,
    mut exchange: Exchange,
    mode: CallMode,
) -> (Exchange, Result<(), CallError>) {
    let called = exchange.pass(engine, mode);
    (exchange, called)
}

/// A body as a text.
fn text(body: &Body) -> &str {
    std::str::from_utf8(body.bytes()).unwrap()
}

/// What a request is ended with: the message of a body that the hook has not made itself, or else the body.
fn said_at_end(ending: &Break) -> String {
    let body = text(ending.body.as_ref().unwrap());
    let read: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let error = &read["errors"][0];
    let is_made = error["extensions"]["code"] == ending.code.as_str();
    let message = error["message"].as_str().filter(|_| is_made);
    message.unwrap_or(body).to_owned()
}

/// Headers that are written as `name=value; name=value`.
fn headers(text: &str) -> HeaderMap {
    let mut out = HeaderMap::new();
    let lines = text.split(';').map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once('=').unwrap();
        let name = HeaderName::from_bytes(name.trim().as_bytes()).unwrap();
        out.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    out
}
