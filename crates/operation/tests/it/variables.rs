//! Variable coercion: recorded cases, exact bytes, limits.
//!
//! `variables/<topic>.txt` holds the cases, `variables/<topic>.expected.json` what graphql 16 said (written by
//! `oracle/operation/record_variables.mjs`).

use std::{fs, path::PathBuf};

use ogive_json::Tree;
use ogive_operation::{Variables, coerce_variables};
use ogive_schema::Schema;
use serde_json::Value;

use crate::files::{document, schema, tests_dir};

fn coerce(schema: &Schema, definitions: &str, input: &str) -> Result<Variables, Vec<String>> {
    let document = document(&format!("query {definitions} {{ count }}"));
    let operation = document.operations().next().unwrap();
    let input = Tree::read(input.as_bytes(), 128).unwrap();
    coerce_variables(schema, &document, operation, Some(input.root()), true)
        .map_err(|errors| errors.into_iter().map(|e| e.message).collect())
}

/// Values in the form of the recorded file: by variable name, absent ones left out.
fn by_name(definitions: &str, variables: &Variables) -> Value {
    let document = document(&format!("query {definitions} {{ count }}"));
    let operation = document.operations().next().unwrap();
    let names = document[operation.variables].iter();
    let rows = names.zip(&variables.values).filter_map(|(v, value)| {
        let value = serde_json::from_str(value.as_deref()?).unwrap();
        Some((document.name(v.name).to_owned(), value))
    });
    Value::Object(rows.collect())
}

/// Equal up to the digits of numbers: the recorded ones went through JavaScript.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((name_a, a), (name_b, b))| name_a == name_b && same(a, b))
        }
        _ => a == b,
    }
}

#[test]
fn values_and_messages_equal_the_recorded_ones() {
    let schema = schema("zoo");
    let mut files: Vec<PathBuf> = fs::read_dir(tests_dir().join("variables"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    let mut n = 0;
    let mut failures = Vec::new();
    for path in files {
        let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            n += 1;
            let (definitions, input) = line.split_once(") {").unwrap();
            let (definitions, input) = (format!("{definitions})"), format!("{{{input}"));
            let want = &expected[line];
            let agrees = match coerce(&schema, &definitions, &input) {
                Ok(variables) => {
                    let got = by_name(&definitions, &variables);
                    (!want["coerced"].is_null() && same(&got, &want["coerced"]))
                        .then_some(())
                        .ok_or_else(|| got.to_string())
                }
                Err(messages) => {
                    let got = serde_json::json!(messages);
                    (want["errors"] == got)
                        .then_some(())
                        .ok_or_else(|| got.to_string())
                }
            };
            if let Err(got) = agrees {
                failures.push(format!("{line}\n  want {want}\n  got  {got}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {n}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(n >= 300, "only {n} cases");
}

fn texts(definitions: &str, input: &str) -> Vec<Option<String>> {
    let variables = coerce(&schema("zoo"), definitions, input).unwrap();
    let texts = variables.values.into_iter();
    texts.map(|v| v.map(String::from)).collect()
}

#[test]
fn numbers_and_custom_scalars_keep_their_bytes() {
    let of = |definitions: &str, input: &str| texts(definitions, input)[0].clone().unwrap();
    assert_eq!(of("($x: Float)", r#"{"x": 1.10}"#), "1.10");
    assert_eq!(
        of("($x: Float)", r#"{"x": 123456789012345678901}"#),
        "123456789012345678901"
    );
    assert_eq!(of("($x: Float = 1.50)", "{}"), "1.50");
    assert_eq!(of("($x: Int)", r#"{"x": 1e3}"#), "1000");
    assert_eq!(
        of("($x: ID)", r#"{"x": 12345678901234567890}"#),
        "\"12345678901234567890\""
    );
    assert_eq!(
        of(
            "($x: Anything)",
            r#"{"x": {"z": 1.00, "a": [1.50e+5, 12345678901234567890]}}"#
        ),
        r#"{"z":1.00,"a":[1.50e+5,12345678901234567890]}"#
    );
}

#[test]
fn absent_null_and_default_are_told_apart() {
    let some = |text: &str| Some(text.to_owned());
    let definitions = "($a: Int, $b: Int, $c: Int = 1, $d: Int = 1, $e: [Point!] = {x: 1, y: 2})";
    assert_eq!(
        texts(definitions, r#"{"b": null, "d": null}"#),
        [
            None,
            some("null"),
            some("1"),
            some("null"),
            some(r#"[{"x":1,"y":2,"label":"here"}]"#)
        ]
    );
}

#[test]
fn booleans_are_readable_by_index() {
    let schema = schema("zoo");
    let variables = coerce(
        &schema,
        "($a: Boolean!, $b: Boolean, $c: Int)",
        r#"{"a": true, "c": 1}"#,
    );
    let variables = variables.unwrap();
    assert_eq!(
        [0, 1, 2, 9].map(|i| variables.boolean(i)),
        [Some(true), None, None, None]
    );
}

#[test]
fn deep_values_are_refused_before_anything_recurses() {
    let nested = |depth: usize| {
        let document = document("query ($x: Anything) { count }");
        let operation = document.operations().next().unwrap();
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let input = format!(r#"{{"x":{open}null{close}}}"#);
        let input = Tree::read(input.as_bytes(), 300).unwrap();
        let result = coerce_variables(
            &schema("zoo"),
            &document,
            operation,
            Some(input.root()),
            true,
        );
        result.map_err(|errors| errors[0].message.clone())
    };
    assert!(nested(200).is_ok());
    assert_eq!(
        nested(201).unwrap_err(),
        "Variable \"$x\" got a value nested more than 200 levels deep."
    );
}

/// A million wrong values, each with a message that has a name of a megabyte in it, would take minutes to word.
#[test]
fn what_nobody_will_hear_of_is_not_worded() {
    let zoo = schema("zoo");
    let name = "x".repeat(1_000_000);
    let definitions = format!("(${name}: [Int])");
    let wrong = format!("[{}\"\"]", "\"\",".repeat(1_000_000));
    let errors = coerce(&zoo, &definitions, &format!("{{\"{name}\":{wrong}}}")).unwrap_err();
    assert_eq!(errors.len(), 3);
    assert!(errors[2].starts_with("Too many errors"), "{}", errors[2]);
    // Twice in each message. A short one is there as often as ever.
    let errors = coerce(&zoo, "($x: [Int])", &format!("{{\"x\":{wrong}}}")).unwrap_err();
    assert_eq!(errors.len(), 51);
    assert!(errors[50].starts_with("Too many errors"), "{}", errors[50]);
}

#[test]
fn errors_point_at_the_definition_and_carry_the_code() {
    let text = "query ($a: Int, $b: Int!) { count }";
    let document = document(text);
    let operation = document.operations().next().unwrap();
    let errors = coerce_variables(&schema("zoo"), &document, operation, None, true).unwrap_err();
    assert_eq!(errors[0].code, "VALIDATION_INVALID_TYPE_VARIABLE");
    assert_eq!(document.text(errors[0].labels[0].span), "$b: Int!");
}
