//! Introspection (specification section 4) answered from the schema tables.
//!
//! Why here and not from the schema crate: the mock judges the gateway's introspection, so it has its own.

use std::fmt::Write;

use ogive_schema::{ConstValue, InputId, OperationKind, Schema, Type, TypeId, TypeKind, Wrapping};
use serde_json::Value;

use crate::{
    input::Values,
    node::{Meta, Node, NodeKind, Resolved},
};

/// Field `name` of an introspection object.
pub(crate) fn resolve<'s>(
    schema: &'s Schema,
    meta: Meta,
    name: &str,
    arguments: &Values,
) -> Resolved<'s> {
    let deprecated = arguments.get("includeDeprecated").and_then(Value::as_bool) == Some(true);
    match meta {
        Meta::Schema => of_schema(schema, name),
        Meta::Type(id, wrapping) => of_type(schema, id, wrapping, name, deprecated),
        Meta::Field(id) => {
            let field = &schema.fields[id];
            match name {
                "name" => text(schema.name(field.name)),
                "description" => optional(field.description.as_deref()),
                "args" => inputs(schema, &field.args, deprecated),
                "type" => type_of(schema, field.ty),
                "isDeprecated" => Resolved::leaf(field.deprecated.is_some()),
                "deprecationReason" => optional(field.deprecated.as_deref()),
                _ => Resolved::Null,
            }
        }
        Meta::Input(id) => {
            let input = &schema.inputs[id];
            match name {
                "name" => text(schema.name(input.name)),
                "description" => optional(input.description.as_deref()),
                "type" => type_of(schema, input.ty),
                "defaultValue" => match &input.default {
                    Some(value) => Resolved::leaf(print(value)),
                    None => Resolved::Null,
                },
                "isDeprecated" => Resolved::leaf(input.deprecated.is_some()),
                "deprecationReason" => optional(input.deprecated.as_deref()),
                _ => Resolved::Null,
            }
        }
        Meta::EnumValue(id) => {
            let value = &schema.enum_values[id];
            match name {
                "name" => text(schema.name(value.name)),
                "description" => optional(value.description.as_deref()),
                "isDeprecated" => Resolved::leaf(value.deprecated.is_some()),
                "deprecationReason" => optional(value.deprecated.as_deref()),
                _ => Resolved::Null,
            }
        }
        Meta::Directive(id) => {
            let directive = &schema.directive_defs[id];
            match name {
                "name" => text(schema.name(directive.name)),
                "description" => optional(directive.description.as_deref()),
                "isRepeatable" => Resolved::leaf(directive.repeatable),
                "locations" => Resolved::List(
                    directive
                        .locations
                        .iter()
                        .map(|l| text(l.as_str()))
                        .collect(),
                ),
                "args" => inputs(schema, &directive.args, deprecated),
                _ => Resolved::Null,
            }
        }
    }
}

fn of_schema<'s>(schema: &'s Schema, name: &str) -> Resolved<'s> {
    let root = |kind: OperationKind| match schema.root(kind) {
        Some(id) => named(schema, id),
        None => Resolved::Null,
    };
    match name {
        "description" => optional(schema.description.as_deref()),
        "types" => Resolved::List(
            schema
                .type_list
                .iter()
                .map(|id| named(schema, *id))
                .collect(),
        ),
        "queryType" => root(OperationKind::Query),
        "mutationType" => root(OperationKind::Mutation),
        "subscriptionType" => root(OperationKind::Subscription),
        "directives" => Resolved::List(
            schema
                .directive_list
                .iter()
                .map(|id| object(schema, "__Directive", Meta::Directive(*id)))
                .collect(),
        ),
        _ => Resolved::Null,
    }
}

fn of_type<'s>(
    schema: &'s Schema,
    id: TypeId,
    wrapping: Wrapping,
    name: &str,
    deprecated: bool,
) -> Resolved<'s> {
    // Peel from the outside: non-null, then list.
    let inner = if wrapping.is_non_null() {
        Some(("NON_NULL", wrapping.nullable()))
    } else {
        wrapping.item().map(|item| ("LIST", item))
    };
    if let Some((kind, inner)) = inner {
        return match name {
            "kind" => text(kind),
            "ofType" => object(schema, "__Type", Meta::Type(id, inner)),
            _ => Resolved::Null,
        };
    }
    let ty = &schema.types[id];
    let has_fields = matches!(ty.kind, TypeKind::Object | TypeKind::Interface);
    match name {
        "kind" => text(match ty.kind {
            TypeKind::Scalar => "SCALAR",
            TypeKind::Object => "OBJECT",
            TypeKind::Interface => "INTERFACE",
            TypeKind::Union => "UNION",
            TypeKind::Enum => "ENUM",
            TypeKind::InputObject => "INPUT_OBJECT",
        }),
        "name" => text(schema.name(ty.name)),
        "description" => optional(ty.description.as_deref()),
        "specifiedByURL" => optional(ty.specified_by.as_deref()),
        "isOneOf" if ty.kind == TypeKind::InputObject => Resolved::leaf(ty.one_of),
        "fields" if has_fields => Resolved::List(
            ty.fields
                .iter()
                .filter(|f| deprecated || schema.fields[**f].deprecated.is_none())
                .map(|f| object(schema, "__Field", Meta::Field(*f)))
                .collect(),
        ),
        "interfaces" if has_fields => {
            Resolved::List(ty.interfaces.iter().map(|i| named(schema, *i)).collect())
        }
        // Members of a union as declared, implementations in order of definition: as the reference implementation.
        "possibleTypes" if ty.kind == TypeKind::Union => {
            Resolved::List(ty.members.iter().map(|t| named(schema, *t)).collect())
        }
        "possibleTypes" if ty.kind.is_abstract() => Resolved::List(
            schema
                .type_list
                .iter()
                .filter(|t| ty.possible.contains(t.0))
                .map(|t| named(schema, *t))
                .collect(),
        ),
        "enumValues" if ty.kind == TypeKind::Enum => Resolved::List(
            ty.enum_values
                .iter()
                .filter(|v| deprecated || schema.enum_values[**v].deprecated.is_none())
                .map(|v| object(schema, "__EnumValue", Meta::EnumValue(*v)))
                .collect(),
        ),
        "inputFields" if ty.kind == TypeKind::InputObject => {
            inputs(schema, &ty.input_fields, deprecated)
        }
        _ => Resolved::Null,
    }
}

fn inputs<'s>(schema: &'s Schema, ids: &[InputId], deprecated: bool) -> Resolved<'s> {
    Resolved::List(
        ids.iter()
            .filter(|i| deprecated || schema.inputs[**i].deprecated.is_none())
            .map(|i| object(schema, "__InputValue", Meta::Input(*i)))
            .collect(),
    )
}

fn named<'s>(schema: &Schema, id: TypeId) -> Resolved<'s> {
    object(schema, "__Type", Meta::Type(id, Wrapping::NULLABLE))
}

fn type_of<'s>(schema: &Schema, ty: Type) -> Resolved<'s> {
    object(schema, "__Type", Meta::Type(ty.id, ty.wrapping))
}

fn object<'s>(schema: &Schema, type_name: &str, meta: Meta) -> Resolved<'s> {
    match schema.type_by_name(type_name) {
        Some(ty) => Resolved::Object(Node::new(ty, NodeKind::Meta(meta))),
        None => Resolved::Null,
    }
}

fn text<'s>(text: &str) -> Resolved<'s> {
    Resolved::leaf(text)
}

fn optional<'s>(value: Option<&str>) -> Resolved<'s> {
    value.map_or(Resolved::Null, text)
}

/// A constant as GraphQL source text. Recursion is bounded by the parser's depth limit.
fn print(value: &ConstValue) -> String {
    let mut out = String::new();
    print_to(value, &mut out);
    out
}

fn print_to(value: &ConstValue, out: &mut String) {
    match value {
        ConstValue::Null => out.push_str("null"),
        ConstValue::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
        ConstValue::Int(t) | ConstValue::Float(t) | ConstValue::Enum(t) => out.push_str(t),
        // GraphQL's string escapes include all of JSON's.
        ConstValue::String(t) => {
            let _ = write!(out, "{}", Value::String(t.to_string()));
        }
        ConstValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                print_to(item, out);
            }
            out.push(']');
        }
        ConstValue::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push_str(": ");
                print_to(value, out);
            }
            out.push('}');
        }
    }
}
