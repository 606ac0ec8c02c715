//! How a subgraph fails in the differential test.

use std::fmt;

use serde_json::{Map, Value as Json, json};

use crate::rng::{Rng, mix};

/// One request of an operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its number, in the order of sending.
    pub request: usize,
    /// How it fails.
    pub kind: FaultKind,
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// There is no answer.
    Lost,
    /// Nothing but an error is answered; whoever asks again gets everything.
    Nothing,
    /// Some of the answer is null, and an error says so without a usable path.
    Unplaced,
    /// A root field fails and takes the whole answer with it, whenever it is asked.
    Root,
}

const KINDS: [(FaultKind, &str); 4] = [
    (FaultKind::Lost, "no answer"),
    (FaultKind::Nothing, "nothing but an error"),
    (FaultKind::Unplaced, "an error without a place"),
    (FaultKind::Root, "a root field"),
];

impl Fault {
    /// The fault of a request under a seed.
    pub fn of(request: usize, seed: u64) -> Fault {
        let (kind, _) = KINDS[(mix(seed ^ 0xfa) % 4) as usize];
        Fault { request, kind }
    }
    /// Reads what is displayed.
    pub fn parse(text: &str) -> Result<Fault, String> {
        let (number, kind) = text.split_once(": ").unwrap_or((text, KINDS[0].1));
        let known = KINDS.iter().find(|(_, name)| *name == kind);
        let (kind, _) = known.ok_or_else(|| format!("unknown fault {kind:?}"))?;
        let request = number.parse().map_err(|e| format!("{number}: {e}"))?;
        Ok(Fault {
            request,
            kind: *kind,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.request)?;
        match KINDS.iter().find(|(kind, _)| *kind == self.kind) {
            Some((kind, name)) if *kind != FaultKind::Lost => write!(f, ": {name}"),
            _ => Ok(()),
        }
    }
}

/// The root fields of an answer, and how many look-ups it has, given the text of the request.
pub(crate) fn members(query: &str, body: &[u8]) -> (Vec<String>, usize) {
    let answer: Json = serde_json::from_slice(body).unwrap_or_default();
    let keys = answer["data"].as_object().into_iter().flat_map(Map::keys);
    let is_lookup = |key: &&String| {
        let alias = if *key == "_entities" {
            String::new()
        } else {
            format!("{key}:")
        };
        query.contains(&format!("{alias}_entities(representations:"))
    };
    let (lookups, roots): (Vec<_>, Vec<_>) = keys.partition(is_lookup);
    (roots.into_iter().cloned().collect(), lookups.len())
}

/// An answer that is nothing but an error at a root field, or anywhere.
pub(crate) fn nothing(root: Option<&str>) -> Vec<u8> {
    let error = match root {
        Some(key) => json!({"message": "failed", "path": [key]}),
        None => json!({"message": "failed"}),
    };
    json!({"data": null, "errors": [error]})
        .to_string()
        .into_bytes()
}

/// An answer some of which is null, with an error that does not say where.
pub(crate) fn unplaced(body: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut answer: Json = serde_json::from_slice(body).unwrap_or_default();
    if let Some(data) = answer["data"].as_object_mut() {
        data.values_mut().for_each(|value| spoil(value, rng));
    }
    let mut error = json!({"message": "failed"});
    match rng.below(6) {
        0 => {}
        1 => error["path"] = Json::Null,
        2 => error["path"] = json!([]),
        3 => error["path"] = json!("user"),
        4 => error["path"] = json!(["nobody", "knows", 3]),
        _ => error["path"] = json!([3, {}]),
    }
    match answer["errors"].as_array_mut() {
        Some(errors) => errors.push(error),
        None => answer["errors"] = json!([error]),
    }
    answer.to_string().into_bytes()
}

fn spoil(value: &mut Json, rng: &mut Rng) {
    if rng.below(4) == 0 {
        *value = Json::Null;
        return;
    }
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| spoil(item, rng)),
        // A custom scalar may be an object; those of the world have an empty one in them, which no selection gives.
        Json::Object(members) if !members.values().any(|value| *value == json!({})) => {
            let members = members.iter_mut().filter(|(key, _)| !key.starts_with("__"));
            members.for_each(|(_, value)| spoil(value, rng));
        }
        _ => {}
    }
}
