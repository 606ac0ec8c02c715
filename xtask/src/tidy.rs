//! Rules of the repository that no compiler knows:
//!
//! - crates depend downwards only ([`crate::layers`]);
//! - layers 0 to 3 use no clock, environment, files, threads or async;
//! - modules form no import cycles ([`cycles`]), functions have an end ([`functions`]), names are the field's terms
//!   ([`names`]), files of the operator are read in one place ([`reading`]);
//! - source files have at most [`LINES_MAX`] lines, and those of [`LINES_WITH_DOC`] lines or more open with a module doc;
//! - the five stops of a request are where `ARCHITECTURE.md` says, and say so themselves;
//! - what `ARCHITECTURE.md` and `docs/walk.md` send newcomers to is there ([`crate::map`]);
//! - no test passes without having tested anything ([`crate::silent`]);
//! - nothing names a machine's folders;
//! - change fragments are named `<kind>-<slug>.md`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    changelog::KINDS,
    code::{cycles, functions, names, reading},
    layers, map, silent,
};

/// Longest source file, tests included.
const LINES_MAX: usize = 1_200;
/// Files this long need a module doc.
const LINES_WITH_DOC: usize = 80;

/// What layers 0 to 3 must not mention outside tests.
const IMPURE: &[&str] = &[
    "std::env::",
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "Instant::now",
    "SystemTime",
    "tokio::",
    "async fn",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Checks everything; fails with all violations listed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    crates(root, &mut wrong)?;
    code(root, &mut wrong)?;
    sources(root, &mut wrong)?;
    five_stops(root, &mut wrong);
    map::check(root, &mut wrong);
    fragments(root, &mut wrong)?;
    if wrong.is_empty() {
        println!("tidy: all rules hold");
        return Ok(());
    }
    for violation in &wrong {
        eprintln!("tidy: {violation}");
    }
    bail!("{} rule(s) broken", wrong.len());
}

fn crates(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    for folder in sorted(&root.join("crates"))? {
        let manifest = folder.join("Cargo.toml");
        if manifest.is_file() {
            let text = fs::read_to_string(&manifest)
                .with_context(|| format!("reading {}", manifest.display()))?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            wrong.extend(layers::check(&name, &text));
        }
    }
    Ok(())
}

/// Rules that look at parsed code: [`cycles`], [`functions`], [`names`], [`reading`].
fn code(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let terms = names::Terms::read(root)?;
    for krate in crate::code::read(root)? {
        wrong.extend(names::check(&krate, &terms));
        wrong.extend(reading::check(&krate));
        wrong.extend(cycles::check(&krate));
        wrong.extend(functions::check(&krate));
    }
    Ok(())
}

fn sources(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let mut files = Vec::new();
    for top in ["crates", "xtask", "fuzz", "bench"] {
        walk(&root.join(top), &mut files)?;
    }
    for file in files {
        let shown = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let text = fs::read_to_string(&file).with_context(|| format!("reading {shown}"))?;
        let lines = text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!(
                "{shown}: {lines} lines; split it (at most {LINES_MAX})"
            ));
        }
        wrong.extend(silent::check(&shown, &text));
        let has_doc = text.lines().take(5).any(|l| l.starts_with("//!"));
        if lines >= LINES_WITH_DOC && !has_doc {
            wrong.push(format!(
                "{shown}: {lines} lines without a module doc; say what it is for in `//!`"
            ));
        }
        for place in ["work", "home", "root", "tmp"] {
            if text.contains(&format!("\"/{place}/")) {
                wrong.push(format!("{shown}: names a machine's folder (/{place})"));
            }
        }
        let is_test = shown.ends_with("/tests.rs") || shown.contains("/tests/");
        if !is_test && layers::pure_crates().any(|c| shown.starts_with(&format!("crates/{c}/src/")))
        {
            let production = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in IMPURE {
                let used = production
                    .lines()
                    .any(|l| l.contains(word) && !l.trim_start().starts_with("//"));
                if used {
                    wrong.push(format!(
                        "{shown}: layers 0 to 3 are pure, but it mentions `{word}`"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The five stops: each file says its number, and `ARCHITECTURE.md` names the file.
fn five_stops(root: &Path, wrong: &mut Vec<String>) {
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    for (number, stop) in ["receive", "prepare", "plan", "execute", "respond"]
        .iter()
        .enumerate()
    {
        let mut file = format!("crates/gateway/src/{stop}.rs");
        if !root.join(&file).is_file() {
            file = format!("crates/gateway/src/{stop}/mod.rs");
        }
        let text = fs::read_to_string(root.join(&file)).unwrap_or_default();
        let heading = format!("Stop {} of 5", number + 1);
        if !text.contains(&heading) {
            wrong.push(format!("{file}: its module doc must say `{heading}`"));
        }
        if !map.contains(&file) {
            wrong.push(format!(
                "ARCHITECTURE.md: does not name {file} for the stop `{stop}`"
            ));
        }
    }
}

fn fragments(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    for file in sorted(&root.join("changes"))? {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let good = name == "README.md"
            || KINDS
                .iter()
                .any(|(k, _)| name.starts_with(&format!("{k}-")) && name.ends_with(".md"));
        if !good {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            let kinds = kinds.join(", ");
            wrong.push(format!(
                "changes/{name}: name it <kind>-<slug>.md with a kind of {kinds}"
            ));
        }
    }
    Ok(())
}

pub(crate) fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    if folder.is_dir() {
        for entry in
            fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?
        {
            out.push(entry?.path());
        }
    }
    out.sort();
    Ok(out)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for path in sorted(folder)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && !["target", "node_modules", "corpus"].contains(&name.as_str()) {
            walk(&path, files)?;
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}
