//! Apollo's key sets and required callers: brought over whole, or not at all, since half of it would let somebody in whom the
//! whole keeps out.

use super::{
    convert::{duration, same},
    nodes::{at, list, map, scalar, set},
    rules::Walk,
    why::{CLAIMS, OFF},
};
use crate::{
    scalars::is_loopback,
    tree::{Node, Value},
    words_of_tokens,
};

/// Keys of `authentication.router.jwt` that mean the same here.
const JWT: &[&str] = &[
    "header_name",
    "header_value_prefix",
    "ignore_other_prefixes",
    "on_error",
    "sources",
    "jwks",
];
/// And those of a key set.
const SET: &[&str] = &[
    "url",
    "issuer",
    "issuers",
    "audiences",
    "algorithms",
    "poll_interval",
    "headers",
    "allow_missing_exp",
];

/// `authentication.router.jwt`
pub(super) fn apollo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match converted(walk, node) {
        Ok(jwt) => walk.put(
            path,
            "authentication.router.jwt",
            jwt,
            "an issuer chooses its key sets, and no others are tried; tokens that name no end are refused",
        ),
        Err(why) => walk.unsupported(path, &why),
    }
}

/// `authorization.require_authentication`
pub(super) fn required(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if scalar(node) == Some("false") {
        return walk.not_needed(path, OFF);
    }
    let jwt = at(walk.root, "authentication.router.jwt");
    let known = jwt.is_some_and(|jwt| converted(walk, jwt).is_ok());
    match same(walk.format, node) {
        Ok(value) if known => walk.put(path, "authorization.require_authentication", value, ""),
        _ => walk.unsupported(path, CLAIMS),
    }
}

fn converted(walk: &Walk<'_>, node: &Node) -> Result<Node, String> {
    let mut jwt = map();
    for (key, value) in entries(node, JWT)? {
        let value = match key {
            "jwks" => {
                let Value::List(sets) = &value.value else {
                    return Err("`jwks` is no list".to_owned());
                };
                let sets: Result<Vec<Node>, String> =
                    sets.iter().map(|set| key_set(walk, set)).collect();
                list(sets?)
            }
            "sources" => copies(walk, value, &["type", "name", "value_prefix"])?,
            _ => same(walk.format, value)?,
        };
        set(&mut jwt, key, value);
    }
    match at(&jwt, "jwks").map(|sets| &sets.value) {
        Some(Value::List(sets)) if !sets.is_empty() => Ok(jwt),
        _ => Err("it has no key set".to_owned()),
    }
}

fn key_set(walk: &Walk<'_>, node: &Node) -> Result<Node, String> {
    let mut out = map();
    for (key, value) in entries(node, SET)? {
        match key {
            "url" => {
                let url = scalar(value).unwrap_or_default();
                let good =
                    url.starts_with("https://") || url.starts_with("file://") || is_loopback(url);
                if !good {
                    return Err("a key set is behind no `https://` URL".to_owned());
                }
                set(&mut out, "url", same(walk.format, value)?);
            }
            "issuer" => set(&mut out, "issuers", list(vec![same(walk.format, value)?])),
            "poll_interval" => set(&mut out, key, duration(walk.format, value)?),
            "headers" => set(&mut out, key, copies(walk, value, &["name", "value"])?),
            "algorithms" => {
                let Value::List(names) = &value.value else {
                    return Err("`algorithms` is no list".to_owned());
                };
                let known = words_of_tokens();
                if !names
                    .iter()
                    .all(|name| scalar(name).is_some_and(|name| known.contains(&name)))
                {
                    return Err(format!("of algorithms there are {}", known.join(", ")));
                }
                set(&mut out, key, same(walk.format, value)?);
            }
            _ => set(&mut out, key, same(walk.format, value)?),
        }
    }
    match at(&out, "url") {
        Some(_) => Ok(out),
        None => Err("a key set has no `url`".to_owned()),
    }
}

/// A list of mappings that have no other keys than these.
fn copies(walk: &Walk<'_>, node: &Node, known: &[&str]) -> Result<Node, String> {
    let Value::List(items) = &node.value else {
        return Err("its value is no list".to_owned());
    };
    let copied = items.iter().map(|item| {
        let mut copied = map();
        for (key, value) in entries(item, known)? {
            set(&mut copied, key, same(walk.format, value)?);
        }
        Ok(copied)
    });
    copied.collect::<Result<Vec<Node>, String>>().map(list)
}

/// The entries that have a value, of a mapping that has no other keys than these.
fn entries<'n>(node: &'n Node, known: &[&str]) -> Result<Vec<(&'n str, &'n Node)>, String> {
    let Value::Map(entries) = &node.value else {
        return Err("its value is no mapping".to_owned());
    };
    let foreign = entries
        .iter()
        .find(|(key, _)| !known.contains(&key.text.as_str()));
    match foreign {
        Some((key, _)) => Err(format!(
            "`{}` has no counterpart here: see `authentication.router`",
            key.text
        )),
        None => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            Ok(entries
                .map(|(key, value)| (key.text.as_str(), value))
                .collect())
        }
    }
}
