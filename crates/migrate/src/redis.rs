//! What several processes of other gateways keep in Redis together: rates and registered documents. Here there is one
//! `store.redis` for both.

use ogive_yaml::{Node, Value};

use super::{
    convert::{duration, same, texts},
    nodes::{at, list, plain, scalar, text},
    rules::Walk,
};

const STORE: &str = "store.redis";
const APQ: &str = "apq.router.cache";

/// Cosmo's `rate_limit.storage`; whether it was brought over.
pub(crate) fn cosmo(walk: &mut Walk<'_>, path: &[String], node: &Node) -> bool {
    let named = at(node, "urls").is_some();
    if !named {
        walk.unsupported(path, "it names no `urls`: set `store.redis` by hand");
    }
    named && store(walk, path, node)
}

/// Cosmo's `automatic_persisted_queries.storage`, which names one of `storage_providers`.
pub(crate) fn cosmo_documents(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &["provider_id", "object_prefix"]);
    let id = at(node, "provider_id").and_then(scalar);
    let all = at(walk.root, "storage_providers.redis").map(|all| &all.value);
    let found = match all {
        Some(Value::List(items)) => items
            .iter()
            .position(|item| at(item, "id").and_then(scalar) == id)
            .map(|index| (index, &items[index])),
        _ => None,
    };
    let Some((index, provider)) = found else {
        return walk.unsupported(
            path,
            "documents that clients register are kept in memory, or in `store.redis`",
        );
    };
    let place = ["storage_providers", "redis"].map(str::to_owned);
    let from = [&place[..], &[index.to_string()]].concat();
    if store(walk, &from, provider) {
        walk.put(path, &format!("{APQ}.storage"), plain("redis"), "");
    } else {
        walk.unsupported(
            path,
            "documents that clients register are kept in memory, or in `store.redis`",
        );
    }
    if at(node, "object_prefix").is_some() {
        let from = [path, &["object_prefix".to_owned()]].concat();
        walk.not_needed(&from, "`store.redis.namespace` is before every key");
    }
}

/// Apollo's `apq.router.cache.redis`.
pub(crate) fn apollo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if store(walk, path, node) {
        let note = "documents are registered again once";
        walk.put(path, &format!("{APQ}.storage"), plain("redis"), note);
    }
}

/// Grafbase's `gateway.rate_limit.redis`.
pub(crate) fn grafbase(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if walk.text("gateway.rate_limit.storage") != Some("redis") {
        return walk.not_needed(path, "rates are counted in memory");
    }
    store(walk, path, node);
}

/// Brings the address of Redis over. There is one Redis: a key that names a different one is unsupported.
fn store(walk: &mut Walk<'_>, path: &[String], node: &Node) -> bool {
    let Value::Map(entries) = &node.value else {
        walk.unsupported(path, "it is not a mapping");
        return false;
    };
    let urls = at(node, "urls").or_else(|| at(node, "url"));
    let urls = match urls.map(|urls| texts(walk.format, urls)) {
        Some(Ok(urls)) => urls,
        _ => {
            walk.unsupported(path, "it does not say where Redis is");
            return false;
        }
    };
    let (urls, mode) = servers(&urls, at(node, "cluster_enabled").and_then(scalar));
    if walk.has(STORE) && !walk.says(&format!("{STORE}.urls"), &urls) {
        walk.unsupported(
            path,
            "there is one Redis here, `store.redis`, and another key names a different one",
        );
        return false;
    }
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        let value_of = |name: &str| (format!("{STORE}.{name}"), same(walk.format, value));
        let (target, value) = match &*key.text {
            "urls" | "url" => (format!("{STORE}.urls"), Ok(urls.clone())),
            "username" | "password" => value_of(&key.text),
            "namespace" | "key_prefix" => value_of("namespace"),
            "timeout" | "response_timeout" => {
                (format!("{STORE}.timeout"), duration(walk.format, value))
            }
            "ttl" => (format!("{APQ}.ttl"), duration(walk.format, value)),
            "tls" => {
                tls(walk, &from, value);
                continue;
            }
            "id" | "cluster_enabled" => {
                walk.not_needed(&from, "`store.redis.mode` says what is there");
                continue;
            }
            "pool_size" | "reset_ttl" | "connection_timeout" | "pool" | "metrics_interval" => {
                walk.not_needed(&from, "connections need no tuning");
                continue;
            }
            "required_to_start" => {
                walk.not_needed(&from, "while Redis is away each process goes on by itself");
                continue;
            }
            _ => {
                walk.unsupported(&from, "there is no such setting here: see `store.redis`");
                continue;
            }
        };
        walk.try_put(&from, &target, value);
    }
    if let Some(mode) = mode {
        walk.implied(
            &format!("{STORE}.mode"),
            mode,
            "a cluster of several servers",
        );
    }
    true
}

/// URLs in our form, and whether they are a cluster's.
fn servers(urls: &Node, cluster: Option<&str>) -> (Node, Option<&'static str>) {
    let Value::List(items) = &urls.value else {
        return (urls.clone(), None);
    };
    let is_cluster = |url: &str| url.contains("-cluster://");
    let named = items.iter().filter_map(scalar).any(is_cluster);
    let plain_urls = items.iter().filter_map(scalar);
    let plain_urls = plain_urls.map(|url| text(url.replace("-cluster://", "://")));
    let mode = (named || cluster == Some("true")).then_some("cluster");
    (list(plain_urls.collect()), mode)
}

fn tls(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const KNOWN: [(&str, &str); 5] = [
        ("certificate_authorities", "certificate_authorities"),
        (
            "client_authentication.certificate_chain",
            "client_authentication.certificate_chain",
        ),
        ("client_authentication.key", "client_authentication.key"),
        ("ca", "certificate_authorities"),
        ("cert", "client_authentication.certificate_chain"),
    ];
    let mut open = vec![(String::new(), node)];
    while let Some((at, node)) = open.pop() {
        if let Value::Map(entries) = &node.value {
            let below = |key: &str| match &*at {
                "" => key.to_owned(),
                at => format!("{at}.{key}"),
            };
            open.extend(entries.iter().map(|(key, node)| (below(&key.text), node)));
            continue;
        }
        let from = [path, &at.split('.').map(str::to_owned).collect::<Vec<_>>()].concat();
        match KNOWN.iter().find(|(known, _)| *known == at) {
            Some((_, target)) => {
                let value = same(walk.format, node);
                walk.try_put(&from, &format!("{STORE}.tls.{target}"), value);
            }
            None => walk.unsupported(
                &from,
                "there is no such setting here: see `store.redis.tls`",
            ),
        }
    }
}
