//! What a selection takes of an event, as the answer of a subgraph.
//!
//! An event says what it is by `__typename`; where only one type can be meant it need not. A field that may not be null
//! and is not there is an error that names it, since without a key nothing else of an entity can be fetched.

use ogive_execute::SubgraphResponse;
use ogive_failure::{ErrorCode, codes};
use ogive_syntax::ast::{Field, SelectionSet};
use serde_json::Value;

use crate::{fields::EventFields, request::EventRequest};

/// Most errors of one event.
const ERRORS_MAX: usize = 10;

/// Writes an answer.
pub(crate) struct Answer<'a> {
    asked: &'a EventRequest,
    fields: &'a EventFields,
    out: String,
    /// Messages with their places.
    errors: Vec<(String, Vec<Value>)>,
    /// Where the value stands that is written now.
    path: Vec<Value>,
}

/// The answer to one root field.
pub(crate) fn answer(
    asked: &EventRequest,
    fields: &EventFields,
    field: &Field,
    of: &str,
    value: &Value,
) -> Vec<u8> {
    let mut answer = Answer {
        asked,
        fields,
        out: String::from("{\"data\":{"),
        errors: Vec::new(),
        path: Vec::new(),
    };
    answer.member(field, of, Some(value));
    answer.finish()
}

impl<'a> Answer<'a> {
    fn finish(mut self) -> Vec<u8> {
        self.out.push('}');
        if !self.errors.is_empty() {
            let errors: Vec<Value> = self
                .errors
                .iter()
                .map(|(message, path)| {
                    let code = codes::EVENT_INCOMPLETE.as_str();
                    serde_json::json!({ "message": message, "path": path, "extensions": { "code": code } })
                })
                .collect();
            self.out.push_str(",\"errors\":");
            self.out.push_str(&Value::Array(errors).to_string());
        }
        self.out.push('}');
        self.out.into_bytes()
    }
    fn member(&mut self, field: &Field, of: &str, value: Option<&Value>) {
        self.key(field);
        let key = self.asked.document.name(field.response_key());
        self.path.push(key.into());
        self.value(field.selection_set, of, value.unwrap_or(&Value::Null));
        self.path.pop();
    }
    fn key(&mut self, field: &Field) {
        self.out.push('"');
        // Names need no escapes.
        self.out
            .push_str(self.asked.document.name(field.response_key()));
        self.out.push_str("\":");
    }
    fn value(&mut self, set: Option<SelectionSet>, of: &str, value: &Value) {
        match (set, value) {
            (None, value) => self.out.push_str(&value.to_string()),
            (Some(set), Value::Object(_)) => self.object(set, of, value),
            (Some(set), Value::Array(list)) => {
                self.out.push('[');
                for (at, one) in list.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.path.push(at.into());
                    self.value(Some(set), of, one);
                    self.path.pop();
                }
                self.out.push(']');
            }
            (Some(_), Value::Null) => self.out.push_str("null"),
            (Some(_), _) => {
                self.error(format!(
                    "An event has a scalar where it should have a `{of}`."
                ));
                self.out.push_str("null");
            }
        }
    }
    fn object(&mut self, set: SelectionSet, of: &str, value: &Value) {
        let declared = self.fields.types.get(of);
        let named = value.get("__typename").and_then(Value::as_str);
        let only = declared.filter(|ty| ty.possible.len() == 1);
        let Some(name) = named.or(only.map(|ty| &*ty.possible[0])) else {
            self.error(format!(
                "An event does not say by `__typename` which `{of}` it is."
            ));
            self.out.push_str("null");
            return;
        };
        if !declared.is_some_and(|ty| ty.possible.iter().any(|known| **known == *name)) {
            let name = ogive_base::foreign::bounded_name(name);
            self.error(format!("An event is a `{name}`, which is no `{of}`."));
            self.out.push_str("null");
            return;
        }
        let types = &self.fields.types;
        let mut fields = Vec::new();
        let mut applies = |condition: &str| {
            let condition = types.get(condition);
            condition.is_some_and(|ty| ty.possible.iter().any(|known| **known == *name))
        };
        self.asked.collect(set, &mut applies, &mut fields);
        let row = types.get(name);
        self.out.push('{');
        let mut written: Vec<&str> = Vec::with_capacity(fields.len());
        for field in &fields {
            let document = &self.asked.document;
            let key = document.name(field.response_key());
            if written.contains(&key) {
                continue;
            }
            if !written.is_empty() {
                self.out.push(',');
            }
            written.push(key);
            let field_name = document.name(field.name);
            if field_name == "__typename" {
                self.key(field);
                self.out.push_str(&Value::from(name).to_string());
                continue;
            }
            let found = value.get(field_name).filter(|value| !value.is_null());
            let (below, non_null) = match row.and_then(|row| row.fields.get(field_name)) {
                Some((below, non_null)) => (&**below, *non_null),
                None => ("", false),
            };
            if found.is_none() && non_null {
                self.path.push(key.into());
                self.error(format!("An event does not carry `{name}.{field_name}`."));
                self.path.pop();
            }
            self.member(field, below, found);
        }
        self.out.push('}');
    }
    fn error(&mut self, message: String) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push((message, self.path.clone()));
        }
    }
}

/// The answer where there is no event that could be read; the subscription goes on.
pub(crate) fn malformed(code: ErrorCode, message: &str) -> Vec<u8> {
    let error = serde_json::json!({ "message": message, "extensions": { "code": code.as_str() } });
    format!("{{\"data\":null,\"errors\":[{error}]}}").into_bytes()
}

/// The answer to an event that cannot be used.
pub(crate) fn unusable(code: ErrorCode, message: &str) -> SubgraphResponse {
    SubgraphResponse {
        status: 200,
        body: malformed(code, message).into(),
    }
}
