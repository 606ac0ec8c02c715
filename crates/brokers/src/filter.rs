//! Which events a subscription wants: `@openfed__subscriptionFilter`, evaluated before anything is fetched.

use ogive_federation::EventCondition;
use ogive_schema::ConstValue;
use serde_json::{Map, Value};

use crate::template::{Template, scalar};

/// A condition whose templates are read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    In(Vec<Box<str>>, Vec<FilterValue>),
}

/// What is compared with: a value, or arguments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum FilterValue {
    Null,
    Text(Box<str>),
    Template(Template),
}

/// A condition for one subscription: arguments are values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// `None` stands for null.
    In(Vec<Box<str>>, Vec<Option<Box<str>>>),
}

impl Filter {
    pub(crate) fn new(condition: &EventCondition) -> Filter {
        match condition {
            EventCondition::And(list) => Filter::And(list.iter().map(Filter::new).collect()),
            EventCondition::Or(list) => Filter::Or(list.iter().map(Filter::new).collect()),
            EventCondition::Not(one) => Filter::Not(Box::new(Filter::new(one))),
            EventCondition::In(path, values) => {
                Filter::In(path.clone(), values.iter().filter_map(wanted).collect())
            }
        }
    }
    /// The condition with these arguments.
    pub(crate) fn with(&self, arguments: &Map<String, Value>) -> Result<Condition, String> {
        let all = |list: &[Filter]| -> Result<Vec<Condition>, String> {
            list.iter().map(|one| one.with(arguments)).collect()
        };
        Ok(match self {
            Filter::And(list) => Condition::All(all(list)?),
            Filter::Or(list) => Condition::Any(all(list)?),
            Filter::Not(one) => Condition::Not(Box::new(one.with(arguments)?)),
            Filter::In(path, values) => {
                let mut known = Vec::new();
                for value in values {
                    match value {
                        FilterValue::Null => known.push(None),
                        FilterValue::Text(text) => known.push(Some(text.clone())),
                        FilterValue::Template(template) => match template.values(arguments) {
                            Some(list) => known.extend(list.into_iter().map(comparable)),
                            None => known.push(Some(template.text(arguments)?.into())),
                        },
                    }
                }
                Condition::In(path.clone(), known)
            }
        })
    }
}

fn wanted(value: &ConstValue) -> Option<FilterValue> {
    Some(match value {
        ConstValue::Null => FilterValue::Null,
        ConstValue::String(text) if text.contains("{{") => {
            FilterValue::Template(Template::new(text))
        }
        ConstValue::String(text)
        | ConstValue::Int(text)
        | ConstValue::Float(text)
        | ConstValue::Enum(text) => FilterValue::Text(text.clone()),
        ConstValue::Boolean(is) => FilterValue::Text(is.to_string().into()),
        ConstValue::List(_) | ConstValue::Object(_) => return None,
    })
}

/// What is compared: an id is the same as a number and as a text.
fn comparable(value: &Value) -> Option<Box<str>> {
    scalar(value).map(Box::from)
}

impl Condition {
    /// Whether an event is wanted.
    pub(crate) fn holds(&self, event: &Value) -> bool {
        match self {
            Condition::All(list) => list.iter().all(|one| one.holds(event)),
            Condition::Any(list) => list.iter().any(|one| one.holds(event)),
            Condition::Not(one) => !one.holds(event),
            Condition::In(path, values) => {
                let mut found = event;
                for name in path {
                    match found.get(&**name) {
                        Some(below) => found = below,
                        None => return false,
                    }
                }
                if found.is_array() || found.is_object() {
                    return false;
                }
                let found = comparable(found);
                values.contains(&found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> ConstValue {
        ConstValue::String(text.into())
    }

    #[test]
    fn conditions_hold_for_what_they_say() {
        let is_in = |path: &str, values: Vec<ConstValue>| {
            EventCondition::In(path.split('.').map(Box::from).collect(), values)
        };
        let condition = EventCondition::And(vec![
            EventCondition::Or(vec![
                is_in(
                    "id",
                    vec![text("{{ args.ids }}"), ConstValue::Int("7".into())],
                ),
                is_in("owner.name", vec![text("u-{{ args.user }}")]),
            ]),
            EventCondition::Not(Box::new(is_in("gone", vec![ConstValue::Boolean(true)]))),
        ]);
        let arguments = json!({"ids": ["1", 2], "user": "ida"});
        let condition = Filter::new(&condition)
            .with(arguments.as_object().unwrap())
            .unwrap();
        for (event, holds) in [
            (json!({"id": 1}), true),
            (json!({"id": "2"}), true),
            (json!({"id": 7}), true),
            (json!({"id": 3}), false),
            (json!({"id": 1, "gone": true}), false),
            (json!({"id": 3, "owner": {"name": "u-ida"}}), true),
            (json!({"id": [1]}), false),
            (json!({}), false),
            (json!(1), false),
        ] {
            assert_eq!(condition.holds(&event), holds, "{event}");
        }
    }
}
