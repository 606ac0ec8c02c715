//! Policies of CORS, as each gateway writes them.

use ogive_yaml::{Node, Value};

use super::{
    Verdict,
    convert::{same, seconds, texts},
    nodes::{at, list, map, one, plain, scalar, set, text},
    rules::Walk,
};

/// `cors.policies` of Apollo Router and of Hive Router.
pub(crate) fn policies(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(items) = &node.value else {
        walk.unsupported(path, "it is not a list");
        return;
    };
    if items.is_empty() {
        walk.not_needed(path, "it is empty");
    }
    for (index, item) in items.iter().enumerate() {
        policy(walk, path, index, item);
    }
}

/// Hive Router's `cors` admits no origin unless its switch is on. If only the environment knows the switch, no origin is
/// admitted either.
pub(crate) fn hive_off(walk: &mut Walk<'_>, path: &[String], node: &Node) -> bool {
    let switch = at(node, "enabled").filter(|switch| !switch.is_null());
    match switch.map(|switch| scalar(switch)) {
        Some(Some("true")) => return false,
        Some(Some("false")) | None => {
            walk.not_needed(path, "it is off there unless `enabled` is `true`");
        }
        Some(_) => {
            let why = "whether it is on is not in the file, so no other origin is admitted: write the policies by hand";
            walk.row(path, None, Verdict::Unsupported, why);
        }
    }
    true
}

/// One CORS policy; Hive writes `match_origin` for `match_origins`.
fn policy(walk: &mut Walk<'_>, path: &[String], index: usize, item: &Node) {
    let mut at = path.to_vec();
    at.push(index.to_string());
    let Value::Map(entries) = &item.value else {
        walk.unsupported(&at, "it is not a policy");
        return;
    };
    let mut out = map();
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        let converted = match &*key.text {
            "origins" | "match_origins" | "match_origin" | "allow_credentials"
            | "expose_headers" | "allow_headers" => same(walk.format, value),
            "max_age" => seconds(walk.format, value),
            _ => Err("policies have no such key here".into()),
        };
        let name = match &*key.text {
            "match_origin" => "match_origins",
            name => name,
        };
        match converted {
            Ok(value) => set(&mut out, name, value),
            Err(why) => {
                let mut below = at.clone();
                below.push(key.text.clone());
                walk.unsupported(&below, &why);
            }
        }
    }
    walk.push(&at, "cors.policies", out, true);
}

/// The keys of Apollo Router's first version, which are one policy.
pub(crate) fn apollo_origins(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let last = path.last().cloned().unwrap_or_default();
    let mut policy = map();
    match same(walk.format, node) {
        Ok(value) => {
            set(&mut policy, &last, value);
            walk.push(path, "cors.policies", policy, false);
        }
        Err(why) => walk.unsupported(path, &why),
    }
}

/// Cosmo Router's list of origins, of which `*` is all, and others may hold a `*`.
pub(crate) fn cosmo_origins(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(items) = &node.value else {
        walk.unsupported(path, "it is not a list");
        return;
    };
    if walk.text("cors.enabled") == Some("false") {
        walk.not_needed(path, "CORS is off");
        return;
    }
    if items.iter().any(|item| scalar(item) == Some("*")) {
        walk.put(path, "cors.allow_any_origin", plain("true"), "");
        return;
    }
    if items.is_empty() {
        return walk.not_needed(path, EMPTY);
    }
    match texts(walk.format, node) {
        Ok(origins) => walk.push(
            path,
            "cors.policies",
            policy_of(&origins, Form::Stars),
            false,
        ),
        Err(why) => walk.unsupported(path, &why),
    }
}

const EMPTY: &str = "it is empty";

/// Cosmo Router's `match_origins`, which are regular expressions there, too.
pub(crate) fn cosmo_patterns(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match &node.value {
        Value::List(items) if items.is_empty() => walk.not_needed(path, EMPTY),
        _ if walk.text("cors.enabled") == Some("false") => walk.not_needed(path, "CORS is off"),
        _ => apollo_origins(walk, path, node),
    }
}

/// How a gateway writes an origin that stands for several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `*` is anything; all else is meant as it is written (Cosmo Router).
    Stars,
    /// A glob with `*`, `?`, `{a,b}` and `[a-z]`; without a scheme, both schemes are meant (Grafbase Gateway).
    Glob,
}

/// The policy for a list of origins, some of which stand for several.
fn policy_of(origins: &Node, form: Form) -> Node {
    let mut policy = map();
    let items: &[Node] = match &origins.value {
        Value::List(items) => items,
        _ => &[],
    };
    let texts = items.iter().filter_map(scalar);
    let either = |text: &str| form == Form::Glob && !text.contains("://");
    let special: &[char] = match form {
        Form::Stars => &['*'],
        Form::Glob => &['*', '?', '[', '{'],
    };
    let (patterns, exact): (Vec<&str>, Vec<&str>) =
        texts.partition(|text| text.contains(special) || either(text));
    let list = |items: Vec<String>| list(items.into_iter().map(text).collect());
    if !exact.is_empty() {
        let exact = exact.iter().map(|t| (*t).to_owned()).collect();
        set(&mut policy, "origins", list(exact));
    }
    if !patterns.is_empty() {
        let patterns = patterns.iter().map(|text| {
            let scheme = if either(text) { "https?://" } else { "" };
            format!("{scheme}{}", pattern_of(text, form))
        });
        set(&mut policy, "match_origins", list(patterns.collect()));
    }
    policy
}

/// The regular expression of an origin that stands for several.
fn pattern_of(origin: &str, form: Form) -> String {
    let (mut pattern, mut in_class, mut alternatives) = (String::new(), false, 0_usize);
    for character in origin.chars() {
        let is_glob = form == Form::Glob;
        match character {
            '*' if !in_class => pattern.push_str("[^/]*"),
            '?' if is_glob && !in_class => pattern.push_str("[^/]"),
            '[' if is_glob && !in_class => {
                in_class = true;
                pattern.push('[');
            }
            ']' if in_class => {
                in_class = false;
                pattern.push(']');
            }
            '!' if in_class && pattern.ends_with('[') => pattern.push('^'),
            '-' if in_class => pattern.push('-'),
            '{' if is_glob && !in_class => {
                alternatives += 1;
                pattern.push_str("(?:");
            }
            ',' if alternatives > 0 && !in_class => pattern.push('|'),
            '}' if alternatives > 0 && !in_class => {
                alternatives -= 1;
                pattern.push(')');
            }
            _ if character.is_ascii_punctuation() && !"/:_".contains(character) => {
                pattern.push('\\');
                pattern.push(character);
            }
            _ => pattern.push(character),
        }
    }
    pattern
}

/// Grafbase Gateway's origins: `"*"` or `"any"`, or a list, in which others may hold a `*`.
pub(crate) fn grafbase_origins(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if any(node) {
        walk.put(path, "cors.allow_any_origin", plain("true"), "");
        return;
    }
    match texts(walk.format, node) {
        Ok(origins) => {
            let policy = policy_of(&origins, Form::Glob);
            walk.put(path, "cors.policies", one(policy), "");
        }
        Err(why) => walk.unsupported(path, &why),
    }
}

/// Grafbase Gateway's lists of methods and headers.
pub(crate) fn grafbase_list(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match path.last().map(String::as_str) {
        Some("allow_methods") => "cors.methods",
        Some("allow_headers") => "cors.allow_headers",
        _ => "cors.expose_headers",
    };
    if any(node) {
        let why = match target {
            "cors.allow_headers" => "any header is the default",
            _ => "name what is meant",
        };
        let verdict = match target {
            "cors.allow_headers" => Verdict::NotNeeded,
            _ => Verdict::Unsupported,
        };
        walk.row(path, None, verdict, why);
        return;
    }
    walk.try_put(path, target, texts(walk.format, node))
}

fn any(node: &Node) -> bool {
    let is = |node: &Node| matches!(scalar(node), Some("*" | "any"));
    match &node.value {
        Value::List(items) => items.iter().any(is),
        _ => is(node),
    }
}
