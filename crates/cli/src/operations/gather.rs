//! Finds operations: in source files, and in manifests that others have written.

use std::path::Path;

use anyhow::Result;
use ogive_base::{Severity, SourceId, diagnostic::line_column, encode::hex};
use ogive_documents::{
    ExtractOptions, Extraction, FoundOperation, ManifestEntry, SourceTree, extract, manifest,
    sha256,
};
use ogive_syntax::Limits;

use super::{Format, InputArguments};
use crate::{load, terminal};

/// Most diagnostics that are shown.
const SHOWN_MAX: usize = 50;

/// An operation, and where it is from.
pub(super) struct Operation {
    /// What a manifest says of it.
    pub(super) entry: ManifestEntry,
    /// Which of the extraction it is; else it is from a manifest.
    found: Option<usize>,
    /// The file it is from, and its line.
    pub(super) place: String,
}

/// All operations that were named.
pub(super) struct Gathered {
    pub(super) operations: Vec<Operation>,
    extraction: Extraction,
}

/// Finds operations; what is wrong with source files is an error.
pub(super) fn gather(input: &InputArguments) -> Result<Gathered> {
    let is_manifest = |path: &&std::path::PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    let (manifests, roots): (Vec<_>, Vec<_>) = input.paths.iter().partition(is_manifest);
    let tree = SourceTree {
        roots: roots.into_iter().cloned().collect(),
        exclude: input.exclude.clone(),
        tests: input.tests,
    };
    let mut options = ExtractOptions {
        as_sent_by_apollo: input.format == Format::Apollo && !input.as_written,
        ..ExtractOptions::default()
    };
    options.tags.extend(input.tags.iter().cloned());
    let mut extraction = extract(&tree, &options).map_err(|error| {
        terminal::error(error, "check the paths and the patterns of `--exclude`")
    })?;
    let diagnostics = std::mem::take(&mut extraction.diagnostics);
    let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics
        .into_iter()
        .partition(|d| d.severity == Severity::Error);
    for warning in warnings.iter().take(SHOWN_MAX) {
        terminal::remark(&warning.render(&extraction.sources, terminal::colour()));
    }
    if !errors.is_empty() {
        let remedy = "correct the document";
        return Err(load::render_up_to(
            SHOWN_MAX,
            errors,
            &extraction.sources,
            remedy,
        ));
    }
    let mut gathered = Gathered {
        operations: Vec::new(),
        extraction,
    };
    for (at, found) in gathered.extraction.operations.iter().enumerate() {
        gathered.operations.push(Operation {
            entry: ManifestEntry {
                name: Some(found.name.clone()),
                client: input.client_name.clone(),
                ..ManifestEntry::new(hex(&sha256(&found.text)), found.text.as_str())
            },
            found: Some(at),
            place: gathered.shown(found.source, found.span.start),
        });
    }
    for path in manifests {
        gathered.add_manifest(path, input)?;
    }
    let has_none = gathered.operations.is_empty();
    let empty = input
        .paths
        .iter()
        .filter(|path| has_none || !gathered.holds(path));
    let paths: Vec<String> = empty.map(|path| path.display().to_string()).collect();
    if !paths.is_empty() {
        return Err(terminal::error(
            format_args!("no operations in `{}`", paths.join("`, `")),
            "name folders with source files; other functions than gql and graphql are named with `--tag`",
        ));
    }
    Ok(gathered)
}

impl Gathered {
    /// Whether anything was found at or below a path: an operation, or a fragment of one that is elsewhere.
    fn holds(&self, path: &Path) -> bool {
        let manifest = format!("{} ", path.display());
        let mut listed = self
            .operations
            .iter()
            .filter(|operation| operation.found.is_none());
        self.extraction.holds(path)
            || listed.any(|operation| operation.place.starts_with(&manifest))
    }

    fn shown(&self, source: SourceId, at: u32) -> String {
        let Some(source) = self.extraction.sources.get(source) else {
            return String::new();
        };
        let (line, column) = line_column(&source.text, at);
        format!("{}:{line}:{column}", source.name)
    }

    fn add_manifest(&mut self, path: &Path, input: &InputArguments) -> Result<()> {
        let text = load::read(path, "manifest", "check the path")?;
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let entries = manifest::read(text.as_bytes(), stem).map_err(|error| {
            terminal::error(
                format_args!("cannot use the manifest `{}`: {error}", path.display()),
                "write Apollo's persisted query manifest, or one object of id and document",
            )
        })?;
        for mut entry in entries {
            if entry.client.is_none() {
                entry.client.clone_from(&input.client_name);
            }
            if entry.name.is_none() {
                entry.name = name_of(&entry.text);
            }
            let place = format!("{} {}", path.display(), entry.id);
            self.operations.push(Operation {
                entry,
                found: None,
                place,
            });
        }
        Ok(())
    }

    /// The operation as it is written, for messages that point into it.
    pub(super) fn written<'a>(&'a self, operation: &'a Operation) -> &'a str {
        match self.found(operation) {
            Some(found) => &found.written,
            None => &operation.entry.text,
        }
    }

    /// Where a line and column of what is written are.
    pub(super) fn place_of(&self, operation: &Operation, (line, column): (u32, u32)) -> String {
        match self.found(operation) {
            Some(found) => {
                let at = offset(&found.written, line, column);
                let (source, at) = self.extraction.place(found, at);
                self.shown(source, at)
            }
            None => format!("{}:{line}:{column}", operation.place),
        }
    }

    fn found(&self, operation: &Operation) -> Option<&FoundOperation> {
        self.extraction.operations.get(operation.found?)
    }

    /// One line of what was found.
    pub(super) fn summary(&self) -> String {
        let Extraction {
            files, fragments, ..
        } = &self.extraction;
        let operations = self.operations.len();
        format!("{operations} operations, {fragments} fragments in {files} files")
    }
}

fn name_of(text: &str) -> Option<String> {
    let parsed = ogive_syntax::parse(text, SourceId(0), &Limits::default());
    let name = parsed.document.operations().find_map(|o| o.name)?;
    Some(parsed.document.name(name).to_owned())
}

/// The byte of a line and column, both from 1.
fn offset(text: &str, line: u32, column: u32) -> u32 {
    let lines = text.split_inclusive('\n').take(line as usize - 1);
    let before: usize = lines.map(str::len).sum();
    let within = text[before..].chars().take(column as usize - 1);
    (before + within.map(char::len_utf8).sum::<usize>()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_bytes() {
        let text = "é a\n  ü b";
        for (at, _) in text.char_indices() {
            let (line, column) = line_column(text, at as u32);
            assert_eq!(offset(text, line, column), at as u32);
        }
        assert_eq!(offset(text, 9, 9), text.len() as u32);
    }
}
