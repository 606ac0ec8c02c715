//! A tree as YAML text that reads back as the same tree.

use std::fmt::Write;

use ogive_yaml::{Node, Value};

/// The text of a mapping.
pub(crate) fn yaml(root: &Node) -> String {
    let mut out = String::new();
    write_entries(root, 0, &mut out);
    out
}

/// Nesting is that of our own options.
fn write_entries(node: &Node, depth: usize, out: &mut String) {
    let Value::Map(entries) = &node.value else {
        return;
    };
    for (key, value) in entries {
        let _ = write!(out, "{}{}:", "  ".repeat(depth), quoted(&key.text, false));
        match &value.value {
            Value::Map(below) if below.is_empty() => out.push_str(" {}\n"),
            Value::Map(_) => {
                out.push('\n');
                write_entries(value, depth + 1, out);
            }
            Value::List(items) if items.iter().any(|i| !is_scalar(i)) => {
                out.push('\n');
                for item in items {
                    let _ = writeln!(out, "{}- {}", "  ".repeat(depth + 1), flow(item));
                }
            }
            _ => {
                let _ = writeln!(out, " {}", flow(value));
            }
        }
    }
}

fn is_scalar(node: &Node) -> bool {
    matches!(node.value, Value::Scalar { .. })
}

/// A value on one line.
pub(crate) fn flow(node: &Node) -> String {
    match &node.value {
        Value::Scalar { text, plain } => quoted(text, *plain),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(k, v)| format!("{}: {}", quoted(&k.text, false), flow(v)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Quotes unless the text can be nothing but itself.
fn quoted(text: &str, plain: bool) -> String {
    let safe = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && !text.ends_with(':');
    let word = matches!(
        &*text.to_ascii_lowercase(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off"
    );
    let number = text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
    if safe && (plain || (!word && !number)) {
        return text.to_owned();
    }
    // JSON's strings are YAML's, too.
    ogive_config::schema::quoted(text)
}
