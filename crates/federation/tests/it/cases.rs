//! `tests/cases/*.graphql` in, rows or diagnostics out (`*.txt`). `BLESS=1 cargo test -p ogive-federation` rewrites
//! the outcomes.
//!
//! A first line `# with: link join-v0.3` appends those files of `tests/preludes`, so that a case shows its own story
//! only and diagnostics still point at the right line. Whatever loads must also rebuild into valid subgraph schemas.

use std::path::{Path, PathBuf};

use ogive_base::{SourceId, Sources};
use ogive_federation::{ReadOptions, describe, read_supergraph, subgraph_sdl};
use ogive_schema::{BuildOptions, build};
use ogive_syntax::{Limits, parse};
use ogive_testbase::Recorded;

/// Fewer cases mean that some were not found.
const CASES: usize = 45;

pub(crate) fn tests_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

pub(crate) fn case_text(path: &Path) -> String {
    let mut text = std::fs::read_to_string(path).unwrap();
    let preludes = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# with:"))
        .map(|names| {
            names
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
    for name in preludes.unwrap_or_default() {
        let path = tests_dir().join(format!("preludes/{name}.graphql"));
        text.push('\n');
        text.push_str(&std::fs::read_to_string(&path).unwrap());
    }
    text
}

pub(crate) fn case_paths() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(tests_dir().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "graphql"))
        .collect();
    cases.sort();
    assert!(cases.len() >= CASES, "cases are gone");
    cases
}

fn outcome(name: &str, text: &str) -> String {
    let mut sources = Sources::new();
    let source = sources.add(name, text);
    match read_supergraph(text, source, &ReadOptions::default()) {
        Err(errors) => {
            assert!(!errors.is_empty(), "{name}: refused without a reason");
            for error in &errors {
                assert!(
                    !error.labels.is_empty(),
                    "{name}: {} has no place",
                    error.code
                );
            }
            let rendered = errors.iter().map(|e| e.render(&sources, false));
            rendered.collect::<Vec<_>>().join("\n\n") + "\n"
        }
        Ok(supergraph) => {
            let mut out = describe(&supergraph);
            let list = |schema: &ogive_schema::Schema| {
                let custom = |d: &&ogive_schema::DirectiveId| !schema.directive_defs[**d].built_in;
                let names = schema.directive_list.iter().filter(custom);
                let names =
                    names.map(|d| format!("@{}", schema.name(schema.directive_defs[*d].name)));
                names.collect::<Vec<_>>().join(" ")
            };
            let directives = list(&supergraph.api);
            if !directives.is_empty() {
                out.push_str(&format!("\ndirectives for clients: {directives}\n"));
            }
            for (id, subgraph) in supergraph.subgraphs.iter() {
                let sdl = subgraph_sdl(&supergraph, id);
                let parsed = parse(sdl.as_str(), SourceId(0), &Limits::default());
                let built = build(&[&parsed.document], &BuildOptions::default());
                let mut sources = Sources::new();
                sources.add(&*subgraph.name, sdl.as_str());
                let errors = parsed.errors.iter().chain(&built.errors);
                let errors: Vec<_> = errors.map(|e| e.render(&sources, false)).collect();
                assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
                // What is the same everywhere is checked above and not worth reading again.
                let own = sdl
                    .split("\ntype _Service {\n  sdl: String\n}\n")
                    .nth(1)
                    .unwrap();
                out.push_str(&format!("\n--- schema of {} ---\n{own}", subgraph.name));
            }
            out
        }
    }
}

#[test]
fn cases_read_as_recorded() {
    let mut recorded = Recorded::new();
    for path in case_paths() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let actual = outcome(name, &case_text(&path));
        assert_eq!(
            name.starts_with("error_"),
            actual.starts_with("error["),
            "{name}: the name says whether it loads\n{actual}"
        );
        recorded.compare(path.with_extension("txt"), &actual);
    }
    recorded.finish(CASES);
}
