//! Header rules of the four gateways as steps of ours.

use ogive_base::SourceId;

use super::{
    Format,
    convert::{same, texts},
    environment::{environment, expression},
    nodes::{map, scalar, set, text},
    rules::Walk,
};
use crate::{
    HeaderRule,
    decode::{Decode, Errors},
    tree::{Node, Value},
};

/// Apollo's and Hive's lists of `propagate`, `insert` and `remove`, which are ours but for what ours has not.
pub(super) fn steps(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = path.join(".");
    for (index, item) in items(node).iter().enumerate() {
        let mut at = path.to_vec();
        at.push(index.to_string());
        let Value::Map(entries) = &item.value else {
            walk.lost(&at, "it is no header rule");
            continue;
        };
        for (kind, body) in entries {
            step(walk, &at, &target, &kind.text, body);
        }
    }
}

fn step(walk: &mut Walk<'_>, at: &[String], target: &str, kind: &str, body: &Node) {
    let mut at = at.to_vec();
    at.push(kind.to_owned());
    let known: &[&str] = match kind {
        "propagate" if target.ends_with("response") => {
            &["named", "matching", "rename", "default", "algorithm"]
        }
        "propagate" => &["named", "matching", "rename", "default"],
        "insert" if walk.format == Format::Hive => &["name", "value", "expression"],
        // What is known of the caller or the client, in Apollo's words.
        "insert" if target.ends_with("request") => {
            &["name", "value", "from_context", "path", "default"]
        }
        "insert" => &["name", "value"],
        "remove" => &["named", "matching"],
        _ => &[],
    };
    let entries = match &body.value {
        Value::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    let foreign = entries.iter().find(|(key, value)| {
        // Ours has one way only for an inserted value, and no exceptions.
        let fine = known.contains(&&*key.text) || (kind == "insert" && key.text == "algorithm");
        !(fine || value.is_null())
    });
    let out = |walk: &mut Walk<'_>, why: &str| match kind {
        // What does not travel lets nobody in; what is not removed or replaced may.
        "propagate" => walk.unsupported(&at, why),
        _ => walk.lost(&at, why),
    };
    if known.is_empty() || foreign.is_some() {
        let what = foreign.map_or(kind, |(key, _)| key.text.as_str());
        let why = format!("rules with `{what}` have no counterpart; the whole rule is left out");
        return out(walk, &why);
    }
    let get = |name: &str| entries.iter().find(|(k, _)| k.text == name).map(|(_, n)| n);
    if let Some(path) = get("expression").and_then(|node| claim(walk.format, scalar(node)?)) {
        let name = get("name").map(|node| same(walk.format, node));
        return match name {
            Some(Ok(name)) => walk.push(&at, target, from_claim(name, path), false),
            _ => out(walk, "it names no header"),
        };
    }
    // Hive takes several names at once.
    let names: Vec<Option<String>> = match get("named").map(|n| texts(walk.format, n)) {
        Some(Ok(names)) => items(&names)
            .iter()
            .map(|n| scalar(n).map(str::to_owned))
            .collect(),
        _ => vec![None],
    };
    for name in names {
        let mut rule = map();
        for key in known {
            let found = get(key).and_then(scalar);
            let value = match (*key, &name) {
                ("named", Some(name)) => Some(Ok(name.clone())),
                ("named", None) => None,
                ("expression", _) => found.map(|found| {
                    expression(found).ok_or_else(|| {
                        "expressions per request have no counterpart; the whole rule is left out".to_owned()
                    })
                }),
                _ => found.map(|found| environment(walk.format, found)),
            };
            let key = match *key {
                "expression" => "value",
                key => key,
            };
            match value {
                None => {}
                Some(Ok(value)) => set(&mut rule, &format!("{kind}.{key}"), text(value)),
                Some(Err(why)) => return out(walk, &why),
            }
        }
        if get("from_context").is_some() && !is_readable(&rule) {
            let why = "rules take claims and names of clients out of the context, and nothing else; the whole rule is left out";
            return out(walk, why);
        }
        let kept = at.starts_with(&target.split('.').map(str::to_owned).collect::<Vec<_>>());
        walk.push(&at, target, rule, kept);
    }
}

/// Whether it is a rule of ours.
fn is_readable(rule: &Node) -> bool {
    let mut errors = Errors::new(SourceId(0));
    let found = HeaderRule::decode(rule, &mut errors);
    found.is_some() && errors.finish(()).is_ok()
}

/// The claim that an expression is, if it is nothing but that: `.request.jwt.claims.sub` of Hive's,
/// `request.auth.claims.sub` of Cosmo's.
pub(super) fn claim(format: Format, expression: &str) -> Option<String> {
    let before = match format {
        Format::Hive => ".request.jwt.claims.",
        Format::Cosmo => "request.auth.claims.",
        _ => return None,
    };
    let path = expression.trim().strip_prefix(before)?;
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    path.split('.').all(is_name).then(|| path.to_owned())
}

/// A header that says what a claim does.
fn from_claim(name: Node, path: String) -> Node {
    let mut rule = map();
    set(&mut rule, "insert.name", name);
    set(&mut rule, "insert.from.jwt_claim", text(path));
    rule
}

/// Cosmo's lists of `{ op: propagate | set, ... }`.
pub(super) fn operations(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = path.join(".");
    for (index, item) in items(node).iter().enumerate() {
        let mut at = path.to_vec();
        at.push(index.to_string());
        let Value::Map(entries) = &item.value else {
            walk.lost(&at, "it is no header rule");
            continue;
        };
        let get = |name: &str| {
            let found = entries.iter().find(|(k, _)| k.text == name);
            found.and_then(|(_, n)| scalar(n))
        };
        let out = |walk: &mut Walk<'_>, why: &str| match get("op") {
            Some("propagate") => walk.unsupported(&at, why),
            _ => walk.lost(&at, why),
        };
        const KNOWN: [&str; 8] = [
            "op",
            "named",
            "matching",
            "rename",
            "default",
            "algorithm",
            "name",
            "value",
        ];
        if let (Some("set"), Some(name), Some(expression), None) =
            (get("op"), get("name"), get("expression"), get("value"))
            && target.ends_with("request")
            && let Some(path) = claim(walk.format, expression)
        {
            let rule = from_claim(text(name), path);
            walk.push(&at, &target, rule, false);
            continue;
        }
        let foreign = entries.iter().find(|(key, value)| {
            let off = value.is_null() || scalar(value) == Some("false");
            !(KNOWN.contains(&&*key.text) || off)
        });
        if let Some((key, _)) = foreign {
            let name = &key.text;
            let why =
                format!("rules with `{name}` have no counterpart; the whole rule is left out");
            out(walk, &why);
            continue;
        }
        let mut rule = map();
        let (kind, pairs): (&str, &[(&str, &str)]) = match get("op") {
            Some("set") => ("insert", &[("name", "name"), ("value", "value")]),
            Some("propagate") => (
                "propagate",
                &[
                    ("named", "named"),
                    ("matching", "matching"),
                    ("rename", "rename"),
                    ("default", "default"),
                    ("algorithm", "algorithm"),
                ],
            ),
            _ => {
                walk.lost(&at, "its `op` is not known");
                continue;
            }
        };
        for (from, to) in pairs {
            let Some(found) = get(from) else { continue };
            let Ok(expanded) = environment(walk.format, found) else {
                continue;
            };
            let value = match (*from, found) {
                // The strictest statement is what ours does unless told otherwise.
                ("algorithm", "most_restrictive_cache_control") => continue,
                ("algorithm", "first_write") => "first".to_owned(),
                ("algorithm", "last_write") => "last".to_owned(),
                _ => expanded,
            };
            set(&mut rule, &format!("{kind}.{to}"), text(value));
        }
        walk.push(&at, &target, rule, false);
    }
}

/// Grafbase's `[[headers]]`, of which each names its `rule`.
pub(super) fn rules(walk: &mut Walk<'_>, path: &[String], node: &Node, target: &str) {
    for (index, item) in items(node).iter().enumerate() {
        let mut at = path.to_vec();
        at.push(index.to_string());
        let Value::Map(entries) = &item.value else {
            walk.lost(&at, "it is no header rule");
            continue;
        };
        let raw = |name: &str| {
            let found = entries.iter().find(|(k, _)| k.text == name);
            found.and_then(|(_, n)| scalar(n))
        };
        const KNOWN: [&str; 6] = ["rule", "name", "pattern", "value", "default", "rename"];
        let foreign = entries.iter().find(|(key, _)| !KNOWN.contains(&&*key.text));
        let unknown = KNOWN
            .iter()
            .find_map(|key| environment(walk.format, raw(key)?).err());
        let why = match foreign {
            Some((key, _)) => Some(format!(
                "rules with `{}` have no counterpart; the whole rule is left out",
                key.text
            )),
            None => unknown,
        };
        if let Some(why) = why {
            match raw("rule") {
                Some("forward" | "rename_duplicate") => walk.unsupported(&at, &why),
                _ => walk.lost(&at, &why),
            }
            continue;
        }
        let get = |name: &str| environment(walk.format, raw(name)?).ok();
        let name = get("name").map(|n| ("named", n));
        let which = name.or(get("pattern").map(|p| ("matching", p)));
        let mut rule = map();
        match (get("rule").as_deref(), which) {
            (Some("forward"), Some((selector, which))) => {
                set(&mut rule, &format!("propagate.{selector}"), text(which));
                for key in ["default", "rename"] {
                    if let Some(value) = get(key) {
                        set(&mut rule, &format!("propagate.{key}"), text(value));
                    }
                }
            }
            (Some("insert"), Some(("named", name))) => {
                set(&mut rule, "insert.name", text(name));
                set(
                    &mut rule,
                    "insert.value",
                    text(get("value").unwrap_or_default()),
                );
            }
            (Some("remove"), Some((selector, which))) => {
                set(&mut rule, &format!("remove.{selector}"), text(which));
            }
            // Both under its own name and under another.
            (Some("rename_duplicate"), Some((selector, which))) => {
                let mut own = map();
                set(&mut own, &format!("propagate.{selector}"), text(&which));
                set(&mut rule, &format!("propagate.{selector}"), text(which));
                if let Some(value) = get("default") {
                    set(&mut own, "propagate.default", text(&value));
                    set(&mut rule, "propagate.default", text(value));
                }
                if let Some(value) = get("rename") {
                    set(&mut rule, "propagate.rename", text(value));
                }
                walk.push(&at, target, own, false);
            }
            _ => {
                walk.lost(&at, "its `rule` is not known");
                continue;
            }
        }
        walk.push(&at, target, rule, false);
    }
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}
