//! `${env.NAME}`, `${env.NAME:-default}` and `${file.PATH}` inside scalars.
//!
//! Expansion works on the tree, after YAML was read, so a variable's value can never change the structure of the
//! configuration. `$$` is a literal `$`. Keys are not expanded. Files are secrets mounted beside the process: their text
//! counts without the line break at its end.

use ogive_yaml::{Node, Value};

use crate::{Expansion, codes, decode::Errors};

/// Expands every scalar of the tree. No recursion: the tree's depth comes from the user.
pub(crate) fn expand(root: &mut Node, from: Expansion<'_>, errors: &mut Errors) {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match &mut node.value {
            Value::List(items) => open.extend(items.iter_mut().rev()),
            Value::Map(entries) => open.extend(entries.iter_mut().rev().map(|(_, n)| n)),
            Value::Scalar { text, plain } => {
                if !text.contains('$') {
                    continue;
                }
                match expand_text(text, from) {
                    Ok(expanded) => {
                        // An expanded value is never null: `${env.X}` with X empty means the empty text.
                        *plain = false;
                        *text = expanded;
                    }
                    Err((message, help)) => {
                        errors.push(codes::EXPANSION, node.span, message, Some(help));
                    }
                }
            }
        }
    }
}

fn expand_text(text: &str, from: Expansion<'_>) -> Result<String, (String, String)> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let Some(after) = rest.strip_prefix('{') else {
            // A lone `$`, as at the end of a regular expression.
            out.push('$');
            continue;
        };
        let Some(end) = after.find('}') else {
            return Err((
                "`${` without a closing `}`".into(),
                "write `${env.NAME}`, or `$$` for a dollar sign".into(),
            ));
        };
        let (expression, default) = match after[..end].split_once(":-") {
            Some((expression, default)) => (expression, Some(default)),
            None => (&after[..end], None),
        };
        if let Some(path) = expression.strip_prefix("file.").filter(|p| !p.is_empty()) {
            match ((from.file)(path), default) {
                (Ok(value), _) => out.push_str(value.trim_end_matches(['\r', '\n'])),
                (Err(_), Some(default)) => out.push_str(default),
                (Err(why), None) => {
                    return Err((
                        format!("the file `{path}` cannot be read: {why}"),
                        format!("write it, or give a default: `${{file.{path}:-default}}`"),
                    ));
                }
            }
            rest = &after[end + 1..];
            continue;
        }
        let Some(name) = expression.strip_prefix("env.").filter(|n| !n.is_empty()) else {
            return Err((
                format!("`${{{expression}}}` is not known"),
                "write `${env.NAME}`, `${env.NAME:-default}` or `${file.PATH}`, or `$$` for a dollar sign"
                    .into(),
            ));
        };
        match ((from.env)(name), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err((
                    format!("the environment variable `{name}` is not set"),
                    format!("set it, or give a default: `${{env.{name}:-default}}`"),
                ));
            }
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
