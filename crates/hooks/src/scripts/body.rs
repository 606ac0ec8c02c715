//! `body` as a script sees it: the members of a request or response of GraphQL, or of a part of one.

use rhai::{Array, Dynamic, Engine, EvalAltResult, Map};

use super::{
    exchange::{Lent, LentExchange},
    values::{from_json, is_written_as, to_raw, wrong},
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

/// Those that are maps, which can be written to without being there.
const OF_MAPS: [&str; 2] = ["variables", "extensions"];

/// Adds it.
pub(crate) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Body>("Body");
    for (shown, name) in MEMBERS {
        engine
            .register_get(shown, move |body: &mut Body| get(&mut body.0.look(), name))
            .register_set(shown, move |body: &mut Body, value: Dynamic| {
                set(&mut body.0.look(), name, &value)
            });
    }
    // The gateway knows whether parts follow: nobody else says so.
    engine.register_get("hasNext", |body: &mut Body| {
        get(&mut body.0.look(), "hasNext")
    });
}

fn get(exchange: &mut LentExchange, name: &str) -> Result<Dynamic, Box<EvalAltResult>> {
    match exchange.body().get(name) {
        Some(value) => from_json(value.get()),
        None if OF_MAPS.contains(&name) => Ok(Map::new().into()),
        None if name == "errors" => Ok(Array::new().into()),
        None => Ok(Dynamic::UNIT),
    }
}

fn set(exchange: &mut LentExchange, name: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
    // A response without errors has no list of them.
    let is_none = value.is_unit() || (name == "errors" && is_empty_list(value));
    let value = (!is_none).then(|| to_raw(value)).transpose()?;
    let is_unchanged = match (exchange.body().get(name), &value) {
        (Some(before), Some(value)) => is_written_as(before.get(), value.get()),
        (None, None) => true,
        // What is read of members that are not there.
        (None, Some(value)) => OF_MAPS.contains(&name) && value.get() == "{}",
        (Some(_), None) => false,
    };
    if is_unchanged {
        return Ok(());
    }
    let is_new = value.is_some() && exchange.body().get(name).is_none();
    if is_new && OF_WHOLE.contains(&name) && is_later_part(exchange) {
        return Err(wrong(format!(
            "this part of the answer has no `{name}`: what it brings is in `incremental`; see `is_primary()`"
        )));
    }
    exchange.body().set(name, value);
    Ok(())
}

fn is_empty_list(value: &Dynamic) -> bool {
    value.as_array_ref().is_ok_and(|list| list.is_empty())
}

/// Whether it comes behind the first part of an answer. Events of subscriptions are whole responses.
fn is_later_part(exchange: &mut LentExchange) -> bool {
    !exchange.is_first && exchange.body().get("hasNext").is_some()
}
