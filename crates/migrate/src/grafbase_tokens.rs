//! Callers of Grafbase Gateway: its extension `jwt`, its providers, and whether anybody may come without a token.

use ogive_yaml::{Node, Value};

use super::{
    convert::{same, seconds},
    nodes::{at, list, map, plain, scalar, set, text},
    rules::Walk,
    tokens::{REQUIRED, Tokens, close, entries, key_set, put, with_sets},
    why::CLAIMS,
};

/// Grafbase's extension `jwt`. By default it rejects requests without a token.
pub(crate) fn extension(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match of_grafbase(walk, node) {
        Ok(tokens) => {
            put(walk, path, node, tokens);
            let providers = at(walk.root, "authentication.providers").map(|all| &all.value);
            let is_open = matches!(providers, Some(Value::List(all))
                if all.iter().any(|one| kind_of(one) == Some("anonymous")));
            if at(walk.root, "authentication.default").is_none() && !is_open {
                let why = "without `authentication.default`, Grafbase Gateway rejects requests without a token";
                walk.implied(REQUIRED, "true", why);
            }
        }
        Err(why) => {
            walk.unsupported(path, &why);
            if walk.text("authentication.default") != Some("anonymous") {
                close(walk, false);
            }
        }
    }
}

/// `authentication.default` of Grafbase.
pub(crate) fn default(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let known = knows(walk);
    match scalar(node) {
        Some("anonymous") => walk.not_needed(path, "authentication is optional by default"),
        Some("deny") if known => {
            walk.put(path, REQUIRED, plain("true"), "");
        }
        _ => {
            walk.unsupported(path, CLAIMS);
            close(walk, known);
        }
    }
}

/// Whether Grafbase's key sets are brought over: those of its extension, or of its providers.
fn knows(walk: &Walk<'_>) -> bool {
    let extension = at(walk.root, "extensions.jwt");
    let providers = at(walk.root, "authentication.providers");
    extension.is_some_and(|jwt| of_grafbase(walk, jwt).is_ok())
        || providers.is_some_and(|node| of_providers(walk, node).is_ok())
}

/// `authentication.providers` of Grafbase. One of them must authenticate the caller; the anonymous one accepts every caller.
pub(crate) fn providers(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(providers) = &node.value else {
        walk.unsupported(path, CLAIMS);
        return close(walk, false);
    };
    let mut is_open = walk.text("authentication.default") == Some("anonymous");
    let extension = at(walk.root, "extensions.jwt");
    let extension = extension.is_some_and(|jwt| of_grafbase(walk, jwt).is_ok());
    let own = of_providers(walk, node);
    for (index, provider) in providers.iter().enumerate() {
        let from = [path, &[index.to_string()]].concat();
        let named = at(provider, "extension.extension").or_else(|| at(provider, "extension"));
        match (kind_of(provider), &own) {
            (Some("anonymous"), _) => {
                is_open = true;
                walk.not_needed(&from, "authentication is optional by default");
            }
            (Some("extension"), _) if extension && named.and_then(scalar) == Some("jwt") => {
                walk.not_needed(&from, "it is brought over from `extensions.jwt`");
            }
            (Some("jwt"), Err(why)) => walk.unsupported(&from, why),
            (Some("jwt"), Ok(_)) if extension => {
                walk.unsupported(
                    &from,
                    "the key sets of `extensions.jwt` are brought over, and no others beside them",
                );
            }
            (Some("jwt"), Ok(_)) => {}
            _ => walk.unsupported(&from, CLAIMS),
        }
    }
    if let (Ok(tokens), false) = (own, extension) {
        put(walk, path, node, tokens);
    }
    match (is_open, knows(walk)) {
        (true, _) => {}
        (false, true) => {
            let why = "a provider has to know the caller, and none is `anonymous`";
            walk.implied(REQUIRED, "true", why);
        }
        (false, false) => close(walk, false),
    }
}

/// What a provider is: its only key, or its `type`.
fn kind_of(provider: &Node) -> Option<&str> {
    match &provider.value {
        Value::Map(entries) => match entries.as_slice() {
            [(key, _)] => Some(&key.text),
            _ => at(provider, "type")
                .and_then(scalar)
                .filter(|kind| *kind == "anonymous"),
        },
        _ => None,
    }
}

/// The key sets of Grafbase's providers, which have one header together here.
fn of_providers(walk: &Walk<'_>, node: &Node) -> Result<Tokens, String> {
    let Value::List(providers) = &node.value else {
        return Err("it is not a list".to_owned());
    };
    let (mut jwt, mut sets) = (map(), Vec::new());
    let own = providers.iter().filter(|one| kind_of(one) == Some("jwt"));
    for (index, provider) in own.filter_map(|one| at(one, "jwt")).enumerate() {
        let mut header = map();
        for (key, value) in entries(provider, &["name", "jwks", "header"])? {
            if key == "jwks" {
                sets.push(set_of_grafbase(walk, value));
            }
        }
        if let Some(found) = at(provider, "header") {
            for (key, value) in entries(found, &["name", "value_prefix"])? {
                match key {
                    "name" => set(&mut header, "header_name", same(walk.format, value)?),
                    _ => {
                        let prefix = scalar(value).unwrap_or_default().trim();
                        set(&mut header, "header_value_prefix", text(prefix));
                    }
                }
            }
        }
        if index > 0 && super::write::yaml(&jwt) != super::write::yaml(&header) {
            return Err("tokens of several providers come in one header here".to_owned());
        }
        jwt = header;
    }
    with_sets(jwt, sets)
}

fn set_of_grafbase(walk: &Walk<'_>, node: &Node) -> Result<Node, String> {
    let mut found = map();
    for (key, value) in entries(node, &["url", "issuer", "audience", "poll_interval"])? {
        match (key, &value.value) {
            ("audience", Value::List(_)) => set(&mut found, "audiences", value.clone()),
            ("audience", _) => set(&mut found, "audiences", list(vec![value.clone()])),
            ("poll_interval", _) => set(&mut found, key, seconds(walk.format, value)?),
            _ => set(&mut found, key, value.clone()),
        }
    }
    key_set(walk, &found)
}

fn of_grafbase(walk: &Walk<'_>, node: &Node) -> Result<Tokens, String> {
    entries(node, &["version", "config"])?;
    let config = at(node, "config").ok_or("it has no key set")?;
    const KNOWN: &[&str] = &[
        "url",
        "issuer",
        "audience",
        "poll_interval",
        "header_name",
        "header_value_prefix",
    ];
    let (mut jwt, mut found) = (map(), map());
    for (key, value) in entries(config, KNOWN)? {
        match (key, &value.value) {
            ("header_name", _) => set(&mut jwt, key, same(walk.format, value)?),
            ("header_value_prefix", _) => {
                set(
                    &mut jwt,
                    key,
                    text(scalar(value).unwrap_or_default().trim()),
                );
            }
            ("audience", Value::List(_)) => set(&mut found, "audiences", value.clone()),
            ("audience", _) => set(&mut found, "audiences", list(vec![value.clone()])),
            ("poll_interval", _) => set(&mut found, key, seconds(walk.format, value)?),
            _ => set(&mut found, key, value.clone()),
        }
    }
    with_sets(jwt, [key_set(walk, &found)])
}
