//! Rules of the repository that no compiler knows:
//!
//! - crates depend downwards only ([`crate::layers`]);
//! - layers 0 to 3 use no clock, environment, files, threads or async;
//! - modules form no import cycles ([`cycles`]), functions have an end ([`functions`]), names are the field's terms
//!   ([`names`]), files of the operator are read in one place ([`reading`]), stages are listed ([`stages`]);
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
    code::{cycles, functions, names, reading, stages},
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
    let wrong = violations(root)?;
    if wrong.is_empty() {
        println!("tidy: all rules hold");
        return Ok(());
    }
    for violation in &wrong {
        eprintln!("tidy: {violation}");
    }
    bail!("{} rule(s) broken", wrong.len());
}

/// Everything that is wrong.
fn violations(root: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    crates(root, &mut wrong)?;
    code(root, &mut wrong)?;
    sources(root, &mut wrong)?;
    five_stops(root, &mut wrong);
    map::check(root, &mut wrong);
    fragments(root, &mut wrong)?;
    Ok(wrong)
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

/// Rules that look at parsed code: [`cycles`], [`functions`], [`names`], [`reading`], [`stages`].
fn code(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let terms = names::Terms::read(root)?;
    for krate in crate::code::read(root)? {
        wrong.extend(names::check(&krate, &terms));
        wrong.extend(reading::check(&krate));
        wrong.extend(cycles::check(&krate));
        wrong.extend(functions::check(&krate));
        wrong.extend(stages::check(&krate));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one mistake of each kind; the last line is what is said of it.
    const MISTAKES: [(&str, &str, &str); 5] = [
        (
            "crates/planner/Cargo.toml",
            "[dependencies]\nogive-base.workspace = true\nogive-gateway.workspace = true\n",
            "`planner` (layer 3) depends on `gateway`",
        ),
        (
            "crates/planner/src/a.rs",
            "use crate::b::B;\npub struct A;\n",
            "modules import one another in a circle: crates/planner/src/a.rs -> crates/planner/src/b.rs",
        ),
        (
            "crates/planner/src/c.rs",
            "pub struct Passenger;\n",
            "`Passenger`: `passenger` is no listed term",
        ),
        ("crates/planner/src/d.rs", "", "`f` has 101 lines"),
        (
            "crates/planner/tests/it.rs",
            "#[test]\nfn needs_a_server() {\n    if true {\n        return;\n    }\n}\n",
            "crates/planner/tests/it.rs",
        ),
    ];

    /// Writes it, without mistakes at first.
    fn plant(root: &Path) {
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("docs/terms.txt", "a b c d\n");
        write(
            "crates/planner/Cargo.toml",
            "[dependencies]\nogive-base.workspace = true\n",
        );
        write(
            "crates/planner/src/lib.rs",
            "pub mod a;\npub mod b;\npub mod c;\npub mod d;\n",
        );
        for (file, _, _) in &MISTAKES[1..] {
            write(file, "");
        }
        write(
            "crates/planner/src/b.rs",
            "pub struct B;\nfn f() {\n    let _ = crate::a::A;\n}\n",
        );
        write("crates/planner/src/a.rs", "pub struct A;\n");
    }

    /// The whole command on files: what each mistake is about is refused, and nothing else is.
    #[test]
    fn every_planted_mistake_is_refused_and_named() {
        let root = std::env::temp_dir().join(format!("ogive-tidy-{}", std::process::id()));
        plant(&root);
        // What this little repository lacks is not what this is about.
        let about = |wrong: Vec<String>| -> Vec<String> {
            let planted = wrong.into_iter();
            planted.filter(|one| one.contains("planner")).collect()
        };
        assert_eq!(about(violations(&root).unwrap()), Vec::<String>::new());
        let long = format!("//! Long.\nfn f() {{\n{}}}\n", "    g();\n".repeat(99));
        for (file, text, said) in MISTAKES {
            let path = root.join(file);
            let before = fs::read_to_string(&path).unwrap();
            fs::write(&path, if text.is_empty() { &long } else { text }).unwrap();
            let wrong = about(violations(&root).unwrap());
            assert_eq!(wrong.len(), 1, "{file}: {wrong:?}");
            assert!(wrong[0].contains(said), "{file}: {wrong:?}");
            fs::write(&path, before).unwrap();
        }
        fs::remove_dir_all(root).unwrap();
    }
}
