//! JSON as values of Cedar.
//!
//! Claims are of a token, so nothing in them names an entity: an object is a record, whatever its members are called. The
//! file of entities is the operator's, and may use the escapes of Cedar's own format.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use serde_json::{Map, Value};

/// An entity before it is one: attributes and parents.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntityParts {
    pub(crate) attributes: HashMap<String, RestrictedExpression>,
    pub(crate) parents: HashSet<EntityUid>,
    /// The entities that its attributes name.
    pub(crate) named: Vec<EntityUid>,
}

impl EntityParts {
    /// The entities that can be come to from it in one step.
    pub(crate) fn next(&self) -> impl Iterator<Item = &EntityUid> {
        self.parents.iter().chain(&self.named)
    }
}

/// What names an entity.
pub(crate) fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// Claims as attributes. What is null is not there.
pub(crate) fn attributes(claims: &Map<String, Value>) -> HashMap<String, RestrictedExpression> {
    let all = claims.iter();
    all.filter_map(|(name, value)| Some((name.clone(), claimed(value)?)))
        .collect()
}

/// A claim. A number that is no whole one of 64 bits is its text, so that it is not taken for one that is not there.
fn claimed(value: &Value) -> Option<RestrictedExpression> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => RestrictedExpression::new_long(number),
            None => RestrictedExpression::new_string(number.to_string()),
        },
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Array(items) => RestrictedExpression::new_set(items.iter().filter_map(claimed)),
        Value::Object(members) => RestrictedExpression::new_record(attributes(members)).ok()?,
    })
}

/// Texts as a set.
pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> RestrictedExpression {
    let texts = texts.into_iter();
    RestrictedExpression::new_set(
        texts.map(|text| RestrictedExpression::new_string(text.to_owned())),
    )
}

/// The entities of a file, in Cedar's format.
pub(crate) fn entities(json: &str) -> Result<HashMap<EntityUid, EntityParts>, String> {
    let Ok(Value::Array(items)) = serde_json::from_str(json) else {
        return Err("the entities are no JSON list".into());
    };
    let mut all = HashMap::new();
    for item in &items {
        let Value::Object(members) = item else {
            return Err("an entity is no JSON object".into());
        };
        const KNOWN: [&str; 3] = ["uid", "attrs", "parents"];
        if let Some(other) = members.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(format!(
                "an entity has `uid`, `attrs` and `parents`, not `{other}`"
            ));
        }
        let uid = members.get("uid").ok_or("an entity has no `uid`")?;
        let uid = reference(uid)?;
        let mut parts = EntityParts::default();
        match members.get("attrs") {
            None => {}
            Some(Value::Object(attributes)) => {
                for (name, value) in attributes {
                    let value = stored(value, &mut parts.named);
                    let value = value.map_err(|why| format!("{uid}: `{name}`: {why}"))?;
                    parts.attributes.insert(name.clone(), value);
                }
            }
            Some(_) => return Err(format!("{uid}: `attrs` is no object")),
        }
        match members.get("parents") {
            None => {}
            Some(Value::Array(parents)) => {
                for parent in parents {
                    parts.parents.insert(reference(parent)?);
                }
            }
            Some(_) => return Err(format!("{uid}: `parents` is no list")),
        }
        // Whether it is one.
        entity(&uid, &parts)?;
        let shown = uid.to_string();
        if all.insert(uid, parts).is_some() {
            return Err(format!("{shown} is there twice"));
        }
    }
    Ok(all)
}

pub(crate) fn entity(uid: &EntityUid, parts: &EntityParts) -> Result<Entity, String> {
    let (attributes, parents) = (parts.attributes.clone(), parts.parents.clone());
    Entity::new(uid.clone(), attributes, parents).map_err(|error| format!("{uid}: {error}"))
}

/// `{ "type": "User", "id": "ida" }`, also below `__entity`.
fn reference(value: &Value) -> Result<EntityUid, String> {
    let value = value.get("__entity").unwrap_or(value);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let (Some(kind), Some(id)) = (text("type"), text("id")) else {
        return Err("an entity is named by `type` and `id`".into());
    };
    let kind: EntityTypeName = kind
        .parse()
        .map_err(|error| format!("`{kind}` is no type: {error}"))?;
    Ok(uid(&kind, id))
}

/// A value of the file of entities; `named` gets the entities in it.
fn stored(value: &Value, named: &mut Vec<EntityUid>) -> Result<RestrictedExpression, String> {
    Ok(match value {
        Value::Null => return Err("there is no null in Cedar".into()),
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => {
            let number = number
                .as_i64()
                .ok_or("a number is a whole one of 64 bits")?;
            RestrictedExpression::new_long(number)
        }
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Array(items) => {
            let items = items.iter().map(|item| stored(item, named));
            let items: Result<Vec<_>, String> = items.collect();
            RestrictedExpression::new_set(items?)
        }
        Value::Object(members) if members.contains_key("__entity") => {
            let uid = reference(value)?;
            named.push(uid.clone());
            RestrictedExpression::new_entity_uid(uid)
        }
        Value::Object(members) if members.contains_key("__extn") => {
            let called = &members["__extn"];
            let text = |name: &str| called.get(name).and_then(Value::as_str);
            match (text("fn"), text("arg")) {
                (Some("ip"), Some(address)) => RestrictedExpression::new_ip(address),
                (Some("decimal"), Some(number)) => RestrictedExpression::new_decimal(number),
                _ => return Err("`__extn` is `ip` or `decimal` of a text".into()),
            }
        }
        Value::Object(members) => {
            let members: Result<Vec<_>, String> = members
                .iter()
                .map(|(name, value)| Ok((name.clone(), stored(value, named)?)))
                .collect();
            RestrictedExpression::new_record(members?).map_err(|error| error.to_string())?
        }
    })
}
