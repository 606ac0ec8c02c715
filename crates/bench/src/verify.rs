//! Whether an answer is right: JSON values are compared with those of one server that holds all data.
//!
//! Whitespace and the spelling of numbers do not count (`1.0` is `1`); missing, additional and differing values do. The
//! order of keys is told apart from wrong values: the specification asks for the order of the operation, but clients
//! that read JSON objects do not see it, so it is a flag and not a disqualification.

use serde_json::Value;

/// How an answer differs from the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Another value.
    Value(String),
    /// The same values under keys in another order.
    Order(String),
}

/// What a right answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The same `data`, no errors.
    Same,
    /// The same `data`, and errors.
    DataAndErrors,
}

/// Compares an answer with the expected one.
pub fn compare(expected: &[u8], answer: &[u8], rule: Rule) -> Result<(), Difference> {
    let wrong = |text: String| Err(Difference::Value(text));
    let expected: Value = match serde_json::from_slice(expected) {
        Ok(value) => value,
        Err(error) => return wrong(format!("the expected answer is no JSON: {error}")),
    };
    let answer: Value = match serde_json::from_slice(answer) {
        Ok(value) => value,
        Err(_) => {
            return wrong(format!(
                "no JSON: {}",
                short(&String::from_utf8_lossy(answer))
            ));
        }
    };
    let errors = answer["errors"]
        .as_array()
        .filter(|errors| !errors.is_empty());
    match (rule, errors) {
        (Rule::Same, Some(errors)) => {
            let first = errors.first().map_or(Value::Null, |e| e["message"].clone());
            return wrong(format!(
                "{} error(s), the first: {}",
                errors.len(),
                short(&first.to_string())
            ));
        }
        (Rule::DataAndErrors, None) => return wrong("no errors, though a subgraph fails".into()),
        _ => {}
    }
    let mut order = None;
    values(
        &expected["data"],
        &answer["data"],
        &mut "data".to_owned(),
        &mut order,
    )
    .map_err(Difference::Value)?;
    match order {
        Some(place) => Err(Difference::Order(place)),
        None => Ok(()),
    }
}

/// Nesting is bounded by the JSON reader.
fn values(
    expected: &Value,
    answer: &Value,
    path: &mut String,
    order: &mut Option<String>,
) -> Result<(), String> {
    let length = path.len();
    match (expected, answer) {
        (Value::Object(expected), Value::Object(answer)) => {
            for (key, value) in expected {
                let Some(found) = answer.get(key) else {
                    return Err(format!("{path}.{key} is missing"));
                };
                path.push('.');
                path.push_str(key);
                values(value, found, path, order)?;
                path.truncate(length);
            }
            if let Some(key) = answer.keys().find(|key| !expected.contains_key(*key)) {
                return Err(format!("{path}.{key} was not asked for"));
            }
            if order.is_none() && !expected.keys().eq(answer.keys()) {
                *order = Some(format!("keys of {path} are in another order"));
            }
        }
        (Value::Array(expected), Value::Array(answer)) => {
            if expected.len() != answer.len() {
                return Err(format!(
                    "{path} has {} items, not {}",
                    answer.len(),
                    expected.len()
                ));
            }
            for (i, (value, found)) in expected.iter().zip(answer).enumerate() {
                path.push_str(&format!("[{i}]"));
                values(value, found, path, order)?;
                path.truncate(length);
            }
        }
        (Value::Number(a), Value::Number(b))
            if a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64()) => {}
        (a, b) if a == b => {}
        (a, b) => {
            return Err(format!(
                "{path} is {}, not {}",
                short(&b.to_string()),
                short(&a.to_string())
            ));
        }
    }
    Ok(())
}

fn short(text: &str) -> String {
    const MAX: usize = 120;
    let text = text.trim();
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, answer: &str) -> Result<(), Difference> {
        compare(expected.as_bytes(), answer.as_bytes(), Rule::Same)
    }

    #[test]
    fn whitespace_numbers_and_extensions_do_not_count() {
        let expected = r#"{"data":{"a":[1.0,2],"b":null}}"#;
        assert_eq!(
            check(
                expected,
                "{ \"data\": {\"a\": [1, 2.0], \"b\": null}, \"extensions\": {} }\n"
            ),
            Ok(())
        );
    }

    #[test]
    fn silent_nulls_errors_and_missing_values_do() {
        let expected = r#"{"data":{"a":{"b":"x"},"c":[1]}}"#;
        let wrong = |answer: &str, part: &str| match check(expected, answer) {
            Err(Difference::Value(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{answer}: {other:?}"),
        };
        wrong(
            r#"{"data":{"a":{"b":null},"c":[1]}}"#,
            "data.a.b is null, not \"x\"",
        );
        wrong(r#"{"data":{"a":{"b":"x"}}}"#, "data.c is missing");
        wrong(
            r#"{"data":{"a":{"b":"x","d":1},"c":[1]}}"#,
            "data.a.d was not asked for",
        );
        wrong(
            r#"{"data":{"a":{"b":"x"},"c":[1,2]}}"#,
            "data.c has 2 items, not 1",
        );
        wrong(
            r#"{"data":{"a":{"b":"x"},"c":[1]},"errors":[{"message":"no"}]}"#,
            "the first: \"no\"",
        );
        wrong("<html>", "no JSON: <html>");
        wrong(r#"{"data":null}"#, "data is null");
    }

    #[test]
    fn another_order_is_told_apart() {
        let other = check(r#"{"data":{"a":1,"b":2}}"#, r#"{"data":{"b":2,"a":1}}"#);
        assert_eq!(
            other,
            Err(Difference::Order(
                "keys of data are in another order".into()
            ))
        );
        // A wrong value behind a wrong order is a wrong value.
        assert!(matches!(
            check(r#"{"data":{"a":1,"b":2}}"#, r#"{"data":{"b":3,"a":1}}"#),
            Err(Difference::Value(_))
        ));
    }

    #[test]
    fn where_a_subgraph_fails_errors_must_be_told() {
        let rule = |answer: &str| {
            compare(
                br#"{"data":{"a":null}}"#,
                answer.as_bytes(),
                Rule::DataAndErrors,
            )
        };
        assert_eq!(
            rule(r#"{"data":{"a":null},"errors":[{"message":"down"}]}"#),
            Ok(())
        );
        assert!(rule(r#"{"data":{"a":null}}"#).is_err());
    }
}
