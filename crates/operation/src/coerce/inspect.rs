//! Request values as messages show them: as JavaScript would, long lists and deep values shortened.

use ogive_base::bounded;
use ogive_json::{Kind, Node, write_string};

/// Items of a list that are shown.
const ITEMS_MAX: usize = 10;
/// Levels that are shown.
const DEPTH_MAX: usize = 2;
/// Length at which a shown value is cut off; a request can hold megabytes in one object.
const BYTES_MAX: usize = 4096;

/// The value for people.
pub(super) fn inspect(value: Node<'_>) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    if out.len() > BYTES_MAX {
        let end = (0..=BYTES_MAX).rev().find(|i| out.is_char_boundary(*i));
        out.truncate(end.unwrap_or(0));
        out.push('…');
    }
    out
}

/// The double a JavaScript client means by this number; infinite beyond its range.
pub(super) fn js_number(number: &str) -> f64 {
    number.parse().unwrap_or(f64::NAN)
}

fn write(value: Node<'_>, depth: usize, out: &mut String) {
    if out.len() > BYTES_MAX {
        return;
    }
    match value.kind() {
        Kind::Number => write_number(js_number(value.number().unwrap_or_default()), out),
        Kind::Array if value.items().next().is_none() => out.push_str("[]"),
        Kind::Object if value.members().next().is_none() => out.push_str("{}"),
        Kind::Array if depth >= DEPTH_MAX => out.push_str("[Array]"),
        Kind::Object if depth >= DEPTH_MAX => out.push_str("[Object]"),
        Kind::Array => {
            for (i, item) in value.items().take(ITEMS_MAX).enumerate() {
                out.push_str(if i == 0 { "[" } else { ", " });
                write(item, depth + 1, out);
            }
            match value.items().skip(ITEMS_MAX).count() {
                0 => {}
                1 => out.push_str(", ... 1 more item"),
                more => out.push_str(&format!(", ... {more} more items")),
            }
            out.push(']');
        }
        Kind::Object => {
            for (i, (name, value)) in value.members().enumerate() {
                if out.len() > BYTES_MAX {
                    return;
                }
                out.push_str(if i == 0 { "{ " } else { ", " });
                push_within(&name.unescape(), out);
                out.push_str(": ");
                write(value, depth + 1, out);
            }
            out.push_str(" }");
        }
        Kind::String => {
            let mut text = Vec::new();
            let value = value.string().unwrap_or_default();
            write_string(&mut text, &bounded(&value, 2 * BYTES_MAX));
            push_within(&String::from_utf8_lossy(&text), out);
        }
        Kind::Null => out.push_str("null"),
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
    }
}

/// No more of a text than will be looked at.
fn push_within(text: &str, out: &mut String) {
    let most = text.floor_char_boundary(BYTES_MAX + 1);
    out.push_str(&text[..most]);
}

/// ECMAScript's `Number::toString`: exponents from 1e21 and below 1e-6.
fn write_number(value: f64, out: &mut String) {
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else if value == 0.0 {
        out.push('0');
    } else if (1e-6..1e21).contains(&value.abs()) {
        out.push_str(&value.to_string());
    } else {
        let text = format!("{value:e}");
        match text.split_once("e-") {
            Some(_) => out.push_str(&text),
            None => out.push_str(&text.replace('e', "e+")),
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_json::Tree;

    use super::*;

    #[test]
    fn numbers_print_as_in_javascript() {
        let shown = |text: &str| inspect(Tree::read(text.as_bytes(), 128).unwrap().root());
        assert_eq!(shown("1.0"), "1");
        assert_eq!(shown("-0"), "0");
        assert_eq!(shown("1e21"), "1e+21");
        assert_eq!(shown("123456789012345678901"), "123456789012345680000");
        assert_eq!(shown("0.000001"), "0.000001");
        assert_eq!(shown("1.5e-9"), "1.5e-9");
        assert_eq!(shown("-1e999"), "-Infinity");
    }

    #[test]
    fn huge_values_are_cut_off() {
        let long: Vec<String> = (0..20_000).map(|i| format!("\"k{i}\":1")).collect();
        let text = format!("{{{}}}", long.join(","));
        let value = Tree::read(text.as_bytes(), 128).unwrap();
        assert!(inspect(value.root()).len() < BYTES_MAX + 64);
    }
}
