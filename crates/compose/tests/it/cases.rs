//! `tests/cases/<code>/<case>/`: subgraphs in `*.graphql`, what comes out in `expected.txt` (`BLESS=1` rewrites it),
//! and what the reference implementation says in `reference.json`, recorded by `oracle/compose/record.mjs` with the
//! hash of the input; `options.txt` beside them sets limits. Differences that are meant are listed in `tests/intended.txt`, each with its reason.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use ogive_compose::{ComposeOptions, Composed, codes};
use ogive_testbase::{Recorded, assert_recorded};
use serde_json::Value;

use crate::{Owned, normal::normal, run_with, sub};

/// Fewer cases mean that some were not found.
const CASES: usize = 345;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn sorted_dirs(path: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = fs::read_dir(path)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    out.sort();
    out
}

struct Case {
    name: String,
    dir: PathBuf,
    set: Vec<Owned>,
    options: ComposeOptions,
}

/// Every case with its subgraphs.
fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for code in sorted_dirs(&root()) {
        for case in sorted_dirs(&code) {
            let mut files: Vec<PathBuf> = fs::read_dir(&case)
                .unwrap()
                .map(|e| e.unwrap().path())
                .filter(|p| p.extension().is_some_and(|e| e == "graphql"))
                .collect();
            files.sort();
            let set = files
                .iter()
                .map(|f| Owned {
                    name: f.file_stem().unwrap().to_string_lossy().into_owned(),
                    sdl: fs::read_to_string(f).unwrap(),
                })
                .collect();
            let name = format!(
                "{}/{}",
                code.file_name().unwrap().to_string_lossy(),
                case.file_name().unwrap().to_string_lossy()
            );
            let options = fs::read_to_string(case.join("options.txt")).unwrap_or_default();
            let states = options.trim().strip_prefix("states ");
            let options = ComposeOptions {
                states_max: states.map(|n| n.parse().unwrap()),
                ..ComposeOptions::default()
            };
            out.push(Case {
                name,
                dir: case,
                set,
                options,
            });
        }
    }
    out
}

fn rendered(composed: &Composed) -> String {
    let mut out = String::new();
    for diagnostic in composed.errors.iter().chain(&composed.hints) {
        let about = diagnostic.coordinate.as_deref().unwrap_or("-");
        let _ = writeln!(
            out,
            "[{about}]\n{}\n",
            diagnostic.render(&composed.sources, false)
        );
    }
    if let Some(sdl) = &composed.supergraph_sdl {
        let types = sdl.split("\n\n").filter(|b| {
            !b.starts_with("directive @join__")
                && !b.starts_with("directive @link")
                && !b.starts_with("scalar ")
                && !b.contains("link__Purpose {")
                && !b.contains("`SECURITY`")
                && !b.contains("`EXECUTION`")
                && !b.contains("join__ContextArgument {")
        });
        for block in types {
            let _ = writeln!(out, "{}\n", block.trim_end());
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[test]
fn every_case_comes_out_as_expected() {
    let mut recorded = Recorded::new();
    for case in cases() {
        let (name, dir) = (&case.name, &case.dir);
        let composed = run_with(&case.set, &case.options);
        for diagnostic in composed.errors.iter().chain(&composed.hints) {
            assert!(
                !diagnostic.labels.is_empty(),
                "{name}: {} points nowhere",
                diagnostic.code
            );
        }
        let has_api = composed.api_sdl().is_some();
        assert_eq!(
            has_api,
            composed.supergraph_sdl.is_some(),
            "{name}: what clients see"
        );
        let text = rendered(&composed);
        recorded.compare(dir.join("expected.txt"), &text);
    }
    recorded.finish(CASES);
}

#[test]
fn every_code_has_a_page_with_an_example_that_raises_it_and_one_that_does_not() {
    let mut wrong = String::new();
    for (code, hint) in codes::ERRORS
        .iter()
        .map(|e| (e.code, false))
        .chain(codes::HINTS.iter().map(|h| (h.code, true)))
    {
        let pages = codes::explain(code);
        let page = pages
            .iter()
            .find(|p| matches!(p.kind, codes::Kind::Hint(_)) == hint)
            .unwrap_or_else(|| panic!("{code} has no page"));
        // The one code that needs a limit lower than any graph of a readable size reaches.
        let options = ComposeOptions {
            states_max: (code == codes::MAX_VALIDATION_SUBGRAPH_PATHS_EXCEEDED).then_some(4),
            ..ComposeOptions::default()
        };
        let composed = |example: &codes::Example| {
            let set: Vec<Owned> = example.files.iter().map(|f| sub(f.name, f.sdl)).collect();
            run_with(&set, &options)
        };
        let raised = |example: &codes::Example| {
            let composed = composed(example);
            let list = if hint {
                composed.hints
            } else {
                composed.errors
            };
            list.iter().any(|d| d.code == code)
        };
        for (holds, problem) in [
            (raised(&page.bad), "its example does not raise it"),
            (!raised(&page.good), "its remedy does not help"),
            (
                composed(&page.good).errors.is_empty(),
                "its remedy does not compose",
            ),
            (
                page.bad.diagnostics(code).next().is_some(),
                "its example shows nothing",
            ),
            (
                page.good.diagnostics(code).next().is_none(),
                "its remedy still shows it",
            ),
        ] {
            if !holds {
                let _ = writeln!(wrong, "{code}: {problem}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_table_of_codes_in_the_docs_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/composition-codes.md");
    assert_recorded(path, &codes::table());
}

/// FNV-1a of the subgraphs, as `record.mjs` computes it.
fn hash(set: &[Owned]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for s in set {
        for byte in s.name.bytes().chain([0]).chain(s.sdl.bytes()).chain([0]) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[test]
fn the_reference_implementation_agrees() {
    let intended: Vec<String> = fs::read_to_string(root().with_file_name("intended.txt"))
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
        .map(|l| l.split_whitespace().next().unwrap().to_owned())
        .collect();
    let mut wrong = String::new();
    let mut agreed_by_chance = Vec::new();
    for case in cases() {
        let (name, dir, set) = (case.name, case.dir, case.set);
        let text = fs::read_to_string(dir.join("reference.json"))
            .unwrap_or_else(|_| panic!("{name}: run oracle/compose/record.mjs"));
        let reference: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            reference["input"].as_str().unwrap(),
            hash(&set),
            "{name}: the case changed; run oracle/compose/record.mjs"
        );
        let problem = disagreement(&reference, &run_with(&set, &case.options));
        match (problem, intended.contains(&name)) {
            (Some(problem), false) => {
                let _ = writeln!(wrong, "{name}: {problem}");
            }
            (None, true) => agreed_by_chance.push(name),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(
        agreed_by_chance.is_empty(),
        "no difference any more, strike from the list: {agreed_by_chance:?}"
    );
}

fn disagreement(reference: &Value, ours: &Composed) -> Option<String> {
    let list = |key: &str| -> Vec<(String, Option<String>)> {
        let mut out: Vec<_> = reference[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| {
                (
                    e["code"].as_str().unwrap_or("?").to_owned(),
                    e["coordinate"].as_str().map(str::to_owned),
                )
            })
            .collect();
        out.sort();
        out
    };
    // Ours has one error per cause that no query can be resolved, the reference one per field.
    let mut theirs: Vec<String> = list("errors").into_iter().map(|e| e.0).collect();
    let mut our: Vec<String> = ours.errors.iter().map(|e| e.code.to_owned()).collect();
    our.sort();
    if our.first().is_some_and(|c| c == "SATISFIABILITY_ERROR") {
        theirs.dedup();
        our.dedup();
    }
    if theirs != our {
        return Some(format!("errors: reference {theirs:?}, ours {our:?}"));
    }
    if !theirs.is_empty() {
        return None;
    }
    let theirs = list("hints");
    // The reference gives some hints no coordinate.
    let vague: Vec<&String> = theirs
        .iter()
        .filter(|h| h.1.is_none())
        .map(|h| &h.0)
        .collect();
    let mut our: Vec<(String, Option<String>)> = ours
        .hints
        .iter()
        .map(|h| {
            (
                h.code.to_owned(),
                h.coordinate
                    .as_deref()
                    .map(str::to_owned)
                    .filter(|_| !vague.iter().any(|v| *v == h.code)),
            )
        })
        .collect();
    our.sort();
    if theirs != our {
        return Some(format!("hints: reference {theirs:?}, ours {our:?}"));
    }
    let theirs = normal(reference["supergraph"].as_str().unwrap());
    let our = normal(ours.supergraph_sdl.as_deref().unwrap_or_default());
    let first = theirs.lines().zip(our.lines()).find(|(a, b)| a != b);
    (theirs != our).then(|| format!("supergraph: first difference {first:?}"))
}
