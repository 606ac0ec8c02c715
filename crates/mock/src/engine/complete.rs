//! `CompleteValue` and result coercion (specification 6.4.3, 3.5, 3.9), null propagation (6.4.4).

use std::{borrow::Cow, rc::Rc};

use ogive_schema::{FieldId, Schema, TypeId, TypeKind, Wrapping};
use ogive_syntax::ast;
use serde_json::Value;

use super::{ANSWER_BYTES_MAX, Execution, Group, Nulled, Segment, write_json};
use crate::{
    input::integer,
    node::{FieldError, Meta, Node, NodeKind, Resolved},
};

impl<'s> Execution<'s> {
    /// Completes a value of type `ty` under `wrapping`; a nullable position absorbs the null of what is below it.
    pub(super) fn complete(
        &mut self,
        group: &Group<'s>,
        field: FieldId,
        ty: TypeId,
        wrapping: Wrapping,
        value: Resolved<'s>,
    ) -> Result<(), Nulled> {
        let mark = self.out.len();
        let depth = self.path.len();
        match self.complete_non_null(group, field, ty, wrapping, value) {
            Err(Nulled) if !wrapping.is_non_null() => {
                self.out.truncate(mark);
                self.path.truncate(depth);
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            done => done,
        }
    }

    fn complete_non_null(
        &mut self,
        group: &Group<'s>,
        field: FieldId,
        ty: TypeId,
        wrapping: Wrapping,
        value: Resolved<'s>,
    ) -> Result<(), Nulled> {
        let schema = &self.context.model.schema;
        match value {
            Resolved::Error(error) => {
                self.error(group, &error);
                Err(Nulled)
            }
            Resolved::Raw(value) => {
                write_json(&mut self.out, &value);
                Ok(())
            }
            Resolved::Null => self.null(group, field, wrapping),
            Resolved::Leaf(value) if value.is_null() => self.null(group, field, wrapping),
            value => match wrapping.item() {
                Some(item) => {
                    let items = match value {
                        Resolved::List(items) => items,
                        Resolved::Leaf(leaf) => match leaf {
                            Cow::Borrowed(Value::Array(items)) => items
                                .iter()
                                .map(|v| Resolved::Leaf(Cow::Borrowed(v)))
                                .collect(),
                            Cow::Owned(Value::Array(items)) => {
                                items.into_iter().map(Resolved::leaf).collect()
                            }
                            _ => return self.not_a_list(group, field),
                        },
                        _ => return self.not_a_list(group, field),
                    };
                    self.list(group, field, (ty, item), items)
                }
                None if schema.types[ty].kind.is_leaf() => {
                    let coerced = match &value {
                        Resolved::Leaf(leaf) => coerce_result(schema, ty, leaf),
                        _ => Err(format!(
                            "{} cannot represent a composite value.",
                            schema.type_name(ty)
                        )),
                    };
                    match coerced {
                        Ok(value) => {
                            write_json(&mut self.out, &value);
                            Ok(())
                        }
                        Err(message) => self.fail(group, message),
                    }
                }
                None => match value {
                    Resolved::Object(node) => {
                        if !schema.is_subtype(node.ty, ty) {
                            let message = format!(
                                "Runtime object type \"{}\" is not a possible type for \"{}\".",
                                schema.type_name(node.ty),
                                schema.type_name(ty)
                            );
                            return self.fail(group, message);
                        }
                        self.object(group, node)
                    }
                    _ => {
                        let message = format!(
                            "Expected an object of type \"{}\" for field \"{}\".",
                            schema.type_name(ty),
                            schema.field_coordinate(field)
                        );
                        self.fail(group, message)
                    }
                },
            },
        }
    }

    fn null(
        &mut self,
        group: &Group<'s>,
        field: FieldId,
        wrapping: Wrapping,
    ) -> Result<(), Nulled> {
        if !wrapping.is_non_null() {
            self.out.extend_from_slice(b"null");
            return Ok(());
        }
        let message = format!(
            "Cannot return null for non-nullable field {}.",
            self.context.model.schema.field_coordinate(field)
        );
        self.fail(group, message)
    }

    fn list(
        &mut self,
        group: &Group<'s>,
        field: FieldId,
        (ty, item): (TypeId, Wrapping),
        items: Vec<Resolved<'s>>,
    ) -> Result<(), Nulled> {
        self.out.push(b'[');
        for (i, value) in items.into_iter().enumerate() {
            if self.out.len() > ANSWER_BYTES_MAX {
                break;
            }
            if i > 0 {
                self.out.push(b',');
            }
            self.path.push(Segment::Index(i));
            self.complete(group, field, ty, item, value)?;
            self.path.pop();
        }
        self.out.push(b']');
        Ok(())
    }

    fn not_a_list(&mut self, group: &Group<'s>, field: FieldId) -> Result<(), Nulled> {
        let message = format!(
            "Expected Iterable, but did not find one for field \"{}\".",
            self.context.model.schema.field_coordinate(field)
        );
        self.fail(group, message)
    }

    fn fail(&mut self, group: &Group<'s>, message: String) -> Result<(), Nulled> {
        self.error(
            group,
            &FieldError {
                message,
                extensions: None,
            },
        );
        Err(Nulled)
    }

    /// An object: its sub-selections merged from all fields of the group (`MergeSelectionSets`).
    pub(super) fn object(&mut self, group: &Group<'s>, node: Node<'s>) -> Result<(), Nulled> {
        let cached = self.collected.get(&(group.id, node.ty)).map(Rc::clone);
        let groups = match cached {
            Some(groups) => groups,
            None => {
                let sets: Vec<ast::SelectionSet> = group
                    .fields
                    .iter()
                    .filter_map(|f| f.selection_set)
                    .collect();
                let groups = self.collect(node.ty, &sets);
                self.collected.insert((group.id, node.ty), groups.clone());
                groups
            }
        };
        self.selection_set(&node, &groups, false)
    }

    /// `__type(name:)` on the query root.
    pub(super) fn meta_type(&mut self, group: &Group<'s>) -> Result<(), Nulled> {
        let document = self.context.document;
        let schema = &self.context.model.schema;
        let argument = document[group.fields[0].arguments].first();
        let found = argument.and_then(|a| match a.value.kind {
            ast::ValueKind::Variable(v) => {
                schema.type_by_name(self.context.variables.get(document.name(v))?.as_str()?)
            }
            _ => schema.type_by_name(&document.string_value(a.value.as_string()?)),
        });
        match (found, schema.type_by_name("__Type")) {
            (Some(ty), Some(meta)) => self.object(
                group,
                Node::new(meta, NodeKind::Meta(Meta::Type(ty, Wrapping::NULLABLE))),
            ),
            _ => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }
}

/// Result coercion of a leaf type.
fn coerce_result<'v>(
    schema: &Schema,
    ty: TypeId,
    value: &'v Value,
) -> Result<Cow<'v, Value>, String> {
    let name = schema.type_name(ty);
    let text = |text: String| Ok(Cow::Owned(Value::String(text)));
    match (name, value) {
        ("Int", Value::Number(number)) => match integer(number) {
            Some(i) if i32::try_from(i).is_ok() => Ok(if number.as_i64().is_some() {
                Cow::Borrowed(value)
            } else {
                Cow::Owned(i.into())
            }),
            _ => Err(format!(
                "Int cannot represent non 32-bit signed integer value: {value}"
            )),
        },
        ("Float", Value::Number(_))
        | ("String" | "ID", Value::String(_))
        | ("Boolean", Value::Bool(_)) => Ok(Cow::Borrowed(value)),
        ("String", Value::Number(_) | Value::Bool(_)) => text(value.to_string()),
        ("ID", Value::Number(number)) if integer(number).is_some() => text(number.to_string()),
        ("Int" | "Float" | "String" | "ID" | "Boolean", _) => {
            Err(format!("{name} cannot represent value: {value}"))
        }
        _ if schema.types[ty].kind == TypeKind::Enum => match value {
            Value::String(text) if schema.enum_value_by_name(ty, text).is_some() => {
                Ok(Cow::Borrowed(value))
            }
            _ => Err(format!("Enum \"{name}\" cannot represent value: {value}")),
        },
        _ => Ok(Cow::Borrowed(value)),
    }
}
