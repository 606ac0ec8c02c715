//! Proof towards subgraphs: brought over whole, or not at all, since half of it would be refused there.

use ogive_yaml::{Node, Value};

use super::{
    convert::same,
    nodes::{at, dotted, map, scalar, set, set_key},
    rules::Walk,
    why::{OFF, SIGNATURES},
};

const CHAIN: &str = "credentials are looked for in the environment, by web identity, at the container's endpoint and at that of \
                     the instance; a profile has to have keys of its own";

/// Keys that have to be there, and those that may be.
type Keys = (&'static [&'static str], &'static [&'static str]);

const ROLE: Keys = (&["role_arn", "session_name"], &["external_id"]);

/// Apollo's `aws_sig_v4`.
pub(crate) fn aws(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let (chain, given) = (at(node, "default_chain"), at(node, "hardcoded"));
    let whole = match (chain, given) {
        (Some(chain), None) => {
            let keys = (
                &["region", "service_name"][..],
                &["profile_name", "assume_role"][..],
            );
            has(node, (&["default_chain"], &[])) && has(chain, keys) && has_role(chain)
        }
        (None, Some(given)) => {
            let wanted = &[
                "region",
                "service_name",
                "access_key_id",
                "secret_access_key",
            ][..];
            has(node, (&["hardcoded"], &[]))
                && has(given, (wanted, &["assume_role"]))
                && has_role(given)
        }
        _ => false,
    };
    match copy(walk, node) {
        Ok(copied) if whole => {
            let note = if chain.is_some() { CHAIN } else { "" };
            walk.put(path, &dotted(path), copied, note);
        }
        _ => walk.unsupported(path, SIGNATURES),
    }
}

/// Hive's `hmac_signature`.
pub(crate) fn hmac(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let enabled = at(node, "enabled").and_then(scalar);
    if enabled == Some("false") {
        return walk.not_needed(path, OFF);
    }
    let whole = enabled == Some("true") && has(node, (&["enabled", "secret"], &["extension_name"]));
    if !whole {
        return walk.unsupported(
            path,
            "whether a request is signed depends on nothing here: `authentication.subgraph`",
        );
    }
    let mut hmac = map();
    for key in ["secret", "extension_name"] {
        let copied = at(node, key).map(|value| same(walk.format, value));
        match copied {
            Some(Ok(value)) => set(&mut hmac, key, value),
            Some(Err(why)) => return walk.unsupported(path, &why),
            None => {}
        }
    }
    walk.put(path, "authentication.subgraph.all.hmac", hmac, "");
}

/// A mapping whose form was looked at, with what is in it.
fn copy(walk: &Walk<'_>, node: &Node) -> Result<Node, String> {
    let Value::Map(entries) = &node.value else {
        return same(walk.format, node);
    };
    let mut copied = map();
    for (key, value) in entries {
        set_key(&mut copied, &key.text, copy(walk, value)?);
    }
    Ok(copied)
}

fn has_role(node: &Node) -> bool {
    at(node, "assume_role").is_none_or(|role| has(role, ROLE))
}

/// Whether a mapping has all of the first keys with a value, and no others than these and the second.
fn has(node: &Node, (wanted, known): Keys) -> bool {
    let Value::Map(entries) = &node.value else {
        return false;
    };
    let is_known = |key: &str| wanted.contains(&key) || known.contains(&key);
    let there = |key: &&str| {
        let value = at(node, key);
        value.is_some_and(|value| {
            scalar(value).is_some_and(|text| !text.is_empty())
                || matches!(value.value, Value::Map(_))
        })
    };
    entries.iter().all(|(key, _)| is_known(&key.text)) && wanted.iter().all(there)
}
