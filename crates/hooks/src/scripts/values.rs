//! JSON as values of Rhai, and back.

use ogive_json::{Strictness, read_value};
use rhai::{Array, Dynamic, EvalAltResult, INT, Map};
use serde_json::{Value, value::RawValue};

/// Most objects and lists within one another.
const DEPTH_MAX: usize = 128;

/// An error as a script sees it.
pub(crate) fn wrong(why: impl Into<String>) -> Box<EvalAltResult> {
    why.into().into()
}

/// A JSON text as a value.
pub(crate) fn from_json(text: &str) -> Result<Dynamic, Box<EvalAltResult>> {
    let depth = u32::try_from(DEPTH_MAX).unwrap_or(u32::MAX);
    let value = read_value(text.as_bytes(), depth, Strictness::Strict);
    value
        .map(from_value)
        .map_err(|error| wrong(format!("this is no JSON: {error}")))
}

fn from_value(value: Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => value.into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => float.into(),
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => items.into_iter().map(from_value).collect::<Array>().into(),
        Value::Object(members) => {
            let members = members.into_iter();
            let map: Map = members
                .map(|(name, value)| (name.into(), from_value(value)))
                .collect();
            map.into()
        }
    }
}

/// A value as a JSON text.
pub(crate) fn to_json(value: &Dynamic) -> Result<String, Box<EvalAltResult>> {
    let value = to_value(value, DEPTH_MAX)?;
    Ok(value.to_string())
}

/// Whether a JSON text is `written` once a script has read it: then it is what the script had, with digits and order that a
/// script does not see.
pub(crate) fn is_written_as(text: &str, written: &str) -> bool {
    let seen = || from_json(text).and_then(|value| to_json(&value));
    text == written || seen().is_ok_and(|seen| seen == written)
}

/// The same, to be kept as it is written.
pub(crate) fn to_raw(value: &Dynamic) -> Result<Box<RawValue>, Box<EvalAltResult>> {
    RawValue::from_string(to_json(value)?).map_err(|error| wrong(error.to_string()))
}

fn to_value(value: &Dynamic, depth: usize) -> Result<Value, Box<EvalAltResult>> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(wrong(format!("values are nested deeper than {DEPTH_MAX}")));
    };
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(value) = value.as_bool() {
        return Ok(value.into());
    }
    if let Ok(value) = value.as_int() {
        return Ok(value.into());
    }
    if let Ok(value) = value.as_float() {
        return Ok(value.into());
    }
    if let Ok(value) = value.as_char() {
        return Ok(value.to_string().into());
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(text.as_str().into());
    }
    if let Ok(items) = value.as_array_ref() {
        let items: Result<Vec<Value>, _> = items.iter().map(|item| to_value(item, depth)).collect();
        return items.map(Value::Array);
    }
    if let Ok(map) = value.as_map_ref() {
        let mut out = serde_json::Map::new();
        for (name, value) in map.iter() {
            out.insert(name.to_string(), to_value(value, depth)?);
        }
        return Ok(Value::Object(out));
    }
    Err(wrong(format!(
        "a value of type {} is no JSON",
        value.type_name()
    )))
}

/// A status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status(pub(crate) u16);

/// A status that a response can have.
pub(crate) fn status(code: INT) -> Result<Status, Box<EvalAltResult>> {
    let known = u16::try_from(code)
        .ok()
        .filter(|code| (200..600).contains(code));
    known
        .map(Status)
        .ok_or_else(|| wrong(format!("{code} is no status of a response")))
}
