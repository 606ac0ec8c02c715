//! References to the environment, in the ways of the four gateways, as ours: `${env.NAME}` and `${env.NAME:-default}`.

use ogive_yaml::{Node, Value};

use super::{Format, nodes::scalar};

/// A text with its references in our form, or why that cannot be: Apollo's form is ours, Cosmo expands `$NAME` and
/// `${NAME}`, Grafbase `{{ env.NAME }}`, and Hive nothing in plain texts.
pub(crate) fn environment(format: Format, found: &str) -> Result<String, String> {
    match format {
        Format::Apollo => apollo(found),
        Format::Hive => Ok(literal(found)),
        Format::Cosmo => Ok(cosmo(found)),
        Format::Grafbase => grafbase(found),
    }
}

/// Whether a text in our form refers to anything.
pub(crate) fn refers(text: &str) -> bool {
    text.contains("${env.") || text.contains("${file.")
}

/// A mapping that stands for a value: Hive's `{ from_env: NAME, default: value }` and `{ expression: 'env("NAME")' }`.
pub(crate) fn referenced(format: Format, node: &Node) -> Option<String> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let get = |name: &str| {
        let found = entries.iter().find(|(k, _)| k.text == name);
        found.and_then(|(_, n)| scalar(n))
    };
    if let (Format::Hive, [(key, value)]) = (format, entries.as_slice())
        && key.text == "expression"
    {
        return expression(scalar(value)?);
    }
    let known = |(key, _): &(ogive_yaml::Key, Node)| matches!(&*key.text, "from_env" | "default");
    if !entries.iter().all(known) {
        return None;
    }
    reference(get("from_env")?, get("default"))
}

fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

fn reference(name: &str, default: Option<&str>) -> Option<String> {
    let plain = !name.is_empty() && !name.contains(['}', ':']);
    match default {
        _ if !plain => None,
        None => Some(format!("${{env.{name}}}")),
        Some(default) if default.contains('}') => None,
        Some(default) => Some(format!("${{env.{name}:-{default}}}")),
    }
}

fn apollo(found: &str) -> Result<String, String> {
    for after in found.split("${").skip(1) {
        let inner = after.split('}').next().unwrap_or_default();
        if !(inner.starts_with("env.") || inner.starts_with("file.")) {
            return Err(format!(
                "`${{{inner}}}` refers to something that is not known here"
            ));
        }
    }
    Ok(found.to_owned())
}

fn cosmo(found: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = found;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|a| a.split_once('}'));
        let bare = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let (name, tail) = match braced {
            Some((name, tail)) => (name.trim(), tail),
            None => after.split_at(bare),
        };
        let name = name.strip_prefix("env.").unwrap_or(name);
        let digit = name.starts_with(|c: char| c.is_ascii_digit());
        rest = if name.is_empty() || (digit && braced.is_none()) {
            out.push_str("$$");
            after
        } else {
            out.push_str(&format!("${{env.{name}}}"));
            tail
        };
    }
    out.push_str(rest);
    out
}

fn grafbase(found: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = found;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inner, tail)) = after.split_once("}}") else {
            break;
        };
        out.push_str(&literal(before));
        let name = inner.trim().strip_prefix("env.").map(str::trim);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match name.filter(|name| !name.is_empty() && name.chars().all(is_name)) {
            Some(name) => out.push_str(&format!("${{env.{name}}}")),
            None => {
                return Err(format!(
                    "`{{{{{inner}}}}}` refers to something that is not known here"
                ));
            }
        }
        rest = tail;
    }
    out.push_str(&literal(rest));
    Ok(out)
}

/// An expression of Hive's that depends on nothing but the environment: texts and `env("NAME", "default")`, joined by
/// `+`.
pub(crate) fn expression(found: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = found.trim();
    loop {
        if rest.starts_with('"') {
            let (text, tail) = quoted(rest)?;
            out.push_str(&literal(&text));
            rest = tail;
        } else {
            let call = ["env(", "env!(", "get_env_var(", "get_env_var!("];
            let inside = call.iter().find_map(|call| rest.strip_prefix(call))?;
            let (name, tail) = quoted(inside.trim_start())?;
            let tail = tail.trim_start();
            let (default, tail) = match tail.strip_prefix(',') {
                Some(tail) => {
                    let (default, tail) = quoted(tail.trim_start())?;
                    (Some(default), tail.trim_start())
                }
                None => (None, tail),
            };
            out.push_str(&reference(&name, default.as_deref())?);
            rest = tail.strip_prefix(')')?;
        }
        rest = rest.trim_start();
        match rest.strip_prefix('+') {
            Some(tail) => rest = tail.trim_start(),
            None => return rest.is_empty().then_some(out),
        }
    }
}

/// A text in double quotes at the beginning, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 2..])),
            '\\' => match chars.next()?.1 {
                c @ ('"' | '\\') => out.push(c),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_all_four() {
        let of = |format, text: &str| environment(format, text).ok();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(Format::Cosmo, "a${X}b$"), some("a${env.X}b$$"));
        assert_eq!(
            of(Format::Cosmo, "$X-$Y_1/$2"),
            some("${env.X}-${env.Y_1}/$$2")
        );
        assert_eq!(of(Format::Cosmo, "^x-.*$"), some("^x-.*$$"));
        let grafbase = "Bearer {{ env.X }}$";
        assert_eq!(of(Format::Grafbase, grafbase), some("Bearer ${env.X}$$"));
        assert_eq!(of(Format::Grafbase, "{{ jwt.sub }}"), None);
        assert_eq!(of(Format::Apollo, "${env.X:-y}"), some("${env.X:-y}"));
        assert_eq!(of(Format::Apollo, "${vault.X}"), None);
        assert_eq!(of(Format::Hive, "^x$"), some("^x$$"));
    }

    #[test]
    fn expressions_that_only_need_the_environment() {
        for (found, wanted) in [
            (r#"env("X")"#, Some("${env.X}")),
            (r#" env("X", "a b") "#, Some("${env.X:-a b}")),
            (r#""Bearer " + env("X")"#, Some("Bearer ${env.X}")),
            (r#"get_env_var!("X")"#, Some("${env.X}")),
            (r#""eu""#, Some("eu")),
            (r#""a\"b$""#, Some("a\"b$$")),
            (".request.headers.x", None),
            (r#"env("X") ?? "y""#, None),
            (r#"env(.x)"#, None),
            (r#"env("X", "}")"#, None),
            (r#""a"#, None),
            ("", None),
        ] {
            assert_eq!(expression(found).as_deref(), wanted, "{found}");
        }
    }
}
