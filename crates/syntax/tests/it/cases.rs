//! Every `tests/cases/**/NAME.graphql` is parsed; `NAME.out` beside it holds what must come out: the canonical
//! print, or the rendered errors followed by the print of what could still be read.
//! `BLESS=1 cargo test -p ogive-syntax` rewrites the `.out` files; read the difference before you commit it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use ogive_base::Sources;
use ogive_syntax::{Limits, parse, print_document};
use ogive_testbase::Recorded;

/// Fewer cases mean that some were not found.
const CASES: usize = 70;

#[test]
fn every_case_comes_out_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut recorded = Recorded::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let name = file
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        let actual = outcome(&name, &source);
        recorded.compare(file.with_extension("out"), &actual);
    }
    recorded.finish(CASES);
}

/// What the file records; checks on the way what holds for every source.
fn outcome(name: &str, source: &str) -> String {
    let mut sources = Sources::new();
    let id = sources.add(name, source);
    let parsed = parse(source, id, &Limits::default());
    let printed = print_document(&parsed.document);
    if parsed.errors.is_empty() {
        assert_prints_to_itself(&printed);
        return printed;
    }
    let mut out = String::new();
    let mut last = 0;
    for error in &parsed.errors {
        let span = error.labels[0].span;
        assert!(span.start >= last, "{name}: errors out of order");
        last = span.start;
        for label in &error.labels {
            assert_eq!(label.source, id);
            assert!(
                source.get(label.span.range()).is_some(),
                "{name}: {label:?}"
            );
            assert!(!label.message.is_empty(), "{name}: {error:?}");
        }
        let _ = writeln!(out, "{}\n", error.render(&sources, false));
    }
    let _ = write!(out, "===== what could be read =====\n{printed}");
    out
}

fn assert_prints_to_itself(printed: &str) {
    let again = parse(printed, ogive_base::SourceId(0), &Limits::default());
    assert!(again.errors.is_empty(), "{printed}\n{:?}", again.errors);
    assert_eq!(print_document(&again.document), printed);
}

pub(crate) fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "graphql") {
            files.push(path);
        }
    }
}
