//! The corpus: hand-written documents for every rule, with the recorded words of graphql 16 and 17.
//!
//! `cases/<rule>.graphql` holds the documents, `cases/<rule>.expected.json` what graphql said (written by
//! `oracle/operation/record.mjs`, never by hand), `cases/differences.json` every case in which Ogive means something
//! else, with the reason.

use std::{collections::BTreeMap, fs};

use ogive_schema::Schema;
use serde_json::Value;

use crate::files::{Violation, case_files, read_violations, schema, tests_dir, violations};

/// A reviewed difference: the reason, and what Ogive says instead.
struct Difference {
    reason: String,
    /// `None`: what graphql 17 says.
    ours: Option<Vec<Violation>>,
}

fn differences() -> BTreeMap<String, Difference> {
    let text = fs::read_to_string(tests_dir().join("cases/differences.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let rows = json.as_object().unwrap().iter();
    rows.map(|(name, row)| {
        let reason = row["reason"].as_str().unwrap().to_owned();
        let ours = match &row["ogive"] {
            Value::String(text) if text == "as graphql17" => None,
            rows => Some(read_violations(rows)),
        };
        (name.clone(), Difference { reason, ours })
    })
    .collect()
}

#[test]
fn verdicts_messages_and_places_equal_the_recorded_ones() {
    let mut schemas: BTreeMap<String, Schema> = BTreeMap::new();
    let mut differences = differences();
    let mut failures = Vec::new();
    let (mut n, mut n_same_17) = (0, 0);
    for (file, cases) in case_files("cases") {
        let path = tests_dir().join(format!("cases/{file}.expected.json"));
        let expected: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let (mut n_valid, mut n_invalid) = (0, 0);
        assert_eq!(
            expected.as_object().unwrap().len(),
            cases.len(),
            "{file}: recorded cases; run oracle/operation/record.mjs"
        );
        for case in cases {
            n += 1;
            let name = format!("{file}/{}", case.name);
            let row = &expected[&case.name];
            let of = |version: &str| {
                let found = row.get(version).or_else(|| row.get("both"));
                read_violations(found.unwrap_or_else(|| panic!("{name} is not recorded")))
            };
            let (want, want_17) = (of("graphql16"), of("graphql17"));
            let schema = schemas
                .entry(case.schema.clone())
                .or_insert_with(|| schema(&case.schema));
            let got = violations(schema, &case.text);
            if got.is_empty() {
                n_valid += 1;
            } else {
                n_invalid += 1;
            }
            n_same_17 += usize::from(got.is_empty() == want_17.is_empty());
            let agrees = got == want && got.is_empty() == want_17.is_empty();
            match differences.remove(&name) {
                Some(d) if agrees => {
                    failures.push(format!("{name} agrees now; not a difference: {}", d.reason));
                }
                Some(d) if d.ours.as_ref().unwrap_or(&want_17) == &got => {}
                Some(d) => failures.push(format!("{name} differs in its own way\n  want {:#?}\n  got {got:#?}", d.ours)),
                None if agrees => {}
                None => failures.push(format!(
                    "{name}\n{}\n  graphql 16: {want:#?}\n  graphql 17: {want_17:#?}\n  ogive: {got:#?}",
                    case.text
                )),
            }
        }
        if n_valid == 0 || n_invalid == 0 {
            failures.push(format!(
                "{file}: {n_valid} valid and {n_invalid} invalid cases; there must be both"
            ));
        }
    }
    failures.extend(
        differences
            .into_keys()
            .map(|name| format!("{name} is listed as a difference but is no case")),
    );
    println!("{n} cases, {n_same_17} with the verdict of graphql 17");
    assert!(
        failures.is_empty(),
        "{} of {n} cases:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    assert!(n >= 600, "the corpus has only {n} cases");
}
