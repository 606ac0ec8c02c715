//! The case files again, this time against the reference implementation: same verdict, same first message at
//! the same place, same print. Left out unless `OGIVE_ORACLE` is set, after `npm ci --prefix oracle`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ogive_base::diagnostic::line_column;
use ogive_syntax::{Limits, SourceId, parse, parse_value, print_document};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF, oracle};

/// Cases that come out differently on purpose.
const DIFFERENT: [(&str, &str); 1] = [(
    "errors/long_token.graphql",
    "our messages repeat at most 100 characters of a token",
)];

#[test]
fn the_reference_implementation_agrees_on_every_case() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(oracle) = oracle("node_modules/graphql16") else {
        return left_out(ORACLE_IS_OFF);
    };
    let oracle = oracle.join("node_modules");
    let root = crate_dir.join("tests/cases");
    let mut files = Vec::new();
    crate::cases::collect(&root, &mut files);
    let script = crate_dir.join("tests/oracle.mjs");
    // Messages are those of version 17 where the two differ, prints and empty selection sets those of 16.
    let [v16, v17] = ["graphql16", "graphql17"].map(|v| ask(&oracle.join(v), &script, &files));

    let mut wrong = String::new();
    for ((file, v16), v17) in files.iter().zip(&v16).zip(&v17) {
        let name = file
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        let ours = ours(&std::fs::read_to_string(file).unwrap());
        let agrees = ours == *v16 || ours == *v17;
        if agrees == DIFFERENT.iter().any(|(known, _)| *known == name) {
            wrong += &format!("\n## {name}\nours: {ours}\n16:   {v16}\n17:   {v17}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn ours(source: &str) -> String {
    let parsed = parse(source, SourceId(0), &Limits::default());
    match parsed.errors.first() {
        None => format!("ok {}", layout(&print_document(&parsed.document))),
        Some(error) => {
            let (line, column) = line_column(source, error.labels[0].span.start);
            format!("error {line}:{column} {}", error.message)
        }
    }
}

/// The answer with its JSON string decoded; JSON strings are GraphQL strings.
fn decode(answer: &str) -> String {
    let (verdict, json) = answer.split_once(" \"").unwrap();
    let (document, value) = parse_value(&format!("\"{json}"), true, &Limits::default()).unwrap();
    let text = document
        .string_value(value.as_string().unwrap())
        .into_owned();
    if verdict == "ok" {
        format!("ok {}", layout(&text))
    } else {
        format!("{verdict} {text}")
    }
}

/// Version 16 does not indent described variables and indents empty lines.
fn layout(text: &str) -> String {
    text.trim()
        .lines()
        .map(|line| line.trim().to_owned() + "\n")
        .collect()
}

fn ask(package: &Path, script: &Path, files: &[PathBuf]) -> Vec<String> {
    let mut node = Command::new("node")
        .arg(script)
        .arg(package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut names = String::new();
    for file in files {
        names += &format!("{}\n", file.display());
    }
    node.stdin
        .take()
        .unwrap()
        .write_all(names.as_bytes())
        .unwrap();
    let out = node.wait_with_output().unwrap();
    assert!(out.status.success());
    let answers = String::from_utf8(out.stdout).unwrap();
    let answers: Vec<String> = answers.lines().map(decode).collect();
    assert_eq!(answers.len(), files.len());
    answers
}
