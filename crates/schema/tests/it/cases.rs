//! `tests/cases/*.cases`: SDL in, diagnostics or the printed schema out. `BLESS=1` rewrites the expectations.
//!
//! A file is a list of cases: `=== name`, the SDL, `---`, the expectation. A name ending in `[print]` expects the
//! printed schema; other valid schemas expect `ok`. Every case that is valid is also checked to survive printing.

use std::{fmt::Write, fs, path::PathBuf};

use ogive_base::Sources;
use ogive_schema::{
    BuildOptions, Schema,
    print::{Order, PrintOptions, print},
};
use ogive_syntax::{Limits, SourceId, parse, print_document};
use ogive_testbase::Recorded;

/// One case of a file.
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) sdl: String,
}

/// Fewer files mean that some were not found.
const FILES: usize = 10;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// All cases of all files, in order of file names.
pub(crate) fn all() -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "cases"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        for case in text.split("=== ").skip(1) {
            let (name, rest) = case.split_once('\n').unwrap();
            let (sdl, _recorded) = rest.split_once("---\n").unwrap_or((rest, ""));
            cases.push(Case {
                file: path.file_stem().unwrap().to_str().unwrap().into(),
                name: name.into(),
                sdl: sdl.into(),
            });
        }
    }
    cases
}

fn outcome(case: &Case) -> String {
    let built = super::built(&case.sdl, &BuildOptions::default());
    let mut out = String::new();
    if built.errors.is_empty() {
        survives_printing(&built.schema, &case.name);
        if case.name.ends_with("[print]") {
            return print(&built.schema, &PrintOptions::default());
        }
        return "ok\n".into();
    }
    let mut sources = Sources::new();
    sources.add("schema.graphql", case.sdl.as_str());
    for error in &built.errors {
        writeln!(out, "{}", error.render(&sources, false)).unwrap();
    }
    out
}

/// The printed text builds a schema that prints alike, and is canonical.
pub(crate) fn survives_printing(schema: &Schema, name: &str) {
    for built_ins in [false, true] {
        for order in [Order::Definition, Order::Name] {
            let options = PrintOptions {
                built_ins,
                order,
                ..PrintOptions::default()
            };
            let text = print(schema, &options);
            let parsed = parse(text.as_str(), SourceId(0), &Limits::default());
            assert_eq!(parsed.errors, [], "{name}:\n{text}");
            assert_eq!(print_document(&parsed.document), text, "{name}");
            let again = super::built(&text, &BuildOptions::default());
            assert_eq!(again.errors, [], "{name}:\n{text}");
            assert_eq!(print(&again.schema, &options), text, "{name}");
        }
    }
}

#[test]
fn every_case_has_its_outcome() {
    let cases = all();
    assert!(cases.len() > 100, "the files are there");
    let mut files: Vec<(String, String)> = Vec::new();
    for case in &cases {
        let actual = outcome(case);
        if files.last().is_none_or(|(file, _)| *file != case.file) {
            files.push((case.file.clone(), String::new()));
        }
        let text = &mut files.last_mut().unwrap().1;
        write!(text, "=== {}\n{}---\n{actual}", case.name, case.sdl).unwrap();
    }
    let mut recorded = Recorded::new();
    for (file, text) in files {
        recorded.compare(folder().join(format!("{file}.cases")), &text);
    }
    recorded.finish(FILES);
}
