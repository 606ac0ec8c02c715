//! `body` as a script sees it: the members of a request or response of GraphQL, or of a part of one.

use rhai::{Dynamic, Engine, EvalAltResult, Map};

use crate::{
    exchange::{Exchange, Lent},
    values::{from_json, to_raw, wrong},
};

/// `body`.
#[derive(Clone, Debug)]
pub(crate) struct Body(pub(crate) Lent);

/// The members of bodies, as scripts call them and as they are written.
const MEMBERS: [(&str, &str); 11] = [
    ("query", "query"),
    ("operation_name", "operationName"),
    ("variables", "variables"),
    ("extensions", "extensions"),
    ("data", "data"),
    ("errors", "errors"),
    ("label", "label"),
    ("path", "path"),
    ("incremental", "incremental"),
    ("pending", "pending"),
    ("completed", "completed"),
];

/// Those of a whole response, which a later part has in its `incremental` instead.
const OF_WHOLE: [&str; 4] = ["data", "errors", "label", "path"];

/// Adds it.
pub(crate) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Body>("Body");
    for (shown, name) in MEMBERS {
        engine
            .register_get(shown, move |body: &mut Body| get(&body.0.look(), name))
            .register_set(shown, move |body: &mut Body, value: Dynamic| {
                set(&mut body.0.look(), name, &value)
            });
    }
    // The gateway knows whether parts follow: nobody else says so.
    engine.register_get("hasNext", |body: &mut Body| get(&body.0.look(), "hasNext"));
}

fn get(exchange: &Exchange, name: &str) -> Result<Dynamic, Box<EvalAltResult>> {
    match exchange.body.get(name) {
        Some(value) => from_json(value.get()),
        // What can be written to without being there.
        None if matches!(name, "variables" | "extensions") => Ok(Map::new().into()),
        None => Ok(Dynamic::UNIT),
    }
}

fn set(exchange: &mut Exchange, name: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
    let value = (!value.is_unit()).then(|| to_raw(value)).transpose()?;
    let is_new = value.is_some() && exchange.body.get(name).is_none();
    if is_new && OF_WHOLE.contains(&name) && is_later_part(exchange) {
        return Err(wrong(format!(
            "this part of the answer has no `{name}`: what it brings is in `incremental`; see `is_primary()`"
        )));
    }
    exchange.body.set(name, value);
    Ok(())
}

/// Whether it comes behind the first part of an answer. Events of subscriptions are whole responses.
fn is_later_part(exchange: &Exchange) -> bool {
    !exchange.is_primary && exchange.body.get("hasNext").is_some()
}
