//! JSON in the one form that makes equal values equal bytes: members sorted by the UTF-16 units of their names, no white
//! space, texts and numbers as ECMAScript writes them (as RFC 8785 has it).

use std::{borrow::Cow, fmt::Write};

use ogive_json::{Kind, Node};

/// Appends a value. Recurses as deep as its tree is, for which there is a limit.
pub(crate) fn write(out: &mut String, value: Node<'_>) {
    match value.kind() {
        Kind::Null => out.push_str("null"),
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
        Kind::Number => write_number(out, value.number().unwrap_or_default()),
        Kind::String => write_text(out, &value.string().unwrap_or_default()),
        Kind::Array => {
            out.push('[');
            for (i, item) in value.items().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Kind::Object => {
            let members = value
                .members()
                .map(|(name, value)| (name.unescape(), value));
            let mut members: Vec<(Cow<'_, str>, Node<'_>)> = members.collect();
            // Of those with one name the last one counts, as it does for whoever checks.
            members.reverse();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            members.dedup_by(|(later, _), (first, _)| later == first);
            out.push('{');
            for (i, (name, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_text(out, &name);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
    }
}

/// ECMAScript's `JSON.stringify` (section 25.5.2.3, QuoteJSONString).
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// ECMAScript's `Number::toString` (section 6.1.6.1.20); what is no finite number is null there.
fn write_number(out: &mut String, text: &str) {
    let value: f64 = text.parse().unwrap_or(f64::NAN);
    if !value.is_finite() {
        return out.push_str("null");
    }
    if value == 0.0 {
        return out.push('0');
    }
    if value < 0.0 {
        out.push('-');
    }
    // The shortest digits that are this number and no other, `1.234e5`.
    let shortest = format!("{:e}", value.abs());
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = digits.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The point stands after so many digits.
    let (count, point) = (digits.len() as i32, exponent + 1);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    match point {
        _ if count <= point && point <= 21 => {
            out.push_str(&digits);
            out.push_str(&zeros(point - count));
        }
        1..=21 => {
            let (whole, part) = digits.split_at(point as usize);
            let _ = write!(out, "{whole}.{part}");
        }
        -5..=0 => {
            let _ = write!(out, "0.{}{digits}", zeros(-point));
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            let (first, part) = digits.split_at(1);
            let dot = if part.is_empty() { "" } else { "." };
            let _ = write!(out, "{first}{dot}{part}e{sign}{}", exponent.abs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        let tree = ogive_json::Tree::read(text.as_bytes(), 8).unwrap();
        write(&mut out, tree.root());
        out
    }

    /// Recorded with node: `JSON.stringify` of each.
    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        for (text, expected) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("100", "100"),
            ("1e2", "100"),
            ("9007199254740993", "9007199254740992"),
            ("12345678901234567890", "12345678901234567000"),
            ("1e21", "1e+21"),
            ("123456789012345678901", "123456789012345680000"),
            ("1.5e-7", "1.5e-7"),
            ("0.000001", "0.000001"),
            ("0.00000123", "0.00000123"),
            ("0.1e-6", "1e-7"),
            ("-1.25", "-1.25"),
            ("333333333.33333329", "333333333.3333333"),
            ("1E400", "null"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn of_members_with_one_name_the_last_counts() {
        let text = r#"{"b":1,"a":1,"b":[2],"\u0062":3}"#;
        assert_eq!(canonical(text), r#"{"a":1,"b":3}"#);
    }

    #[test]
    fn members_are_sorted_and_texts_escaped_as_little_as_may_be() {
        assert_eq!(
            canonical(
                "{ \"b\": [1, {\"z\":null,\"a\":true}], \"\\u00e9\": \"\\u2028\\u001f\\/\\n\", \"\u{ff5e}\": 1, \"\u{1f600}\": 2, \"B\": {} }"
            ),
            "{\"B\":{},\"b\":[1,{\"a\":true,\"z\":null}],\"\u{e9}\":\"\u{2028}\\u001f/\\n\",\"\u{1f600}\":2,\"\u{ff5e}\":1}"
        );
    }
}
