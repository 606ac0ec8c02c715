//! Header rules of the four gateways as steps of ours.

use ogive_base::SourceId;
use ogive_config::{
    HeaderRule, ResponseHeaderRule,
    decode::{Decode, Errors},
};
use ogive_yaml::{Key, Node, Value};

use super::{
    Format,
    convert::{same, texts},
    environment::{environment, expression},
    nodes::{self, dotted, keys, map, plain, scalar, set, text},
    rules::Walk,
};

/// One rule of a list.
struct HeaderItem<'n> {
    /// The path of the rule: the list's, and its index.
    at: Vec<String>,
    entries: &'n [(Key, Node)],
}

impl<'n> HeaderItem<'n> {
    /// Reports a rule that is not a mapping as lost.
    fn read(walk: &mut Walk<'_>, path: &[String], index: usize, item: &'n Node) -> Option<Self> {
        let at = [path, &[index.to_string()]].concat();
        let Value::Map(entries) = &item.value else {
            walk.lost(&at, "it is not a header rule");
            return None;
        };
        Some(HeaderItem { at, entries })
    }
}

/// Apollo's and Hive's lists of `propagate`, `insert` and `remove`, which are ours but for what ours has not.
pub(crate) fn steps(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = dotted(path);
    for (index, item) in listed(walk, path, node).iter().enumerate() {
        let Some(HeaderItem { at, entries }) = HeaderItem::read(walk, path, index, item) else {
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
    let known = keys_of(walk.format, target, kind);
    let entries = match &body.value {
        Value::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    let foreign = entries.iter().find(|(key, value)| {
        // Ours has one way only for an inserted value, and no exceptions.
        let fine = known.contains(&&*key.text)
            || (kind == "insert" && key.text == "algorithm")
            || (walk.format == Format::Hive && kind == "propagate" && key.text == "exclude");
        !(fine || value.is_null())
    });
    let out = |walk: &mut Walk<'_>, why: &str| match kind {
        // A header that is not sent admits no caller; a header that is not removed or replaced may.
        "propagate" => walk.unsupported(&at, why),
        _ => walk.lost(&at, why),
    };
    if known.is_empty() || foreign.is_some() {
        let what = foreign.map_or(kind, |(key, _)| key.text.as_str());
        let why = format!("rules with `{what}` have no counterpart; the whole rule is left out");
        return out(walk, &why);
    }
    let get = |name: &str| nodes::at(body, name);
    let found = get("expression").and_then(scalar);
    let of_body = get("path").filter(|_| get("from_context").is_none());
    let source = match (found, of_body.map(scalar)) {
        (Some(expression), _) => source(walk.format, expression),
        (None, Some(Some(".operationName" | "operationName"))) => Some(of_operation("name")),
        (None, Some(_)) => {
            let why = "rules can read only the operation's name from the body (`from: { operation_name: true }`); the whole rule is left out";
            return out(walk, why);
        }
        (None, None) => None,
    };
    if let Some(from) = source {
        let default = get("default").map(|node| same(walk.format, node));
        let name = get("name").map(|node| same(walk.format, node));
        return match (name, default.transpose()) {
            (Some(Ok(name)), Ok(default)) => {
                push(walk, &at, target, inserted(name, from, default), false)
            }
            _ => out(walk, "it names no header"),
        };
    }
    let headers = match chosen(walk.format, kind, entries) {
        Ok(headers) => headers,
        Err(why) => return out(walk, &why),
    };
    let excluded = match excluded(walk.format, get("matching"), get("exclude")) {
        Ok(patterns) => patterns,
        Err(why) => return out(walk, &why),
    };
    // One default covers all headers of the rule.
    let several = headers.len() > 1;
    if several && get("default").is_some() && get("rename").is_none() {
        let why = "a default for several headers is written apart: `insert` with `when: { not: { exists: { request_header: NAME } } }`";
        walk.unsupported(&[&*at, &["default".to_owned()]].concat(), why);
    }
    let last = headers.len() - 1;
    for (index, header) in headers.into_iter().enumerate() {
        let mut rule = map();
        if let Some((key, which)) = &header {
            set(&mut rule, &format!("{kind}.{key}"), text(which));
        }
        let others = known.iter().filter(|key| !SELECTORS.contains(key));
        for key in others {
            let Some(found) = get(key).and_then(scalar) else {
                continue;
            };
            let value = match *key {
                "default" if several && (index < last || get("rename").is_none()) => continue,
                "expression" => expression(found).ok_or_else(|| {
                    "expressions per request have no counterpart; the whole rule is left out"
                        .to_owned()
                }),
                _ => environment(walk.format, found),
            };
            let key = match *key {
                "expression" => "value",
                key => key,
            };
            match value {
                Ok(value) => set(&mut rule, &format!("{kind}.{key}"), text(value)),
                Err(why) => return out(walk, &why),
            }
        }
        if get("from_context").is_some() && !is_readable(target, &rule) {
            let why = "rules can read only claims, client names and versions, and operation names and kinds from the context; the whole rule is left out";
            return out(walk, why);
        }
        let kept = !several && at.starts_with(&keys(target));
        push(walk, &at, target, rule, kept);
    }
    exclude(walk, &at, target, excluded);
}

/// Removes headers again that a rule has propagated and should not have.
fn exclude(walk: &mut Walk<'_>, at: &[String], target: &str, patterns: Vec<String>) {
    let at = [at, &["exclude".to_owned()]].concat();
    for pattern in patterns {
        let mut rule = map();
        set(&mut rule, "remove.matching", text(pattern));
        push(walk, &at, target, rule, false);
        walk.note("removed again, also where an earlier rule wrote it");
    }
}

/// Patterns of headers that are not propagated. Headers that are named are propagated whatever is excluded.
fn excluded(
    format: Format,
    matching: Option<&Node>,
    node: Option<&Node>,
) -> Result<Vec<String>, String> {
    let is_there = |node: &&Node| !node.is_null();
    let (Some(_), Some(node)) = (matching.filter(is_there), node.filter(is_there)) else {
        return Ok(Vec::new());
    };
    let patterns = texts(format, node)?;
    let patterns = items(&patterns).iter().map(|pattern| {
        let pattern = scalar(pattern).ok_or("it excludes headers in a way that is not known")?;
        Ok(pattern.to_owned())
    });
    patterns.collect()
}

const SELECTORS: [&str; 2] = ["named", "matching"];

/// The headers that a rule is about, each with the key that names it; Hive takes several at once. One that inserts has none.
fn chosen(
    format: Format,
    kind: &str,
    entries: &[(Key, Node)],
) -> Result<Vec<Option<(&'static str, String)>>, String> {
    if kind == "insert" {
        return Ok(vec![None]);
    }
    let mut headers = Vec::new();
    for selector in SELECTORS {
        let found = entries.iter().find(|(key, _)| key.text == selector);
        let Some((_, found)) = found.filter(|(_, node)| !node.is_null()) else {
            continue;
        };
        for one in items(&texts(format, found)?) {
            let which = scalar(one).ok_or("it names headers in a way that is not known")?;
            headers.push(Some((selector, which.to_owned())));
        }
    }
    if headers.is_empty() {
        return Err("it names no header".to_owned());
    }
    Ok(headers)
}

/// Writes a rule, if it is one of ours.
fn push(walk: &mut Walk<'_>, at: &[String], target: &str, rule: Node, kept: bool) {
    // A broken pattern is written unchanged: loading the result fails until the pattern is corrected.
    if is_readable(target, &rule) || has_broken_pattern(&rule) {
        return walk.push(at, target, rule, kept);
    }
    let why = "there is no such rule here; the whole rule is left out";
    match &rule.value {
        // A header that is not sent admits no caller.
        Value::Map(entries) if entries.iter().any(|(key, _)| key.text == "propagate") => {
            walk.unsupported(at, why);
        }
        _ => walk.lost(at, why),
    }
}

/// Whether a rule is about names that match what is no regular expression here.
fn has_broken_pattern(rule: &Node) -> bool {
    let patterns = ["propagate.matching", "remove.matching"].map(|at| nodes::at(rule, at));
    let mut patterns = patterns.into_iter().flatten().filter_map(scalar);
    patterns.any(|pattern| regex_lite::Regex::new(pattern).is_err())
}

/// Whether it is a rule of ours. What comes from the environment is not known here.
fn is_readable(target: &str, rule: &Node) -> bool {
    let mut errors = Errors::new(SourceId(0));
    let found = if target.ends_with("response") {
        ResponseHeaderRule::decode(rule, &mut errors).is_some()
    } else {
        HeaderRule::decode(rule, &mut errors).is_some()
    };
    (found && errors.is_empty()) || super::environment::refers(&super::write::yaml(rule))
}

/// What a header is made of, if an expression says nothing but that: a claim, or the operation's name or kind.
fn source(format: Format, expression: &str) -> Option<Node> {
    if let Some(path) = claim(format, expression) {
        let mut from = map();
        set(&mut from, "jwt_claim", text(path));
        return Some(from);
    }
    let expression = expression.trim();
    match format {
        Format::Hive => expression
            .strip_prefix(".request.operation.")
            .filter(|what| matches!(*what, "name" | "type"))
            .map(of_operation),
        _ => None,
    }
}

/// The operation's `name` or `type`.
fn of_operation(what: &str) -> Node {
    let mut from = map();
    let word = match what {
        "name" => "operation_name",
        _ => "operation_kind",
    };
    set(&mut from, word, plain("true"));
    from
}

/// A header that says what that gives.
fn inserted(name: Node, from: Node, default: Option<Node>) -> Node {
    let mut rule = map();
    set(&mut rule, "insert.name", name);
    set(&mut rule, "insert.from", from);
    if let Some(default) = default {
        set(&mut rule, "insert.default", default);
    }
    rule
}

/// The claim that an expression is, if it is nothing but that: `.request.jwt.claims.sub` of Hive's,
/// `request.auth.claims.sub` of Cosmo's.
pub(crate) fn claim(format: Format, expression: &str) -> Option<String> {
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

/// Cosmo's lists of `{ op: propagate | set, ... }`.
pub(crate) fn operations(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = dotted(path);
    for (index, item) in listed(walk, path, node).iter().enumerate() {
        let Some(HeaderItem { at, entries }) = HeaderItem::read(walk, path, index, item) else {
            continue;
        };
        let get = |name: &str| nodes::at(item, name).and_then(scalar);
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
        if let (Some("set"), Some(name), None, Some(from)) =
            (get("op"), get("name"), get("value"), source_of_cosmo(item))
        {
            push(walk, &at, &target, inserted(text(name), from, None), false);
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
                // Ours sends the strictest statement by default.
                ("algorithm", "most_restrictive_cache_control") => continue,
                ("algorithm", "first_write") => "first".to_owned(),
                ("algorithm", "last_write") => "last".to_owned(),
                _ => expanded,
            };
            set(&mut rule, &format!("{kind}.{to}"), text(value));
        }
        push(walk, &at, &target, rule, false);
    }
}

/// What a rule of Cosmo's sets a header to, if that is one thing and known here.
fn source_of_cosmo(rule: &Node) -> Option<Node> {
    const KNOWN: [&str; 4] = ["op", "name", "expression", "value_from"];
    let Value::Map(entries) = &rule.value else {
        return None;
    };
    if !entries.iter().all(|(key, _)| KNOWN.contains(&&*key.text)) {
        return None;
    }
    match (nodes::at(rule, "expression"), nodes::at(rule, "value_from")) {
        (Some(expression), None) => source(Format::Cosmo, scalar(expression)?),
        (
            None,
            Some(Node {
                value: Value::Map(from),
                ..
            }),
        ) => match from.as_slice() {
            [(key, field)] if key.text == "context_field" => match scalar(field)? {
                "operation_name" => Some(of_operation("name")),
                "operation_type" => Some(of_operation("type")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Grafbase's `[[headers]]`, of which each names its `rule`.
pub(crate) fn rules(walk: &mut Walk<'_>, path: &[String], node: &Node, target: &str) {
    for (index, item) in listed(walk, path, node).iter().enumerate() {
        let Some(HeaderItem { at, entries }) = HeaderItem::read(walk, path, index, item) else {
            continue;
        };
        let raw = |name: &str| nodes::at(item, name).and_then(scalar);
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
                push(walk, &at, target, own, false);
            }
            _ => {
                walk.lost(&at, "its `rule` is not known");
                continue;
            }
        }
        push(walk, &at, target, rule, false);
    }
}

/// The keys of a rule that are brought over; none of a kind that is not known.
fn keys_of(format: Format, target: &str, kind: &str) -> &'static [&'static str] {
    match kind {
        "propagate" if target.ends_with("response") => {
            &["named", "matching", "rename", "default", "algorithm"]
        }
        "propagate" => &["named", "matching", "rename", "default"],
        "insert" if format == Format::Hive => &["name", "value", "expression"],
        // Attributes of the caller or the client, by Apollo's names.
        "insert" => &["name", "value", "from_context", "path", "default"],
        "remove" => &["named", "matching"],
        _ => &[],
    }
}

/// The rules of a list. What is no list, or has none, is named.
fn listed<'n>(walk: &mut Walk<'_>, path: &[String], node: &'n Node) -> &'n [Node] {
    match &node.value {
        Value::List(items) if items.is_empty() => walk.not_needed(path, "it is empty"),
        Value::List(_) => {}
        _ => walk.lost(path, "it is not a list of header rules"),
    }
    items(node)
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}
