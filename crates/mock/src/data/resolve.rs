//! Fields and entities from a data file.
//!
//! A field's value is the first of: a value laid over the row (inline object, representation), the row's own, the
//! rule of its coordinate (on the type, then on its interfaces), what the naming conventions of root fields and back
//! references give, else `null` (an empty list where `null` is not allowed).
//!
//! Invariants: nothing here changes the data; rules see at most [`RULE_DEPTH_MAX`] rules deep.

use std::{borrow::Cow, sync::Arc};

use ogive_schema::{OperationKind, Schema, TypeId, TypeKind, Wrapping};
use serde_json::{Map, Value};

use super::{
    Data, Table,
    expr::{Scope, same, text_of},
    rule::{ListRule, Rule, RuleScope},
    spelled,
};
use crate::{
    input::Values,
    model::{FieldSet, Key, Model},
    node::{DataNode, Node, NodeKind, Over, Resolved},
    resolver::FieldCall,
};

/// Deepest chain of rules that read each other.
const RULE_DEPTH_MAX: usize = 16;

/// Names of arguments that shorten a list to so many items.
pub(crate) const COUNT_ARGUMENTS: [&str; 8] = [
    "first", "limit", "take", "n", "count", "size", "top", "pageSize",
];
const SKIP_ARGUMENTS: [&str; 2] = ["skip", "offset"];

/// An object that names are looked up on.
#[derive(Clone, Copy)]
struct Subject<'c, 's> {
    data: &'s Data,
    model: &'s Model,
    node: &'c Node<'s>,
    arguments: &'c Values,
    index: Option<usize>,
    depth: usize,
}

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

    fn find_by_key<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        table: &'s Table,
        key: &FieldSet,
        representation: &Map<String, Value>,
    ) -> Option<&'s Map<String, Value>> {
        let leaf = key.items.iter().find(|i| i.sub.is_empty());
        let matches = |row: &&'s Map<String, Value>| {
            let node = Node::new(ty, row_kind(row));
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
        if !composite && !(wrapping.is_list() && has_error(&value)) {
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

    fn object<'s>(
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
    fn row_of_inline<'s>(
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
    fn marked_row<'s>(
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
        Some(Resolved::Object(Node::new(ty, row_kind(row))))
    }

    /// The type a row of table `name` has in this subgraph: its own, or the `@interfaceObject` that stands for it.
    fn served_type(&self, model: &Model, declared: TypeId, name: &str) -> Option<TypeId> {
        match model.schema.type_by_name(name) {
            Some(ty) => Some(ty),
            None => (model.schema.types[declared].kind == TypeKind::Object).then_some(declared),
        }
    }

    /// `Type/key`, or a key of the declared type.
    fn reference<'s>(&'s self, model: &'s Model, declared: TypeId, text: &str) -> Resolved<'s> {
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

    fn by_key<'s>(
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
            return Some(Resolved::Object(Node::new(ty, row_kind(row))));
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
    fn key_field(&self, model: &Model, ty: TypeId, table_name: &str) -> String {
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
    fn back_references<'s>(&'s self, call: &FieldCall<'_, 's>, ty: TypeId) -> Option<Resolved<'s>> {
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
                items.push(Resolved::Object(Node::new(other, row_kind(row))));
            }
        }
        known.then_some(Resolved::List(items))
    }

    /// Rows of `table` whose `field` refers to the subject, in row order.
    fn referring(&self, subject: &Subject<'_, '_>, table: &str, field: &str) -> Vec<u32> {
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
        let items = self.filter(call, rows);
        pick(shorten(items, call.arguments), wrapping)
    }

    fn all_rows<'s>(&'s self, schema: &Schema, ty: TypeId) -> Vec<Resolved<'s>> {
        let mut rows = Vec::new();
        for concrete in possible(schema, ty) {
            if let Some(table) = self.tables.get(schema.type_name(concrete)) {
                let nodes = table.rows.iter().map(|r| Node::new(concrete, row_kind(r)));
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

impl<'s> Subject<'_, 's> {
    /// The value laid over the object or stored in its row.
    fn stored(&self, name: &str) -> Option<Cow<'s, Value>> {
        match &self.node.kind {
            NodeKind::Data(object) => {
                let over = match &object.over {
                    Over::None => None,
                    Over::Ref(map) => map.get(name).map(Cow::Borrowed),
                    Over::Own(map) => map.get(name).cloned().map(Cow::Owned),
                };
                over.or_else(|| object.row?.get(name).map(Cow::Borrowed))
            }
            NodeKind::Root => {
                let table = self
                    .data
                    .tables
                    .get(self.model.schema.type_name(self.node.ty))?;
                table.rows.first()?.get(name).map(Cow::Borrowed)
            }
            _ => None,
        }
    }

    fn rule(&self, field: &str) -> Option<&'s Rule> {
        let schema = &self.model.schema;
        let on = |ty: TypeId| self.data.rules.get(schema.type_name(ty))?.get(field);
        let interfaces = &schema.types[self.node.ty].interfaces;
        on(self.node.ty).or_else(|| interfaces.iter().find_map(|i| on(*i)))
    }

    fn value(&self, name: &str) -> Result<Cow<'s, Value>, String> {
        if let Some(value) = self.stored(name) {
            return Ok(value);
        }
        let Some(rule) = self.rule(name) else {
            return Ok(Cow::Owned(Value::Null));
        };
        if self.depth >= RULE_DEPTH_MAX {
            return Err(format!("The rule of \"{name}\" depends on itself"));
        }
        // Another field's rule sees no arguments of this one.
        let inner = Subject {
            arguments: &Values::new(),
            depth: self.depth + 1,
            ..*self
        };
        rule.eval(&inner).map(Cow::Owned)
    }

    /// The object behind field `name`, if it is one.
    fn child(&self, name: &str, value: Cow<'s, Value>) -> Option<Node<'s>> {
        let schema = &self.model.schema;
        let field = schema.field_by_name(self.node.ty, name)?;
        let ty = schema.fields[field].ty.id;
        if !schema.types[ty].kind.is_composite() {
            return None;
        }
        match self.data.object(self.model, ty, value) {
            Resolved::Object(node) => Some(node),
            _ => None,
        }
    }

    /// Whether the object has the key members a representation names.
    fn has(&self, key: &FieldSet, representation: &Map<String, Value>) -> bool {
        let mut work: Vec<(Node<'s>, &FieldSet, &Map<String, Value>)> =
            vec![(self.node.clone(), key, representation)];
        while let Some((node, set, wanted)) = work.pop() {
            let subject = Subject {
                node: &node,
                ..*self
            };
            for item in &set.items {
                let (Ok(value), Some(want)) = (subject.value(&item.name), wanted.get(&*item.name))
                else {
                    return false;
                };
                match want {
                    Value::Object(want) => match subject.child(&item.name, value) {
                        Some(child) => work.push((child, &item.sub, want)),
                        None => return false,
                    },
                    want if !same(&value, want) => return false,
                    _ => {}
                }
            }
        }
        true
    }

    /// Whether the object passes `name: wanted` of a filter. Names it does not know pass, so do arguments with
    /// another meaning.
    fn accepts(&self, name: &str, wanted: &Value) -> bool {
        let schema = &self.model.schema;
        let known = |name: &str| {
            self.stored(name).is_some() || schema.field_by_name(self.node.ty, name).is_some()
        };
        let one = |name: &str, wanted: &Value| {
            let value = self.value(name).unwrap_or_default();
            match &*value {
                Value::Array(items) => items.iter().any(|v| same_reference(v, wanted)),
                value => same_reference(value, wanted),
            }
        };
        let singular = name.strip_suffix('s').unwrap_or(name);
        match wanted {
            Value::Array(items) if known(name) => items.iter().any(|w| one(name, w)),
            Value::Array(items) if known(singular) => items.iter().any(|w| one(singular, w)),
            Value::Array(_) => true,
            wanted => !known(name) || one(name, wanted),
        }
    }
}

impl Scope for Subject<'_, '_> {
    fn field(&self, path: &[String]) -> Result<Value, String> {
        let (first, rest) = match path.split_first() {
            Some(parts) => parts,
            None => return Ok(Value::Null),
        };
        let mut value = self.value(first)?;
        let mut owner = self.node.clone();
        let mut name = first;
        for step in rest {
            let subject = Subject {
                node: &owner,
                ..*self
            };
            let child = subject.child(name, value.clone());
            match child {
                Some(child) => {
                    let subject = Subject {
                        node: &child,
                        ..*self
                    };
                    value = subject.value(step)?;
                    owner = child;
                }
                None => value = Cow::Owned(value.get(step).cloned().unwrap_or_default()),
            }
            name = step;
        }
        Ok(value.into_owned())
    }
    fn argument(&self, path: &[String]) -> Value {
        if let ([name], Some(index)) = (path, self.index)
            && name == "index"
        {
            return index.into();
        }
        if path.len() == 1 && path[0] == "arguments" {
            return Value::Object(self.arguments.clone());
        }
        let mut steps = path.iter();
        let first = steps.next().and_then(|name| self.arguments.get(name));
        steps
            .try_fold(first, |value, step| Some(value?.get(step)))
            .flatten()
            .cloned()
            .unwrap_or_default()
    }
}

impl RuleScope for Subject<'_, '_> {
    fn expr(&self) -> &dyn Scope {
        self
    }

    fn rows(&self, list: &ListRule) -> Result<Value, String> {
        let Some(table) = self.data.tables.get(&list.ty) else {
            return Ok(Value::Array(Vec::new()));
        };
        let ids: Vec<u32> = match &list.by {
            Some(field) => self.data.referring(self, &list.ty, field),
            None => (0..table.rows.len() as u32).collect(),
        };
        let mut wanted = Vec::new();
        for (field, rule) in &list.filter {
            wanted.push((field.as_str(), rule.eval(self)?));
        }
        let limit = match &list.first {
            Some(rule) => rule.eval(self)?.as_u64().unwrap_or(u64::MAX) as usize,
            None => usize::MAX,
        };
        let ty = self.model.schema.type_by_name(&list.ty);
        let rows = ids.into_iter().filter(|id| {
            let row = &table.rows[*id as usize];
            let node = Node::new(ty.unwrap_or(self.node.ty), row_kind(row));
            let subject = Subject {
                node: &node,
                ..*self
            };
            wanted.iter().all(|(f, w)| subject.accepts(f, w))
        });
        let marks = rows.take(limit).map(|id| {
            let mut map = Map::new();
            map.insert("$row".into(), serde_json::json!([list.ty, id]));
            Value::Object(map)
        });
        Ok(Value::Array(marks.collect()))
    }

    fn at_index<'a>(&'a self, index: usize) -> Box<dyn RuleScope + 'a> {
        Box::new(Subject {
            index: Some(index),
            ..*self
        })
    }
}

/// A value equals what was asked for, be it a scalar or a reference (`1`, `"User/1"`, `{ $ref: .. }`).
fn same_reference(value: &Value, wanted: &Value) -> bool {
    if same(value, wanted) {
        return true;
    }
    match (spelled(value), spelled(wanted)) {
        (Some(value), Some(wanted)) => {
            value == wanted || value.split_once('/').is_some_and(|(_, key)| key == wanted)
        }
        _ => false,
    }
}

fn row_kind(row: &Map<String, Value>) -> NodeKind<'_> {
    NodeKind::Data(DataNode {
        row: Some(row),
        over: Over::None,
    })
}

fn data_node<'s>(
    ty: TypeId,
    row: Option<&'s Map<String, Value>>,
    over: Map<String, Value>,
) -> Node<'s> {
    let over = Over::Own(Arc::new(over));
    Node::new(ty, NodeKind::Data(DataNode { row, over }))
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

/// The object types a value of a type can have, in schema order.
fn possible(schema: &Schema, ty: TypeId) -> impl Iterator<Item = TypeId> {
    schema.types[ty].possible.iter().map(TypeId)
}

/// The concrete type of an inline object: `__typename`, the only possible type, or the first that has all its fields.
fn concrete_of(schema: &Schema, declared: TypeId, map: &Map<String, Value>) -> Option<TypeId> {
    if let Some(Value::String(name)) = map.get("__typename") {
        if let Some(ty) = schema.type_by_name(name) {
            return Some(ty);
        }
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
fn has_members(key: &FieldSet, map: &Map<String, Value>) -> bool {
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
