//! Hive's `error_masking`.

use ogive_yaml::{Node, Value};

use super::{
    convert::same,
    nodes::{at, list, plain, quoted, scalar},
    rules::Walk,
};

/// Messages are masked there and extensions chosen apart from that; here a subgraph's errors are shown, and then some of
/// their extensions, or nothing is.
pub(crate) fn masking(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const SHOWN: &str = "include_subgraph_errors";
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    let all_extensions = |walk: &mut Walk<'_>| {
        let why = "Hive Router shows all extensions of errors by default";
        walk.implied_list(&format!("{SHOWN}.extensions"), &["*"], why);
    };
    let below = |key: &str| [path, &[key.to_owned()]].concat();
    if at(node, "enabled").and_then(scalar) == Some("false") {
        walk.put(
            &below("enabled"),
            &format!("{SHOWN}.all"),
            plain("true"),
            "",
        );
        let others = entries.iter().filter(|(key, _)| key.text != "enabled");
        for (key, _) in others {
            walk.not_needed(&below(&key.text), "nothing is masked");
        }
        return all_extensions(walk);
    }
    let mut shows = false;
    let chosen = chooses(node);
    for (key, value) in entries {
        let from = below(&key.text);
        match (&*key.text, &value.value) {
            ("enabled", _) => walk.not_needed(&from, "errors are masked by default"),
            ("redacted_error_message", _) => {
                walk.unsupported(&from, "masked errors have one message");
            }
            ("all", _) => shows |= masks(walk, &from, value, &format!("{SHOWN}.all")),
            ("subgraphs", Value::Map(subgraphs)) => {
                for (name, value) in subgraphs {
                    let from = [&*from, std::slice::from_ref(&name.text)].concat();
                    let target = format!("{SHOWN}.subgraphs.{}", quoted(&name.text));
                    shows |= masks(walk, &from, value, &target);
                }
            }
            _ => walk.unknown(&from),
        }
    }
    if shows && !chosen {
        all_extensions(walk);
    }
}

/// Whether any subgraph's extensions are chosen, so that not all of all subgraphs may be shown.
fn chooses(node: &Node) -> bool {
    let has = |node: &Node| at(node, "extensions").is_some_and(|node| !node.is_null());
    let own = at(node, "subgraphs").map(|subgraphs| match &subgraphs.value {
        Value::Map(entries) => entries.iter().any(|(_, node)| has(node)),
        _ => false,
    });
    at(node, "all").is_some_and(has) || own == Some(true)
}

/// Whether it shows errors.
fn masks(walk: &mut Walk<'_>, path: &[String], node: &Node, target: &str) -> bool {
    let Value::Map(entries) = &node.value else {
        walk.unsupported(path, "it is not a mapping");
        return false;
    };
    let mut shows = false;
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        if key.text == "extensions" {
            walk.others(&from, value, &["mode", "keys"]);
        }
        let of_all = path.last().is_some_and(|last| last == "all");
        match (&*key.text, at(value, "mode").and_then(scalar)) {
            ("enabled", _) => {
                shows = scalar(value) == Some("false");
                walk.put(&from, target, plain(shows.to_string()), "");
            }
            ("extensions", Some("allow")) if of_all && path.len() == 2 => {
                let keys = at(value, "keys").map(|keys| same(walk.format, keys));
                let keys = match keys {
                    Some(Ok(Node {
                        value: Value::List(keys),
                        ..
                    })) => keys,
                    _ => Vec::new(),
                };
                let others = keys.into_iter().filter(|key| scalar(key) != Some("code"));
                let note = "of errors that are shown; of the others clients see none";
                let target = "include_subgraph_errors.extensions";
                walk.put(&from, target, list(others.collect()), note);
            }
            ("extensions", Some("allow")) => {
                walk.unsupported(&from, "one list of extensions holds for all subgraphs");
            }
            ("extensions", _) => {
                walk.unsupported(&from, "name the extensions that are shown instead");
            }
            _ => walk.unknown(&from),
        }
    }
    shows
}
