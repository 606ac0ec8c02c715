//! Values read through field sets: representations, and members of them.

use serde_json::{Map, Value as Json};

use super::{Object, Value, World, arguments::set_args};
use crate::graph::{FieldSet, Item};

impl World {
    /// The true values of a field set, as JSON.
    pub(super) fn project(&self, object: &Object, set: &FieldSet) -> Json {
        let mut out = Map::new();
        for item in set.of_type(&|on| self.model.possible(on).contains(&&*object.ty)) {
            let Item::Field { name, args, sub } = item else {
                continue;
            };
            if name == "__typename" {
                continue;
            }
            let Some(field) = self.model.field(&object.ty, name) else {
                continue;
            };
            let required = field.requires().map(|(_, r)| self.project(object, r));
            let args = set_args(&field.args, args);
            let value = self.truth(object, field, &args, required.as_ref());
            out.insert(name.clone(), self.project_value(&value, sub));
        }
        Json::Object(out)
    }

    pub(super) fn project_value(&self, value: &Value, sub: &FieldSet) -> Json {
        match value {
            Value::Null | Value::Error(_) => Json::Null,
            Value::Leaf(json) => json.clone(),
            Value::List(items) => {
                Json::Array(items.iter().map(|v| self.project_value(v, sub)).collect())
            }
            Value::Object(object) => self.project(object, sub),
        }
    }

    /// The values of a field set that a representation carries. What is missing says so.
    pub(super) fn project_json(&self, json: &Map<String, Json>, ty: &str, set: &FieldSet) -> Json {
        let mut out = Map::new();
        let concrete = json.get("__typename").and_then(Json::as_str).unwrap_or(ty);
        for item in set.of_type(&|on| self.model.possible(on).contains(&concrete)) {
            let Item::Field { name, sub, .. } = item else {
                continue;
            };
            if name == "__typename" {
                continue;
            }
            let child = self
                .model
                .field(concrete, name)
                .and_then(|f| f.sources.values().next())
                .map_or("", |s| s.ty.name());
            let value = match json.get(name) {
                None => Json::from("(missing)"),
                Some(value) => self.project_json_value(value, child, sub),
            };
            out.insert(name.clone(), value);
        }
        Json::Object(out)
    }

    pub(super) fn project_json_value(&self, value: &Json, ty: &str, sub: &FieldSet) -> Json {
        match value {
            Json::Array(items) => Json::Array(
                items
                    .iter()
                    .map(|v| self.project_json_value(v, ty, sub))
                    .collect(),
            ),
            Json::Object(map) if !sub.is_empty() => self.project_json(map, ty, sub),
            other => other.clone(),
        }
    }
}
