//! Constant values: from the AST, and to GraphQL notation.

use std::fmt::{self, Write};

use ogive_syntax::{
    Document,
    ast::{ObjectField, Value, ValueKind},
};

pub use ogive_syntax::write_string;

use crate::types::ConstValue;

enum Open<'a> {
    List(&'a [Value], Vec<ConstValue>),
    Object(&'a [ObjectField], Vec<(Box<str>, ConstValue)>),
}

/// The value of a literal without variables; a variable reads as `null`. No recursion.
pub fn const_value(doc: &Document, value: &Value) -> ConstValue {
    let mut stack: Vec<Open<'_>> = Vec::new();
    let mut next = *value;
    loop {
        let mut done = match next.kind {
            ValueKind::Variable(_) | ValueKind::Null => ConstValue::Null,
            ValueKind::Boolean(b) => ConstValue::Boolean(b),
            ValueKind::Int => ConstValue::Int(doc.text(next.span).into()),
            ValueKind::Float => ConstValue::Float(doc.text(next.span).into()),
            ValueKind::Enum => ConstValue::Enum(doc.text(next.span).into()),
            ValueKind::String { .. } => ConstValue::String(
                next.as_string()
                    .map(|s| doc.string_value(s).into())
                    .unwrap_or_default(),
            ),
            ValueKind::List(items) => match doc[items].split_first() {
                None => ConstValue::List(Vec::new()),
                Some((first, _)) => {
                    stack.push(Open::List(&doc[items], Vec::with_capacity(items.len())));
                    next = *first;
                    continue;
                }
            },
            ValueKind::Object(fields) => match doc[fields].split_first() {
                None => ConstValue::Object(Vec::new()),
                Some((first, _)) => {
                    stack.push(Open::Object(&doc[fields], Vec::with_capacity(fields.len())));
                    next = first.value;
                    continue;
                }
            },
        };
        loop {
            match stack.pop() {
                None => return done,
                Some(Open::List(items, mut values)) => {
                    values.push(done);
                    if let Some(item) = items.get(values.len()) {
                        next = *item;
                        stack.push(Open::List(items, values));
                        break;
                    }
                    done = ConstValue::List(values);
                }
                Some(Open::Object(fields, mut values)) => {
                    let name = fields
                        .get(values.len())
                        .map_or("", |field| doc.name(field.name));
                    values.push((name.into(), done));
                    if let Some(field) = fields.get(values.len()) {
                        next = field.value;
                        stack.push(Open::Object(fields, values));
                        break;
                    }
                    done = ConstValue::Object(values);
                }
            }
        }
    }
}

enum Step<'a> {
    Value(&'a ConstValue),
    Text(&'a str),
}

/// Writes a value on one line as the canonical printer does: `{a: 1, b: [true, "x"]}`. No recursion.
pub fn write_value(value: &ConstValue, out: &mut impl Write) -> fmt::Result {
    let mut stack = vec![Step::Value(value)];
    while let Some(step) = stack.pop() {
        let value = match step {
            Step::Text(text) => {
                out.write_str(text)?;
                continue;
            }
            Step::Value(value) => value,
        };
        match value {
            ConstValue::Null => out.write_str("null")?,
            ConstValue::Boolean(b) => out.write_str(if *b { "true" } else { "false" })?,
            ConstValue::Int(text) | ConstValue::Float(text) | ConstValue::Enum(text) => {
                out.write_str(text)?;
            }
            ConstValue::String(text) => write_string(text, out)?,
            ConstValue::List(items) => {
                out.write_char('[')?;
                stack.push(Step::Text("]"));
                for (i, item) in items.iter().enumerate().rev() {
                    stack.push(Step::Value(item));
                    if i > 0 {
                        stack.push(Step::Text(", "));
                    }
                }
            }
            ConstValue::Object(fields) => {
                out.write_char('{')?;
                stack.push(Step::Text("}"));
                for (i, (name, value)) in fields.iter().enumerate().rev() {
                    stack.push(Step::Value(value));
                    stack.push(Step::Text(": "));
                    stack.push(Step::Text(name));
                    if i > 0 {
                        stack.push(Step::Text(", "));
                    }
                }
            }
        }
    }
    Ok(())
}

impl fmt::Display for ConstValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(self, f)
    }
}
