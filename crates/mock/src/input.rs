//! Input coercion: variables, arguments and literals to JSON (specification 3.x "Input Coercion", 6.1.2, 6.4.1).
//!
//! Why here and not from the operation crate: the mock is the oracle of the gateway's tests, so it must not share
//! the code it judges. Numbers keep the text they were written with. Recursion is bounded by the parser's depth
//! limit for literals and by the JSON parser's for variables.

use ogive_schema::{ConstValue, InputDef, InputId, Schema, Type, TypeKind};
use ogive_syntax::{
    Document,
    ast::{OperationDefinition, TypeRef, Value as AstValue, ValueKind},
};
use serde_json::{Map, Number, Value};

/// Coerced values by name.
pub(crate) type Values = Map<String, Value>;

/// `CoerceVariableValues` (6.1.2).
pub(crate) fn coerce_variables(
    schema: &Schema,
    document: &Document,
    operation: &OperationDefinition,
    provided: &Values,
) -> Result<Values, Vec<String>> {
    let mut values = Values::new();
    let mut errors = Vec::new();
    for variable in &document[operation.variables] {
        let name = document.name(variable.name);
        let Some(ty) = resolve_type(schema, document, variable.ty) else {
            errors.push(format!("Variable \"${name}\" has an unknown type."));
            continue;
        };
        match provided.get(name) {
            None => {
                if let Some(default) = variable.default {
                    let read = coerce_literal(schema, document, ty, &default, &Values::new());
                    match read {
                        Ok(Some(value)) => {
                            values.insert(name.to_string(), value);
                        }
                        Ok(None) => {}
                        Err(message) => errors.push(message),
                    }
                } else if ty.wrapping.is_non_null() {
                    errors.push(format!(
                        "Variable \"${name}\" of required type \"{}\" was not provided.",
                        schema.display_type(ty)
                    ));
                }
            }
            Some(Value::Null) if ty.wrapping.is_non_null() => errors.push(format!(
                "Variable \"${name}\" of non-null type \"{}\" must not be null.",
                schema.display_type(ty)
            )),
            Some(value) => match coerce_json(schema, ty, value) {
                Ok(value) => {
                    values.insert(name.to_string(), value);
                }
                Err(message) => errors.push(format!(
                    "Variable \"${name}\" got invalid value {value}; {message}"
                )),
            },
        }
    }
    if errors.is_empty() {
        Ok(values)
    } else {
        Err(errors)
    }
}

/// `CoerceArgumentValues` (6.4.1) of a field's or directive's arguments.
pub(crate) fn coerce_arguments(
    schema: &Schema,
    document: &Document,
    definitions: &[InputId],
    arguments: &[ogive_syntax::ast::Argument],
    variables: &Values,
) -> Result<Values, String> {
    let mut values = Values::new();
    for id in definitions {
        let definition = &schema.inputs[*id];
        let name = schema.name(definition.name);
        let given = arguments.iter().find(|a| document.name(a.name) == name);
        let value = match given.map(|a| a.value) {
            Some(AstValue {
                kind: ValueKind::Variable(variable),
                ..
            }) => variables.get(document.name(variable)).cloned(),
            Some(literal) => {
                coerce_literal(schema, document, definition.ty, &literal, variables)
                    .map_err(|m| format!("Argument \"{name}\" has an invalid value: {m}"))?
            }
            None => None,
        };
        match value {
            Some(Value::Null) if definition.ty.wrapping.is_non_null() => {
                return Err(format!(
                    "Argument \"{name}\" of non-null type \"{}\" must not be null.",
                    schema.display_type(definition.ty)
                ));
            }
            Some(value) => {
                values.insert(name.to_string(), value);
            }
            None => match default_of(schema, definition)? {
                Some(default) => {
                    values.insert(name.to_string(), default);
                }
                None if definition.ty.wrapping.is_non_null() => {
                    return Err(format!(
                        "Argument \"{name}\" of required type \"{}\" was not provided.",
                        schema.display_type(definition.ty)
                    ));
                }
                None => {}
            },
        }
    }
    Ok(values)
}

fn default_of(schema: &Schema, definition: &InputDef) -> Result<Option<Value>, String> {
    let Some(default) = &definition.default else {
        return Ok(None);
    };
    coerce_json(schema, definition.ty, &const_json(default)).map(Some)
}

/// A literal of type `ty`; `None` if it is a variable without value.
fn coerce_literal(
    schema: &Schema,
    document: &Document,
    ty: Type,
    literal: &AstValue,
    variables: &Values,
) -> Result<Option<Value>, String> {
    if let ValueKind::Variable(name) = literal.kind {
        return Ok(variables.get(document.name(name)).cloned());
    }
    let expected = || schema.display_type(ty);
    if literal.kind == ValueKind::Null {
        return if ty.wrapping.is_non_null() {
            Err(format!("Expected \"{}\", found null.", expected()))
        } else {
            Ok(Some(Value::Null))
        };
    }
    if let Some(item) = ty.wrapping.item() {
        let item = Type {
            id: ty.id,
            wrapping: item,
        };
        let ValueKind::List(items) = literal.kind else {
            let single = coerce_literal(schema, document, item, literal, variables)?;
            return Ok(single.map(|v| Value::Array(vec![v])));
        };
        let mut out = Vec::with_capacity(items.len());
        for entry in &document[items] {
            match coerce_literal(schema, document, item, entry, variables)? {
                Some(value) => out.push(value),
                None if item.wrapping.is_non_null() => {
                    return Err(format!("Expected \"{}\", found nothing.", expected()));
                }
                None => out.push(Value::Null),
            }
        }
        return Ok(Some(Value::Array(out)));
    }
    if schema.types[ty.id].kind == TypeKind::InputObject {
        let ValueKind::Object(fields) = literal.kind else {
            return Err(format!("Expected \"{}\" to be an object.", expected()));
        };
        let mut given = Vec::new();
        for field in &document[fields] {
            let name = document.name(field.name);
            let Some(id) = schema.input_field_by_name(ty.id, name) else {
                return Err(format!(
                    "Field \"{name}\" is not defined by type \"{}\".",
                    expected()
                ));
            };
            let definition = &schema.inputs[id];
            if let Some(value) =
                coerce_literal(schema, document, definition.ty, &field.value, variables)?
            {
                given.push((name.to_string(), value));
            }
        }
        return input_object(schema, ty, given).map(Some);
    }
    let json = literal_json(document, literal, variables);
    if schema.types[ty.id].kind == TypeKind::Enum {
        if literal.kind != ValueKind::Enum {
            return Err(format!("Enum \"{}\" cannot represent {json}.", expected()));
        }
    } else if literal.kind == ValueKind::Enum && is_specified_scalar(schema.type_name(ty.id)) {
        return Err(format!(
            "{} cannot represent {json}.",
            schema.type_name(ty.id)
        ));
    }
    leaf(schema, ty, &json).map(Some)
}

/// A JSON value of type `ty`.
pub(crate) fn coerce_json(schema: &Schema, ty: Type, value: &Value) -> Result<Value, String> {
    if value.is_null() {
        return if ty.wrapping.is_non_null() {
            Err(format!(
                "Expected non-nullable type \"{}\" not to be null.",
                schema.display_type(ty)
            ))
        } else {
            Ok(Value::Null)
        };
    }
    if let Some(item) = ty.wrapping.item() {
        let item = Type {
            id: ty.id,
            wrapping: item,
        };
        return match value {
            Value::Array(items) => items
                .iter()
                .map(|v| coerce_json(schema, item, v))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            single => Ok(Value::Array(vec![coerce_json(schema, item, single)?])),
        };
    }
    if schema.types[ty.id].kind == TypeKind::InputObject {
        let Value::Object(fields) = value else {
            return Err(format!(
                "Expected type \"{}\" to be an object.",
                schema.display_type(ty)
            ));
        };
        let mut given = Vec::new();
        for (name, value) in fields {
            let Some(id) = schema.input_field_by_name(ty.id, name) else {
                return Err(format!(
                    "Field \"{name}\" is not defined by type \"{}\".",
                    schema.type_name(ty.id)
                ));
            };
            given.push((
                name.clone(),
                coerce_json(schema, schema.inputs[id].ty, value)?,
            ));
        }
        return input_object(schema, ty, given);
    }
    leaf(schema, ty, value)
}

/// Fills defaults, checks required fields and `@oneOf`; fields in definition order.
fn input_object(schema: &Schema, ty: Type, given: Vec<(String, Value)>) -> Result<Value, String> {
    let definition = &schema.types[ty.id];
    if definition.one_of && (given.len() != 1 || given[0].1.is_null()) {
        return Err(format!(
            "Exactly one key must be specified for OneOf type \"{}\".",
            schema.type_name(ty.id)
        ));
    }
    let mut out = Values::new();
    for id in &definition.input_fields {
        let field = &schema.inputs[*id];
        let name = schema.name(field.name);
        let value = given
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone());
        match (value, default_of(schema, field)?) {
            (Some(value), _) => {
                out.insert(name.to_string(), value);
            }
            (None, Some(default)) => {
                out.insert(name.to_string(), default);
            }
            (None, None) if field.ty.wrapping.is_non_null() => {
                return Err(format!(
                    "Field \"{name}\" of required type \"{}\" was not provided.",
                    schema.display_type(field.ty)
                ));
            }
            (None, None) => {}
        }
    }
    Ok(Value::Object(out))
}

/// Input coercion of the specified scalars, enums and custom scalars.
fn leaf(schema: &Schema, ty: Type, value: &Value) -> Result<Value, String> {
    let name = schema.type_name(ty.id);
    let refuse = || Err(format!("{name} cannot represent value: {value}"));
    match (name, value) {
        ("Int", Value::Number(number)) => match integer(number) {
            Some(i) if i32::try_from(i).is_ok() => Ok(value.clone()),
            _ => refuse(),
        },
        ("Float", Value::Number(number)) => match number.as_f64() {
            Some(f) if f.is_finite() => Ok(value.clone()),
            _ => refuse(),
        },
        ("String" | "ID", Value::String(_)) | ("Boolean", Value::Bool(_)) => Ok(value.clone()),
        ("ID", Value::Number(number)) => match integer(number) {
            Some(i) => Ok(Value::String(i.to_string())),
            None => refuse(),
        },
        ("Int" | "Float" | "String" | "ID" | "Boolean", _) => refuse(),
        _ if schema.types[ty.id].kind == TypeKind::Enum => match value {
            Value::String(text) if schema.enum_value_by_name(ty.id, text).is_some() => {
                Ok(value.clone())
            }
            _ => Err(format!("Value {value} does not exist in \"{name}\" enum.")),
        },
        // Custom scalars take anything.
        _ => Ok(value.clone()),
    }
}

/// The integer a number stands for; `1.0` is one.
pub(crate) fn integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(float as i64)
    })
}

pub(crate) fn is_specified_scalar(name: &str) -> bool {
    matches!(name, "Int" | "Float" | "String" | "ID" | "Boolean")
}

fn resolve_type(schema: &Schema, document: &Document, ty: TypeRef) -> Option<Type> {
    Some(Type {
        id: schema.type_by_name(document.name(ty.name))?,
        wrapping: ty.wrapping,
    })
}

/// A literal as JSON without a type: enum values become strings, missing variables `null`.
fn literal_json(document: &Document, literal: &AstValue, variables: &Values) -> Value {
    match literal.kind {
        ValueKind::Variable(name) => variables
            .get(document.name(name))
            .cloned()
            .unwrap_or(Value::Null),
        ValueKind::Int | ValueKind::Float => number(document.text(literal.span)),
        ValueKind::String { .. } => Value::String(
            literal
                .as_string()
                .map(|s| document.string_value(s).into_owned())
                .unwrap_or_default(),
        ),
        ValueKind::Boolean(b) => Value::Bool(b),
        ValueKind::Null => Value::Null,
        ValueKind::Enum => Value::String(document.text(literal.span).to_string()),
        ValueKind::List(items) => Value::Array(
            document[items]
                .iter()
                .map(|v| literal_json(document, v, variables))
                .collect(),
        ),
        ValueKind::Object(fields) => Value::Object(
            document[fields]
                .iter()
                .map(|f| {
                    (
                        document.name(f.name).to_string(),
                        literal_json(document, &f.value, variables),
                    )
                })
                .collect(),
        ),
    }
}

/// A constant as JSON; enum values become strings.
pub(crate) fn const_json(value: &ConstValue) -> Value {
    match value {
        ConstValue::Null => Value::Null,
        ConstValue::Boolean(b) => Value::Bool(*b),
        ConstValue::Int(text) | ConstValue::Float(text) => number(text),
        ConstValue::String(text) | ConstValue::Enum(text) => Value::String(text.to_string()),
        ConstValue::List(items) => Value::Array(items.iter().map(const_json).collect()),
        ConstValue::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.to_string(), const_json(value)))
                .collect(),
        ),
    }
}

/// A GraphQL number literal; its grammar is a subset of JSON's, so the text is kept.
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
}
