//! An object that names are looked up on: what expressions, rules, filters and keys see.
//!
//! Invariants: nothing here changes the data; rules see at most [`RULE_DEPTH_MAX`] rules deep.

use std::borrow::Cow;

use ogive_schema::TypeId;
use serde_json::{Map, Value};

use super::{
    Data,
    expr::{Scope, same},
    rule::{ListRule, Rule, RuleScope},
    spelled,
};
use crate::{
    input::Values,
    model::{FieldSet, Model},
    node::{Node, NodeKind, Over, Resolved},
};

/// Deepest chain of rules that read each other.
const RULE_DEPTH_MAX: usize = 16;

/// An object that names are looked up on.
#[derive(Clone, Copy)]
pub(super) struct Subject<'c, 's> {
    pub(super) data: &'s Data,
    pub(super) model: &'s Model,
    pub(super) node: &'c Node<'s>,
    pub(super) arguments: &'c Values,
    pub(super) index: Option<usize>,
    pub(super) depth: usize,
}

impl<'s> Subject<'_, 's> {
    /// The value laid over the object or stored in its row.
    pub(super) fn stored(&self, name: &str) -> Option<Cow<'s, Value>> {
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

    pub(super) fn rule(&self, field: &str) -> Option<&'s Rule> {
        let schema = &self.model.schema;
        let on = |ty: TypeId| self.data.rules.get(schema.type_name(ty))?.get(field);
        let interfaces = &schema.types[self.node.ty].interfaces;
        on(self.node.ty).or_else(|| interfaces.iter().find_map(|i| on(*i)))
    }

    pub(super) fn value(&self, name: &str) -> Result<Cow<'s, Value>, String> {
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
    pub(super) fn child(&self, name: &str, value: Cow<'s, Value>) -> Option<Node<'s>> {
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
    pub(super) fn has(&self, key: &FieldSet, representation: &Map<String, Value>) -> bool {
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
    pub(super) fn accepts(&self, name: &str, wanted: &Value) -> bool {
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
            let node = Node::new(ty.unwrap_or(self.node.ty), NodeKind::of_row(row));
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
