//! Arguments and values as GraphQL text.

use ogive_operation::{Arg, ArgValue, Operation};
use ogive_schema::ConstValue;

/// Writes `(a:1,b:$v)`, or nothing without arguments; reports each variable used.
pub(crate) fn arguments(op: &Operation, args: &[Arg], out: &mut String, used: &mut Vec<u32>) {
    if args.is_empty() {
        return;
    }
    out.push('(');
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&arg.name);
        out.push(':');
        value(op, &arg.value, out, used);
    }
    out.push(')');
}

/// Nesting is bounded by the parser's depth limit.
fn value(op: &Operation, v: &ArgValue, out: &mut String, used: &mut Vec<u32>) {
    match v {
        ArgValue::Variable(i) => {
            used.push(*i);
            out.push('$');
            out.push_str(&op.variables[*i as usize].name);
        }
        ArgValue::Const(c) => constant(c, out),
        ArgValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                value(op, item, out, used);
            }
            out.push(']');
        }
        ArgValue::Object(fields) => {
            out.push('{');
            for (i, (name, field)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(name);
                out.push(':');
                value(op, field, out, used);
            }
            out.push('}');
        }
    }
}

/// Writes a literal.
pub(crate) fn constant(v: &ConstValue, out: &mut String) {
    match v {
        ConstValue::Null => out.push_str("null"),
        ConstValue::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
        ConstValue::Int(t) | ConstValue::Float(t) | ConstValue::Enum(t) => out.push_str(t),
        ConstValue::String(s) => string(s, out),
        ConstValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                constant(item, out);
            }
            out.push(']');
        }
        ConstValue::Object(fields) => {
            out.push('{');
            for (i, (name, field)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(name);
                out.push(':');
                constant(field, out);
            }
            out.push('}');
        }
    }
}

/// A string in quotes; GraphQL's escapes are those of JSON. Used for GraphQL string literals and for JSON strings.
pub(crate) fn string(s: &str, out: &mut String) {
    out.push('"');
    escape(s, out);
    out.push('"');
}

/// Whether a text stands in a JSON string as it is.
pub(crate) fn is_plain(s: &str) -> bool {
    // Without a branch for each byte.
    let needs = |b: u8| b < 0x20 || b == b'"' || b == b'\\' || b == 0x7f;
    !s.bytes().fold(false, |any, b| any | needs(b))
}

/// The inside of a JSON string.
pub(crate) fn escape(s: &str, out: &mut String) {
    if is_plain(s) {
        out.push_str(s);
        return;
    }
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let code = c as u32;
                out.push_str("\\u00");
                for digit in [code >> 4, code & 15] {
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
            c => out.push(c),
        }
    }
}

/// `"key":` as JSON bytes.
pub(crate) fn key_json(key: &str) -> Box<[u8]> {
    let mut out = String::with_capacity(key.len() + 3);
    string(key, &mut out);
    out.push(':');
    out.into_bytes().into_boxed_slice()
}

/// The start of a fragment.
pub(crate) fn fragment_head(ty: &str, text: &mut String) {
    text.clear();
    text.push_str("...on ");
    text.push_str(ty);
    text.push('{');
}
