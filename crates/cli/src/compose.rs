//! `ogive compose`: subgraph files to a supergraph, or located errors.

use std::{fs, path::PathBuf};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use ogive_base::{Diagnostic, Severity, Sources, diagnostic::line_column};
use ogive_compose::{ComposeOptions, Composed, SubgraphInput, compose};

use crate::{
    load,
    terminal::{self, Rendered},
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Subgraphs: a name and its SDL file, or the file alone to take its name
    #[arg(value_name = "NAME=FILE", required = true)]
    subgraphs: Vec<String>,
    /// Where a subgraph is served, as in reviews=http://reviews:4001/graphql; may be repeated
    #[arg(long, value_name = "NAME=URL")]
    url: Vec<String>,
    /// Write the supergraph to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the schema that clients see instead of the supergraph
    #[arg(long)]
    api: bool,
    /// How errors and hints are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Excerpts for people
    Text,
    /// One JSON object: `{"supergraph": …, "errors": […], "hints": […]}`
    Json,
}

/// One subgraph as it was read.
struct Read {
    name: String,
    url: String,
    sdl: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let subgraphs = read(arguments)?;
    let inputs: Vec<SubgraphInput<'_>> = subgraphs
        .iter()
        .map(|s| SubgraphInput {
            name: &s.name,
            url: &s.url,
            sdl: &s.sdl,
        })
        .collect();
    let composed = compose(&inputs, &ComposeOptions::default());
    let result = if arguments.api {
        composed.api_sdl()
    } else {
        composed.supergraph_sdl.clone()
    };
    if arguments.format == Format::Json {
        terminal::print(&json(&composed, result.as_deref()));
    } else {
        let colour = terminal::colour();
        let render = |d: &Diagnostic| d.render(&composed.sources, colour);
        for hint in &composed.hints {
            terminal::remark(&render(hint));
        }
        if !composed.errors.is_empty() {
            let all: Vec<String> = composed.errors.iter().map(render).collect();
            return Err(Rendered(all.join("\n\n")).into());
        }
    }
    match result {
        None => Err(Rendered(format!("{} composition errors", composed.errors.len())).into()),
        Some(text) => write(arguments, &text),
    }
}

fn read(arguments: &Arguments) -> Result<Vec<Read>> {
    let mut urls = Vec::new();
    for url in &arguments.url {
        let pair = url.split_once('=');
        urls.push(pair.ok_or_else(|| anyhow!("`--url {url}`: write it as NAME=URL"))?);
    }
    let mut out: Vec<Read> = Vec::new();
    for written in &arguments.subgraphs {
        let (name, path) = match written.split_once('=') {
            Some((name, path)) => (name.to_string(), PathBuf::from(path)),
            None => {
                let path = PathBuf::from(written);
                let stem = path.file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), path)
            }
        };
        if out.iter().any(|s| s.name == name) {
            let remedy = "give each its own name, as in NAME=FILE";
            return Err(terminal::error(
                format_args!("two subgraphs are called `{name}`"),
                remedy,
            ));
        }
        let sdl = load::read(&path, "subgraph", "check the path")?;
        let url = urls.iter().find(|(n, _)| *n == name).map_or("", |(_, u)| u);
        out.push(Read {
            name,
            url: url.to_string(),
            sdl,
        });
    }
    Ok(out)
}

fn write(arguments: &Arguments, text: &str) -> Result<()> {
    let Some(path) = &arguments.output else {
        if arguments.format == Format::Text {
            terminal::print(text);
        }
        return Ok(());
    };
    fs::write(path, text).map_err(|error| {
        terminal::error(
            format_args!("cannot write `{}`: {error}", path.display()),
            "check that the folder exists and may be written to",
        )
    })
}

fn json(composed: &Composed, result: Option<&str>) -> String {
    let list = |all: &[Diagnostic]| -> Vec<serde_json::Value> {
        all.iter()
            .map(|d| diagnostic(d, &composed.sources))
            .collect()
    };
    serde_json::json!({
        "supergraph": result,
        "errors": list(&composed.errors),
        "hints": list(&composed.hints),
    })
    .to_string()
}

fn diagnostic(diagnostic: &Diagnostic, sources: &Sources) -> serde_json::Value {
    let places: Vec<serde_json::Value> = diagnostic
        .labels
        .iter()
        .filter_map(|label| {
            let source = sources.get(label.source)?;
            let (line, column) = line_column(&source.text, label.span.start);
            let (end_line, end_column) = line_column(&source.text, label.span.end);
            Some(serde_json::json!({
                "subgraph": &*source.name,
                "start": { "line": line, "column": column },
                "end": { "line": end_line, "column": end_column },
                "message": label.message,
            }))
        })
        .collect();
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "hint",
    };
    serde_json::json!({
        "code": diagnostic.code,
        "severity": severity,
        "message": diagnostic.message,
        "places": places,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}
