//! Key sets and required authentication: brought over whole or not at all, because a part could admit callers whom the
//! whole rejects. One of several key sets may be left out: its tokens are rejected. If all are lost and authentication was
//! required, the result rejects every request.

use ogive_config::{is_loopback, words_of_tokens};
use ogive_yaml::{Node, Value};

use super::{
    Format, Verdict,
    convert::{duration, same},
    environment::refers,
    nodes::{at, list, map, plain, scalar, set, set_key, text},
    rules::Walk,
    why::{CLAIMS, OFF},
};

/// Keys of `authentication.router.jwt` that are brought over unchanged.
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

/// What becomes of tokens.
pub(crate) struct Tokens {
    /// `authentication.router.jwt` of ours.
    jwt: Node,
    /// Key sets that cannot be brought over, by their index, with the reason. Tokens of such a key set are rejected.
    left_out: Vec<(usize, String)>,
}

/// `authentication.router.jwt`
pub(crate) fn apollo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match converted(walk, node) {
        Ok(tokens) => put(walk, path, node, tokens),
        Err(why) => walk.unsupported(path, &why),
    }
}

/// `authorization.require_authentication` of Apollo and of Cosmo.
pub(crate) fn required(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if scalar(node) == Some("false") {
        return walk.not_needed(path, OFF);
    }
    let known = match walk.format {
        Format::Cosmo => cosmo_knows(walk),
        _ => at(walk.root, "authentication.router.jwt")
            .is_some_and(|jwt| converted(walk, jwt).is_ok()),
    };
    match same(walk.format, node) {
        Ok(value) if known => walk.put(path, REQUIRED, value, ""),
        _ => {
            walk.unsupported(path, CLAIMS);
            close(walk, known);
        }
    }
}

/// Whether Cosmo's key sets are brought over.
pub(crate) fn cosmo_knows(walk: &Walk<'_>) -> bool {
    at(walk.root, "authentication.jwt").is_some_and(|jwt| of_cosmo(walk, jwt).is_ok())
}

pub(crate) const REQUIRED: &str = "authorization.require_authentication";

/// Requires authentication where it may have been required but cannot be brought over. If no other key authenticates
/// callers (`are_known`), every request is rejected: `authorization.claims.header` is set, and no proxy is trusted.
pub(crate) fn close(walk: &mut Walk<'_>, are_known: bool) {
    let why = "what required authentication still requires it";
    walk.implied(REQUIRED, "true", why);
    if !are_known {
        let why = "authentication was not brought over, so every request is rejected until you configure it: `trusted` names no proxy";
        walk.implied("authorization.claims.header", "x-caller-claims", why);
    }
}

/// Enforces the directives of the supergraph where it is said how callers are known, as the other gateway does. Without
/// that, `ogive serve` asks for a decision if the supergraph has any.
pub(crate) fn enforce(walk: &mut Walk<'_>, why: &str) {
    const KNOWN: [&str; 4] = [
        "authentication.router.jwt",
        "authorization.claims.header",
        "authorization.dry_run",
        "authorization.reject_unauthorized",
    ];
    if KNOWN.iter().any(|target| walk.has(target)) {
        walk.implied("authorization.directives", "enforce", why);
    }
}

pub(crate) fn put(walk: &mut Walk<'_>, path: &[String], node: &Node, tokens: Tokens) {
    walk.put(path, "authentication.router.jwt", tokens.jwt, STRICTER);
    if walk.format == Format::Grafbase {
        walk.note("tokens have no time after their end but `clock_skew`");
    }
    let list = match walk.format {
        Format::Hive => "jwks_providers",
        _ => "jwks",
    };
    for (index, why) in tokens.left_out {
        let from = [path, &[list.to_owned(), index.to_string()]].concat();
        let why = format!("{why}; tokens of this key set are refused now");
        walk.row(&from, None, Verdict::Unsupported, &why);
    }
    if has_unknown_algorithm(node) {
        let known = words_of_tokens().join(", ");
        let why = format!("of algorithms there are {known}; tokens with any other are refused now");
        walk.row(path, None, Verdict::Unsupported, &why);
    }
}

fn has_unknown_algorithm(node: &Node) -> bool {
    match &node.value {
        Value::Map(entries) => entries.iter().any(|(key, value)| match &value.value {
            Value::List(names) if ["algorithms", "allowed_algorithms"].contains(&&*key.text) => {
                !names.iter().all(is_algorithm)
            }
            _ => has_unknown_algorithm(value),
        }),
        Value::List(items) => items.iter().any(has_unknown_algorithm),
        _ => false,
    }
}

fn is_algorithm(name: &Node) -> bool {
    scalar(name).is_some_and(|name| words_of_tokens().contains(&name))
}

/// Hive's `jwt`
pub(crate) fn hive(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if at(node, "enabled").and_then(scalar) == Some("false") {
        return walk.not_needed(path, OFF);
    }
    let required = at(node, "require_authentication").filter(|node| !node.is_null());
    let tokens = match of_hive(walk, node) {
        Ok(tokens) => tokens,
        Err(why) => {
            walk.unsupported(path, &why);
            if required.is_some_and(|required| scalar(required) != Some("false")) {
                close(walk, false);
            }
            return;
        }
    };
    put(walk, path, node, tokens);
    if let Some(Value::List(providers)) = at(node, "jwks_providers").map(|list| &list.value) {
        for (index, _) in providers
            .iter()
            .enumerate()
            .filter(|(_, one)| at(one, "prefetch").is_some())
        {
            let from = ["jwks_providers", &index.to_string(), "prefetch"].map(str::to_owned);
            walk.not_needed(
                &[path, &from[..]].concat(),
                "key sets are fetched before the first request",
            );
        }
    }
    let forwarded = at(node, FORWARD).filter(|node| !node.is_null());
    if forwarded.is_some_and(|node| at(node, "enabled").and_then(scalar) != Some("false")) {
        let why = "claims go to subgraphs one by one here: in extensions, `traffic_shaping.all.request_extensions: { NAME: { jwt_claim: NAME } }`, or in headers, `insert` with `name` and `from: { jwt_claim: NAME }` in `headers.all.request`";
        walk.unsupported(&[path, &[FORWARD.to_owned()]].concat(), why);
    }
    match required.map(|required| same(walk.format, required)) {
        None => {}
        Some(Ok(required)) => walk.put(path, REQUIRED, required, ""),
        Some(Err(why)) => {
            walk.unsupported(path, &why);
            close(walk, true);
        }
    }
}

/// Hive's switch for claims in the extensions of requests to subgraphs.
const FORWARD: &str = "forward_claims_to_upstream_extensions";

/// Issuers, audiences and algorithms are those of every key set.
fn of_hive(walk: &Walk<'_>, node: &Node) -> Result<Tokens, String> {
    const KNOWN: &[&str] = &[
        "enabled",
        "require_authentication",
        "jwks_providers",
        "lookup_locations",
        "issuers",
        "audiences",
        "allowed_algorithms",
        FORWARD,
    ];
    let (mut jwt, mut common) = (map(), map());
    for (key, value) in entries(node, KNOWN)? {
        match key {
            "issuers" | "audiences" => set(&mut common, key, same(walk.format, value)?),
            "allowed_algorithms" => set(&mut common, "algorithms", algorithms(walk, value)?),
            "lookup_locations" => locations(walk, value, &mut jwt)?,
            _ => {}
        }
    }
    let Some(Value::List(providers)) = at(node, "jwks_providers").map(|list| &list.value) else {
        return Err("it has no key set".to_owned());
    };
    let sets = providers.iter().map(|provider| {
        const KNOWN: &[&str] = &[
            "source",
            "url",
            "path",
            "file",
            "polling_interval",
            "cache_duration",
            "prefetch",
        ];
        let mut found = map();
        for (key, value) in entries(provider, KNOWN)? {
            match key {
                "url" => set(&mut found, "url", value.clone()),
                "path" | "file" => {
                    let path = scalar(value).unwrap_or_default();
                    set(&mut found, "url", text(format!("file://{path}")));
                }
                "polling_interval" | "cache_duration" => {
                    set(&mut found, "poll_interval", value.clone());
                }
                _ => {}
            }
        }
        let mut set_of = key_set(walk, &found)?;
        if let Value::Map(entries) = &common.value {
            for (key, value) in entries {
                set_key(&mut set_of, &key.text, value.clone());
            }
        }
        Ok(set_of)
    });
    with_sets(jwt, sets)
}

/// Where a token is, in order: the first of them must be a header, as it is here.
fn locations(walk: &Walk<'_>, node: &Node, jwt: &mut Node) -> Result<(), String> {
    let Value::List(places) = &node.value else {
        return Err("`lookup_locations` is not a list".to_owned());
    };
    let mut sources = Vec::new();
    for (at_first, place) in places.iter().enumerate().map(|(i, place)| (i == 0, place)) {
        entries(place, &["source", "name", "prefix"])?;
        let name = at(place, "name").ok_or("a place of tokens has no name")?;
        let (name, prefix) = (
            same(walk.format, name)?,
            at(place, "prefix").and_then(scalar),
        );
        let prefix = text(prefix.unwrap_or_default().trim());
        match at(place, "source").and_then(scalar) {
            Some("header") if at_first => {
                set(jwt, "header_name", name);
                set(jwt, "header_value_prefix", prefix);
            }
            Some(kind @ ("header" | "cookies" | "cookie")) if !at_first => {
                let mut source = map();
                let is_header = kind == "header";
                set(
                    &mut source,
                    "type",
                    plain(if is_header { "header" } else { "cookie" }),
                );
                set(&mut source, "name", name);
                if is_header {
                    set(&mut source, "value_prefix", prefix);
                } else if scalar(&prefix).is_some_and(|prefix| !prefix.is_empty()) {
                    return Err("a token in a cookie has no prefix here".to_owned());
                }
                sources.push(source);
            }
            _ => return Err("a token is looked for in a header first".to_owned()),
        }
    }
    if !sources.is_empty() {
        set(jwt, "sources", list(sources));
    }
    Ok(())
}

/// Cosmo's `authentication.jwt`
pub(crate) fn cosmo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match of_cosmo(walk, node) {
        Ok(tokens) => put(walk, path, node, tokens),
        Err(why) => return walk.unsupported(path, &why),
    }
    let Some(Value::List(sets)) = at(node, "jwks").map(|sets| &sets.value) else {
        return;
    };
    let implied = [
        (
            REFRESH,
            "a key set is fetched at once for a key that it does not have, at most twice in `refetch_interval`",
        ),
        (USE, "keys of any other use are left out"),
    ];
    for (index, set) in sets.iter().enumerate() {
        for (key, why) in implied.iter().filter(|(key, _)| at(set, key).is_some()) {
            let from = ["jwks", &index.to_string(), key].map(str::to_owned);
            walk.not_needed(&[path, &from[..]].concat(), why);
        }
    }
}

/// The uses of keys that are taken, of which only `sig` is taken here.
const USE: &str = "allowed_use";

/// Whether keys that are not in a set have it fetched, which they always do here.
const REFRESH: &str = "refresh_unknown_kid";

fn of_cosmo(walk: &Walk<'_>, node: &Node) -> Result<Tokens, String> {
    let (mut jwt, mut sets) = (map(), Vec::new());
    let known = [
        "jwks",
        "header_name",
        "header_value_prefix",
        "header_sources",
        "scope_claim",
    ];
    for (key, value) in entries(node, &known)? {
        match (key, &value.value) {
            ("jwks", Value::List(items)) => {
                sets.extend(items.iter().map(|item| set_of_cosmo(walk, item)));
            }
            ("header_sources", Value::List(items)) => {
                let sources = items.iter().map(|item| source_of_cosmo(walk, item));
                set(
                    &mut jwt,
                    "sources",
                    list(sources.collect::<Result<_, String>>()?),
                );
            }
            ("jwks" | "header_sources", _) => return Err(format!("`{key}` is not a list")),
            ("scope_claim", _) => {
                let claims = list(vec![same(walk.format, value)?]);
                set(&mut jwt, "scopes_claim", claims);
            }
            _ => set(&mut jwt, key, same(walk.format, value)?),
        }
    }
    with_sets(jwt, sets)
}

fn set_of_cosmo(walk: &Walk<'_>, item: &Node) -> Result<Node, String> {
    if at(item, "secret").is_some() {
        let why = "a secret is a key set of its own here: a file with a key of the type `oct`, named by `url: file:///PATH`";
        return Err(why.to_owned());
    }
    let mut found = map();
    for (key, value) in entries(
        item,
        &[
            "url",
            "algorithms",
            "refresh_interval",
            "audiences",
            REFRESH,
            USE,
        ],
    )? {
        let key = match key {
            REFRESH => continue,
            USE if only_signatures(value) => continue,
            USE => return Err("keys are for signatures (`sig`) here".to_owned()),
            "refresh_interval" => "poll_interval",
            key => key,
        };
        set(&mut found, key, value.clone());
    }
    key_set(walk, &found)
}

fn only_signatures(node: &Node) -> bool {
    matches!(&node.value, Value::List(uses) if uses.iter().all(|word| scalar(word) == Some("sig")))
}

fn source_of_cosmo(walk: &Walk<'_>, item: &Node) -> Result<Node, String> {
    entries(item, &["type", "name", "value_prefixes"])?;
    if at(item, "type").and_then(scalar) != Some("header") {
        return Err("a source of tokens is no header".to_owned());
    }
    let prefixes = match at(item, "value_prefixes").map(|list| &list.value) {
        None => &[][..],
        Some(Value::List(prefixes)) => prefixes,
        Some(_) => return Err("`value_prefixes` is not a list".to_owned()),
    };
    let prefix = match prefixes {
        [] => "",
        [one] => scalar(one).unwrap_or_default(),
        _ => return Err("a header has one prefix here".to_owned()),
    };
    let mut source = map();
    set(&mut source, "type", plain("header"));
    let name = at(item, "name").ok_or("a source of tokens has no name")?;
    set(&mut source, "name", same(walk.format, name)?);
    set(&mut source, "value_prefix", text(prefix.trim()));
    Ok(source)
}

const STRICTER: &str =
    "an issuer chooses its key sets, and no others are tried; tokens that name no end are refused";

/// Tokens of the key sets that can be brought over, which must be one at least.
pub(crate) fn with_sets(
    mut jwt: Node,
    sets: impl IntoIterator<Item = Result<Node, String>>,
) -> Result<Tokens, String> {
    let (mut good, mut left_out) = (Vec::new(), Vec::new());
    for (index, found) in sets.into_iter().enumerate() {
        match found {
            Ok(found) => good.push(found),
            Err(why) => left_out.push((index, why)),
        }
    }
    if good.is_empty() {
        let first = left_out.into_iter().next();
        return Err(first.map_or("it has no key set".to_owned(), |(_, why)| why));
    }
    set(&mut jwt, "jwks", list(good));
    Ok(Tokens { jwt, left_out })
}

fn algorithms(walk: &Walk<'_>, value: &Node) -> Result<Node, String> {
    let Value::List(names) = &value.value else {
        return Err("`algorithms` is not a list".to_owned());
    };
    let known: Vec<Node> = names
        .iter()
        .filter(|name| is_algorithm(name))
        .cloned()
        .collect();
    if known.len() == names.len() {
        return same(walk.format, value);
    }
    // Leaving one out refuses more tokens; leaving all out would be no list of them.
    if known.is_empty() {
        return Err(format!(
            "of algorithms there are {}",
            words_of_tokens().join(", ")
        ));
    }
    Ok(list(known))
}

fn converted(walk: &Walk<'_>, node: &Node) -> Result<Tokens, String> {
    let (mut jwt, mut sets) = (map(), Vec::new());
    for (key, value) in entries(node, JWT)? {
        let value = match key {
            "jwks" => {
                let Value::List(found) = &value.value else {
                    return Err("`jwks` is not a list".to_owned());
                };
                sets.extend(found.iter().map(|set| key_set(walk, set)));
                continue;
            }
            "sources" => copies(walk, value, &["type", "name", "value_prefix"])?,
            _ => same(walk.format, value)?,
        };
        set(&mut jwt, key, value);
    }
    with_sets(jwt, sets)
}

pub(crate) fn key_set(walk: &Walk<'_>, node: &Node) -> Result<Node, String> {
    let mut out = map();
    for (key, value) in entries(node, SET)? {
        match key {
            "url" => {
                let url = same(walk.format, value)?;
                let text = scalar(&url).unwrap_or_default();
                // What comes from the environment is checked where it is known: when the result is loaded.
                let good = text.starts_with("https://")
                    || text.starts_with("file://")
                    || is_loopback(text)
                    || refers(text);
                if !good {
                    return Err("a key set is behind no `https://` URL".to_owned());
                }
                set(&mut out, "url", url);
            }
            "issuer" => set(&mut out, "issuers", list(vec![same(walk.format, value)?])),
            "poll_interval" => set(&mut out, key, duration(walk.format, value)?),
            "headers" => set(&mut out, key, copies(walk, value, &["name", "value"])?),
            "algorithms" => set(&mut out, key, algorithms(walk, value)?),
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
        return Err("its value is not a list".to_owned());
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
pub(crate) fn entries<'n>(
    node: &'n Node,
    known: &[&str],
) -> Result<Vec<(&'n str, &'n Node)>, String> {
    let Value::Map(entries) = &node.value else {
        return Err("its value is not a mapping".to_owned());
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
