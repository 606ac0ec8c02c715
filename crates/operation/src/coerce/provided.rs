//! Values from the request.

use std::borrow::Cow;

use ogive_schema::{Schema, Type, TypeId, TypeKind, suggest};
use serde_json::{Map, Number, Value};

use super::{
    inspect::{inspect, js_number},
    literal,
};

/// One step from a variable to a value inside it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Index(usize),
    Field(&'a str),
}

struct Coercion<'a, 'r> {
    schema: &'a Schema,
    variable: &'a str,
    path: Vec<Step<'a>>,
    report: &'r mut Report<'r>,
    /// Whether enough is known to be wrong: whatever else is, nobody will hear of it.
    is_over: bool,
    out: String,
}

/// Takes what is wrong; says whether to go on.
pub(super) type Report<'r> = dyn FnMut(String) -> bool + 'r;

/// The JSON text of `value` as a `ty`. What is wrong with it is reported, until `report` has enough; the text is then
/// meaningless.
pub(super) fn coerce(
    schema: &Schema,
    variable: &str,
    value: &Value,
    ty: Type,
    report: &mut Report<'_>,
) -> String {
    let mut coercion = Coercion {
        schema,
        variable,
        path: Vec::new(),
        report,
        is_over: false,
        out: String::new(),
    };
    coercion.value(value, ty);
    coercion.out
}

/// Whether lists and objects nest deeper than `most`. No recursion.
pub(super) fn is_deeper_than(value: &Value, most: u32) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((value, depth)) = pending.pop() {
        if depth > most {
            return true;
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|v| (v, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    false
}

impl<'a> Coercion<'a, '_> {
    /// Reports `value`, which stands at the current path.
    fn error(&mut self, value: &Value, problem: &str) {
        self.error_about(&inspect(value), problem);
    }

    /// The same for a value as messages show it.
    fn error_about(&mut self, shown: &str, problem: &str) {
        if self.is_over {
            return;
        }
        let mut message = format!("Variable \"${}\" got invalid value ", self.variable);
        message.push_str(shown);
        if !self.path.is_empty() {
            message.push_str(&format!(" at \"{}", self.variable));
            for step in &self.path {
                match step {
                    Step::Index(i) => message.push_str(&format!("[{i}]")),
                    Step::Field(name) => message.push_str(&format!(".{name}")),
                }
            }
            message.push('"');
        }
        message.push_str("; ");
        message.push_str(problem);
        self.is_over = !(self.report)(message);
    }

    fn value(&mut self, value: &'a Value, ty: Type) {
        if value.is_null() {
            if ty.wrapping.is_non_null() {
                let ty = self.schema.display_type(ty);
                let problem = format!("Expected non-nullable type \"{ty}\" not to be null.");
                self.error(value, &problem);
            }
            self.out.push_str("null");
            return;
        }
        let Some(item) = ty.wrapping.nullable().item() else {
            return self.named(value, ty.id);
        };
        let item = Type {
            id: ty.id,
            wrapping: item,
        };
        self.out.push('[');
        match value {
            Value::Array(items) => {
                for (i, value) in items.iter().enumerate() {
                    if self.is_over {
                        break;
                    }
                    if i > 0 {
                        self.out.push(',');
                    }
                    self.path.push(Step::Index(i));
                    self.value(value, item);
                    self.path.pop();
                }
            }
            // A single value stands for a list of it.
            single => self.value(single, item),
        }
        self.out.push(']');
    }

    fn named(&mut self, value: &'a Value, ty: TypeId) {
        match self.schema.types[ty].kind {
            TypeKind::InputObject => match value {
                Value::Object(object) => self.object(value, object, ty),
                _ => {
                    let name = self.schema.type_name(ty);
                    self.error(value, &format!("Expected type \"{name}\" to be an object."));
                }
            },
            TypeKind::Enum => self.enum_value(value, ty),
            _ if self.schema.types[ty].built_in => self.scalar(value, ty),
            _ => self.write(value),
        }
    }

    fn object(&mut self, value: &Value, object: &'a Map<String, Value>, ty: TypeId) {
        let schema = self.schema;
        let mut separator = '{';
        let mut given = Vec::new();
        for id in &schema.types[ty].input_fields {
            let field = &schema.inputs[*id];
            let name = schema.name(field.name);
            let provided = object.get(name);
            if provided.is_none() && field.default.is_none() {
                if field.ty.wrapping.is_non_null() {
                    let ty = schema.display_type(field.ty);
                    let problem =
                        format!("Field \"{name}\" of required type \"{ty}\" was not provided.");
                    self.error(value, &problem);
                }
                continue;
            }
            self.out.push(separator);
            separator = ',';
            self.write(&Value::from(name));
            self.out.push(':');
            match (provided, &field.default) {
                (Some(provided), _) => {
                    given.push((name, provided));
                    self.path.push(Step::Field(name));
                    self.value(provided, field.ty);
                    self.path.pop();
                }
                (None, Some(default)) => {
                    let text = literal::literal_json(schema, default, field.ty);
                    self.out.push_str(text.as_deref().unwrap_or("null"));
                }
                (None, None) => {}
            }
        }
        if separator == '{' {
            self.out.push('{');
        }
        self.out.push('}');
        self.unknown_fields(value, object, ty);
        if schema.types[ty].one_of {
            self.one_of(value, &given, ty);
        }
    }

    fn unknown_fields(&mut self, value: &Value, object: &Map<String, Value>, ty: TypeId) {
        let schema = self.schema;
        for name in object.keys() {
            if self.is_over {
                return;
            }
            if schema.input_field_by_name(ty, name).is_some() {
                continue;
            }
            let fields = schema.types[ty].input_fields.iter();
            let names = fields.map(|id| schema.name(schema.inputs[*id].name));
            let hint = suggest::did_you_mean(None, &suggest::suggestions(name, names));
            let ty = schema.type_name(ty);
            self.error(
                value,
                &format!("Field \"{name}\" is not defined by type \"{ty}\".{hint}"),
            );
        }
    }

    fn one_of(&mut self, value: &Value, given: &[(&'a str, &'a Value)], ty: TypeId) {
        if given.len() != 1 {
            let ty = self.schema.type_name(ty);
            let problem = format!("Exactly one key must be specified for OneOf type \"{ty}\".");
            self.error(value, &problem);
        }
        if let Some((name, field)) = given.first()
            && field.is_null()
        {
            self.path.push(Step::Field(name));
            self.error(field, &format!("Field \"{name}\" must be non-null."));
            self.path.pop();
        }
    }

    fn enum_value(&mut self, value: &Value, ty: TypeId) {
        let schema = self.schema;
        let text = value.as_str();
        if let Some(text) = text
            && schema.enum_value_by_name(ty, text).is_some()
        {
            return self.write(value);
        }
        let found = text.map_or_else(|| inspect(value), str::to_owned);
        let values = schema.types[ty].enum_values.iter();
        let names = values.map(|id| schema.name(schema.enum_values[*id].name));
        let suggestions = suggest::suggestions(&found, names);
        let hint = suggest::did_you_mean(Some("the enum value"), &suggestions);
        let ty = schema.type_name(ty);
        let problem = if text.is_some() {
            format!("Value \"{found}\" does not exist in \"{ty}\" enum.{hint}")
        } else {
            format!("Enum \"{ty}\" cannot represent non-string value: {found}.{hint}")
        };
        self.error(value, &problem);
    }

    fn scalar(&mut self, value: &Value, ty: TypeId) {
        let complaint = match (self.schema.type_name(ty), value) {
            ("Int", Value::Number(number)) => match integer(number) {
                Some(digits) if digits.parse::<i32>().is_ok() => {
                    return self.out.push_str(plain(&digits));
                }
                Some(_) => "Int cannot represent non 32-bit signed integer value: ",
                None => "Int cannot represent non-integer value: ",
            },
            ("Int", _) => "Int cannot represent non-integer value: ",
            ("Float", Value::Number(number)) if js_number(number).is_finite() => {
                return self.out.push_str(number.as_str());
            }
            ("Float", _) => "Float cannot represent non numeric value: ",
            ("String", Value::String(_))
            | ("Boolean", Value::Bool(_))
            | ("ID", Value::String(_)) => return self.write(value),
            ("String", _) => "String cannot represent a non string value: ",
            ("Boolean", _) => "Boolean cannot represent a non boolean value: ",
            ("ID", Value::Number(number)) => match integer(number) {
                Some(digits) => {
                    self.out.push('"');
                    self.out.push_str(plain(&digits));
                    return self.out.push('"');
                }
                None => "ID cannot represent value: ",
            },
            ("ID", _) => "ID cannot represent value: ",
            // Introspection has no input scalars of its own.
            _ => return self.write(value),
        };
        let shown = inspect(value);
        self.error_about(&shown, &format!("{complaint}{shown}"));
    }

    /// Writes a value as it came.
    fn write(&mut self, value: &Value) {
        self.out.push_str(&value.to_string());
    }
}

/// The digits of a number without fraction, however it was written; `None` if it has one.
fn integer(number: &Number) -> Option<Cow<'_, str>> {
    let text = number.as_str();
    if !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Some(Cow::Borrowed(text));
    }
    let value = js_number(number);
    // All finite doubles print without exponent here, so this is their exact integer value.
    (value.is_finite() && value.fract() == 0.0).then(|| Cow::Owned(format!("{value:.0}")))
}

/// Digits as servers expect them.
fn plain(digits: &str) -> &str {
    match digits {
        "-0" => "0",
        other => other,
    }
}
