//! References of a data file: from a spelled key, an inline object or a rule's row to an object, and back.
//!
//! A reference is `Type/key` or a key of the declared type; an inline object that has all members of a key is the row
//! of that key with more values. A type without rows has an object for every key.

use std::{borrow::Cow, sync::Arc};

use ogive_schema::{Schema, TypeId, TypeKind, Wrapping};
use serde_json::{Map, Value};

use super::{Data, Table, expr::text_of, spelled, subject::Subject};
use crate::{
    input::Values,
    model::{FieldSet, Model},
    node::{DataNode, FieldCall, Node, NodeKind, Over, Resolved},
};

impl Data {
    pub(super) fn object<'s>(
        &'s self,
        model: &'s Model,
        declared: TypeId,
        value: Cow<'s, Value>,
    ) -> Resolved<'s> {
        let schema = &model.schema;
        match &*value {
            Value::Object(map) => {
                if let Some(row) = self.marked_row(model, declared, map) {
                    return row;
                }
                if let Some(reference) = map.get("$ref") {
                    return self.reference(model, declared, &text_of(reference));
                }
                let Some(ty) = concrete_of(schema, declared, map) else {
                    return Resolved::error(format!(
                        "An inline object of type \"{}\" needs a \"__typename\"",
                        schema.type_name(declared)
                    ));
                };
                let row = self.row_of_inline(model, ty, map);
                let over = match value {
                    Cow::Borrowed(Value::Object(map)) => Over::Ref(map),
                    Cow::Owned(Value::Object(map)) => Over::Own(Arc::new(map)),
                    _ => Over::None,
                };
                Resolved::Object(Node::new(ty, NodeKind::Data(DataNode { row, over })))
            }
            Value::String(_) | Value::Number(_) => {
                self.reference(model, declared, &text_of(&value))
            }
            _ => Resolved::Leaf(value),
        }
    }

    /// An inline object that has all members of a key is the row of that key with more values.
    pub(super) fn row_of_inline<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        map: &Map<String, Value>,
    ) -> Option<&'s Map<String, Value>> {
        let table = self.tables.get(model.schema.type_name(ty))?;
        let keys = model.keys.get(&ty)?;
        let key = keys.iter().find(|k| has_members(&k.fields, map))?;
        self.find_by_key(model, ty, table, &key.fields, map)
    }

    /// `{ "$row": [type, index] }`, what a `$list` evaluates to.
    pub(super) fn marked_row<'s>(
        &'s self,
        model: &'s Model,
        declared: TypeId,
        map: &Map<String, Value>,
    ) -> Option<Resolved<'s>> {
        let mark = map.get("$row")?.as_array()?;
        let name = mark.first()?.as_str()?;
        let row = self
            .tables
            .get(name)?
            .rows
            .get(mark.get(1)?.as_u64()? as usize)?;
        let ty = self.served_type(model, declared, name)?;
        Some(Resolved::Object(Node::new(ty, NodeKind::of_row(row))))
    }

    /// The type a row of table `name` has in this subgraph: its own, or the `@interfaceObject` that stands for it.
    pub(super) fn served_type(
        &self,
        model: &Model,
        declared: TypeId,
        name: &str,
    ) -> Option<TypeId> {
        match model.schema.type_by_name(name) {
            Some(ty) => Some(ty),
            None => (model.schema.types[declared].kind == TypeKind::Object).then_some(declared),
        }
    }

    /// `Type/key`, or a key of the declared type.
    pub(super) fn reference<'s>(
        &'s self,
        model: &'s Model,
        declared: TypeId,
        text: &str,
    ) -> Resolved<'s> {
        let schema = &model.schema;
        if let Some((name, key)) = text.split_once('/')
            && (self.tables.contains_key(name) || schema.type_by_name(name).is_some())
            && let Some(ty) = self.served_type(model, declared, name)
        {
            return self.by_key(model, ty, name, key).unwrap_or_else(|| {
                Resolved::error(format!("The data has no {name} with key \"{key}\""))
            });
        }
        let candidates: Vec<TypeId> = possible(schema, declared).collect();
        for ty in &candidates {
            if let Some(found) = self.by_key(model, *ty, schema.type_name(*ty), text) {
                return found;
            }
        }
        Resolved::error(format!(
            "The data has no {} with key \"{text}\"",
            schema.type_name(declared)
        ))
    }

    pub(super) fn by_key<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        table_name: &str,
        key: &str,
    ) -> Option<Resolved<'s>> {
        let table = self.tables.get(table_name);
        let field = self.key_field(model, ty, table_name);
        let found = table.and_then(|t| Some(&t.rows[*t.find(&field, key).first()? as usize]));
        if let Some(row) = found {
            return Some(Resolved::Object(Node::new(ty, NodeKind::of_row(row))));
        }
        let has_rows = table.is_some_and(|t| !t.rows.is_empty());
        if has_rows && !self.open.iter().any(|o| o == table_name) {
            return None;
        }
        let mut over = Map::new();
        over.insert(field, key.into());
        Some(Resolved::Object(data_node(ty, None, over)))
    }

    /// The field a plain reference to a type names.
    pub(super) fn key_field(&self, model: &Model, ty: TypeId, table_name: &str) -> String {
        if let Some(field) = self.keys.get(table_name) {
            return field.clone();
        }
        let single = model.keys.get(&ty).and_then(|keys| {
            keys.iter().find_map(|k| match k.fields.items.as_slice() {
                [item] if item.sub.is_empty() => Some(item.name.to_string()),
                _ => None,
            })
        });
        let first_column = || {
            let table = self.tables.get(table_name)?;
            Some(table.rows.first()?.keys().next()?.clone())
        };
        let schema = &model.schema;
        let fields = || schema.types[ty].fields.iter().map(|f| &schema.fields[*f]);
        let of_type = |name: &str| fields().find(|f| schema.type_name(f.ty.id) == name);
        let required = || {
            fields().find(|f| {
                schema.types[f.ty.id].kind == TypeKind::Scalar
                    && f.ty.wrapping == Wrapping::NON_NULL
            })
        };
        match single {
            Some(field) => field,
            None if schema.field_by_name(ty, "id").is_some() => "id".to_string(),
            // A plain schema has no keys to go by: an ID, else the first scalar that is always there.
            None => match of_type("ID").or_else(required) {
                Some(field) => schema.name(field.name).to_string(),
                None => first_column().unwrap_or_else(|| "id".to_string()),
            },
        }
    }

    /// Rows of another type that refer to this object, where exactly one field of that type can.
    pub(super) fn back_references<'s>(
        &'s self,
        call: &FieldCall<'_, 's>,
        ty: TypeId,
    ) -> Option<Resolved<'s>> {
        let schema = &call.model.schema;
        let mut items = Vec::new();
        let mut known = false;
        for other in possible(schema, ty) {
            let name = schema.type_name(other);
            if !self.tables.contains_key(name) {
                continue;
            }
            let referring = |f: &&ogive_schema::FieldId| {
                schema.is_subtype(call.node.ty, schema.fields[**f].ty.id)
            };
            let mut fields = schema.types[other].fields.iter().filter(referring);
            let (Some(field), None) = (fields.next(), fields.next()) else {
                continue;
            };
            known = true;
            let subject = Subject {
                data: self,
                model: call.model,
                node: call.node,
                arguments: call.arguments,
                index: None,
                depth: 0,
            };
            for id in self.referring(&subject, name, schema.field_name(*field)) {
                let row = &self.tables.get(name)?.rows[id as usize];
                items.push(Resolved::Object(Node::new(other, NodeKind::of_row(row))));
            }
        }
        known.then_some(Resolved::List(items))
    }

    /// Rows of `table` whose `field` refers to the subject, in row order.
    pub(super) fn referring(
        &self,
        subject: &Subject<'_, '_>,
        table: &str,
        field: &str,
    ) -> Vec<u32> {
        let Some(rows) = self.tables.get(table) else {
            return Vec::new();
        };
        let own = subject.model.schema.type_name(subject.node.ty);
        let key_field = self.key_field(subject.model, subject.node.ty, own);
        let Some(key) = subject.stored(&key_field).and_then(|v| spelled(&v)) else {
            return Vec::new();
        };
        let mut found = rows.find(field, &key).to_vec();
        found.extend_from_slice(rows.find(field, &format!("{own}/{key}")));
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(super) fn find_by_key<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        table: &'s Table,
        key: &FieldSet,
        representation: &Map<String, Value>,
    ) -> Option<&'s Map<String, Value>> {
        let leaf = key.items.iter().find(|i| i.sub.is_empty());
        let matches = |row: &&'s Map<String, Value>| {
            let node = Node::new(ty, NodeKind::of_row(row));
            let subject = Subject {
                data: self,
                model,
                node: &node,
                arguments: &Values::new(),
                index: None,
                depth: 0,
            };
            subject.has(key, representation)
        };
        match leaf {
            Some(leaf) => {
                let wanted = spelled(representation.get(&*leaf.name)?)?;
                let found = table.find(&leaf.name, &wanted);
                found.iter().map(|i| &table.rows[*i as usize]).find(matches)
            }
            None => table.rows.iter().find(matches),
        }
    }
}

pub(super) fn data_node<'s>(
    ty: TypeId,
    row: Option<&'s Map<String, Value>>,
    over: Map<String, Value>,
) -> Node<'s> {
    let over = Over::Own(Arc::new(over));
    Node::new(ty, NodeKind::Data(DataNode { row, over }))
}

/// The object types a value of a type can have, in schema order.
pub(super) fn possible(schema: &Schema, ty: TypeId) -> impl Iterator<Item = TypeId> {
    schema.types[ty].possible.iter().map(TypeId)
}

/// The concrete type of an inline object: `__typename`, the only possible type, or the first that has all its fields.
pub(super) fn concrete_of(
    schema: &Schema,
    declared: TypeId,
    map: &Map<String, Value>,
) -> Option<TypeId> {
    if let Some(Value::String(name)) = map.get("__typename")
        && let Some(ty) = schema.type_by_name(name)
    {
        return Some(ty);
    }
    if schema.types[declared].kind == TypeKind::Object {
        return Some(declared);
    }
    let mut types = possible(schema, declared);
    let first = types.next()?;
    let mut rest = types.peekable();
    if rest.peek().is_none() {
        return Some(first);
    }
    std::iter::once(first).chain(rest).find(|ty| {
        map.keys()
            .all(|name| schema.field_by_name(*ty, name).is_some())
    })
}

/// Whether an object has a value for every member of a key.
pub(super) fn has_members(key: &FieldSet, map: &Map<String, Value>) -> bool {
    let mut work = vec![(key, map)];
    while let Some((set, map)) = work.pop() {
        for item in &set.items {
            match map.get(&*item.name) {
                None | Some(Value::Null) => return false,
                Some(Value::Object(inner)) if !item.sub.is_empty() => work.push((&item.sub, inner)),
                Some(_) => {}
            }
        }
    }
    !key.is_empty()
}
