//! The messages of every stage as JSON schemas, and what of that language they need.

use serde_json::Value;

/// Checks a message against the schema of its stage.
pub(crate) fn check(message: &Value) {
    let stage = message["stage"].as_str().unwrap();
    let schemas: Value = serde_json::from_str(include_str!("schemas.json")).unwrap();
    let mut wrong = Vec::new();
    look(message, &schemas[stage], &schemas, stage, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}\n{message:#}");
}

fn look(value: &Value, schema: &Value, all: &Value, at: &str, wrong: &mut Vec<String>) {
    assert!(schema.is_object(), "no schema: {at}");
    if let Some(name) = schema["$ref"].as_str() {
        return look(value, &all["$defs"][name], all, at, wrong);
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        wrong.push(format!("{at}: {value} is not {constant}"));
    }
    let is = match schema["type"].as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some(other) => panic!("{other}"),
    };
    if !is {
        wrong.push(format!("{at}: {value} is not of type {}", schema["type"]));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            wrong.push(format!("{at}: there is no {name}"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (
            schema["properties"].get(name),
            schema.get("additionalProperties"),
        ) {
            (Some(schema), _) => look(member, schema, all, &at, wrong),
            (None, Some(Value::Bool(false))) => wrong.push(format!("{at} is not known")),
            (None, Some(Value::Object(_))) => {
                look(member, &schema["additionalProperties"], all, &at, wrong);
            }
            _ => {}
        }
    }
    if let Some(items) = schema.get("items") {
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            look(item, items, all, &format!("{at}[{index}]"), wrong);
        }
    }
}
