//! Whatever the crates put into responses is an [`ErrorCode`], and each of these is given by somebody.
//!
//! Codes are words of one kind, [`is_code`], so they are looked for in the sources: as texts, of which there must be none,
//! and as names of variants. What looks like a code and is none stands in [`NO_CODES`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use ogive_failure::ErrorCode;

/// Crates whose words reach clients. Those of `schema`, `federation` and `compose` are about schemas, and reach people
/// who publish them.
const CRATES: [&str; 13] = [
    "json",
    "syntax",
    "operation",
    "plan",
    "planner",
    "execute",
    "transport",
    "brokers",
    "identity",
    "server",
    "hooks",
    "edge",
    "gateway",
];

/// Files whose texts have the form of a code and are none.
const NO_CODES: &[&str] = &[
    // Locations of directives.
    "syntax/src/parser/type_system.rs",
    // Names of context entries in scripts.
    "hooks/src/scripts/loaded.rs",
    "hooks/src/scripts/members.rs",
    // Alphabets of base64.
    "hooks/src/scripts/modules.rs",
];

/// Words in capitals with a line between two of them; one word only where everybody calls it so.
fn is_code(text: &str) -> bool {
    (text.contains('_') || text == "UNAUTHENTICATED")
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.ends_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            out.push(path);
        }
    }
}

/// What the sources say.
#[derive(Default)]
struct Found {
    /// Texts of the form of a code, with the files that have them.
    texts: BTreeMap<String, Vec<String>>,
    /// Words of that form, texts or not, where they are used.
    used: BTreeSet<String>,
}

fn found() -> Found {
    found_in(&CRATES, NO_CODES)
}

fn found_in(names: &[&str], left_out: &[&str]) -> Found {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in names {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut found = Found::default();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.strip_prefix(&crates).unwrap().display().to_string();
        let has_codes = !left_out.contains(&shown.as_str());
        let production = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for line in production.lines() {
            // Neither comments nor macros that read the build's environment.
            if line.trim_start().starts_with("//") || line.contains("env!(") {
                continue;
            }
            let texts = line.split('"').skip(1).step_by(2);
            for text in texts.filter(|text| has_codes && is_code(text)) {
                found
                    .texts
                    .entry(text.to_owned())
                    .or_default()
                    .push(shown.clone());
            }
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            found
                .used
                .extend(words.filter(|w| is_code(w)).map(str::to_owned));
        }
    }
    found
}

#[test]
fn codes_are_those_of_the_table_and_each_is_given() {
    let found = found();
    assert!(
        found.texts.is_empty(),
        "texts instead of an `ErrorCode`: {:#?}",
        found.texts
    );
    let words = ErrorCode::ALL.iter().map(|code| code.as_str());
    let unused: Vec<_> = words.filter(|word| !found.used.contains(*word)).collect();
    assert!(unused.is_empty(), "codes that nothing gives: {unused:?}");
}

/// Crates whose words reach somebody in one way or another. Those of `bench` reach nobody else than this project.
const EXPLAINED: [&str; 21] = [
    "base",
    "json",
    "syntax",
    "schema",
    "operation",
    "federation",
    "compose",
    "plan",
    "planner",
    "execute",
    "transport",
    "config",
    "telemetry",
    "failure",
    "edge",
    "gateway",
    "mock",
    "workshop",
    "server",
    "files",
    "cli",
];

/// Texts of the form of a code that are none: locations of directives, kinds of introspection, variables of the environment.
const NO_CODES_ANYWHERE: &[&str] = &[
    // The value of an attribute.
    "COST_OK",
    "ARGUMENT_DEFINITION",
    "ENUM_VALUE",
    "FIELD_DEFINITION",
    "FRAGMENT_DEFINITION",
    "FRAGMENT_SPREAD",
    "INLINE_FRAGMENT",
    "INPUT_FIELD_DEFINITION",
    "INPUT_OBJECT",
    "NON_NULL",
    "NO_COLOR",
    "OGIVE_CONFIG",
    "OGIVE_LISTEN",
    "OGIVE_LOG",
    "OGIVE_SUPERGRAPH",
    "SOURCE_DATE_EPOCH",
    "VARIABLE_DEFINITION",
];

#[test]
fn every_code_of_every_crate_can_be_explained() {
    let texts = found_in(&EXPLAINED, &[]).texts;
    // Most codes are variants of `ErrorCode`; what is left as text are those of composition, configuration and rules.
    assert!(texts.len() > 80, "{}", texts.len());
    let unexplained: Vec<_> = texts
        .iter()
        .filter(|(code, _)| !NO_CODES_ANYWHERE.contains(&code.as_str()))
        .filter(|(code, _)| ogive_workshop::pages::page(code).is_err())
        .collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    let unused: Vec<_> = NO_CODES_ANYWHERE
        .iter()
        .filter(|word| !texts.contains_key(**word))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}
