//! `ogive plan build`: a folder of operations to one file of plans.
//!
//! Read are `.graphql` and `.gql` files, every operation of each, and `.json` files with persisted queries: Apollo's
//! manifest (`{"format":"apollo-persisted-query-manifest","operations":[{"id","name","body"}]}`) or a plain object of id
//! and document. An operation that cannot be planned fails the command, because a bundle that silently lacks operations
//! is found out in production.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use ogive_base::{FastSet, SourceId};
use ogive_files::kept::{Readers, keep};
use ogive_gateway::{SchemaState, schema::bundle::BundleBuilder};
use ogive_plan::stable_hash;
use serde_json::Value;

use crate::{load, operation::refused, serving, supergraph_input::SupergraphArguments, terminal};

/// Arguments of `ogive plan build`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    graph: SupergraphArguments,
    /// Folder with operations: .graphql and .gql files, .json manifests of persisted queries
    #[arg(long, value_name = "DIR", required_unless_present = "from")]
    operations: Option<PathBuf>,
    /// What gateways have seen: a file that one has written (`usage.file`)
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Deepest nesting of folders that is read.
const FOLDER_DEPTH_MAX: usize = 32;

/// One operation of a document.
struct Found {
    label: String,
    /// Where it is, for diagnostics.
    place: String,
    document: String,
    name: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (config, supergraph) = arguments.graph.read(&serving::runtime()?, false)?;
    let (state, _) = SchemaState::new(supergraph, &config);
    let mut found = Vec::new();
    if let Some(folder) = &arguments.operations {
        let mut files = Vec::new();
        list(folder, 0, &mut files)?;
        files.sort();
        for file in &files {
            read(file, &mut found)?;
        }
    }
    if let Some(file) = &arguments.from {
        seen(file, &mut found)?;
    }
    if found.is_empty() {
        let read = arguments.operations.iter().chain(&arguments.from);
        let read: Vec<String> = read.map(|path| path.display().to_string()).collect();
        return Err(terminal::error(
            format_args!("no operations in `{}`", read.join("`, `")),
            "name a folder with .graphql or .gql files, or .json manifests of persisted queries, or what a gateway has seen",
        ));
    }
    let mut builder = BundleBuilder::new(&state);
    let mut lines = Vec::new();
    for operation in &found {
        let name = operation.name.as_deref();
        let added = builder
            .add(&operation.label, &operation.document, name)
            .map_err(|error| refused(&error, &operation.place))?;
        let bundled = &builder.bundle().plans[added.plan];
        let fetches = bundled.plan.fetches.as_slice();
        lines.push(format!(
            "{:016x}  {:>3} requests  {:>2} waves  {}{}",
            stable_hash(&bundled.key) as u64,
            fetches.len(),
            fetches.iter().map(|fetch| fetch.wave).max().unwrap_or(0),
            operation.label,
            if added.shared { " (same plan)" } else { "" },
        ));
    }
    let bundle = builder.finish();
    let bytes = bundle.encode();
    write(&arguments.output, &bytes)?;
    terminal::print(&format!(
        "{}\n{} operations, {} plans, {} bytes: {}",
        lines.join("\n"),
        found.len(),
        bundle.plans.len(),
        bytes.len(),
        arguments.output.display()
    ));
    Ok(())
}

/// What gateways have seen, each document once.
fn seen(path: &Path, out: &mut Vec<Found>) -> Result<()> {
    let text = load::read(path, "usage", "check the path given with `--from`")?;
    let place = path.display().to_string();
    let mut known: FastSet<String> = FastSet::default();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_str(line).map_err(|_| {
            terminal::error(
                format_args!("line {} of `{place}` is no JSON", number + 1),
                "name a file that a gateway has written (`usage.file`)",
            )
        })?;
        let operation = row.get("operation").and_then(Value::as_str);
        if let Some(operation) = operation.filter(|text| known.insert((*text).to_owned())) {
            let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
            let label = if name.is_empty() { "(unnamed)" } else { name };
            document(operation, label, &place, out);
        }
    }
    Ok(())
}

/// Written beside and moved into place, so that a gateway never reads half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    keep(path, bytes, Readers::Anybody).map_err(|error| {
        terminal::error(
            format_args!("cannot write `{}`: {error}", path.display()),
            "name a file in a folder that can be written with `--output`",
        )
    })
}

fn list(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) -> Result<()> {
    let fail = |error: std::io::Error| {
        terminal::error(
            format_args!("cannot read the folder `{}`: {error}", folder.display()),
            "check the path given with `--operations`",
        )
    };
    if depth > FOLDER_DEPTH_MAX {
        return Err(terminal::error(
            format_args!(
                "the folder `{}` is more than {FOLDER_DEPTH_MAX} folders deep",
                folder.display()
            ),
            "name a folder further down with `--operations`",
        ));
    }
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = entry.path();
        // Links are followed to files, not to folders: they could lead in circles.
        if entry.file_type().map_err(fail)?.is_dir() {
            list(&path, depth + 1, out)?;
        } else if matches!(
            path.extension().and_then(|e| e.to_str()),
            Some("graphql" | "gql" | "json")
        ) {
            out.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path, out: &mut Vec<Found>) -> Result<()> {
    let text = load::read(path, "operations", "check the files in the folder")?;
    let place = path.display().to_string();
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        return manifest(&text, &place, out);
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    document(&text, &stem.unwrap_or_default(), &place, out);
    Ok(())
}

/// Every operation of a document; one that is no GraphQL is refused when it is planned.
fn document(text: &str, label: &str, place: &str, out: &mut Vec<Found>) {
    let limits = ogive_syntax::Limits::default();
    let parsed = ogive_syntax::parse(text, SourceId(0), &limits);
    let names: Vec<Option<String>> = parsed
        .document
        .operations()
        .map(|operation| operation.name.map(|name| parsed.document.name(name).into()))
        .collect();
    let mut add = |name: Option<String>| {
        out.push(Found {
            label: name.clone().unwrap_or_else(|| label.to_owned()),
            place: place.to_owned(),
            document: text.to_owned(),
            name,
        });
    };
    if !parsed.errors.is_empty() {
        return add(None);
    }
    // A file of fragments alone is fine.
    names.into_iter().for_each(&mut add);
}

fn manifest(text: &str, place: &str, out: &mut Vec<Found>) -> Result<()> {
    let fail = |what: &str| {
        terminal::error(
            format_args!("`{place}` is no manifest of persisted queries: {what}"),
            "write Apollo's manifest format, or one object of id and document",
        )
    };
    let json: Value = serde_json::from_str(text).map_err(|error| fail(&error.to_string()))?;
    if let Some(operations) = json.get("operations").and_then(Value::as_array) {
        for operation in operations {
            let field = |name: &str| operation.get(name).and_then(Value::as_str);
            let body = field("body").ok_or_else(|| fail("an operation has no `body`"))?;
            let label = field("name").or(field("id")).unwrap_or("(unnamed)");
            document(body, label, place, out);
        }
        return Ok(());
    }
    let documents = json.as_object().ok_or_else(|| fail("it is no object"))?;
    for (id, body) in documents {
        let body = body
            .as_str()
            .ok_or_else(|| fail(&format!("the document of `{id}` is no text")))?;
        document(body, id, place, out);
    }
    Ok(())
}
