//! Literals of documents and schemas as JSON values.

use ogive_schema::{ConstValue, Schema, Type, TypeId, TypeKind};
use serde_json::Value;

use super::DEPTH_MAX;

/// The JSON text of `value` where a `ty` is expected: single items wrapped into lists, defaults of input fields filled
/// in, fields in definition order. `None` if the value is not valid there, which validation has ruled out, or nested
/// more than [`DEPTH_MAX`] levels deep with its defaults.
pub fn literal_json(schema: &Schema, value: &ConstValue, ty: Type) -> Option<String> {
    let mut out = String::new();
    Writer { schema }.value(value, ty, 0, &mut out)?;
    Some(out)
}

struct Writer<'a> {
    schema: &'a Schema,
}

impl Writer<'_> {
    fn value(&self, value: &ConstValue, ty: Type, depth: u32, out: &mut String) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let ConstValue::Null = value {
            out.push_str("null");
            return (!ty.wrapping.is_non_null()).then_some(());
        }
        let Some(wrapping) = ty.wrapping.nullable().item() else {
            return self.named(value, ty.id, depth, out);
        };
        let item = Type {
            id: ty.id,
            wrapping,
        };
        out.push('[');
        match value {
            ConstValue::List(items) => {
                for (i, value) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    self.value(value, item, depth + 1, out)?;
                }
            }
            single => self.value(single, item, depth + 1, out)?,
        }
        out.push(']');
        Some(())
    }

    fn named(&self, value: &ConstValue, ty: TypeId, depth: u32, out: &mut String) -> Option<()> {
        let def = &self.schema.types[ty];
        match (def.kind, value) {
            (TypeKind::InputObject, ConstValue::Object(fields)) => {
                self.object(fields, ty, depth, out)
            }
            (TypeKind::Enum, ConstValue::Enum(name)) => {
                self.schema.enum_value_by_name(ty, name)?;
                string(name, out);
                Some(())
            }
            (TypeKind::Scalar, _) if !def.built_in => untyped(value, depth, out),
            (TypeKind::Scalar, _) => match (self.schema.type_name(ty), value) {
                ("ID", ConstValue::Int(text)) => {
                    string(text, out);
                    Some(())
                }
                ("Int", ConstValue::Int(_))
                | ("Float", ConstValue::Int(_) | ConstValue::Float(_))
                | ("String" | "ID", ConstValue::String(_))
                | ("Boolean", ConstValue::Boolean(_)) => untyped(value, depth, out),
                _ => None,
            },
            _ => None,
        }
    }

    fn object(
        &self,
        fields: &[(Box<str>, ConstValue)],
        ty: TypeId,
        depth: u32,
        out: &mut String,
    ) -> Option<()> {
        let mut separator = '{';
        for id in &self.schema.types[ty].input_fields {
            let field = &self.schema.inputs[*id];
            let name = self.schema.name(field.name);
            let given = fields.iter().find(|(n, _)| &**n == name).map(|(_, v)| v);
            let Some(value) = given.or(field.default.as_ref()) else {
                if field.ty.wrapping.is_non_null() {
                    return None;
                }
                continue;
            };
            out.push(separator);
            separator = ',';
            string(name, out);
            out.push(':');
            self.value(value, field.ty, depth + 1, out)?;
        }
        if separator == '{' {
            out.push('{');
        }
        out.push('}');
        Some(())
    }
}

/// A literal as the JSON value it looks like; enum values become strings.
fn untyped(value: &ConstValue, depth: u32, out: &mut String) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        ConstValue::Null => out.push_str("null"),
        ConstValue::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
        ConstValue::Int(text) | ConstValue::Float(text) => out.push_str(text),
        ConstValue::String(text) | ConstValue::Enum(text) => string(text, out),
        ConstValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                untyped(item, depth + 1, out)?;
            }
            out.push(']');
        }
        ConstValue::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                untyped(value, depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Some(())
}

fn string(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}
