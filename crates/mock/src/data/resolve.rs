//! Fields and entities from a data file.
//!
//! A field's value is the first of: a value laid over the row (inline object, representation), the row's own, the
//! rule of its coordinate (on the type, then on its interfaces), what the naming conventions of root fields and back
//! references give, else `null` (an empty list where `null` is not allowed).
//!
//! Invariants: nothing here changes the data.

use std::borrow::Cow;

use ogive_schema::{OperationKind, Schema, TypeId, Wrapping};
use serde_json::{Map, Value};

use super::{
    Data,
    expr::text_of,
    reference::{concrete_of, data_node, has_members, possible},
    subject::Subject,
};
use crate::{
    input::Values,
    model::{Key, Model},
    node::{FieldCall, Node, NodeKind, Resolved},
};

/// Names of arguments that shorten a list to so many items.
pub(crate) const COUNT_ARGUMENTS: [&str; 8] = [
    "first", "limit", "take", "n", "count", "size", "top", "pageSize",
];
const SKIP_ARGUMENTS: [&str; 2] = ["skip", "offset"];

impl Data {
    pub(crate) fn field<'s>(&'s self, call: &FieldCall<'_, 's>) -> Resolved<'s> {
        let schema = &call.model.schema;
        let definition = &schema.fields[call.field];
        let name = schema.name(definition.name);
        let (ty, wrapping) = (definition.ty.id, definition.ty.wrapping);
        let subject = Subject {
            data: self,
            model: call.model,
            node: call.node,
            arguments: call.arguments,
            index: None,
            depth: 0,
        };
        let stored = subject.stored(name);
        let (value, by_rule) = match stored {
            Some(value) => (Some(value), false),
            None => match subject.rule(name) {
                Some(rule) => match rule.eval(&subject) {
                    Ok(value) => (Some(Cow::Owned(value)), rule.uses_arguments()),
                    Err(message) => return Resolved::error(message),
                },
                None => (None, false),
            },
        };
        let composite = schema.types[ty].kind.is_composite();
        let is_root = matches!(call.node.kind, NodeKind::Root);
        let resolved = match value {
            Some(value) => self.convert(call.model, ty, wrapping, value),
            None if !composite => return absent(wrapping),
            None if is_root => return self.root(call, ty, wrapping),
            None => match self.back_references(call, ty) {
                Some(found) => found,
                None => return absent(wrapping),
            },
        };
        if by_rule || call.arguments.is_empty() {
            return match resolved {
                Resolved::List(items) if !wrapping.is_list() => {
                    items.into_iter().next().unwrap_or(Resolved::Null)
                }
                other => other,
            };
        }
        match resolved {
            Resolved::List(items) => {
                let items = if composite {
                    self.filter(call, items)
                } else {
                    items
                };
                pick(shorten(items, call.arguments), wrapping)
            }
            Resolved::Leaf(value) if wrapping.is_list() => {
                let Value::Array(items) = &*value else {
                    return Resolved::Leaf(value);
                };
                let items = items.iter().cloned().map(Resolved::leaf).collect();
                Resolved::List(shorten(items, call.arguments))
            }
            other => other,
        }
    }

    /// `_entities` for one representation.
    pub(crate) fn entity<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        keys: &[Key],
        representation: &Map<String, Value>,
    ) -> Resolved<'s> {
        let schema = &model.schema;
        let Some(key) = keys
            .iter()
            .find(|k| k.resolvable && has_members(&k.fields, representation))
        else {
            return Resolved::error(format!(
                "The representation has none of the keys of \"{}\".",
                schema.type_name(ty)
            ));
        };
        let mut over = representation.clone();
        over.shift_remove("__typename");
        let mut any_rows = false;
        for concrete in possible(schema, ty) {
            let name = schema.type_name(concrete);
            let Some(table) = self.tables.get(name) else {
                continue;
            };
            any_rows |= !table.rows.is_empty() && !self.open.iter().any(|o| o == name);
            if let Some(row) = self.find_by_key(model, concrete, table, &key.fields, representation)
            {
                // The row spells keys its own way; everything else the gateway sent is what `@requires` asked for.
                over.retain(|name, _| key.fields.get(name).is_none());
                return Resolved::Object(data_node(concrete, Some(row), over));
            }
        }
        if any_rows {
            return Resolved::Null;
        }
        match concrete_of(schema, ty, &over) {
            Some(concrete) => Resolved::Object(data_node(concrete, None, over)),
            None => Resolved::Null,
        }
    }

    /// A stored value as what the schema says it is.
    fn convert<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        wrapping: Wrapping,
        value: Cow<'s, Value>,
    ) -> Resolved<'s> {
        if value.is_null() {
            return Resolved::Null;
        }
        if let Value::Object(map) = &*value
            && let Some(message) = map.get("$error")
        {
            return Resolved::error(text_of(message));
        }
        let composite = model.schema.types[ty].kind.is_composite();
        let plain = !wrapping.is_list() || !has_error(&value);
        if !composite && plain {
            return Resolved::Leaf(value);
        }
        match wrapping.item() {
            Some(item) => match value {
                Cow::Borrowed(Value::Array(items)) => Resolved::List(
                    items
                        .iter()
                        .map(|v| self.convert(model, ty, item, Cow::Borrowed(v)))
                        .collect(),
                ),
                Cow::Owned(Value::Array(items)) => Resolved::List(
                    items
                        .into_iter()
                        .map(|v| self.convert(model, ty, item, Cow::Owned(v)))
                        .collect(),
                ),
                other => Resolved::Leaf(other),
            },
            None if !composite => Resolved::Leaf(value),
            None => match value {
                // A `$list` for a single object: its first row.
                Cow::Owned(Value::Array(items)) => match items.into_iter().next() {
                    Some(first) => self.object(model, ty, Cow::Owned(first)),
                    None => Resolved::Null,
                },
                other => self.object(model, ty, other),
            },
        }
    }

    /// Root fields without rule: rows of the type, filtered and shortened by arguments.
    fn root<'s>(
        &'s self,
        call: &FieldCall<'_, 's>,
        ty: TypeId,
        wrapping: Wrapping,
    ) -> Resolved<'s> {
        let schema = &call.model.schema;
        if schema.root(OperationKind::Mutation) == Some(call.node.ty) {
            return self.mutation(call, ty, wrapping);
        }
        let rows = self.all_rows(schema, ty);
        let mut items = self.filter(call, rows);
        // Every event of a subscription is about another row.
        if schema.root(OperationKind::Subscription) == Some(call.node.ty) && !items.is_empty() {
            let first = call.event % items.len() as u64;
            items.rotate_left(first as usize);
        }
        pick(shorten(items, call.arguments), wrapping)
    }

    fn all_rows<'s>(&'s self, schema: &Schema, ty: TypeId) -> Vec<Resolved<'s>> {
        let mut rows = Vec::new();
        for concrete in possible(schema, ty) {
            if let Some(table) = self.tables.get(schema.type_name(concrete)) {
                let nodes = table
                    .rows
                    .iter()
                    .map(|r| Node::new(concrete, NodeKind::of_row(r)));
                rows.extend(nodes.map(Resolved::Object));
            }
        }
        rows
    }

    /// Mutations without rule answer with the row their key arguments name, all arguments laid over it. Nothing is
    /// stored: the mock stays a pure function.
    fn mutation<'s>(
        &'s self,
        call: &FieldCall<'_, 's>,
        ty: TypeId,
        wrapping: Wrapping,
    ) -> Resolved<'s> {
        let model = call.model;
        let mut over = Map::new();
        for (name, value) in call.arguments {
            match value {
                Value::Object(members) => {
                    over.extend(members.iter().map(|(n, v)| (n.clone(), v.clone())));
                }
                value => {
                    over.insert(name.clone(), value.clone());
                }
            }
        }
        let Some(concrete) = concrete_of(&model.schema, ty, &over) else {
            return absent(wrapping);
        };
        let row = self.row_of_inline(model, concrete, &over);
        let node = Resolved::Object(data_node(concrete, row, over));
        match wrapping.item() {
            Some(_) => Resolved::List(vec![node]),
            None => node,
        }
    }

    /// Keeps the objects that have the values of the arguments named like fields.
    fn filter<'s>(
        &'s self,
        call: &FieldCall<'_, 's>,
        items: Vec<Resolved<'s>>,
    ) -> Vec<Resolved<'s>> {
        let mut conditions: Vec<(&str, &Value)> = Vec::new();
        for (name, value) in call.arguments {
            match value {
                Value::Null => {}
                // `filter: { category: BOOKS }`
                Value::Object(members) => {
                    conditions.extend(members.iter().map(|(n, v)| (n.as_str(), v)));
                }
                value => conditions.push((name, value)),
            }
        }
        conditions.retain(|(name, value)| {
            !value.is_null() && !COUNT_ARGUMENTS.contains(name) && !SKIP_ARGUMENTS.contains(name)
        });
        if conditions.is_empty() {
            return items;
        }
        let mut kept = items;
        kept.retain(|item| {
            let Resolved::Object(node) = item else {
                return true;
            };
            let subject = Subject {
                data: self,
                model: call.model,
                node,
                arguments: call.arguments,
                index: None,
                depth: 0,
            };
            conditions
                .iter()
                .all(|(name, wanted)| subject.accepts(name, wanted))
        });
        kept
    }
}

/// Whether an item of a list of leaves raises an error.
fn has_error(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_error),
        Value::Object(map) => map.contains_key("$error"),
        _ => false,
    }
}

/// What a field without any value is.
fn absent<'s>(wrapping: Wrapping) -> Resolved<'s> {
    if wrapping.is_list() && wrapping.is_non_null() {
        Resolved::List(Vec::new())
    } else {
        Resolved::Null
    }
}

fn pick(mut items: Vec<Resolved<'_>>, wrapping: Wrapping) -> Resolved<'_> {
    if wrapping.is_list() {
        Resolved::List(items)
    } else if items.is_empty() {
        Resolved::Null
    } else {
        items.swap_remove(0)
    }
}

fn shorten<'s>(mut items: Vec<Resolved<'s>>, arguments: &Values) -> Vec<Resolved<'s>> {
    let count = |names: &[&str]| {
        let found = names.iter().find_map(|n| arguments.get(*n)?.as_i64());
        found.map(|n| usize::try_from(n).unwrap_or(0))
    };
    if let Some(skip) = count(&SKIP_ARGUMENTS) {
        items.drain(..skip.min(items.len()));
    }
    if let Some(limit) = count(&COUNT_ARGUMENTS) {
        items.truncate(limit);
    }
    if let Some(last) = count(&["last"]) {
        items.drain(..items.len().saturating_sub(last));
    }
    items
}
