//! Faults: ways for a subgraph to fail on purpose.
//!
//! Written the same way in a config file, on the command line and in the request header `x-mock-fault`:
//! `status:503`, `error:User.name`, `short-entities`, ... and optionally `@3` for every third request only.

use std::time::Duration;

use ogive_base::FastMap;
use ogive_schema::Schema;
use serde_json::Value;

use crate::{
    delay::Delay,
    field_fault::{CoordinateFault, CoordinateFaults, FaultAction},
    node::FieldError,
};

/// One way to fail.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// `status:503`: that HTTP status with a plain text body.
    Status(u16),
    /// `drop`: the connection is closed without an answer.
    Drop,
    /// `truncate`: half of the announced body, then the connection is closed.
    Truncate,
    /// `slow-body:500ms`: the head at once, the body in pieces over this time.
    SlowBody(Duration),
    /// `delay:100ms`: this much later than usual.
    Delay(Delay),
    /// `malformed`: a body that is no JSON.
    Malformed,
    /// `html`: status 200 with an HTML page.
    Html,
    /// `empty`: status 200 with an empty body.
    Empty,
    /// `not-an-object`: a JSON body that is no object.
    NotAnObject,
    /// `null-data`: `{"data":null}` without errors.
    NullData,
    /// `request-error`: errors without data, status 200.
    RequestError,
    /// `short-entities`: the last entity is missing from `_entities`.
    ShortEntities,
    /// `error:User.name`: the field raises an error. An optional message follows another colon.
    Error(String, String),
    /// `null:User.name`: the field is null.
    Null(String),
    /// `wrong-type:User.name`: the field has a value of another type.
    WrongType(String),
}

/// Faults that are a word and nothing else.
const WITHOUT_VALUE: [&str; 9] = [
    "drop",
    "truncate",
    "malformed",
    "html",
    "empty",
    "not-an-object",
    "null-data",
    "request-error",
    "short-entities",
];

/// A fault and when it strikes.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// Strikes at every `every`th request; 1 is always.
    pub every: u64,
}

impl Fault {
    /// Reads one fault.
    pub fn parse(text: &str) -> Result<Fault, String> {
        let text = text.trim();
        let (text, every) = match text.rsplit_once('@') {
            Some((rest, n)) if n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty() => {
                (rest, n.parse().map_err(|_| format!("\"{n}\" is too big"))?)
            }
            _ => (text, 1),
        };
        if every == 0 {
            return Err(format!("\"{text}@0\": counting starts at 1"));
        }
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let coordinate = || match rest.split_once('.') {
            Some((ty, field)) if !ty.is_empty() && !field.is_empty() => Ok(rest.to_string()),
            _ => Err(format!(
                "\"{word}\" needs a coordinate, as in {word}:User.name"
            )),
        };
        let kind = match word {
            "status" => match rest.parse() {
                Ok(status @ 100..=599) => FaultKind::Status(status),
                _ => return Err(format!("\"{rest}\" is no HTTP status")),
            },
            "slow-body" => FaultKind::SlowBody(Delay::parse(rest)?.max),
            "delay" => FaultKind::Delay(Delay::parse(rest)?),
            "error" => {
                let (at, message) = rest.split_once(':').unwrap_or((rest, "Injected error"));
                coordinate()?;
                FaultKind::Error(at.to_string(), message.to_string())
            }
            "null" => FaultKind::Null(coordinate()?),
            "wrong-type" => FaultKind::WrongType(coordinate()?),
            known if !rest.is_empty() && WITHOUT_VALUE.contains(&known) => {
                return Err(format!("\"{word}\" takes no value"));
            }
            "drop" => FaultKind::Drop,
            "truncate" => FaultKind::Truncate,
            "malformed" => FaultKind::Malformed,
            "html" => FaultKind::Html,
            "empty" => FaultKind::Empty,
            "not-an-object" => FaultKind::NotAnObject,
            "null-data" => FaultKind::NullData,
            "request-error" => FaultKind::RequestError,
            "short-entities" => FaultKind::ShortEntities,
            _ => {
                return Err(format!(
                    "unknown fault \"{word}\"; known are status, drop, truncate, slow-body, delay, malformed, html, \
                     empty, not-an-object, null-data, request-error, short-entities, error, null, wrong-type"
                ));
            }
        };
        Ok(Fault { kind, every })
    }

    /// Reads a comma-separated list, as in the request header.
    pub fn parse_list(text: &str) -> Result<Vec<Fault>, String> {
        text.split(',').map(Fault::parse).collect()
    }

    /// Whether it strikes at the `n`th request, counted from 1.
    pub fn strikes(&self, n: u64) -> bool {
        n.is_multiple_of(self.every)
    }

    /// The coordinate it names.
    pub fn coordinate(&self) -> Option<&str> {
        match &self.kind {
            FaultKind::Error(at, _) | FaultKind::Null(at) | FaultKind::WrongType(at) => Some(at),
            _ => None,
        }
    }
}

/// The faults among these that change fields, by field. Coordinates the schema does not have are left out.
pub(crate) fn coordinate_faults<'f>(
    schema: &Schema,
    faults: impl Iterator<Item = &'f Fault>,
) -> CoordinateFaults {
    let mut found = FastMap::default();
    for fault in faults {
        let action = match &fault.kind {
            FaultKind::Error(_, message) => FaultAction::Error(FieldError {
                message: message.clone(),
                extensions: serde_json::json!({"code": "INJECTED"}).as_object().cloned(),
            }),
            FaultKind::Null(_) => FaultAction::Null,
            FaultKind::WrongType(_) => FaultAction::Raw(Value::Null),
            _ => continue,
        };
        let Some((ty, field)) = fault.coordinate().and_then(|c| c.split_once('.')) else {
            continue;
        };
        let id = schema
            .type_by_name(ty)
            .and_then(|ty| schema.field_by_name(ty, field));
        if let Some(id) = id {
            let action = match &fault.kind {
                FaultKind::WrongType(_) => FaultAction::Raw(wrong_value(schema, id)),
                _ => action,
            };
            found.insert(id, CoordinateFault { action });
        }
    }
    found
}

/// The first coordinate that is no field of the schema.
pub(crate) fn unknown_coordinate<'c>(
    schema: &Schema,
    coordinates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    let known = |coordinate: &str| {
        let (ty, field) = coordinate.split_once('.')?;
        schema.field_by_name(schema.type_by_name(ty)?, field)
    };
    let mut coordinates = coordinates;
    coordinates.find(|c| known(c).is_none())
}

/// A JSON value that cannot be of the field's type.
fn wrong_value(schema: &Schema, field: ogive_schema::FieldId) -> Value {
    let ty = schema.fields[field].ty;
    if ty.wrapping.is_list() || schema.types[ty.id].kind.is_composite() {
        Value::from("not what the schema says")
    } else {
        serde_json::json!({"not": ["what", "the", "schema", "says"]})
    }
}

/// Takes the last entity out of a response.
pub(crate) fn shorten_entities(body: &[u8]) -> Option<Vec<u8>> {
    let mut response: Value = serde_json::from_slice(body).ok()?;
    let data = response.get_mut("data")?.as_object_mut()?;
    let (_, entities) = data
        .iter_mut()
        .find(|(_, v)| v.as_array().is_some_and(|a| !a.is_empty()))?;
    entities.as_array_mut()?.pop();
    Some(response.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_faults() {
        let parse = |t| Fault::parse(t).unwrap();
        assert_eq!(
            parse("status:503@3"),
            Fault {
                kind: FaultKind::Status(503),
                every: 3
            }
        );
        assert!(!parse("drop@3").strikes(1) && parse("drop@3").strikes(3));
        assert_eq!(
            parse("error:User.name:No such: luck").kind,
            FaultKind::Error("User.name".into(), "No such: luck".into())
        );
        assert_eq!(Fault::parse_list("drop, null:A.b").unwrap().len(), 2);
        for wrong in [
            "",
            "status",
            "status:9",
            "drop:1",
            "error:User",
            "null:.x",
            "drop@0",
            "boom",
        ] {
            assert!(Fault::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shortens_entities() {
        let body = br#"{"data":{"_entities":[{"a":1},{"a":2}]}}"#;
        let short = shorten_entities(body).unwrap();
        assert_eq!(short, br#"{"data":{"_entities":[{"a":1}]}}"#);
        assert_eq!(shorten_entities(b"nope"), None);
    }
}
