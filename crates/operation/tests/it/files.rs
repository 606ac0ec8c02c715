//! Case files, schemas and verdicts, as `oracle/operation/cases.mjs` reads them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ogive_base::{Diagnostic, SourceId, diagnostic::line_column};
use ogive_operation::{ValidationLimits, validate};
use ogive_schema::{BuildOptions, Schema, build};
use ogive_syntax::{Document, Limits, parse};

/// One case of a case file.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) schema: String,
    pub(crate) text: String,
}

/// One violation: its message and the places it points at, as `line:column line:column`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) message: String,
    pub(crate) at: String,
}

pub(crate) fn tests_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The case files of a folder with what they are called, sorted.
pub(crate) fn case_files(folder: &str) -> Vec<(String, Vec<Case>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(tests_dir().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "graphql"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (stem, cases(&fs::read_to_string(&path).unwrap()))
        })
        .collect()
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in file.split('\n') {
        if let Some(head) = line.strip_prefix("### ") {
            let (name, schema) = match head.strip_suffix(']').and_then(|h| h.rsplit_once(" [")) {
                Some((name, schema)) => (name, schema),
                None => (head, "zoo"),
            };
            cases.push(Case {
                name: name.to_owned(),
                schema: schema.to_owned(),
                text: String::new(),
            });
        } else if let Some(case) = cases.last_mut() {
            case.text.push_str(line);
            case.text.push('\n');
        }
    }
    for case in &mut cases {
        case.text = case.text.trim().to_owned();
    }
    cases
}

pub(crate) fn schema(name: &str) -> Schema {
    let path = tests_dir().join("schemas").join(format!("{name}.graphql"));
    schema_of(&fs::read_to_string(path).unwrap())
}

pub(crate) fn schema_of(sdl: &str) -> Schema {
    let built = build(&[&document(sdl)], &BuildOptions::default());
    assert!(built.errors.is_empty(), "{:?}", built.errors);
    built.schema
}

pub(crate) fn document(text: &str) -> Document {
    let parsed = parse(text, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{text}\n{:?}", parsed.errors);
    parsed.document
}

pub(crate) fn violations(schema: &Schema, text: &str) -> Vec<Violation> {
    let document = document(text);
    validate(schema, &document, &ValidationLimits::default())
        .iter()
        .map(|diagnostic| violation(text, diagnostic))
        .collect()
}

pub(crate) fn violation(text: &str, diagnostic: &Diagnostic) -> Violation {
    let places: Vec<String> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let (line, column) = line_column(text, label.span.start);
            format!("{line}:{column}")
        })
        .collect();
    Violation {
        message: diagnostic.message.clone(),
        at: places.join(" "),
    }
}

pub(crate) fn read_violations(json: &serde_json::Value) -> Vec<Violation> {
    let rows = json.as_array().expect("a list of violations");
    rows.iter()
        .map(|row| Violation {
            message: row["message"].as_str().unwrap().to_owned(),
            at: row["at"].as_str().unwrap().to_owned(),
        })
        .collect()
}
