//! Request values as messages show them: as JavaScript would, long lists and deep values shortened.

use serde_json::{Number, Value};

/// Items of a list that are shown.
const ITEMS_MAX: usize = 10;
/// Levels that are shown.
const DEPTH_MAX: usize = 2;
/// Length at which a shown value is cut off; a request can hold megabytes in one object.
const BYTES_MAX: usize = 4096;

/// The value for people.
pub(super) fn inspect(value: &Value) -> String {
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
pub(super) fn js_number(number: &Number) -> f64 {
    number.as_str().parse().unwrap_or(f64::NAN)
}

fn write(value: &Value, depth: usize, out: &mut String) {
    if out.len() > BYTES_MAX {
        return;
    }
    match value {
        Value::Number(number) => write_number(js_number(number), out),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Value::Array(_) if depth >= DEPTH_MAX => out.push_str("[Array]"),
        Value::Object(_) if depth >= DEPTH_MAX => out.push_str("[Object]"),
        Value::Array(items) => {
            for (i, item) in items.iter().take(ITEMS_MAX).enumerate() {
                out.push_str(if i == 0 { "[" } else { ", " });
                write(item, depth + 1, out);
            }
            match items.len().saturating_sub(ITEMS_MAX) {
                0 => {}
                1 => out.push_str(", ... 1 more item"),
                more => out.push_str(&format!(", ... {more} more items")),
            }
            out.push(']');
        }
        Value::Object(fields) => {
            for (i, (name, value)) in fields.iter().enumerate() {
                if out.len() > BYTES_MAX {
                    return;
                }
                out.push_str(if i == 0 { "{ " } else { ", " });
                out.push_str(name);
                out.push_str(": ");
                write(value, depth + 1, out);
            }
            out.push_str(" }");
        }
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
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
    use super::*;

    #[test]
    fn numbers_print_as_in_javascript() {
        let shown = |text: &str| inspect(&serde_json::from_str(text).unwrap());
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
        let value = serde_json::from_str(&format!("{{{}}}", long.join(","))).unwrap();
        assert!(inspect(&value).len() < BYTES_MAX + 64);
    }
}
