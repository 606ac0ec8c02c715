//! Licences and notices of everything that is compiled into the binary, in one text.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

use super::crates::Crate;

/// How the files with licences and notices begin.
const NAMES: &[&str] = &[
    "license",
    "licence",
    "copying",
    "notice",
    "copyright",
    "unlicense",
];

/// The text: every licence once, below the crates that bring it along.
pub(crate) fn write(root: &Path, crates: &[Crate]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    // Crates of the repository are under Ogive's own licences, except those that were copied into it.
    let foreign = crates
        .iter()
        .filter(|krate| krate.is_shipped && !krate.name.starts_with("ogive-"));
    for krate in foreign {
        let shown = format!("{} {}", krate.name, krate.version);
        let found = files(&krate.folder)?;
        if found.is_empty() {
            without.push(format!("{shown}: {}", krate.licence));
        }
        for text in found {
            texts.entry(text).or_default().push(shown.clone());
        }
    }
    let assets = root.join("crates/edge/assets/NOTICE.md");
    let assets = fs::read_to_string(&assets).with_context(|| assets.display().to_string())?;
    texts
        .entry(assets.trim().to_owned())
        .or_default()
        .push("GraphiQL and React".to_owned());
    let mut sorted: Vec<_> = texts.iter().collect();
    sorted.sort_by_key(|(text, crates)| (*crates, *text));
    let mut out =
        "The ogive binary contains the libraries below, under these licences.\n".to_owned();
    for (text, crates) in sorted {
        out.push_str(&format!(
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(80),
            crates.join(", ")
        ));
    }
    if !without.is_empty() {
        out.push_str(&format!(
            "\n{}\nLibraries that bring no text of their licence along:\n\n",
            "=".repeat(80)
        ));
        out.extend(without.iter().map(|line| format!("{line}\n")));
    }
    Ok(out)
}

/// Texts of the licences of a crate, in the order of their names. C parts have theirs below the crate's folder.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    collect(folder, 3, &mut names)?;
    names.sort();
    names.dedup();
    let mut out = Vec::new();
    for name in names {
        let bytes = fs::read(&name).with_context(|| name.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        out.push(text.trim().to_owned());
    }
    Ok(out)
}

fn collect(folder: &Path, depth: u8, names: &mut Vec<std::path::PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_source = name.ends_with(".rs") || name.ends_with(".html") || name.ends_with(".toml");
        if entry.file_type()?.is_dir() {
            if depth > 0 && !["tests", "benches", "examples"].contains(&name.as_str()) {
                collect(&entry.path(), depth - 1, names)?;
            }
        } else if NAMES.iter().any(|start| name.starts_with(start)) && !is_source {
            names.push(entry.path());
        }
    }
    Ok(())
}
