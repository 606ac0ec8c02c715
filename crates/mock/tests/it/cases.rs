//! Execution cases from `tests/cases`, with answers recorded from the reference implementation
//! (`node oracle/mock/record.mjs`). Data, error paths and error locations must be equal; so must messages of errors
//! that data raises itself or that null propagation raises.

use std::{fs, path::Path};

use ogive_mock::{Data, Federation, Options, Source, Subgraph};
use serde_json::{Map, Value, json};

#[test]
fn execution_agrees_with_the_reference_implementation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    let mut n_cases = 0;
    let mut wrong = Vec::new();
    for path in names {
        let file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let subgraph = subgraph(&file);
        for case in file["cases"].as_array().unwrap() {
            n_cases += 1;
            let variables = case["variables"].as_object().cloned().unwrap_or_default();
            let answer = subgraph.execute(
                case["query"].as_str().unwrap(),
                case["operationName"].as_str(),
                &variables,
                &Default::default(),
            );
            let found: Value = serde_json::from_slice(&answer.body).unwrap();
            let expected = &case["expected"];
            if let Some(difference) = compare(&found, expected) {
                wrong.push(format!(
                    "{}: {}: {difference}\n  found    {found}\n  expected {expected}",
                    path.file_stem().unwrap().to_string_lossy(),
                    case["name"].as_str().unwrap(),
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {n_cases}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(n_cases >= 90, "{n_cases}");
}

fn subgraph(file: &Value) -> Subgraph {
    let lines: Vec<&str> = file["schema"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut types = Map::new();
    let mut fields = Map::new();
    let root = if lines.iter().any(|l| l.contains("mutation: M ")) {
        "M"
    } else {
        "Mutation"
    };
    for (ty, values) in [("Query", &file["root"]), (root, &file["mutation"])] {
        let mut row = Map::new();
        for (name, value) in values.as_object().into_iter().flatten() {
            if value.get("$arguments").is_some() {
                fields.insert(format!("{ty}.{name}"), json!({"$expr": "$arguments"}));
            } else {
                row.insert(name.clone(), value.clone());
            }
        }
        types.insert(ty.to_string(), Value::Object(row));
    }
    let data = Data::from_json(json!({"types": types, "fields": fields})).unwrap();
    let options = Options {
        federation: Federation::Off,
        ..Options::default()
    };
    let source = Source::Data(data.into());
    Subgraph::new("case", &lines.join("\n"), source, options).unwrap_or_else(|e| panic!("{e}"))
}

fn compare(found: &Value, expected: &Value) -> Option<String> {
    if found.get("data").is_some() != expected.get("data").is_some() {
        return Some("one has data, the other has none".to_string());
    }
    if !equal(&found["data"], &expected["data"]) {
        return Some("different data".to_string());
    }
    let empty = Vec::new();
    let errors = |v: &'static str, side: &Value| -> Vec<Value> {
        side[v].as_array().unwrap_or(&empty).clone()
    };
    let (mine, theirs) = (errors("errors", found), errors("errors", expected));
    if mine.len() != theirs.len() {
        return Some("different number of errors".to_string());
    }
    for (mine, theirs) in mine.iter().zip(&theirs) {
        let message = theirs["message"].as_str().unwrap();
        // A request error has no path here or there; its place is the operation crate's business. The reference
        // implementation points at the argument, the mock at its field.
        let ours_to_place = theirs["path"].is_null() || message.starts_with("Argument");
        if mine["path"] != theirs["path"]
            || (!ours_to_place && mine["locations"] != theirs["locations"])
        {
            return Some("different place of an error".to_string());
        }
        let ours_to_word = message.contains("cannot represent") || theirs["path"].is_null();
        if !ours_to_word && mine["message"] != theirs["message"] {
            return Some("different message".to_string());
        }
    }
    None
}

/// Equal with member order; numbers by value, because the recorder prints them its own way.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((n, a), (m, b))| n == m && equal(a, b))
        }
        _ => a == b,
    }
}
