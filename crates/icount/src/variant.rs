//! The same answer, written in other ways that JSON allows.

use anyhow::Result;
use bytes::Bytes;
use serde_json::Value;

use crate::graph::{Graph, Prepared};

/// How the answer of `big-response` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// With line breaks and indentation.
    Pretty,
    /// With the members of every object the other way round.
    Reversed,
    /// With an escape in every longer string that has an `e`.
    Escaped,
}

impl Variant {
    /// All of them, with a name for tables.
    pub const ALL: [(&'static str, Variant); 3] = [
        ("pretty-printed", Variant::Pretty),
        ("members reversed", Variant::Reversed),
        ("strings escaped", Variant::Escaped),
    ];

    /// The operation over the whole of `big-response`, answered so.
    pub fn prepare(self) -> Result<Prepared> {
        let mut prepared = Graph::read("big-response", "all", "{}")?.prepare()?;
        let body = &mut prepared.answers[0].1;
        let text = match self {
            Variant::Pretty => serde_json::to_vec_pretty(&parsed(body)?)?,
            Variant::Reversed => serde_json::to_vec(&reversed(&parsed(body)?))?,
            Variant::Escaped => escaped(body),
        };
        *body = Bytes::from(text);
        Ok(prepared)
    }
}

fn parsed(body: &[u8]) -> Result<Value> {
    Ok(serde_json::from_slice(body)?)
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            let members = members.iter().rev();
            Value::Object(members.map(|(k, v)| (k.clone(), reversed(v))).collect())
        }
        scalar => scalar.clone(),
    }
}

fn escaped(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let strings = text.split('"').enumerate();
    let parts: Vec<String> = strings
        .map(|(at, part)| {
            // Every other part is inside quotes; the generated texts have none in them.
            if at % 2 == 1 && part.len() > 7 && !part.contains('\\') {
                part.replacen('e', "\\u0065", 1)
            } else {
                part.to_owned()
            }
        })
        .collect();
    parts.join("\"").into_bytes()
}
