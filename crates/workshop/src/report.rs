//! Diagnostics for people, for tools, for code scanning (SARIF 2.1.0) and for GitHub's workflow log.

use std::path::Path;

use ogive_base::{Diagnostic, Label, Severity, SourceId, Sources, diagnostic::line_column};
use serde_json::{Value, json};

use crate::load::Loaded;

/// What sources of diagnostics are: in order of source ids.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    rows: Vec<(String, Option<String>)>,
}

impl Origins {
    /// The sources of a composition of `loaded`.
    pub fn new(loaded: &[Loaded]) -> Self {
        let mut rows: Vec<(String, Option<String>)> = loaded
            .iter()
            .map(|s| (s.name.clone(), s.file.as_deref().map(slashed)))
            .collect();
        rows.sort();
        Origins { rows }
    }
    /// Subgraph and file of a source.
    fn get(&self, id: SourceId) -> (Option<&str>, Option<&str>) {
        match self.rows.get(id.0 as usize) {
            Some((name, file)) => (Some(name), file.as_deref()),
            None => (None, None),
        }
    }
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.strip_prefix("./").map(str::to_owned).unwrap_or(text)
}

/// For people: one block per diagnostic, with excerpts.
pub fn text<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    sources: &Sources,
    colour: bool,
) -> String {
    let blocks: Vec<String> = diagnostics
        .into_iter()
        .map(|d| d.render(sources, colour))
        .collect();
    blocks.join("\n\n")
}

/// `3 errors, 1 warning`; empty for nothing.
pub fn summary<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> String {
    let mut counts = [0_usize; 3];
    for diagnostic in diagnostics {
        counts[diagnostic.severity as usize] += 1;
    }
    let words = ["error", "warning", "hint"];
    let parts: Vec<String> = counts
        .iter()
        .zip(words)
        .filter(|(n, _)| **n > 0)
        .map(|(n, word)| format!("{n} {word}{}", if *n == 1 { "" } else { "s" }))
        .collect();
    parts.join(", ")
}

fn severity(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "hint",
    }
}

fn range(label: &Label, sources: &Sources) -> Option<[u32; 4]> {
    let source = sources.get(label.source)?;
    let (line, column) = line_column(&source.text, label.span.start);
    let (end_line, end_column) = line_column(&source.text, label.span.end);
    Some([line, column, end_line, end_column])
}

/// For tools: everything a diagnostic says.
pub fn json(diagnostic: &Diagnostic, sources: &Sources, origins: &Origins) -> Value {
    let places: Vec<Value> = diagnostic
        .labels
        .iter()
        .filter_map(|label| {
            let [line, column, end_line, end_column] = range(label, sources)?;
            let (subgraph, file) = origins.get(label.source);
            let source = sources.get(label.source)?;
            Some(json!({
                "subgraph": subgraph,
                "file": file,
                "source": &*source.name,
                "start": { "line": line, "column": column, "offset": label.span.start },
                "end": { "line": end_line, "column": end_column, "offset": label.span.end },
                "message": label.message,
            }))
        })
        .collect();
    json!({
        "code": diagnostic.code,
        "severity": severity(diagnostic),
        "message": diagnostic.message,
        "coordinate": diagnostic.coordinate,
        "places": places,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}

/// SARIF 2.1.0: one run with one result per diagnostic.
pub fn sarif<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    sources: &Sources,
    origins: &Origins,
) -> Value {
    let mut rules: Vec<&str> = Vec::new();
    let mut results = Vec::new();
    for diagnostic in diagnostics {
        let rule = match rules.iter().position(|r| *r == diagnostic.code) {
            Some(rule) => rule,
            None => {
                rules.push(diagnostic.code);
                rules.len() - 1
            }
        };
        let mut locations: Vec<Value> = diagnostic
            .labels
            .iter()
            .filter_map(|label| location(label, sources, origins))
            .collect();
        let rest = locations.split_off(locations.len().min(1));
        let mut message = diagnostic.message.clone();
        for note in diagnostic.notes.iter().chain(&diagnostic.help) {
            message.push('\n');
            message.push_str(note);
        }
        let level = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "note",
        };
        results.push(json!({
            "ruleId": diagnostic.code,
            "ruleIndex": rule,
            "level": level,
            "message": { "text": message },
            "locations": locations,
            "relatedLocations": rest,
        }));
    }
    let rules: Vec<Value> = rules
        .iter()
        .map(|code| json!({ "id": code, "shortDescription": { "text": summary_of(code) } }))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "ogive", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// One sentence about a code.
fn summary_of(code: &str) -> &str {
    use ogive_compose::codes::{ERRORS, HINTS};
    let error = ERRORS.iter().find(|e| e.code == code).map(|e| e.summary);
    let hint = || HINTS.iter().find(|h| h.code == code).map(|h| h.summary);
    error.or_else(hint).unwrap_or(code)
}

fn location(label: &Label, sources: &Sources, origins: &Origins) -> Option<Value> {
    let [line, column, end_line, end_column] = range(label, sources)?;
    let (subgraph, file) = origins.get(label.source);
    let source = sources.get(label.source)?;
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": file.unwrap_or(&source.name) },
            "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
        },
        "logicalLocations": [{ "name": subgraph, "kind": "module" }],
    });
    if !label.message.is_empty() {
        location["message"] = json!({ "text": label.message });
    }
    Some(location)
}

/// GitHub's workflow commands: one line per diagnostic, shown at its place in a pull request.
pub fn github<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    sources: &Sources,
    origins: &Origins,
) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let level = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "notice",
        };
        let mut properties = Vec::new();
        let label = diagnostic.labels.first();
        if let Some((label, [line, column, end_line, end_column])) =
            label.and_then(|l| Some((l, range(l, sources)?)))
            && let (_, Some(file)) = origins.get(label.source)
        {
            properties.push(format!("file={}", property(file)));
            properties.push(format!("line={line},endLine={end_line}"));
            if line == end_line {
                properties.push(format!("col={column},endColumn={end_column}"));
            }
        }
        properties.push(format!("title={}", property(diagnostic.code)));
        let mut message = diagnostic.message.clone();
        for label in diagnostic.labels.iter().skip(1) {
            if let (Some([line, column, ..]), Some(source)) =
                (range(label, sources), sources.get(label.source))
            {
                message.push_str(&format!(
                    "\n{}:{line}:{column}: {}",
                    source.name, label.message
                ));
            }
        }
        for note in diagnostic.notes.iter().chain(&diagnostic.help) {
            message.push('\n');
            message.push_str(note);
        }
        out.push_str(&format!(
            "::{level} {}::{}\n",
            properties.join(","),
            data(&message)
        ));
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
